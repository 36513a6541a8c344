// SPDX-License-Identifier: GPL-2.0
/* Reading and writing through the mapping and beside it. REQ: OS-1, OS-2, OS-10, OS-15 */
#include "check.h"

static long ring_depth(void)
{
	FILE *f = fopen("/sys/kernel/mm/hwdp/ring_depth", "r");
	long depth = 0;

	if (f) {
		if (fscanf(f, "%ld", &depth) != 1)
			depth = 0;
		fclose(f);
	}
	return depth;
}

static bool read_threads(int flags, unsigned threads)
{
	/* odd factors: every thread visits every page, each in a different order */
	static const unsigned muls[4] = { 1, 2731, 4099, 9973 };
	struct reader r[4];
	pthread_t t[4];
	long hw = fast_pages(), now, least;
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
		CHECK(r[i].ok, "thread %u read wrong content", i);
	now = fast_pages();
	CHECK(munmap(map, big_pages * PAGE) == 0, "munmap");
	/* A small ring may run empty; then hardware must serve at least half. */
	least = ring_depth() >= 4096 ? big_pages * 99 / 100 : big_pages / 2;
	CHECK(!have_smu() || now - hw >= least,
	      "hardware served %ld of %zu pages", now - hw, big_pages);
	return true;
}

bool t_read_private_1(void) { return read_threads(MAP_PRIVATE, 1); }
bool t_read_shared_1(void) { return read_threads(MAP_SHARED, 1); }
bool t_read_private_4(void) { return read_threads(MAP_PRIVATE, 4); }
bool t_read_shared_4(void) { return read_threads(MAP_SHARED, 4); }

/* A file that ends inside a page: zeroes follow its end, and SIGBUS comes beyond this page. */
bool t_eof(void)
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

bool t_hole(void)
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
			CHECK(!*(uint64_t *)(map + i * PAGE), "page %zu is not 0", i);
		else
			CHECK(same(map + i * PAGE, 3, i), "wrong content of page %zu", i);
	}
	munmap(map, 80 * PAGE);
	return true;
}

bool t_write_private(void)
{
	char *map;
	int fd;

	if (!setup("wp", 4, 256, PROT_READ | PROT_WRITE, MAP_PRIVATE, &fd, &map))
		return false;
	for (size_t p = 0; p < 256; p += 2) {
		if (p % 4 == 0)		/* half of them after a read */
			CHECK(same(map + p * PAGE, 4, p), "wrong content of page %zu", p);
		map[p * PAGE + 5] = 'x';
	}
	for (size_t p = 0; p < 256; p++) {
		CHECK(map[p * PAGE + 5] == (p % 2 ? (char)(word(4, p, 0) >> 40) :
					    'x'), "page %zu", p);
		CHECK(*(uint64_t *)(map + p * PAGE + 8) == word(4, p, 1),
		      "wrong content in the rest of page %zu", p);
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

bool t_write_shared(void)
{
	char *map;
	int fd;

	if (!setup("ws", 5, 256, PROT_READ | PROT_WRITE, MAP_SHARED, &fd, &map))
		return false;
	for (size_t p = 0; p < 256; p += 2) {
		if (p % 4 == 0)
			CHECK(same(map + p * PAGE, 5, p), "wrong content of page %zu", p);
		fill(map + p * PAGE, 6, p);
	}
	CHECK(msync(map, 256 * PAGE, MS_SYNC) == 0, "msync");
	munmap(map, 256 * PAGE);
	drop_caches();
	map = map_file("ws", 256, PROT_READ, MAP_SHARED, NULL);
	for (size_t p = 0; p < 256; p++)
		CHECK(same(map + p * PAGE, p % 2 ? 5 : 6, p), "wrong content of page %zu", p);
	munmap(map, 256 * PAGE);
	close(fd);
	return true;
}

/* write() shows in the mapping, whether its page was touched before or not. */
bool t_write_syscall(void)
{
	char *map, buf[PAGE];
	int fd;

	if (!setup("sys", 7, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	for (size_t p = 0; p < 256; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 7, p),
			      "wrong content of page %zu before the write", p);
		fill(buf, 8, p);
		CHECK(pwrite(fd, buf, PAGE, p * PAGE) == PAGE, "pwrite");
		CHECK(same(map + p * PAGE, 8, p), "wrong content of page %zu after the write", p);
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

bool t_read_syscall(void)
{
	char *map, buf[PAGE];
	int fd;

	if (!setup("rd", 9, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	for (size_t p = 0; p < 512; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 9, p),
			      "wrong content of page %zu in the mapping", p);
		CHECK(pread(fd, buf, PAGE, p * PAGE) == PAGE, "pread");
		CHECK(same(buf, 9, p), "wrong content of page %zu by pread", p);
		CHECK(same(map + p * PAGE, 9, p),
		      "wrong content of page %zu in the mapping after pread", p);
	}
	munmap(map, 512 * PAGE);
	close(fd);
	return true;
}

bool t_write_direct(void)
{
	char *map, *buf;
	int fd, dfd;

	if (!setup("dio", 10, 128, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	dfd = open(path("dio"), O_RDWR | O_DIRECT);
	CHECK(dfd >= 0 && !posix_memalign((void **)&buf, PAGE, PAGE), "O_DIRECT");
	for (size_t p = 0; p < 128; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 10, p),
			      "wrong content of page %zu before the write", p);
		fill(buf, 11, p);
		CHECK(pwrite(dfd, buf, PAGE, p * PAGE) == PAGE, "pwrite: %s",
		      strerror(errno));
		CHECK(same(map + p * PAGE, 11, p), "wrong content of page %zu after the write", p);
	}
	munmap(map, 128 * PAGE);
	close(dfd);
	close(fd);
	free(buf);
	return true;
}

bool t_read_direct(void)
{
	char *map, *buf;
	int dfd;

	if (!setup("dior", 12, 128, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	dfd = open(path("dior"), O_RDONLY | O_DIRECT);
	CHECK(dfd >= 0 && !posix_memalign((void **)&buf, PAGE, PAGE), "O_DIRECT");
	for (size_t p = 0; p < 128; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 12, p),
			      "wrong content of page %zu in the mapping", p);
		CHECK(pread(dfd, buf, PAGE, p * PAGE) == PAGE, "pread");
		CHECK(same(buf, 12, p), "wrong content of page %zu by direct read", p);
	}
	munmap(map, 128 * PAGE);
	close(dfd);
	free(buf);
	return true;
}
