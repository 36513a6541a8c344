/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readers FILE MIB: measures read() of a file while an area of the file yields. One process has the area, with all its page
 * tables armed. After its turn, another process misses in a separate mapping and gets the area. Prints the longest wait of a
 * third process, which read()s the file, in microseconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TABLE (2UL << 20)
#define READS 2000

static int file;
static size_t size;
static unsigned long state = 1;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static size_t any(size_t below)
{
	state = state * 6364136223846793005UL + 1442695040888963407UL;
	return (state >> 33) % (below >> 12) << 12;
}

static volatile char *map(void)
{
	volatile char *page = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);

	if (page == MAP_FAILED)
		_exit(1);
	return page;
}

/* Miss in each table of a mapping, twice, because Linux may serve the first miss. */
static void have(int begun)
{
	volatile char *page = map();

	for (int times = 0; times < 2; times++)
		for (size_t at = 0; at < size; at += TABLE)
			(void)page[at + any(TABLE)];
	if (write(begun, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void want(void)
{
	volatile char *page = map();

	for (;;) {
		(void)page[any(size)];
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	static char text[4096];
	double longest = 0, began, took;
	pid_t child[2];
	int begun[2];

	file = argc > 2 ? open(argv[1], O_RDONLY) : -1;
	if (file < 0 || pipe(begun) || posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM))
		return 2;
	size = strtoul(argv[2], NULL, 0) << 20;
	if (!(child[0] = fork()))
		have(begun[1]);
	if (read(begun[0], text, 1) != 1)
		return 2;
	usleep(1500000);
	if (!(child[1] = fork()))
		want();
	state = 2;
	for (int n = 0; n < READS; n++) {
		size_t at = any(size);

		began = now();
		if (pread(file, text, sizeof(text), at) != sizeof(text))
			return 1;
		took = now() - began;
		if (took > longest)
			longest = took;
	}
	printf("longest=%.0f\n", longest);
	kill(child[0], SIGKILL);
	kill(child[1], SIGKILL);
	return 0;
}
