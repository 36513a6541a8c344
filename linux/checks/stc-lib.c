// SPDX-License-Identifier: GPL-2.0
/* What the parts of stc-check share: pages that can be told apart, regions, threads, processes. */
#include "stc.h"
#include <sched.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* --- Failures, and faults without end */

static unsigned long touches;

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, WHY_MAX, format, args);
	va_end(args);
	_exit(1);
}

/* End the process if it has far more faults than touches of pages: a touch causes a few at most. */
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

/* Called by every process when it begins. */
void start_watch(void)
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

uint64_t next(uint64_t *state)
{
	return mix(*state += 0x9e3779b97f4a7c15ull);
}

/* A number that no other mapping has had, in this process or its relatives. */
uint64_t fresh(void)
{
	static uint64_t last;

	return ((uint64_t)getpid() << 32) + __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static const unsigned places[] = { 0, 301, 511 };	/* words of a page that are compared */

/* Word @i of page @page of the mapping @gen; 0 is a page that nobody wrote. */
static uint64_t word(uint64_t gen, uint64_t page, unsigned i)
{
	return gen ? mix(gen * 0x10001 ^ page << 20 ^ places[i]) | 1 : 0;
}

void put(char *region, uint64_t page, uint64_t gen)
{
	volatile uint64_t *w = (uint64_t *)(region + page * PAGE);

	__atomic_add_fetch(&touches, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 3; i++)
		w[places[i]] = word(gen, page, i);
}

/* Is each word of the page as in the page of @gen or as in that of @other? */
bool has_either(const char *region, uint64_t page, uint64_t gen, uint64_t other)
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

bool has(const char *region, uint64_t page, uint64_t gen)
{
	return has_either(region, page, gen, gen);
}

/* --- Regions that have separate page tables */

/*
 * The @n-th region of 1 << @shift bytes. Nothing else is mapped near it, so it has a table
 * to itself: a PMD table for shift 30, a PUD table for 39, a P4D table for 48.
 */
char *at(unsigned shift, unsigned n)
{
	return (char *)(((shift == 30 ? 64ul : 2ul) + n) << shift);
}

/*
 * Are there page tables of this level? Those of the lowest level always exist. For the others,
 * the function tries to map a page that is in no thread's region.
 */
bool reachable(unsigned shift)
{
	if (shift == 30)
		return true;

	char *p = at(shift, 40), *q = mmap(p, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (q != MAP_FAILED)
		munmap(q, PAGE);
	return q == p;
}

/* A page in part @i of a region. Each part's page is in a separate page table. */
uint64_t spot(unsigned shift, unsigned i)
{
	return ((1ul << shift) / PAGE / SPOTS) * i + 513 * (i + 1);
}

char *map(char *p, size_t size, int flags, int fd)
{
	char *q = mmap(p, size, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | MAP_NORESERVE | flags |
		       (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	NEED(q == p, "mmap of %zu bytes at %p: %s", size, p, q == MAP_FAILED ? strerror(errno) : "elsewhere");
	return q;
}

void unmap(char *p, size_t size)
{
	NEED(!munmap(p, size), "munmap of %zu bytes at %p: %s", size, p, strerror(errno));
}

/* A file in memory, as large as a region, with content of @gen in its spots. */
int make_file(unsigned shift, uint64_t gen)
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

/* Continue on processor @n modulo the number of processors. The tables that it has cached may be older. */
void hop(unsigned n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(n % sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* --- Threads and processes */

static bool stop;

static void *work(void *arg)
{
	struct worker *worker = arg;

	worker->body(worker);
	return NULL;
}

void start(struct worker *workers, unsigned count, void (*body)(struct worker *), char *region, uint64_t gen)
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

void join(struct worker *workers, unsigned count)
{
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
}

bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

/* Fault in a separate region, far from those of the tests, until join() stops the thread. */
void be_busy(struct worker *worker)
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

/* Run @body in a separate process. */
pid_t spawn(void (*body)(void *arg), void *arg)
{
	pid_t pid = fork();

	NEED(pid >= 0, "fork: %s", strerror(errno));
	if (!pid) {
		body(arg);
		_exit(0);
	}
	return pid;
}

void finish(pid_t pid, int wanted)
{
	int status;

	NEED(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	status = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	if (status != wanted && *why)
		_exit(1);
	NEED(status == wanted, "a process ended with %d", status);
}
