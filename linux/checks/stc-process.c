// SPDX-License-Identifier: GPL-2.0
/* Processes: fork, the end of an address space, address spaces that take turns. */
#include "stc.h"
#include <sched.h>
#include <signal.h>
#include <time.h>

#define FORK_SPOTS 64ul

static uint64_t fork_page(unsigned i)
{
	return i % 32 * TABLE * 16 + i / 32;
}

/* Write the untouched half of the pages. Each of three threads takes a third of them. */
static void fill_half(struct worker *worker)
{
	for (unsigned i = FORK_SPOTS / 2 + worker->number; i < FORK_SPOTS; i += 3)
		put(worker->region, fork_page(i), worker->gen);
}

static void fork_child(void *arg)
{
	struct worker *parent = arg, workers[3];
	uint64_t gen = fresh();

	for (unsigned i = 0; i < FORK_SPOTS; i++)
		NEED(has_either(parent->region, fork_page(i), parent->gen, i < FORK_SPOTS / 2 ? parent->gen : 0),
		     "child: wrong content of page %#lx", fork_page(i));
	start(workers, 3, fill_half, parent->region, gen);
	for (unsigned i = 0; i < FORK_SPOTS / 2; i++)
		put(parent->region, fork_page(i), gen);
	join(workers, 3);
	for (unsigned i = 0; i < FORK_SPOTS; i++)
		EXPECT(parent->region, fork_page(i), gen, "child's own");
}

bool t_fork(void)
{
	for (unsigned round = 0; round < 8 * factor; round++) {
		struct worker workers[3];
		uint64_t gen = fresh();
		char *region = map(at(30, 0), 2 * GB, MAP_PRIVATE, -1);
		pid_t pids[2];

		for (unsigned i = 0; i < FORK_SPOTS / 2; i++)
			put(region, fork_page(i), gen);
		start(workers, 3, fill_half, region, gen);
		for (unsigned i = 0; i < 2; i++)
			pids[i] = spawn(fork_child, &workers[0]);
		join(workers, 3);
		for (unsigned i = 0; i < FORK_SPOTS; i++) {
			EXPECT(region, fork_page(i), gen, "parent");
			put(region, fork_page(i), gen);
		}
		for (unsigned i = 0; i < 2; i++)
			finish(pids[i], 0);
		for (unsigned i = 0; i < FORK_SPOTS; i++)
			EXPECT(region, fork_page(i), gen, "parent at the end");
		unmap(region, 2 * GB);
	}
	return true;
}

static void end_busy(void *arg)
{
	char *argv[] = { "stc-check", NULL }, *env[] = { NULL };
	struct worker workers[THREADS];
	unsigned way = *(unsigned *)arg;

	start(workers, THREADS, be_busy, NULL, 0);
	usleep(500 + 137 * way);
	switch (way % 3) {
	case 0:
		_exit(2);
	case 1:
		/* without arguments this program prints its usage and exits with 2 */
		if (freopen("/dev/null", "w", stderr))
			execve("/proc/self/exe", argv, env);
		_exit(3);
	default:
		kill(getpid(), SIGKILL);
		pause();
	}
}

/* Processes exit, exec or are killed while their threads fault. */
bool t_end(void)
{
	for (unsigned round = 0; round < 9 * factor; round++) {
		pid_t pid = spawn(end_busy, &round);

		finish(pid, round % 3 == 2 ? -SIGKILL : 2);
	}
	return true;
}

#define TURNERS 5u

static struct turner {
	int mine, theirs;	/* pipes: the turn comes from the first and goes to the second */
	unsigned number, turns;
} turners[TURNERS];

/* Every process uses the same addresses, with other contents. Sometimes one frees its tables. */
static void take_turns(void *arg)
{
	struct turner *turner = arg;
	uint64_t gen = fresh(), state = seed + turner->number;
	char *region = map(at(30, 0), 4 * GB, MAP_PRIVATE, -1), token;
	uint64_t start = 0, end = 0;

	for (unsigned turn = 0; turn < turner->turns; turn++) {
		NEED(read(turner->mine, &token, 1) == 1, "no turn");
		/* new pages, where another process has just used its own */
		for (unsigned i = 0; i < 4; i++) {
			uint64_t page = end % 4 * (GB / PAGE) + end / 4 * TABLE + end % 512;

			EXPECT(region, page, 0, "new in this process");
			put(region, page, gen);
			end++;
		}
		for (uint64_t i = start; i < end; i++) {
			uint64_t page = i % 4 * (GB / PAGE) + i / 4 * TABLE + i % 512;

			EXPECT(region, page, gen, "in this process");
		}
		if (next(&state) % 4 == 0) {
			unmap(region, 4 * GB);
			map(region, 4 * GB, MAP_PRIVATE, -1);
			start = end = next(&state) % 100;
			gen = fresh();
		}
		NEED(write(turner->theirs, &token, 1) == 1, "no next turn");
	}
}

/* Address spaces take turns on one processor. They end, and new ones begin. */
bool t_turns(void)
{
	int pipes[TURNERS][2];
	pid_t pids[TURNERS];

	hop(0);
	for (unsigned i = 0; i < TURNERS; i++)
		NEED(!pipe(pipes[i]), "pipe");
	for (unsigned round = 0; round < 3 * factor; round++) {
		char token = 1;

		for (unsigned i = 0; i < TURNERS; i++) {
			turners[i] = (struct turner){ pipes[i][0], pipes[(i + 1) % TURNERS][1], i, 12 };
			pids[i] = spawn(take_turns, &turners[i]);
		}
		NEED(write(pipes[0][1], &token, 1) == 1, "pipe");
		for (unsigned i = 0; i < TURNERS; i++)
			finish(pids[i], 0);
		NEED(read(pipes[0][0], &token, 1) == 1, "pipe");
	}
	return true;
}

#define OVERTAKEN_TABLES 48u
#define TAKEN_MAX 64u

/* Memory that both processes share. */
static struct overtaking {
	unsigned cpu;
	_Atomic unsigned table;	/* the next table that the slow process touches */
	_Atomic bool ready, done;
} *overtaking;

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

/* Touch one table after the other, and compute for a while after each. */
static void be_overtaken(void *arg)
{
	uint64_t gen = fresh();
	char *region = map(at(30, 0), 2 * GB, MAP_PRIVATE, -1);

	(void)arg;
	hop(overtaking->cpu);
	while (!overtaking->ready)
		usleep(100);
	for (unsigned i = 0; i < OVERTAKEN_TABLES; i++) {
		overtaking->table = i;
		put(region, i * TABLE, gen);
		for (uint64_t start = now_us(); now_us() - start < 700; )
			;
	}
	overtaking->done = true;
	for (unsigned i = 0; i < OVERTAKEN_TABLES; i++)
		for (unsigned n = 0; n <= TAKEN_MAX; n++)
			EXPECT(region, i * TABLE + n, n ? 0 : gen, "overtaken");
}

/*
 * Sleep briefly, and run as soon as the sleep ends. The slow process has just touched a page of
 * some table. Touch another page of the table at the same addresses in this address space.
 */
static void overtake(void *arg)
{
	struct sched_param first = { .sched_priority = 1 };
	unsigned taken[OVERTAKEN_TABLES] = { 0 };
	uint64_t gen = fresh();
	char *region = map(at(30, 0), 2 * GB, MAP_PRIVATE, -1);

	(void)arg;
	hop(overtaking->cpu);
	NEED(!sched_setscheduler(0, SCHED_FIFO, &first), "SCHED_FIFO");
	overtaking->ready = true;
	while (!overtaking->done) {
		usleep(100);

		unsigned table = overtaking->table;

		if (taken[table] == TAKEN_MAX)
			continue;
		/* do not read it before: nobody would notice a page of zeros at a wrong place */
		put(region, table * TABLE + ++taken[table], gen);
	}
	for (unsigned i = 0; i < OVERTAKEN_TABLES; i++)
		for (unsigned n = 1; n <= taken[i]; n++)
			EXPECT(region, i * TABLE + n, gen, "in the one that overtakes");
}

/*
 * In the middle of a fault, a process loses its processor to another process that faults at the
 * same addresses.
 */
bool t_overtake(void)
{
	overtaking = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(overtaking != MAP_FAILED, "mmap");
	for (unsigned round = 0; round < 2 * factor; round++) {
		pid_t slow, fast;

		*overtaking = (struct overtaking){ .cpu = round };
		fast = spawn(overtake, NULL);
		slow = spawn(be_overtaken, NULL);
		finish(slow, 0);
		finish(fast, 0);
	}
	munmap(overtaking, PAGE);
	return true;
}
