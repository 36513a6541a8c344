// SPDX-License-Identifier: GPL-2.0
/*
 * Guest test of the software translation cache: it must never lead a page fault to a
 * page table that was freed, or that is for other addresses.
 *
 *	stc-check [-n FACTOR] [-r SEED] [-t SECONDS] DIR [NAME...]
 *
 * DIR is a folder where a file can be made. -n multiplies the steps of each test (with
 * 1024, rss alone has over a million faults for each thread). -r chooses other orders
 * of the steps. -t limits each test (default 120 s). The program runs on every kernel,
 * with the cache and without.
 *
 * The content of every page depends on its place and on a number that only its mapping
 * has. The tests check this content whenever they read a page. A fault that was served in
 * a wrong table leaves the right table as it was, so the access faults again for ever. For
 * this case, a test ends when it has more faults than its touches of pages explain.
 */
#include "stc.h"
#include <sched.h>
#include <sys/klog.h>

const char *program = "stc-check";
const char *dir;
unsigned factor = 1;
uint64_t seed = 1;

static const struct test tests[] = {
#define TABLE_ROW(name) { #name, t_##name, false },
	TESTS(TABLE_ROW)
};

/*
 * The kernel frees an address space, and checks its counts, when the last processor
 * has stopped using it. An idle processor goes on using it, so run on each for a moment.
 */
static bool after_test(bool ok)
{
	cpu_set_t all;

	(void)ok;
	sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
		hop(cpu);
	sched_setaffinity(0, sizeof(all), &all);
	return true;
}

/* Print the kernel's messages about the cache, and the number of levels of page tables. */
static void introduce(void)
{
	static char log[1 << 16];
	int size = klogctl(3, log, sizeof(log) - 1), levels = 3;

	for (char *line = strtok(size > 0 ? log : NULL, "\n"); line; line = strtok(NULL, "\n")) {
		char *words = strstr(line, "stc: ");

		if (words)
			puts(words);
	}
	for (unsigned shift = 39; shift <= 48 && reachable(shift); shift += 9)
		levels++;
	printf("page tables of %d levels, %ld processors\n", levels, sysconf(_SC_NPROCESSORS_ONLN));
}

int main(int argc, char **argv)
{
	unsigned limit_s = 120;
	int opt;

	while ((opt = getopt(argc, argv, "n:r:t:")) > 0) {
		switch (opt) {
		case 'n':
			factor = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			seed = strtoul(optarg, NULL, 0);
			break;
		case 't':
			limit_s = strtoul(optarg, NULL, 0);
			break;
		default:
			optind = argc;
		}
	}
	if (optind >= argc || !factor || !limit_s) {
		fprintf(stderr, "usage: stc-check [-n FACTOR] [-r SEED] [-t SECONDS] DIR [NAME...]\n");
		return 2;
	}
	dir = argv[optind++];
	pthread_atfork(NULL, NULL, start_watch);
	setvbuf(stdout, NULL, _IOLBF, 0);
	introduce();
	put_text(HUGEPAGES "enabled", "madvise");
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argv + optind, limit_s, after_test);
}
