// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "latency.h"

/* Below LATENCY_STEPS, each ns has a bucket; above, each power of two has LATENCY_STEPS buckets. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned shift = 0;

	while (ns >> shift >= 2 * LATENCY_STEPS)
		shift++;
	return shift * LATENCY_STEPS + (ns >> shift);
}

static double middle_of(unsigned bucket)
{
	unsigned shift = bucket < 2 * LATENCY_STEPS ? 0 : bucket / LATENCY_STEPS - 1;

	return ((double)(bucket - shift * LATENCY_STEPS) + (shift ? 0.5 : 0)) * ((uint64_t)1 << shift);
}

void latency_add(struct latency *latency, uint64_t ns)
{
	unsigned bucket = bucket_of(ns);

	latency->count++;
	latency->sum += ns;
	if (ns > latency->longest)
		latency->longest = ns;
	latency->buckets[bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1]++;
}

void latency_merge(struct latency *into, const struct latency *from)
{
	into->count += from->count;
	into->sum += from->sum;
	if (from->longest > into->longest)
		into->longest = from->longest;
	for (unsigned n = 0; n < LATENCY_BUCKETS; n++)
		into->buckets[n] += from->buckets[n];
}

static double percentile(const struct latency *latency, double percent)
{
	double wanted = latency->count * percent / 100, seen = 0;

	for (unsigned n = 0; n < LATENCY_BUCKETS; n++) {
		seen += latency->buckets[n];
		if (seen && seen >= wanted)
			return middle_of(n);
	}
	return 0;
}

void latency_print(const struct latency *latency, FILE *out)
{
	fprintf(out, "{\"ops\": %" PRIu64 ", \"mean_us\": %.4f", latency->count,
		latency->count ? latency->sum / 1e3 / latency->count : 0);
	static const struct {
		const char *name;
		double percent;
	} shown[] = { { "p50", 50 }, { "p95", 95 }, { "p99", 99 }, { "p999", 99.9 } };
	for (unsigned n = 0; n < sizeof(shown) / sizeof(shown[0]); n++)
		fprintf(out, ", \"%s_us\": %.3f", shown[n].name, percentile(latency, shown[n].percent) / 1e3);
	fprintf(out, ", \"max_us\": %.3f}", latency->longest / 1e3);
}
