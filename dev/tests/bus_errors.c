// SPDX-License-Identifier: Apache-2.0
/*
 * Read a mapped file while misses get bus errors; repeat an access that is killed. Then compare every page with the
 * disk, drop the cache, and do the same again: frames that were freed wrongly would then be used twice. Prints the
 * number of killed accesses, of pages with wrong bytes, of lines of the kernel's log that report a bug, and of those
 * that report a kept frame.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, ROUNDS = 3, READ_ALL = 3, LOG = 1 << 20 };

static sigjmp_buf again;

static void killed(int signal)
{
	siglongjmp(again, signal);
}

static long lines_with(const char *log, const char *what)
{
	long n = 0;

	for (const char *at = log; (at = strstr(at, what)); at++)
		n++;
	return n;
}

int main(void)
{
	int file = open("/data/random.bin", O_RDONLY), direct = open("/data/random.bin", O_RDONLY | O_DIRECT);
	char *buffer = aligned_alloc(PAGE, PAGE), *log = calloc(1, LOG + 1);
	volatile long kills = 0, wrong = 0;
	struct stat size;

	if (fstat(file, &size) || direct < 0 || !buffer || !log)
		return 1;
	signal(SIGBUS, killed);
	signal(SIGSEGV, killed);
	for (volatile int round = 0; round < ROUNDS; round++) {
		char *map = mmap(NULL, size.st_size, PROT_READ, MAP_SHARED, file, 0);

		if (map == MAP_FAILED)
			return 1;
		for (volatile long at = 0; at < size.st_size; at += PAGE) {
			if (sigsetjmp(again, 1))
				kills++;
			*(volatile char *)(map + at);
		}
		for (volatile long at = 0; at < size.st_size; at += PAGE) {
			if (pread(direct, buffer, PAGE, at) != PAGE)
				return 1;
			if (sigsetjmp(again, 1))
				kills++;
			wrong += memcmp(map + at, buffer, PAGE) != 0;
		}
		munmap(map, size.st_size);
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	}
	if (klogctl(READ_ALL, log, LOG) < 0)
		return 1;
	printf("%ld %ld %ld %ld\n", kills, wrong, lines_with(log, "BUG") + lines_with(log, "WARNING"),
	       lines_with(log, "may be mapped, and is kept"));
	return 0;
}
