/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the parts of hwdp-check. */
#ifndef CHECK_H
#define CHECK_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MAP_HWDP
#define MAP_HWDP 0x200000
#endif
#define PAGE 4096ul

extern const char *dir;		/* where the files go */
extern char why[256];		/* what failed */
extern size_t big_pages;	/* pages of the large file */

#define CHECK(cond, ...) do {						\
	if (!(cond)) {							\
		snprintf(why, sizeof(why), __VA_ARGS__);		\
		return false;						\
	}								\
} while (0)

uint64_t word(uint64_t seed, uint64_t page, unsigned i);
void fill(void *p, uint64_t seed, uint64_t page);
bool same(const void *p, uint64_t seed, uint64_t page);
const char *path(const char *name);
void drop_caches(void);
bool make_file(const char *name, uint64_t seed, size_t pages);
void *map_file(const char *name, size_t pages, int prot, int flags, int *fdp);
long stat_of(const char *name);
long all_withdrawn(void);
bool have_smu(void);
bool setup(const char *name, uint64_t seed, size_t pages, int prot, int flags, int *fd, char **map);
bool read_all(const char *map, uint64_t seed, size_t first, size_t pages);
void *reader(void *arg);

/* A thread that reads every page of @map once, in an order of its own. */
struct reader {
	const char *map;
	uint64_t seed;
	size_t pages;
	unsigned mul;
	bool ok;
};

/* Every test: its name, and whether it runs only when named (or with -p). */
#define TESTS(T) \
	T(read_private_1, false) \
	T(read_shared_1, false) \
	T(read_private_4, false) \
	T(read_shared_4, false) \
	T(eof, false) \
	T(hole, false) \
	T(write_private, false) \
	T(write_shared, false) \
	T(write_syscall, false) \
	T(read_syscall, false) \
	T(write_direct, false) \
	T(read_direct, false) \
	T(truncate, false) \
	T(punch, false) \
	T(collapse, false) \
	T(reuse, false) \
	T(dirty, false) \
	T(unwritten, false) \
	T(munmap_middle, false) \
	T(split, false) \
	T(munmap_busy, false) \
	T(exit_middle, false) \
	T(fork, false) \
	T(two_mappings, false) \
	T(mprotect, false) \
	T(mprotect_whole, false) \
	T(mremap, false) \
	T(madvise, false) \
	T(mlock, false) \
	T(kernel_access, false) \
	T(proc, false) \
	T(drop_caches, false) \
	T(fixed_over, false) \
	T(again, false) \
	T(off_on, false) \
	T(cgroup, false) \
	T(pressure, true) \
	T(reset, true) \
	T(frames, false)

#define DECLARE_TEST(name, optional) bool t_##name(void);
TESTS(DECLARE_TEST)

#endif /* CHECK_H */
