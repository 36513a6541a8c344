/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the parts of stc-check. */
#ifndef STC_H
#define STC_H

#include "check-run.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define GB (1ul << 30)
#define TABLE 512ul		/* entries of a page table; pages below an entry of the PMD */
#define SPOTS 8ul		/* pages of a region that the tests touch */
#define THREADS 4
#define HUGEPAGES "/sys/kernel/mm/transparent_hugepage/"

extern const char *dir;		/* where files go */
extern unsigned factor;		/* by which the number of steps is multiplied */
extern uint64_t seed;		/* of the order of the steps */

void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define NEED(cond, ...) do { if (!(cond)) die(__VA_ARGS__); } while (0)

void start_watch(void);

/* Pages that can be told apart */
uint64_t next(uint64_t *state);
uint64_t fresh(void);
void put(char *region, uint64_t page, uint64_t gen);
bool has_either(const char *region, uint64_t page, uint64_t gen, uint64_t other);
bool has(const char *region, uint64_t page, uint64_t gen);

#define EXPECT(region, page, gen, what)					\
	NEED(has(region, page, gen), what ": wrong content of page %#lx at %p", (unsigned long)(page), (region))

/* Regions that have separate page tables */
char *at(unsigned shift, unsigned n);
bool reachable(unsigned shift);
uint64_t spot(unsigned shift, unsigned i);
char *map(char *p, size_t size, int flags, int fd);
void unmap(char *p, size_t size);
int make_file(unsigned shift, uint64_t gen);

#define EACH_REACH(shift) (unsigned shift = 30; shift <= 48 && reachable(shift); shift += 9)

/* Threads and processes */
struct worker {
	pthread_t thread;
	unsigned number;
	void (*body)(struct worker *worker);
	uint64_t gen, state;
	char *region;
};

void hop(unsigned n);
void start(struct worker *workers, unsigned count, void (*body)(struct worker *), char *region, uint64_t gen);
void join(struct worker *workers, unsigned count);
bool stopped(void);
void be_busy(struct worker *worker);
pid_t spawn(void (*body)(void *arg), void *arg);
void finish(pid_t pid, int wanted);

/* All tests, in their order. */
#define TESTS(T) \
	T(hits) \
	T(rss) \
	T(munmap) \
	T(munmap_threads) \
	T(shrink) \
	T(border) \
	T(stack) \
	T(mremap) \
	T(tags) \
	T(advice) \
	T(collapse) \
	T(fork) \
	T(end) \
	T(turns) \
	T(overtake) \
	T(storm)

#define DECLARE_TEST(name) bool t_##name(void);
TESTS(DECLARE_TEST)

#endif /* STC_H */
