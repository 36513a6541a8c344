// SPDX-License-Identifier: GPL-2.0
/*
 * libhwdp's HWDP_SHARE: identical mappings of one file in one process become one mapping, so that
 * threads that each map the same file use the same page table entries.
 *
 * Identical are mappings made with PROT_READ and MAP_SHARED alone, of the same file, offset, length
 * and kind of descriptor. Each of them counts as a reference to each of its pages. A page is
 * unmapped with its last reference, whatever the ranges in which munmap() gives pages back. One
 * user can take nothing from another:
 *   mremap() of a mapping that others have, too, gives the caller a new one, and leaves theirs;
 *   mprotect() never takes the right to read away from pages that others have;
 *   mmap(MAP_FIXED) and mremap(MREMAP_FIXED) over such pages fail with ENOMEM.
 * A mapping that was moved, changed in part, or protected differently gets no further users.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "marker.h"
#include "share.h"

/* Pages in a row with the same users. */
struct segment {
	char *start, *end;
	unsigned users;
	bool whole;		/* still as it was mapped: others may get it, too */
	int access;		/* access mode of the descriptor that it was mapped with */
	struct share of;
};

static struct {
	pthread_mutex_t lock;
	sigset_t signals;	/* mask of the thread that has the lock: a handler may map, too */
	struct segment *all;
	size_t count, room;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

void share_lock(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&table.lock);
	table.signals = before;
}

void share_unlock(void)
{
	sigset_t before = table.signals;

	pthread_mutex_unlock(&table.lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A free entry, or NULL without memory. Not by malloc(), which a signal may have interrupted. */
static struct segment *another(void)
{
	if (table.count == table.room) {
		size_t room = table.room ? 2 * table.room : PAGE / sizeof(struct segment), size = room * sizeof(struct segment);
		struct segment *more = raw_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (more == MAP_FAILED)
			return NULL;
		if (table.count) {
			memcpy(more, table.all, table.count * sizeof(*more));
			raw_munmap(table.all, table.room * sizeof(*more));
		}
		table.all = more;
		table.room = room;
	}
	return &table.all[table.count++];
}

static void forget(struct segment *segment)
{
	*segment = table.all[--table.count];
}

/* Split the segment across this address, if there is one. False without memory. */
static bool cut(char *at)
{
	for (size_t n = 0; n < table.count; n++) {
		if (table.all[n].start >= at || table.all[n].end <= at)
			continue;
		struct segment *rest = another(), *segment = &table.all[n];
		if (!rest)
			return false;
		segment->whole = false;
		*rest = *segment;
		segment->end = rest->start = at;
	}
	return true;
}

/* The first segment in a range that has more than this many users; NULL: none. */
static struct segment *first_with_more(char *start, char *end, unsigned users)
{
	struct segment *first = NULL;

	for (struct segment *s = table.all; s < table.all + table.count; s++)
		if (s->users > users && s->start < end && s->end > start && (!first || s->start < first->start))
			first = s;
	return first;
}

/* Forget the segments of a range whose pages nobody else has. */
static bool forget_range(char *start, char *end)
{
	struct segment *segment;

	if (!cut(start) || !cut(end))
		return false;
	while ((segment = first_with_more(start, end, 0)))
		forget(segment);
	return true;
}

static int unmap_alone(char *start, char *end)
{
	if (start == end)
		return 0;
	forget_range(start, end);
	return unmap_watched(start, end - start);
}

/* One user gives a range back: what others have stays, all else is unmapped. */
static int give_back(char *start, char *end)
{
	char *from = start;
	struct segment *shared;
	int result = 0;

	if (!cut(start) || !cut(end)) {
		errno = ENOMEM;
		return -1;
	}
	while ((shared = first_with_more(from, end, 1))) {
		char *next = shared->end;

		shared->users--;
		result |= unmap_alone(from, shared->start);
		from = next;
	}
	return result | unmap_alone(from, end);
}

static bool is_range(const void *start, size_t length)
{
	return !((uintptr_t)start % PAGE) && length && whole_pages(length) >= length &&
	       (uintptr_t)start + whole_pages(length) > (uintptr_t)start;
}

/*
 * Find an identical mapping. msync() fails if a system call that bypassed this library has unmapped
 * it. The C library's msync() is not used: a thread can be cancelled there, and would keep the
 * table's lock.
 */
static struct segment *find_same(const struct share *share, size_t length, int access)
{
	for (struct segment *s = table.all; s < table.all + table.count; s++)
		if (s->whole && (size_t)(s->end - s->start) == length && s->access == access &&
		    s->of.device == share->device && s->of.inode == share->inode && s->of.offset == share->offset &&
		    !syscall(SYS_msync, s->start, length, MS_ASYNC))
			return s;
	return NULL;
}

/*
 * mmap(). `share` says what is mapped if it may be shared. Sets `old` if the mapping existed
 * already.
 */
void *share_mmap(void *start, size_t length, int protection, int flags, int fd, const struct share *share, off_t offset,
		 bool *old)
{
	bool same = share && protection == PROT_READ && flags == MAP_SHARED && !start && is_range(start, length);
	int access = same ? fcntl(fd, F_GETFL) & O_ACCMODE : 0;
	void *got;

	share_lock();
	struct segment *segment = same ? find_same(share, whole_pages(length), access) : NULL;
	if (segment) {
		segment->users++;
		*old = true;
		got = segment->start;
	} else {
		char *end = (char *)start + whole_pages(length);
		bool fixed = (flags & MAP_FIXED) && is_range(start, length);

		if (fixed && (first_with_more(start, end, 1) || !forget_range(start, end))) {
			share_unlock();
			errno = ENOMEM;
			return MAP_FAILED;
		}
		got = raw_mmap(start, length, protection, flags, fd, offset);
		if (same && got != MAP_FAILED && (segment = another()))
			*segment = (struct segment){ got, (char *)got + whole_pages(length), 1, true, access, *share };
	}
	share_unlock();
	return got;
}

int share_munmap(void *start, size_t length)
{
	char *from = start;
	int result;

	if (!is_range(start, length))
		return raw_munmap(start, length);
	share_lock();
	result = give_back(from, from + whole_pages(length));
	share_unlock();
	return result;
}

/* mremap() of a range with pages that others have. */
static void *remap_shared(char *start, size_t length, size_t new_length, int flags, void *place)
{
	size_t pages = whole_pages(length), new_pages = whole_pages(new_length);
	bool stays = flags & MREMAP_DONTUNMAP;

	if (!(flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) && new_pages <= pages)
		return new_pages < pages && give_back(start + new_pages, start + pages) ? MAP_FAILED : start;
	if (!(flags & MREMAP_MAYMOVE)) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	/* A length of 0 makes another mapping of the same pages. */
	void *got = raw_mremap(start, 0, new_length, flags & (MREMAP_MAYMOVE | MREMAP_FIXED), place);
	if (got == MAP_FAILED)
		return got;
	marker(MARKER_WATCH_REGION, got, new_pages);
	if (!stays)
		give_back(start, start + pages);
	return got;
}

/* Would mremap() refuse this whatever is mapped? */
static bool odd(size_t length, size_t new_length, int flags)
{
	return !whole_pages(new_length) || (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) ||
	       (!(flags & MREMAP_MAYMOVE) && (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))) ||
	       ((flags & MREMAP_DONTUNMAP) && whole_pages(length) != whole_pages(new_length));
}

void *share_mremap(void *start, size_t length, size_t new_length, int flags, void *place)
{
	char *end = (char *)start + whole_pages(length), *to = place;
	bool known = is_range(start, length), fixed = (flags & MREMAP_FIXED) && is_range(place, new_length);
	void *got = MAP_FAILED;

	if (odd(length, new_length, flags))
		return raw_mremap(start, length, new_length, flags, place);
	share_lock();
	if (fixed && (first_with_more(to, to + whole_pages(new_length), 1) ||
		      !forget_range(to, to + whole_pages(new_length))))
		errno = ENOMEM;
	else if (known && first_with_more(start, end, 1))
		got = remap_shared(start, length, new_length, flags, place);
	else if (known && !forget_range(start, end))
		errno = ENOMEM;
	else
		got = remap_watched(start, length, new_length, flags, place);
	share_unlock();
	return got;
}

int share_mprotect(void *start, size_t length, int protection)
{
	char *from = start, *end = from + whole_pages(length);
	int result;

	if (!is_range(start, length))
		return raw_mprotect(start, length, protection);
	share_lock();
	if (protection != PROT_READ && !(cut(from) && cut(end))) {
		errno = ENOMEM;
		result = -1;
	} else {
		struct segment *shared = first_with_more(from, end, 1);

		for (struct segment *s = table.all; protection != PROT_READ && s < table.all + table.count; s++)
			if (s->start < end && s->end > from)
				s->whole = false;
		result = raw_mprotect(start, length, shared ? protection | PROT_READ : protection);
	}
	share_unlock();
	return result;
}
