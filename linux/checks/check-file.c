// SPDX-License-Identifier: GPL-2.0
/* The file changes below the mapping. REQ: OS-3 */
#include "check.h"

bool t_truncate(void)
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
		      "page %zu can be read after truncate", p);
	}
	CHECK(ftruncate(fd, 256 * PAGE) == 0, "extend");
	if (!read_all(map, 13, 0, 16))
		return false;
	for (size_t p = 16; p < 256; p++)
		CHECK(!*(uint64_t *)(map + p * PAGE), "page %zu is not 0", p);
	munmap(map, 256 * PAGE);
	close(fd);
	return true;
}

bool t_punch(void)
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
			CHECK(!*(uint64_t *)(map + p * PAGE), "page %zu is not 0", p);
		else
			CHECK(same(map + p * PAGE, 14, p), "wrong content of page %zu", p);
	}
	munmap(map, 256 * PAGE);
	close(fd);
	return true;
}

bool t_collapse(void)
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
		      "wrong content of page %zu", p);
	munmap(map, 256 * PAGE);
	close(fd);
	return true;
}

/* Blocks that are freed and then written by another file must not show in the mapping. */
bool t_reuse(void)
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
		CHECK(!*(uint64_t *)(map + p * PAGE), "page %zu is not 0", p);
	munmap(map, 1024 * PAGE);
	close(fd);
	unlink(path("other"));
	return true;
}

/*
 * When the file is mapped, pages have been changed in the page cache and are not on
 * the disk yet. REQ: OS-2
 */
bool t_dirty(void)
{
	char *map, buf[PAGE];
	int fd;

	if (!make_file("dirty", 40, 512))
		return false;
	drop_caches();
	fd = open(path("dirty"), O_RDWR);
	for (size_t p = 0; p < 512; p += 3) {
		fill(buf, 41, p);
		CHECK(pwrite(fd, buf, PAGE, p * PAGE) == PAGE, "pwrite");
	}
	map = map_file("dirty", 512, PROT_READ, MAP_SHARED, NULL);
	CHECK(map != MAP_FAILED, "mmap");
	for (size_t p = 0; p < 512; p++)
		CHECK(same(map + p * PAGE, p % 3 ? 40 : 41, p), "wrong content of page %zu", p);
	munmap(map, 512 * PAGE);
	close(fd);
	return true;
}

/*
 * Blocks that were allocated but never written still hold bytes of a former file, which
 * must not show. REQ: OS-11
 */
bool t_unwritten(void)
{
	size_t pages = 16384;
	char *map;
	int fd;

	if (!make_file("stale", 42, pages))
		return false;
	unlink(path("stale"));
	sync();
	fd = open(path("fresh"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fallocate(fd, 0, 0, pages * PAGE) == 0, "fallocate");
	fsync(fd);
	close(fd);
	drop_caches();
	map = map_file("fresh", pages, PROT_READ, MAP_SHARED, NULL);
	CHECK(map != MAP_FAILED, "mmap");
	for (size_t p = 0; p < pages; p += 17)
		CHECK(!*(uint64_t *)(map + p * PAGE), "page %zu is not 0", p);
	munmap(map, pages * PAGE);
	unlink(path("fresh"));
	return true;
}
