// SPDX-License-Identifier: Apache-2.0
/* reads FILE COUNT SEED: reads COUNT bytes of FILE through a mapping, each in a page drawn at random, and says how long a read
 * took. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum { PAGE = 4096 };

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	struct stat status;
	int file = argc == 4 ? open(argv[1], O_RDONLY) : -1;
	long count = argc == 4 ? atol(argv[2]) : 0;

	if (file < 0 || fstat(file, &status) || status.st_size < PAGE || count < 1) {
		fprintf(stderr, "usage: reads FILE COUNT SEED\n");
		return 2;
	}
	const volatile char *map = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, file, 0);

	if (map == MAP_FAILED) {
		perror("reads: mmap");
		return 1;
	}
	uint64_t random = 0x9e3779b97f4a7c15 * (1 + strtoull(argv[3], NULL, 10));
	double start = now_us();

	for (long n = 0; n < count; n++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17; /* xorshift64 */
		(void)map[random % (status.st_size / PAGE) * PAGE];
	}
	double read_us = (now_us() - start) / count;

	printf("%.2f us per read\n", read_us);
	FILE *figures = fopen("/job/out/figures.json", "w"); /* its names become columns of a sweep */

	if (!figures || fprintf(figures, "{\"read_us\": {\"value\": %.3f, \"unit\": \"us\", \"direction\": \"lower\"}}\n",
				read_us) < 0 || fclose(figures)) {
		perror("reads: figures.json");
		return 1;
	}
	return 0;
}
