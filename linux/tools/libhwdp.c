// SPDX-License-Identifier: GPL-2.0
/*
 * libhwdp: lets an unmodified program choose how its file mappings are paged (preloaded by hwdp(1)).
 *
 * A mapping of a file that HWDP_PREFIX covers is made
 *   ideal     with all its pages resident (read ahead, then populated),
 *   osdp      as it is: the operating system serves the faults,
 *   emulated, trap, hwdp
 *             with MAP_HWDP, for which hwdp(1) has set this kind; with HWDP_SHARE, by madvise() instead.
 *
 * The program sees what it sees without the library: each call does what the kernel does, and then
 * tells the kernel (by advice) and the machine (by markers) about it. The library keeps no data
 * about mappings, so children of vfork(), threads that outlive main(), execve() and _exit() need no
 * special rules. The exception is HWDP_SHARE (share.c).
 *
 * The machine counts events of watched mappings. A region of interest begins with the first watched
 * mapping. It ends with the munmap() of the last one, or when the guest's init sees that the
 * command has ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "kinds.h"
#include "marker.h"
#include "share.h"

static struct {
	const struct kind *kind;	/* NULL: change nothing */
	bool share;
	const char *prefix;
	bool mounted;			/* the prefix is a mount point: take all files there */
	dev_t device, root;		/* of the prefix, and of / */
	pid_t forking;
} state;

/* Does the file's path begin with the prefix? */
static bool below_prefix(int fd)
{
	char link[32] = "/proc/self/fd/", path[4096];
	size_t at = strlen(link);
	unsigned digits = fd;
	int shift = 1;

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

/*
 * Must the library manage this mapping? If the prefix is a mount point, it manages all files of
 * that file system under any path (bind mounts), and all files of file systems that may be on top
 * of it (overlayfs, loop devices): the kernel serves these, or counts why not. It manages no files
 * in memory, which have no misses.
 */
static bool wanted(int flags, int fd, struct stat *st)
{
	struct statfs system;

	if (!state.kind || (flags & MAP_ANONYMOUS) || fd < 0 || fstat(fd, st) || !S_ISREG(st->st_mode))
		return false;
	if (!state.mounted)
		return below_prefix(fd);
	if (st->st_dev == state.device)
		return true;
	return st->st_dev != state.root && !fstatfs(fd, &system) && system.f_type != TMPFS_MAGIC &&
	       system.f_type != RAMFS_MAGIC && system.f_type != HUGETLBFS_MAGIC;
}

/*
 * Make the whole mapping resident. One POSIX_FADV_WILLNEED reads at most as much as the device
 * takes in one request, so ask for the file in pieces.
 */
static void populate(void *start, size_t length, int fd, off_t offset)
{
	const size_t chunk = 128 << 10;

	for (size_t at = 0; at < length; at += chunk)
		posix_fadvise(fd, offset + at, length - at < chunk ? length - at : chunk, POSIX_FADV_WILLNEED);
	madvise(start, whole_pages(length), MADV_POPULATE_READ);
}

/* Flags of mmap() for the kind. If the kernel refuses the kind, the mapping is an ordinary one; statistics say why. */
static int flags_of_kind(void)
{
	return state.kind->advice && !state.share ? MAP_HWDP : 0;
}

/* Apply the kind to a new mapping, and let the machine watch it. */
static void mapped(void *start, size_t length, int fd, off_t offset)
{
	if (state.kind->number < 0)
		populate(start, length, fd, offset);
	else if (state.kind->advice && !flags_of_kind())
		madvise(start, whole_pages(length), state.kind->advice);
	marker(MARKER_WATCH_REGION, start, whole_pages(length));
}

void *mmap(void *start, size_t length, int protection, int flags, int fd, off_t offset)
{
	int before = errno;
	struct stat st;

	if ((flags & MAP_ANONYMOUS) && !(flags & MAP_FIXED))
		return raw_mmap(start, length, protection, flags, fd, offset);
	bool managed = wanted(flags, fd, &st), old = false;
	struct share share = { st.st_dev, st.st_ino, offset };
	void *got = state.share ? share_mmap(start, length, protection, flags, fd, managed ? &share : NULL, offset, &old)
				: raw_mmap(start, length, protection, managed ? flags | flags_of_kind() : flags, fd, offset);
	if (got == MAP_FAILED)
		return got;
	if ((flags & MAP_FIXED) && !managed)
		marker(MARKER_UNWATCH, got, whole_pages(length), UNWATCH_NOW);
	if (managed && !old)
		mapped(got, length, fd, offset);
	errno = before;
	return got;
}

void *mmap64(void *start, size_t length, int protection, int flags, int fd, off64_t offset)
{
	return mmap(start, length, protection, flags, fd, offset);
}

/*
 * Watching ends before the pages are unmapped. Later it could end for a mapping that another thread
 * has made at the same place. The cost of unmapping (adoption) is part of the region of interest.
 */
int unmap_watched(void *start, size_t length)
{
	if (!state.kind || (uintptr_t)start % PAGE || !length)
		return raw_munmap(start, length);
	marker(MARKER_UNWATCH, start, whole_pages(length), UNWATCH_BEGINS);
	int result = raw_munmap(start, length);
	marker(MARKER_UNWATCH, start, 0, UNWATCH_ENDS);
	return result;
}

int munmap(void *start, size_t length)
{
	return state.share ? share_munmap(start, length) : unmap_watched(start, length);
}

/* Call mremap(). The watch moves with the pages. */
void *remap_watched(void *start, size_t length, size_t new_length, int flags, void *place)
{
	void *got = raw_mremap(start, length, new_length, flags, place);

	if (got == MAP_FAILED || !state.kind || !length)
		return got;
	marker(MARKER_MOVE, start, whole_pages(length), got, whole_pages(new_length));
	return got;
}

void *mremap(void *start, size_t length, size_t new_length, int flags, ...)
{
	void *place = NULL;

	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {	/* the new place, or a hint */
		va_list more;

		va_start(more, flags);
		place = va_arg(more, void *);
		va_end(more);
	}
	return state.share ? share_mremap(start, length, new_length, flags, place)
			   : remap_watched(start, length, new_length, flags, place);
}

int mprotect(void *start, size_t length, int protection)
{
	return state.share ? share_mprotect(start, length, protection) : raw_mprotect(start, length, protection);
}

/* A child has its parent's mappings: the machine watches them in the child's address space, too. */
static void before_fork(void)
{
	share_lock();
	state.forking = getpid();
	marker(MARKER_FORK, state.forking, FORK_PARENT);
}

static void after_fork_in_child(void)
{
	marker(MARKER_FORK, state.forking, FORK_CHILD);
	share_unlock();
}

static bool is_mount_point(const char *folder, const struct stat *st)
{
	char path[4096];
	struct stat above;
	size_t length = strlen(folder);

	if (!S_ISDIR(st->st_mode) || length + 4 > sizeof(path))
		return false;
	memcpy(path, folder, length);
	memcpy(path + length, "/..", 4);
	return !stat(path, &above) && above.st_dev != st->st_dev;
}

__attribute__((constructor)) static void begin(void)
{
	const char *kind = getenv("HWDP_KIND");
	struct stat st, root;

	if (!kind)
		return;
	int before = errno;
	state.prefix = getenv("HWDP_PREFIX");
	if (!state.prefix)
		state.prefix = "/data/";
	state.mounted = !stat(state.prefix, &st) && !stat("/", &root) && is_mount_point(state.prefix, &st);
	state.device = st.st_dev;
	state.root = root.st_dev;
	state.share = getenv("HWDP_SHARE") != NULL;
	pthread_atfork(before_fork, share_unlock, after_fork_in_child);
	/* The page table may have belonged to another process: end its watches. */
	marker(MARKER_UNWATCH, 0, ~0UL, UNWATCH_NOW);
	state.kind = find_kind(kind);
	errno = before;
}
