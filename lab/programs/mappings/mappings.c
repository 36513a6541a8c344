// SPDX-License-Identifier: GPL-2.0
/*
 * mappings: what a mapping costs that is hardly used.
 *
 *   mappings cold|cached|unused KIB FILE
 *
 * 40 times: map KIB of the file, read one page of it (that is on the drive, or in memory; or read none), unmap. The first eight
 * warm up. Mean times go to /job/out/figures.json.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#define PAGE 4096UL
#define ROUNDS 40
#define WARM_UP 8

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	struct stat st;
	double map_us = 0, read_us = 0, unmap_us = 0;
	unsigned sum = 0;
	int fd = argc == 4 ? open(argv[3], O_RDONLY) : -1;

	if (fd < 0 || fstat(fd, &st)) {
		fputs("usage: mappings cold|cached|unused KIB FILE\n", stderr);
		return 2;
	}
	size_t length = strtoul(argv[2], NULL, 10) << 10, pages = st.st_size / PAGE;
	if (!length || length > (size_t)st.st_size) {
		fprintf(stderr, "mappings: %s KiB: not of this file\n", argv[2]);
		return 2;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		/* Of the whole file, each round another page, far from the others. */
		size_t page = strcmp(argv[1], "cold") ? 0 : (round + 1) * (pages / (ROUNDS + 1));
		size_t first = page < (pages - length / PAGE) ? page : pages - length / PAGE;
		double t0 = now();
		const volatile unsigned char *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, first * PAGE);
		if (map == MAP_FAILED) {
			perror("mappings: mmap");
			return 1;
		}
		double t1 = now();
		if (strcmp(argv[1], "unused"))
			sum += map[(page - first) * PAGE];
		double t2 = now();
		munmap((void *)map, length);
		double t3 = now();
		if (round < WARM_UP)
			continue;
		map_us += t1 - t0;
		read_us += t2 - t1;
		unmap_us += t3 - t2;
	}
	FILE *out = fopen("/job/out/figures.json", "w");
	double rounds = ROUNDS - WARM_UP;
	if (!out || fprintf(out, "{\"map_us\": %.3f, \"read_us\": %.3f, \"unmap_us\": %.3f, \"sum\": %u}\n", map_us / rounds,
			    read_us / rounds, unmap_us / rounds, sum) < 0 || fclose(out)) {
		perror("mappings: /job/out/figures.json");
		return 1;
	}
	return 0;
}
