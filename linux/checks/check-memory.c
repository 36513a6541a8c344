// SPDX-License-Identifier: GPL-2.0
/* Memory management of pages: reclaim, swap, migration, refusals. REQ: OS-5, OS-8, OS-9, OS-13 */
#include "check.h"
#include <sys/ioctl.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <linux/userfaultfd.h>

#define PAGES 2048ul

/* Swap entries are beside armed entries: neither is taken for the other. REQ: OS-13 */
bool t_swap(void)
{
	size_t pages = 2048;
	char *map, *mine;
	bool ok = true;
	int fd;

	if (!make_file("swap", 150, pages))
		return false;
	fd = open(path("swap"), O_RDWR);
	if (!make_swap(fd, pages))
		return false;
	close(fd);
	if (swapon(path("swap"), 0))
		SKIP("swapon: %s", strerror(errno));
	if (!setup("beside", 151, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	mine = mmap(NULL, 1024 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t p = 0; p < 1024; p++)
		fill(mine + p * PAGE, 152, p);
	for (int round = 0; round < 3 && ok; round++) {
		ok = read_all(map, 151, 0, 512 * (round + 1)) &&
			!madvise(mine, 1024 * PAGE, MADV_PAGEOUT) &&
			!madvise(map, 512 * PAGE, MADV_PAGEOUT) &&
			read_all(mine, 152, 0, 1024);
	}
	ok = ok && !madvise(mine, 1024 * PAGE, MADV_PAGEOUT);
	if (ok && fork() == 0)	/* fork copies swap entries */
		_exit(!read_all(mine, 152, 0, 1024));
	if (ok) {
		int status;

		wait(&status);
		ok = !status && read_all(mine, 152, 0, 1024);
	}
	CHECK(!swapoff(path("swap")), "swapoff: %s", strerror(errno));
	return ok;
}

/* Reclaimed pages come back with the right content. */
bool t_reclaim(void)
{
	char *map;

	if (!setup("recl", 153, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	for (int round = 0; round < 3; round++) {
		if (!read_all(map, 153, 0, PAGES))
			return false;
		CHECK(!madvise(map, PAGES * PAGE, MADV_PAGEOUT), "pageout");
		drop_caches();
	}
	return read_all(map, 153, 0, PAGES);
}

/* Evicted pages are armed again: hardware reads them again. */
bool t_rearm(void)
{
	long fast;
	char *map;

	if (!setup("rearm", 149, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	for (int round = 0; round < 3; round++) {
		if (!read_all(map, 149, 0, PAGES))
			return false;
		CHECK(!madvise(map, PAGES * PAGE, MADV_PAGEOUT), "pageout");
		drop_caches();
		usleep(50000);
	}
	fast = fast_pages();
	if (!read_all(map, 149, 0, PAGES))
		return false;
	fast = fast_pages() - fast;
	CHECK(!have_smu() || fast > (long)PAGES * 9 / 10, "hardware read %ld of %lu pages again",
	      fast, PAGES);
	return true;
}

/* Pages that are dirty when they are reclaimed are written before hardware may read them. */
bool t_reclaim_dirty(void)
{
	char *map, page[PAGE];
	int fd;

	if (!setup("recld", 154, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, &fd, &map))
		return false;
	for (int round = 1; round < 4; round++) {
		for (size_t p = round; p < PAGES; p += 5)
			fill(map + p * PAGE, 154 + round, p);
		for (size_t p = 0; p < PAGES; p += 7) {
			fill(page, 160 + round, p);
			CHECK(pwrite(fd, page, PAGE, p * PAGE) == PAGE, "pwrite");
		}
		CHECK(!madvise(map, PAGES * PAGE, MADV_PAGEOUT), "pageout");
		drop_caches();
		usleep(20000);
		for (size_t p = 0; p < PAGES; p++) {
			uint64_t seed = 154;

			for (int r = 1; r <= round; r++) {
				if (p >= (size_t)r && (p - r) % 5 == 0)
					seed = 154 + r;
				if (p % 7 == 0)
					seed = 160 + r;
			}
			CHECK(same(map + p * PAGE, seed, p),
			      "wrong content of page %zu in round %d", p, round);
		}
	}
	return true;
}

/* A cgroup must give memory back (memory.reclaim) while its threads miss. */
bool t_reclaim_busy(void)
{
	const char *group = "/sys/fs/cgroup/hwdp-reclaim";
	struct endless e[READERS];
	char *map;

	if (!put_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory"))
		SKIP("no memory cgroups");
	mkdir(group, 0755);
	if (access("/sys/fs/cgroup/hwdp-reclaim/memory.reclaim", W_OK))
		SKIP("no memory.reclaim");
	CHECK(put_text("/sys/fs/cgroup/hwdp-reclaim/cgroup.procs", "0"), "cgroup.procs");
	if (!setup("reclb", 155, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	start_readers(e, map, 155, PAGES);
	for (int round = 0; round < 8; round++) {
		usleep(8000);
		put_text("/sys/fs/cgroup/hwdp-reclaim/memory.reclaim", "4M");
	}
	CHECK(stop_readers(e), "a reader saw a wrong page");
	put_text("/sys/fs/cgroup/cgroup.procs", "0");
	if (!read_all(map, 155, 0, PAGES))
		return false;
	rmdir(group);
	return true;
}

bool t_compact(void)
{
	struct endless e[READERS];
	char *map;

	if (access("/proc/sys/vm/compact_memory", W_OK))
		SKIP("no compaction");
	if (!setup("compact", 156, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	start_readers(e, map, 156, PAGES);
	for (int round = 0; round < 5; round++) {
		usleep(5000);
		CHECK(put_text("/proc/sys/vm/compact_memory", "1"), "compact");
	}
	CHECK(stop_readers(e), "a reader saw a wrong page");
	return read_all(map, 156, 0, PAGES);
}

/* Move each page to the other node, or (with one node) ask for the node where it is. */
bool t_move_pages(void)
{
	static void *addresses[PAGES];
	static int nodes[PAGES], status[PAGES];
	bool two = !access("/sys/devices/system/node/node1", F_OK);
	struct endless e[READERS];
	long moved = 0;
	char *map;

	if (!setup("movep", 157, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	for (size_t p = 0; p < PAGES; p++)
		addresses[p] = map + p * PAGE;
	if (syscall(SYS_move_pages, 0, 1UL, addresses, NULL, status, 0) && errno == ENOSYS)
		SKIP("no page migration");
	if (!read_all(map, 157, 0, 512))
		return false;
	start_readers(e, map, 157, PAGES);
	for (int round = 0; round < 4; round++) {
		for (size_t p = 0; p < PAGES; p++)
			nodes[p] = two && round % 2 == 0;
		CHECK(syscall(SYS_move_pages, 0, PAGES, addresses, nodes, status, 2 /* MPOL_MF_MOVE */) >= 0,
		      "move_pages: %s", strerror(errno));
		for (size_t p = 0; p < 512; p++)
			moved += status[p] == nodes[p];
	}
	CHECK(stop_readers(e), "a reader saw a wrong page");
	CHECK(!two || moved > 1024, "only %ld pages moved", moved);
	return read_all(map, 157, 0, PAGES);
}

bool t_migrate_pages(void)
{
	unsigned long from = 1, to = 2, swap;
	struct endless e[READERS];
	char *map;

	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP("one memory node");
	if (!setup("migp", 158, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	start_readers(e, map, 158, PAGES);
	for (int round = 0; round < 6; round++) {
		usleep(4000);
		CHECK(syscall(SYS_migrate_pages, 0, 8UL, &from, &to) >= 0, "migrate_pages: %s",
		      strerror(errno));
		swap = from, from = to, to = swap;
	}
	CHECK(stop_readers(e), "a reader saw a wrong page");
	return read_all(map, 158, 0, PAGES);
}

/* NUMA balancing does no harm to the mapping. */
bool t_numa_hints(void)
{
	struct endless e[READERS];
	char *map;

	if (!put_text("/proc/sys/kernel/numa_balancing", "1"))
		SKIP("no NUMA balancing");
	if (!setup("numa", 159, PAGES, PROT_READ, MAP_PRIVATE, NULL, &map))
		return false;
	start_readers(e, map, 159, PAGES);
	sleep(3);
	CHECK(stop_readers(e), "a reader saw a wrong page");
	put_text("/proc/sys/kernel/numa_balancing", "0");
	return read_all(map, 159, 0, PAGES);
}

bool t_ksm(void)
{
	char *map;

	if (!put_text("/sys/kernel/mm/ksm/run", "1"))
		SKIP("no same-page merging");
	put_text("/sys/kernel/mm/ksm/pages_to_scan", "10000");
	put_text("/sys/kernel/mm/ksm/sleep_millisecs", "1");
	if (!setup("ksm", 160, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE, NULL, &map))
		return false;
	CHECK(!madvise(map, PAGES * PAGE, MADV_MERGEABLE), "madvise: %s", strerror(errno));
	for (size_t p = 0; p < 64; p++)	/* something to merge */
		memset(map + p * PAGE, 7, PAGE);
	usleep(200000);
	put_text("/sys/kernel/mm/ksm/run", "2");
	for (size_t p = 0; p < 64; p++)
		CHECK(map[p * PAGE + 9] == 7, "wrong content of page %zu", p);
	return read_all(map + 64 * PAGE, 160, 64, PAGES - 64);
}

/* Linux stops using pages of memory (soft offline): their content stays. */
bool t_soft_offline(void)
{
	char *map;

	if (!setup("soft", 161, 256, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 161, 0, 64))
		return false;
	for (size_t p = 0; p < 16; p++) {
		if (madvise(map + p * PAGE, PAGE, 101 /* MADV_SOFT_OFFLINE */)) {
			if (errno == EINVAL)
				SKIP("no memory failure handling");
			CHECK(errno == EBUSY, "soft offline: %s", strerror(errno));
		}
	}
	return read_all(map, 161, 0, 256);
}

/* A page of memory fails: it may be lost, but its neighbours are not. */
bool t_hwpoison(void)
{
	char *map;
	int sig;

	if (!setup("poison", 162, 256, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 162, 0, 64))
		return false;
	if (madvise(map + 8 * PAGE, PAGE, 100 /* MADV_HWPOISON */)) {
		if (errno == EINVAL)
			SKIP("no memory failure handling");
		CHECK(0, "poison: %s", strerror(errno));
	}
	sig = touch(map + 8 * PAGE);	/* clean: dropped and read again, or SIGBUS */
	CHECK(sig == SIGBUS || same(map + 8 * PAGE, 162, 8), "wrong content of the poisoned page");
	return read_all(map, 162, 0, 8) && read_all(map + 9 * PAGE, 162, 9, 247);
}

bool t_idle_tracking(void)
{
	char *map, buf[4096];
	int fd;

	fd = open("/sys/kernel/mm/page_idle/bitmap", O_RDWR);
	if (fd < 0)
		SKIP("no idle page tracking");
	if (!setup("idle", 163, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	memset(buf, 0xff, sizeof(buf));
	for (int round = 0; round < 3; round++) {
		if (!read_all(map, 163, 0, 512 * (round + 1)))
			return false;
		lseek(fd, 0x80000000ull / PAGE / 8, SEEK_SET);	/* where memory begins */
		while (write(fd, buf, sizeof(buf)) > 0)
			;
	}
	return read_all(map, 163, 0, PAGES);
}

/* Check a mapping that hardware must not serve: right content, and no page by hardware. */
static bool plain(void *map, uint64_t seed, size_t pages, const char *what)
{
	long fast = fast_pages();

	CHECK(map != MAP_FAILED, "mmap of %s: %s", what, strerror(errno));
	for (size_t p = 0; p < pages; p++)
		CHECK(!seed || same((char *)map + p * PAGE, seed, p),
		      "wrong content of page %zu of %s", p, what);
	CHECK(fast_pages() == fast, "hardware served %s", what);
	return true;
}

/* What has no blocks for hardware, or may be executed, is mapped as usual. REQ: OS-12 */
bool t_refused(void)
{
	char *map;
	int fd;

	if (!make_file("exe", 170, 64))
		return false;
	drop_caches();
	fd = open(path("exe"), O_RDWR);
	map = mmap(NULL, 64 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_HWDP, fd, 0);
	if (!plain(map, 170, 64, "an executable mapping"))
		return false;
	munmap(map, 64 * PAGE);
	drop_caches();
	map = mmap(NULL, 64 * PAGE, PROT_WRITE, MAP_SHARED | MAP_HWDP, fd, 0);
	CHECK(map != MAP_FAILED, "write-only mapping");
	munmap(map, 64 * PAGE);

	map = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HWDP,
		   -1, 0);
	if (!plain(map, 0, 0, "anonymous memory"))
		return false;
	memset(map, 1, 64 * PAGE);
	fd = memfd_create("hwdp", 0);
	CHECK(fd >= 0 && !ftruncate(fd, 64 * PAGE), "memfd");
	map = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_HWDP, fd, 0);
	if (!plain(map, 0, 0, "a memory file"))
		return false;
	for (size_t p = 0; p < 64; p++)
		CHECK(is_zero(map + p * PAGE), "memory file's page %zu", p);
	fd = open("/dev/zero", O_RDONLY);
	map = mmap(NULL, 64 * PAGE, PROT_READ, MAP_PRIVATE | MAP_HWDP, fd, 0);
	CHECK(map != MAP_FAILED && is_zero(map), "/dev/zero");
	return true;
}

bool t_secretmem(void)
{
	int fd = syscall(447 /* memfd_secret */, 0);
	char *map;

	if (fd < 0)
		SKIP("no secret memory: %s", strerror(errno));
	CHECK(!ftruncate(fd, 16 * PAGE), "ftruncate");
	map = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_HWDP, fd, 0);
	if (!plain(map, 0, 0, "secret memory"))
		return false;
	memset(map, 3, 16 * PAGE);
	return true;
}

bool t_hugetlb(void)
{
	char *map;

	if (!put_text("/proc/sys/vm/nr_hugepages", "4"))
		SKIP("no huge pages");
	map = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HWDP, -1, 0);
	if (map == MAP_FAILED) {
		put_text("/proc/sys/vm/nr_hugepages", "0");
		SKIP("no huge page: %s", strerror(errno));
	}
	memset(map, 5, 2 << 20);
	munmap(map, 2 << 20);
	put_text("/proc/sys/vm/nr_hugepages", "0");
	return true;
}

/* The kernel may collapse pages of a read-only file to huge pages. */
bool t_thp(void)
{
	size_t huge = 2 << 20;
	char *map, *aligned;
	int fd;

	if (!put_text("/sys/kernel/mm/transparent_hugepage/enabled", "always"))
		SKIP("no transparent huge pages");
	put_text("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", "1");
	put_text("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan", "100000");
	if (!make_file("thp", 164, 2048))
		return false;
	drop_caches();
	fd = open(path("thp"), O_RDONLY);
	map = mmap(NULL, 3 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	aligned = (char *)(((uintptr_t)map + huge - 1) & -huge);
	CHECK(mmap(aligned, 2 * huge, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_HWDP, fd, 0) ==
	      aligned, "mmap");
	if (!read_all(aligned, 164, 0, 700))
		return false;
	madvise(aligned, 2 * huge, MADV_HUGEPAGE);
	madvise(aligned, 2 * huge, 25 /* MADV_COLLAPSE */);
	usleep(300000);
	put_text("/sys/kernel/mm/transparent_hugepage/enabled", "never");
	return read_all(aligned, 164, 0, 1024);
}

/* userfaultfd refuses the mapping, which stays as it was. */
bool t_userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	char *map;

	if (fd < 0)
		SKIP("no userfaultfd: %s", strerror(errno));
	CHECK(!ioctl(fd, UFFDIO_API, &api), "api: %s", strerror(errno));
	if (!setup("uffd", 165, 256, PROT_READ | PROT_WRITE, MAP_PRIVATE, NULL, &map))
		return false;
	if (!read_all(map, 165, 0, 64))
		return false;
	reg.range.start = (uintptr_t)map;
	reg.range.len = 256 * PAGE;
	/* file mappings of a disk cannot be watched for missing pages */
	CHECK(ioctl(fd, UFFDIO_REGISTER, &reg) < 0, "userfaultfd did not refuse the mapping");
	return read_all(map, 165, 0, 256);
}

/* "major:minor" of the whole disk of the tests' file system: limits are not for partitions. */
static bool whole_disk(char *text, size_t size)
{
	char path[64];
	struct stat st;
	FILE *f;
	bool ok;

	if (stat(mount_point, &st))
		return false;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(st.st_dev), minor(st.st_dev));
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%sdev", major(st.st_dev), minor(st.st_dev),
		 access(path, F_OK) ? "" : "../");
	f = fopen(path, "r");
	ok = f && fgets(text, size, f);
	if (f)
		fclose(f);
	text[ok ? strcspn(text, "\n") : 0] = 0;
	return ok;
}

/*
 * A cgroup has a limit on the disk's throughput, set before or after mmap(): hardware
 * must not bypass it. REQ: OS-9
 */
static bool io_limit(bool before)
{
	const char *group = "/sys/fs/cgroup/hwdp-io";
	const char *max = "/sys/fs/cgroup/hwdp-io/io.max";
	char disk[32], limit[64], off[64];
	long fast;
	char *map;
	bool ok;

	if (!put_text("/sys/fs/cgroup/cgroup.subtree_control", "+io"))
		SKIP("no I/O limits");
	mkdir(group, 0755);
	CHECK(whole_disk(disk, sizeof(disk)), "no disk below %s", mount_point);
	snprintf(limit, sizeof(limit), "%s rbps=20000000", disk);
	snprintf(off, sizeof(off), "%s rbps=max", disk);
	if (!make_file("iol", 166, 512))
		return false;
	drop_caches();
	if (before && !put_text(max, limit))
		SKIP("io.max: %s", strerror(errno));
	CHECK(put_text("/sys/fs/cgroup/hwdp-io/cgroup.procs", "0"), "cgroup.procs");
	map = map_file("iol", 512, PROT_READ, MAP_SHARED, NULL);
	if (!before && !put_text(max, limit))
		SKIP("io.max: %s", strerror(errno));
	fast = fast_pages();
	ok = map != MAP_FAILED && read_all(map, 166, 0, 512);
	fast = fast_pages() - fast;
	put_text(max, off);
	put_text("/sys/fs/cgroup/cgroup.procs", "0");
	CHECK(ok, "wrong content");
	CHECK(fast <= 0, "hardware read %ld pages in spite of the limit", fast);
	munmap(map, 512 * PAGE);
	rmdir(group);
	return true;
}

bool t_io_limit(void) { return io_limit(true); }
bool t_io_limit_later(void) { return io_limit(false); }

static void ring(int signal) { (void)signal; }

/*
 * Blocks of memory go offline while their pages are mapped. REQ: OS-5
 * Linux tries without end to move a page, and ext4's journal holds on to buffers of
 * metadata. So the test gives each block of memory five seconds.
 */
bool t_memory_offline(void)
{
	struct endless e[READERS];
	char block[80], *map;
	bool offline;
	sigset_t set;
	int tried = 0;

	if (access("/sys/devices/system/memory/block_size_bytes", R_OK))
		SKIP("no memory hotplug");
	if (!setup("offl", 167, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	signal(SIGALRM, ring);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);	/* blocked in the readers, too */
	start_readers(e, map, 167, PAGES);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	for (int n = 0; n < 64; n++) {
		snprintf(block, sizeof(block), "/sys/devices/system/memory/memory%d/state", n);
		if (access(block, W_OK))
			continue;
		tried++;
		alarm(5);
		offline = put_text(block, "offline");
		alarm(0);
		if (offline)
			CHECK(put_text(block, "online"), "%s: %s", block, strerror(errno));
	}
	CHECK(stop_readers(e), "a reader saw a wrong page");
	CHECK(tried, "no block of memory");
	return read_all(map, 167, 0, PAGES);
}

/* A hart goes and comes back: its walker must serve misses again. */
bool t_cpu_offline(void)
{
	struct endless e[READERS];
	char *map;

	if (!put_text("/sys/devices/system/cpu/cpu1/online", "0"))
		SKIP("harts cannot be switched off");
	if (!setup("cpu", 168, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	start_readers(e, map, 168, PAGES);
	usleep(5000);
	CHECK(put_text("/sys/devices/system/cpu/cpu1/online", "1"), "online: %s",
	      strerror(errno));
	usleep(5000);
	CHECK(stop_readers(e), "a reader saw a wrong page");
	return read_all(map, 168, 0, PAGES);
}
