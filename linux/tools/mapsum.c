// SPDX-License-Identifier: GPL-2.0
/*
 * mapsum: one number that depends on every byte of a file and on its place, however the file is read.
 *
 *   mapsum [-t THREADS] [-o split|same|shuffle] [-p] FILE          through a mapping
 *   mapsum -r FILE                                                  through read(), the reference
 *
 * Orders: `split` gives each thread its own part of the file, front to back; `same` sends all
 * threads over the whole file together, so that they miss on the same pages at the same time;
 * `shuffle` is `same` in a scattered order. -p maps MAP_PRIVATE instead of MAP_SHARED. With `same`
 * and `shuffle`, all threads must get the same sum.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096UL
#define THREADS_MAX 64

enum order { SPLIT, SAME, SHUFFLE };

struct part {
	pthread_t thread;
	const unsigned char *map;
	uint64_t pages, size, first, end, sum;
	enum order order;
};

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x;
}

/* Sum of the first `length` bytes of a page. The last word is padded with zeros. */
static uint64_t page_sum(const unsigned char *page, uint64_t index, uint64_t length)
{
	uint64_t hash = mix(index + 1), word;

	for (uint64_t at = 0; at < length; at += 8) {
		word = 0;
		memcpy(&word, page + at, length - at < 8 ? length - at : 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	return mix(hash);
}

static uint64_t length_of(uint64_t index, uint64_t size)
{
	return size - index * PAGE < PAGE ? size - index * PAGE : PAGE;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	return b ? gcd(b, a % b) : a;
}

static void *sum_part(void *argument)
{
	struct part *part = argument;
	uint64_t stride = 1, at = part->first;

	if (part->order == SHUFFLE) {
		/* A stride with no common factor visits every page once. */
		stride = part->pages * 5 / 8 + 1;
		while (gcd(stride, part->pages) != 1)
			stride++;
	}
	for (uint64_t n = part->first; n < part->end; n++, at = (at + stride) % part->pages)
		part->sum += page_sum(part->map + at * PAGE, at, length_of(at, part->size));
	return NULL;
}

static uint64_t sum_by_read(int fd)
{
	static unsigned char page[PAGE];
	uint64_t sum = 0, index = 0;
	ssize_t got;

	while ((got = read(fd, page, PAGE)) > 0) {
		/* A short read in the middle would change the sum, but regular files have none. */
		sum += page_sum(page, index++, got);
	}
	if (got < 0)
		perror("mapsum: read");
	return sum;
}

static int usage(void)
{
	fputs("usage: mapsum [-t THREADS] [-o split|same|shuffle] [-p] FILE, or mapsum -r FILE\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static struct part parts[THREADS_MAX];
	int threads = 1, flags = MAP_SHARED, by_read = 0, option;
	enum order order = SPLIT;
	struct stat st;

	while ((option = getopt(argc, argv, "t:o:pr")) != -1) {
		if (option == 't')
			threads = atoi(optarg);
		else if (option == 'o')
			order = !strcmp(optarg, "same") ? SAME : !strcmp(optarg, "shuffle") ? SHUFFLE : SPLIT;
		else if (option == 'p')
			flags = MAP_PRIVATE;
		else if (option == 'r')
			by_read = 1;
		else
			return usage();
	}
	if (optind != argc - 1 || threads < 1 || threads > THREADS_MAX)
		return usage();
	int fd = open(argv[optind], O_RDONLY);
	if (fd < 0 || fstat(fd, &st)) {
		fprintf(stderr, "mapsum: cannot open %s: ", argv[optind]);
		perror(NULL);
		return 1;
	}
	if (by_read) {
		printf("%016llx\n", (unsigned long long)sum_by_read(fd));
		return 0;
	}
	if (!st.st_size)
		return usage();
	const unsigned char *map = mmap(NULL, st.st_size, PROT_READ, flags, fd, 0);
	if (map == MAP_FAILED) {
		perror("mapsum: mmap");
		return 1;
	}
	uint64_t pages = (st.st_size + PAGE - 1) / PAGE, sum = 0;
	for (int n = 0; n < threads; n++) {
		parts[n] = (struct part){ .map = map, .pages = pages, .size = st.st_size, .order = order, .end = pages };
		if (order == SPLIT) {
			parts[n].first = pages * n / threads;
			parts[n].end = pages * (n + 1) / threads;
		}
		if (pthread_create(&parts[n].thread, NULL, sum_part, &parts[n])) {
			fputs("mapsum: cannot start a thread\n", stderr);
			return 1;
		}
	}
	for (int n = 0; n < threads; n++)
		pthread_join(parts[n].thread, NULL);
	for (int n = 0; n < threads; n++) {
		if (order == SPLIT) {
			sum += parts[n].sum;
		} else if (n && parts[n].sum != sum) {
			fprintf(stderr, "mapsum: threads saw different bytes: %016llx and %016llx\n",
				(unsigned long long)sum, (unsigned long long)parts[n].sum);
			return 1;
		} else {
			sum = parts[n].sum;
		}
	}
	munmap((void *)map, st.st_size);
	printf("%016llx\n", (unsigned long long)sum);
	return 0;
}
