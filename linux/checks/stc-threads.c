// SPDX-License-Identifier: GPL-2.0
/* Threads that fault while VMAs are split, merged, advised and collapsed; and all of it at once. */
#include "stc.h"

/* --- VMAs that are split, merged, advised and collapsed while threads use them */

#define ADVISED 64ul			/* pages of each piece of 2 MB that are touched */
#define PIECES 4ul

/* Write and read pages of an anonymous region: each is as it was written, or was dropped. */
static void use_anonymous(struct worker *worker)
{
	while (!stopped()) {
		uint64_t page = next(&worker->state) % PIECES * TABLE + next(&worker->state) % ADVISED * THREADS + worker->number;

		NEED(has_either(worker->region, page, worker->gen, 0), "advised: wrong content of page %#lx", page);
		put(worker->region, page, worker->gen);
	}
}

/* The same for a file in memory, whose pages are always as they were written. */
static void use_file(struct worker *worker)
{
	char *region = worker->region + GB;

	while (!stopped()) {
		uint64_t page = next(&worker->state) % PIECES * TABLE + next(&worker->state) % ADVISED * THREADS + worker->number;

		put(region, page, worker->gen);
		EXPECT(region, page, worker->gen, "file");
	}
}

static void use_both(struct worker *worker)
{
	if (worker->number % 2)
		use_anonymous(worker);
	else
		use_file(worker);
}

static void advise(bool collapse)
{
	const size_t piece = TABLE * PAGE, size = PIECES * piece;
	char *region = map(at(30, 0), size, MAP_PRIVATE, -1);
	int fd = memfd_create("advised", MFD_CLOEXEC);
	struct worker workers[THREADS];
	uint64_t state = seed;

	NEED(!ftruncate(fd, size), "memfd");
	map(region + GB, size, MAP_SHARED, fd);
	start(workers, THREADS, use_both, region, fresh());
	for (unsigned step = 0; step < (collapse ? 150 : 600) * factor; step++) {
		char *p = region + next(&state) % 2 * GB + next(&state) % PIECES * piece;
		unsigned part = (1 + next(&state) % (TABLE - 1)) * PAGE;

		switch (next(&state) % (collapse ? 10 : 6)) {
		case 0:
			madvise(p, piece, MADV_DONTNEED);
			break;
		case 1:	/* VMAs split */
			madvise(p, part, MADV_DONTFORK);
			break;
		case 2:	/* and merge */
			madvise(p, piece, MADV_DOFORK);
			break;
		case 3:
			mprotect(p, part, PROT_READ | PROT_WRITE | PROT_EXEC);
			break;
		case 4:
			mprotect(p, piece, PROT_READ | PROT_WRITE);
			break;
		case 5:
			madvise(p + part, PAGE, MADV_DONTNEED);
			break;
		default:
			madvise(p, piece, MADV_COLLAPSE);
		}
		/* let the threads have the processors for a moment */
		if (step % 8 == 0)
			usleep(200);
	}
	join(workers, THREADS);
	unmap(region, GB + size);
	close(fd);
}

bool t_advice(void)
{
	advise(false);
	return true;
}

bool t_collapse(void)
{
	char *region = map(at(30, 0), TABLE * PAGE, MAP_PRIVATE, -1);
	bool can;

	put(region, 0, 1);
	can = !madvise(region, TABLE * PAGE, MADV_COLLAPSE) || errno != EINVAL;
	unmap(region, TABLE * PAGE);
	if (!can)
		SKIP("no huge pages: %s", strerror(errno));
	/* let khugepaged collapse pages at the same time */
	put_text(HUGEPAGES "khugepaged/scan_sleep_millisecs", "1");
	put_text(HUGEPAGES "khugepaged/alloc_sleep_millisecs", "1");
	put_text(HUGEPAGES "enabled", "always");
	advise(true);
	put_text(HUGEPAGES "enabled", "madvise");
	put_text(HUGEPAGES "khugepaged/scan_sleep_millisecs", "10000");
	return true;
}

/* --- All at once */

#define SLOTS 4u

/* Each thread has slots of 1 GB, in page tables that all threads share. */
struct slot {
	char *region;
	uint64_t gen[SPOTS];	/* what each spot holds */
	bool there;
};

static void check_slot(struct slot *slot, unsigned first)
{
	for (unsigned i = 0; slot->there && i < SPOTS; i++)
		EXPECT(slot->region, spot(30, (i + first) % SPOTS), slot->gen[(i + first) % SPOTS], "storm");
}

static void storm_child(void *arg)
{
	struct slot *slots = arg;

	for (unsigned k = 0; k < SLOTS; k++) {
		check_slot(&slots[k], k);
		for (unsigned i = 0; slots[k].there && i < SPOTS; i++)
			put(slots[k].region, spot(30, i), slots[k].gen[i] = fresh());
		check_slot(&slots[k], k);
	}
}

static void storm_work(struct worker *worker)
{
	struct slot slots[SLOTS] = { 0 };
	uint64_t *state = &worker->state;

	for (unsigned k = 0; k < SLOTS; k++)
		slots[k].region = at(30, worker->number * SLOTS + k);
	for (unsigned step = 0; step < 150 * factor; step++) {
		struct slot *slot = &slots[next(state) % SLOTS], *other = &slots[next(state) % SLOTS];
		unsigned i = next(state) % SPOTS;
		pid_t pid;

		if (!slot->there) {
			map(slot->region, GB, MAP_PRIVATE, -1);
			memset(slot->gen, 0, sizeof(slot->gen));
			slot->there = true;
		}
		switch (next(state) % 20) {
		case 0 ... 8:
			EXPECT(slot->region, spot(30, i), slot->gen[i], "storm");
			put(slot->region, spot(30, i), slot->gen[i] = fresh());
			break;
		case 9 ... 11:
			check_slot(slot, i);
			unmap(slot->region, GB);
			slot->there = false;
			break;
		case 12 ... 13:
			if (other == slot)
				break;
			if (mremap(slot->region, GB, GB, MREMAP_MAYMOVE | MREMAP_FIXED, other->region) != other->region) {
				/* two VMAs did not merge: the slot stays, the new place is gone */
				NEED(errno == EFAULT, "mremap: %s", strerror(errno));
				unmap(other->region, GB);
				other->there = false;
				break;
			}
			memcpy(other->gen, slot->gen, sizeof(slot->gen));
			other->there = true;
			slot->there = false;
			check_slot(other, i);
			break;
		case 14:
			madvise(slot->region + spot(30, i) * PAGE, PAGE, MADV_DONTNEED);
			slot->gen[i] = 0;
			break;
		case 15:
			mprotect(slot->region + GB / SPOTS * i, GB / SPOTS, PROT_READ);
			EXPECT(slot->region, spot(30, i), slot->gen[i], "storm, read only");
			mprotect(slot->region, GB, PROT_READ | PROT_WRITE);
			break;
		case 16:	/* replace the upper half */
			unmap(slot->region + GB / 2, GB / 2);
			map(slot->region + GB / 2, GB / 2, MAP_PRIVATE, -1);
			memset(slot->gen + SPOTS / 2, 0, sizeof(slot->gen) / 2);
			break;
		case 17:
			madvise((char *)((uintptr_t)(slot->region + spot(30, i) * PAGE) & -(TABLE * PAGE)), TABLE * PAGE,
				MADV_COLLAPSE);
			/* a huge page takes 2 MB of memory, so keep only a few at a time */
			EXPECT(slot->region, spot(30, i), slot->gen[i], "storm, collapsed");
			madvise(slot->region, GB, MADV_DONTNEED);
			memset(slot->gen, 0, sizeof(slot->gen));
			break;
		case 18:
			hop(next(state));
			break;
		default:
			if (step % 4)
				break;
			pid = spawn(storm_child, slots);
			check_slot(slot, i);
			finish(pid, 0);
		}
	}
	for (unsigned k = 0; k < SLOTS; k++)
		check_slot(&slots[k], k);
}

bool t_storm(void)
{
	struct worker workers[THREADS + 1];

	start(workers, THREADS, storm_work, NULL, 0);
	start(workers + THREADS, 1, be_busy, NULL, 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	join(workers + THREADS, 1);
	return true;
}
