// SPDX-License-Identifier: GPL-2.0
/* Page tables that are freed, that move, or whose addresses have parts in common. */
#include "stc.h"

/* --- Page tables that are freed */

/*
 * Map a region, fault in it, unmap it, and let other mappings use the freed page tables. Then
 * map at the same place and fault again. All pages of all mappings must be right. @n is the
 * number of the first of five regions, which only this caller uses.
 */
static void reuse(unsigned shift, unsigned n, uint64_t *state, bool alone)
{
	uint64_t mine = fresh(), others = fresh();
	size_t size = 1ul << shift;
	char *region = map(at(shift, n), size, MAP_PRIVATE, -1);
	int fd = make_file(shift, others);

	if (alone)
		hop(next(state));
	for (unsigned i = 0; i < SPOTS; i++)
		put(region, spot(shift, i), mine);
	for (unsigned i = 0; i < SPOTS; i++)
		EXPECT(region, spot(shift, i), mine, "first mapping");
	if (alone)
		hop(next(state));
	unmap(region, size);
	/* Use as many tables as were freed. Every second page stays untouched. */
	for (unsigned k = 1; k <= 4; k++) {
		char *other = map(at(shift, n + k), size, MAP_SHARED, fd);

		for (unsigned i = k % 2; i < SPOTS; i += 2)
			EXPECT(other, spot(shift, i), others, "other mapping");
	}
	if (alone)
		hop(next(state));
	mine = fresh();
	map(region, size, MAP_PRIVATE, -1);
	for (unsigned i = 0; i < SPOTS; i++) {
		uint64_t page = spot(shift, (i * 5 + mine) % SPOTS);

		EXPECT(region, page, 0, "second mapping");
		put(region, page, mine);
		put(region, page, 0);
	}
	for (unsigned i = 0; i < SPOTS; i++)
		put(region, spot(shift, i), mine);
	if (alone)
		hop(next(state));
	for (unsigned i = 0; i < SPOTS; i++) {
		EXPECT(region, spot(shift, i), mine, "second mapping");
		for (unsigned k = 1; k <= 4; k++)
			EXPECT(at(shift, n + k), spot(shift, i), others, "other mapping at the end");
	}
	/* unmap all at once, or one by one */
	if (next(state) % 2)
		unmap(region, 5 * size);
	for (unsigned k = 0; k <= 4; k++)
		munmap(at(shift, n + k), size);
	close(fd);
}

bool t_munmap(void)
{
	uint64_t state = seed;

	for EACH_REACH(shift)
		for (unsigned round = 0; round < 12 * factor; round++)
			reuse(shift, 0, &state, true);
	return true;
}

static void reuse_work(struct worker *worker)
{
	for EACH_REACH(shift)
		for (unsigned round = 0; round < 8 * factor; round++)
			reuse(shift, 8 * worker->number, &worker->state, false);
}

bool t_munmap_threads(void)
{
	struct worker workers[THREADS];

	start(workers, THREADS, reuse_work, NULL, 0);
	join(workers, THREADS);
	return true;
}

/* Use page tables, so that those that were freed are in use again. */
static void take_tables(unsigned shift, uint64_t gen)
{
	for (unsigned k = 0; k < 3; k++) {
		char *other = map(at(shift, 10 + k), 1ul << shift, MAP_PRIVATE, -1);

		for (unsigned i = 0; i < SPOTS; i++)
			put(other, spot(shift, i), gen);
	}
}

static void give_tables(unsigned shift, uint64_t gen)
{
	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < SPOTS; i++)
			EXPECT(at(shift, 10 + k), spot(shift, i), gen, "other mapping");
	unmap(at(shift, 10), 3ul << shift);
}

/* A mapping shrinks and grows again in its place: its VMA stays the same. */
static void shrink_and_grow(unsigned shift)
{
	const size_t size = 1ul << shift;
	const unsigned parts = 4;
	char *region = map(at(shift, 0), parts * size, MAP_PRIVATE, -1);
	uint64_t first = fresh();

	for (unsigned i = 0; i < SPOTS; i++)
		put(region, spot(shift, i), first);
	for (unsigned round = 0; round < 6 * factor; round++) {
		uint64_t gen = fresh(), others = fresh();

		for (unsigned part = 1; part < parts; part++)
			for (unsigned i = 0; i < SPOTS; i++)
				put(region + part * size, spot(shift, i), gen);
		NEED(mremap(region, parts * size, size, 0) == region, "mremap to less: %s", strerror(errno));
		if (round % 3)
			take_tables(shift, others);
		NEED(mremap(region, size, parts * size, 0) == region, "mremap to more: %s", strerror(errno));
		for (unsigned part = parts; --part; )
			for (unsigned i = 0; i < SPOTS; i++)
				EXPECT(region + part * size, spot(shift, i), 0, "grown again");
		if (round % 3)
			give_tables(shift, others);
		for (unsigned i = 0; i < SPOTS; i++)
			EXPECT(region, spot(shift, i), first, "what was kept");
	}
	unmap(region, parts * size);
}

/*
 * Run @body alone, so that no other munmap() happens to empty the cache. Then run it
 * beside threads that fault, map and unmap.
 */
static bool quiet_and_busy(void (*body)(unsigned shift))
{
	struct worker workers[2];

	for EACH_REACH(shift)
		body(shift);
	start(workers, 2, be_busy, NULL, 0);
	for EACH_REACH(shift)
		body(shift);
	join(workers, 2);
	return true;
}

bool t_shrink(void)
{
	return quiet_and_busy(shrink_and_grow);
}

/*
 * The border of two VMAs moves down. Then the upper VMA is unmapped, which frees page
 * tables, and the border moves up again over the same addresses. The lower VMA stays the
 * same all the time. (munmap() alone would make a new VMA when it splits one.)
 */
static void move_border(unsigned shift)
{
	const size_t size = 1ul << shift;
	int fd = memfd_create("border", MFD_CLOEXEC);
	uint64_t gen = fresh(), others = fresh();
	char *region = at(shift, 0), *part = region + size;

	NEED(fd >= 0 && !ftruncate(fd, 3 * size), "memfd: %s", strerror(errno));
	for (unsigned round = 0; round < 6 * factor; round++) {
		map(region, 3 * size, MAP_SHARED, fd);
		NEED(!mprotect(region + 2 * size, size, PROT_READ), "mprotect");
		for (unsigned i = 0; i < SPOTS; i++)
			put(region, spot(shift, i), gen);
		for (unsigned i = 0; i < SPOTS; i++)
			put(part, spot(shift, i), gen);
		NEED(!mprotect(part, size, PROT_READ), "mprotect");
		unmap(part, 2 * size);
		take_tables(shift, others);
		NEED(mmap(part, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, size) == part,
		     "mmap: %s", strerror(errno));
		for (unsigned i = 0; i < SPOTS; i++) {
			EXPECT(part, spot(shift, i), gen, "beyond the border");
			put(part, spot(shift, i), gen);
		}
		give_tables(shift, others);
		unmap(region, 2 * size);
	}
	close(fd);
}

bool t_border(void)
{
	return quiet_and_busy(move_border);
}

/* A stack that grows over the border of a region, is cut there, and grows again. */
static void grow_stack(unsigned shift)
{
	char *border = at(shift, 1), *stack = map(border, 4 * PAGE, MAP_PRIVATE | MAP_GROWSDOWN, -1);
	uint64_t gen = fresh();

	put(stack, 1, gen);
	for (unsigned round = 0; round < 6 * factor; round++) {
		char *low = border - 8 * PAGE;
		uint64_t others = fresh();

		for (unsigned i = 8; i--; ) {
			EXPECT(low, i, 0, "grown stack");
			put(low, i, gen + i);
		}
		for (unsigned i = 0; i < 8; i++)
			EXPECT(low, i, gen + i, "stack");
		unmap(low, 8 * PAGE);
		take_tables(shift, others);
		if (round % 2)
			EXPECT(low, 7, 0, "stack again");
		give_tables(shift, others);
		EXPECT(stack, 1, gen, "stack's top");
	}
	unmap(border - 8 * PAGE, 12 * PAGE);
}

bool t_stack(void)
{
	return quiet_and_busy(grow_stack);
}

/* --- Page tables that move */

static void move(unsigned shift, unsigned round)
{
	const size_t size = 1ul << shift;
	const bool shared = round % 2, keep = round / 2 % 2;
	uint64_t gen = fresh(), old = fresh(), others = fresh();
	/* content of a page that nobody wrote */
	const uint64_t untouched = shared ? gen : 0;
	char *from = at(shift, 0), *to = at(shift, 1);
	int fd = shared ? make_file(shift, gen) : -1;

	/* use the new place before, too */
	map(to, size, MAP_PRIVATE, -1);
	for (unsigned i = 0; i < SPOTS; i++)
		put(to, spot(shift, i), old);
	unmap(to, size);

	map(from, size, shared ? MAP_SHARED : MAP_PRIVATE, fd);
	for (unsigned i = 0; i < SPOTS; i += 2)
		put(from, spot(shift, i), gen);
	NEED(mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED | (keep ? MREMAP_DONTUNMAP : 0), to) == to,
	     "mremap: %s", strerror(errno));
	if (!keep)
		map(from, size, MAP_PRIVATE, -1);
	for (unsigned i = 0; i < SPOTS; i++) {
		EXPECT(from, spot(shift, i), keep ? untouched : 0, "old place");
		put(from, spot(shift, i), keep && shared ? gen : old);
	}
	take_tables(shift, others);
	for (unsigned i = 0; i < SPOTS; i++)
		EXPECT(to, spot(shift, i), i % 2 ? untouched : gen, "new place");
	for (unsigned i = 0; i < SPOTS; i++)
		put(to, spot(shift, i), gen);
	for (unsigned i = 0; i < SPOTS; i++)
		EXPECT(from, spot(shift, i), keep && shared ? gen : old, "old place, written");
	/* move back: now the old place has new tables */
	NEED(mremap(to, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, from) == from, "mremap back: %s", strerror(errno));
	map(to, size, MAP_PRIVATE, -1);
	for (unsigned i = SPOTS; i--; ) {
		EXPECT(to, spot(shift, i), 0, "left place");
		EXPECT(from, spot(shift, i), gen, "back again");
	}
	give_tables(shift, others);
	unmap(from, 2 * size);
	if (fd >= 0)
		close(fd);
}

static void move_rounds(unsigned shift)
{
	/* not for 48, which only takes longer: a P4D table is never moved as a whole */
	for (unsigned round = 0; shift < 48 && round < 8 * factor; round++)
		move(shift, round);
}

bool t_mremap(void)
{
	return quiet_and_busy(move_rounds);
}

/* --- One VMA, many tables: addresses that have parts in common */

bool t_tags(void)
{
	const unsigned parts = 32, pages = 2;
	uint64_t state = seed;

	for EACH_REACH(shift) {
		char *region = map(at(shift, 0), (size_t)parts << shift, MAP_PRIVATE, -1);
		uint64_t gen = fresh();
		bool there[64] = { 0 };

		for (unsigned i = 0; i < 400 * factor; i++) {
			unsigned n = next(&state) % (parts * pages);
			/* the same offset in each part, or a neighbour of it */
			uint64_t page = ((uint64_t)(n / pages) << shift) / PAGE + 77 * TABLE + n % pages * TABLE;

			EXPECT(region, page, there[n] ? gen : 0, "equal offsets");
			put(region, page, gen);
			there[n] = true;
			if (i % 97 == 96) {
				madvise(region, (size_t)parts << shift, MADV_DONTNEED);
				memset(there, 0, sizeof(there));
			}
		}
		unmap(region, (size_t)parts << shift);
	}
	return true;
}
