// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware serves pages again after eviction, after blocks have moved, and after other
 * events that only disarm entries. REQ: OS-2, OS-3, OS-4, OS-11
 */
#include "check.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

static size_t resident(const char *map, size_t pages)
{
	static unsigned char vec[1 << 16];
	size_t n = 0;

	if (mincore((void *)map, pages * PAGE, vec))
		return pages;
	for (size_t p = 0; p < pages; p++)
		n += vec[p] & 1;
	return n;
}

/* Evict the pages, except a few that the kernel may hold on to. */
static bool evict(char *map, size_t pages)
{
	size_t left = pages;

	for (int tries = 0; tries < 50 && left; tries++) {
		madvise(map, pages * PAGE, MADV_PAGEOUT);
		drop_caches();	/* evicts pages that are not mapped */
		left = resident(map, pages);
	}
	CHECK(left <= pages / 50, "%zu of %zu pages cannot be evicted", left, pages);
	return true;
}

/*
 * Wait until kpoold has nothing more to arm. It may skip an area for some rounds, and on
 * a busy host it may get no time: so count its rounds, not milliseconds.
 */
static void settle(void)
{
	long armed = stat_of("pages_armed"), rounds = stat_of("kpoold_runs"), now;

	for (int tries = 0; have_smu() && tries < 1000; tries++) {
		usleep(2000);
		now = stat_of("pages_armed");
		if (now != armed) {
			armed = now;
			rounds = stat_of("kpoold_runs");
		} else if (stat_of("kpoold_runs") - rounds >= 12) {
			return;
		}
	}
}

/* Read @pages pages. Their content must be right, and hardware must serve 95 % of them. */
static bool served(const char *map, uint64_t seed, size_t first, size_t pages, const char *what)
{
	long before = fast_pages(), served;

	if (!read_all(map + first * PAGE, seed, first, pages))
		return false;
	served = fast_pages() - before;
	CHECK(!have_smu() || served >= (long)(pages * 95 / 100),
	      "%s: hardware served %ld of %zu pages", what, served, pages);
	return true;
}

static bool evict_settle(char *map, size_t pages)
{
	if (!evict(map, pages))
		return false;
	settle();
	return true;
}

bool t_rearm_evict(void)
{
	long rearmed = stat_of("pages_rearmed");
	char *map;

	if (!setup("re", 90, 1024, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	/*
	 * Dropping caches may also drop the extents that ext4 has cached. Then kpoold arms
	 * nothing, and the next miss does it: so read once more.
	 */
	for (int round = 0; round < 3; round++)
		if (!served(map, 90, 0, 1024, "after eviction") ||
		    !evict_settle(map, 1024))
			return false;
	if (!served(map, 90, 0, 1024, "after eviction"))
		return false;
	rearmed = stat_of("pages_rearmed") - rearmed;
	CHECK(!have_smu() || rearmed >= 3 * 1000, "only %ld pages were armed again", rearmed);
	munmap(map, 1024 * PAGE);
	return true;
}

/* Pages that came by read() and were dropped without ever being mapped are armed. */
bool t_rearm_drop_caches(void)
{
	char *map, buf[PAGE];
	int fd;

	if (!setup("rd", 91, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	for (size_t p = 0; p < 512; p++)
		CHECK(pread(fd, buf, PAGE, p * PAGE) == PAGE && same(buf, 91, p), "pread");
	drop_caches();
	settle();
	return served(map, 91, 0, 512, "after drop_caches");
}

/* At mmap() all pages are cached, and nothing is armed. After eviction all pages are armed. */
bool t_rearm_cached(void)
{
	char *map;

	if (!make_file("cached", 92, 512))
		return false;
	map = map_file("cached", 512, PROT_READ, MAP_SHARED, NULL);
	CHECK(map != MAP_FAILED, "mmap");
	if (!read_all(map, 92, 0, 512) || !evict_settle(map, 512))
		return false;
	return served(map, 92, 0, 512, "after eviction");
}

/* Pages are written and evicted: hardware reads what was written. */
bool t_rearm_dirty(void)
{
	char *map, buf[PAGE];
	int fd;

	if (!setup("rdirty", 93, 512, PROT_READ | PROT_WRITE, MAP_SHARED, &fd, &map))
		return false;
	for (size_t p = 0; p < 512; p += 2) {
		fill(map + p * PAGE, 94, p);
		fill(buf, 94, p + 1);
		CHECK(pwrite(fd, buf, PAGE, (p + 1) * PAGE) == PAGE, "pwrite");
	}
	if (!evict_settle(map, 512))
		return false;
	return served(map, 94, 0, 512, "after write-back");
}

/* A private copy stays, whatever happens to the file's page below it. */
bool t_rearm_private(void)
{
	char *map;

	if (!setup("rpriv", 95, 256, PROT_READ | PROT_WRITE, MAP_PRIVATE, NULL, &map))
		return false;
	for (size_t p = 0; p < 256; p += 4)
		fill(map + p * PAGE, 96, p);
	if (!read_all(map + PAGE, 95, 1, 3))
		return false;
	for (int round = 0; round < 3; round++) {
		madvise(map, 256 * PAGE, MADV_PAGEOUT);
		settle();
		for (size_t p = 0; p < 256; p++)
			CHECK(same(map + p * PAGE, p % 4 ? 95 : 96, p),
			      "wrong content of page %zu", p);
	}
	CHECK(!madvise(map, 256 * PAGE, MADV_DONTNEED), "MADV_DONTNEED");
	return read_all(map, 95, 0, 256);
}

/* ISCA20 IV-B: entries get the addresses of the new blocks, and hardware serves the misses. */
bool t_rearm_moved(void)
{
	char *map;
	int fd;

	if (!setup("rmove", 97, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!defragment(fd, 512))
		return false;
	drop_caches();
	settle();
	return served(map, 97, 0, 512, "after the move");
}

/* Blocks move while kpoold arms evicted pages: it must not store an old address. REQ: OS-3 */
bool t_rearm_moving(void)
{
	char *map;
	int fd;

	if (!setup("moving", 98, 1024, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 98, 0, 1024) || !evict(map, 1024) || !defragment(fd, 1024))
		return false;
	drop_caches();
	settle();
	return read_all(map, 98, 0, 1024);
}

/* The file shrinks, then grows, and gets other data at its new end. */
bool t_rearm_truncate(void)
{
	char *map, buf[PAGE];
	int fd;

	if (!setup("rtrunc", 100, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 100, 0, 32))
		return false;
	CHECK(!ftruncate(fd, 255 * PAGE + 100), "shrink: %s", strerror(errno));
	CHECK(touch(map + 300 * PAGE) == SIGBUS, "no SIGBUS beyond the end");
	settle();
	/* the kernel serves the page with the end: zeroes follow */
	CHECK(!memcmp(map + 255 * PAGE + 100, (char [64]){ 0 }, 64), "bytes after the end");
	if (!served(map, 100, 32, 200, "below the new end"))
		return false;
	CHECK(!ftruncate(fd, 512 * PAGE), "grow: %s", strerror(errno));
	settle();
	for (size_t p = 256; p < 512; p++)
		CHECK(is_zero(map + p * PAGE), "page %zu of the grown file is not 0", p);
	for (size_t p = 255; p < 512; p++) {
		fill(buf, 101, p);
		CHECK(pwrite(fd, buf, PAGE, p * PAGE) == PAGE, "pwrite");
	}
	if (!read_all(map + 255 * PAGE, 101, 255, 257) || !evict_settle(map, 512))
		return false;
	return served(map, 100, 0, 255, "first part") &&
		served(map, 101, 255, 257, "second part");
}

/* write() moves the end of the file: hardware never serves the page with the end. */
bool t_rearm_append(void)
{
	char *map, buf[PAGE];
	int fd;

	if (!setup("rapp", 102, 64, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	munmap(map, 64 * PAGE);
	map = mmap(NULL, 256 * PAGE, PROT_READ, MAP_SHARED | MAP_HWDP, fd, 0);
	CHECK(map != MAP_FAILED, "mmap");
	for (size_t p = 64; p < 256; p++) {
		fill(buf, 102, p);
		CHECK(pwrite(fd, buf, 1000, p * PAGE) == 1000, "first part");
		if (p % 16 == 0) {
			fsync(fd);
			madvise(map, 256 * PAGE, MADV_PAGEOUT);
			usleep(10000);
		}
		CHECK(!memcmp(map + p * PAGE, buf, 1000), "wrong content of page %zu", p);
		CHECK(!map[p * PAGE + 1000] && !map[p * PAGE + 4095],
		      "page %zu is not 0 after the end of the file", p);
		CHECK(pwrite(fd, buf + 1000, PAGE - 1000, p * PAGE + 1000) == PAGE - 1000,
		      "second part");
		CHECK(!memcmp(map + p * PAGE, buf, PAGE), "wrong content of page %zu", p);
	}
	if (!evict_settle(map, 256))
		return false;
	return served(map, 102, 0, 256, "after growing");
}

bool t_rearm_punch(void)
{
	char *map;
	int fd;

	if (!setup("rpunch", 103, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 128 * PAGE,
			 128 * PAGE), "punch: %s", strerror(errno));
	CHECK(!fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 256 * PAGE, 64 * PAGE), "collapse: %s",
	      strerror(errno));
	settle();
	for (size_t p = 128; p < 256; p++)
		CHECK(is_zero(map + p * PAGE), "page %zu is not 0", p);
	if (!served(map, 103, 0, 128, "before the hole"))
		return false;
	for (size_t p = 256; p < 448; p++)
		CHECK(same(map + p * PAGE, 103, p + 64), "wrong content of page %zu", p);
	return true;
}

struct writer {
	int fd;
	char *buf;
	uint64_t seed;
	bool ok;
};

static void *direct_writer(void *arg)
{
	struct writer *w = arg;

	w->ok = true;
	for (size_t p = 0; p < 512; p++) {
		fill(w->buf, w->seed, p);
		if (pwrite(w->fd, w->buf, PAGE, p * PAGE) != PAGE)
			w->ok = false;
	}
	return NULL;
}

/* A thread makes direct writes while another one misses. Afterwards hardware serves the new content. */
bool t_rearm_direct(void)
{
	struct writer w = { .seed = 105 };
	pthread_t thread;
	char *map;

	if (!setup("rdio", 104, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	w.fd = open(path("rdio"), O_RDWR | O_DIRECT);
	CHECK(w.fd >= 0 && !posix_memalign((void **)&w.buf, PAGE, PAGE), "O_DIRECT");
	for (int round = 0; round < 3; round++) {
		pthread_create(&thread, NULL, direct_writer, &w);
		for (size_t i = 0; i < 4096; i++) {
			size_t p = i * 2731 % 512;

			/* a page has the old or the new content */
			CHECK(same(map + p * PAGE, w.seed, p) ||
			      same(map + p * PAGE, w.seed - 1, p) ||
			      same(map + p * PAGE, w.seed, p), "page %zu is neither", p);
		}
		pthread_join(thread, NULL);
		CHECK(w.ok, "direct write");
		if (!read_all(map, w.seed, 0, 512) || !evict_settle(map, 512) ||
		    !served(map, w.seed, 0, 512, "after direct writes"))
			return false;
		w.seed++;
	}
	return true;
}

/* After fork() hardware serves the parent as before, also if page tables were copied. */
bool t_rearm_fork(void)
{
	for (int kind = 0; kind < 2; kind++) {
		int go[2], status;
		char *map, c;
		pid_t pid;

		if (!setup("rfork", 108, 1024, PROT_READ | PROT_WRITE,
			   kind ? MAP_PRIVATE : MAP_SHARED, &status, &map))
			return false;
		if (kind)
			map[1023 * PAGE] ^= 1;		/* page tables are copied */
		if (!read_all(map, 108, 0, 64) || pipe(go))
			return false;
		pid = fork();
		if (!pid) {
			close(go[1]);
			if (read(go[0], &c, 1) < 0)
				_exit(2);
			_exit(!read_all(map, 108, 0, 1023));
		}
		close(go[0]);
		settle();
		if (!served(map, 108, 64, 900, kind ? "private, parent" : "shared, parent"))
			return false;
		close(go[1]);
		waitpid(pid, &status, 0);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "child");
		munmap(map, 1024 * PAGE);
	}
	return true;
}

/* Two mappings of one file show the same bytes, also after evictions. Hardware serves the first. */
bool t_rearm_two(void)
{
	char *a, *b;

	if (!setup("rtwo", 109, 512, PROT_READ, MAP_SHARED, NULL, &a))
		return false;
	b = map_file("rtwo", 512, PROT_READ, MAP_SHARED, NULL);
	CHECK(b != MAP_FAILED, "mmap");
	for (int round = 0; round < 3; round++) {
		for (size_t p = 0; p < 512; p++) {
			CHECK(same((p % 2 ? a : b) + p * PAGE, 109, p),
			      "wrong content of page %zu in one mapping", p);
			CHECK(same((p % 2 ? b : a) + p * PAGE, 109, p),
			      "wrong content of page %zu in the other mapping", p);
		}
		madvise(a, 512 * PAGE, MADV_PAGEOUT);
		madvise(b, 512 * PAGE, MADV_PAGEOUT);
		usleep(20000);
	}
	munmap(b, 512 * PAGE);
	if (!evict_settle(a, 512))
		return false;
	return served(a, 109, 0, 512, "the first alone");
}

/* populate = async: mmap() arms nothing itself, kpoold does it soon after. */
bool t_populate_async(void)
{
	static const char setting[] = "/sys/kernel/mm/hwdp/populate";
	char *map;
	bool ok;

	if (!have_smu() || !put_text(setting, "async"))
		SKIP("no setting \"populate\"");
	ok = setup("pop", 110, 2048, PROT_READ, MAP_SHARED, NULL, &map);
	put_text(setting, "sync");
	if (!ok)
		return false;
	settle();
	if (!served(map, 110, 0, 2048, "after asynchronous population"))
		return false;
	munmap(map, 2048 * PAGE);

	/* unmap at once, while kpoold arms */
	put_text(setting, "async");
	for (int round = 0; round < 8 && ok; round++) {
		ok = setup("pop", 110, 2048, PROT_READ, MAP_SHARED, NULL, &map);
		usleep(round * 500);
		munmap(map, 2048 * PAGE);
	}
	put_text(setting, "sync");
	return ok;
}

/* Everything at once: readers, reclaim, writes, moves, forks; contents stay right. */
bool t_rearm_busy(void)
{
	struct endless e[READERS];
	bool ok = true;
	char *map;
	int fd;

	if (!setup("rbusy", 111, 1024, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	start_readers(e, map, 111, 1024);
	for (int round = 0; round < 40 && ok; round++) {
		char buf[PAGE];
		size_t p = round * 613 % 1024;
		pid_t pid;

		madvise(map, 1024 * PAGE, MADV_PAGEOUT);
		switch (round % 4) {
		case 0:
			fill(buf, 111, p);
			ok = pwrite(fd, buf, PAGE, p * PAGE) == PAGE;
			break;
		case 1:
			ok = pread(fd, buf, PAGE, p * PAGE) == PAGE && same(buf, 111, p);
			break;
		case 2:
			ok = !ftruncate(fd, 1025 * PAGE) && !ftruncate(fd, 1024 * PAGE);
			break;
		default:
			pid = fork();
			if (!pid)
				_exit(0);
			waitpid(pid, NULL, 0);
		}
		usleep(3000);
	}
	CHECK(stop_readers(e), "a reader saw a wrong page");
	CHECK(ok, "a write, read, truncate or fork failed");
	return true;
}

/* After a reset of the controller, hardware serves the mapping again. */
bool t_rearm_reset(void)
{
	char *map;

	if (!setup("rreset", 112, 1024, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 112, 0, 100))
		return false;
	for (int round = 0; round < 3; round++) {
		if (!put_text("/sys/class/nvme/nvme0/reset_controller", "1"))
			SKIP("no reset_controller");
		usleep(500000);
		settle();
		if (!served(map, 112, 100 + round * 300, 300, "after the reset"))
			return false;
	}
	return true;
}
