// SPDX-License-Identifier: Apache-2.0
/*
 * spread_threads THREADS ROUNDS: in each round THREADS threads compute for 50 ms. A line has the CPU of each of them
 * after half of this time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MS 1000000L
#define THREADS_MAX 16

static int cpu[THREADS_MAX];

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 * MS + t.tv_nsec;
}

static void *compute(void *mine)
{
	long start = now();

	while (now() - start < 25 * MS)
		;
	*(int *)mine = sched_getcpu();
	while (now() - start < 50 * MS)
		;
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc == 3 ? atoi(argv[1]) : 0;
	pthread_t thread[THREADS_MAX];

	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	for (int rounds = atoi(argv[2]); rounds > 0; rounds--) {
		for (int i = 0; i < threads; i++)
			pthread_create(&thread[i], NULL, compute, &cpu[i]);
		for (int i = 0; i < threads; i++) {
			pthread_join(thread[i], NULL);
			printf("%d%c", cpu[i], i + 1 < threads ? ' ' : '\n');
		}
	}
	return 0;
}
