// SPDX-License-Identifier: Apache-2.0
// Follows chains of records that lie on pages all over memory, as programs do with lists, trees and adjacency: the next page is
// far away, but it is the same one each time. It never ends; the recorder ends it.
//   chains PAGES SKEW FOLLOW PAIRS LINES SEED
// PAGES pages are one chain, in an order drawn by SEED. From a page the program goes on along the chain with probability FOLLOW.
// Otherwise it jumps to a random place u^SKEW of the chain, where u is between 0 and 1: the larger SKEW is, the more often it
// comes to the first places. A page belongs together with the page behind it with probability PAIRS; then the program visits
// both. It reads LINES cache lines of each page that it visits.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, LINE = 64 };

static uint64_t state, seed;

// Vigna's splitmix64.
static uint64_t mixed(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t draw(void)
{
	return mixed(state += 0x9e3779b97f4a7c15);
}

// A number from 0 to below 1, of 64 random bits.
static double fraction(uint64_t bits)
{
	return (bits >> 11) * 0x1p-53;
}

// The page at a place of the chain through `pages` pages: a permutation of the numbers below the next power of two, applied until
// the result is one of the pages.
static uint64_t page_at(uint64_t place, uint64_t pages)
{
	const int bits = 64 - __builtin_clzll(pages - 1), half = (bits + 1) / 2;
	const uint64_t mask = (1ull << bits) - 1;

	do {
		for (int round = 0; round < 3; round++) {
			place = place * ((mixed(seed + round) & mask) | 1) & mask;
			place ^= place >> half;
		}
	} while (place >= pages);
	return place;
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		fputs("chains PAGES SKEW FOLLOW PAIRS LINES SEED\n", stderr);
		return 2;
	}
	const uint64_t pages = strtoull(argv[1], NULL, 10), lines = strtoull(argv[5], NULL, 10);
	const double skew = atof(argv[2]), follow = atof(argv[3]), pairs = atof(argv[4]);
	// Memory that is only read takes none of the host's.
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	const volatile char *memory = mmap(NULL, (pages + 1) * PAGE, PROT_READ, flags, -1, 0);

	if (pages < 2 || memory == MAP_FAILED) {
		perror("chains: PAGES pages of memory");
		return 2;
	}
	state = seed = mixed(strtoull(argv[6], NULL, 10) + 1);
	for (uint64_t place = 0;;) {
		if (fraction(draw()) >= follow)
			place = pow(fraction(draw()), skew) * pages;
		else if (++place == pages)
			place = 0;
		const uint64_t page = page_at(place, pages);

		for (uint64_t one = page; one <= page + (fraction(mixed(seed ^ page)) < pairs); one++)
			for (uint64_t line = 0; line < lines; line++)
				(void)memory[one * PAGE + (one * 7 + line * 9) % (PAGE / LINE) * LINE];
	}
}
