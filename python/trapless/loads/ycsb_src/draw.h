// SPDX-License-Identifier: Apache-2.0
/* Random choices as YCSB makes them (Cooper et al., SoCC 2010; its classes of the same names define them). */
#ifndef YCSB_DRAW_H
#define YCSB_DRAW_H

#include <stdint.h>

/* Items that YCSB's ScrambledZipfianGenerator draws from before it scatters them, and the sum of 1/i^0.99 over them. */
#define SCRAMBLED_ITEMS 10000000000ULL
#define SCRAMBLED_ZETA 26.46902820178302
#define ZIPFIAN_CONSTANT 0.99

struct random {
	uint64_t state;
};

/* ZipfianGenerator: item n of `items` with a probability of about 1/(n+1)^0.99 over the sum of all. */
struct zipfian {
	uint64_t items;
	double zeta, eta;
};

void random_seed(struct random *random, uint64_t seed);
uint64_t random_next(struct random *random);
/* In [0, 1). */
double random_unit(struct random *random);
/* In [0, limit). */
uint64_t random_below(struct random *random, uint64_t limit);

/* YCSB's Utils.hash: 64-bit FNV-1a of the eight bytes of `value`, without its sign. */
uint64_t fnv_hash(uint64_t value);

void zipfian_init(struct zipfian *zipfian, uint64_t items);
/* There are more items now: the sum grows by the new ones' terms. */
void zipfian_grow(struct zipfian *zipfian, uint64_t items);
uint64_t zipfian_next(const struct zipfian *zipfian, struct random *random);

/* ScrambledZipfianGenerator: popular items lie anywhere among `items`. */
void scrambled_init(struct zipfian *zipfian);
uint64_t scrambled_next(const struct zipfian *zipfian, uint64_t items, struct random *random);
/* SkewedLatestGenerator: the item with the number `newest` is the most popular one. */
uint64_t latest_next(struct zipfian *zipfian, uint64_t newest, struct random *random);

#endif
