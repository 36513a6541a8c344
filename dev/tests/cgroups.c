// SPDX-License-Identifier: Apache-2.0
// cgroups MODE: tests who pays for pages that hardware reads, with control groups a and b. Prints "name value" lines.
//
//   max      a process in a, memory.max 16 MiB, reads the file at random: prints a's peak memory, its events and its faults
//   high     the same with memory.high
//   vain     the same for two seconds, with next to nothing that can be reclaimed: prints a's peak memory
//   full     as max, with most of a's memory locked: nothing can be reclaimed, and b reads meanwhile
//   turns    threads in a, which has little memory, read and store; b reads pages that are not in memory, so that hardware serves
//            both in turn: prints whether a survives, and the number of areas
//   time     a process in a reads: prints the background threads' time, and how much of it is in a's cpu.stat
//   idle     a process in a reads for some seconds; a process in b has read some pages and sleeps: prints b's time
//   pressure a process in a reads each page once: prints the time, and its part in a's io.pressure and io.stat
//   bandwidth  four threads in a, with a limit of a fifth of a hart, read; b wants all harts: prints the shares of b and a
//   debt     four threads in a, with a limit of one hart, read and are killed: prints how soon another process of a runs if a's
//            limit is then a hundredth of a hart, and if a had no limit before
//   moves    a process moves from a to b while it reads: a and b can be frozen, and removed as soon as their processes have ended
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define PAGE 4096ul
#define LIMIT "16777216"
#define TURNS 2048ul

static size_t pages;
static const char *path = "/data/random.bin";

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void set(const char *name, const char *format, ...)
{
	char text[64];
	va_list list;
	int fd = open(name, O_WRONLY);

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(name);
	close(fd);
}

// Return the number after @key in a file of a cgroup, or its only number; -1: no such file.
static long long get(const char *name, const char *key)
{
	char text[4096] = "", *at;
	int fd = open(name, O_RDONLY);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) < 0)
		die(name);
	close(fd);
	at = *key ? strstr(text, key) : text;
	return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

static double seconds(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// Return the CPU seconds of kernel threads whose names begin with @name.
static double thread_time(const char *name)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	double sum = 0;

	while (dir && (entry = readdir(dir))) {
		char file[300], comm[32] = "";
		clockid_t clock;
		int fd;

		if (!isdigit(entry->d_name[0]))
			continue;
		snprintf(file, sizeof(file), "/proc/%s/comm", entry->d_name);
		fd = open(file, O_RDONLY);
		if (fd < 0)
			continue;
		if (read(fd, comm, sizeof(comm) - 1) > 0 && !strncmp(comm, name, strlen(name)) &&
		    !clock_getcpuclockid(atoi(entry->d_name), &clock))
			sum += seconds(clock);
		close(fd);
	}
	closedir(dir);
	return sum;
}

static volatile char *map(void)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st))
		die(path);
	pages = st.st_size / PAGE;
	p = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("mmap");
	close(fd);
	return p;
}

static unsigned long draw(void)
{
	static unsigned long x = 88172645463325252ul;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

// Read @count pages at random, or pages for @limit seconds.
static unsigned long reads(volatile char *p, unsigned long count, double limit)
{
	double end = seconds(CLOCK_MONOTONIC) + limit;
	unsigned long n;

	for (n = 0; n < count && (!limit || seconds(CLOCK_MONOTONIC) < end); n++)
		(void)p[draw() % pages * PAGE];
	return n;
}

static void group(const char *name, const char *file, const char *value)
{
	char text[300];

	snprintf(text, sizeof(text), ROOT "/%s", name);
	if (mkdir(text, 0755))
		die(text);
	if (!file)
		return;
	snprintf(text, sizeof(text), ROOT "/%s/%s", name, file);
	set(text, "%s", value);
}

static pid_t enter(const char *name)
{
	char text[300];
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		snprintf(text, sizeof(text), ROOT "/%s/cgroup.procs", name);
		set(text, "0");
	}
	return pid;
}

static void end(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "a child ended with %x\n", status);
		exit(3);
	}
}

static void gone(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void limited(const char *file)
{
	struct rusage usage;
	pid_t pid;

	group("a", file, LIMIT);
	pid = enter("a");
	if (!pid) {
		volatile char *p = map();

		reads(p, pages * 2, 0);
		getrusage(RUSAGE_SELF, &usage);
		printf("majflt %ld\n", usage.ru_majflt);
		exit(0);
	}
	end(pid);
	printf("peak %lld\n", get(ROOT "/a/memory.peak", ""));
	printf("max_events %lld\n", get(ROOT "/a/memory.events", "\nmax "));
	printf("high_events %lld\n", get(ROOT "/a/memory.events", "high "));
	printf("oom_kills %lld\n", get(ROOT "/a/memory.events", "oom_kill "));
	printf("pgmajfault %lld\n", get(ROOT "/a/memory.stat", "pgmajfault "));
	printf("io_bytes %lld\n", get(ROOT "/a/io.stat", "rbytes="));
	printf("io_reads %lld\n", get(ROOT "/a/io.stat", "rios="));
}

// Without swap, anonymous memory cannot be reclaimed.
static void in_vain(void)
{
	pid_t pid;

	group("a", "memory.high", LIMIT);
	pid = enter("a");
	if (!pid) {
		size_t size = (16ul << 20) - (512ul << 10);
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			die("mmap");
		memset(p, 1, size);
		reads(map(), ~0ul, 2);
		exit(0);
	}
	end(pid);
	printf("peak %lld\n", get(ROOT "/a/memory.peak", ""));
}

static void full(void)
{
	double began;
	pid_t a, b;

	group("a", "memory.max", LIMIT);
	group("b", NULL, NULL);
	a = enter("a");
	if (!a) {
		size_t size = 15ul << 20;
		char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || mlock(p, size))
			die("mlock");
		path = "/data/other.bin";
		reads(map(), ~0ul, 1000);
		exit(1);
	}
	usleep(500000);
	b = enter("b");
	if (!b) {
		volatile char *p = map();

		began = seconds(CLOCK_MONOTONIC);
		for (size_t i = 0; i < pages; i++)
			(void)p[(i * 397 % pages) * PAGE];
		printf("b_us %.1f\n", (seconds(CLOCK_MONOTONIC) - began) * 1e6 / pages);
		exit(0);
	}
	end(b);
	printf("a_lives %d\n", !waitpid(a, NULL, WNOHANG));
	printf("peak %lld\n", get(ROOT "/a/memory.peak", ""));
	gone(a);
}

static void *reader(void *p)
{
	reads(p, ~0ul, 1000);
	return NULL;
}

static void *store(void *at)
{
	for (;;) {
		volatile char *p = (volatile char *)at + draw() % TURNS * PAGE;

		(void)p[0];
		p[8] = 1;
	}
	return NULL;
}

static void stores(void)
{
	int fd = open(path, O_RDWR);
	void *p = mmap(NULL, TURNS * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pthread_t thread;

	if (fd < 0 || p == MAP_FAILED)
		die(path);
	pages = TURNS;
	for (int i = 0; i < 7; i++)
		if (pthread_create(&thread, NULL, i & 1 ? store : reader, p))
			die("pthread_create");
	reader(p);
	exit(1);
}

static void turns(void)
{
	long long areas = get("/sys/kernel/mm/hwdp/stats", "areas_made ");
	pid_t a, b;

	group("a", "memory.max", "6291456");
	group("b", NULL, NULL);
	a = enter("a");
	if (!a)
		stores();
	b = enter("b");
	for (volatile char *p = b ? NULL : map(); p; usleep(2000)) {
		size_t at = (TURNS + draw() % (pages - TURNS)) * PAGE;
		int fd = open(path, O_RDONLY);

		(void)p[at];
		madvise((void *)(p + at), PAGE, MADV_DONTNEED);
		posix_fadvise(fd, at, PAGE, POSIX_FADV_DONTNEED);
		close(fd);
	}
	sleep(6);
	printf("a_lives %d\nb_lives %d\n", !waitpid(a, NULL, WNOHANG), !waitpid(b, NULL, WNOHANG));
	printf("areas %lld\n", get("/sys/kernel/mm/hwdp/stats", "areas_made ") - areas);
	gone(a);
	gone(b);
}

static void charged_time(void)
{
	double kadoptd, others, own, group_time;
	int fd[2];
	pid_t pid;

	group("a", NULL, NULL);
	if (pipe(fd))
		die("pipe");
	others = thread_time("kpoold") + thread_time("kpted");
	kadoptd = thread_time("kadoptd");
	pid = enter("a");
	if (!pid) {
		// pages are adopted before they are dropped, so all work is done when this returns
		volatile char *p = map();
		unsigned long sum = 0;

		for (int round = 0; round < 4; round++) {
			sum += reads(p, pages, 0);
			madvise((void *)p, pages * PAGE, MADV_DONTNEED);
			int cache = open(path, O_RDONLY);

			posix_fadvise(cache, 0, 0, POSIX_FADV_DONTNEED);
			close(cache);
		}
		usleep(1500000);
		own = seconds(CLOCK_PROCESS_CPUTIME_ID);
		if (write(fd[1], &own, sizeof(own)) != sizeof(own))
			exit(1);
		pause();
	}
	if (read(fd[0], &own, sizeof(own)) != sizeof(own))
		die("read");
	group_time = get(ROOT "/a/cpu.stat", "usage_usec ") / 1e6;
	kadoptd = thread_time("kadoptd") - kadoptd;
	others = thread_time("kpoold") + thread_time("kpted") - others;
	gone(pid);
	printf("background_us %.0f\nothers_us %.0f\ncharged_us %.0f\n", (kadoptd + others) * 1e6, others * 1e6,
	       (group_time - own) * 1e6);
}

static void idle(void)
{
	long long before;
	pid_t a, b;

	group("a", NULL, NULL);
	group("b", NULL, NULL);
	b = enter("b");
	if (!b) {
		path = "/data/other.bin";
		volatile char *p = map();

		for (int i = 0; i < 8; i++)
			(void)p[i * PAGE];
		for (;;)
			pause();
	}
	sleep(2);
	before = get(ROOT "/b/cpu.stat", "usage_usec ");
	a = enter("a");
	if (!a) {
		volatile char *p = map();

		for (int round = 0; round < 3; round++) {
			int cache = open(path, O_RDONLY);

			reads(p, pages, 1);
			madvise((void *)p, pages * PAGE, MADV_DONTNEED);
			posix_fadvise(cache, 0, 0, POSIX_FADV_DONTNEED);
			close(cache);
		}
		exit(0);
	}
	end(a);
	printf("idle_us %lld\n", get(ROOT "/b/cpu.stat", "usage_usec ") - before);
	gone(b);
}

static void pressure(void)
{
	pid_t pid;

	group("a", NULL, NULL);
	pid = enter("a");
	if (!pid) {
		volatile char *p = map();
		double began = seconds(CLOCK_MONOTONIC);

		for (size_t i = 0; i < pages; i++)
			(void)p[(i * 397 % pages) * PAGE];
		printf("took_us %.0f\n", (seconds(CLOCK_MONOTONIC) - began) * 1e6);
		exit(0);
	}
	end(pid);
	printf("some_us %lld\n", get(ROOT "/a/io.pressure", "total="));
	printf("io_bytes %lld\nio_reads %lld\n", get(ROOT "/a/io.stat", "rbytes="), get(ROOT "/a/io.stat", "rios="));
}

static void readers(void)
{
	void *p = (void *)map();
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread, NULL, reader, p))
			die("pthread_create");
	reader(p);
	exit(1);
}

static void bandwidth(void)
{
	long harts = sysconf(_SC_NPROCESSORS_ONLN);
	double began, took;
	pid_t a, b[64];
	long long used_a, used_b;

	group("a", "memory.max", LIMIT);
	set(ROOT "/a/cpu.max", "20000 100000");
	group("b", NULL, NULL);
	for (long i = 0; i < harts; i++) {
		b[i] = enter("b");
		while (!b[i])
			;
	}
	a = enter("a");
	if (!a)
		readers();
	sleep(1);
	began = seconds(CLOCK_MONOTONIC);
	used_a = get(ROOT "/a/cpu.stat", "usage_usec ");
	used_b = get(ROOT "/b/cpu.stat", "usage_usec ");
	sleep(4);
	used_a = get(ROOT "/a/cpu.stat", "usage_usec ") - used_a;
	used_b = get(ROOT "/b/cpu.stat", "usage_usec ") - used_b;
	took = (seconds(CLOCK_MONOTONIC) - began) * 1e6 * harts;
	printf("a_part %.3f\nb_part %.3f\n", used_a / took, used_b / took);
	gone(a);
	for (long i = 0; i < harts; i++)
		gone(b[i]);
}

// Run a process in group a, and wait until it has ended.
static double runs_in_a(void)
{
	double began = seconds(CLOCK_MONOTONIC);
	pid_t pid = enter("a");

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return seconds(CLOCK_MONOTONIC) - began;
}

static void debt(void)
{
	pid_t pid;

	group("a", "memory.max", LIMIT);
	for (int none = 1; none >= 0; none--) {
		set(ROOT "/a/cpu.max", "100000 100000");
		pid = enter("a");
		if (!pid)
			readers();
		sleep(2);
		gone(pid);
		if (none)
			set(ROOT "/a/cpu.max", "max 100000");
		set(ROOT "/a/cpu.max", "1000 100000");
		printf("%s %.3f\n", none ? "after_none" : "after_more", runs_in_a());
	}
}

static int wait_for(const char *name, const char *key, int value)
{
	for (int i = 0; i < 200; i++, usleep(10000))
		if (get(name, key) == value)
			return value;
	return !value;
}

static void moves(void)
{
	long long a_had, b_has;
	pid_t pid;

	group("a", NULL, NULL);
	group("b", NULL, NULL);
	pid = enter("a");
	if (!pid)
		for (volatile char *p = map();; madvise((void *)p, pages * PAGE, MADV_DONTNEED))
			reads(p, pages, 0);
	sleep(2);
	a_had = get(ROOT "/a/memory.current", "");
	set(ROOT "/b/cgroup.procs", "%d", pid);
	printf("removed_a %d\n", !rmdir(ROOT "/a"));
	int cache = open(path, O_RDONLY);

	for (int i = 0; i < 20; i++, usleep(100000))
		posix_fadvise(cache, 0, 0, POSIX_FADV_DONTNEED);
	sleep(1);
	b_has = get(ROOT "/b/memory.current", "");
	set(ROOT "/b/cgroup.freeze", "1");
	printf("frozen %d\n", wait_for(ROOT "/b/cgroup.events", "frozen ", 1));
	sleep(2);
	printf("stays_frozen %lld\n", get(ROOT "/b/cgroup.events", "frozen "));
	set(ROOT "/b/cgroup.freeze", "0");
	gone(pid);
	printf("populated_b %lld\n", get(ROOT "/b/cgroup.events", "populated "));
	printf("removed_b %d\n", !rmdir(ROOT "/b"));
	printf("a_had %lld\nb_has %lld\n", a_had, b_has);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	mkdir(ROOT, 0755);
	if (mount("none", ROOT, "cgroup2", 0, NULL))
		die("cgroup2");
	set(ROOT "/cgroup.subtree_control", "+memory +cpu");
	if (access(ROOT "/io.stat", F_OK) == 0)
		set(ROOT "/cgroup.subtree_control", "+io");
	setvbuf(stdout, NULL, _IONBF, 0);
	if (!strcmp(mode, "max"))
		limited("memory.max");
	else if (!strcmp(mode, "high"))
		limited("memory.high");
	else if (!strcmp(mode, "vain"))
		in_vain();
	else if (!strcmp(mode, "full"))
		full();
	else if (!strcmp(mode, "turns"))
		turns();
	else if (!strcmp(mode, "time"))
		charged_time();
	else if (!strcmp(mode, "idle"))
		idle();
	else if (!strcmp(mode, "pressure"))
		pressure();
	else if (!strcmp(mode, "bandwidth"))
		bandwidth();
	else if (!strcmp(mode, "debt"))
		debt();
	else if (!strcmp(mode, "moves"))
		moves();
	else
		return 2;
	return 0;
}
