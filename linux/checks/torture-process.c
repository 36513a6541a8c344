// SPDX-License-Identifier: GPL-2.0
/* Steps that make processes, and the ways in which a process ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

extern char **environ;

static const struct {
	unsigned share;		/* of all steps */
	void (*run)(void);
} steps[] = {
	{ 22, do_map }, { 12, do_unmap }, { 12, do_remap }, { 7, do_protect }, { 8, do_advise }, { 2, do_sync }, { 4, do_lock },
	{ 12, do_read }, { 10, do_write }, { 1, do_many }, { 1, do_cut }, { 3, do_drop }, { 2, do_system_calls }, { 4, do_reader },
	{ 2, do_mappers }, { 2, do_threads }, { 1, do_race }, { 1, do_storm }, { 3, do_signal }, { 1, do_library }, { 3, do_fork },
	{ 3, do_vfork }, { 3, do_spawn },
};

void step(void)
{
	unsigned all = 0, at;

	for (unsigned n = 0; n < sizeof(steps) / sizeof(steps[0]); n++)
		all += steps[n].share;
	at = below(all);
	for (unsigned n = 0;; n++) {
		if (at < steps[n].share) {
			steps[n].run();
			return;
		}
		at -= steps[n].share;
	}
}

static int wait_for(pid_t child)
{
	int status = -1;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* The command line of program @which. The program ends with the status in its arguments. */
static char **command(unsigned which)
{
	static char number[12];
	static char *own[] = { NULL, "-x", number, NULL }, *shell[] = { "/bin/sh", "-c", "exit 9", NULL };
	static char *missing[] = { "/data/no-such-program", NULL };

	snprintf(number, sizeof(number), "%u", 10 + below(90));
	own[0] = (char *)world.self;
	return which == 0 ? own : which == 1 ? shell : missing;
}

/* In a child: forget the pages that fork() left out. Nothing may be mapped there. */
static void forget_not_forked(void)
{
	for (struct region *region = world.region; region < world.region + REGIONS; region++) {
		bool any = false;

		for (unsigned n = 0; region->base && n < region->pages; n++)
			if (region->page[n].not_forked) {
				uint64_t value;
				int sig = probe(region->base + n * PAGE, false, &value);

				if (sig != SIGSEGV)
					note_bad("signal of a page not forked", sig, SIGSEGV);
				region->page[n] = (struct page){ 0 };
				any = true;
			}
		if (!any || region == world.region)
			continue;
		for (unsigned n = 0; n < region->pages; n++)	/* a region has no holes */
			if (region->page[n].mapped)
				munmap(region->base + n * PAGE, PAGE);
		region->base = NULL;
	}
}

static void be_child(void)
{
	unsigned count = 1 + below(10), how = below(8);

	forget_threads();
	forget_not_forked();
	world.children = 0;
	world.report->hash[++world.level] = 1;
	world.random = mix(world.random + world.level);
	check_all();
	for (unsigned n = 0; n < count; n++)
		step();
	check_all();
	if (how == 0) {
		char **words = command(0);

		execv(words[0], words);
	}
	if (how == 1)
		abort();
	if (how == 2)
		kill(getpid(), SIGKILL);
	if (how == 3)
		exit(how);
	_exit(20 + how);
}

/* Fork. The child runs some steps, and so does the parent before it waits. */
void do_fork(void)
{
	unsigned level = world.level + 1, count = below(4);

	if (level == LEVELS - 1 || world.children)
		return;
	pid_t child = fork();
	if (!child)
		be_child();
	world.children++;
	for (unsigned n = 0; n < count; n++)
		step();
	int status = wait_for(child);
	world.children--;
	note("fork", status, world.report->hash[level]);
	check_all();
}

/* A child that uses its parent's memory, and executes a program or fails to. */
void do_vfork(void)
{
	unsigned which = below(3);
	char **words = command(which);
	pid_t child = vfork();

	if (!child) {
		execv(words[0], words);
		_exit(70 + which);
	}
	note("vfork", which, wait_for(child));
	check_all();
}

void do_spawn(void)
{
	unsigned which = below(3);
	char **words = command(which);
	int status = 0;
	pid_t child;

	if (chance(15)) {
		note("system", system("true | cat | sh -c 'exit 6'"), 0);
		return;
	}
	if (chance(15)) {
		FILE *pipe = popen("echo 12 | cat", "r");
		int number = 0;

		if (!pipe || fscanf(pipe, "%d", &number) != 1)
			number = -1;
		note("popen", number, pipe ? pclose(pipe) : -1);
		return;
	}
	int error = posix_spawn(&child, words[0], NULL, NULL, words, environ);

	if (!error)
		status = wait_for(child);
	note("posix_spawn", error, status);
	check_all();
}

static void go_on_as_another_program(void)
{
	char fd[12], seed[12], phase[12];
	char *words[] = { (char *)world.self, world.verbose ? "-vc" : "-c", fd, "-s", seed, "-p", phase, (char *)world.folder, NULL };

	snprintf(fd, sizeof(fd), "%d", world.report_fd);
	snprintf(seed, sizeof(seed), "%u", world.seed);
	snprintf(phase, sizeof(phase), "%u", world.phase + 1);
	execv(words[0], words);
	note_bad("execv", errno, 0);
}

static void check_at_exit(void)
{
	check_all();
	note("atexit", 0, 0);
}

static void *exit_in_thread(void *argument)
{
	exit((int)(uintptr_t)argument);
}

static void *end_last(void *argument)
{
	check_all();
	return argument;
}

/* End this process, or return what main() must return. Readers and mappers may be alive. */
int finish(void)
{
	unsigned how = below(14), status = below(120);
	pthread_t thread;

	if (chance(50) && world.alive)
		stop_mappers();
	if (chance(30))
		atexit(check_at_exit);
	note("end", how, status);
	switch (how) {
	case 0: case 1:
		return status;
	case 2: case 3:
		exit(status);
	case 4:
		_exit(status);
	case 5:
		quick_exit(status);
	case 6:
		abort();
	case 7:
		kill(getpid(), SIGKILL);
		break;
	case 8:
		kill(getpid(), SIGTERM);
		break;
	case 9:
		signal(SIGSEGV, SIG_DFL);
		*(volatile char *)RACE = 1;
		break;
	case 10:
		pthread_create(&thread, NULL, exit_in_thread, (void *)(uintptr_t)status);
		for (;;)
			check_all();
	case 11:
		stop_readers();
		if (world.alive)
			stop_mappers();
		if (!pthread_create(&thread, NULL, end_last, NULL))
			pthread_exit(NULL);
		break;
	case 12: {
		char **words = command(below(2));

		execv(words[0], words);
		break;
	}
	default:
		if (world.phase < 2)
			go_on_as_another_program();
	}
	return status;
}
