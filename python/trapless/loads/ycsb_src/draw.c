// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "draw.h"

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
uint64_t random_next(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

void random_seed(struct random *random, uint64_t seed)
{
	random->state = seed;
	random->state = random_next(random);
}

double random_unit(struct random *random)
{
	return (random_next(random) >> 11) * 0x1p-53;
}

uint64_t random_below(struct random *random, uint64_t limit)
{
	return (unsigned __int128)random_next(random) * limit >> 64;
}

uint64_t fnv_hash(uint64_t value)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (int byte = 0; byte < 8; byte++, value >>= 8)
		hash = (hash ^ (value & 0xff)) * 1099511628211;
	return (int64_t)hash < 0 ? -hash : hash;
}

static double zeta(uint64_t from, uint64_t to)
{
	double sum = 0;

	for (uint64_t n = from; n < to; n++)
		sum += 1 / pow(n + 1, ZIPFIAN_CONSTANT);
	return sum;
}

static void set_eta(struct zipfian *zipfian)
{
	zipfian->eta = (1 - pow(2.0 / zipfian->items, 1 - ZIPFIAN_CONSTANT)) / (1 - zeta(0, 2) / zipfian->zeta);
}

void zipfian_init(struct zipfian *zipfian, uint64_t items)
{
	*zipfian = (struct zipfian){ .items = items, .zeta = zeta(0, items) };
	set_eta(zipfian);
}

void zipfian_grow(struct zipfian *zipfian, uint64_t items)
{
	zipfian->zeta += zeta(zipfian->items, items);
	zipfian->items = items;
	set_eta(zipfian);
}

uint64_t zipfian_next(const struct zipfian *zipfian, struct random *random)
{
	double u = random_unit(random), uz = u * zipfian->zeta;

	if (uz < 1)
		return 0;
	if (uz < 1 + pow(0.5, ZIPFIAN_CONSTANT))
		return 1;
	return zipfian->items * pow(zipfian->eta * u - zipfian->eta + 1, 1 / (1 - ZIPFIAN_CONSTANT));
}

void scrambled_init(struct zipfian *zipfian)
{
	*zipfian = (struct zipfian){ .items = SCRAMBLED_ITEMS, .zeta = SCRAMBLED_ZETA };
	set_eta(zipfian);
}

uint64_t scrambled_next(const struct zipfian *zipfian, uint64_t items, struct random *random)
{
	return fnv_hash(zipfian_next(zipfian, random)) % items;
}

uint64_t latest_next(struct zipfian *zipfian, uint64_t newest, struct random *random)
{
	if (newest > zipfian->items)
		zipfian_grow(zipfian, newest);
	return newest - zipfian_next(zipfian, random);
}
