// SPDX-License-Identifier: GPL-2.0
/* Calls that take a range of the mapping. REQ: OS-8 */
#include "check.h"
#include <sys/syscall.h>

#define N 512ul

/*
 * Read the first 64 pages, give advice for all pages or those in the middle, and read
 * all pages. Then write to the file: the mapping must show the new bytes.
 */
static bool advise(int advice, uint64_t seed, bool whole, int expected)
{
	size_t from = whole ? 0 : 32, pages = whole ? N : 200;
	char *map, page[PAGE];
	int fd, got;

	if (!setup("advice", seed, N, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, seed, 0, 64))
		return false;
	got = madvise(map + from * PAGE, pages * PAGE, advice) ? errno : 0;
	if (got == EINVAL && !expected)
		SKIP("this kernel has no advice %d", advice);
	CHECK(got == expected, "advice for %s: %s", whole ? "all" : "the middle", strerror(got));
	if (!read_all(map, seed, 0, N))
		return false;
	for (size_t p = 0; p < N; p += 3) {
		fill(page, seed + 1, p);
		CHECK(pwrite(fd, page, PAGE, p * PAGE) == PAGE, "pwrite");
	}
	for (size_t p = 0; p < N; p++)
		CHECK(same(map + p * PAGE, p % 3 ? seed : seed + 1, p),
		      "wrong content of changed page %zu", p);
	munmap(map, N * PAGE);
	close(fd);
	return true;
}

static bool advise_both(int advice, uint64_t seed, int expected)
{
	return advise(advice, seed, true, expected) && advise(advice, seed, false, expected);
}

bool t_dontneed(void) { return advise_both(MADV_DONTNEED, 100, 0); }
bool t_willneed(void) { return advise_both(MADV_WILLNEED, 102, 0); }
bool t_cold(void) { return advise_both(MADV_COLD, 104, 0); }
bool t_pageout(void) { return advise_both(MADV_PAGEOUT, 106, 0); }
bool t_free(void) { return advise_both(MADV_FREE, 108, EINVAL); }
bool t_populate_read(void) { return advise_both(22 /* MADV_POPULATE_READ */, 110, 0); }

/* After MADV_POPULATE_READ, all pages are in memory. */
bool t_populate_read_now(void)
{
	unsigned char vec[N];
	char *map;

	if (!setup("popr", 112, N, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	CHECK(!madvise(map, N * PAGE, 22 /* MADV_POPULATE_READ */), "populate: %s",
	      strerror(errno));
	CHECK(!mincore(map, N * PAGE, vec), "mincore");
	for (size_t p = 0; p < N; p++)
		CHECK(vec[p] & 1, "page %zu is not in memory", p);
	return read_all(map, 112, 0, N);
}

bool t_populate_write(void)
{
	char *map, page[PAGE];
	int fd;

	if (!setup("popw", 113, N, PROT_READ | PROT_WRITE, MAP_PRIVATE, &fd, &map))
		return false;
	if (!read_all(map, 113, 0, 64))
		return false;
	CHECK(!madvise(map, N / 2 * PAGE, 23 /* MADV_POPULATE_WRITE */), "populate: %s",
	      strerror(errno));
	/* the first half are private copies now, which do not show the file's changes */
	for (size_t p = 0; p < N; p++) {
		fill(page, 114, p);
		CHECK(pwrite(fd, page, PAGE, p * PAGE) == PAGE, "pwrite");
	}
	return read_all(map, 113, 0, N / 2) && read_all(map + N / 2 * PAGE, 114, N / 2, N / 2);
}

/* MADV_REMOVE punches a hole into the file. */
bool t_remove(void)
{
	char *map, *other;
	int fd;

	if (!setup("remove", 115, N, PROT_READ | PROT_WRITE, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 115, 0, 64))
		return false;
	CHECK(!madvise(map + 32 * PAGE, 200 * PAGE, MADV_REMOVE), "remove: %s", strerror(errno));
	other = mmap(NULL, N * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	for (size_t p = 0; p < N; p++) {
		bool gone = p >= 32 && p < 232;

		CHECK(gone ? is_zero(map + p * PAGE) : same(map + p * PAGE, 115, p),
		      "wrong content of page %zu", p);
		CHECK(gone ? is_zero(other + p * PAGE) : same(other + p * PAGE, 115, p),
		      "wrong content of file's page %zu", p);
	}
	return true;
}

bool t_mlock_onfault(void)
{
	unsigned char vec[N];
	char *map;

	if (!setup("onfault", 116, N, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 116, 0, 64))
		return false;
	CHECK(!mlock2(map, N * PAGE, MLOCK_ONFAULT), "mlock2: %s", strerror(errno));
	if (!read_all(map, 116, 0, 128))
		return false;
	drop_caches();
	CHECK(!mincore(map, N * PAGE, vec), "mincore");
	for (size_t p = 0; p < 128; p++)
		CHECK(vec[p] & 1, "locked page %zu is not in memory", p);
	munlock(map, N * PAGE);
	return read_all(map, 116, 0, N);
}

/* The mapping is locked from the start: all its pages are in memory at once. */
bool t_mlockall(void)
{
	unsigned char vec[N];
	char *map;
	bool ok;

	CHECK(!mlockall(MCL_FUTURE), "mlockall: %s", strerror(errno));
	ok = setup("lockall", 117, N, PROT_READ, MAP_SHARED, NULL, &map);
	munlockall();
	if (!ok)
		return false;
	CHECK(!mincore(map, N * PAGE, vec), "mincore");
	for (size_t p = 0; p < N; p++)
		CHECK(vec[p] & 1, "page %zu is not in memory", p);
	return read_all(map, 117, 0, N);
}

bool t_msync(void)
{
	static const int how[] = { MS_ASYNC, MS_SYNC, MS_INVALIDATE, MS_SYNC | MS_INVALIDATE };
	char *map, page[PAGE];
	int fd;

	if (!setup("msync", 118, N, PROT_READ | PROT_WRITE, MAP_SHARED, &fd, &map))
		return false;
	for (unsigned i = 0; i < 4; i++) {
		for (size_t p = i; p < N; p += 8)
			CHECK(same(map + p * PAGE, 118, p), "wrong content of page %zu", p);
		for (size_t p = i; p < N; p += 16)
			fill(map + p * PAGE, 119, p);
		CHECK(!msync(map, N * PAGE, how[i]), "msync %d: %s", how[i], strerror(errno));
	}
	for (size_t p = 4; p < N; p += 8)
		CHECK(same(map + p * PAGE, 118, p), "wrong content of page %zu", p);
	CHECK(!fsync(fd) && !fdatasync(fd), "fsync");
	munmap(map, N * PAGE);
	drop_caches();
	for (size_t p = 0; p < N; p++) {
		CHECK(pread(fd, page, PAGE, p * PAGE) == PAGE &&
		      same(page, p % 16 < 4 ? 119 : 118, p),
		      "wrong content of page %zu of the file", p);
	}
	return true;
}

/* mincore() reports the pages that were read. If a unit serves misses, it reports no others. */
bool t_mincore(void)
{
	unsigned char vec[N];
	char *map;

	if (!setup("core", 120, N, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	for (size_t p = 0; p < N; p += 2)
		CHECK(same(map + p * PAGE, 120, p), "wrong content of page %zu", p);
	CHECK(!mincore(map, N * PAGE, vec), "mincore: %s", strerror(errno));
	for (size_t p = 0; p < N; p++)
		CHECK((vec[p] & 1) == !(p % 2) || (!have_smu() && p % 2), "page %zu: %d", p,
		      vec[p]);
	return true;
}

/* The value in kB of a line of smaps that is about the mapping. */
static long smaps(const char *map, const char *line)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char text[512], start[32];
	bool inside = false;
	long value = -1;

	snprintf(start, sizeof(start), "%lx-", (unsigned long)map);
	while (f && value < 0 && fgets(text, sizeof(text), f)) {
		if (strchr(text, '-') && strspn(text, "0123456789abcdef") >= 6)
			inside = !strncmp(text, start, strlen(start));
		else if (inside && !strncmp(text, line, strlen(line)))
			sscanf(text + strlen(line), ": %ld", &value);
	}
	if (f)
		fclose(f);
	return value;
}

bool t_smaps(void)
{
	long rss;
	char *map;

	if (!setup("smaps", 121, N, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 121, 0, 100))
		return false;
	rss = smaps(map, "Rss");
	/* without hardware, a fault maps neighbouring pages, too */
	CHECK(have_smu() ? rss == 400 : rss >= 400, "Rss is %ld kB", rss);
	CHECK(smaps(map, "Pss") == rss, "Pss is %ld kB of %ld", smaps(map, "Pss"), rss);
	CHECK(smaps(map, "Swap") == 0, "Swap is %ld kB", smaps(map, "Swap"));
	CHECK(smaps(map, "Locked") == 0, "Locked is %ld kB", smaps(map, "Locked"));
	return read_all(map, 121, 0, N);
}

/* The resident set in /proc soon includes the pages that were read; after munmap() it does not. */
bool t_rss(void)
{
	long pages = 0, before = 0, dummy;
	FILE *f = fopen("/proc/self/statm", "r");
	char *map;

	if (!setup("rss", 122, 2048, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	CHECK(fscanf(f, "%ld %ld %ld", &dummy, &dummy, &before) == 3, "statm");
	if (!read_all(map, 122, 0, 2048))
		return false;
	for (int tries = 0; tries < 40 && pages - before < 2048; tries++) {
		usleep(100000);
		f = freopen("/proc/self/statm", "r", f);
		CHECK(fscanf(f, "%ld %ld %ld", &dummy, &dummy, &pages) == 3, "statm");
	}
	CHECK(pages - before >= 2000 && pages - before <= 2100, "%ld file pages more",
	      pages - before);
	munmap(map, 2048 * PAGE);
	f = freopen("/proc/self/statm", "r", f);
	CHECK(fscanf(f, "%ld %ld %ld", &dummy, &dummy, &pages) == 3, "statm");
	CHECK(labs(pages - before) < 100, "%ld file pages left", pages - before);
	return true;
}

/* Change the protection of a range in all ways. An access that is forbidden must fail. */
static bool protect(size_t from, size_t pages, uint64_t seed)
{
	static const int steps[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ,
		PROT_NONE, PROT_READ | PROT_WRITE, PROT_NONE, PROT_READ };
	char *map;

	if (!setup("protect", seed, N, PROT_READ, MAP_PRIVATE, NULL, &map))
		return false;
	if (!read_all(map, seed, 0, 40))
		return false;
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		CHECK(!mprotect(map + from * PAGE, pages * PAGE, steps[i]), "step %u: %s", i,
		      strerror(errno));
		for (size_t p = i; p < N; p += 11) {
			bool inside = p >= from && p < from + pages;
			int sig = touch(map + p * PAGE);

			CHECK(sig == (inside && steps[i] == PROT_NONE ? SIGSEGV : 0),
			      "page %zu gave signal %d in step %u", p, sig, i);
			CHECK(sig || same(map + p * PAGE, seed, p),
			      "wrong content of page %zu in step %u", p, i);
			if (inside && steps[i] & PROT_WRITE)
				fill(map + p * PAGE, seed, p);
		}
	}
	return read_all(map, seed, 0, N);
}

bool t_protect_all(void) { return protect(0, N, 123); }
bool t_protect_middle(void) { return protect(30, 100, 124); }

/* A store to a page that may not be written is SIGSEGV, before and after a read. */
bool t_read_only(void)
{
	char *map;

	if (!setup("ro", 125, 64, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	for (size_t p = 0; p < 64; p++) {
		int status;
		pid_t pid;

		if (p % 2)
			CHECK(same(map + p * PAGE, 125, p), "wrong content of page %zu", p);
		if (p % 8 > 1)
			continue;
		pid = vfork();	/* unlike fork(), it leaves the mapping as it is */
		if (!pid) {
			*(volatile char *)(map + p * PAGE) = 1;
			_exit(0);
		}
		waitpid(pid, &status, 0);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "page %zu was written", p);
	}
	return read_all(map, 125, 0, 64);
}

/* mremap() grows and shrinks the whole mapping, and may move it. */
bool t_mremap_grow(void)
{
	char *map, *to;

	if (!make_file("grow", 126, N))
		return false;
	drop_caches();
	map = map_file("grow", N / 2, PROT_READ, MAP_SHARED, NULL);
	CHECK(map != MAP_FAILED, "mmap");
	if (!read_all(map, 126, 0, 64))
		return false;
	to = mremap(map, N / 2 * PAGE, N * PAGE, MREMAP_MAYMOVE);
	CHECK(to != MAP_FAILED, "mremap: %s", strerror(errno));
	if (!read_all(to, 126, 0, 400))
		return false;
	to = mremap(to, N * PAGE, N / 4 * PAGE, MREMAP_MAYMOVE);
	CHECK(to != MAP_FAILED, "shrink: %s", strerror(errno));
	CHECK(touch(to + N / 4 * PAGE) == SIGSEGV || to == MAP_FAILED, "the rest is still there");
	return read_all(to, 126, 0, N / 4);
}

/* mremap() moves the whole mapping to another place. */
bool t_mremap_move(void)
{
	char *map, *to = mmap(NULL, N * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!setup("move", 127, N, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 127, 0, 64))
		return false;
	CHECK(mremap(map, N * PAGE, N * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to,
	      "mremap: %s", strerror(errno));
	CHECK(touch(map + 100 * PAGE) == SIGSEGV, "still at the old place");
	CHECK(touch(map + 10 * PAGE) == SIGSEGV, "a read page is still at the old place");
	return read_all(to, 127, 0, N);
}

/*
 * Advice for a part of the mapping merges this part with its ordinary neighbour. From then on
 * hardware serves no page of this part: a mapping made over the part shows its own file, and
 * the first file keeps its bytes.
 */
static bool advice_merges(bool right)
{
	size_t half = N / 2, part = 64, from = right ? 0 : half, moved = right ? half - part : half;
	int fd, other = syscall(SYS_memfd_create, "other", 0);
	char *base, *over, page[PAGE];

	CHECK(other >= 0 && !ftruncate(other, part * PAGE), "memfd: %s", strerror(errno));
	if (!make_file("merge", 121, N))
		return false;
	drop_caches();
	fd = open(path("merge"), O_RDONLY);
	base = mmap(NULL, N * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(base != MAP_FAILED, "mmap: %s", strerror(errno));
	CHECK(mmap(base + from * PAGE, half * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_HWDP, fd,
		   from * PAGE) != MAP_FAILED, "mmap: %s", strerror(errno));
	CHECK(!madvise(base + (half - from) * PAGE, half * PAGE, MADV_RANDOM), "advice for the neighbour");
	/* the second miss arms the rest of the table */
	for (size_t p = 100; p < 200; p += 40)
		CHECK(same(base + (from + p) * PAGE, 121, from + p),
		      "wrong content of page %zu", from + p);
	CHECK(!madvise(base + moved * PAGE, part * PAGE, MADV_RANDOM), "advice for a part");
	over = mmap(base + moved * PAGE, part * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		    other, 0);
	CHECK(over != MAP_FAILED, "mmap over it: %s", strerror(errno));
	for (size_t p = 0; p < part; p++) {
		CHECK(is_zero(over + p * PAGE), "page %zu is not of the file mapped last", p);
		fill(over + p * PAGE, 122, p);
	}
	for (size_t p = 0; p < N; p++)
		CHECK(pread(fd, page, PAGE, p * PAGE) == PAGE && same(page, 121, p),
		      "page %zu of a file that cannot be written", p);
	munmap(base, N * PAGE);
	close(other);
	close(fd);
	return true;
}

bool t_advice_merges(void) { return advice_merges(false) && advice_merges(true); }
