// SPDX-License-Identifier: GPL-2.0
/*
 * reads: measures how fast a cold file is read into memory, in three ways.
 *
 *   reads sequential|random|populate FILE
 *
 * `sequential` reads a word of every page of a mapping, front to back, `random` the same in a scattered order, and `populate`
 * lets the kernel read all pages at once (MADV_POPULATE_READ). Figures go to /job/out/figures.json.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static long major_faults(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return used.ru_majflt;
}

/* Return a page for each number below `pages`, every page once: the step is odd, and `pages` is a power of two. */
static uint64_t scattered(uint64_t number, uint64_t pages)
{
	return number * 0x9e3779b97f4a7c15u % pages;
}

int main(int argc, char **argv)
{
	struct stat st;
	int fd = argc == 3 ? open(argv[2], O_RDONLY) : -1;

	if (fd < 0 || fstat(fd, &st)) {
		fputs("usage: reads sequential|random|populate FILE\n", stderr);
		return 2;
	}
	uint64_t pages = st.st_size / PAGE, sum = 0;
	if (!pages || pages & (pages - 1)) {
		fprintf(stderr, "reads: %s: its size must be a power of two\n", argv[2]);
		return 2;
	}
	long before = major_faults();
	double start = now();
	const volatile unsigned char *map = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror("reads: mmap");
		return 1;
	}
	if (!strcmp(argv[1], "populate") && madvise((void *)map, st.st_size, MADV_POPULATE_READ)) {
		perror("reads: MADV_POPULATE_READ");
		return 1;
	}
	for (uint64_t number = 0; number < pages; number++)
		sum += map[PAGE * (strcmp(argv[1], "random") ? number : scattered(number, pages))];
	double seconds = now() - start;
	long faults = major_faults() - before;
	FILE *out = fopen("/job/out/figures.json", "w");
	if (!out || fprintf(out, "{\"bandwidth_mb_s\": %.1f, \"major_faults\": %ld, \"sum\": %lu}\n", st.st_size / 1e6 / seconds,
			    faults, (unsigned long)sum) < 0 || fclose(out)) {
		perror("reads: /job/out/figures.json");
		return 1;
	}
	return 0;
}
