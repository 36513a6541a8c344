// SPDX-License-Identifier: GPL-2.0
/*
 * mappings: measures the cost of a mapping that is hardly used, or only stored to.
 *
 *   mappings cold|cached|unused|stored|private KIB FILE
 *
 * Repeats 40 times: map KIB of the file, read one page of it (on the drive or in memory) or none, unmap. The first eight rounds
 * are a warm-up. stored, private: 6 rounds, of which the first is a warm-up; store to every page of a shared or a private
 * mapping. Mean times go to /job/out/figures.json.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#define PAGE 4096UL

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
	bool private = argc > 1 && !strcmp(argv[1], "private"), stores = private || (argc > 1 && !strcmp(argv[1], "stored"));
	unsigned rounds = stores ? 6 : 40, warm_up = stores ? 1 : 8;
	int fd = argc == 4 ? open(argv[3], stores && !private ? O_RDWR : O_RDONLY) : -1;

	if (fd < 0 || fstat(fd, &st)) {
		fputs("usage: mappings cold|cached|unused|stored|private KIB FILE\n", stderr);
		return 2;
	}
	size_t length = strtoul(argv[2], NULL, 10) << 10, pages = st.st_size / PAGE;
	if (!length || length > (size_t)st.st_size) {
		fprintf(stderr, "mappings: %s KiB: not of this file\n", argv[2]);
		return 2;
	}
	for (unsigned round = 0; round < rounds; round++) {
		/* Each round uses another page of the whole file, far from the others. */
		bool elsewhere = stores || !strcmp(argv[1], "cold");
		size_t page = elsewhere ? (round + 1) * (pages / (rounds + 1)) : 0;
		size_t first = page < (pages - length / PAGE) ? page : pages - length / PAGE;
		double t0 = now();
		volatile unsigned char *map = mmap(NULL, length, PROT_READ | (stores ? PROT_WRITE : 0),
						   private ? MAP_PRIVATE : MAP_SHARED, fd, first * PAGE);
		if (map == MAP_FAILED) {
			perror("mappings: mmap");
			return 1;
		}
		double t1 = now();
		for (size_t at = 0; stores && at < length; at += PAGE)
			map[at] = round;
		if (!stores && strcmp(argv[1], "unused"))
			sum += map[(page - first) * PAGE];
		double t2 = now();
		munmap((void *)map, length);
		double t3 = now();
		if (round < warm_up)
			continue;
		map_us += t1 - t0;
		read_us += t2 - t1;
		unmap_us += t3 - t2;
	}
	FILE *out = fopen("/job/out/figures.json", "w");
	double counted = rounds - warm_up;
	if (!out || fprintf(out, "{\"map_us\": %.3f, \"read_us\": %.3f, \"unmap_us\": %.3f, \"sum\": %u}\n", map_us / counted,
			    read_us / counted, unmap_us / counted, sum) < 0 || fclose(out)) {
		perror("mappings: /job/out/figures.json");
		return 1;
	}
	return 0;
}
