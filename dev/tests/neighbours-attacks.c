// SPDX-License-Identifier: Apache-2.0
// The attacks of neighbours.c.
#include "neighbours.h"
#include <linux/falloc.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS 8
#define DROP ((void *)1)	/* read_for_ever() empties the cache */
#define FILES 256
#define TIGHT (16ul << 20)	/* memory of a group in bytes */
#define IDLE 10000
#define IDLE_GROUPS 2000
#define SUBGROUPS 64
#define SUBGROUP_PAGES 512
#define HANGS 600	/* the first page of the file whose read never ends */
#define FILE_SIZE (16 * PAGE)
#define MADV_HWDP 30
#define PR_SET_HWDP 0x48574450

static volatile char *map;	// the attacker's file

static unsigned long draw(void)
{
	static __thread unsigned long x;

	x = x ? x : 88172645463325252ul + syscall(SYS_gettid);
	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static void read_pages(volatile char *p, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		look(p + draw() % pages * PAGE);
		done();
	}
}

static void drop(volatile char *p)
{
	int fd = open(attacker_file, O_RDONLY);

	madvise((void *)p, pages * PAGE, MADV_DONTNEED);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

static void *read_for_ever(void *arg)
{
	for (;;) {
		read_pages(map, pages / 4);
		if (arg)
			drop(map);
	}
	return NULL;
}

static void threads(void *(*run)(void *), int count, void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread, &attr, run, arg))
			die("pthread_create");
}

// Fork, so that `count` processes continue from here.
static void processes(int count)
{
	while (--count > 0)
		if (!fork())
			break;
}

static void map_own(void)
{
	map = map_file(attacker_file, pages * PAGE, MAP_SHARED);
}

static void reader(void)
{
	map_own();
	read_for_ever(DROP);
}

static void readers(void)
{
	map_own();
	threads(read_for_ever, THREADS, DROP);
	read_for_ever(DROP);
}

// The group has more misses than memory, so it reclaims all the time.
static void reclaim(void)
{
	map_own();
	threads(read_for_ever, THREADS, NULL);
	read_for_ever(NULL);
}

// Most of the memory cannot be reclaimed, because there is no swap: few pages that hardware reads can be adopted.
static void hoard(void)
{
	size_t size = (15ul << 20) - (256ul << 10);
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	memset(p, 1, size);
	reclaim();
}

static long long memory_used(void)
{
	char text[32] = "";
	int fd = open(ROOT "/attacker/memory.current", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		die("memory.current");
	close(fd);
	return strtoll(text, NULL, 10);
}

static volatile int filled;

static void *read_when_filled(void *arg)
{
	while (!filled)
		usleep(1000);
	return read_for_ever(arg);
}

// Nearly nothing can be reclaimed, and there is always room for a few pages, so that adoption tries each time.
static void tight(void)
{
	char *p = mmap(NULL, TIGHT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	map_own();
	threads(read_when_filled, THREADS, NULL);
	for (size_t at = 0; at < TIGHT && memory_used() < (long long)(TIGHT - 24 * PAGE); at += PAGE)
		p[at] = 1;
	filled = 1;
	read_for_ever(NULL);
}

// Every second page is an extent, and copies of the mapping disarm all of it: re-arming is much work.
static void extents(void)
{
	int fd = open(attacker_file, O_RDWR);
	volatile char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | (fast ? MAP_HWDP : 0), fd, 0);

	if (fd < 0 || p == MAP_FAILED)
		die("extents");
	for (size_t i = 1; i < pages; i += 2)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, i * PAGE, PAGE);
	for (size_t table = 0; table < pages; table += 512)
		for (size_t i = 0; i < 8; i += 2)
			look(p + (table + i) * PAGE);
	p[0] = 1;
	for (;; done()) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		for (size_t i = 0; i < 16; i++)
			look(p + (draw() % pages & ~1ul) * PAGE);
	}
}

static void maps(void)
{
	for (;; done()) {
		map_own();
		for (size_t i = 0; i < 4; i++)
			read_pages(map, 16);
		munmap((void *)map, pages * PAGE);
	}
}

// Changes of a mapping end its area, or keep the kernel from it, while other threads miss in it.
static void changes(void)
{
	map_own();
	threads(read_for_ever, 2, DROP);
	for (size_t n = 0;; n++, done()) {
		void *at = (void *)(map + n % (pages - 64) * PAGE);

		switch (n % 6) {
		case 0:
			mprotect(at, 16 * PAGE, PROT_READ);
			break;
		case 1:
			mlock(at, 8 * PAGE);
			munlock(at, 8 * PAGE);
			break;
		case 2:
			madvise((void *)map, pages * PAGE, MADV_HWDP);
			break;
		case 3:
			madvise(at, 64 * PAGE, MADV_DONTNEED);
			break;
		case 4:
			madvise(at, 64 * PAGE, n & 8 ? MADV_RANDOM : MADV_NORMAL);
			break;
		case 5:
			mremap(at, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
			break;
		}
	}
}

static void forks(void)
{
	map_own();
	threads(read_for_ever, 2, DROP);
	for (;; done()) {
		pid_t pid = fork();

		if (!pid) {
			read_pages(map, 16);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		pid = vfork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

// Processes with many misses under way are killed.
static void kills(void)
{
	for (;; done()) {
		pid_t pid = fork();

		if (!pid) {
			map_own();
			threads(read_for_ever, 4, DROP);
			read_for_ever(DROP);
		}
		usleep(1000 + draw() % 4000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static void direct(size_t bytes, int count)
{
	int fd = open(attacker_file, O_RDONLY | O_DIRECT);
	char *buffer;

	processes(count);
	buffer = aligned_alloc(PAGE, bytes);
	for (;; done()) {
		if (pread(fd, buffer, bytes, draw() % (pages * PAGE / bytes) * bytes) != (ssize_t)bytes)
			die("O_DIRECT");
		look(buffer);
	}
}

static void direct_reads(void)
{
	direct(PAGE, 4);
}

// Make as many reads as the drive accepts, and as large as it accepts them.
static void flood(void)
{
	direct(32 * PAGE, 32);
}

// A mapped file loses and gets blocks.
static void writes(void)
{
	int file = open(attacker_file, O_RDWR | O_DIRECT);
	char *buffer = aligned_alloc(PAGE, 16 * PAGE);

	memset(buffer, 1, 16 * PAGE);
	map_own();
	if (!fork())
		read_for_ever(DROP);
	for (;; done()) {
		off_t at = draw() % (pages - 64) * PAGE;

		if (pwrite(file, buffer, 16 * PAGE, at) < 0)
			die("pwrite");
		fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, 4 * PAGE);
		if (ftruncate(file, (pages - 1) * PAGE) || ftruncate(file, pages * PAGE))
			die("ftruncate");
	}
}

// Queries about a mapping or its file's cache.
static void questions(void)
{
	static unsigned char resident[FILE_PAGES];
	static uint64_t words[FILE_PAGES];
	static char text[65536];
	int pagemap, file = open(attacker_file, O_RDWR);

	prctl(PR_SET_DUMPABLE, 1);	// the process has changed its user
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	map_own();
	threads(read_for_ever, 2, DROP);
	for (;; done()) {
		int smaps = open("/proc/self/smaps", O_RDONLY);

		while (read(smaps, text, sizeof(text)) > 0)
			;
		close(smaps);
		if (pread(pagemap, words, sizeof(words), (uintptr_t)map / PAGE * 8) < 0)
			die("pagemap");
		mincore((void *)map, pages * PAGE, resident);
		fsync(file);
		posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
		madvise((void *)map, pages * PAGE, MADV_WILLNEED);
		madvise((void *)map, pages * PAGE, MADV_COLD);
		madvise((void *)map, pages * PAGE, MADV_PAGEOUT);
	}
}

// The kernel's own accesses: misses that wait for a port of the unit.
static void futexes(void)
{
	int null = open("/dev/null", O_WRONLY);

	map_own();
	processes(4);
	for (size_t n = 0;; n++, done()) {
		struct timespec soon = { 0, 1000 };

		syscall(SYS_futex, map + draw() % pages * PAGE, FUTEX_WAIT, 0, &soon, NULL, 0);
		if (write(null, (void *)(map + draw() % pages * PAGE), 1) < 0)
			die("write");
		if (n % 1024 == 1023)
			drop(map);
	}
}

// Hundreds of mappings, each with an area.
static void areas(void)
{
	static volatile char *p[FILES];

	for (int i = 0; i < FILES; i++) {
		char name[300];

		snprintf(name, sizeof(name), "%s/%d", attacker_folder, i);
		if (access(name, F_OK))
			make_file(name, ATTACKER, FILE_SIZE / PAGE, PUBLIC);
		p[i] = map_file(name, FILE_SIZE, MAP_SHARED);
		for (size_t at = 0; at < 3 * PAGE; at += PAGE)
			(void)p[i][at];
	}
	for (size_t n = 0;; n++, done()) {
		int i = n % FILES;

		madvise((void *)p[i], FILE_SIZE, MADV_DONTNEED);
		for (size_t at = 0; at < FILE_SIZE; at += PAGE)
			look(p[i] + at);
		prctl(PR_SET_HWDP, n & 1 ? 4 : 0, 0, 0, 0);
		madvise((void *)p[i], FILE_SIZE, MADV_HWDP);
	}
}

// An area of a file without blocks, in which there are no more misses.
static void idle_area(int i)
{
	volatile char *p;
	char name[300];
	int fd;

	snprintf(name, sizeof(name), "%s/idle-%d", attacker_folder, i);
	fd = open(name, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 2 * PAGE))
		die(name);
	close(fd);
	p = map_file(name, 2 * PAGE, MAP_SHARED);
	for (size_t at = 0; at < 2 * PAGE; at += PAGE)
		(void)p[at];
}

// Very many areas as in idle_area().
static void idle_areas(void)
{
	for (int i = 0; i < IDLE; i++)
		idle_area(i);
	for (;; done())
		usleep(1000);
}

// Many areas as in idle_area(), each of a different group that no longer exists.
static void idle_groups(void)
{
	for (int i = 0; i < IDLE_GROUPS; i++) {
		char name[300];

		snprintf(name, sizeof(name), "attacker/%d", i);
		group(name, NULL, 0);
		put(name, "cgroup.procs", "0");
		idle_area(i);
		put("attacker", "cgroup.procs", "0");
		snprintf(name, sizeof(name), ROOT "/attacker/%d", i);
		if (rmdir(name))
			die(name);
	}
	for (;; done())
		usleep(1000);
}

// Many groups with misses, below a group with a limit of CPU time: their kernel threads run outside of it.
static void subgroups(void)
{
	char name[300];

	group("attacker/rest", NULL, 0);
	put("attacker/rest", "cgroup.procs", "0");
	put("attacker", "cgroup.subtree_control", "+cpu");
	pages = SUBGROUP_PAGES;
	for (int i = 0; i < SUBGROUPS; i++) {
		snprintf(name, sizeof(name), "attacker/%d", i);
		group(name, NULL, 0);
		snprintf(attacker_file, sizeof(attacker_file), "%s/sub-%d", attacker_folder, i);
		make_file(attacker_file, ATTACKER, pages, PUBLIC);
		if (fork())
			continue;
		put(name, "cgroup.procs", "0");
		reader();
	}
	for (;;)
		pause();
}

static void *one_miss(void *arg)
{
	static volatile size_t next = HANGS;

	(void)arg;
	for (;;)
		look(map + __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED) % pages * PAGE);
	return NULL;
}

// Misses of a drive that does not answer: @count of them under way.
static void hang(int count)
{
	map_own();
	for (size_t i = 0; i < 64; i++)	// so that there is an area, and the unit reads for it
		look(map + i * PAGE);
	usleep(20000);
	threads(one_miss, count, NULL);
	usleep(count * 10000);	// each has its turn on a hart
	done();
	for (;; done())
		usleep(1000);
}

static void hang_few(void)
{
	hang(8);
}

static void hang_many(void)
{
	hang(64);
}

// Very many areas below the entry that misses mark. A reader of the attacker's file uses one of them.
static void marks(void)
{
	if (chmod(attacker_folder, 0755) || chmod(attacker_file, 0644))
		die(attacker_file);
	for (int i = 0; i < IDLE; i++)
		idle_area(i);
	reader();
}

static void reads_beside(void)
{
	int fd = open(attacker_file, O_RDONLY);

	for (;; shared->secrets++) {
		uint64_t word;
		double t = now_us();

		if (pread(fd, &word, sizeof(word), draw() % pages * PAGE) != sizeof(word) || word >> 32 != PUBLIC)
			die("victim: wrong bytes");
		t = now_us() - t;
		shared->longest = MAX(shared->longest, t);
		shared->beside += t;
	}
}

const struct attack attacks[] = {
	{ "alone", NULL, 0, NULL, NULL },
	{ "reader", reader, 0, NULL, NULL },
	{ "readers", readers, 0, NULL, NULL },
	{ "reclaim", reclaim, 8 << 20, NULL, NULL },
	{ "hoard", hoard, 16 << 20, NULL, NULL },
	{ "tight", tight, TIGHT, NULL, NULL },
	{ "extents", extents, 0, NULL, NULL },
	{ "maps", maps, 0, NULL, NULL },
	{ "changes", changes, 0, NULL, NULL },
	{ "forks", forks, 0, NULL, NULL },
	{ "kills", kills, 0, NULL, NULL },
	{ "direct", direct_reads, 0, NULL, NULL },
	{ "flood", flood, 0, NULL, NULL },
	{ "writes", writes, 0, NULL, NULL },
	{ "questions", questions, 0, NULL, NULL },
	{ "futexes", futexes, 0, NULL, NULL },
	{ "areas", areas, 0, NULL, NULL },
	{ "idle_areas", idle_areas, 0, NULL, NULL },
	{ "idle_groups", idle_groups, 0, NULL, NULL },
	{ "subgroups", subgroups, 0, "100000 100000", NULL },
	{ "marks", marks, 0, NULL, reads_beside },
	{ "hang_few", hang_few, 0, NULL, NULL },
	{ "hang_many", hang_many, 0, NULL, NULL },
	{ "bytes", bytes, 0, NULL, secrets },
	{ NULL, NULL, 0, NULL, NULL },
};
