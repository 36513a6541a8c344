// SPDX-License-Identifier: GPL-2.0
/*
 * Guest test of hardware-based demand paging: contents and interactions.
 *
 *	hwdp-check [-m MIB] [-p] DIR [NAME...]
 *
 * DIR lies on ext4. Every test maps a file with MAP_HWDP, with the page cache
 * dropped, and compares what it reads with what was written, page by page. The
 * same program runs without an SMU: then the mappings are ordinary and only the
 * contents are checked. -m sets the size of the large file (default 32 MiB),
 * -p adds the test whose file is larger than memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdarg.h>
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

static const char *dir;
static char why[256];
static size_t big_pages = 32 << 8;

#define CHECK(cond, ...) do {						\
	if (!(cond)) {							\
		snprintf(why, sizeof(why), __VA_ARGS__);		\
		return false;						\
	}								\
} while (0)

/* --- content: every word of a page depends on file, version and page */

static uint64_t word(uint64_t seed, uint64_t page, unsigned i)
{
	uint64_t x = (seed << 48) ^ (page << 12) ^ i;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static void fill(void *p, uint64_t seed, uint64_t page)
{
	uint64_t *w = p;

	for (unsigned i = 0; i < PAGE / 8; i++)
		w[i] = word(seed, page, i);
}

static bool same(const void *p, uint64_t seed, uint64_t page)
{
	const volatile uint64_t *w = p;

	/* A sample that touches every 512-byte block, and both ends. */
	for (unsigned i = 0; i < PAGE / 8; i += 21)
		if (w[i] != word(seed, page, i))
			return false;
	return w[PAGE / 8 - 1] == word(seed, page, PAGE / 8 - 1);
}

static const char *path(const char *name)
{
	static char buf[2][512];
	static int n;

	n ^= 1;
	snprintf(buf[n], sizeof(buf[n]), "%s/%s", dir, name);
	return buf[n];
}

static void drop_caches(void)
{
	int fd;

	sync();
	fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
	if (fd >= 0) {
		if (write(fd, "3\n", 2) != 2)
			perror("drop_caches");
		close(fd);
	}
}

static bool make_file(const char *name, uint64_t seed, size_t pages)
{
	static char buf[64 * PAGE];
	int fd = open(path(name), O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0, "create %s: %s", name, strerror(errno));
	for (size_t p = 0; p < pages; ) {
		size_t n = pages - p < 64 ? pages - p : 64;

		for (size_t i = 0; i < n; i++)
			fill(buf + i * PAGE, seed, p + i);
		CHECK(write(fd, buf, n * PAGE) == (ssize_t)(n * PAGE),
		      "write %s: %s", name, strerror(errno));
		p += n;
	}
	fsync(fd);
	close(fd);
	return true;
}

static void *map_file(const char *name, size_t pages, int prot, int flags,
		      int *fdp)
{
	int fd = open(path(name), prot & PROT_WRITE && flags & MAP_SHARED ?
		      O_RDWR : fdp ? O_RDWR : O_RDONLY);
	void *p;

	if (fd < 0)
		return MAP_FAILED;
	p = mmap(NULL, pages * PAGE, prot, flags | MAP_HWDP, fd, 0);
	if (fdp)
		*fdp = fd;
	else
		close(fd);
	return p;
}

static long stat_of(const char *name)
{
	FILE *f = fopen("/sys/kernel/mm/hwdp/stats", "r");
	char key[80];
	long value, found = -1;

	if (!f)
		return -1;
	while (fscanf(f, "%79s %ld", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	fclose(f);
	return found;
}

static long all_withdrawn(void)
{
	FILE *f = fopen("/sys/kernel/mm/hwdp/stats", "r");
	char key[80];
	long value, sum = 0;

	if (!f)
		return -1;
	while (fscanf(f, "%79s %ld", key, &value) == 2)
		if (!strncmp(key, "areas_withdrawn_", 16))
			sum += value;
	fclose(f);
	return sum;
}

static bool have_smu(void)
{
	return access("/sys/kernel/mm/hwdp/stats", R_OK) == 0;
}

/* A fresh file, cache dropped, mapped. */
static bool setup(const char *name, uint64_t seed, size_t pages, int prot,
		  int flags, int *fd, char **map)
{
	if (!make_file(name, seed, pages))
		return false;
	drop_caches();
	*map = map_file(name, pages, prot, flags, fd);
	CHECK(*map != MAP_FAILED, "mmap: %s", strerror(errno));
	return true;
}

static bool read_all(const char *map, uint64_t seed, size_t first, size_t pages)
{
	for (size_t p = 0; p < pages; p++)
		CHECK(same(map + p * PAGE, seed, first + p),
		      "page %zu differs", first + p);
	return true;
}

/* --- reading */

struct reader {
	const char *map;
	uint64_t seed;
	size_t pages;
	unsigned mul;
	bool ok;
};

static void *reader(void *arg)
{
	struct reader *r = arg;

	r->ok = true;
	for (size_t i = 0; i < r->pages; i++) {
		size_t p = (i * r->mul + r->mul) % r->pages;

		if (!same(r->map + p * PAGE, r->seed, p))
			r->ok = false;
	}
	return NULL;
}

static bool read_threads(int flags, unsigned threads)
{
	/* odd factors: every thread visits every page, in another order */
	static const unsigned muls[4] = { 1, 2731, 4099, 9973 };
	struct reader r[4];
	pthread_t t[4];
	long hw = stat_of("smu_installed"), now;
	char *map;

	if (!setup("big", 1, big_pages, PROT_READ, flags, NULL, &map))
		return false;
	for (unsigned i = 0; i < threads; i++) {
		r[i] = (struct reader){ map, 1, big_pages, muls[i], false };
		pthread_create(&t[i], NULL, reader, &r[i]);
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < threads; i++)
		CHECK(r[i].ok, "thread %u read something else", i);
	now = stat_of("smu_installed");
	CHECK(munmap(map, big_pages * PAGE) == 0, "munmap");
	/* The ring may run dry where memory is small; most must be fast. */
	CHECK(!have_smu() || now - hw >= (long)big_pages / 2,
	      "hardware served %ld of %zu", now - hw, big_pages);
	return true;
}

static bool t_read_private_1(void) { return read_threads(MAP_PRIVATE, 1); }
static bool t_read_shared_1(void) { return read_threads(MAP_SHARED, 1); }
static bool t_read_private_4(void) { return read_threads(MAP_PRIVATE, 4); }
static bool t_read_shared_4(void) { return read_threads(MAP_SHARED, 4); }

/* The last page of a file that ends inside it, and SIGBUS beyond. */
static bool t_eof(void)
{
	char *map, tail[8] = { 0 };
	int fd, status;
	pid_t pid;

	if (!make_file("eof", 2, 8))
		return false;
	fd = open(path("eof"), O_RDWR);
	CHECK(ftruncate(fd, 7 * PAGE + 100) == 0, "ftruncate");
	close(fd);
	drop_caches();
	map = map_file("eof", 9, PROT_READ, MAP_SHARED, NULL);
	CHECK(map != MAP_FAILED, "mmap: %s", strerror(errno));
	if (!read_all(map, 2, 0, 7))
		return false;
	CHECK(!memcmp(map + 7 * PAGE + 100, tail, 8), "no zeroes after EOF");
	pid = fork();
	if (!pid) {
		volatile char c = map[8 * PAGE];

		(void)c;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
	      "no SIGBUS beyond the file");
	munmap(map, 9 * PAGE);
	return true;
}

static bool t_hole(void)
{
	char *map;
	int fd;

	if (!make_file("hole", 3, 64))
		return false;
	fd = open(path("hole"), O_RDWR);
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			16 * PAGE, 16 * PAGE) == 0, "punch: %s", strerror(errno));
	CHECK(fallocate(fd, 0, 64 * PAGE, 16 * PAGE) == 0, "fallocate");
	close(fd);
	drop_caches();
	map = map_file("hole", 80, PROT_READ, MAP_PRIVATE, NULL);
	CHECK(map != MAP_FAILED, "mmap");
	for (size_t i = 0; i < 80; i++) {
		if ((i >= 16 && i < 32) || i >= 64)
			CHECK(!*(uint64_t *)(map + i * PAGE), "page %zu not 0", i);
		else
			CHECK(same(map + i * PAGE, 3, i), "page %zu", i);
	}
	munmap(map, 80 * PAGE);
	return true;
}

/* --- writing */

static bool t_write_private(void)
{
	char *map;
	int fd;

	if (!setup("wp", 4, 256, PROT_READ | PROT_WRITE, MAP_PRIVATE, &fd, &map))
		return false;
	for (size_t p = 0; p < 256; p += 2) {
		if (p % 4 == 0)		/* half of them after a read */
			CHECK(same(map + p * PAGE, 4, p), "page %zu", p);
		map[p * PAGE + 5] = 'x';
	}
	for (size_t p = 0; p < 256; p++) {
		CHECK(map[p * PAGE + 5] == (p % 2 ? (char)(word(4, p, 0) >> 40) :
					    'x'), "page %zu", p);
		CHECK(*(uint64_t *)(map + p * PAGE + 8) == word(4, p, 1),
		      "rest of page %zu", p);
	}
	munmap(map, 256 * PAGE);
	drop_caches();
	map = map_file("wp", 256, PROT_READ, MAP_PRIVATE, NULL);
	if (!read_all(map, 4, 0, 256))
		return false;
	munmap(map, 256 * PAGE);
	close(fd);
	return true;
}

static bool t_write_shared(void)
{
	char *map;
	int fd;

	if (!setup("ws", 5, 256, PROT_READ | PROT_WRITE, MAP_SHARED, &fd, &map))
		return false;
	for (size_t p = 0; p < 256; p += 2) {
		if (p % 4 == 0)
			CHECK(same(map + p * PAGE, 5, p), "page %zu", p);
		fill(map + p * PAGE, 6, p);
	}
	CHECK(msync(map, 256 * PAGE, MS_SYNC) == 0, "msync");
	munmap(map, 256 * PAGE);
	drop_caches();
	map = map_file("ws", 256, PROT_READ, MAP_SHARED, NULL);
	for (size_t p = 0; p < 256; p++)
		CHECK(same(map + p * PAGE, p % 2 ? 5 : 6, p), "page %zu", p);
	munmap(map, 256 * PAGE);
	close(fd);
	return true;
}

/* write() shows in the mapping, whether its page was touched before or not. */
static bool t_write_syscall(void)
{
	char *map, buf[PAGE];
	int fd;

	if (!setup("sys", 7, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	for (size_t p = 0; p < 256; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 7, p), "before, %zu", p);
		fill(buf, 8, p);
		CHECK(pwrite(fd, buf, PAGE, p * PAGE) == PAGE, "pwrite");
		CHECK(same(map + p * PAGE, 8, p), "after, %zu", p);
	}
	CHECK(fsync(fd) == 0, "fsync");
	munmap(map, 256 * PAGE);
	drop_caches();
	map = map_file("sys", 256, PROT_READ, MAP_SHARED, NULL);
	if (!read_all(map, 8, 0, 256))
		return false;
	munmap(map, 256 * PAGE);
	close(fd);
	return true;
}

static bool t_read_syscall(void)
{
	char *map, buf[PAGE];
	int fd;

	if (!setup("rd", 9, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	for (size_t p = 0; p < 512; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 9, p), "map, %zu", p);
		CHECK(pread(fd, buf, PAGE, p * PAGE) == PAGE, "pread");
		CHECK(same(buf, 9, p), "pread, %zu", p);
		CHECK(same(map + p * PAGE, 9, p), "map again, %zu", p);
	}
	munmap(map, 512 * PAGE);
	close(fd);
	return true;
}

static bool t_write_direct(void)
{
	char *map, *buf;
	int fd, dfd;

	if (!setup("dio", 10, 128, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	dfd = open(path("dio"), O_RDWR | O_DIRECT);
	CHECK(dfd >= 0 && !posix_memalign((void **)&buf, PAGE, PAGE), "O_DIRECT");
	for (size_t p = 0; p < 128; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 10, p), "before, %zu", p);
		fill(buf, 11, p);
		CHECK(pwrite(dfd, buf, PAGE, p * PAGE) == PAGE, "pwrite: %s",
		      strerror(errno));
		CHECK(same(map + p * PAGE, 11, p), "after, %zu", p);
	}
	munmap(map, 128 * PAGE);
	close(dfd);
	close(fd);
	free(buf);
	return true;
}

static bool t_read_direct(void)
{
	char *map, *buf;
	int dfd;

	if (!setup("dior", 12, 128, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	dfd = open(path("dior"), O_RDONLY | O_DIRECT);
	CHECK(dfd >= 0 && !posix_memalign((void **)&buf, PAGE, PAGE), "O_DIRECT");
	for (size_t p = 0; p < 128; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 12, p), "map, %zu", p);
		CHECK(pread(dfd, buf, PAGE, p * PAGE) == PAGE, "pread");
		CHECK(same(buf, 12, p), "direct, %zu", p);
	}
	munmap(map, 128 * PAGE);
	close(dfd);
	free(buf);
	return true;
}

/* --- the file changes below the mapping */

static bool t_truncate(void)
{
	volatile char *v;
	char *map;
	int fd, status;
	pid_t pid;

	if (!setup("trunc", 13, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 13, 0, 32))
		return false;
	CHECK(ftruncate(fd, 16 * PAGE) == 0, "ftruncate");
	for (size_t p = 16; p < 256; p += 24) {
		pid = fork();
		if (!pid) {
			v = map + p * PAGE;
			(void)*v;
			_exit(0);
		}
		waitpid(pid, &status, 0);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
		      "page %zu outlived truncate", p);
	}
	CHECK(ftruncate(fd, 256 * PAGE) == 0, "extend");
	if (!read_all(map, 13, 0, 16))
		return false;
	for (size_t p = 16; p < 256; p++)
		CHECK(!*(uint64_t *)(map + p * PAGE), "page %zu not 0", p);
	munmap(map, 256 * PAGE);
	close(fd);
	return true;
}

static bool t_punch(void)
{
	char *map;
	int fd;

	if (!setup("punch", 14, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 14, 0, 100))
		return false;
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			64 * PAGE, 128 * PAGE) == 0, "punch");
	for (size_t p = 0; p < 256; p++) {
		if (p >= 64 && p < 192)
			CHECK(!*(uint64_t *)(map + p * PAGE), "page %zu not 0", p);
		else
			CHECK(same(map + p * PAGE, 14, p), "page %zu", p);
	}
	munmap(map, 256 * PAGE);
	close(fd);
	return true;
}

static bool t_collapse(void)
{
	char *map;
	int fd;

	if (!setup("coll", 15, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 15, 0, 100))
		return false;
	CHECK(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 64 * PAGE, 64 * PAGE) == 0,
	      "collapse: %s", strerror(errno));
	for (size_t p = 0; p < 192; p++)
		CHECK(same(map + p * PAGE, 15, p < 64 ? p : p + 64),
		      "page %zu", p);
	munmap(map, 256 * PAGE);
	close(fd);
	return true;
}

/* Blocks freed and written again as another file must not shine through. */
static bool t_reuse(void)
{
	char *map;
	int fd;

	if (!setup("reuse", 16, 1024, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 16, 0, 8))
		return false;
	CHECK(ftruncate(fd, 0) == 0, "ftruncate");
	if (!make_file("other", 17, 1024))
		return false;
	CHECK(ftruncate(fd, 1024 * PAGE) == 0, "extend");
	for (size_t p = 0; p < 1024; p++)
		CHECK(!*(uint64_t *)(map + p * PAGE), "page %zu not 0", p);
	munmap(map, 1024 * PAGE);
	close(fd);
	unlink(path("other"));
	return true;
}

/* --- the address space changes */

static bool t_munmap_middle(void)
{
	char *map;

	if (!setup("mid", 18, 2048, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 18, 0, 600))
		return false;
	CHECK(munmap(map + 500 * PAGE, 300 * PAGE) == 0, "munmap");
	if (!read_all(map, 18, 0, 500) ||
	    !read_all(map + 800 * PAGE, 18, 800, 1248))
		return false;
	munmap(map, 2048 * PAGE);
	return true;
}

static bool t_munmap_busy(void)
{
	/* Threads fault while the rest of the mapping goes away under them. */
	for (int round = 0; round < 3; round++) {
		struct reader r[3];
		pthread_t t[3];
		char *map;

		if (!setup("busy", 19, 2048, PROT_READ, MAP_SHARED, NULL, &map))
			return false;
		for (int i = 0; i < 3; i++) {
			r[i] = (struct reader){ map, 19, 1024, 3 + 2 * i, false };
			pthread_create(&t[i], NULL, reader, &r[i]);
		}
		munmap(map + 1024 * PAGE, 1024 * PAGE);
		for (int i = 0; i < 3; i++)
			pthread_join(t[i], NULL);
		for (int i = 0; i < 3; i++)
			CHECK(r[i].ok, "thread %d", i);
		munmap(map, 1024 * PAGE);
	}
	return true;
}

static bool t_exit_middle(void)
{
	if (!make_file("exit", 20, 2048))
		return false;
	for (int round = 0; round < 4; round++) {
		int status;
		pid_t pid;

		drop_caches();
		pid = fork();
		if (!pid) {
			struct reader r[3];
			pthread_t t[3];
			char *map = map_file("exit", 2048, PROT_READ,
					     MAP_SHARED, NULL);

			for (int i = 0; i < 3; i++) {
				r[i] = (struct reader){ map, 20, 2048, 3 + 2 * i,
							false };
				pthread_create(&t[i], NULL, reader, &r[i]);
			}
			usleep(1000 * (1 + round));
			_exit(7);
		}
		waitpid(pid, &status, 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "exit");
	}
	return true;
}

static bool t_fork(void)
{
	char *map;
	int status;
	pid_t pid;

	if (!setup("fork", 21, 512, PROT_READ | PROT_WRITE, MAP_PRIVATE, NULL,
		   &map))
		return false;
	if (!read_all(map, 21, 0, 100))
		return false;
	map[0] = 'p';
	pid = fork();
	if (!pid) {
		bool ok = map[0] == 'p' && read_all(map + PAGE, 21, 1, 511);

		map[PAGE] = 'c';
		_exit(!ok);
	}
	if (!read_all(map + PAGE, 21, 1, 511))
		return false;
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "child");
	CHECK(same(map + PAGE, 21, 1), "child's write seen");
	munmap(map, 512 * PAGE);
	return true;
}

static bool t_two_mappings(void)
{
	char *a, *b;
	int status;
	pid_t pid;

	if (!setup("two", 22, 512, PROT_READ, MAP_SHARED, NULL, &a))
		return false;
	b = map_file("two", 512, PROT_READ, MAP_PRIVATE, NULL);
	CHECK(b != MAP_FAILED, "mmap");
	pid = fork();	/* a process of its own with a mapping of its own */
	if (!pid) {
		char *c = map_file("two", 512, PROT_READ, MAP_SHARED, NULL);

		_exit(!read_all(c, 22, 0, 512));
	}
	for (size_t p = 0; p < 512; p++) {
		CHECK(same((p % 2 ? a : b) + p * PAGE, 22, p), "first, %zu", p);
		CHECK(same((p % 2 ? b : a) + p * PAGE, 22, p), "second, %zu", p);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "other process");
	munmap(a, 512 * PAGE);
	if (!read_all(b, 22, 0, 512))
		return false;
	munmap(b, 512 * PAGE);
	return true;
}

static bool t_mprotect(void)
{
	char *map;
	int fd;

	if (!setup("prot", 23, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 23, 0, 64))
		return false;
	CHECK(mprotect(map + 32 * PAGE, 64 * PAGE, PROT_READ | PROT_WRITE) == 0,
	      "mprotect: %s", strerror(errno));
	for (size_t p = 32; p < 96; p++)
		fill(map + p * PAGE, 24, p);
	CHECK(mprotect(map + 32 * PAGE, 64 * PAGE, PROT_NONE) == 0, "PROT_NONE");
	CHECK(mprotect(map + 32 * PAGE, 64 * PAGE, PROT_READ) == 0, "PROT_READ");
	for (size_t p = 0; p < 512; p++)
		CHECK(same(map + p * PAGE, p >= 32 && p < 96 ? 24 : 23, p),
		      "page %zu", p);
	munmap(map, 512 * PAGE);
	close(fd);
	return true;
}

static bool t_mremap(void)
{
	char *map, *to;

	if (!setup("remap", 25, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 25, 0, 64))
		return false;
	to = mmap(NULL, 1024 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mremap(map, 256 * PAGE, 256 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		     to) == to, "mremap: %s", strerror(errno));
	if (!read_all(to, 25, 0, 256) ||
	    !read_all(map + 256 * PAGE, 25, 256, 256))
		return false;
	munmap(to, 1024 * PAGE);
	munmap(map + 256 * PAGE, 256 * PAGE);
	return true;
}

static bool t_madvise(void)
{
	static const int advice[] = { MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED,
		MADV_DONTNEED, MADV_COLD, MADV_PAGEOUT, MADV_NORMAL };
	char *map;

	for (unsigned i = 0; i < sizeof(advice) / sizeof(advice[0]); i++) {
		if (!setup("adv", 26, 512, PROT_READ, MAP_SHARED, NULL, &map))
			return false;
		if (!read_all(map, 26, 0, 64))
			return false;
		CHECK(madvise(map, 512 * PAGE, advice[i]) == 0, "whole, %d", i);
		if (!read_all(map, 26, 0, 128))
			return false;
		CHECK(madvise(map + 100 * PAGE, 100 * PAGE, advice[i]) == 0,
		      "part, %d", i);
		if (!read_all(map, 26, 0, 512))
			return false;
		munmap(map, 512 * PAGE);
	}
	return true;
}

static bool t_mlock(void)
{
	unsigned char vec[64];
	char *map;

	if (!setup("lock", 27, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 27, 0, 20))
		return false;
	CHECK(mincore(map, 64 * PAGE, vec) == 0, "mincore");
	for (int i = 0; i < 20; i++)
		CHECK(vec[i] & 1, "page %d not in core", i);
	CHECK(mlock(map, 64 * PAGE) == 0, "mlock: %s", strerror(errno));
	CHECK(mincore(map, 64 * PAGE, vec) == 0, "mincore");
	for (int i = 0; i < 64; i++)
		CHECK(vec[i] & 1, "locked page %d not in core", i);
	if (!read_all(map, 27, 0, 512))
		return false;
	munlock(map, 64 * PAGE);
	munmap(map, 512 * PAGE);
	return true;
}

/* The kernel reads user memory: write(2) from the mapping, and by pinning. */
static bool t_kernel_access(void)
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
		CHECK(same(buf, 28, p), "copied page %zu", p);
	}
	for (size_t p = 256; p < 512; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 28, p), "page %zu", p);
		local = (struct iovec){ buf, PAGE };
		remote = (struct iovec){ map + p * PAGE, PAGE };
		CHECK(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == PAGE,
		      "process_vm_readv: %s", strerror(errno));
		CHECK(same(buf, 28, p), "pinned page %zu", p);
	}
	close(out);
	out = open(path("copy"), O_RDWR | O_DIRECT);
	for (size_t p = 0; p < 64; p++)
		CHECK(pwrite(out, map + (256 + 2 * p) * PAGE, PAGE, p * PAGE) ==
		      PAGE, "direct write from the mapping: %s", strerror(errno));
	for (size_t p = 0; p < 64; p++) {
		CHECK(pread(out, (char *)(((uintptr_t)buf)), 0, 0) == 0, "pread");
	}
	close(out);
	out = open(path("copy"), O_RDONLY);
	for (size_t p = 0; p < 64; p++) {
		CHECK(pread(out, buf, PAGE, p * PAGE) == PAGE, "pread");
		CHECK(same(buf, 28, 256 + 2 * p), "direct copy of page %zu", p);
	}
	close(out);
	munmap(map, 512 * PAGE);
	return true;
}

static bool t_proc(void)
{
	static const char * const files[] = { "/proc/self/smaps",
		"/proc/self/pagemap", "/proc/self/maps", "/proc/self/smaps_rollup" };
	static char buf[1 << 16];
	uint64_t entry;
	char *map;
	int fd;

	if (!setup("proc", 29, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 29, 0, 100))
		return false;
	for (unsigned i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		fd = open(files[i], O_RDONLY);
		CHECK(fd >= 0, "open %s", files[i]);
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		close(fd);
	}
	fd = open(files[1], O_RDONLY);
	for (size_t p = 0; p < 512; p++) {
		CHECK(pread(fd, &entry, 8, ((uintptr_t)map / PAGE + p) * 8) == 8,
		      "pagemap");
		CHECK(!(entry >> 62 & 1), "page %zu shown as swapped", p);
		CHECK(p >= 100 || entry >> 63, "page %zu not present", p);
	}
	close(fd);
	fd = open("/proc/self/clear_refs", O_WRONLY);
	CHECK(fd >= 0 && write(fd, "1", 1) == 1, "clear_refs");
	close(fd);
	if (!read_all(map, 29, 0, 512))
		return false;
	munmap(map, 512 * PAGE);
	return true;
}

static bool t_drop_caches(void)
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

static bool t_fixed_over(void)
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
			CHECK(!*(uint64_t *)(map + p * PAGE), "page %zu", p);
		else
			CHECK(same(map + p * PAGE, 31, p), "page %zu", p);
	}
	munmap(map, 512 * PAGE);
	return true;
}

/* Mapped and unmapped again and again at one address: no second life. */
static bool t_again(void)
{
	if (!make_file("again", 32, 256))
		return false;
	for (int i = 0; i < 20; i++) {
		char *map;

		drop_caches();
		map = map_file("again", 256, PROT_READ, MAP_SHARED, NULL);
		CHECK(map != MAP_FAILED, "mmap");
		if (!read_all(map + i * PAGE, 32, i, 5))
			return false;
		munmap(map, 256 * PAGE);
	}
	return true;
}

static bool t_off_on(void)
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
static bool t_pressure(void)
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
		CHECK(r[i].ok, "thread %d", i);
	munmap(map, pages * PAGE);
	unlink(path("huge"));
	return true;
}

/* At the end: every frame that the unit took has been accounted for. */
static bool t_frames(void)
{
	long used, settled, areas;

	if (!have_smu())
		return true;
	sleep(1);
	used = stat_of("smu_installed");
	settled = stat_of("pages_adopted") + stat_of("pages_discarded");
	CHECK(used == settled, "installed %ld, adopted or discarded %ld", used,
	      settled);
	CHECK(stat_of("smu_stray_cqe") == 0, "stray completions");
	areas = stat_of("areas_made");
	CHECK(areas <= all_withdrawn(), "%ld areas, %ld withdrawn", areas,
	      all_withdrawn());
	return true;
}

static const struct test {
	const char *name;
	bool (*run)(void);
	bool optional;	/* needs -p or its name */
} tests[] = {
	{ "read_private_1", t_read_private_1 },
	{ "read_shared_1", t_read_shared_1 },
	{ "read_private_4", t_read_private_4 },
	{ "read_shared_4", t_read_shared_4 },
	{ "eof", t_eof },
	{ "hole", t_hole },
	{ "write_private", t_write_private },
	{ "write_shared", t_write_shared },
	{ "write_syscall", t_write_syscall },
	{ "read_syscall", t_read_syscall },
	{ "read_direct", t_read_direct },
	{ "write_direct", t_write_direct },
	{ "truncate", t_truncate },
	{ "punch", t_punch },
	{ "collapse", t_collapse },
	{ "reuse", t_reuse },
	{ "munmap_middle", t_munmap_middle },
	{ "munmap_busy", t_munmap_busy },
	{ "exit_middle", t_exit_middle },
	{ "fork", t_fork },
	{ "two_mappings", t_two_mappings },
	{ "mprotect", t_mprotect },
	{ "mremap", t_mremap },
	{ "madvise", t_madvise },
	{ "mlock", t_mlock },
	{ "kernel_access", t_kernel_access },
	{ "proc", t_proc },
	{ "drop_caches", t_drop_caches },
	{ "fixed_over", t_fixed_over },
	{ "again", t_again },
	{ "off_on", t_off_on },
	{ "pressure", t_pressure, true },
	{ "frames", t_frames },
};

int main(int argc, char **argv)
{
	unsigned passed = 0, failed = 0;
	bool pressure = false;
	int opt;

	while ((opt = getopt(argc, argv, "m:p")) > 0) {
		switch (opt) {
		case 'm':
			big_pages = strtoul(optarg, NULL, 0) << 8;
			break;
		case 'p':
			pressure = true;
			break;
		default:
			optind = argc;
		}
	}
	if (optind >= argc || !big_pages) {
		fprintf(stderr, "usage: hwdp-check [-m MIB] [-p] DIR [NAME...]\n");
		return 2;
	}
	dir = argv[optind++];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		bool chosen = optind == argc && (!tests[i].optional || pressure);

		for (int a = optind; a < argc; a++)
			chosen |= !strcmp(argv[a], tests[i].name);
		if (!chosen)
			continue;
		why[0] = 0;
		if (tests[i].run()) {
			passed++;
			printf("ok   %s\n", tests[i].name);
		} else {
			failed++;
			printf("FAIL %s: %s\n", tests[i].name, why);
		}
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
