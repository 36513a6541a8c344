// SPDX-License-Identifier: GPL-2.0
/* The address space changes. REQ: OS-4, OS-5, OS-8 */
#include "check.h"

bool t_munmap_middle(void)
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

bool t_munmap_busy(void)
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
			CHECK(r[i].ok, "thread %d read wrong content", i);
		munmap(map, 1024 * PAGE);
	}
	return true;
}

bool t_exit_middle(void)
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

bool t_fork(void)
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
	CHECK(same(map + PAGE, 21, 1), "the parent sees the child's write");
	munmap(map, 512 * PAGE);
	return true;
}

bool t_two_mappings(void)
{
	char *a, *b;
	int status;
	pid_t pid;

	if (!setup("two", 22, 512, PROT_READ, MAP_SHARED, NULL, &a))
		return false;
	b = map_file("two", 512, PROT_READ, MAP_PRIVATE, NULL);
	CHECK(b != MAP_FAILED, "mmap");
	pid = fork();	/* a separate process with a separate mapping */
	if (!pid) {
		char *c = map_file("two", 512, PROT_READ, MAP_SHARED, NULL);

		_exit(!read_all(c, 22, 0, 512));
	}
	for (size_t p = 0; p < 512; p++) {
		CHECK(same((p % 2 ? a : b) + p * PAGE, 22, p),
		      "wrong content of page %zu in one mapping", p);
		CHECK(same((p % 2 ? b : a) + p * PAGE, 22, p),
		      "wrong content of page %zu in the other mapping", p);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "other process");
	munmap(a, 512 * PAGE);
	if (!read_all(b, 22, 0, 512))
		return false;
	munmap(b, 512 * PAGE);
	return true;
}

bool t_mprotect(void)
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
		      "wrong content of page %zu", p);
	munmap(map, 512 * PAGE);
	close(fd);
	return true;
}

/* mprotect() of a whole mapping, which needs no split. */
bool t_mprotect_whole(void)
{
	char *map;
	int fd;

	if (!setup("protw", 37, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 37, 0, 64))
		return false;
	CHECK(mprotect(map, 512 * PAGE, PROT_NONE) == 0, "PROT_NONE");
	for (size_t p = 0; p < 512; p += 50) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			volatile char c = map[p * PAGE];

			(void)c;
			_exit(0);
		}
		waitpid(pid, &status, 0);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
		      "page %zu can be read", p);
	}
	CHECK(mprotect(map, 512 * PAGE, PROT_READ | PROT_WRITE) == 0, "rw");
	for (size_t p = 32; p < 96; p++)
		fill(map + p * PAGE, 38, p);
	for (size_t p = 0; p < 512; p++)
		CHECK(same(map + p * PAGE, p >= 32 && p < 96 ? 38 : 37, p),
		      "wrong content of page %zu", p);
	munmap(map, 512 * PAGE);
	close(fd);
	return true;
}

/* Split the mapping without any other change. Then unmap one part, with its page tables. */
bool t_split(void)
{
	for (int round = 0; round < 4; round++) {
		size_t advised = round & 1 ? 2048 : 0;
		size_t gone = round & 2 ? 2048 : 0, left = gone ^ 2048;
		char *map;

		if (!setup("split", 39, 4096, PROT_READ, MAP_SHARED, NULL, &map))
			return false;
		/* these pages are so few that they are not adopted yet */
		if (!read_all(map + gone * PAGE, 39, gone, 1000))
			return false;
		CHECK(madvise(map + advised * PAGE, 2048 * PAGE,
			      MADV_SEQUENTIAL) == 0, "madvise");
		munmap(map + gone * PAGE, 2048 * PAGE);
		if (!read_all(map + left * PAGE, 39, left, 2048))
			return false;
		munmap(map + left * PAGE, 2048 * PAGE);
	}
	return true;
}

bool t_mremap(void)
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

bool t_madvise(void)
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

bool t_mlock(void)
{
	unsigned char vec[64];
	long before;
	char *map;

	if (!setup("lock", 27, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 27, 0, 20))
		return false;
	CHECK(mincore(map, 64 * PAGE, vec) == 0, "mincore");
	for (int i = 0; i < 20; i++)
		CHECK(vec[i] & 1, "page %d is not in memory", i);
	CHECK(mlock(map, 64 * PAGE) == 0, "mlock: %s", strerror(errno));
	CHECK(mincore(map, 64 * PAGE, vec) == 0, "mincore");
	for (int i = 0; i < 64; i++)
		CHECK(vec[i] & 1, "locked page %d is not in memory", i);
	if (!read_all(map, 27, 0, 512))
		return false;
	munlock(map, 64 * PAGE);
	munmap(map, 512 * PAGE);

	/* lock all of it, without a split */
	before = vmstat("nr_mlock");
	if (!setup("lockw", 27, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 27, 0, 20))
		return false;
	CHECK(mlock(map, 512 * PAGE) == 0, "mlock: %s", strerror(errno));
	CHECK(mincore(map, 64 * PAGE, vec) == 0, "mincore");
	for (int i = 0; i < 64; i++)
		CHECK(vec[i] & 1, "locked page %d of all is not in memory", i);
	CHECK(vmstat("nr_mlock") - before == 512, "%ld of 512 pages are locked",
	      vmstat("nr_mlock") - before);
	drop_caches();
	if (!read_all(map, 27, 0, 512))
		return false;
	munmap(map, 512 * PAGE);
	return true;
}

/* Two mappings of one file that are adjacent in memory and in the file. */
bool t_adjacent(void)
{
	char *map, *more;
	int fd;

	if (!make_file("adj", 43, 512))
		return false;
	drop_caches();
	map = mmap(NULL, 512 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fd = open(path("adj"), O_RDWR);
	CHECK(mmap(map, 256 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_HWDP, fd, 0) == map,
	      "mmap");
	more = mmap(map + 256 * PAGE, 256 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_HWDP,
		    fd, 256 * PAGE);
	CHECK(more == map + 256 * PAGE, "mmap behind");
	if (!read_all(map, 43, 0, 300))
		return false;
	munmap(more, 256 * PAGE);
	if (!read_all(map, 43, 0, 256))
		return false;
	munmap(map, 256 * PAGE);
	return true;
}

/* Lock, unlock, evict and unmap pages: memory mapped there afterwards is zero. */
bool t_munlock(void)
{
	char *map, *anon;

	if (!setup("unlock", 181, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 181, 0, 20))
		return false;
	CHECK(!mlock(map, 512 * PAGE) && !munlock(map, 512 * PAGE), "mlock: %s", strerror(errno));
	CHECK(!madvise(map, 512 * PAGE, MADV_PAGEOUT), "pageout");
	drop_caches();
	usleep(50000);
	if (!read_all(map, 181, 0, 20))
		return false;
	munmap(map, 512 * PAGE);
	anon = mmap(map, 512 * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(anon == map, "mmap over");
	for (size_t p = 0; p < 512; p++)
		CHECK(is_zero(anon + p * PAGE), "page %zu of fresh memory is not 0", p);
	return true;
}

/* A long mapping of a short file takes little memory of the kernel, wherever it is touched. */
bool t_long_mapping(void)
{
	size_t tables = sysconf(_SC_PHYS_PAGES) / 2, size = tables << 21;
	long before, after;
	char *map;
	int fd;

	if (!make_file("long", 142, 16))
		return false;
	drop_caches();
	fd = open(path("long"), O_RDONLY);
	map = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_HWDP, fd, 0);
	CHECK(map != MAP_FAILED, "mmap: %s", strerror(errno));
	CHECK(same(map, 142, 0) && same(map + 9 * PAGE, 142, 9), "the file's pages");
	before = vmstat("nr_slab_unreclaimable");
	for (size_t i = 1; i < 1000; i++)
		CHECK(touch(map + i * (tables / 1000) * (2ul << 20)) == SIGBUS, "no SIGBUS at %zu", i);
	usleep(500000);
	after = vmstat("nr_slab_unreclaimable");
	CHECK(after - before < (long)(tables * 64 / PAGE),
	      "%ld pages of kernel memory for a file of 16 pages",
	      after - before);
	munmap(map, size);
	close(fd);
	return true;
}
