// SPDX-License-Identifier: Apache-2.0
/* Times of operations in ns: their sum, and a histogram. The width of a bucket is at most 1/32 of its value. */
#ifndef YCSB_LATENCY_H
#define YCSB_LATENCY_H

#include <stdint.h>
#include <stdio.h>

#define LATENCY_STEPS 32
#define LATENCY_BUCKETS (60 * LATENCY_STEPS)

struct latency {
	uint64_t count, sum, longest;
	uint32_t buckets[LATENCY_BUCKETS];
};

void latency_add(struct latency *latency, uint64_t ns);
void latency_merge(struct latency *into, const struct latency *from);
/* Print a JSON object with ops, mean_us, p50_us, p95_us, p99_us, p999_us and max_us. */
void latency_print(const struct latency *latency, FILE *out);

#endif
