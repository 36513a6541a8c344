// SPDX-License-Identifier: GPL-2.0
/*
 * Stale block attack. REQ: OS-3
 *
 *	attack [-n ROUNDS] [-s SEED] [-k truncate|punch|collapse|unmap|mixed] DIR
 *
 * In every round the attacker (user 1000) gives back blocks of a file that it has
 * mapped with MAP_HWDP. Then the victim (user 1001) writes its own file, which gets
 * those blocks, since no others are free. Both commit the journal when they have given
 * blocks back. All the time, the attacker's threads read through the old mapping at
 * random moments, and look for bytes of the victim.
 *
 * A round counts if FIEMAP shows that the victim has a block that was the
 * attacker's. The exit status is 0 if ROUNDS rounds counted and no foreign byte was
 * seen, 1 if one was seen, 2 if the attack ended before ROUNDS rounds counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MAP_HWDP
#define MAP_HWDP 0x200000
#endif
#define PAGE 4096ul
#define PAGES 16ul		/* of the attacker's file and the victim's */
#define THREADS 3
#define OWN 0xa5		/* value of every byte of the attacker's file */
#define FOREIGN 0x5a		/* value of every byte of the victim's file */
#define ATTACKER 1000
#define VICTIM 1001

enum kind { TRUNCATE, PUNCH, COLLAPSE, UNMAP, KINDS, MIXED = KINDS };
static const char * const kind_names[] = { "truncate", "punch", "collapse", "unmap", "mixed" };

/* Shared by the attacker, the victim and the main process. */
static struct shared {
	uint64_t blocks[PAGES];		/* blocks of the attacker's file, before it gave them back */
	unsigned long reused;		/* rounds in which the victim got one of them */
	unsigned long reads, own, zero, signals;
	unsigned long foreign;		/* bytes of the victim that the attacker read */
	char why[200];
} *shared;

static struct {
	char *map;
	unsigned early;		/* a bit for each page to read before the victim writes */
	bool stop;
} attack;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void give_up(const char *what)
{
	snprintf(shared->why, sizeof(shared->why), "%s: %s", what, strerror(errno));
	_exit(2);
}

/* The blocks of the first PAGES pages, in bytes from the start of the file system; 0: none. */
static void blocks_of(int fd, uint64_t *blocks)
{
	static union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + PAGES * sizeof(struct fiemap_extent)];
	} f;

	memset(&f, 0, sizeof(f));
	f.map.fm_length = PAGES * PAGE;
	f.map.fm_extent_count = PAGES;
	memset(blocks, 0, PAGES * sizeof(*blocks));
	if (ioctl(fd, FS_IOC_FIEMAP, &f.map))
		give_up("FIEMAP");
	for (unsigned i = 0; i < f.map.fm_mapped_extents; i++) {
		struct fiemap_extent *e = &f.map.fm_extents[i];

		for (uint64_t at = 0; at < e->fe_length; at += PAGE)
			if ((e->fe_logical + at) / PAGE < PAGES)
				blocks[(e->fe_logical + at) / PAGE] = e->fe_physical + at;
	}
}

static void write_all(int fd, int byte)
{
	static char buf[PAGES * PAGE];

	memset(buf, byte, sizeof(buf));
	if (pwrite(fd, buf, sizeof(buf), 0) != sizeof(buf))
		give_up(byte == OWN ? "attacker's write" : "victim's write");
	if (fsync(fd))
		give_up("fsync");
}

static __thread sigjmp_buf on_signal;

static void fault(int sig)
{
	siglongjmp(on_signal, sig);
}

/* Read the first byte of a page, which may miss, then some more bytes. */
static void look(const volatile unsigned char *page)
{
	if (sigsetjmp(on_signal, 0)) {
		__atomic_add_fetch(&shared->signals, 1, __ATOMIC_RELAXED);
		return;
	}
	for (unsigned at = 0; at < PAGE; at += 1000) {
		unsigned char c = page[at];

		if (c == FOREIGN)
			__atomic_add_fetch(&shared->foreign, 1, __ATOMIC_RELAXED);
		if (!at && c == OWN)
			__atomic_add_fetch(&shared->own, 1, __ATOMIC_RELAXED);
		if (!at && !c)
			__atomic_add_fetch(&shared->zero, 1, __ATOMIC_RELAXED);
	}
	__atomic_add_fetch(&shared->reads, 1, __ATOMIC_RELAXED);
}

static void *looker(void *arg)
{
	uint64_t state = (uintptr_t)arg;

	while (!__atomic_load_n(&attack.stop, __ATOMIC_RELAXED)) {
		char *map = __atomic_load_n(&attack.map, __ATOMIC_ACQUIRE);

		/* a burst of reads, then a pause that may be as long as a commit */
		for (unsigned n = next(&state) % 6; map && n; n--) {
			unsigned page = next(&state) % PAGES;

			if (__atomic_load_n(&attack.early, __ATOMIC_RELAXED) & 1u << page)
				look((unsigned char *)map + page * PAGE);
		}
		usleep(next(&state) % 1500);
	}
	return NULL;
}

static char *map_file(int fd, uint64_t *state)
{
	char *map = mmap(NULL, PAGES * PAGE, PROT_READ,
			 (next(state) % 2 ? MAP_SHARED : MAP_PRIVATE) | MAP_HWDP, fd, 0);

	if (map == MAP_FAILED)
		give_up("mmap");
	return map;
}

/* Give the file's blocks back in the way @kind, and commit the journal, which frees them. */
static void give_back(int fd, enum kind kind, char *map)
{
	int err = 0;

	switch (kind) {
	case PUNCH:
		err = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGES * PAGE);
		break;
	case COLLAPSE:
		/* all but the last page: a collapse may not reach the end of the file */
		err = fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, (PAGES - 1) * PAGE);
		break;
	case UNMAP:
		__atomic_store_n(&attack.map, NULL, __ATOMIC_RELEASE);
		munmap(map, PAGES * PAGE);
		/* fall through */
	default:
		err = ftruncate(fd, 0);
	}
	if (err || fsync(fd))
		give_up(kind_names[kind]);
}

static void handshake(int out, int in)
{
	char c = 0;

	if (write(out, &c, 1) != 1 || read(in, &c, 1) != 1)
		_exit(3);
}

/*
 * The attacker's part of the rounds: give blocks back, wait until the victim has written,
 * read all pages, wait until the victim has freed its blocks.
 */
static void attacker(unsigned long rounds, uint64_t seed, enum kind wanted, int out, int in)
{
	struct sigaction action = { .sa_handler = fault, .sa_flags = SA_NODEFER };
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
	int fd = open("attacker", O_RDWR | O_CREAT, 0600);
	pthread_t threads[THREADS];

	if (fd < 0)
		give_up("attacker's file");
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, looker, (void *)(seed * 31 + i + 1));
	while (__atomic_load_n(&shared->reused, __ATOMIC_RELAXED) < rounds) {
		/* a page that is read early cannot show the victim's block later */
		unsigned early = next(&state);
		enum kind kind = wanted == MIXED ? next(&state) % KINDS : wanted;
		char *map = attack.map;

		__atomic_store_n(&attack.early, early, __ATOMIC_RELAXED);
		write_all(fd, OWN);
		blocks_of(fd, shared->blocks);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		/* keep a mapping for some rounds, then make a new one */
		if (map && next(&state) % 4 == 0) {
			__atomic_store_n(&attack.map, NULL, __ATOMIC_RELEASE);
			munmap(map, PAGES * PAGE);
			map = NULL;
		}
		if (!map) {
			map = map_file(fd, &state);
			__atomic_store_n(&attack.map, map, __ATOMIC_RELEASE);
		}
		/* sometimes wait so long that entries are armed again */
		usleep(next(&state) % (next(&state) % 8 ? 400 : 9000));
		give_back(fd, kind, map);
		handshake(out, in);	/* the victim writes */
		__atomic_store_n(&attack.early, ~0u, __ATOMIC_RELAXED);
		for (unsigned i = 0; i < PAGES && attack.map; i++)
			look((unsigned char *)attack.map + i * PAGE);
		handshake(out, in);	/* the victim gives its file up */
	}
	attack.stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

static void victim(int out, int in)
{
	uint64_t mine[PAGES];
	char c = 0;

	while (read(in, &c, 1) == 1) {
		int fd = open("victim", O_RDWR | O_CREAT | O_EXCL, 0600);
		bool reused = false;

		if (fd < 0)
			give_up("victim's file");
		write_all(fd, FOREIGN);
		blocks_of(fd, mine);
		for (unsigned i = 0; i < PAGES * PAGES && !reused; i++)
			reused = mine[i / PAGES] && mine[i / PAGES] == shared->blocks[i % PAGES];
		if (reused)
			__atomic_add_fetch(&shared->reused, 1, __ATOMIC_RELAXED);
		if (write(out, &c, 1) != 1 || read(in, &c, 1) != 1)
			break;
		unlink("victim");
		close(fd);
		fd = open(".", O_RDONLY);
		fsync(fd);
		close(fd);
		if (write(out, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static pid_t run_as(uid_t user)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setgid(user) || setuid(user))
		give_up("setuid");
	return 0;
}

/* Give up the reserve that unprivileged users cannot use: the two files can get all free blocks. */
static void drop_reserves(void)
{
	glob_t found;

	if (glob("/sys/fs/ext4/*/reserved_clusters", 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int fd = open(found.gl_pathv[i], O_WRONLY);

		if (fd < 0 || write(fd, "0", 1) != 1)
			give_up("reserved_clusters");
		close(fd);
	}
	globfree(&found);
}

/* Take all space of the file system but @pages. */
static void fill_up(size_t pages)
{
	int fd = open("filler", O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct statfs fs;

	if (fd < 0 || statfs(".", &fs))
		give_up("filler");
	while (fs.f_bfree > pages) {
		off_t end = lseek(fd, 0, SEEK_END), more = (fs.f_bfree - pages) * fs.f_bsize;

		/* metadata takes blocks, too: take half of the space each time, at the end pages */
		if (more > 64 * (off_t)PAGE)
			more /= 2;
		if (fallocate(fd, 0, end, more) && fallocate(fd, 0, end, PAGE))
			break;
		if (statfs(".", &fs))
			give_up("statfs");
	}
	fsync(fd);
	close(fd);
}

static long fast_pages(void)
{
	FILE *f = fopen("/sys/kernel/mm/hwdp/stats", "r");
	char key[80];
	long value, found = 0;

	/* pages that the units in hardware and in software have installed */
	while (f && fscanf(f, "%79s %ld", key, &value) == 2)
		if (!strcmp(key, "smu_installed") || !strcmp(key, "soft_installed"))
			found += value;
	if (f)
		fclose(f);
	return found;
}

static int usage(void)
{
	fprintf(stderr, "usage: attack [-n ROUNDS] [-s SEED] [-k truncate|punch|collapse|unmap|mixed] DIR\n");
	return 2;
}

int main(int argc, char **argv)
{
	unsigned long rounds = 100;
	int to_victim[2], to_attacker[2], status, opt;
	enum kind kind = MIXED;
	uint64_t seed = 1;
	pid_t a, v;
	long fast;

	while ((opt = getopt(argc, argv, "n:s:k:")) > 0) {
		if (opt == 'n') {
			rounds = strtoul(optarg, NULL, 0);
		} else if (opt == 's') {
			seed = strtoull(optarg, NULL, 0);
		} else if (opt == 'k') {
			for (kind = 0; kind <= MIXED && strcmp(optarg, kind_names[kind]); kind++)
				;
			if (kind > MIXED)
				return usage();
		} else {
			return usage();
		}
	}
	if (optind + 1 != argc || !rounds)
		return usage();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (chdir(argv[optind]) || chmod(".", 01777) || pipe(to_victim) || pipe(to_attacker)) {
		fprintf(stderr, "attack: cannot work in %s: %s\n", argv[optind], strerror(errno));
		return 2;
	}
	/* leave space for the file of one of the two users, and for the metadata of both */
	drop_reserves();
	fill_up(PAGES + 8);
	fast = fast_pages();
	v = run_as(VICTIM);
	if (!v) {
		close(to_victim[1]);
		victim(to_attacker[1], to_victim[0]);
	}
	a = run_as(ATTACKER);
	if (!a) {
		close(to_attacker[1]);
		attacker(rounds, seed, kind, to_victim[1], to_attacker[0]);
	}
	close(to_victim[1]);
	close(to_attacker[1]);
	waitpid(a, &status, 0);
	if (WIFSIGNALED(status))
		snprintf(shared->why, sizeof(shared->why), "ended by signal %d", WTERMSIG(status));
	kill(v, SIGKILL);
	waitpid(v, NULL, 0);
	fast = fast_pages() - fast;
	printf("attack: %lu of %lu rounds reused a block, kind %s, seed %llu\n", shared->reused,
	       rounds, kind_names[kind], (unsigned long long)seed);
	printf("attack: %lu reads (%lu own, %lu zero), %lu signals, %ld pages by hardware, %lu foreign bytes\n",
	       shared->reads, shared->own, shared->zero, shared->signals, fast, shared->foreign);
	unlink("filler");
	unlink("attacker");
	unlink("victim");
	if (shared->foreign) {
		printf("attack: FOREIGN BYTES WERE READ\n");
		return 1;
	}
	if (shared->reused < rounds) {
		printf("attack: ended before the last round: %s\n", shared->why);
		return 2;
	}
	return 0;
}
