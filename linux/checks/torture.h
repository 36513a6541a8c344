/* SPDX-License-Identifier: GPL-2.0 */
/* The torture program's model of its own address space; see torture.c. */
#ifndef TORTURE_H
#define TORTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define PAGE 4096ul
#define WORDS (PAGE / 8)
#define WORD 8			/* the only word of a page that is ever written */
/*
 * Addresses that nothing else uses. So the program knows which of them are free, and can place
 * mappings there and let them grow.
 */
#define ARENA ((char *)0x1000000000ul)
#define RACE ((char *)0x1100000000ul)
#define STORM ((char *)0x1200000000ul)
#define ARENA_PAGES 48
#define REGIONS 16
#define LEVELS 4		/* of processes that fork */
#define THREAD_INDEX 224	/* pages of FIXED from here on are mapped by threads only */

/*
 * FIXED is only read. SCRATCH is written through shared mappings. SHORT is smaller than a page.
 * OUTSIDE is in another file system.
 */
enum file { ANON = -1, FIXED, SCRATCH, SHORT, OUTSIDE, FILES };

struct page {
	bool mapped, shared, locked, not_forked, pinned;
	bool dirty;		/* WORD holds `value`, not the file's word */
	uint8_t protection;
	int8_t file;
	uint32_t index;		/* page of the file */
	uint32_t id;		/* of the mmap() that made it */
	uint64_t key;		/* the same in identical mappings; 0: no mapping can be identical */
	uint64_t value;
};

/*
 * A range of addresses. The first region is the arena, which has holes. The others are wholly
 * mapped, where the kernel has put them.
 */
struct region {
	char *base;		/* NULL: free */
	unsigned pages;
	struct page page[ARENA_PAGES];
};

/* The result of a sequence, in memory that all its processes share and that outlives them. */
struct report {
	uint64_t hash[LEVELS];
	uint32_t steps, bad;
	char first_bad[120];
};

struct world {
	uint64_t random;
	struct report *report;
	int report_fd, fd[FILES];
	const char *self, *folder;
	struct region region[REGIONS];
	uint64_t scratch[16];	/* WORD of each page of SCRATCH; 0: not written yet */
	uint32_t ids;
	unsigned level, seed, phase;
	unsigned alive;		/* mapper threads: free addresses may not stay free */
	unsigned children;	/* children alive: then nobody writes to shared pages */
	bool verbose;
};

extern struct world world;

/* torture-model.c */
uint64_t mix(uint64_t x);
uint64_t next(uint64_t *state);
unsigned below(unsigned n);
bool chance(unsigned percent);
void note(const char *what, long a, long b);
void note_bad(const char *what, unsigned long a, unsigned long b);
size_t file_pages(int file);
uint64_t file_word(int file, uint64_t offset);
void fill_file(int fd, int file, unsigned pages);
void catch_faults(void);
int probe(char *at, bool write, uint64_t *value);
int look(const struct page *page, char *at, unsigned word);
void look_at_region(const struct region *region, unsigned first, unsigned count);
struct region *free_region(void);
struct region *new_region(char *base, unsigned pages);
struct region *any_region(void);
bool any_range(struct region **region, unsigned *first, unsigned *count);
bool has_twin(const struct region *region, unsigned first, unsigned count);
void forget(struct region *region, unsigned first, unsigned count);
void check_all(void);

/* torture-map.c */
void do_map(void);
void do_unmap(void);
void do_remap(void);
void do_protect(void);
void do_advise(void);
void do_sync(void);
void do_lock(void);
void do_read(void);
void do_write(void);
void do_many(void);
void do_cut(void);
void do_drop(void);
void do_system_calls(void);

/* torture-thread.c */
void do_reader(void);
void do_mappers(void);
void do_threads(void);
void do_race(void);
void do_storm(void);
void do_signal(void);
void do_library(void);
void forget_threads(void);
void stop_mappers(void);
void stop_readers(void);

/* torture-process.c */
void step(void);
void do_fork(void);
void do_vfork(void);
void do_spawn(void);
int finish(void);

#endif
