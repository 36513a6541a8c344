/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the parts of hwdp-check. */
#ifndef CHECK_H
#define CHECK_H

#include "check-run.h"
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
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

extern const char *dir;		/* where the files go */
extern const char *small_dir;	/* NULL, or on ext4 with 1 KiB blocks and inline data */
extern const char *mount_point;	/* the file system of dir */
extern size_t big_pages;	/* pages of the large file */

uint64_t word(uint64_t seed, uint64_t page, unsigned i);
void fill(void *p, uint64_t seed, uint64_t page);
bool same(const void *p, uint64_t seed, uint64_t page);
const char *path(const char *name);
void drop_caches(void);
bool make_file(const char *name, uint64_t seed, size_t pages);
void *map_file(const char *name, size_t pages, int prot, int flags, int *fdp);
long stat_of(const char *name);
long all_withdrawn(void);
long unsettled(void);
bool have_smu(void);
bool setup(const char *name, uint64_t seed, size_t pages, int prot, int flags, int *fd, char **map);
bool read_all(const char *map, uint64_t seed, size_t first, size_t pages);
void *reader(void *arg);
long number_in(const char *file);
int touch(const volatile char *p);
bool is_zero(const void *p);
uint64_t physical(int fd, uint64_t offset);
/* Move the file's data to other blocks; another file gets the old ones (check-extents.c). */
bool defragment(int fd, size_t pages);
long fast_pages(void);
long not_adopted(void);
bool adopt_all(void);
bool make_swap(int fd, size_t pages);
int in_child(int (*body)(void *arg), void *arg);

/* A thread that reads every page of @map once, in an order that depends on @mul. */
struct reader {
	const char *map;
	uint64_t seed;
	size_t pages;
	unsigned mul;
	bool ok;
};

/* A thread that reads pages at random until @stop is set. */
struct endless {
	const char *map;
	uint64_t seed;
	size_t pages;
	pthread_t thread;
	bool stop;
	unsigned long seen, wrong;
};

#define READERS 3
void start_readers(struct endless *e, const char *map, uint64_t seed, size_t pages);
bool stop_readers(struct endless *e);

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
	T(insert_range, false) \
	T(zero_range, false) \
	T(swap_boot, false) \
	T(defrag, false) \
	T(defrag_busy, false) \
	T(resize, false) \
	T(remount, false) \
	T(freeze, false) \
	T(blocks_1k, false) \
	T(fragmented, false) \
	T(inline_data, false) \
	T(dirty_tail, false) \
	T(data_journal, false) \
	T(swap_file, false) \
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
	T(munlock, false) \
	T(kernel_access, false) \
	T(proc, false) \
	T(account, false) \
	T(account_threads, false) \
	T(account_exit, false) \
	T(account_perf, false) \
	T(bind_mount, false) \
	T(overlay, false) \
	T(loop, false) \
	T(drop_caches, false) \
	T(direct_into_private, false) \
	T(direct_into_shared, false) \
	T(vmsplice, false) \
	T(splice, false) \
	T(readahead, false) \
	T(ptrace, false) \
	T(core, false) \
	T(futex, false) \
	T(copy_from, false) \
	T(dontneed, false) \
	T(willneed, false) \
	T(cold, false) \
	T(pageout, false) \
	T(free, false) \
	T(populate_read, false) \
	T(populate_read_now, false) \
	T(populate_write, false) \
	T(remove, false) \
	T(mlock_onfault, false) \
	T(mlockall, false) \
	T(msync, false) \
	T(mincore, false) \
	T(smaps, false) \
	T(advice_merges, false) \
	T(rss, false) \
	T(protect_all, false) \
	T(protect_middle, false) \
	T(read_only, false) \
	T(mremap_grow, false) \
	T(mremap_move, false) \
	T(fixed_over, false) \
	T(again, false) \
	T(off_on, false) \
	T(cgroup, false) \
	T(cgroup_debt, false) \
	T(cgroup_high, false) \
	T(cgroup_stranger, false) \
	T(adjacent, false) \
	T(aba, false) \
	T(munmap_waits, false) \
	T(exchange, false) \
	T(late_answer, false) \
	T(direct_busy, false) \
	T(bound, false) \
	T(adopt_all, false) \
	T(shared_mark, false) \
	T(pageout_now, false) \
	T(suspend, false) \
	T(exec, false) \
	T(kill_busy, false) \
	T(kill_kernel_read, false) \
	T(oom, false) \
	T(fork_busy, false) \
	T(vfork, false) \
	T(two_processes, false) \
	T(write_busy, false) \
	T(punch_busy, false) \
	T(swap, false) \
	T(reclaim, false) \
	T(rearm, false) \
	T(reclaim_dirty, false) \
	T(reclaim_busy, false) \
	T(compact, false) \
	T(move_pages, false) \
	T(migrate_pages, false) \
	T(numa_hints, false) \
	T(ksm, false) \
	T(soft_offline, false) \
	T(hwpoison, false) \
	T(idle_tracking, false) \
	T(refused, false) \
	T(secretmem, false) \
	T(hugetlb, false) \
	T(thp, false) \
	T(userfaultfd, false) \
	T(long_mapping, false) \
	T(io_limit, false) \
	T(io_limit_later, false) \
	T(memory_offline, false) \
	T(cpu_offline, false) \
	T(pressure, true) \
	T(reset, true) \
	T(shutdown, true) \
	T(removal, true) \
	T(rearm_evict, false) \
	T(rearm_drop_caches, false) \
	T(rearm_cached, false) \
	T(rearm_dirty, false) \
	T(rearm_private, false) \
	T(rearm_moved, false) \
	T(rearm_moving, false) \
	T(rearm_truncate, false) \
	T(rearm_append, false) \
	T(rearm_punch, false) \
	T(rearm_direct, false) \
	T(rearm_fork, false) \
	T(rearm_two, false) \
	T(rearm_busy, false) \
	T(populate_async, false) \
	T(second_miss, false) \
	T(turns, false) \
	T(rearm_reset, true) \
	T(frames, false)

#define DECLARE_TEST(name, optional) bool t_##name(void);
TESTS(DECLARE_TEST)

#endif /* CHECK_H */
