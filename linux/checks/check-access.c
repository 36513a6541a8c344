// SPDX-License-Identifier: GPL-2.0
/* The kernel itself accesses the pages of a mapping. REQ: OS-8 */
#include "check.h"
#include <elf.h>
#include <linux/futex.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

/* O_DIRECT reads put another file's pages into the mapping. */
static bool direct_into(int flags, uint64_t seed)
{
	char *map, page[PAGE];
	int fd, from;

	if (!make_file("from", seed + 1, 128) ||
	    !setup("into", seed, 256, PROT_READ | PROT_WRITE, flags, &fd, &map))
		return false;
	from = open(path("from"), O_RDONLY | O_DIRECT);
	if (!read_all(map, seed, 0, 64))
		return false;
	for (size_t p = 0; p < 128; p++)
		CHECK(pread(from, map + p * PAGE, PAGE, p * PAGE) == PAGE, "direct read: %s",
		      strerror(errno));
	if (!read_all(map, seed + 1, 0, 128) || !read_all(map + 128 * PAGE, seed, 128, 128))
		return false;
	CHECK(!msync(map, 256 * PAGE, MS_SYNC), "msync");
	munmap(map, 256 * PAGE);
	drop_caches();
	for (size_t p = 0; p < 256; p++) {
		CHECK(pread(fd, page, PAGE, p * PAGE) == PAGE, "pread");
		CHECK(same(page, flags == MAP_SHARED && p < 128 ? seed + 1 : seed, p),
		      "wrong content of file's page %zu", p);
	}
	return true;
}

bool t_direct_into_private(void) { return direct_into(MAP_PRIVATE, 70); }
bool t_direct_into_shared(void) { return direct_into(MAP_SHARED, 72); }

/* Pages given to a pipe outlive the mapping. */
bool t_vmsplice(void)
{
	char *map, page[PAGE];
	int pipes[2];

	if (!setup("vms", 74, 64, PROT_READ, MAP_PRIVATE, NULL, &map))
		return false;
	if (!read_all(map, 74, 0, 8))
		return false;
	CHECK(!pipe(pipes), "pipe");
	for (size_t p = 0; p < 16; p++) {
		struct iovec part = { map + p * PAGE, PAGE };

		CHECK(vmsplice(pipes[1], &part, 1, 0) == PAGE, "vmsplice: %s", strerror(errno));
	}
	munmap(map, 64 * PAGE);
	drop_caches();
	for (size_t p = 0; p < 16; p++) {
		for (size_t got = 0; got < PAGE; ) {
			ssize_t n = read(pipes[0], page + got, PAGE - got);

			CHECK(n > 0, "pipe: %s", strerror(errno));
			got += n;
		}
		CHECK(same(page, 74, p), "wrong content of page %zu", p);
	}
	return true;
}

/* splice() and sendfile() from a file that has unsynced pages. */
bool t_splice(void)
{
	char *map, page[PAGE];
	int fd, out, pipes[2];
	loff_t at;

	if (!setup("spl", 75, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	out = open(path("out"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(!pipe(pipes), "pipe");
	for (size_t p = 0; p < 256; p++) {
		if (p % 3 == 1)
			CHECK(same(map + p * PAGE, 75, p), "wrong content of page %zu", p);
		at = p * PAGE;
		if (p % 2) {
			CHECK(splice(fd, &at, pipes[1], NULL, PAGE, 0) == PAGE &&
			      splice(pipes[0], NULL, out, NULL, PAGE, 0) == PAGE, "splice: %s",
			      strerror(errno));
		} else {
			CHECK(sendfile(out, fd, &at, PAGE) == PAGE, "sendfile: %s",
			      strerror(errno));
		}
	}
	for (size_t p = 0; p < 256; p++) {
		CHECK(pread(out, page, PAGE, p * PAGE) == PAGE && same(page, 75, p),
		      "wrong content of copied page %zu", p);
		CHECK(same(map + p * PAGE, 75, p), "wrong content of page %zu later", p);
	}
	return true;
}

bool t_readahead(void)
{
	char *map, page[PAGE];
	int fd;

	if (!setup("ra", 76, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	for (size_t p = 0; p < 512; p += 5)
		CHECK(same(map + p * PAGE, 76, p), "wrong content of page %zu", p);
	CHECK(!posix_fadvise(fd, 0, 256 * PAGE, POSIX_FADV_WILLNEED), "fadvise");
	CHECK(!readahead(fd, 256 * PAGE, 256 * PAGE), "readahead");
	for (size_t p = 0; p < 512; p++) {
		CHECK(pread(fd, page, PAGE, p * PAGE) == PAGE && same(page, 76, p),
		      "wrong content of read page %zu", p);
		CHECK(same(map + p * PAGE, 76, p), "wrong content of page %zu", p);
	}
	return true;
}

/* A debugger reads what the program would read. The debugger's writes show in the program, but not in the file. */
bool t_ptrace(void)
{
	struct iovec local, remote;
	char *map, page[PAGE];
	int status;
	pid_t pid;
	long w;

	if (!make_file("dbg", 77, 64))
		return false;
	drop_caches();
	map = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid = fork();
	if (!pid) {
		int fd = open(path("dbg"), O_RDONLY);

		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		mmap(map, 64 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_HWDP, fd, 0);
		for (size_t p = 0; p < 64; p += 2)
			if (!same(map + p * PAGE, 77, p))
				_exit(1);
		raise(SIGSTOP);
		for (size_t p = 0; p < 64; p++) {
			uint64_t first = *(uint64_t *)(map + p * PAGE);

			if (first != (p % 4 < 2 ? 0x7777 : word(77, p, 0)) ||
			    *(uint64_t *)(map + p * PAGE + 8) != word(77, p, 1))
				_exit(2);
		}
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status),
	      "child ended with wait status %x", status);
	for (size_t p = 0; p < 64; p++) {
		errno = 0;
		w = ptrace(PTRACE_PEEKDATA, pid, map + p * PAGE + 16, NULL);
		CHECK(!errno && (uint64_t)w == word(77, p, 2), "peek at page %zu: %s", p,
		      strerror(errno));
		local = (struct iovec){ page, PAGE };
		remote = (struct iovec){ map + p * PAGE, PAGE };
		CHECK(process_vm_readv(pid, &local, 1, &remote, 1, 0) == PAGE &&
		      same(page, 77, p), "process_vm_readv of page %zu", p);
		if (p % 4 < 2)
			CHECK(!ptrace(PTRACE_POKEDATA, pid, map + p * PAGE, 0x7777),
			      "poke at page %zu: %s", p, strerror(errno));
	}
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "child ended with %x", status);
	drop_caches();
	map = map_file("dbg", 64, PROT_READ, MAP_PRIVATE, NULL);
	return read_all(map, 77, 0, 64);
}

struct dump {
	char *map;
	int flags;
	const char *filter;
};

static int die_with_core(void *arg)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct dump *d = arg;
	/* open for writing: else the mapping would not count as shared */
	int fd = open(path("dumped"), O_RDWR);

	setrlimit(RLIMIT_CORE, &unlimited);
	put_text("/proc/self/coredump_filter", d->filter);
	if (mmap(d->map, 64 * PAGE, PROT_READ, d->flags | MAP_FIXED | MAP_HWDP, fd, 0) != d->map)
		_exit(1);
	for (size_t p = 0; p < 64; p += 2)
		if (!same(d->map + p * PAGE, 78, p))
			_exit(2);
	abort();
}

/* Bytes of @map that are in the core file; -1 if their content is wrong. */
static long dumped(const char *core, char *map)
{
	int fd = open(core, O_RDONLY);
	char page[PAGE];
	Elf64_Ehdr head;
	Elf64_Phdr seg;
	long found = 0;

	if (fd < 0 || pread(fd, &head, sizeof(head), 0) != sizeof(head))
		return -1;
	for (int i = 0; i < head.e_phnum; i++) {
		if (pread(fd, &seg, sizeof(seg), head.e_phoff + i * sizeof(seg)) != sizeof(seg))
			return -1;
		if (seg.p_type != PT_LOAD || seg.p_vaddr != (uintptr_t)map)
			continue;
		for (size_t p = 0; p < seg.p_filesz / PAGE; p++, found += PAGE)
			if (pread(fd, page, PAGE, seg.p_offset + p * PAGE) != PAGE ||
			    !same(page, 78, p))
				return -1;
	}
	close(fd);
	return found;
}

bool t_core(void)
{
	struct dump d = { .map = mmap(NULL, 64 * PAGE, PROT_NONE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
	char pattern[600], core[512];
	long got;

	if (access("/proc/sys/kernel/core_pattern", W_OK))
		SKIP("no core dumps");
	snprintf(core, sizeof(core), "%s", path("core"));
	snprintf(pattern, sizeof(pattern), "%s\n", core);
	CHECK(put_text("/proc/sys/kernel/core_pattern", pattern) &&
	      put_text("/proc/sys/kernel/core_uses_pid", "0"), "core_pattern");
	if (!make_file("dumped", 78, 64))
		return false;
	for (int shared = 0; shared < 2; shared++) {
		for (int wanted = 0; wanted < 2; wanted++) {
			drop_caches();
			d.flags = shared ? MAP_SHARED : MAP_PRIVATE;
			/* bit 2: private file mappings, 3: shared ones, 0: anonymous memory */
			d.filter = !wanted ? "0x1" : shared ? "0x9" : "0x5";
			CHECK(in_child(die_with_core, &d) == -SIGABRT, "child lives");
			got = dumped(core, d.map);
			CHECK(got == (wanted ? 64 * (long)PAGE : 0),
			      "%ld bytes of a %s mapping in the core, %s", got,
			      shared ? "shared" : "private", wanted ? "wanted" : "not wanted");
			unlink(core);
		}
	}
	return true;
}

/* A futex in a file. The kernel reads it with page faults disabled, and finds it by its page. */
static bool futexes(int prot)
{
	struct timespec soon = { .tv_nsec = 1000000 };
	uint32_t expected;
	char *map;

	if (!setup("fut", 79, 64, prot, MAP_SHARED, NULL, &map))
		return false;
	for (size_t p = 0; p < 64; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 79, p), "wrong content of page %zu", p);
		expected = word(79, p, 0);
		CHECK(syscall(SYS_futex, map + p * PAGE, FUTEX_WAIT, expected + 1, &soon) < 0 &&
		      errno == EAGAIN, "wait on another value at %zu: %s", p, strerror(errno));
		CHECK(syscall(SYS_futex, map + p * PAGE, FUTEX_WAIT, expected, &soon) < 0 &&
		      errno == ETIMEDOUT, "wait at %zu: %s", p, strerror(errno));
	}
	munmap(map, 64 * PAGE);
	return true;
}

bool t_futex(void)
{
	return futexes(PROT_READ) && futexes(PROT_READ | PROT_WRITE);
}

/* System calls copy from pages that nobody has touched, and from unsynced ones. */
bool t_copy_from(void)
{
	char *map, page[PAGE];
	int pipes[2];

	if (!setup("cpy", 80, 256, PROT_READ, MAP_PRIVATE, NULL, &map))
		return false;
	CHECK(!pipe(pipes), "pipe");
	for (size_t p = 0; p < 256; p++) {
		if (p % 2)
			CHECK(same(map + p * PAGE, 80, p), "wrong content of page %zu", p);
		CHECK(write(pipes[1], map + p * PAGE, PAGE) == PAGE, "write");
		CHECK(read(pipes[0], page, PAGE) == PAGE && same(page, 80, p),
		      "wrong content of piped page %zu", p);
	}
	return true;
}
