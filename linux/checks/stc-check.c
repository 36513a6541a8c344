// SPDX-License-Identifier: GPL-2.0
/*
 * Guest test of the software translation cache: no page fault is led to a page
 * table that has gone, or that is another's.
 *
 *	stc-check [-n FACTOR] [-r SEED] [-t SECONDS] DIR [NAME...]
 *
 * DIR is where a file can be made. -n multiplies the steps of each test (with
 * 256 and more, rss alone has a million faults for each thread), -r chooses other
 * orders, -t limits each test (default 120 s). The program runs on every kernel,
 * with the cache and without.
 *
 * What every page holds depends on its place and on a number that its mapping
 * alone has; a page read is compared with it. A fault that was served in a wrong
 * table leaves the right one as it was, so it comes back for ever: more faults
 * than the touches of pages explain end the test.
 */
#include "check-run.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define GB (1ul << 30)
#define TABLE 512ul		/* entries of a page table; pages below an entry of the PMD */
#define SPOTS 8ul		/* pages of a region that the tests touch */
#define THREADS 4

const char *program = "stc-check";
static const char *dir;
static unsigned factor = 1;
static uint64_t seed = 1;

/* --- Failures, and faults without end */

static unsigned long touches;

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, WHY_MAX, format, args);
	va_end(args);
	_exit(1);
}

#define NEED(cond, ...) do { if (!(cond)) die(__VA_ARGS__); } while (0)

/* A touch is at most a few faults: on the page, and on its tables' neighbours. */
static void *watch(void *arg)
{
	struct rusage now;

	for (;;) {
		getrusage(RUSAGE_SELF, &now);
		NEED((unsigned long)now.ru_minflt < 8 * __atomic_load_n(&touches, __ATOMIC_RELAXED) + 20000,
		     "%ld faults for %lu touches of pages", now.ru_minflt, touches);
		usleep(20000);
	}
	return arg;
}

/* In every process, as it begins. */
static void start_watch(void)
{
	pthread_t thread;

	touches = 0;
	NEED(!pthread_create(&thread, NULL, watch, NULL), "pthread_create");
}

/* --- Pages that can be told apart */

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static uint64_t next(uint64_t *state)
{
	return mix(*state += 0x9e3779b97f4a7c15ull);
}

/* A number that no other mapping has had, in this process or its relatives. */
static uint64_t fresh(void)
{
	static uint64_t last;

	return ((uint64_t)getpid() << 32) + __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static const unsigned places[] = { 0, 301, 511 };	/* words of a page that count */

/* Word @i of page @page of the mapping @gen; 0 is a page that nobody wrote. */
static uint64_t word(uint64_t gen, uint64_t page, unsigned i)
{
	return gen ? mix(gen * 0x10001 ^ page << 20 ^ places[i]) | 1 : 0;
}

static void put(char *region, uint64_t page, uint64_t gen)
{
	volatile uint64_t *w = (uint64_t *)(region + page * PAGE);

	__atomic_add_fetch(&touches, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 3; i++)
		w[places[i]] = word(gen, page, i);
}

/* Is it the page of @gen or, word by word, that of @other? */
static bool has_either(const char *region, uint64_t page, uint64_t gen, uint64_t other)
{
	const volatile uint64_t *w = (uint64_t *)(region + page * PAGE);

	__atomic_add_fetch(&touches, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t value = w[places[i]];

		if (value != word(gen, page, i) && value != word(other, page, i))
			return false;
	}
	return true;
}

static bool has(const char *region, uint64_t page, uint64_t gen)
{
	return has_either(region, page, gen, gen);
}

#define EXPECT(region, page, gen, what)					\
	NEED(has(region, page, gen), what ": wrong content of page %#lx at %p", (unsigned long)(page), (region))

/* --- Regions that have page tables of their own */

/*
 * @n-th region of 1 << @shift bytes that nothing else is near: shift 30, where a
 * PMD table serves it alone; 39, a PUD table; 48, a P4D table.
 */
static char *at(unsigned shift, unsigned n)
{
	return (char *)(((shift == 30 ? 64ul : 2ul) + n) << shift);
}

static bool reachable(unsigned shift)
{
	char *p = at(shift, 40), *q = mmap(p, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (q != MAP_FAILED)
		munmap(q, PAGE);
	return q == p;
}

#define EACH_REACH(shift) (unsigned shift = 30; shift <= 48 && reachable(shift); shift += 9)

/* Some page in each part of a region, each in a page table of its own. */
static uint64_t spot(unsigned shift, unsigned i)
{
	return ((1ul << shift) / PAGE / SPOTS) * i + 513 * (i + 1);
}

static char *map(char *p, size_t size, int flags, int fd)
{
	char *q = mmap(p, size, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | MAP_NORESERVE | flags |
		       (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	NEED(q == p, "mmap of %zu bytes at %p: %s", size, p, q == MAP_FAILED ? strerror(errno) : "elsewhere");
	return q;
}

static void unmap(char *p, size_t size)
{
	NEED(!munmap(p, size), "munmap of %zu bytes at %p: %s", size, p, strerror(errno));
}

/* A file in memory, as large as a region, with content of @gen in its spots. */
static int make_file(unsigned shift, uint64_t gen)
{
	int fd = memfd_create("stc-check", MFD_CLOEXEC);

	NEED(fd >= 0 && !ftruncate(fd, 1ul << shift), "memfd: %s", strerror(errno));
	for (unsigned i = 0; i < SPOTS; i++) {
		for (unsigned j = 0; j < 3; j++) {
			uint64_t value = word(gen, spot(shift, i), j);

			NEED(pwrite(fd, &value, 8, spot(shift, i) * PAGE + places[j] * 8) == 8, "write to memfd");
		}
	}
	return fd;
}

/* Go on on another processor, if there is one: its cache has seen other times. */
static void hop(unsigned n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(n % sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* --- Threads and processes */

static pthread_barrier_t barrier;
static bool stop;

struct worker {
	pthread_t thread;
	unsigned number;
	void (*body)(struct worker *worker);
	uint64_t gen, state;
	char *region;
	unsigned shift;
};

static void *work(void *arg)
{
	struct worker *worker = arg;

	worker->body(worker);
	return NULL;
}

static void start(struct worker *workers, unsigned count, void (*body)(struct worker *), char *region, uint64_t gen)
{
	stop = false;
	for (unsigned i = 0; i < count; i++) {
		workers[i].number = i;
		workers[i].body = body;
		workers[i].gen = gen;
		workers[i].state = seed * 1000 + i;
		workers[i].region = region;
		NEED(!pthread_create(&workers[i].thread, NULL, work, &workers[i]), "pthread_create");
	}
}

static void join(struct worker *workers, unsigned count)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
}

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

/* Faults in a region of its own, far from those of the tests, until it is stopped. */
static void be_busy(struct worker *worker)
{
	char *region = map(at(30, 40 + worker->number), GB, MAP_PRIVATE, -1);

	while (!stopped()) {
		uint64_t gen = fresh();

		for (unsigned i = 0; i < SPOTS; i++) {
			EXPECT(region, spot(30, i), 0, "neighbour, new");
			put(region, spot(30, i), gen);
		}
		for (unsigned i = 0; i < SPOTS; i++)
			EXPECT(region, spot(30, i), gen, "neighbour");
		if (next(&worker->state) % 2) {
			madvise(region, GB, MADV_DONTNEED);
		} else {
			unmap(region, GB);
			map(region, GB, MAP_PRIVATE, -1);
		}
	}
	unmap(region, GB);
}

/* Run @body in a process of its own. */
static pid_t spawn(void (*body)(void *arg), void *arg)
{
	pid_t pid = fork();

	NEED(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		body(arg);
		_exit(0);
	}
	return pid;
}

static void finish(pid_t pid, int wanted)
{
	int status;

	NEED(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	status = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	if (status != wanted && *why)
		_exit(1);
	NEED(status == wanted, "a process ended with %d", status);
}

/* --- Counters */

/* A line of /proc/self/status, in pages. Without stdio, which would touch pages itself. */
static long status_pages(const char *name)
{
	static char text[8192];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t size = read(fd, text, sizeof(text) - 1);
	char *line;

	close(fd);
	text[size < 0 ? 0 : size] = 0;
	line = strstr(text, name);
	NEED(line, "no %s in /proc/self/status", name);
	return strtol(line + strlen(name), NULL, 10) * 1024 / (long)PAGE;
}

#define RSS_THREADS 8
#define RSS_TABLES 32ul		/* PTE tables of a thread's pages */
#define RSS_PAGES 256ul		/* its pages of each kind */

/* Two threads share a region: each has one half of each PTE table. */
static uint64_t rss_page(unsigned thread, unsigned i)
{
	return i % RSS_TABLES * TABLE + thread % 2 * (TABLE / 2) + i / RSS_TABLES;
}

static char *rss_regions[3];	/* anonymous, memory file, file */
static const char * const rss_names[] = { "RssAnon:", "RssShmem:", "RssFile:" };
static const unsigned long rss_size[] = { 4 * GB, GB, GB };

static void rss_round(struct worker *worker, uint64_t gen, bool last)
{
	for (unsigned kind = 0; kind < 3; kind++) {
		char *region = rss_regions[kind];
		unsigned pages = kind == 0 ? RSS_PAGES : RSS_PAGES / 8, thread = worker->number;

		/* the files' regions are of all, a page of a table each */
		if (kind == 0)
			region += thread / 2 * GB;
		for (unsigned i = 0; i < pages; i++) {
			uint64_t page = kind == 0 ? rss_page(thread, i) : i * TABLE + thread;

			put(region, page, gen);
			EXPECT(region, page, gen, "rss");
			if (kind && !last)
				madvise(region + page * PAGE, PAGE, MADV_DONTNEED);
		}
		for (unsigned i = 0; !kind && !last && i < RSS_TABLES; i++)
			madvise(region + rss_page(thread, i) * PAGE, TABLE / 2 * PAGE, MADV_DONTNEED);
	}
}

static void rss_work(struct worker *worker)
{
	unsigned rounds = 4 * factor;

	rss_round(worker, fresh(), false);
	pthread_barrier_wait(&barrier);		/* the stack and all else is there */
	pthread_barrier_wait(&barrier);
	for (unsigned round = 0; round < rounds; round++)
		rss_round(worker, fresh(), round == rounds - 1);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
}

/* The kernel's counts are exact, and again when the process ends (its own check says BUG). */
static bool t_rss(void)
{
	const long touched[] = { RSS_THREADS * RSS_PAGES, RSS_THREADS * RSS_PAGES / 8, RSS_THREADS * RSS_PAGES / 8 };
	/* PTE tables, and a PMD table for each GB */
	const long tables = 4 * RSS_TABLES + 4 + 2 * (RSS_PAGES / 8 + 1);
	struct worker workers[RSS_THREADS];
	long before[3], found, table_pages;
	char *name;
	int fds[3] = { -1, memfd_create("rss", MFD_CLOEXEC) };

	NEED(asprintf(&name, "%s/stc-check", dir) > 0, "no memory");
	fds[2] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	unlink(name);
	NEED(fds[1] >= 0 && fds[2] >= 0 && !ftruncate(fds[1], GB) && !ftruncate(fds[2], GB), "%s: %s", name, strerror(errno));
	pthread_barrier_init(&barrier, NULL, RSS_THREADS + 1);
	for (unsigned kind = 0; kind < 3; kind++)
		rss_regions[kind] = map(at(30, 8 * kind), rss_size[kind], kind ? MAP_SHARED : MAP_PRIVATE, fds[kind]);
	start(workers, RSS_THREADS, rss_work, NULL, 0);
	pthread_barrier_wait(&barrier);
	status_pages("VmPTE:");
	table_pages = status_pages("VmPTE:");
	for (unsigned kind = 0; kind < 3; kind++)
		before[kind] = status_pages(rss_names[kind]);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (unsigned kind = 0; kind < 3; kind++) {
		found = status_pages(rss_names[kind]) - before[kind];
		NEED(found == touched[kind], "%s %ld pages more, %ld were touched", rss_names[kind], found, touched[kind]);
	}
	found = status_pages("VmPTE:");
	NEED(found == table_pages, "VmPTE: %ld pages of tables before and %ld after", table_pages, found);
	for (unsigned kind = 0; kind < 3; kind++)
		unmap(rss_regions[kind], rss_size[kind]);
	found = status_pages("VmPTE:");
	NEED(found + tables == table_pages, "VmPTE: %ld pages of tables went, %ld were there", table_pages - found, tables);
	pthread_barrier_wait(&barrier);
	join(workers, RSS_THREADS);
	return true;
}

/* --- Page tables that are freed */

/*
 * Map, fault, unmap, let others have the page tables, map at the same place, fault:
 * everybody's pages are right. @n: the first of the places, which are this caller's.
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
	/* As many tables as have been freed; one page in two stays untouched. */
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
	/* in one go, and one by one */
	if (next(state) % 2)
		unmap(region, 5 * size);
	for (unsigned k = 0; k <= 4; k++)
		munmap(at(shift, n + k), size);
	close(fd);
}

static bool t_munmap(void)
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

static bool t_munmap_threads(void)
{
	struct worker workers[THREADS];

	start(workers, THREADS, reuse_work, NULL, 0);
	join(workers, THREADS);
	return true;
}

/* Take page tables, so that those which were freed are somebody's. */
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

/* A mapping that gets smaller and grows again where it is: the area itself lives on. */
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
 * Each round alone, where nobody else's munmap empties the cache in time, and
 * among threads that fault, map and unmap.
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

static bool t_shrink(void)
{
	return quiet_and_busy(shrink_and_grow);
}

/*
 * The border of two areas moves down and up again, and the page tables between go
 * meanwhile: the lower area is the same all the time. (munmap alone leaves a new
 * area where it splits one.)
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

static bool t_border(void)
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

static bool t_stack(void)
{
	return quiet_and_busy(grow_stack);
}

/* --- Page tables that move */

static void move(unsigned shift, unsigned round)
{
	const size_t size = 1ul << shift;
	const bool shared = round % 2, keep = round / 2 % 2;
	uint64_t gen = fresh(), old = fresh(), others = fresh();
	/* of a page that nobody wrote */
	const uint64_t untouched = shared ? gen : 0;
	char *from = at(shift, 0), *to = at(shift, 1);
	int fd = shared ? make_file(shift, gen) : -1;

	/* the new place has been in use as well */
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
	/* and back: the old place is a new one now */
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
	/* 48 only takes longer: a P4D table is never moved as a whole */
	for (unsigned round = 0; shift < 48 && round < 8 * factor; round++)
		move(shift, round);
}

static bool t_mremap(void)
{
	return quiet_and_busy(move_rounds);
}

/* --- One area, many tables: addresses that have parts in common */

static bool t_tags(void)
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

/* --- Areas that are split, merged, advised and collapsed under threads */

#define ADVISED 64ul			/* pages of each piece of 2 MB that are touched */
#define PIECES 4ul

/* Write and read pages of an anonymous region: each is as written, or has been dropped. */
static void use_anonymous(struct worker *worker)
{
	while (!stopped()) {
		uint64_t page = next(&worker->state) % PIECES * TABLE + next(&worker->state) % ADVISED * THREADS + worker->number;

		NEED(has_either(worker->region, page, worker->gen, 0), "advised: wrong content of page %#lx", page);
		put(worker->region, page, worker->gen);
	}
}

/* The same for a file in memory: always as written. */
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
		case 1:	/* areas split */
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
		/* one moment in which the threads, not the steps, have the processors */
		if (step % 8 == 0)
			usleep(200);
	}
	join(workers, THREADS);
	unmap(region, GB + size);
	close(fd);
}

static bool t_advice(void)
{
	advise(false);
	return true;
}

static void put_text(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		perror(file);
	close(fd);
}

#define HUGEPAGES "/sys/kernel/mm/transparent_hugepage/"

static bool t_collapse(void)
{
	char *region = map(at(30, 0), TABLE * PAGE, MAP_PRIVATE, -1);
	bool can;

	put(region, 0, 1);
	can = !madvise(region, TABLE * PAGE, MADV_COLLAPSE) || errno != EINVAL;
	unmap(region, TABLE * PAGE);
	if (!can)
		SKIP("no huge pages: %s", strerror(errno));
	/* khugepaged beside it */
	put_text(HUGEPAGES "khugepaged/scan_sleep_millisecs", "1");
	put_text(HUGEPAGES "khugepaged/alloc_sleep_millisecs", "1");
	put_text(HUGEPAGES "enabled", "always");
	advise(true);
	put_text(HUGEPAGES "enabled", "madvise");
	put_text(HUGEPAGES "khugepaged/scan_sleep_millisecs", "10000");
	return true;
}

/* --- Processes */

#define FORK_SPOTS 64ul

static uint64_t fork_page(unsigned i)
{
	return i % 32 * TABLE * 16 + i / 32;
}

/* Write the untouched half of the pages, thread by thread. */
static void fill_half(struct worker *worker)
{
	for (unsigned i = FORK_SPOTS / 2 + worker->number; i < FORK_SPOTS; i += 3)
		put(worker->region, fork_page(i), worker->gen);
}

static void fork_child(void *arg)
{
	struct worker *parent = arg, workers[3];
	uint64_t gen = fresh();

	for (unsigned i = 0; i < FORK_SPOTS; i++)
		NEED(has_either(parent->region, fork_page(i), parent->gen, i < FORK_SPOTS / 2 ? parent->gen : 0),
		     "child: wrong content of page %#lx", fork_page(i));
	start(workers, 3, fill_half, parent->region, gen);
	for (unsigned i = 0; i < FORK_SPOTS / 2; i++)
		put(parent->region, fork_page(i), gen);
	join(workers, 3);
	for (unsigned i = 0; i < FORK_SPOTS; i++)
		EXPECT(parent->region, fork_page(i), gen, "child's own");
}

static bool t_fork(void)
{
	for (unsigned round = 0; round < 8 * factor; round++) {
		struct worker workers[3];
		uint64_t gen = fresh();
		char *region = map(at(30, 0), 2 * GB, MAP_PRIVATE, -1);
		pid_t pids[2];

		for (unsigned i = 0; i < FORK_SPOTS / 2; i++)
			put(region, fork_page(i), gen);
		start(workers, 3, fill_half, region, gen);
		for (unsigned i = 0; i < 2; i++)
			pids[i] = spawn(fork_child, &workers[0]);
		join(workers, 3);
		for (unsigned i = 0; i < FORK_SPOTS; i++) {
			EXPECT(region, fork_page(i), gen, "parent");
			put(region, fork_page(i), gen);
		}
		for (unsigned i = 0; i < 2; i++)
			finish(pids[i], 0);
		for (unsigned i = 0; i < FORK_SPOTS; i++)
			EXPECT(region, fork_page(i), gen, "parent at the end");
		unmap(region, 2 * GB);
	}
	return true;
}

static void end_busy(void *arg)
{
	char *argv[] = { "stc-check", NULL }, *env[] = { NULL };
	struct worker workers[THREADS];
	unsigned way = *(unsigned *)arg;

	start(workers, THREADS, be_busy, NULL, 0);
	usleep(500 + 137 * way);
	switch (way % 3) {
	case 0:
		_exit(2);
	case 1:
		/* without arguments this program says how it is used, and exits with 2 */
		if (freopen("/dev/null", "w", stderr))
			execve("/proc/self/exe", argv, env);
		_exit(3);
	default:
		kill(getpid(), SIGKILL);
		pause();
	}
}

/* exit, exec and kill while threads fault. */
static bool t_end(void)
{
	for (unsigned round = 0; round < 9 * factor; round++) {
		pid_t pid = spawn(end_busy, &round);

		finish(pid, round % 3 == 2 ? -SIGKILL : 2);
	}
	return true;
}

#define TURNERS 5u

static struct turner {
	int mine, theirs;	/* ends of pipes: the turn comes, the turn goes */
	unsigned number, turns;
} turners[TURNERS];

/* The same addresses in each process, other contents; some tables come and go. */
static void take_turns(void *arg)
{
	struct turner *turner = arg;
	uint64_t gen = fresh(), state = seed + turner->number;
	char *region = map(at(30, 0), 4 * GB, MAP_PRIVATE, -1), token;
	uint64_t start = 0, end = 0;

	for (unsigned turn = 0; turn < turner->turns; turn++) {
		NEED(read(turner->mine, &token, 1) == 1, "no turn");
		/* new pages, where another has just had its own */
		for (unsigned i = 0; i < 4; i++) {
			uint64_t page = end % 4 * (GB / PAGE) + end / 4 * TABLE + end % 512;

			EXPECT(region, page, 0, "new in this process");
			put(region, page, gen);
			end++;
		}
		for (uint64_t i = start; i < end; i++) {
			uint64_t page = i % 4 * (GB / PAGE) + i / 4 * TABLE + i % 512;

			EXPECT(region, page, gen, "in this process");
		}
		if (next(&state) % 4 == 0) {
			unmap(region, 4 * GB);
			map(region, 4 * GB, MAP_PRIVATE, -1);
			start = end = next(&state) % 100;
			gen = fresh();
		}
		NEED(write(turner->theirs, &token, 1) == 1, "no next turn");
	}
}

/* Address spaces take turns on one processor, end, and begin anew. */
static bool t_turns(void)
{
	int pipes[TURNERS][2];
	pid_t pids[TURNERS];

	hop(0);
	for (unsigned i = 0; i < TURNERS; i++)
		NEED(!pipe(pipes[i]), "pipe");
	for (unsigned round = 0; round < 3 * factor; round++) {
		char token = 1;

		for (unsigned i = 0; i < TURNERS; i++) {
			turners[i] = (struct turner){ pipes[i][0], pipes[(i + 1) % TURNERS][1], i, 12 };
			pids[i] = spawn(take_turns, &turners[i]);
		}
		NEED(write(pipes[0][1], &token, 1) == 1, "pipe");
		for (unsigned i = 0; i < TURNERS; i++)
			finish(pids[i], 0);
		NEED(read(pipes[0][0], &token, 1) == 1, "pipe");
	}
	return true;
}

/* --- All at once */

#define SLOTS 4u

/* Each thread has slots of 1 GB. What it does with them changes the tables of all. */
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
				/* halves that did not merge stay; what was at the new place does not */
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
		case 16:	/* half of it goes */
			unmap(slot->region + GB / 2, GB / 2);
			map(slot->region + GB / 2, GB / 2, MAP_PRIVATE, -1);
			memset(slot->gen + SPOTS / 2, 0, sizeof(slot->gen) / 2);
			break;
		case 17:
			madvise((char *)((uintptr_t)(slot->region + spot(30, i) * PAGE) & -(TABLE * PAGE)), TABLE * PAGE,
				MADV_COLLAPSE);
			/* a huge page is 2 MB of memory: not many at a time */
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

static bool t_storm(void)
{
	struct worker workers[THREADS + 1];

	start(workers, THREADS, storm_work, NULL, 0);
	start(workers + THREADS, 1, be_busy, NULL, 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	join(workers + THREADS, 1);
	return true;
}

/* --- It is there */

static long vmstat(const char *name)
{
	FILE *f = fopen("/proc/vmstat", "r");
	long value, found = -1;
	char key[80];

	while (f && fscanf(f, "%79s %ld", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

/* Faults find their tables in the cache, where the kernel counts that. */
static bool t_hits(void)
{
	long hits = vmstat("stc_hit_pmd"), misses = vmstat("stc_miss");
	char *region = map(at(30, 0), GB, MAP_PRIVATE, -1);

	if (hits < 0 || hits + misses == 0)
		SKIP("nothing is counted");
	for (unsigned page = 0; page < 1000; page++)
		put(region, page, 1);
	hits = vmstat("stc_hit_pmd") - hits;
	NEED(hits > 900, "%ld hits of 1000 faults in one table", hits);
	return true;
}

static const struct test tests[] = {
	{ "hits", t_hits, false },
	{ "rss", t_rss, false },
	{ "munmap", t_munmap, false },
	{ "munmap_threads", t_munmap_threads, false },
	{ "shrink", t_shrink, false },
	{ "border", t_border, false },
	{ "stack", t_stack, false },
	{ "mremap", t_mremap, false },
	{ "tags", t_tags, false },
	{ "advice", t_advice, false },
	{ "collapse", t_collapse, false },
	{ "fork", t_fork, false },
	{ "end", t_end, false },
	{ "turns", t_turns, false },
	{ "storm", t_storm, false },
};

/*
 * An address space goes, and the kernel looks at its counts, when the last
 * processor has let go of it; an idle one keeps it. So be on each for a moment.
 */
static bool after_test(bool ok)
{
	cpu_set_t all;

	(void)ok;
	sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
		hop(cpu);
	sched_setaffinity(0, sizeof(all), &all);
	return true;
}

/* What was booted: the kernel's own words about the cache, and the levels of page tables. */
static void introduce(void)
{
	static char log[1 << 16];
	int size = klogctl(3, log, sizeof(log) - 1), levels = 3;

	for (char *line = strtok(size > 0 ? log : NULL, "\n"); line; line = strtok(NULL, "\n")) {
		char *words = strstr(line, "stc: ");

		if (words)
			puts(words);
	}
	for (unsigned shift = 39; shift <= 48 && reachable(shift); shift += 9)
		levels++;
	printf("page tables of %d levels, %ld processors\n", levels, sysconf(_SC_NPROCESSORS_ONLN));
}

int main(int argc, char **argv)
{
	unsigned limit_s = 120;
	int opt;

	while ((opt = getopt(argc, argv, "n:r:t:")) > 0) {
		switch (opt) {
		case 'n':
			factor = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			seed = strtoul(optarg, NULL, 0);
			break;
		case 't':
			limit_s = strtoul(optarg, NULL, 0);
			break;
		default:
			optind = argc;
		}
	}
	if (optind >= argc || !factor || !limit_s) {
		fprintf(stderr, "usage: stc-check [-n FACTOR] [-r SEED] [-t SECONDS] DIR [NAME...]\n");
		return 2;
	}
	dir = argv[optind++];
	pthread_atfork(NULL, NULL, start_watch);
	setvbuf(stdout, NULL, _IOLBF, 0);
	introduce();
	put_text(HUGEPAGES "enabled", "madvise");
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argv + optind, limit_s, after_test);
}
