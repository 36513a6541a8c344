// SPDX-License-Identifier: GPL-2.0
#include "check-run.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char *why;
bool *skipped;

/* The result of a test, in memory shared with the test's process. */
static struct report {
	bool ok;
	bool skipped;
	char why[WHY_MAX];
} *report;

/* True if the kernel has complained since the last call. The first complaint goes to report->why. */
static bool kernel_complained(int kmsg)
{
	static const char * const bad[] = { "BUG", "WARNING", "Oops", "Bad ",
		"INFO: task", "INFO: rcu", "possible circular", "possible recursive",
		"inconsistent lock", "KASAN", "kmemleak", "use-after", "UBSAN", "bad p" };
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

/* Wait for the child, or kill it when its time is up. Then kill the processes that it has started. */
static int wait_for(pid_t pid, unsigned limit_s)
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

static bool run(const struct test *test, unsigned limit_s, bool (*after)(bool ok), int kmsg)
{
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
	status = wait_for(pid, limit_s);
	if (status)
		report->ok = false;
	if (status && !*why)
		snprintf(why, WHY_MAX, status < 0 ? "takes too long" :
			 WIFSIGNALED(status) ? "ended by signal %d" : "exit status %d",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	if (!after(report->ok))
		report->ok = false;
	if (kernel_complained(kmsg))
		report->ok = false;
	return report->ok;
}

static bool named(const struct test *test, char **names)
{
	for (; *names; names++)
		if (!strcmp(*names, test->name))
			return true;
	return false;
}

static bool known(const char *name, const struct test *tests, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(name, tests[i].name))
			return true;
	return false;
}

int run_tests(const struct test *tests, size_t count, char **names, unsigned limit_s, bool (*after)(bool ok))
{
	unsigned passed = 0, failed = 0, left_out = 0;
	sigset_t set;
	int kmsg;

	for (char **name = names; *name; name++) {
		if (!known(*name, tests, count)) {
			fprintf(stderr, "%s: no test is called %s\n", program, *name);
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	report = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	why = report->why;
	skipped = &report->skipped;
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	lseek(kmsg, 0, SEEK_END);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);

	for (size_t i = 0; i < count; i++) {
		if (*names ? !named(&tests[i], names) : tests[i].optional)
			continue;
		if (!run(&tests[i], limit_s, after, kmsg)) {
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

bool put_text(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

long vmstat(const char *name)
{
	FILE *f = fopen("/proc/vmstat", "r");
	char key[80];
	long value, found = -1;

	/* add up the counts that each processor keeps for itself */
	put_text("/proc/sys/vm/stat_refresh", "1");
	while (f && fscanf(f, "%79s %ld", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}
