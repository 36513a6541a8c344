// SPDX-License-Identifier: Apache-2.0
// isolation HUNG PAGE OTHER: HUNG is a file on a drive that does not answer. One process waits on each hart for a page of HUNG,
// from PAGE on. The program measures how long another process takes for its work with the file OTHER, on another drive, and how
// long the first process lives after it was killed. It prints a line "name microseconds" for each measurement, with its worst
// value.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define PAGES 64ul

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static volatile char *map(const char *path, size_t size)
{
	int fd = open(path, O_RDONLY);
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (fd < 0 || p == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(fd);
	return p;
}

static void worse(double *worst, double began)
{
	double took = now_us() - began;

	*worst = took > *worst ? took : *worst;
}

static volatile char *hung;

/* Cause a miss that hangs, on hart @arg. */
static void *reader(void *arg)
{
	size_t hart = (size_t)arg;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(hart, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		_exit(1);
	(void)hung[hart * PAGE];
	_exit(1);	/* the drive has answered */
}

static void hang(const char *path, size_t page)
{
	long harts = sysconf(_SC_NPROCESSORS_ONLN);
	volatile char *p = map(path, (page + harts) * PAGE);
	pthread_t thread;

	for (size_t i = 0; i < page; i++)
		(void)p[i * PAGE];
	hung = p + page * PAGE;
	for (long i = 0; i < harts; i++)
		if (pthread_create(&thread, NULL, reader, (void *)i))
			_exit(1);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	double munmaps = 0, pagemaps = 0, forks = 0, reads = 0, killed;
	size_t page = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	pid_t waits;

	if (argc != 4 || pagemap < 0)
		return 2;
	waits = fork();
	if (!waits)
		hang(argv[1], page);
	usleep(100000);
	for (int round = 0; round < 40; round++) {
		volatile char *p = map(argv[3], PAGES * PAGE);
		uint64_t word;
		double t = now_us();

		for (size_t i = 0; i < PAGES; i++)
			(void)p[i * PAGE];
		worse(&reads, t);
		t = now_us();
		if (pread(pagemap, &word, 8, (uintptr_t)p / PAGE * 8) != 8)
			return 3;
		worse(&pagemaps, t);
		t = now_us();
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
		worse(&forks, t);
		t = now_us();
		munmap((void *)p, PAGES * PAGE);
		worse(&munmaps, t);
	}
	if (waitpid(waits, NULL, WNOHANG))
		return 4;	/* it did not hang */
	killed = now_us();
	kill(waits, SIGKILL);
	waitpid(waits, NULL, 0);
	printf("reads %.0f\npagemap %.0f\nfork %.0f\nmunmap %.0f\nkilled %.0f\n", reads, pagemaps, forks, munmaps, now_us() - killed);
	return 0;
}
