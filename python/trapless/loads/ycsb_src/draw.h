// SPDX-License-Identifier: Apache-2.0
/* Random choices like YCSB's (Cooper et al., SoCC 2010). YCSB's classes of the same names define them. */
#ifndef YCSB_DRAW_H
#define YCSB_DRAW_H

#include <stdint.h>

/* Items from which YCSB's ScrambledZipfianGenerator draws before it scatters them, and the sum of 1/i^0.99 over them. */
#define SCRAMBLED_ITEMS 10000000000ULL
#define SCRAMBLED_ZETA 26.46902820178302
#define ZIPFIAN_CONSTANT 0.99

struct random {
	uint64_t state;
};

/* ZipfianGenerator: draws item n of `items` with a probability of about 1/(n+1)^0.99, divided by the sum over all items. */
struct zipfian {
	uint64_t items;
	double zeta, eta;
};

void random_seed(struct random *random, uint64_t seed);
uint64_t random_next(struct random *random);
/* Draw a number in [0, 1). */
double random_unit(struct random *random);
/* Draw a number in [0, limit). */
uint64_t random_below(struct random *random, uint64_t limit);

/* YCSB's Utils.hash: the absolute value of the 64-bit FNV-1a hash of the eight bytes of `value`. */
uint64_t fnv_hash(uint64_t value);

void zipfian_init(struct zipfian *zipfian, uint64_t items);
/* Raise the number of items: the terms of the new items are added to the sum. */
void zipfian_grow(struct zipfian *zipfian, uint64_t items);
uint64_t zipfian_next(const struct zipfian *zipfian, struct random *random);

/* ScrambledZipfianGenerator: popular items are scattered among `items`. */
void scrambled_init(struct zipfian *zipfian);
uint64_t scrambled_next(const struct zipfian *zipfian, uint64_t items, struct random *random);
/* SkewedLatestGenerator: the item with the number `newest` is the most popular one. */
uint64_t latest_next(struct zipfian *zipfian, uint64_t newest, struct random *random);

#endif
