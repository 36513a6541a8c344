// SPDX-License-Identifier: Apache-2.0
// soak_mix PART COUNTS SEED ARGUMENT...: runs a part of the soak's mix until SIGTERM. The file COUNTS gets "name value" lines
// with the work done so far. Every page that is read through a mapping is compared with a direct read of the same page. Status 1
// means an error, which stderr describes.
//
//   futex FILE FOLDER     FUTEX_WAIT and FUTEX_WAKE with words of missing pages, and operations on words of a writable mapping
//   vfork FILE            children that share the mappings until they execute this program again
//   direct FILE FOLDER    direct reads and writes of mapped files, from and to buffers in mappings
//   cgroups FILE          readers in two control groups with limits; readers are moved and frozen, and groups are removed
//   watch                 a real-time thread on each hart sleeps 10 ms repeatedly; counts its longest delay in us
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define CGROUPS "/sys/fs/cgroup"
#define HARTS_MAX 64
#define PAUSE 20000	/* shortest pause after each turn, in us */
#define SPARING 9	/* a pause is also at least this many times as long as the turn: misses need most of the time */

static volatile sig_atomic_t stopped;
static const char *self, *part;
static uint64_t state;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	int error = errno;
	va_list list;

	fprintf(stderr, "%s: ", part);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, " (%s)\n", strerror(error));
	_exit(1);
}

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000l + t.tv_nsec / 1000;
}

/* Rest after each turn of a part. On a kernel that checks itself, a turn takes long. */
static void rest(void)
{
	static long since;
	long took = since ? now_us() - since : 0;

	usleep(took * SPARING > PAUSE ? took * SPARING : PAUSE);
	since = now_us();
}

static int counts = -1;

/* Replace the counts; the script reads them while the part works. */
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	char text[512];
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (pwrite(counts, text, length, 0) != length)
		die("cannot write counts");
}

struct file {
	int fd, direct;
	size_t pages;
	char *map;
};

static struct file opened(const char *path, int protection)
{
	int mode = protection & PROT_WRITE ? O_RDWR : O_RDONLY;
	struct file file = { open(path, mode), open(path, mode | O_DIRECT), 0, NULL };
	struct stat st;

	if (file.fd < 0 || file.direct < 0 || fstat(file.fd, &st))
		die("%s", path);
	file.pages = st.st_size / PAGE;
	file.map = mmap(NULL, file.pages * PAGE, protection, MAP_SHARED, file.fd, 0);
	if (file.map == MAP_FAILED)
		die("mmap of %s", path);
	return file;
}

/* Make a new file with zeros on the disk. */
static struct file made(const char *folder, const char *name, size_t pages)
{
	static const char zeros[PAGE];
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (size_t i = 0; i < pages; i++)
		if (pwrite(fd, zeros, PAGE, i * PAGE) != (ssize_t)PAGE)
			die("%s", path);
	if (fsync(fd))
		die("%s", path);
	close(fd);
	return opened(path, PROT_READ | PROT_WRITE);
}

/* Drop the page from the mapping, and from the page cache unless it is used elsewhere, so that the next access misses. */
static void cold(struct file *file, size_t page)
{
	if (madvise(file->map + page * PAGE, PAGE, MADV_DONTNEED))
		die("madvise");
	posix_fadvise(file->fd, page * PAGE, PAGE, POSIX_FADV_DONTNEED);
}

static void read_direct(struct file *file, void *buffer, size_t page)
{
	if (pread(file->direct, buffer, PAGE, page * PAGE) != (ssize_t)PAGE)
		die("direct read of page %zu", page);
}

static void same(const void *a, const void *b, const char *what, size_t page)
{
	errno = 0;
	if (memcmp(a, b, PAGE))
		die("%s: page %zu has wrong bytes", what, page);
}

static char buffer[PAGE] __attribute__((aligned(PAGE)));

static void check_page(struct file *file, size_t page)
{
	read_direct(file, buffer, page);
	same(file->map + page * PAGE, buffer, "mapping", page);
}

static long futex(void *word, int operation, uint32_t value, const struct timespec *limit, void *other, uint32_t more)
{
	return syscall(SYS_futex, word, operation, value, limit, other, more);
}

static _Atomic(void *) to_wake;
static atomic_bool all_awake;

/* Wake the waiters of a word, through another mapping of the file, until the end: a waiter may get no signal. */
static void *waker(void *argument)
{
	struct file *file = argument;
	char *map = mmap(NULL, file->pages * PAGE, PROT_READ, MAP_SHARED, file->fd, 0);

	if (map == MAP_FAILED)
		die("mmap");
	while (!atomic_load(&all_awake)) {
		char *word = atomic_load(&to_wake);

		if (word && futex(map + (word - file->map), FUTEX_WAKE, 1, NULL, NULL, 0) < 0)
			die("FUTEX_WAKE");
		usleep(word ? 300 : 1000);
	}
	return NULL;
}

static void futexes(char **argument)
{
	struct file file = opened(argument[0], PROT_READ), own = made(argument[1], "words.bin", 64);
	unsigned long compared = 0, woken = 0, added = 0;
	struct timespec limit = { 60, 0 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, waker, &file))
		die("pthread_create");
	while (!stopped) {
		size_t page = draw() % file.pages, at = draw() % own.pages;
		char *word = file.map + page * PAGE;
		uint32_t value, before;
		long result;

		read_direct(&file, buffer, page);
		memcpy(&value, buffer, 4);
		cold(&file, page);
		if (futex(word, FUTEX_WAIT, value + 1, &limit, NULL, 0) != -1 || errno != EAGAIN)
			die("FUTEX_WAIT did not refuse a value that page %zu does not have", page);
		compared++;
		cold(&file, page);
		atomic_store(&to_wake, word);
		do {
			result = futex(word, FUTEX_WAIT, value, &limit, NULL, 0);
		} while (result && errno == EINTR && !stopped);
		atomic_store(&to_wake, NULL);
		if (result && !stopped)
			die("FUTEX_WAIT with the value of page %zu", page);
		woken++;
		if (msync(own.map + at * PAGE, PAGE, MS_SYNC))
			die("msync");
		read_direct(&own, buffer, at);
		memcpy(&before, buffer, 4);
		cold(&own, at);
		if (futex(word, FUTEX_WAKE_OP, 1, (void *)1, own.map + at * PAGE,
			  FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0)) < 0)
			die("FUTEX_WAKE_OP");
		if (*(volatile uint32_t *)(own.map + at * PAGE) != before + 1)
			die("FUTEX_WAKE_OP added to another word of page %zu", at);
		added++;
		note("futex_compared %lu\nfutex_woken %lu\nfutex_added %lu\n", compared, woken, added);
		rest();
	}
	atomic_store(&all_awake, true);
	pthread_join(thread, NULL);
}

/* Work of the program that a child of vfork() executes. */
static void child(char **argument)
{
	struct file file = opened(argument[0], PROT_READ);

	for (int i = 0; i < 16; i++)
		check_page(&file, draw() % file.pages);
}

static void vforks(char **argument)
{
	struct file file = opened(argument[0], PROT_READ);
	volatile unsigned long sum = 0;
	unsigned long done = 0;

	while (!stopped) {
		size_t page = draw() % file.pages;
		char seed[24];
		int status;
		pid_t pid;

		snprintf(seed, sizeof(seed), "%llu", (unsigned long long)draw() >> 1);
		cold(&file, page);
		pid = vfork();
		if (!pid) {
			sum += file.map[page * PAGE];
			execl(self, self, "child", "/dev/null", seed, argument[0], NULL);
			_exit(9);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			die("vfork");
		errno = 0;
		if (status)
			die("a child ended with status %x", status);
		check_page(&file, page);
		check_page(&file, draw() % file.pages);
		note("vforks %lu\n", ++done);
		rest();
	}
}

/* Make the content of a page that `direct` writes: every word depends on the page and on how often the page was written. */
static void stamp(uint64_t *words, size_t page, uint64_t generation)
{
	for (size_t i = 0; i < PAGE / 8; i++)
		words[i] = (page << 40 | generation) * 0x9e3779b97f4a7c15u + i;
}

static void direct(char **argument)
{
	struct file file = opened(argument[0], PROT_READ), own = made(argument[1], "written.bin", 512);
	struct file target = made(argument[1], "buffer.bin", 128), copy = made(argument[1], "copy.bin", 128);
	static char expected[PAGE] __attribute__((aligned(PAGE)));
	unsigned long writes = 0, into = 0, from = 0;
	static uint64_t written[512];

	while (!stopped) {
		size_t page = draw() % own.pages, other = draw() % own.pages, source = draw() % file.pages, at = draw() % 128;

		stamp((uint64_t *)expected, page, ++written[page]);
		if (pwrite(own.direct, expected, PAGE, page * PAGE) != (ssize_t)PAGE)
			die("direct write of page %zu", page);
		same(own.map + page * PAGE, expected, "after a direct write", page);
		if (written[other]) {
			stamp((uint64_t *)expected, other, written[other]);
			read_direct(&own, buffer, other);
			same(buffer, expected, "direct read", other);
			same(own.map + other * PAGE, expected, "mapping of a file that is written", other);
		}
		writes++;
		/* read directly into a missing page of a mapping */
		if (msync(target.map + at * PAGE, PAGE, MS_SYNC))
			die("msync");
		cold(&target, at);
		read_direct(&file, target.map + at * PAGE, source);
		cold(&file, source);
		same(target.map + at * PAGE, file.map + source * PAGE, "direct read into a mapping", source);
		into++;
		/* write directly from a missing page of a mapping */
		cold(&file, source);
		if (pwrite(copy.direct, file.map + source * PAGE, PAGE, at * PAGE) != (ssize_t)PAGE)
			die("direct write from a mapping");
		read_direct(&file, expected, source);
		same(copy.map + at * PAGE, expected, "direct write from a mapping", source);
		from++;
		note("direct_writes %lu\ndirect_into %lu\ndirect_from %lu\n", writes, into, from);
		rest();
	}
}

static void reader(struct file *file)
{
	while (!stopped) {
		size_t page = draw() % file->pages;

		if (draw() % 32)
			(void)*(volatile char *)(file->map + page * PAGE);
		else
			check_page(file, page);
		if (!(draw() % 256))
			usleep(PAUSE);
	}
}

static void put(const char *group, const char *name, const char *format, ...)
{
	char path[256], text[64];
	va_list list;
	int fd, length;

	snprintf(path, sizeof(path), CGROUPS "/%s/%s", group, name);
	va_start(list, format);
	length = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, length) != length)
		die("%s", path);
	close(fd);
}

/* The number behind @key in a file of a group. */
static long number(const char *group, const char *name, const char *key)
{
	char path[256], text[2048] = "", *at;
	int fd;

	snprintf(path, sizeof(path), CGROUPS "/%s/%s", group, name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		die("%s", path);
	close(fd);
	at = strstr(text, key);
	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

static void make_group(const char *name, unsigned int mib, unsigned int weight)
{
	char path[256];

	snprintf(path, sizeof(path), CGROUPS "/%s", name);
	if (mkdir(path, 0755))
		die("%s", path);
	put(name, "memory.max", "%uM", mib);
	put(name, "memory.high", "%uM", mib - 1);
	put(name, "cpu.weight", "%u", weight);
	/* exists only with CONFIG_CFS_BANDWIDTH */
	snprintf(path, sizeof(path), CGROUPS "/%s/cpu.max", name);
	if (!access(path, F_OK))
		put(name, "cpu.max", "%u 100000", 1000 * weight);
}

/* Wait until no process is in the group. */
static void remove_group(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), CGROUPS "/%s", name);
	for (int i = 0; rmdir(path); i++, usleep(10000))
		if (errno != EBUSY || i == 500)
			die("cannot remove group %s", name);
}

/* How often the group was at one of its limits. */
static long at_limit(const char *group)
{
	return number(group, "memory.events", "high ") + number(group, "memory.events", "\nmax ");
}

static pid_t start_reader(const char *path, const char *group)
{
	uint64_t seed = draw();
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		struct file file;

		state = seed | 1;
		put(group, "cgroup.procs", "0");
		file = opened(path, PROT_READ);
		reader(&file);
		_exit(0);
	}
	return pid;
}

static void end_reader(pid_t pid)
{
	int status;

	kill(pid, SIGTERM);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	errno = 0;
	if (status)
		die("a reader ended with status %x", status);
}

static void cgroups(char **argument)
{
	unsigned long moves = 0, freezes = 0, removals = 0, limited = 0;
	int fd = open(argument[0], O_RDONLY);
	struct stat st;
	unsigned int mib;

	if (fd < 0 || fstat(fd, &st))
		die("%s", argument[0]);
	/* Page tables of all four readers, and some pages. */
	mib = 3 + (st.st_size >> 20) / 128;
	mkdir(CGROUPS, 0755);
	if (mount("none", CGROUPS, "cgroup2", 0, NULL) && errno != EBUSY)
		die(CGROUPS);
	put("", "cgroup.subtree_control", "+memory +cpu");
	if (!access(CGROUPS "/io.stat", F_OK))
		put("", "cgroup.subtree_control", "+io");
	while (!stopped) {
		pid_t readers[4];

		/* pages that are in memory already are not charged to the readers */
		if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			die("fadvise");
		make_group("soak-a", mib + 2, 10);
		make_group("soak-b", mib, 40);
		for (int i = 0; i < 4; i++)
			readers[i] = start_reader(argument[0], i & 1 ? "soak-b" : "soak-a");
		for (int turn = 0; turn < 4 && !stopped; turn++) {
			usleep(200000 + draw() % 200000);
			put(turn & 1 ? "soak-a" : "soak-b", "cgroup.procs", "%d", readers[draw() % 4]);
			moves++;
			put("soak-a", "memory.max", "%uM", turn & 1 ? mib + 2 : mib);
			put("soak-b", "cgroup.freeze", "1");
			for (int i = 0; i < 500 && number("soak-b", "cgroup.events", "frozen ") != 1; i++)
				usleep(10000);
			errno = 0;
			if (number("soak-b", "cgroup.events", "frozen ") != 1)
				die("a group is not frozen after 5 s");
			freezes++;
			usleep(draw() % 100000);
			put("soak-b", "cgroup.freeze", "0");
		}
		/* on a slow kernel the readers take long to reach the limit */
		for (int i = 0; i < 500 && !stopped && !at_limit("soak-a") && !at_limit("soak-b"); i++)
			usleep(20000);
		limited += at_limit("soak-a") + at_limit("soak-b");
		errno = 0;
		if (number("soak-a", "memory.events", "oom_kill ") || number("soak-b", "memory.events", "oom_kill "))
			die("a reader of clean pages was killed: out of memory");
		/* group a has no process left, while its former processes continue */
		for (int i = 0; i < 4; i++)
			put("soak-b", "cgroup.procs", "%d", readers[i]);
		remove_group("soak-a");
		usleep(100000);
		for (int i = 0; i < 4; i++)
			end_reader(readers[i]);
		remove_group("soak-b");
		removals += 2;
		note("cgroup_moves %lu\ncgroup_freezes %lu\ncgroup_removals %lu\ncgroup_limited %lu\n", moves, freezes, removals,
		     limited);
	}
}

static long worst[HARTS_MAX];

static void *watcher(void *argument)
{
	struct sched_param priority = { .sched_priority = 50 };
	long hart = (long)argument;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(hart, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || sched_setscheduler(0, SCHED_FIFO, &priority))
		die("cannot watch hart %ld", hart);
	while (!stopped) {
		long began = now_us(), late;

		usleep(10000);
		late = now_us() - began - 10000;
		if (late > worst[hart])
			worst[hart] = late;
	}
	return NULL;
}

static void watch(void)
{
	long harts = sysconf(_SC_NPROCESSORS_ONLN), most = 0;
	pthread_t thread[HARTS_MAX];
	pthread_attr_t small;

	/* The whole stack is locked: with the usual 8 MiB, the other parts would lack this memory. */
	if (pthread_attr_init(&small) || pthread_attr_setstacksize(&small, 64 << 10) || mlockall(MCL_CURRENT | MCL_FUTURE) ||
	    harts > HARTS_MAX)
		die("mlockall");
	for (long i = 0; i < harts; i++)
		if (pthread_create(&thread[i], &small, watcher, (void *)i))
			die("pthread_create");
	while (!stopped) {
		usleep(500000);
		for (long i = 0; i < harts; i++)
			most = worst[i] > most ? worst[i] : most;
		note("watched_harts %ld\nlatest_us %ld\n", harts, most);
	}
	for (long i = 0; i < harts; i++)
		pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART };
	char **more = argv + 4;

	if (argc < 4)
		return 2;
	self = argv[0];
	part = argv[1];
	state = strtoull(argv[3], NULL, 0) * 0x9e3779b97f4a7c15u | 1;
	counts = open(argv[2], O_WRONLY | O_CREAT, 0644);
	if (counts < 0)
		die("%s", argv[2]);
	sigaction(SIGTERM, &action, NULL);
	if (!strcmp(part, "futex") && argc == 6)
		futexes(more);
	else if (!strcmp(part, "vfork") && argc == 5)
		vforks(more);
	else if (!strcmp(part, "child") && argc == 5)
		child(more);
	else if (!strcmp(part, "direct") && argc == 6)
		direct(more);
	else if (!strcmp(part, "cgroups") && argc == 5)
		cgroups(more);
	else if (!strcmp(part, "watch"))
		watch();
	else
		return 2;
	return 0;
}
