// SPDX-License-Identifier: GPL-2.0
/* Processes that begin, multiply and end while misses are under way. REQ: OS-4, OS-5 */
#include "check.h"
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define PAGES 2048ul

/* Map the file, read it with several threads, and never stop. */
static int read_for_ever(void *arg)
{
	struct endless e[READERS];
	char *map = map_file(arg, PAGES, PROT_READ, MAP_SHARED, NULL);

	if (map == MAP_FAILED)
		return 1;
	start_readers(e, map, 140, PAGES);
	for (;;)
		pause();
}

static int map_and_exec(void *arg)
{
	struct endless e[READERS];
	char *argv[] = { "/proc/self/exe", NULL }, *env[] = { NULL };
	char *map = map_file(arg, PAGES, PROT_READ, MAP_SHARED, NULL);

	if (map == MAP_FAILED)
		return 1;
	start_readers(e, map, 140, PAGES);
	usleep(3000);
	/* without arguments this program prints its usage and exits with 2 */
	freopen("/dev/null", "w", stderr);
	execve("/proc/self/exe", argv, env);
	return 3;
}

bool t_exec(void)
{
	if (!make_file("exec", 140, PAGES))
		return false;
	for (int round = 0; round < 3; round++) {
		drop_caches();
		int status = in_child(map_and_exec, "exec");

		CHECK(status == 2, "the program after exec ended with %d", status);
	}
	return true;
}

bool t_kill_busy(void)
{
	char *map;

	if (!make_file("kill", 140, PAGES))
		return false;
	for (int round = 0; round < 12; round++) {
		int status;
		pid_t pid;

		drop_caches();
		pid = fork();
		if (!pid)
			_exit(read_for_ever("kill"));
		usleep(3000 + 731 * round);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		      "child ended with wait status %x", status);
	}
	drop_caches();
	map = map_file("kill", PAGES, PROT_READ, MAP_SHARED, NULL);
	return read_all(map, 140, 0, PAGES);
}

static int eat_memory(void *arg)
{
	struct endless e[READERS];
	char *map;

	if (!put_text(arg, "0"))
		return 1;
	map = map_file("oom", PAGES, PROT_READ, MAP_SHARED, NULL);
	if (map == MAP_FAILED)
		return 2;
	start_readers(e, map, 140, PAGES);
	for (;;) {
		char *more = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (more == MAP_FAILED)
			return 3;
		memset(more, 1, 1 << 20);
	}
}

/* A process is killed because its group is out of memory, while it has misses under way. */
bool t_oom(void)
{
	const char *group = "/sys/fs/cgroup/hwdp-oom";
	char procs[128], *map;
	int status;

	if (!put_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory"))
		SKIP("no memory cgroups");
	mkdir(group, 0755);
	CHECK(put_text("/sys/fs/cgroup/hwdp-oom/memory.max", "12582912"), "memory.max");
	put_text("/sys/fs/cgroup/hwdp-oom/memory.swap.max", "0");
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
	if (!make_file("oom", 140, PAGES))
		return false;
	for (int round = 0; round < 3; round++) {
		drop_caches();
		status = in_child(eat_memory, procs);
		CHECK(status == -SIGKILL, "ended with %d", status);
	}
	for (int tries = 0; tries < 100 && rmdir(group); tries++)
		usleep(10000);
	map = map_file("oom", PAGES, PROT_READ, MAP_SHARED, NULL);
	return read_all(map, 140, 0, PAGES);
}

/* fork while other threads miss: parent and child see the file, and the parent goes on. */
bool t_fork_busy(void)
{
	struct endless e[READERS];
	char *map;

	if (!setup("forkb", 140, PAGES, PROT_READ, MAP_PRIVATE, NULL, &map))
		return false;
	start_readers(e, map, 140, PAGES);
	for (int round = 0; round < 4; round++) {
		int status;
		pid_t pid = fork();

		if (!pid)
			_exit(!read_all(map + round * 256 * PAGE, 140, round * 256, 512));
		waitpid(pid, &status, 0);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status),
		      "child of round %d ended with wait status %x", round,
		      status);
	}
	CHECK(stop_readers(e), "a reader saw a wrong page");
	return read_all(map, 140, 0, PAGES);
}

/* vfork() shares the address space: nothing changes for the mapping. */
bool t_vfork(void)
{
	int status;
	char *map;
	long fast;
	pid_t pid;

	if (!setup("vfork", 140, 512, PROT_READ, MAP_PRIVATE, NULL, &map))
		return false;
	if (!read_all(map, 140, 0, 64))
		return false;
	pid = vfork();
	if (!pid)
		_exit(same(map + 64 * PAGE, 140, 64) ? 0 : 1);
	waitpid(pid, &status, 0);
	CHECK(!status, "child ended with wait status %x", status);
	fast = fast_pages();
	if (!read_all(map, 140, 65, 0) || !read_all(map + 65 * PAGE, 140, 65, 447))
		return false;
	CHECK(!have_smu() || fast_pages() - fast > 400, "only %ld pages by hardware afterwards",
	      fast_pages() - fast);
	return true;
}

/* A second process maps the file while the first misses on it. Then the first one is killed. */
bool t_two_processes(void)
{
	struct endless e[READERS];
	int status;
	char *map;
	pid_t pid;

	if (!make_file("twop", 140, PAGES))
		return false;
	drop_caches();
	pid = fork();
	if (!pid)
		_exit(read_for_ever("twop"));
	usleep(4000);
	map = map_file("twop", PAGES, PROT_READ, MAP_PRIVATE, NULL);
	start_readers(e, map, 140, PAGES);
	usleep(10000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	usleep(5000);
	CHECK(stop_readers(e), "a reader saw a wrong page");
	return read_all(map, 140, 0, PAGES);
}

/*
 * read() and write() on the file while threads miss on the mapping: readers see the old
 * or the new page, and never the old one after it was replaced.
 */
struct versions {
	const char *map;
	unsigned char *now;	/* seed of each page; odd: being written */
	bool stop;
	unsigned long seen, wrong;
	pthread_t thread;
	uint64_t state;
};

static void *version_reader(void *arg)
{
	struct versions *v = arg;
	uint64_t x = v->state;

	while (!__atomic_load_n(&v->stop, __ATOMIC_RELAXED)) {
		unsigned before, after;
		uint64_t first;
		size_t p;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p = x % PAGES;
		before = __atomic_load_n(&v->now[p], __ATOMIC_ACQUIRE);
		first = *(volatile uint64_t *)(v->map + p * PAGE);
		after = __atomic_load_n(&v->now[p], __ATOMIC_ACQUIRE);
		if (before == after && !(before & 1) && first != word(before, p, 0))
			v->wrong++;
		v->seen++;
	}
	return NULL;
}

bool t_write_busy(void)
{
	static unsigned char now[PAGES];
	struct versions v[READERS];
	char *map, page[PAGE];
	uint64_t x = 12345;
	int fd;

	memset(now, 140, sizeof(now));
	if (!setup("wbusy", 140, PAGES, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	for (int i = 0; i < READERS; i++) {
		v[i] = (struct versions){ .map = map, .now = now, .state = 77 + i };
		pthread_create(&v[i].thread, NULL, version_reader, &v[i]);
	}
	for (int i = 0; i < 1500; i++) {
		size_t p;

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		p = (x >> 33) % PAGES;
		if (i % 3) {
			CHECK(pread(fd, page, PAGE, p * PAGE) == PAGE && same(page, now[p], p),
			      "wrong content of read page %zu", p);
			continue;
		}
		fill(page, now[p] + 2, p);
		__atomic_store_n(&now[p], now[p] + 1, __ATOMIC_RELEASE);
		CHECK(pwrite(fd, page, PAGE, p * PAGE) == PAGE, "pwrite");
		__atomic_store_n(&now[p], now[p] + 1, __ATOMIC_RELEASE);
	}
	for (int i = 0; i < READERS; i++)
		__atomic_store_n(&v[i].stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < READERS; i++)
		pthread_join(v[i].thread, NULL);
	for (int i = 0; i < READERS; i++)
		CHECK(!v[i].wrong, "reader %d: %lu of %lu pages were old", i, v[i].wrong,
		      v[i].seen);
	for (size_t p = 0; p < PAGES; p++)
		CHECK(same(map + p * PAGE, now[p], p), "wrong content of page %zu", p);
	return true;
}

/* While holes are punched, readers see the file's bytes or zeroes, nothing else. */
static bool same_or_zero(const char *p, uint64_t seed, uint64_t page)
{
	uint64_t first = *(volatile uint64_t *)p;

	return !first || first == word(seed, page, 0);
}

static void *punched_reader(void *arg)
{
	struct endless *e = arg;
	uint64_t x = 99 + e->seed;

	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (!same_or_zero(e->map + x % e->pages * PAGE, 140, x % e->pages))
			e->wrong++;
	}
	return NULL;
}

bool t_punch_busy(void)
{
	struct endless e[READERS];
	char *map;
	int fd;

	if (!setup("pbusy", 140, PAGES, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	for (int i = 0; i < READERS; i++) {
		e[i] = (struct endless){ .map = map, .seed = i, .pages = PAGES };
		pthread_create(&e[i].thread, NULL, punched_reader, &e[i]);
	}
	for (int i = 0; i < 24; i++) {
		size_t from = i * 797 % (PAGES - 64);

		CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from * PAGE,
				 64 * PAGE), "punch: %s", strerror(errno));
		CHECK(!fsync(fd), "fsync");
		/* another file gets the freed blocks */
		if (!make_file("taker", 141 + i, 64))
			return false;
		for (size_t p = from; p < from + 64; p++)
			CHECK(is_zero(map + p * PAGE), "page %zu is not 0 in round %d", p, i);
	}
	CHECK(stop_readers(e), "a reader saw another file's page");
	return true;
}

/* Let the kernel read the mapping again and again, each time from the disk. */
static int write_for_ever(void *arg)
{
	int fd, out = syscall(SYS_memfd_create, "out", 0);
	char *map = map_file(arg, PAGES, PROT_READ, MAP_SHARED, &fd);

	if (map == MAP_FAILED || out < 0)
		return 1;
	for (;;) {
		/* so that entries are armed */
		for (size_t p = 0; p < PAGES; p += 100)
			touch(map + p * PAGE);
		if (pwrite(out, map, PAGES * PAGE, 0) != (ssize_t)(PAGES * PAGE))
			return 2;
		madvise(map, PAGES * PAGE, MADV_DONTNEED);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
}

/* A process that is killed ends at once, even while the kernel waits for one of its pages. */
bool t_kill_kernel_read(void)
{
	if (!make_file("killread", 141, PAGES))
		return false;
	for (int round = 0; round < 12; round++) {
		pid_t pid, got = 0;

		drop_caches();
		pid = fork();
		if (!pid)
			_exit(write_for_ever("killread"));
		usleep(3000 + round * 1700);
		kill(pid, SIGKILL);
		for (int tries = 0; tries < 1000 && !got; tries++, usleep(10000))
			got = waitpid(pid, NULL, WNOHANG);
		CHECK(got == pid, "round %d: the process is still there after 10 s", round);
	}
	return true;
}
