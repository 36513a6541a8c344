// SPDX-License-Identifier: GPL-2.0
/*
 * proportion: makes one operation on a file that is mapped and partly read, for test_proportion.py. The kernel's counters before
 * and after it go to /job/out.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul
#define PART (1ul << 20)
#define LENGTH (64 * PART)

/* For mremap(), mappings of adjacent parts of a file in adjacent ranges are one mapping. */
static int neighbours(int file)
{
	char *place = mmap(NULL, 8 * PART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile char *map;
	int sum = 0;

	for (int n = 0; n < 3; n++) {
		map = mmap(place + n * PART, PART, PROT_READ, MAP_SHARED | MAP_FIXED, file, n * PART);
		if (map == MAP_FAILED)
			return 2;
		sum += map[n * PAGE];
	}
	map = mremap(place, 3 * PART, 4 * PART, MREMAP_MAYMOVE);
	if (map == MAP_FAILED)
		return 1;
	for (int n = 0; n < 3; n++)
		sum -= map[n * PART + n * PAGE];
	return sum != 0;
}

static int punch(int file)
{
	return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PART + PAGE, PAGE);
}

static int pagemap(const volatile char *map)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t word;

	for (int n = 0; n < 100; n++)
		if (pread(fd, &word, 8, ((uintptr_t)map / PAGE) * 8) != 8)
			return 1;
	return 0;
}

static int sync_file(int file)
{
	for (int n = 0; n < 100; n++)
		if (fsync(file))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	int file = open("/data/random.bin", O_RDWR), failed = 2;
	const char *what = argc == 2 ? argv[1] : "";

	if (!strcmp(what, "neighbours"))
		return neighbours(file);
	volatile char *map = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, file, 0);
	if (map == MAP_FAILED)
		return 2;
	for (size_t at = 0; at < LENGTH; at += PART)
		(void)map[at];
	usleep(200000);
	if (system("cat /sys/kernel/mm/hwdp/stats > /job/out/before"))
		return 2;
	if (!strcmp(what, "punch"))
		failed = punch(file);
	else if (!strcmp(what, "pagemap"))
		failed = pagemap(map);
	else if (!strcmp(what, "fsync"))
		failed = sync_file(file);
	else if (!strcmp(what, "idle"))
		failed = sleep(4);
	return failed ?: system("cat /sys/kernel/mm/hwdp/stats > /job/out/after") != 0;
}
