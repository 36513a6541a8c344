// SPDX-License-Identifier: Apache-2.0
// neighbours HARTS KIND MISSES VICTIM ATTACKER NAME...: measures a user's misses while another user runs NAME, an attack of
// neighbours-attacks.c. Each user has a cgroup and, with HARTS `own`, half of the harts; with `any`, equal weights. The victim's
// file is in the folder VICTIM, the attacker's in ATTACKER. Prints a line for each attack.
#include "neighbours.h"
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#define WARM 3ul		// misses of each page table before the measured ones
#define PATIENCE 5		// least time for the victim's misses, in seconds
#define A_SECOND 200		// for many misses: one second for this number of them
#define SETTLED 250000		// microseconds after which all entries are armed

struct shared *shared;
size_t pages = FILE_PAGES;
char victim_file[300], attacker_file[300], attacker_folder[200];
int fast;

void die(const char *what)
{
	perror(what);
	exit(2);
}

void put(const char *folder, const char *file, const char *value)
{
	char name[300];
	int fd;

	snprintf(name, sizeof(name), ROOT "/%s/%s", folder, file);
	fd = open(name, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		die(name);
	close(fd);
}

static long long get(const char *folder, const char *file, const char *key)
{
	char name[300], text[4096] = "", *at;
	int fd;

	snprintf(name, sizeof(name), ROOT "/%s/%s", folder, file);
	fd = open(name, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		die(name);
	close(fd);
	at = strstr(text, key);
	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static double clock_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

double now_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

volatile char *map_file(const char *path, size_t bytes, int flags)
{
	int fd = open(path, O_RDWR);
	void *p = mmap(NULL, bytes, PROT_READ, flags | (fast ? MAP_HWDP : 0), fd, 0);

	if (fd < 0 || p == MAP_FAILED)
		die(path);
	close(fd);
	return p;
}

// Make a file of @count pages that only @user may read; every word of it has @magic in its upper half.
void make_file(const char *path, int user, size_t count, uint64_t magic)
{
	static uint64_t page[PAGE / 8 * 64];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (size_t i = 0; i < PAGE / 8 * 64; i++)
		page[i] = magic << 32 | i;
	for (size_t at = 0; at < count; at += 64)
		if (write(fd, page, PAGE * MIN(64, count - at)) < 0)
			die(path);
	if (fd < 0 || fchown(fd, user, user) || fsync(fd))
		die(path);
	close(fd);
}

static pid_t enter(const char *group, int user)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		put(group, "cgroup.procs", "0");
		if (setgid(user) || setuid(user))
			die("setuid");
	}
	return pid;
}

void group(const char *name, const char *harts, long limit)
{
	char text[300];

	snprintf(text, sizeof(text), ROOT "/%s", name);
	if (mkdir(text, 0755))
		die(text);
	if (harts)
		put(name, "cpuset.cpus", harts);
	snprintf(text, sizeof(text), "%ld", limit);
	if (limit)
		put(name, "memory.max", text);
}

// Allow @user to make groups below @name, and to move its processes there.
static void delegate(const char *name, int user)
{
	const char *file[] = { "", "cgroup.procs", "cgroup.subtree_control" };
	char text[300];

	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), ROOT "/%s/%s", name, file[i]);
		if (chown(text, user, user))
			die(text);
	}
}

static int remove_group(const char *name, const struct stat *status, int type, struct FTW *where)
{
	(void)status;
	(void)where;
	return type == FTW_DP ? rmdir(name) : 0;
}

static void ungroup(const char *name)
{
	char text[300];

	put(name, "cgroup.kill", "1");
	while (get(name, "cgroup.events", "populated "))
		usleep(1000);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	snprintf(text, sizeof(text), ROOT "/%s", name);
	if (nftw(text, remove_group, 8, FTW_DEPTH | FTW_PHYS))
		die(text);
}

static void too_long(int signal)
{
	(void)signal;
	shared->over = 1;
	for (;;)
		pause();
}

// Miss pages in an order without a pattern. Some pages of each page table come first, so that the kernel knows the table.
static void victim(int number)
{
	volatile char *p = map_file(victim_file, pages * PAGE, MAP_SHARED);

	signal(SIGALRM, too_long);
	alarm(MAX(PATIENCE, shared->wanted / A_SECOND));
	for (size_t table = 0; table < pages; table += 512)
		for (size_t i = 0; i < WARM; i++)
			(void)p[(table + i) * PAGE];
	usleep(SETTLED);
	marker(MARKER_WATCH, p, pages * PAGE, number);
	shared->cpu = -get("victim", "cpu.stat", "usage_usec ");
	for (size_t i = 1; shared->misses < shared->wanted; i++) {
		size_t page = i * 3001 % pages;
		double cpu, t;

		if (page % 512 < WARM)
			continue;
		cpu = clock_us(CLOCK_THREAD_CPUTIME_ID);
		t = now_us();
		if (*(volatile uint64_t *)(p + page * PAGE) >> 32 != SECRET)
			die("victim: wrong bytes");
		shared->wait[shared->misses++] = now_us() - t;
		shared->stalled += clock_us(CLOCK_THREAD_CPUTIME_ID) - cpu;
	}
	marker(MARKER_UNWATCH, p, pages * PAGE, UNWATCH_NOW);
	munmap((void *)p, pages * PAGE);	// now all pages are adopted and charged
	sched_yield();	// so that the time since the last tick counts, too
	shared->cpu += get("victim", "cpu.stat", "usage_usec ");
	shared->over = 1;
	for (;;)
		pause();
}

// With one queue, all interrupts of a drive come to one hart and count as time of the task that runs there, with any kind. So
// send them to another hart than that of the victim.
static void interrupts_to(const char *harts)
{
	char name[100];
	int fd;

	for (int irq = 1; irq < 64; irq++) {
		snprintf(name, sizeof(name), "/proc/irq/%d/smp_affinity_list", irq);
		fd = open(name, O_WRONLY);
		if (fd >= 0) {
			(void)!write(fd, harts, strlen(harts));	// not all can be moved
			close(fd);
		}
	}
}

static int compare(const void *x, const void *y)
{
	float a = *(const float *)x, b = *(const float *)y;

	return (a > b) - (a < b);
}

static void drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	if (fd < 0 || write(fd, "3", 1) != 1)
		die("drop_caches");
	close(fd);
}

static void round_of(const struct attack *attack, int number, int own)
{
	double sum = 0, work;
	long long before;

	shared->ops = shared->misses = shared->over = shared->secrets = 0;
	shared->beside = shared->longest = shared->stalled = 0;
	drop_caches();
	group("victim", own ? "0-1" : NULL, 0);
	group("attacker", own ? "2-3" : NULL, attack->limit);
	if (attack->bandwidth)
		put("attacker", "cpu.max", attack->bandwidth);
	delegate("attacker", ATTACKER);
	if (attack->run && !enter("attacker", ATTACKER)) {
		attack->run();
		_exit(1);
	}
	for (int i = 0; attack->run && !shared->ops; i++, usleep(1000))
		if (i > 60000)
			die(attack->name);
	if (attack->beside && !enter("victim", VICTIM))
		attack->beside();
	usleep(30000);
	before = shared->ops;
	if (!enter("victim", VICTIM))
		victim(number);
	while (!shared->over || (attack->beside && (shared->secrets < 4 || shared->ops < 4)))
		usleep(1000);
	for (size_t i = 0; i < shared->misses; i++)
		sum += shared->wait[i];
	// Linux regards a hart that waits for hardware as running.
	work = shared->cpu - (fast ? shared->stalled : 0);
	qsort(shared->wait, shared->misses, sizeof(float), compare);
	size_t n = shared->misses, last = n ? n - 1 : 0;

	printf("%s number=%d misses=%zu mean=%.2f p50=%.1f p99=%.1f max=%.1f work=%.0f peak=%lld current=%lld "
	       "ops=%lld attacker=%lld secrets=%ld beside=%.1f longest=%.1f found=%ld\n", attack->name, number, n,
	       n ? sum / n : 0, shared->wait[last / 2], shared->wait[last * 99 / 100], shared->wait[last], work, get("victim", "memory.peak", ""),
	       get("victim", "memory.current", ""), (long long)shared->ops - before, get("attacker", "cpu.stat", "usage_usec "),
	       shared->secrets, shared->secrets ? shared->beside / shared->secrets : 0, shared->longest, shared->found);
	ungroup("attacker");
	ungroup("victim");
}

int main(int argc, char **argv)
{
	size_t size = sizeof(struct shared);
	char random_file[320], secret_file[320];

	if (argc < 7)
		return 2;
	setvbuf(stdout, NULL, _IONBF, 0);
	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	fast = !strcmp(argv[2], "hwdp");
	shared->wanted = strtoul(argv[3], NULL, 10);
	mkdir(ROOT, 0755);
	if (mount("none", ROOT, "cgroup2", 0, NULL))
		die("cgroup2");
	if (!strcmp(argv[1], "own"))
		interrupts_to("2-3");
	put("", "cgroup.subtree_control", "+memory +cpu +cpuset");
	snprintf(victim_file, sizeof(victim_file), "%s/victim.bin", argv[4]);
	snprintf(attacker_folder, sizeof(attacker_folder), "%s/attacker", argv[5]);
	if (mkdir(attacker_folder, 0700) || chown(attacker_folder, ATTACKER, ATTACKER))
		die(attacker_folder);
	snprintf(attacker_file, sizeof(attacker_file), "%s/own.bin", attacker_folder);
	snprintf(random_file, sizeof(random_file), "%s/random.bin", argv[5]);
	if (strcmp(argv[4], argv[5])) {
		// a test knows the blocks of this one
		if (rename(random_file, attacker_file) || chown(attacker_file, ATTACKER, ATTACKER))
			die(random_file);
	} else {
		unlink(random_file);
		make_file(attacker_file, ATTACKER, pages, PUBLIC);
	}
	make_file(victim_file, VICTIM, pages, SECRET);
	snprintf(secret_file, sizeof(secret_file), "%s.secret", victim_file);
	make_file(secret_file, VICTIM, 0, SECRET);
	for (int i = 6; i < argc; i++) {
		const struct attack *attack = attacks;

		while (attack->name && strcmp(attack->name, argv[i]))
			attack++;
		if (!attack->name)
			die(argv[i]);
		round_of(attack, i - 6, !strcmp(argv[1], "own"));
	}
	return 0;
}
