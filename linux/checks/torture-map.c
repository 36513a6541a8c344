// SPDX-License-Identifier: GPL-2.0
/* Steps that change or read mappings, and what the model says of each. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "torture.h"

static long outcome(long result)
{
	return result == -1 ? -errno : result;
}

/* A length in bytes for this number of pages. */
static size_t bytes(unsigned pages)
{
	return pages * PAGE - (chance(40) ? below(PAGE - 1) : 0);
}

static const int protections[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC, PROT_WRITE };

static uint64_t key_of(int file, unsigned index, size_t length, int protection, int flags)
{
	return mix(mix(mix(mix(mix(file + 1) + index) + length) + protection) + flags) | 1;
}

static void set_pages(struct page *page, unsigned count, struct page first)
{
	for (unsigned n = 0; n < count; n++) {
		page[n] = first;
		page[n].index += n;
	}
}

static bool free_pages(unsigned first, unsigned count)
{
	for (unsigned n = first; n < first + count; n++)
		if (world.region[0].page[n].mapped)
			return false;
	return true;
}

static bool pinned(unsigned first, unsigned count)
{
	for (unsigned n = first; n < first + count; n++)
		if (world.region[0].page[n].pinned)
			return true;
	return false;
}

/* mmap() calls that must fail. */
static void map_badly(void)
{
	int fd = world.fd[FIXED], folder = open(world.folder, O_RDONLY | O_CLOEXEC);

	note("mmap of nothing", outcome((long)mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0)), 0);
	note("mmap from within a page", outcome((long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 100)), 0);
	note("mmap of no file", outcome((long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, 999, 0)), 0);
	note("mmap of a folder", outcome((long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, folder, 0)), 0);
	note("mmap to write", outcome((long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)), 0);
	note("mmap of too much", outcome((long)mmap(NULL, 1ul << 60, PROT_READ, MAP_SHARED, fd, 0)), 0);
	note("mmap without a type", outcome((long)mmap(NULL, PAGE, PROT_READ, 0, fd, 0)), 0);
	note("mmap into a page", outcome((long)mmap(ARENA + 1, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0)), 0);
	close(folder);
}

void do_map(void)
{
	static const int extras[] = { 0, 0, 0, 0, 0, 0, 0, MAP_POPULATE, MAP_NORESERVE, MAP_LOCKED };
	struct page page = { .mapped = true, .id = ++world.ids };
	unsigned pages = 1 + below(16), at = below(ARENA_PAGES - pages + 1), how = below(8);
	int kind = below(100), fd = -1, extra = extras[below(10)], flags;

	if (chance(4))
		return map_badly();
	page.file = kind < 50 ? FIXED : kind < 65 ? SCRATCH : kind < 70 ? SHORT : kind < 80 ? OUTSIDE : ANON;
	page.shared = page.file == SCRATCH || chance(50);
	page.protection = protections[chance(60) ? 1 : below(5)];
	if (page.shared && page.file != SCRATCH && page.file != ANON)
		page.protection &= ~PROT_WRITE;
	if (page.file != ANON) {
		page.index = page.file == FIXED ? below(chance(10) ? 260 : 60) : below(file_pages(page.file));
		if (page.file == FIXED && chance(20))
			page.index = 2;	/* the same one more often */
		if (page.file == FIXED && page.index >= THREAD_INDEX - 16 && page.index < 245)
			page.index = 245;
		fd = world.fd[page.file];
	}
	if (how < 4 && !free_region())
		how = 4;
	if (how >= 4 && pinned(at, pages))
		return;
	page.locked = extra == MAP_LOCKED;
	size_t length = bytes(pages);
	char *hint = how < 4 ? NULL : ARENA + at * PAGE;
	flags = (page.shared ? MAP_SHARED : MAP_PRIVATE) | (page.file == ANON ? MAP_ANONYMOUS : 0) | extra |
		(how == 4 || how == 5 ? MAP_FIXED : how == 6 ? MAP_FIXED_NOREPLACE : 0);
	if (how < 4 && page.shared && page.file >= 0 && !(page.protection & PROT_WRITE))
		page.key = key_of(page.file, page.index, pages, page.protection, extra);
	char *got = mmap(hint, length, page.protection, flags, fd, page.index * PAGE);

	if (got == MAP_FAILED) {
		note("mmap", how, outcome(-1));
		if (how != 6 || errno != EEXIST || free_pages(at, pages))
			note_bad("mmap", errno, 0);
		return;
	}
	note("mmap", how * 100 + pages, how >= 4 && got == hint);
	if (how >= 4 && how < 7 && got != hint)
		note_bad("address of a mapping", (long)got, (long)hint);
	if (got >= ARENA && got < ARENA + ARENA_PAGES * PAGE) {
		set_pages(world.region[0].page + (got - ARENA) / PAGE, pages, page);
		return;
	}
	if (!free_region()) {	/* the hint was not free */
		munmap(got, length);
		return;
	}
	set_pages(new_region(got, pages)->page, pages, page);
}

void do_unmap(void)
{
	struct region *region;
	unsigned first, count;

	if (chance(4)) {
		note("bad munmap", outcome(munmap(ARENA, 0)), outcome(munmap(ARENA + 8, PAGE)));
		return;
	}
	if (!any_range(&region, &first, &count) || !free_region())
		return;
	char *base = region->base + first * PAGE;
	bool alone = region == world.region || (!world.alive && !has_twin(region, first, count));
	long result = munmap(base, bytes(count));

	note("munmap", count, outcome(result));
	forget(region, first, count);
	for (unsigned n = 0; alone && n < count; n++) {
		uint64_t value;
		int sig = probe(base + n * PAGE, false, &value);

		if (sig != SIGSEGV)
			note_bad("signal after munmap", sig, SIGSEGV);
	}
}

/* Do these pages come from one mmap(), in order, and with the same properties? */
static bool alike(const struct region *region, unsigned first, unsigned count)
{
	const struct page *a = region->page + first;

	for (unsigned n = 0; n < count; n++)
		if (!a[n].mapped || a[n].id != a->id || a[n].protection != a->protection || a[n].index != a->index + n ||
		    a[n].locked != a->locked || a[n].not_forked != a->not_forked)
			return false;
	return true;
}

/* What is left at the place that pages have moved away from. */
enum left { NOTHING, EMPTY, ALL };

/* Record that @count pages have moved to @to, where there are @pages pages now. */
static void moved(struct region *region, unsigned first, unsigned count, char *to, unsigned pages, enum left left)
{
	struct page page[ARENA_PAGES];

	memcpy(page, region->page + first, count * sizeof(*page));
	for (unsigned n = 0; n < pages; n++) {
		if (n >= count) {
			page[n] = page[0];
			page[n].dirty = false;
			page[n].index = page[0].index + n;
		}
		page[n].key = 0;
	}
	for (unsigned n = first; left == EMPTY && n < first + count; n++) {
		region->page[n].dirty &= region->page[n].shared;
		region->page[n].locked = false;
		region->page[n].key = 0;
	}
	if (left == NOTHING)
		forget(region, first, count);
	if (to >= ARENA && to < ARENA + ARENA_PAGES * PAGE)
		memcpy(world.region[0].page + (to - ARENA) / PAGE, page, pages * sizeof(*page));
	else
		memcpy(new_region(to, pages)->page, page, pages * sizeof(*page));
}

void do_remap(void)
{
	struct region *region;
	unsigned first, count, pages, how = below(7), at = 0, free_regions = 0;
	int flags = 0;

	for (unsigned n = 1; n < REGIONS; n++)
		free_regions += !world.region[n].base;
	if (free_regions < 3 || !any_range(&region, &first, &count))
		return;
	const struct page *page = region->page + first;
	bool arena = region == world.region;
	if (arena && !page->mapped) {
		note("mremap of nothing", outcome((long)mremap(region->base + first * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE)), 0);
		return;
	}
	while (count > 1 && !alike(region, first, count))
		count--;
	if (has_twin(region, first, count))
		return;
	pages = count;
	bool object = page->shared && page->file == ANON;	/* its size is fixed */
	switch (how) {
	case 0: case 1:		/* grow, in its place or elsewhere */
		pages += 1 + below(8);
		flags = how ? MREMAP_MAYMOVE : 0;
		/* Only the arena's free addresses are known. Elsewhere, a whole region can grow. */
		if (object || (!how && !arena) || (arena && (first + pages > ARENA_PAGES || pinned(first, pages))))
			return;
		if (!arena && first + count < region->pages)
			return;
		break;
	case 2:			/* shrink */
		if (count < 2)
			return;
		pages = 1 + below(count - 1);
		break;
	case 3: case 4:		/* move to a place in the arena */
		flags = MREMAP_MAYMOVE | MREMAP_FIXED;
		pages = object ? count : 1 + below(count + 3);
		at = below(ARENA_PAGES - pages + 1);
		if (pinned(at, pages) || (arena && at < first + count && first < at + pages))
			return;
		break;
	case 5:			/* map the pages a second time */
		flags = MREMAP_MAYMOVE;
		if (object)
			return;
		break;
	case 6:
		flags = MREMAP_MAYMOVE | MREMAP_DONTUNMAP;
		at = below(ARENA_PAGES - count + 1);	/* a hint */
		if (object)
			return;
	}
	char *old = region->base + first * PAGE, *got;
	size_t from = how == 5 ? 0 : bytes(count), to = how == 6 ? from : bytes(pages);

	got = mremap(old, from, to, flags, how == 6 && !at ? NULL : ARENA + at * PAGE);
	note("mremap", how * 10000 + count * 100 + pages, got == MAP_FAILED ? outcome(-1) : arena && got == old);
	if (got == MAP_FAILED) {
		if (how == 3 || how == 4) {	/* the old mapping there may be gone or not */
			munmap(ARENA + at * PAGE, pages * PAGE);
			forget(world.region, at, pages);
			munmap(old, count * PAGE);
			forget(region, first, count);
		}
		return;
	}
	if (how == 2) {
		for (unsigned n = first; n < first + count; n++)
			region->page[n].key = 0;
		forget(region, first + pages, count - pages);
	} else if (how == 5) {
		moved(region, first, count, got, pages, ALL);
	} else if (got == old) {
		moved(region, first, count, got, pages, NOTHING);
	} else {
		if (how == 3 || how == 4)
			forget(world.region, at, pages);
		moved(region, first, count, got, pages, how == 6 ? EMPTY : NOTHING);
	}
	check_all();
}

void do_protect(void)
{
	int protection = protections[below(5)];
	struct region *region;
	unsigned first, count;

	if (!any_range(&region, &first, &count) || has_twin(region, first, count))
		return;
	long result = mprotect(region->base + first * PAGE, bytes(count), protection);

	note("mprotect", count * 10 + protection, outcome(result));
	for (unsigned n = first; n < first + count; n++) {
		struct page *page = region->page + n;

		if (!page->mapped)
			break;
		if (protection & PROT_WRITE && page->shared && page->file != SCRATCH && page->file != ANON)
			break;
		page->protection = protection;
		page->key = 0;
	}
	look_at_region(region, first, count);
}

void do_advise(void)
{
	static const int all[] = { MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_DONTNEED,
				   MADV_COLD, MADV_PAGEOUT, MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_DONTFORK,
				   MADV_DOFORK, 12345 };
	int advice = all[below(sizeof(all) / sizeof(all[0]))];
	struct region *region;
	unsigned first, count;

	if (!any_range(&region, &first, &count))
		return;
	if (advice == MADV_DONTFORK || advice == MADV_DOFORK)
		for (unsigned n = first; n < first + count; n++)
			if (region->page[n].key)	/* a twin would get the advice, too */
				return;
	if (chance(15)) {
		note("posix_madvise", posix_madvise(region->base + first * PAGE, count * PAGE, POSIX_MADV_DONTNEED), 0);
		return;
	}
	long result = madvise(region->base + first * PAGE, bytes(count), advice);

	note("madvise", count * 100 + advice, outcome(result));
	for (unsigned n = first; n < first + count; n++) {
		struct page *page = region->page + n;

		if (!page->mapped)
			continue;
		if (advice == MADV_DONTNEED) {
			if (page->locked)
				break;
			page->dirty &= page->shared;
		} else if (advice == MADV_DONTFORK || advice == MADV_DOFORK) {
			page->not_forked = advice == MADV_DONTFORK;
		}
	}
}

void do_sync(void)
{
	static const int flags[] = { MS_SYNC, MS_ASYNC, MS_INVALIDATE, MS_SYNC | MS_ASYNC };
	struct region *region;
	unsigned first, count, flag = below(4);

	if (any_range(&region, &first, &count))
		note("msync", count * 10 + flag, outcome(msync(region->base + first * PAGE, bytes(count), flags[flag])));
}

void do_lock(void)
{
	struct region *region;
	unsigned first, count, how = below(4);

	if (!any_range(&region, &first, &count))
		return;
	for (unsigned n = first; n < first + count; n++)
		if (region->page[n].key)
			return;
	char *at = region->base + first * PAGE;
	size_t length = bytes(count);
	long result = how == 0 ? mlock(at, length) : how == 1 ? mlock2(at, length, MLOCK_ONFAULT) : munlock(at, length);

	note("mlock", count * 10 + how, outcome(result));
	for (unsigned n = first; n < first + count && region->page[n].mapped; n++)
		region->page[n].locked = how < 2;
}

void do_read(void)
{
	struct region *region = any_region();
	unsigned first = below(region->pages), count = 1 + below(region->pages - first);

	look_at_region(region, first, count);
	if (chance(10))	/* every word of one page */
		for (unsigned n = 0; n < WORDS; n++)
			look(&region->page[first], region->base + first * PAGE, n);
}

void do_write(void)
{
	struct region *region;
	unsigned first, count;

	if (!any_range(&region, &first, &count))
		return;
	for (unsigned n = first; n < first + count; n++) {
		struct page *page = region->page + n;
		uint64_t value = next(&world.random) | 1;
		bool beyond = page->mapped && page->file != ANON && page->index >= file_pages(page->file);
		int must = !page->mapped || !(page->protection & PROT_WRITE) ? SIGSEGV : beyond ? SIGBUS : 0;

		if (must ? below(8) : page->shared && (world.children || world.level))
			continue;	/* signals are slow; others would see the write */
		int sig = probe(region->base + n * PAGE + 8 * WORD, true, &value);
		note("write", page->index, sig);
		if (sig != must)
			note_bad("signal of a write", sig, must);
		if (sig)
			continue;
		if (page->shared && page->file == SCRATCH) {
			world.scratch[page->index] = value;
		} else {
			page->dirty = true;
			page->value = value;
		}
	}
	look_at_region(region, first, count);
}

/*
 * Many mappings at once, more than a table of fixed size could hold. They are of every second page,
 * so that they do not merge.
 */
void do_many(void)
{
	unsigned count = 70 + below(60), bad = 0;
	char *map[130];

	for (unsigned n = 0; n < count; n++) {
		struct page page = { .mapped = true, .shared = true, .protection = PROT_READ, .file = FIXED, .index = 100 + n % 50 * 2 };

		map[n] = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, world.fd[FIXED], page.index * PAGE);
		bad += map[n] == MAP_FAILED || look(&page, map[n], below(WORDS));
	}
	for (unsigned n = 0; n < count; n++) {
		struct page page = { .mapped = true, .shared = true, .protection = PROT_READ, .file = FIXED, .index = 100 + n % 50 * 2 };

		if (n >= 50 && chance(50))	/* its twin is unmapped: these pages must stay */
			bad += look(&page, map[n], WORD);
		bad += munmap(map[n], PAGE) != 0;
	}
	note("many", count, bad);
}

/* A file shrinks and grows below its mapping, and then loses its name. */
void do_cut(void)
{
	char path[300], *map;
	uint64_t value = 0;

	snprintf(path, sizeof(path), "%s/cut%u", world.folder, world.level);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	fill_file(fd, FIXED, 8);
	if (chance(50))
		note("fsync", fsync(fd), posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	map = mmap(NULL, 8 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	note("cut: whole", probe(map + 7 * PAGE, false, &value), value == file_word(FIXED, 7 * PAGE));
	note("cut: ftruncate", ftruncate(fd, 2 * PAGE + 2000), 0);
	note("cut: inside", probe(map + 2 * PAGE, false, &value), value == file_word(FIXED, 2 * PAGE));
	note("cut: tail", probe(map + 2 * PAGE + 2000, false, &value), value);
	note("cut: outside", probe(map + 3 * PAGE, false, &value), 0);
	note("cut: longer", ftruncate(fd, 8 * PAGE), unlink(path));
	note("cut: hole", probe(map + 3 * PAGE, false, &value), value);
	close(fd);
	note("cut: unlinked", probe(map + PAGE, false, &value), value == file_word(FIXED, PAGE));
	note("cut: munmap", munmap(map, 8 * PAGE), 0);
}

/* Drop pages that nobody maps from the page cache, so that there are misses again. */
void do_drop(void)
{
	if (chance(50))
		note("fdatasync", fdatasync(world.fd[SCRATCH]), 0);
	for (int file = 0; file < FILES; file++)
		note("drop", file, posix_fadvise(world.fd[file], 0, 0, POSIX_FADV_DONTNEED));
}

/* The kernel reads mapped memory for a system call. */
void do_system_calls(void)
{
	struct region *region = any_region();
	unsigned n = below(region->pages);
	uint64_t words[4] = { 0 };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return note_bad("pipe", errno, 0);
	const struct page *page = region->page + n;
	long wrote = write(ends[1], region->base + n * PAGE + 8 * (WORD - 1), sizeof(words));
	note("write of mapped memory", page->index, outcome(wrote));
	if (wrote > 0 && read(ends[0], words, sizeof(words)) == sizeof(words) && !page->dirty)
		for (unsigned w = 0; w < 4; w++)
			if (words[w] != (page->file == ANON ? 0 : file_word(page->file, page->index * PAGE + 8 * (WORD - 1 + w))))
				note_bad("word that the kernel read", words[w], 0);
	close(ends[0]);
	close(ends[1]);
}
