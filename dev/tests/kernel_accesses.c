// SPDX-License-Identifier: GPL-2.0
/* kernel_accesses: makes the kernel itself read pages of a mapping that are on the drive, for test_kernel_accesses.py. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define PAGES 1024ul

static char *map, own[PAGE], copy[PAGE];
static int file, failures;

/* Return page `page` of the file, read with read() and not through the mapping. */
static const char *truth(size_t page)
{
	if (pread(file, own, PAGE, page * PAGE) != (ssize_t)PAGE)
		failures++;
	return own;
}

static void expect(int holds, const char *what, size_t page)
{
	if (holds)
		return;
	printf("%s, page %zu: %s\n", what, page, strerror(errno));
	failures++;
}

/* The kernel reads the futex word with page faults disabled, while it holds the lock of a hash bucket. */
static void futex(size_t page)
{
	struct timespec soon = { 0, 1000 };

	errno = 0;
	expect(syscall(SYS_futex, map + page * PAGE, FUTEX_WAIT_PRIVATE, 1, &soon, NULL, 0) == -1 && errno == EAGAIN, "futex", page);
}

/* The kernel copies the page with copy_from_user(). */
static void write_from(size_t page)
{
	int pipes[2];

	expect(!pipe(pipes) && write(pipes[1], map + page * PAGE, PAGE) == (ssize_t)PAGE &&
	       read(pipes[0], copy, PAGE) == (ssize_t)PAGE && !memcmp(copy, truth(page), PAGE), "write", page);
	close(pipes[0]);
	close(pipes[1]);
}

/* The kernel finds the page with get_user_pages(). */
static void pages_of(size_t page)
{
	struct iovec local = { copy, PAGE }, remote = { map + page * PAGE, PAGE };

	expect(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)PAGE && !memcmp(copy, truth(page), PAGE),
	       "process_vm_readv", page);
}

/* The kernel reads a string, byte by byte. */
static void path(size_t page)
{
	expect(access(map + page * PAGE, F_OK) == -1 && (errno == ENOENT || errno == ENAMETOOLONG), "access", page);
}

/* The interrupt of a counter copies the stack; in this interrupt no fault may wait. */
static int sample_stack(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = 100000, .sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IP,
					.wakeup_events = 1 };
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd >= 0 && mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		return -1;
	return fd;
}

int main(void)
{
	static void (*const ways[])(size_t page) = { futex, write_from, pages_of, path };
	int sampling;

	file = open("/data/random.bin", O_RDONLY | O_CLOEXEC);
	map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	if (map == MAP_FAILED)
		return 2;
	/* The frame pointer of a caller is on a page that is on the drive: a walk of the stack reads it. */
	sampling = sample_stack();
	expect(sampling >= 0, "perf_event_open", 0);
	for (size_t page = 0; page < PAGES - 8; page += 2)
		ways[page / 2 % 4](page);
	uintptr_t saved;
	for (size_t page = PAGES - 8; page < PAGES - 1; page++) {
		asm volatile("mv %0, s0\n\tmv s0, %1" : "=&r" (saved) : "r" (map + page * PAGE + 64) : "memory");
		for (volatile int n = 0; n < 100000; n++)
			;
		asm volatile("mv s0, %0" : : "r" (saved) : "memory");
	}
	return failures != 0;
}
