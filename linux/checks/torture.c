// SPDX-License-Identifier: GPL-2.0
/*
 * Torture test of everything that changes an address space. It runs with and without a launcher,
 * which must make no difference.
 *
 *	torture [-v] [-n SEQUENCES] [-s SEED] FOLDER
 *
 * Each seed gives a sequence of steps: mappings are made, moved, cut, protected, advised, locked,
 * read and written; the process forks, vforks, spawns, has threads and handlers, loads libraries,
 * becomes another program, and ends in one of many ways. A model says what each page must hold
 * and how each access must end. The results of all system calls and accesses, but neither
 * addresses nor times, go into a hash. The program prints a line for each sequence: seed, hash,
 * steps, how often the model was contradicted, and how the process ended. The line must be the
 * same for every kind of paging.
 *
 * With hwdp -s, threads of one process that map the same part of a file read-only and shared may
 * get one mapping. So no step protects, moves, locks or advises such a mapping while there is an
 * identical one, and no step expects SIGSEGV where an identical mapping may still be.
 *
 * -v prints each step on standard error. The exit status is 0 if every sequence ended and none
 * contradicted the model.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

#define PATIENCE 20	/* seconds after which a sequence counts as hanging */

struct world world;

static void die(const char *what)
{
	fprintf(stderr, "torture: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void open_files(int flags)
{
	static const char * const names[FILES] = { [FIXED] = "fixed", [SCRATCH] = "scratch", [SHORT] = "short" };

	for (int file = 0; file < FILES; file++) {
		char path[300] = "/tmp/torture-outside";

		if (names[file])
			snprintf(path, sizeof(path), "%s/%s", world.folder, names[file]);
		world.fd[file] = open(path, (file == SCRATCH ? O_RDWR : flags ? O_RDWR : O_RDONLY) | O_CLOEXEC | flags, 0600);
		if (world.fd[file] < 0)
			die(path);
	}
}

/* Run one process of a sequence, from its beginning or after it has executed itself. */
static int run_sequence(int report_fd)
{
	unsigned count;
	sigset_t set;

	world.report_fd = report_fd;
	world.report = mmap(NULL, sizeof(*world.report), PROT_READ | PROT_WRITE, MAP_SHARED, report_fd, 0);
	if (world.report == MAP_FAILED)
		die("report");
	world.random = mix(world.seed + ((uint64_t)world.phase << 32)) + 1;
	world.region[0].base = ARENA;
	world.region[0].pages = ARENA_PAGES;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	catch_faults();
	open_files(0);
	fill_file(world.fd[SCRATCH], SCRATCH, file_pages(SCRATCH));
	if (chance(70))
		do_drop();
	count = 4 + below(26);
	for (unsigned n = 0; n < count; n++)
		step();
	check_all();
	return finish();
}

/* Wait for the sequence. Return its status, or -1 if it hangs. */
static int ending_of(pid_t child)
{
	const struct timespec patience = { .tv_sec = PATIENCE };
	int status;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		if (sigtimedwait(&set, NULL, &patience) < 0 && errno == EAGAIN)
			return -1;
	}
}

/* Run a sequence in a separate process group, and print its line. True if it was good. */
static bool try(const char *number, int report_fd)
{
	char fd[12], seed[12], how[32];
	char *words[] = { (char *)world.self, world.verbose ? "-vc" : "-c", fd, "-s", seed, (char *)world.folder, NULL };

	memset(world.report, 0, sizeof(*world.report));
	snprintf(fd, sizeof(fd), "%d", report_fd);
	snprintf(seed, sizeof(seed), "%s", number);
	pid_t child = fork();
	if (!child) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		setpgid(0, 0);
		execv(words[0], words);
		die(words[0]);
	}
	if (child < 0)
		die("fork");
	int status = ending_of(child);
	kill(-child, SIGKILL);
	if (status == -1) {
		waitpid(child, NULL, 0);
		snprintf(how, sizeof(how), "hangs");
	} else {
		snprintf(how, sizeof(how), "%s %d", WIFEXITED(status) ? "exit" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	}
	printf("seed %s hash %016lx steps %u bad %u %s%s%s\n", number, world.report->hash[0], world.report->steps, world.report->bad,
	       how, world.report->bad ? ": " : "", world.report->first_bad);
	fflush(stdout);
	return status != -1 && !world.report->bad;
}

static void prepare(void)
{
	open_files(O_CREAT | O_TRUNC);
	for (int file = 0; file < FILES; file++) {
		fill_file(world.fd[file], file, file_pages(file));
		if (fsync(world.fd[file]))
			die("fsync");
		close(world.fd[file]);
	}
}

int main(int argc, char **argv)
{
	unsigned long count = 1, good = 0;
	int report_fd = -1, option;
	sigset_t set;

	world.self = argv[0];
	world.seed = 1;
	while ((option = getopt(argc, argv, "vn:s:c:p:x:")) != -1) {
		switch (option) {
		case 'v':
			world.verbose = true;
			break;
		case 'n':
			count = strtoul(optarg, NULL, 0);
			break;
		case 's':
			world.seed = strtoul(optarg, NULL, 0);
			break;
		case 'c':
			report_fd = atoi(optarg);
			break;
		case 'p':
			world.phase = atoi(optarg);
			break;
		case 'x':
			return atoi(optarg);
		default:
			return 2;
		}
	}
	if (optind != argc - 1) {
		fputs("usage: torture [-v] [-n SEQUENCES] [-s SEED] FOLDER\n", stderr);
		return 2;
	}
	world.folder = argv[optind];
	if (report_fd >= 0)
		return run_sequence(report_fd);

	prepare();
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	report_fd = memfd_create("report", 0);
	if (report_fd < 0 || ftruncate(report_fd, sizeof(*world.report)))
		die("memfd");
	world.report = mmap(NULL, sizeof(*world.report), PROT_READ | PROT_WRITE, MAP_SHARED, report_fd, 0);
	if (world.report == MAP_FAILED)
		die("report");
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (unsigned long n = 0; n < count; n++) {
		char number[12];

		snprintf(number, sizeof(number), "%lu", world.seed + n);
		good += try(number, report_fd);
	}
	printf("torture: %lu of %lu sequences as the model says\n", good, count);
	return good != count;
}
