// SPDX-License-Identifier: GPL-2.0
/* Accesses of the kernel, memory pressure, devices, and the final count of frames. */
#include "check.h"

/* The kernel reads the mapping: for write(2), and by pinning its pages. */
bool t_kernel_access(void)
{
	char *map, buf[PAGE];
	struct iovec local, remote;
	int out;

	if (!setup("kacc", 28, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	out = open(path("copy"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (size_t p = 0; p < 256; p++) {
		CHECK(pwrite(out, map + p * PAGE, PAGE, p * PAGE) == PAGE,
		      "write from the mapping");
		CHECK(pread(out, buf, PAGE, p * PAGE) == PAGE, "pread");
		CHECK(same(buf, 28, p), "wrong content of copied page %zu", p);
	}
	for (size_t p = 256; p < 512; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 28, p), "wrong content of page %zu", p);
		local = (struct iovec){ buf, PAGE };
		remote = (struct iovec){ map + p * PAGE, PAGE };
		CHECK(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == PAGE,
		      "process_vm_readv: %s", strerror(errno));
		CHECK(same(buf, 28, p), "wrong content of pinned page %zu", p);
	}
	close(out);
	out = open(path("copy"), O_RDWR | O_DIRECT);
	for (size_t p = 0; p < 64; p++)
		CHECK(pwrite(out, map + (256 + 2 * p) * PAGE, PAGE, p * PAGE) ==
		      PAGE, "direct write from the mapping: %s", strerror(errno));
	close(out);
	out = open(path("copy"), O_RDONLY);
	for (size_t p = 0; p < 64; p++) {
		CHECK(pread(out, buf, PAGE, p * PAGE) == PAGE, "pread");
		CHECK(same(buf, 28, 256 + 2 * p),
		      "wrong content of the direct copy of page %zu", p);
	}
	close(out);
	munmap(map, 512 * PAGE);
	return true;
}

bool t_proc(void)
{
	static const char * const files[] = { "/proc/self/smaps", "/proc/self/maps",
		"/proc/self/smaps_rollup" };
	static char buf[1 << 16];
	uint64_t entry;
	char *map;
	int fd;

	if (!setup("proc", 29, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 29, 0, 100))
		return false;
	/* first, since reading smaps adopts the pages */
	fd = open("/proc/self/pagemap", O_RDONLY);
	for (size_t p = 0; p < 512; p++) {
		CHECK(pread(fd, &entry, 8, ((uintptr_t)map / PAGE + p) * 8) == 8,
		      "pagemap");
		CHECK(!(entry >> 62 & 1), "page %zu shown as swapped", p);
		CHECK(p >= 100 || entry >> 63, "page %zu is not present", p);
		CHECK(p >= 100 || (entry >> 61 & 1), "page %zu not the file's", p);
	}
	close(fd);
	for (unsigned i = 0; i < 3; i++) {
		fd = open(files[i], O_RDONLY);
		CHECK(fd >= 0, "open %s", files[i]);
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		close(fd);
	}
	fd = open("/proc/self/clear_refs", O_WRONLY);
	CHECK(fd >= 0 && write(fd, "1", 1) == 1, "clear_refs");
	close(fd);
	if (!read_all(map, 29, 0, 512))
		return false;
	munmap(map, 512 * PAGE);
	return true;
}

bool t_drop_caches(void)
{
	char *map;

	if (!setup("drop", 30, 1024, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	for (int i = 0; i < 4; i++) {
		if (!read_all(map, 30, 0, 256 * (i + 1)))
			return false;
		drop_caches();
	}
	munmap(map, 1024 * PAGE);
	return true;
}

bool t_fixed_over(void)
{
	char *map, *anon;

	if (!setup("over", 31, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 31, 0, 64))
		return false;
	anon = mmap(map + 16 * PAGE, 16 * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(anon == map + 16 * PAGE, "MAP_FIXED");
	for (size_t p = 0; p < 512; p++) {
		if (p >= 16 && p < 32)
			CHECK(!*(uint64_t *)(map + p * PAGE), "wrong content of page %zu", p);
		else
			CHECK(same(map + p * PAGE, 31, p), "wrong content of page %zu", p);
	}
	munmap(map, 512 * PAGE);
	return true;
}

/* Map and unmap again and again at one address: no old page may show. */
bool t_again(void)
{
	long fast = fast_pages();

	if (!make_file("again", 32, 256))
		return false;
	for (int i = 0; i < 20; i++) {
		char *map, *anon;

		drop_caches();
		map = map_file("again", 256, PROT_READ, MAP_SHARED, NULL);
		CHECK(map != MAP_FAILED, "mmap");
		if (!read_all(map + i * PAGE, 32, i, 5))
			return false;
		munmap(map, 256 * PAGE);
		anon = mmap(map, 256 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		CHECK(anon == map, "mmap over");
		for (size_t p = 0; p < 256; p++)
			CHECK(is_zero(anon + p * PAGE), "page %zu of fresh memory is not 0", p);
		munmap(anon, 256 * PAGE);
	}
	fast = fast_pages() - fast;
	CHECK(!have_smu() || fast >= 90, "hardware served %ld of 100 pages", fast);
	return true;
}

bool t_off_on(void)
{
	char *map;
	int fd;

	if (!have_smu())
		return true;
	if (!setup("off", 33, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 33, 0, 64))
		return false;
	fd = open("/sys/kernel/mm/hwdp/enabled", O_WRONLY);
	CHECK(fd >= 0 && pwrite(fd, "0", 1, 0) == 1, "off");
	if (!read_all(map, 33, 0, 512))
		return false;
	munmap(map, 512 * PAGE);
	CHECK(pwrite(fd, "1", 1, 0) == 1, "on");
	close(fd);
	return true;
}

/* Memory pressure: a file larger than memory, read twice by 4 threads. */
bool t_pressure(void)
{
	size_t pages = 4 * (size_t)sysconf(_SC_PHYS_PAGES);
	struct reader r[4];
	pthread_t t[4];
	char *map;

	if (!setup("huge", 34, pages, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	for (int i = 0; i < 4; i++) {
		r[i] = (struct reader){ map, 34, pages, 1 + 2 * i, false };
		pthread_create(&t[i], NULL, reader, &r[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 4; i++)
		CHECK(r[i].ok, "thread %d read wrong content", i);
	munmap(map, pages * PAGE);
	unlink(path("huge"));
	return true;
}

/* Pages that hardware brings are charged to the cgroup. REQ: OS-9 */
bool t_cgroup(void)
{
	const char *group = "/sys/fs/cgroup/hwdp-check";
	long max = 8 << 20, slack = 4 << 20, current, peak = 0;
	char file[128], procs[128], *map;
	int status;
	pid_t pid;

	if (!put_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory"))
		return true;	/* no cgroup v2 here */
	mkdir(group, 0755);
	snprintf(file, sizeof(file), "%s/memory.max", group);
	CHECK(put_text(file, "8388608"), "memory.max");
	if (!make_file("cg", 36, 8192))
		return false;
	drop_caches();
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
	pid = fork();
	if (!pid) {
		if (!put_text(procs, "0"))
			_exit(1);
		map = map_file("cg", 8192, PROT_READ, MAP_SHARED, NULL);
		if (map == MAP_FAILED || !read_all(map, 36, 0, 8192))
			_exit(2);
		if (!adopt_all())
			_exit(3);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	snprintf(file, sizeof(file), "%s/memory.current", group);
	current = number_in(file);
	snprintf(file, sizeof(file), "%s/memory.peak", group);
	peak = number_in(file);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "child ended with wait status %x", status);
	CHECK(current <= max + slack, "%ld bytes charged", current);
	CHECK(peak >= max / 2, "only %ld bytes ever charged", peak);
	rmdir(group);
	return true;
}

/* Read the file in the group and let Linux adopt all pages. Then allocate nothing. */
static int read_and_wait(void *arg)
{
	volatile int *done = arg;
	char *map;

	if (!put_text("/sys/fs/cgroup/hwdp-debt/cgroup.procs", "0"))
		return 1;
	map = map_file("debt", 4000, PROT_READ, MAP_SHARED, NULL);
	if (map == MAP_FAILED)
		return 2;
	/* let the page cache allocate its nodes first: allocating them later would reclaim memory, too */
	for (size_t p = 0; p < 4000; p += 64)
		touch(map + p * PAGE);
	if (!adopt_all())
		return 3;
	if (!read_all(map, 182, 0, 4000) || !adopt_all())
		return 4;
	*done = 1;
	while (*done)
		;
	return 0;
}

/* Adoption charges nothing beyond the limit, not for a moment. REQ: OS-9 */
bool t_cgroup_debt(void)
{
	volatile int *done = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long current, peak;
	int status;
	pid_t pid;

	if (!put_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory"))
		SKIP("no memory cgroups");
	mkdir("/sys/fs/cgroup/hwdp-debt", 0755);
	CHECK(put_text("/sys/fs/cgroup/hwdp-debt/memory.max", "8388608"), "memory.max");
	if (!make_file("debt", 182, 4000))
		return false;
	drop_caches();
	pid = fork();
	if (!pid)
		_exit(read_and_wait((void *)done));
	while (!*done && !waitpid(pid, &status, WNOHANG))
		usleep(1000);
	CHECK(*done, "child ended with wait status %x", status);
	current = number_in("/sys/fs/cgroup/hwdp-debt/memory.current");
	peak = number_in("/sys/fs/cgroup/hwdp-debt/memory.peak");
	*done = 0;
	waitpid(pid, &status, 0);
	CHECK(current <= 9 << 20, "%ld bytes are charged, the limit is 8 MiB", current);
	/* only atomic allocations may pass the limit */
	CHECK(peak <= (8 << 20) + (128 << 10), "%ld bytes were charged, the limit is 8 MiB", peak);
	rmdir("/sys/fs/cgroup/hwdp-debt");
	return true;
}

/*
 * Charge the group beyond memory.high, so that Linux puts tasks to sleep for what they charge.
 * Then let hardware read 510 pages, and measure the milliseconds that the kernel takes to adopt
 * them for pagemap (plus 1, in *took). Return 1: no group; 2: no mapping; 3: wrong bytes.
 */
static int adopt_beyond_high(void *arg)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	unsigned long *entry = malloc(512 * sizeof(*entry));
	struct timespec began, ended;
	volatile int *took = arg;
	char *held, *map;

	if (pagemap < 0 || !put_text("/sys/fs/cgroup/hwdp-high/cgroup.procs", "0"))
		return 1;
	held = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	map = map_file("high", 1024, PROT_READ, MAP_SHARED, NULL);
	if (held == MAP_FAILED || map == MAP_FAILED)
		return 2;
	touch(map);
	touch(map + PAGE);
	if (!put_text("/sys/fs/cgroup/hwdp-high/memory.high", "8388608"))
		return 1;
	if (!read_all(map + 2 * PAGE, 183, 2, 510))
		return 3;
	clock_gettime(CLOCK_MONOTONIC, &began);
	if (pread(pagemap, entry, 512 * sizeof(*entry), (unsigned long)map / PAGE * sizeof(*entry)) < 0)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &ended);
	*took = 1 + (ended.tv_sec - began.tv_sec) * 1000 + (ended.tv_nsec - began.tv_nsec) / 1000000;
	return 0;
}

/*
 * A task must not sleep for memory.high while it holds a lock of the area, for which others
 * wait. It may sleep once, at the end, for 2 s at most.
 */
bool t_cgroup_high(void)
{
	volatile int *took = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	if (!put_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory"))
		SKIP("no memory cgroups");
	mkdir("/sys/fs/cgroup/hwdp-high", 0755);
	if (!make_file("high", 183, 1024))
		return false;
	drop_caches();
	pid = fork();
	if (!pid)
		_exit(adopt_beyond_high((void *)took));
	waitpid(pid, &status, 0);
	rmdir("/sys/fs/cgroup/hwdp-high");
	CHECK(*took, "child ended with wait status %x", status);
	CHECK(*took < 5000, "reading pagemap took %d ms", *took);
	return true;
}

/* The controller is reset while threads read: the OS serves the rest. REQ: OS-14 */
bool t_reset(void)
{
	struct reader r[3];
	pthread_t t[3];
	long fast;
	char *map;
	int fd;

	if (!setup("reset", 35, 4096, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	for (int i = 0; i < 3; i++) {
		r[i] = (struct reader){ map, 35, 4096, 3 + 2 * i, false };
		pthread_create(&t[i], NULL, reader, &r[i]);
	}
	usleep(5000);
	fd = open("/sys/class/nvme/nvme0/reset_controller", O_WRONLY);
	CHECK(fd >= 0 && write(fd, "1", 1) == 1, "reset: %s", strerror(errno));
	close(fd);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 3; i++)
		CHECK(r[i].ok, "thread %d read wrong content", i);
	/* the queue is made again, and entries are armed again */
	CHECK(!madvise(map, 4096 * PAGE, MADV_PAGEOUT), "pageout");
	drop_caches();
	usleep(200000);
	fast = fast_pages();
	if (!read_all(map, 35, 0, 4096))
		return false;
	CHECK(!have_smu() || fast_pages() - fast > 2048, "only %ld pages by hardware afterwards",
	      fast_pages() - fast);
	munmap(map, 4096 * PAGE);
	return true;
}

/* At the end: every frame that the unit took has been accounted for. */
bool t_frames(void)
{
	long used, settled, areas;

	if (!have_smu())
		return true;
	sleep(1);
	used = fast_pages();
	settled = stat_of("pages_adopted") + stat_of("pages_discarded");
	CHECK(used == settled, "installed %ld, adopted or discarded %ld", used,
	      settled);
	CHECK(stat_of("smu_stray_cqe") == 0, "the unit saw stray completions");
	areas = stat_of("areas_made");
	CHECK(areas <= all_withdrawn(), "%ld areas were made, and %ld withdrawn", areas,
	      all_withdrawn());
	return true;
}
