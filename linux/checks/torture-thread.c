// SPDX-License-Identifier: GPL-2.0
/* Steps with threads, signals and libraries. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "torture.h"

#define READERS 2

/* A thread that reads pages that nobody else touches, until @stop is set or the process ends. */
struct reader {
	pthread_t thread;
	bool alive;
	volatile bool stop;
	unsigned pages;
	char *base;
	struct page page[ARENA_PAGES];
};

static struct reader readers[READERS];

/* Sleep now and then, so that simulated processors have less to do. */
static void rest(uint64_t *random)
{
	if (next(random) % 16 == 0)
		usleep(next(random) % 512);
}

static void *read_on(void *argument)
{
	struct reader *reader = argument;
	uint64_t random = reader->pages;

	while (!reader->stop) {
		unsigned n = next(&random) % reader->pages;

		look(&reader->page[n], reader->base + n * PAGE, next(&random) % WORDS);
		rest(&random);
	}
	return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	int error = pthread_create(thread, NULL, run, argument);

	if (error)
		note_bad("pthread_create", error, 0);
}

static void pin(struct reader *reader, bool pinned)
{
	for (struct region *region = world.region; region < world.region + REGIONS; region++)
		for (unsigned n = 0; region->base && n < region->pages; n++) {
			char *at = region->base + n * PAGE;

			if (at >= reader->base && at < reader->base + reader->pages * PAGE)
				region->page[n].pinned = pinned;
		}
}

static void stop_reader(struct reader *reader)
{
	reader->stop = true;
	pthread_join(reader->thread, NULL);
	pin(reader, false);
	reader->alive = false;
}

void stop_readers(void)
{
	for (unsigned n = 0; n < READERS; n++)
		if (readers[n].alive)
			stop_reader(readers + n);
}

/* Start a reader, or stop one. */
void do_reader(void)
{
	struct reader *reader = readers + below(READERS);
	struct region *region;
	unsigned first, count;

	if (reader->alive) {
		stop_reader(reader);
		note("reader stopped", reader->pages, 0);
		return;
	}
	if (!any_range(&region, &first, &count))
		return;
	for (unsigned n = first; n < first + count; n++) {
		struct page *page = region->page + n;

		if (!page->mapped || !page->protection || (page->file != ANON && page->index >= file_pages(page->file)) ||
		    (page->shared && (page->file == SCRATCH || page->file == ANON)))
			count = n - first;
	}
	if (!count)
		return;
	reader->base = region->base + first * PAGE;
	reader->pages = count;
	memcpy(reader->page, region->page + first, count * sizeof(struct page));
	reader->stop = false;
	reader->alive = true;
	pin(reader, true);
	start(&reader->thread, read_on, reader);
	note("reader", count, 0);
}

/* Mappers: threads that map, read and unmap the same part of the file, independently. */
static pthread_t mapper[2];
static volatile bool stop_mapping;

static void *map_and_read(void *argument)
{
	uint64_t random = (uintptr_t)argument;
	unsigned rounds = random >> 32;

	for (unsigned round = 0; !stop_mapping && (!rounds || round < rounds); round++) {
		struct page page = { .mapped = true, .shared = true, .protection = PROT_READ, .file = FIXED };
		unsigned pages = 1 + round % 3;
		char *map = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, world.fd[FIXED], THREAD_INDEX * PAGE);

		if (map == MAP_FAILED) {
			note_bad("mmap of a thread", errno, 0);
			break;
		}
		for (unsigned n = 0; n < pages; n++) {
			page.index = THREAD_INDEX + n;
			look(&page, map + n * PAGE, next(&random) % WORDS);
		}
		if (munmap(map, pages * PAGE - (round % 2 ? 100 : 0)))
			note_bad("munmap of a thread", errno, 0);
		rest(&random);
	}
	if (rounds % 2)
		pthread_exit(argument);
	return argument;
}

void stop_mappers(void)
{
	stop_mapping = true;
	for (unsigned n = 0; n < world.alive; n++)
		pthread_join(mapper[n], NULL);
	stop_mapping = false;
	world.alive = 0;
}

/* Start the mappers, or stop them. */
void do_mappers(void)
{
	note("mappers", world.alive, 0);
	if (world.alive)
		return stop_mappers();
	for (unsigned n = 0; n < 2; n++)
		start(&mapper[n], map_and_read, (void *)(uintptr_t)(n + 1));
	world.alive = 2;
}

void do_threads(void)
{
	unsigned count = 2 + below(3), ended = 0;
	pthread_t thread[4];

	for (unsigned n = 0; n < count; n++)
		start(&thread[n], map_and_read, (void *)((2 + n + 0ul) << 32 | (n + 1)));
	for (unsigned n = 0; n < count; n++) {
		void *result;

		pthread_join(thread[n], &result);
		ended += (uintptr_t)result & 15;
	}
	note("threads", count, ended);
}

/* In a forked child no other thread lives. */
void forget_threads(void)
{
	for (unsigned n = 0; n < READERS; n++) {
		if (readers[n].alive)
			pin(&readers[n], false);
		readers[n].alive = false;
	}
	world.alive = 0;
}

/*
 * A thread reads pages while the main thread unmaps them and maps them again: each read gives the
 * right bytes or SIGSEGV, nothing else.
 */
static volatile bool stop_race;

static void *race(void *argument)
{
	uint64_t value, random = 1;

	while (!stop_race) {
		unsigned n = next(&random) % 4, word = next(&random) % WORDS;

		if (!probe(RACE + n * PAGE + 8 * word, false, &value) &&
		    value != file_word(FIXED, (THREAD_INDEX + n) * PAGE + 8 * word))
			note_bad("word in a race", value, file_word(FIXED, (THREAD_INDEX + n) * PAGE + 8 * word));
	}
	return argument;
}

void do_race(void)
{
	unsigned rounds = 3 + below(10), failed = 0;
	int fd = world.fd[FIXED];
	pthread_t thread;

	stop_race = false;
	start(&thread, race, NULL);
	for (unsigned round = 0; round < rounds; round++) {
		failed += mmap(RACE, 4 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, THREAD_INDEX * PAGE) != RACE;
		if (round % 3 == 1) {
			failed += mprotect(RACE + PAGE, PAGE, PROT_NONE) != 0;
			failed += madvise(RACE, 4 * PAGE, MADV_DONTNEED) != 0;
			failed += mprotect(RACE + PAGE, PAGE, PROT_READ) != 0;
		}
		if (round % 3 == 2) {
			char *away = mremap(RACE, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, RACE + 16 * PAGE);

			failed += away != RACE + 16 * PAGE;
			failed += mremap(away, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, RACE) != RACE;
		}
		if (round % 2)
			failed += munmap(RACE + PAGE, 2 * PAGE - 7) != 0;
	}
	failed += munmap(RACE, 4 * PAGE) != 0;
	stop_race = true;
	pthread_join(thread, NULL);
	note("race", rounds, failed);
}

/*
 * A signal handler runs at any moment, and maps and unmaps. Sometimes it jumps away instead of
 * returning.
 */
static sigjmp_buf storm;
static volatile unsigned alarms, jumps;

static void map_in_handler(char *at, int flags)
{
	struct page page = { .mapped = true, .shared = true, .protection = PROT_READ, .file = FIXED, .index = THREAD_INDEX + 8 };
	char *map = mmap(at, PAGE, PROT_READ, MAP_SHARED | flags, world.fd[FIXED], page.index * PAGE);

	if (map == MAP_FAILED)
		return note_bad("mmap of a handler", errno, 0);
	look(&page, map, 7);
	if (munmap(map, PAGE))
		note_bad("munmap of a handler", errno, 0);
}

static void on_alarm(int sig)
{
	int error = errno;

	(void)sig;
	map_in_handler(STORM + 64 * PAGE, MAP_FIXED);
	errno = error;
	if (++alarms % 3 == 0) {
		jumps++;
		siglongjmp(storm, 1);
	}
}

void do_storm(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	volatile unsigned round = 0;
	unsigned rounds = 6 + below(10);
	sigset_t set;

	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	if (!sigsetjmp(storm, 1))
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	while (round < rounds) {
		struct page page = { .mapped = true, .shared = true, .protection = PROT_READ, .file = FIXED, .index = THREAD_INDEX + 12 };
		struct itimerval soon = { .it_value.tv_usec = 20 + 37 * round };
		char *map;

		round++;
		setitimer(ITIMER_REAL, &soon, NULL);
		map = mmap(STORM, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, world.fd[FIXED], page.index * PAGE);
		if (map != STORM)
			note_bad("mmap in a storm", errno, 0);
		look(&page, map, round);
		munmap(map, 2 * PAGE);
		/* A jump may leave this mapping behind. */
		map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, world.fd[FIXED], page.index * PAGE);
		look(&page, map, round);
		munmap(map, PAGE);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	munmap(STORM, 80 * PAGE);
	note("storm", rounds, 0);
}

static sigjmp_buf out;

static void on_user_signal(int sig)
{
	map_in_handler(NULL, 0);
	if (sig == SIGUSR2)
		siglongjmp(out, sig);
}

void do_signal(void)
{
	int sig = chance(50) ? SIGUSR1 : SIGUSR2, jumped;

	signal(sig, on_user_signal);
	jumped = sigsetjmp(out, 1);
	if (!jumped)
		raise(sig);
	note("signal", sig, jumped);
}

/* Load a library of the folder, and try to load one that does not exist. */
void do_library(void)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/torture-library.so", world.folder);
	void *library = dlopen(path, chance(50) ? RTLD_NOW : RTLD_LAZY);
	uint64_t (*answer)(uint64_t) = library ? (uint64_t (*)(uint64_t))dlsym(library, "answer") : NULL;

	if (!answer)
		return note_bad("dlopen", !!library, 1);
	note("dlopen", answer(5), 0);
	note("dlclose", dlclose(library), dlopen("/data/no-such-library.so", RTLD_NOW) != NULL);
}
