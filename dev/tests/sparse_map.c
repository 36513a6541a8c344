// SPDX-License-Identifier: GPL-2.0
/*
 * sparse_map SIZE_SHIFT [HINT_SHIFT]: maps 2^SIZE_SHIFT bytes without reserving them, at 2^HINT_SHIFT if that is given, and
 * writes one page in each sixteenth of them, and the last page. Status 0: all pages kept their data; 2: not enough addresses.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PARTS 16

int main(int argc, char **argv)
{
	uint64_t size = UINT64_C(1) << atoi(argv[1]), hint = argc > 2 ? UINT64_C(1) << atoi(argv[2]) : 0;
	volatile uint64_t *at[PARTS + 1];
	char *map = mmap((void *)hint, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	if ((uint64_t)map < hint) {
		fprintf(stderr, "mapped at %p\n", map);
		return 2;
	}
	for (int i = 0; i <= PARTS; i++) {
		at[i] = (uint64_t *)(map + (i < PARTS ? size / PARTS * i : size - sizeof(uint64_t)));
		*at[i] = (uint64_t)at[i] ^ i;
	}
	for (int i = 0; i <= PARTS; i++) {
		if (*at[i] != ((uint64_t)at[i] ^ i)) {
			fprintf(stderr, "%p: %#lx\n", (void *)at[i], *at[i]);
			return 1;
		}
	}
	return 0;
}
