// SPDX-License-Identifier: Apache-2.0
/*
 * miss FILE COUNT KIND...: measures the cycles of a page miss for each kind of demand paging, on a core in RTL.
 *
 * Each kind gets a separate mapping of COUNT pages (and WARM pages more to warm up) that nobody has touched. The program loads a
 * word of every page in random order. Afterwards it compares the words with those that pread() gives.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "kinds.h"
#include "marker.h"

#define PAGE 4096UL
#define WARM 16UL
#define DONE 2 /* the milestone at the program's end; dev/rtl/linux.py */

static uint64_t cycles(void)
{
	uint64_t value;

	__asm__ volatile("rdcycle %0" : "=r"(value)::"memory");
	return value;
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Touch the pages of `order` and keep their words. */
static void touch(const char *map, const uint32_t *order, unsigned long count, uint64_t *words)
{
	for (unsigned long n = 0; n < count; n++)
		words[n] = *(const volatile uint64_t *)(map + order[n] * PAGE);
}

static int measure(int fd, const struct kind *kind, unsigned long first, unsigned long count)
{
	unsigned long pages = count + WARM;
	uint32_t *order = malloc(pages * sizeof(*order)), state = 8;
	uint64_t *words = malloc(pages * sizeof(*words));
	char *map = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, first * PAGE);
	unsigned long wrong = 0;

	if (!order || !words || map == MAP_FAILED) {
		perror("miss: mapping");
		return 1;
	}
	for (unsigned long n = 0; n < pages; n++) {
		unsigned long other = next_random(&state) % (n + 1);
		order[n] = order[other];
		order[other] = n;
		words[n] = 0;
	}
	madvise(map, pages * PAGE, MADV_RANDOM);
	if (kind->advice && madvise(map, pages * PAGE, kind->advice)) {
		perror("miss: madvise: this kernel does not support the kind");
		return 1;
	}
	touch(map, order, WARM, words);
	marker(MARKER_ROI_BEGIN, kind->number, 0, 0);
	uint64_t start = cycles();
	touch(map, order + WARM, count, words + WARM);
	uint64_t end = cycles();
	marker(MARKER_ROI_END, kind->number, 0, 0);
	for (unsigned long n = 0; n < pages; n++) {
		uint64_t word;

		if (pread(fd, &word, sizeof(word), (first + order[n]) * PAGE) != sizeof(word) || word != words[n])
			wrong++;
	}
	printf("%s %lu misses %.1f cycles each, %lu wrong\n", kind->name, count, (double)(end - start) / count, wrong);
	fflush(stdout);
	munmap(map, pages * PAGE);
	free(order);
	free(words);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
	int fd = argc > 3 ? open(argv[1], O_RDONLY) : -1, status = 0;

	if (!count || fd < 0) {
		fprintf(stderr, "usage: miss FILE COUNT KIND...\n");
		return 2;
	}
	for (int n = 3; n < argc; n++) {
		const struct kind *kind = find_kind(argv[n]);

		if (!kind) {
			fprintf(stderr, "miss: unknown kind %s (see kinds.h)\n", argv[n]);
			return 2;
		}
		status |= measure(fd, kind, (n - 3) * (count + WARM), count);
	}
	/* The milestone ends the simulation, so that it does not wait for the guest to shut down. */
	tcdrain(STDOUT_FILENO);
	marker(MARKER_MILESTONE, DONE, status, 0);
	return status;
}
