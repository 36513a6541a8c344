// SPDX-License-Identifier: GPL-2.0
/*
 * libhwdp: lets an unmodified program choose how its file mappings are paged (preloaded by hwdp(1)).
 *
 * A file mapping whose path begins with HWDP_PREFIX is made
 *   ideal     with all its pages resident (read ahead, then MAP_POPULATE),
 *   osdp      as it is: the operating system serves the faults,
 *   emulated, trap, hwdp
 *             as it is, and then given to that kind by madvise().
 * Readahead is off for every kind, and the program's own readahead hints are dropped; with HWDP_READAHEAD they are as the disk
 * and the program say.
 *
 * With HWDP_SHARE, identical mappings of one file in one process are one mapping with a reference count: threads that
 * each map "their" file then really meet on the same page table entries.
 *
 * The region of interest begins after the first managed mmap() and ends after the last munmap(), or when the process ends
 * (some programs never unmap: the pages are unmapped here, so that the cost of it is always inside).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kinds.h"
#include "marker.h"

#define PAGE 4096UL
#define AREAS_MAX 64

struct area {
	char *start;
	size_t length;
	unsigned references;	/* 0: slot is free */
	unsigned number;	/* what the machine calls this watch */
	dev_t device;
	ino_t inode;
	off_t offset;
	int protection, flags;
};

static struct {
	const struct kind *kind;	/* NULL: change nothing */
	bool by_flag;			/* this kernel knows the flag of mmap() only */
	bool share;
	bool readahead;			/* leave readahead to the disk and the program */
	const char *prefix;
	pthread_mutex_t lock;
	unsigned live, watches, regions;
	struct area areas[AREAS_MAX];
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *raw_mmap(void *start, size_t length, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, start, length, protection, flags, fd, offset);
}

/* Is this a mapping that the user asked us to manage? */
static bool wanted(int protection, int flags, int fd, struct stat *st)
{
	char link[32] = "/proc/self/fd/", path[4096];
	size_t at = strlen(link);
	unsigned digits = fd;
	int shift = 1;

	if (!state.kind || (flags & (MAP_ANONYMOUS | MAP_FIXED)) || fd < 0 || (protection & PROT_EXEC))
		return false;
	if (fstat(fd, st) || !S_ISREG(st->st_mode))
		return false;
	while (digits / shift > 9)
		shift *= 10;
	for (; shift; shift /= 10)
		link[at++] = '0' + digits / shift % 10;
	link[at] = 0;
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return false;
	path[length] = 0;
	return !strncmp(path, state.prefix, strlen(state.prefix));
}

static struct area *find_same(const struct stat *st, size_t length, int protection, int flags, off_t offset)
{
	for (struct area *area = state.areas; area < state.areas + AREAS_MAX; area++)
		if (area->references && area->device == st->st_dev && area->inode == st->st_ino &&
		    area->length == length && area->offset == offset && area->protection == protection &&
		    area->flags == flags)
			return area;
	return NULL;
}

static struct area *free_slot(void)
{
	for (struct area *area = state.areas; area < state.areas + AREAS_MAX; area++)
		if (!area->references)
			return area;
	return NULL;
}

static struct area *managed(const void *start)
{
	for (struct area *area = state.areas; area < state.areas + AREAS_MAX; area++)
		if (area->references && (const char *)start >= area->start &&
		    (const char *)start < area->start + area->length)
			return area;
	return NULL;
}

/* Bring a range into the page cache with large reads. One POSIX_FADV_WILLNEED reads no more than the device takes at once. */
static void read_ahead(int fd, off_t offset, size_t length)
{
	const size_t chunk = 128 << 10;

	for (size_t at = 0; at < length; at += chunk)
		posix_fadvise(fd, offset + at, length - at < chunk ? length - at : chunk, POSIX_FADV_WILLNEED);
}

static void *map_managed(void *start, size_t length, int protection, int flags, int fd, off_t offset,
			 const struct stat *st)
{
	struct area *area = state.share ? find_same(st, length, protection, flags, offset) : NULL;

	if (area) {
		area->references++;
		return area->start;
	}
	area = free_slot();
	if (!area)
		return raw_mmap(start, length, protection, flags, fd, offset);

	int kind_flags = 0;
	if (state.kind->number < 0) {
		read_ahead(fd, offset, length);
		kind_flags = MAP_POPULATE;
	} else if (state.by_flag) {
		kind_flags = MAP_HWDP;
	}
	char *got = raw_mmap(start, length, protection, flags | kind_flags, fd, offset);
	if (got == MAP_FAILED)
		return got;
	size_t whole = (length + PAGE - 1) & -PAGE;
	if (!state.readahead)
		syscall(SYS_madvise, got, whole, MADV_RANDOM);
	/* A mapping that the kernel refuses stays ordinary: its statistics say why. */
	if (state.kind->advice && !state.by_flag)
		syscall(SYS_madvise, got, whole, state.kind->advice);
	*area = (struct area){ .start = got, .length = length, .references = 1, .number = state.watches++,
			       .device = st->st_dev, .inode = st->st_ino, .offset = offset,
			       .protection = protection, .flags = flags };
	marker(MARKER_WATCH, got, whole, area->number);
	if (!state.live++)
		marker(MARKER_ROI_BEGIN, state.regions, 0, 0);
	return got;
}

/* The last reference is gone: unmap, and end the region of interest with the last area. */
static int unmap_managed(struct area *area)
{
	int result = syscall(SYS_munmap, area->start, area->length);

	if (result)
		return result;
	area->references = 0;
	marker(MARKER_UNWATCH, area->start, (area->length + PAGE - 1) & -PAGE, 0);
	if (!--state.live)
		marker(MARKER_ROI_END, state.regions++, 0, 0);
	return 0;
}

void *mmap(void *start, size_t length, int protection, int flags, int fd, off_t offset)
{
	struct stat st;

	if (!wanted(protection, flags, fd, &st))
		return raw_mmap(start, length, protection, flags, fd, offset);
	pthread_mutex_lock(&state.lock);
	void *got = map_managed(start, length, protection, flags, fd, offset, &st);
	pthread_mutex_unlock(&state.lock);
	return got;
}

void *mmap64(void *start, size_t length, int protection, int flags, int fd, off64_t offset)
{
	return mmap(start, length, protection, flags, fd, offset);
}

int munmap(void *start, size_t length)
{
	int result = 0;

	if (!state.live)
		return syscall(SYS_munmap, start, length);
	pthread_mutex_lock(&state.lock);
	struct area *area = managed(start);
	if (!area || area->start != start || area->length != length)
		result = syscall(SYS_munmap, start, length);
	else if (area->references > 1)
		area->references--;
	else
		result = unmap_managed(area);
	pthread_mutex_unlock(&state.lock);
	return result;
}

static bool readahead_hint(int advice)
{
	return advice == MADV_NORMAL || advice == MADV_RANDOM || advice == MADV_SEQUENTIAL || advice == MADV_WILLNEED;
}

int madvise(void *start, size_t length, int advice)
{
	if (state.live && !state.readahead && readahead_hint(advice) && managed(start))
		return 0;
	return syscall(SYS_madvise, start, length, advice);
}

int posix_madvise(void *start, size_t length, int advice)
{
	/* POSIX_MADV_DONTNEED must not lose data; like glibc, do nothing. */
	if (advice == POSIX_MADV_DONTNEED)
		return 0;
	return madvise(start, length, advice);
}

static void forget_in_child(void)
{
	pthread_mutex_init(&state.lock, NULL);
	state.live = 0;
	memset(state.areas, 0, sizeof(state.areas));
}

__attribute__((constructor)) static void begin(void)
{
	const char *kind = getenv("HWDP_KIND");

	if (!kind)
		return;
	state.prefix = getenv("HWDP_PREFIX");
	if (!state.prefix)
		state.prefix = "/data/";
	state.share = getenv("HWDP_SHARE") != NULL;
	state.readahead = getenv("HWDP_READAHEAD") != NULL;
	pthread_atfork(NULL, NULL, forget_in_child);
	state.kind = find_kind(kind);
	state.by_flag = state.kind && state.kind->advice && prctl(PR_GET_HWDP, 0, 0, 0, 0) < 0;
}

__attribute__((destructor)) static void end(void)
{
	pthread_mutex_lock(&state.lock);
	for (struct area *area = state.areas; area < state.areas + AREAS_MAX; area++)
		if (area->references)
			unmap_managed(area);
	pthread_mutex_unlock(&state.lock);
}

/* A process that leaves by _exit() runs no destructors. */
void _exit(int status)
{
	end();
	for (;;)
		syscall(SYS_exit_group, status);
}
