// SPDX-License-Identifier: GPL-2.0
/*
 * Races with requests that are under way, and work that Linux must do in time. Slow
 * settings of the machine (ssd.read_us, ssd.write_us, smu.poll_interval_cycles) make
 * these races likely. REQ: OS-4, OS-6, OS-9
 */
#include "check.h"
#include <sys/syscall.h>

static struct toucher {
	char *volatile page;
	volatile bool stop;
	pthread_t thread;
} toucher;

/* Read the page again and again, whether it is mapped or not. */
static void *touch_for_ever(void *arg)
{
	(void)arg;
	while (!toucher.stop)
		touch(toucher.page);
	return NULL;
}

static void start_touching(char *page)
{
	toucher.stop = false;
	toucher.page = page;
	pthread_create(&toucher.thread, NULL, touch_for_ever, NULL);
}

static void stop_touching(void)
{
	toucher.stop = true;
	pthread_join(toucher.thread, NULL);
}

/*
 * Map the same block of the file again at the same address, so that it has the same page table entry.
 * The block has new content by then.
 * A miss of the old mapping may still be under way, and its late answer must not count.
 * Neighbouring mappings keep the page table from being freed.
 */
bool t_aba(void)
{
	char *map, *neighbour, page[PAGE];
	int fd;

	if (!setup("aba", 44, 16, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	neighbour = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(neighbour, 1, 4 << 20);
	munmap(map, 16 * PAGE);
	map = (char *)(((uintptr_t)neighbour + (2 << 20)) & -(2ul << 20)) + 64 * PAGE;
	start_touching(map + 3 * PAGE);
	for (int round = 0; round < 40; round++) {
		CHECK(mmap(map, 16 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_HWDP, fd, 0) ==
		      map, "mmap");
		usleep(round * 37 % 400);
		CHECK(mmap(map, 16 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == map, "mmap over");
		fill(page, 200 + round, 3);
		CHECK(pwrite(fd, page, PAGE, 3 * PAGE) == PAGE && !fdatasync(fd), "pwrite");
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		CHECK(mmap(map, 16 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_HWDP, fd, 0) ==
		      map, "mmap again");
		CHECK(same(map + 3 * PAGE, 200 + round, 3), "old content in round %d", round);
		munmap(map, 16 * PAGE);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	stop_touching();
	return true;
}


/* Requests that the units have accepted and not answered yet. Reads all counters at once. */
static long unanswered(void)
{
	static const char * const answers[] = { "smu_coalesced", "smu_installed", "smu_changed",
						"smu_fail_" };
	FILE *f = fopen("/sys/kernel/mm/hwdp/stats", "r");
	char name[64];
	long value, n = 0;

	while (f && fscanf(f, "%63s %ld", name, &value) == 2) {
		if (!strcmp(name, "smu_requests"))
			n += value;
		for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
			if (!strncmp(name, answers[i], strlen(answers[i])))
				n -= value;
	}
	if (f)
		fclose(f);
	return n;
}

/* When munmap() returns, its page tables may get another use: no request may still refer to them. */
bool t_munmap_waits(void)
{
	long left;
	char *map;
	int fd;

	for (int round = 0; round < 4; round++) {
		if (!setup("unmap", 46, 16, PROT_READ, MAP_SHARED, &fd, &map))
			return false;
		start_touching(map + 3 * PAGE);
		for (int i = 0; i < 100 && !unanswered(); i++)
			usleep(200);
		munmap(map, 16 * PAGE);
		left = unanswered();
		CHECK(!left, "%ld requests outlived munmap()", left);
		stop_touching();
		close(fd);
	}
	return true;
}

static struct pair {
	const char *map;
	pthread_barrier_t barrier;
} pair;

static void *touch_in_step(void *arg)
{
	(void)arg;
	for (size_t p = 0; p < 256; p++) {
		pthread_barrier_wait(&pair.barrier);
		touch(pair.map + p * PAGE);
	}
	return NULL;
}

/*
 * Hardware fills an entry at the moment when a write() empties it. Either may be first,
 * but no frame may be lost: it would be neither adopted nor discarded.
 */
bool t_exchange(void)
{
	char *map, page[PAGE];
	pthread_t thread;
	int fd;

	if (!setup("xchg", 48, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	pair.map = map;
	pthread_barrier_init(&pair.barrier, NULL, 2);
	pthread_create(&thread, NULL, touch_in_step, NULL);
	for (size_t p = 0; p < 256; p++) {
		fill(page, 49, p);
		pthread_barrier_wait(&pair.barrier);
		CHECK(pwrite(fd, page, PAGE, p * PAGE) == PAGE, "pwrite");
	}
	pthread_join(thread, NULL);
	return read_all(map, 49, 0, 256);
}

static struct rounds {
	const char *page;
	int number;
	pthread_barrier_t barrier;
} rounds;

/* Touch the page once in each round, and tell the other thread when the touch is over. */
static void *touch_in_rounds(void *arg)
{
	(void)arg;
	for (int i = 0; i < rounds.number; i++) {
		pthread_barrier_wait(&rounds.barrier);
		touch(rounds.page);
		pthread_barrier_wait(&rounds.barrier);
	}
	return NULL;
}

/*
 * A late answer within one mapping: while a miss is under way, the page is written,
 * evicted, and armed again with the same block.
 */
bool t_late_answer(void)
{
	char *map, page[PAGE];
	pthread_t thread;
	int fd;

	if (!setup("late", 45, 16, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	CHECK(!have_smu() || put_text("/sys/kernel/mm/hwdp/kpoold_period_ms", "1"), "period");
	rounds.page = map + 3 * PAGE;
	rounds.number = 24;
	pthread_barrier_init(&rounds.barrier, NULL, 2);
	pthread_create(&thread, NULL, touch_in_rounds, NULL);
	for (int round = 0; round < rounds.number; round++) {
		pthread_barrier_wait(&rounds.barrier);
		usleep(200 + round * 97 % 2000);
		fill(page, 200 + round, 3);
		CHECK(pwrite(fd, page, PAGE, 3 * PAGE) == PAGE && !fdatasync(fd), "pwrite");
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		usleep(15000);
		CHECK(same(map + 3 * PAGE, 200 + round, 3), "old content in round %d", round);
		pthread_barrier_wait(&rounds.barrier);
		/* a mapped page would not be evicted, so empty the entry first */
		madvise(map, 16 * PAGE, MADV_DONTNEED);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		usleep(8000);
	}
	pthread_join(thread, NULL);
	put_text("/sys/kernel/mm/hwdp/kpoold_period_ms", "4");
	return true;
}

static struct late_touch {
	const char *page;
	long fast;		/* pages that hardware read during the touch */
	long denied;		/* direct writes that had begun before the touch */
	double ended;
} late;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* On a busy host, this program may notice the end of a write this many milliseconds late. */
#define SEEN_LATE_MS	5

/* Touch the page so late that kpoold could have armed it again. */
static void *touch_late(void *arg)
{
	(void)arg;
	usleep(6500);
	late.denied = stat_of("areas_disarmed_direct_write");
	late.fast = fast_pages();
	touch(late.page);
	late.fast = fast_pages() - late.fast;
	late.ended = now_ms();
	return NULL;
}

/*
 * A thread reads the page for the first time while a direct write to it is under way,
 * so late that the page could have been armed again. When the write is over, no reader
 * sees the old content.
 */
bool t_direct_busy(void)
{
	char *map, *page;
	long fast = 0;
	int fd;

	if (!setup("dbusy", 46, 16, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	fd = open(path("dbusy"), O_RDWR | O_DIRECT);
	CHECK(fd >= 0 && !posix_memalign((void **)&page, PAGE, PAGE), "O_DIRECT");
	late.page = map + 3 * PAGE;
	for (int round = 0; round < 12; round++) {
		long denied = stat_of("areas_disarmed_direct_write");
		double over;
		pthread_t t;

		fill(page, 200 + round, 3);
		pthread_create(&t, NULL, touch_late, NULL);
		CHECK(pwrite(fd, page, PAGE, 3 * PAGE) == PAGE, "pwrite: %s", strerror(errno));
		over = now_ms();
		CHECK(same(map + 3 * PAGE, 200 + round, 3), "old content in round %d", round);
		pthread_join(t, NULL);
		CHECK(same(map + 3 * PAGE, 200 + round, 3), "old content later in round %d", round);
		if (late.denied > denied && late.ended < over - SEEN_LATE_MS)
			fast += late.fast;
	}
	CHECK(!fast, "hardware read %ld pages that were being written", fast);
	return true;
}

static long number_of(const char *name, long otherwise)
{
	char file[96];
	long value;

	snprintf(file, sizeof(file), "/sys/kernel/mm/hwdp/%s", name);
	value = number_in(file);
	return value < 0 ? otherwise : value;
}

/* The number of filled frames that are not adopted never exceeds the ring's depth. REQ: OS-9 */
bool t_bound(void)
{
	struct endless e[READERS];
	long depth = number_of("ring_depth", 0), most = 0;
	char *map;

	if (!have_smu())
		return true;
	if (!setup("bound", 47, 8192, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	start_readers(e, map, 47, 8192);
	for (int i = 0; i < 200; i++) {
		long now = not_adopted();

		most = now > most ? now : most;
		usleep(300);
	}
	CHECK(stop_readers(e), "a reader saw a wrong page");
	/* the counters are read one after the other: allow some more pages */
	CHECK(most <= depth + 64, "%ld frames without metadata, the ring has %ld", most, depth);
	return true;
}

static volatile bool adopting;

/* Make kpted do a pass: a new period takes effect at once. */
static void have_adopted(void)
{
	static bool odd;

	odd = !odd;
	put_text("/sys/kernel/mm/hwdp/kpted_period_ms", odd ? "59999" : "60000");
}

static void *adopt_for_ever(void *arg)
{
	while (adopting)
		have_adopted();
	return arg;
}

/*
 * Every page that hardware has read is adopted, even if its mark is set in the middle of a
 * pass. The test reads two pages of each table: the first lets a pass look at the table,
 * and after the second no other page sets the mark again. REQ: OS-6
 */
bool t_adopt_all(void)
{
	pthread_t thread;
	char *map;

	if (!have_smu())
		return true;
	if (!make_file("adopt", 48, 4096))
		return false;
	for (int round = 0; round < 20; round++) {
		long left = 1;

		drop_caches();
		map = map_file("adopt", 4096, PROT_READ, MAP_SHARED, NULL);
		CHECK(map != MAP_FAILED, "mmap: %s", strerror(errno));
		adopting = true;
		pthread_create(&thread, NULL, adopt_for_ever, NULL);
		for (size_t p = 8; p < 4096; p += 512) {
			CHECK(same(map + p * PAGE, 48, p), "wrong content of page %zu", p);
			for (volatile int i = 0; i < 150 * round; i++)
				;
			CHECK(same(map + (p + 1) * PAGE, 48, p + 1),
			      "wrong content of page %zu", p + 1);
		}
		adopting = false;
		pthread_join(thread, NULL);
		/* Wait long, since a busy host may give kpted no time. A page that kpted has missed is never adopted. */
		for (int tries = 0; tries < 500 && left; tries++) {
			have_adopted();
			usleep(2000);
			left = not_adopted();
		}
		CHECK(!left, "%ld pages are not adopted, in round %d", left, round);
		munmap(map, 4096 * PAGE);
	}
	put_text("/sys/kernel/mm/hwdp/kpted_period_ms", "1000");
	return true;
}

#define SHARERS 16

/*
 * Several areas are below one upper entry. A pass of kpted for one area clears this entry's
 * mark, and the unsynced pages of all these areas must still be found. REQ: OS-6
 */
bool t_shared_mark(void)
{
	char name[16], *map[SHARERS];
	long fast, left = 1;

	if (!have_smu())
		SKIP("all pages are adopted");
	for (int i = 0; i < SHARERS; i++) {
		snprintf(name, sizeof(name), "sharer%d", i);
		if (!make_file(name, 204 + i, 64))
			return false;
	}
	drop_caches();
	for (int i = 0; i < SHARERS; i++) {
		snprintf(name, sizeof(name), "sharer%d", i);
		map[i] = map_file(name, 64, PROT_READ, MAP_SHARED, NULL);
		CHECK(map[i] != MAP_FAILED, "mmap: %s", strerror(errno));
		/* now there is an area, and its entries are armed */
		if (!read_all(map[i], 204 + i, 0, 4))
			return false;
	}
	have_adopted();
	usleep(100000);
	fast = fast_pages();
	for (int i = 0; i < SHARERS; i++)
		if (!read_all(map[i] + 32 * PAGE, 204 + i, 32, 4))
			return false;
	CHECK(fast_pages() >= fast + SHARERS, "only %ld pages by hardware", fast_pages() - fast);
	for (int tries = 0; tries < 500 && left; tries++) {
		have_adopted();
		usleep(2000);
		left = not_adopted();
	}
	put_text("/sys/kernel/mm/hwdp/kpted_period_ms", "1000");
	CHECK(!left, "%ld pages are not adopted", left);
	for (int i = 0; i < SHARERS; i++)
		munmap(map[i], 64 * PAGE);
	return true;
}

/* MADV_PAGEOUT reclaims pages at once after hardware has read them. */
bool t_pageout_now(void)
{
	unsigned char vec[64];
	unsigned there = 0;
	char *map;

	if (!setup("out", 49, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 49, 0, 64))
		return false;
	CHECK(!madvise(map, 64 * PAGE, MADV_PAGEOUT), "pageout");
	CHECK(!mincore(map, 64 * PAGE, vec), "mincore");
	for (unsigned p = 0; p < 64; p++)
		there += vec[p] & 1;
	CHECK(there < 16, "%u of 64 pages are still in memory", there);
	return read_all(map, 49, 0, 512);
}

/* The whole system sleeps and wakes while threads miss. REQ: OS-5 */
bool t_suspend(void)
{
	struct endless e[READERS];
	long fast, disarmed = stat_of("areas_disarmed_power");
	char *map;

	if (!put_text("/sys/power/pm_test", "devices"))
		SKIP("no test of suspending");
	if (!setup("sleep", 180, 4096, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	start_readers(e, map, 180, 1024);
	usleep(3000);
	CHECK(put_text("/sys/power/state", "freeze"), "suspend: %s", strerror(errno));
	CHECK(stop_readers(e), "a reader saw a wrong page");
	/* entries are disarmed before the devices sleep, which would disarm them, too */
	CHECK(!have_smu() || stat_of("areas_disarmed_power") > disarmed,
	      "entries stayed armed during suspend");
	usleep(100000);
	fast = fast_pages();
	if (!read_all(map, 180, 0, 4096))
		return false;
	CHECK(!have_smu() || fast_pages() - fast > 2500, "only %ld pages by hardware afterwards",
	      fast_pages() - fast);
	return true;
}
