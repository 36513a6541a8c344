// SPDX-License-Identifier: GPL-2.0
/*
 * Guest test of hardware-based demand paging: contents and interactions.
 *
 *	hwdp-check [-m MIB] [-s DIR] [-t SECONDS] [-p] DIR [NAME...]
 *
 * DIR lies on ext4. Every test maps a file with MAP_HWDP, with the page cache
 * dropped, and compares what it reads with what was written, page by page. The
 * same program runs without an SMU: then the mappings are ordinary and only the
 * contents are checked. -m sets the size of the large file (default 32 MiB),
 * -s names a folder on an ext4 of 1 KiB blocks with inline data (without it the
 * tests about such are skipped), -t limits each test (default 120 s), -p adds the test whose file is larger than
 * memory. Tests that break the disk run only when named.
 *
 * Every test is a process of its own in a folder of its own. It has failed, too,
 * if afterwards the kernel has complained or an account does not balance.
 */
#include "check.h"
#include <dirent.h>
#include <time.h>

const char *dir, *small_dir, *mount_point;
char *why;
bool *skipped;
size_t big_pages = 32 << 8;
static unsigned limit_s = 120;	/* for one test, in the guest's time */

static const struct test {
	const char *name;
	bool (*run)(void);
	bool optional;
} tests[] = {
#define TABLE_ROW(name, optional) { #name, t_##name, optional },
	TESTS(TABLE_ROW)
};

/* What a child tells: shared with it. */
static struct report {
	bool ok;
	bool skipped;
	char why[WHY_MAX];
} *report;

/* The kernel's complaints since the last call: true if there are any. */
static bool kernel_complained(int kmsg)
{
	static const char * const bad[] = { "BUG", "WARNING", "Oops", "Bad ",
		"INFO: task", "INFO: rcu", "possible circular", "possible recursive",
		"inconsistent lock", "KASAN", "kmemleak", "use-after", "UBSAN" };
	char record[8192], *text, *end;
	bool found = false;
	ssize_t n;

	while ((n = read(kmsg, record, sizeof(record) - 1)) > 0 || errno == EPIPE) {
		if (n <= 0)
			continue;
		record[n] = 0;
		text = strchr(record, ';');
		text = text ? text + 1 : record;
		end = strchr(text, '\n');
		if (end)
			*end = 0;
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]) && !found; i++) {
			if (!strstr(text, bad[i]))
				continue;
			snprintf(report->why, WHY_MAX, "kernel: %.200s", text);
			found = true;
		}
	}
	return found;
}

static void empty_folder(const char *name)
{
	DIR *d = opendir(name);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

/* Wait for the child; kill it and what it started when its time is up. */
static int wait_for(pid_t pid)
{
	struct timespec limit = { .tv_sec = limit_s };
	sigset_t set;
	int status;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (sigtimedwait(&set, NULL, &limit) < 0 && errno == EAGAIN) {
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
			status = -1;
			break;
		}
	}
	kill(-pid, SIGKILL);
	return status;
}

static bool run(const struct test *test, int kmsg)
{
	long lost;
	pid_t pid;
	int status;

	memset(report, 0, sizeof(*report));
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		report->ok = test->run();
		_exit(0);
	}
	setpgid(pid, pid);
	status = wait_for(pid);
	if (status) {
		report->ok = false;
		snprintf(report->why, WHY_MAX, status < 0 ? "takes too long" :
			 WIFSIGNALED(status) ? "ended by signal %d" : "exit status %d",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	empty_folder(dir);
	if (small_dir)
		empty_folder(small_dir);
	lost = unsettled();
	if (report->ok && lost) {
		snprintf(report->why, WHY_MAX, "%ld pages neither adopted nor discarded", lost);
		report->ok = false;
	}
	if (kernel_complained(kmsg))
		report->ok = false;
	return report->ok;
}

static const char *subfolder(const char *parent)
{
	char *name;

	if (asprintf(&name, "%s/hwdp-check", parent) < 0)
		exit(2);
	if (mkdir(name, 0755) && errno != EEXIST) {
		fprintf(stderr, "hwdp-check: cannot make %s: %s\n", name, strerror(errno));
		exit(2);
	}
	return name;
}

static bool known(const char *name)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(name, tests[i].name))
			return true;
	return false;
}

static bool chosen(const struct test *test, char **names, bool pressure)
{
	if (!*names)
		return !test->optional || (pressure && !strcmp(test->name, "pressure"));
	for (; *names; names++)
		if (!strcmp(*names, test->name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	unsigned passed = 0, failed = 0, left_out = 0;
	bool pressure = false;
	sigset_t set;
	int opt, kmsg;

	while ((opt = getopt(argc, argv, "m:s:t:p")) > 0) {
		switch (opt) {
		case 'm':
			big_pages = strtoul(optarg, NULL, 0) << 8;
			break;
		case 's':
			small_dir = subfolder(optarg);
			break;
		case 't':
			limit_s = strtoul(optarg, NULL, 0);
			break;
		case 'p':
			pressure = true;
			break;
		default:
			optind = argc;
		}
	}
	if (optind >= argc || !big_pages || !limit_s) {
		fprintf(stderr, "usage: hwdp-check [-m MIB] [-s DIR] [-t SECONDS] [-p] DIR [NAME...]\n");
		return 2;
	}
	mount_point = argv[optind++];
	for (int a = optind; a < argc; a++) {
		if (!known(argv[a])) {
			fprintf(stderr, "hwdp-check: no test is called %s\n", argv[a]);
			return 2;
		}
	}
	dir = subfolder(mount_point);
	setvbuf(stdout, NULL, _IOLBF, 0);
	report = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	why = report->why;
	skipped = &report->skipped;
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	lseek(kmsg, 0, SEEK_END);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (!chosen(&tests[i], argv + optind, pressure))
			continue;
		if (!run(&tests[i], kmsg)) {
			failed++;
			printf("FAIL %s: %s\n", tests[i].name, why);
		} else if (*skipped) {
			left_out++;
			printf("skip %s: %s\n", tests[i].name, why);
		} else {
			passed++;
			printf("ok   %s\n", tests[i].name);
		}
	}
	if (left_out)
		printf("%u skipped\n", left_out);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
