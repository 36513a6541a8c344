// SPDX-License-Identifier: Apache-2.0
/*
 * preload_cases CASE FILE: programs that use mappings in unusual ways; they must not notice the launcher. Each prints the sum
 * of the first bytes of the pages that it read.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096UL

static int file;
static size_t size;

static volatile char *map(size_t offset, size_t length)
{
	void *got = mmap(NULL, length, PROT_READ, MAP_SHARED, file, offset);

	if (got == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return got;
}

static unsigned long sum(volatile char *start, size_t length)
{
	unsigned long all = 0;

	for (size_t at = 0; at < length; at += PAGE)
		all += (unsigned char)start[at];
	return all;
}

/* A child that cannot exec leaves its parent's mappings alone. */
static void vfork_that_cannot_exec(void)
{
	volatile char *start = map(0, size);
	unsigned long half = sum(start, size / 2);
	pid_t child = vfork();
	int status;

	if (!child) {
		execl("/nonexistent", "nonexistent", (char *)NULL);
		_exit(99);
	}
	waitpid(child, &status, 0);
	printf("%d %lu\n", WEXITSTATUS(status), half + sum(start + size / 2, size / 2));
}

static void *read_for_ever(void *start)
{
	for (;;)
		sum(start, size);
	return NULL;
}

/* Threads outlive main(). */
static void return_while_others_read(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, read_for_ever, (void *)map(0, size));
	usleep(50000);
	puts("0");
}

/* Each page is a mapping. */
static void many(void)
{
	size_t pages = size / PAGE;
	volatile char **all = malloc(pages * sizeof(*all));
	unsigned long found = 0;

	for (size_t n = 0; n < pages; n++)
		all[n] = map(n * PAGE, PAGE);
	for (size_t n = 0; n < pages; n++)
		found += sum(all[n], PAGE);
	printf("%lu\n", found);
}

/* Many mapped files, like the tables of a database. They are made in FILE's folder. */
static void files(const char *beside)
{
	enum { FILES = 300, PAGES = 4 };
	static char page[PAGE];
	volatile char *all[FILES];
	unsigned long found = 0;
	char path[256];

	for (int n = 0; n < FILES; n++) {
		snprintf(path, sizeof(path), "%.*s%d", (int)(strrchr(beside, '/') + 1 - beside), beside, n);
		file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		for (int at = 0; at < PAGES; at++) {
			page[0] = n + at;
			if (write(file, page, PAGE) != PAGE)
				perror("write");
		}
		fsync(file);
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
		all[n] = map(0, PAGES * PAGE);
		close(file);
	}
	for (int n = 0; n < FILES; n++)
		found += sum(all[n], PAGES * PAGE);
	printf("%lu\n", found);
}

/* A mapping that grows, like that of a database. */
static void grow(void)
{
	volatile char *start = map(0, size / 4);
	unsigned long quarter = sum(start, size / 4);

	start = mremap((void *)start, size / 4, size, MREMAP_MAYMOVE);
	printf("%lu\n", quarter + sum(start + size / 4, size - size / 4));
}

/* The child reads one half, the parent the other. */
static void fork_and_share(void)
{
	volatile char *start = map(0, size);
	pid_t child = fork();

	if (!child) {
		printf("%lu ", sum(start, size / 2));
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	printf("%lu\n", sum(start + size / 2, size / 2));
}

/* Whole pages are unmapped, for any length of the mapping; the next mapping is a new one. */
static void unmap_whole_pages(void)
{
	for (int n = 0; n < 3; n++) {
		volatile char *start = map(0, PAGE + 1);
		printf("%lu ", sum(start, 2 * PAGE));
		if (munmap((void *)start, 2 * PAGE))
			perror("munmap");
	}
	puts("");
}

/* One user of a mapping unmaps, moves and protects pages that others continue to read. */
static void users(void)
{
	char *one = (char *)map(0, 16 * PAGE), *two = (char *)map(0, 16 * PAGE), *three = (char *)map(0, 16 * PAGE);
	unsigned long found = 0;

	munmap(one + 4 * PAGE, 4 * PAGE);
	found += sum(two, 16 * PAGE);
	munmap(one, 4 * PAGE);
	munmap(one + 8 * PAGE, 8 * PAGE);
	mprotect(two, 16 * PAGE, PROT_READ | PROT_EXEC);
	two = mremap(two, 16 * PAGE, 32 * PAGE, MREMAP_MAYMOVE);
	found += sum(two, 32 * PAGE) + sum(three, 16 * PAGE);
	munmap(two, 32 * PAGE);
	found += sum(three, 16 * PAGE);
	munmap(three, 16 * PAGE);
	printf("%lu %d\n", found, msync(three, PAGE, MS_ASYNC) && errno == ENOMEM);
}

static void *map_cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	map(0, 8 * PAGE);	/* not a cancellation point */
	return NULL;
}

/* Calls that fail, calls that keep the old range, and a cancelled thread: another user's pages stay. */
static void edges(void)
{
	char *one = (char *)map(0, 8 * PAGE), *two = (char *)map(0, 8 * PAGE), *moved;
	pthread_t thread;

	printf("%d", mremap(one, 8 * PAGE, 0, 0) == MAP_FAILED && errno == EINVAL);
	printf(" %d", mremap(one, 8 * PAGE, 16 * PAGE, MREMAP_DONTUNMAP) == MAP_FAILED && errno == EINVAL);
	moved = mremap(one, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	printf(" %d %lu", moved != MAP_FAILED && moved != one, sum(one, 8 * PAGE) + sum(moved, 8 * PAGE));
	munmap(one, 8 * PAGE);
	munmap(moved, 8 * PAGE);
	pthread_create(&thread, NULL, map_cancelled, NULL);
	pthread_join(thread, NULL);
	printf(" %lu\n", sum(two, 8 * PAGE) + sum(map(0, 8 * PAGE), 8 * PAGE));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "vfork", vfork_that_cannot_exec }, { "return", return_while_others_read }, { "many", many }, { "grow", grow },
	{ "fork", fork_and_share }, { "whole-pages", unmap_whole_pages }, { "users", users },
	{ "edges", edges },
};

int main(int argc, char **argv)
{
	struct stat st;

	if (argc != 3 || (file = open(argv[2], O_RDONLY)) < 0 || fstat(file, &st))
		return 2;
	size = st.st_size;
	if (!strcmp(argv[1], "files")) {
		files(argv[2]);
		return 0;
	}
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		if (strcmp(cases[n].name, argv[1]))
			continue;
		cases[n].run();
		return 0;
	}
	return 2;
}
