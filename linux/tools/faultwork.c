// SPDX-License-Identifier: GPL-2.0
/*
 * faultwork: programs that fault, for measuring the kernel's page fault path. The measured part is
 * between the markers of a region of interest, which includes neither the set-up before nor the
 * check after.
 *
 *   faultwork seq|random|semi [-t THREADS] [-c CPU,...] [-b BYTES] [-n PAGES] [-r SEED] [-s] [-g]
 *   faultwork matmul [-c CPU] N
 *   faultwork pagefault|filefault|munmap [-t THREADS] [-c CPU,...] [-b BYTES] [-n REPETITIONS]
 *   faultwork fork|exec [-t THREADS] [-c CPU,...] [-n REPETITIONS]
 *   faultwork run COMMAND [ARGUMENT...]
 *
 * seq, random, semi: each thread has an anonymous region of BYTES (default 1G), and writes once to
 * each of PAGES pages (default: all). `random` takes pages in the order of a random permutation,
 * not with replacement: so every access faults, and all orders have the same number of faults.
 * `semi` takes one page at random and the four behind it: the region is cut into groups of five,
 * and the groups are permuted. -s spreads the pages of `seq` evenly over the region, which may be
 * far larger than memory. Linux merges adjacent regions into one VMA; -g keeps a gap between them.
 * -c assigns a processor to each thread. Otherwise, threads might move or share a core by chance.
 *
 * matmul: C = A * B, N x N doubles each, by three nested loops; mapping and filling A and B is inside the region of interest.
 *
 * The other workloads follow will-it-scale: `pagefault` maps anonymous memory, writes to each page,
 * unmaps; `filefault` does so with a shared mapping of a file in memory; `munmap` writes to one
 * page of each 2 MiB only, so that unmapping tears down more tables than pages; `fork` forks a
 * child that exits; `exec` one that executes this program, which exits. `run` puts the region of
 * interest around another program.
 *
 * Prints what was done and how many minor faults it took. Every page and the product are checked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "marker.h"

#define PAGE 4096UL
#define HUGE (2UL << 20)
#define GROUP 5
#define THREADS_MAX 64
#define DIM_MAX 8192UL

static struct {
	unsigned long threads, bytes, count, seed;
	unsigned long cpus[THREADS_MAX], cpu_count;
	bool spread, gap;
} options = { .threads = 1, .seed = 1 };

struct worker;

struct workload {
	const char *name;
	void (*prepare)(struct worker *w);
	unsigned long (*work)(struct worker *w);	/* how many pages or repetitions were done */
	unsigned long (*check)(struct worker *w);	/* how many pages are wrong */
	unsigned long bytes, count;	/* defaults; a count of 0 means all pages */
	const char *counted, *flags;	/* what is counted; the flags, for getopt() */
	uint64_t (*page)(const struct worker *w, uint64_t n);	/* the page that access n goes to */
};

struct worker {
	pthread_t thread;
	unsigned long number, done, wrong, faults;
	const struct workload *workload;
	char *map;
	unsigned long bytes, pages, count;
	int fd;
};

static pthread_barrier_t barrier;

static void die(const char *what)
{
	fprintf(stderr, "faultwork: %s: %s\n", what, strerror(errno));
	exit(1);
}

static char *map(unsigned long bytes, int flags, int fd)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);

	if (at == MAP_FAILED)
		die("cannot map memory");
	return at;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/*
 * The place of n in a random permutation of 0..size-1: a Feistel network over as many bits as size
 * needs, applied again until the result is below size. A table would need memory, and so disturb
 * the measurement.
 */
static uint64_t permute(uint64_t n, uint64_t size, uint64_t key)
{
	unsigned int half = 1;

	while (1UL << 2 * half < size)
		half++;
	uint64_t mask = (1UL << half) - 1;
	do {
		uint64_t left = n >> half, right = n & mask;
		for (uint64_t round = 0; round < 4; round++) {
			uint64_t next = left ^ (mix(right + (key << 3 | round) * 0x9e3779b97f4a7c15u) & mask);
			left = right;
			right = next;
		}
		n = left << half | right;
	} while (n >= size);
	return n;
}

static inline uint64_t seq_page(const struct worker *w, uint64_t n)
{
	return options.spread ? n * (w->pages / w->count) : n;
}

static inline uint64_t random_page(const struct worker *w, uint64_t n)
{
	return permute(n, w->pages, options.seed + w->number);
}

static inline uint64_t semi_page(const struct worker *w, uint64_t n)
{
	return permute(n / GROUP, w->pages / GROUP, options.seed + w->number) * GROUP + n % GROUP;
}

/* Inlined once for each order, so that each order has a separate loop. */
static inline unsigned long touch(struct worker *w, uint64_t (*order)(const struct worker *w, uint64_t n))
{
	for (uint64_t n = 0; n < w->count; n++) {
		uint64_t page = order(w, n);
		*(volatile uint64_t *)(w->map + page * PAGE) = mix(page + w->number);
	}
	return w->count;
}

static unsigned long touch_seq(struct worker *w)
{
	return touch(w, seq_page);
}

static unsigned long touch_random(struct worker *w)
{
	return touch(w, random_page);
}

static unsigned long touch_semi(struct worker *w)
{
	return touch(w, semi_page);
}

/* Every page must hold what was written, whatever the order. */
static unsigned long check_pages(struct worker *w)
{
	unsigned long wrong = 0;

	for (uint64_t n = 0; n < w->count; n++) {
		uint64_t page = w->workload->page(w, n);
		wrong += *(volatile uint64_t *)(w->map + page * PAGE) != mix(page + w->number);
	}
	return wrong;
}

static void prepare_region(struct worker *w)
{
	unsigned long gap = options.gap ? PAGE : 0;

	w->map = map(w->bytes + gap, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (gap && munmap(w->map + w->bytes, gap))
		die("cannot unmap");
}

/* Elements are small whole numbers, so that sums are exact. */
static double element(uint64_t number)
{
	return (double)(mix(number) % 16);
}

static unsigned long multiply(struct worker *w)
{
	unsigned long dim = w->count, bytes = dim * dim * sizeof(double);
	double *a = (double *)map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	double *b = (double *)map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	double *c = (double *)map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	for (unsigned long n = 0; n < dim * dim; n++) {
		a[n] = element(n);
		b[n] = element(n + dim * dim);
	}
	for (unsigned long i = 0; i < dim; i++) {
		for (unsigned long j = 0; j < dim; j++) {
			double sum = 0;
			for (unsigned long k = 0; k < dim; k++)
				sum += a[i * dim + k] * b[k * dim + j];
			c[i * dim + j] = sum;
		}
	}
	w->map = (char *)c;
	return dim;
}

/* The sum of a product's elements is that of A's column sums times B's row sums. */
static unsigned long check_product(struct worker *w)
{
	unsigned long dim = w->count;
	double expected = 0, found = 0;

	for (unsigned long k = 0; k < dim; k++) {
		double column = 0, row = 0;
		for (unsigned long i = 0; i < dim; i++) {
			column += element(i * dim + k);
			row += element(k * dim + i + dim * dim);
		}
		expected += column * row;
	}
	for (unsigned long n = 0; n < dim * dim; n++)
		found += ((double *)w->map)[n];
	return found != expected;
}

static unsigned long map_and_touch(struct worker *w, unsigned long step)
{
	int flags = w->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

	for (unsigned long n = 0; n < w->count; n++) {
		char *at = map(w->bytes, flags, w->fd);
		for (unsigned long offset = 0; offset < w->bytes; offset += step)
			*(volatile char *)(at + offset) = 1;
		if (munmap(at, w->bytes))
			die("cannot unmap");
	}
	return w->count;
}

static unsigned long touch_pages(struct worker *w)
{
	return map_and_touch(w, PAGE);
}

static unsigned long touch_tables(struct worker *w)
{
	return map_and_touch(w, HUGE);
}

static void prepare_file(struct worker *w)
{
	w->fd = memfd_create("faultwork", MFD_CLOEXEC);
	/* Bring all of it into memory before the measured part. */
	if (w->fd < 0 || ftruncate(w->fd, w->bytes) || fallocate(w->fd, 0, 0, w->bytes))
		die("cannot make a file in memory");
}

static int finish(pid_t child)
{
	int status;

	if (child < 0)
		die("cannot fork");
	while (waitpid(child, &status, 0) != child)
		if (errno != EINTR)
			die("cannot wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static unsigned long spawn(struct worker *w, bool execute)
{
	static char *const argv[] = { "faultwork", "exit", NULL };
	unsigned long failed = 0;

	for (unsigned long n = 0; n < w->count; n++) {
		pid_t child = fork();
		if (!child) {
			if (execute)
				execv("/proc/self/exe", argv);
			_exit(execute);
		}
		failed += finish(child) != 0;
	}
	w->wrong = failed;
	return w->count - failed;
}

static unsigned long spawn_fork(struct worker *w)
{
	return spawn(w, false);
}

static unsigned long spawn_exec(struct worker *w)
{
	return spawn(w, true);
}

static const struct workload workloads[] = {
	{ "seq", prepare_region, touch_seq, check_pages, 1UL << 30, 0, "pages", "+t:c:b:n:r:sg", seq_page },
	{ "random", prepare_region, touch_random, check_pages, 1UL << 30, 0, "pages", "+t:c:b:n:r:g", random_page },
	{ "semi", prepare_region, touch_semi, check_pages, 1UL << 30, 0, "pages", "+t:c:b:n:r:g", semi_page },
	{ "matmul", NULL, multiply, check_product, 0, 0, "rows", "+c:", NULL },
	{ "pagefault", NULL, touch_pages, NULL, 128UL << 20, 1, "repetitions", "+t:c:b:n:", NULL },
	{ "filefault", prepare_file, touch_pages, NULL, 128UL << 20, 1, "repetitions", "+t:c:b:n:", NULL },
	{ "munmap", NULL, touch_tables, NULL, 1UL << 30, 10, "repetitions", "+t:c:b:n:", NULL },
	{ "fork", NULL, spawn_fork, NULL, 0, 100, "repetitions", "+t:c:n:", NULL },
	{ "exec", NULL, spawn_exec, NULL, 0, 100, "repetitions", "+t:c:n:", NULL },
};

static unsigned long minor_faults(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		die("cannot count faults");
	return usage.ru_minflt;
}

static void work(struct worker *w)
{
	unsigned long before = minor_faults();

	w->done = w->workload->work(w);
	w->faults = minor_faults() - before;
}

static void stay_on(unsigned long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "faultwork: -c %lu: %s\n", cpu, strerror(errno));
		exit(2);
	}
}

static void *worker(void *argument)
{
	struct worker *w = argument;

	if (options.cpu_count)
		stay_on(options.cpus[w->number % options.cpu_count]);
	/*
	 * Work on a tiny region first, so that this thread's stack, and the program's code and
	 * data, do not fault later.
	 */
	if (w->workload->bytes && w->bytes) {
		struct worker tiny = *w;
		tiny.bytes = GROUP * PAGE;
		tiny.pages = GROUP;
		tiny.count = w->workload->count ? 1 : GROUP;
		if (tiny.workload->prepare)
			tiny.workload->prepare(&tiny);
		work(&tiny);
		if (tiny.map)
			munmap(tiny.map, tiny.bytes);
		if (tiny.fd >= 0)
			close(tiny.fd);
	}
	if (w->workload->prepare)
		w->workload->prepare(w);
	pthread_barrier_wait(&barrier);
	if (!w->number)
		marker(MARKER_ROI_BEGIN, 1, 0, 0);
	pthread_barrier_wait(&barrier);
	work(w);
	pthread_barrier_wait(&barrier);
	if (!w->number)
		marker(MARKER_ROI_END, 1, 0, 0);
	pthread_barrier_wait(&barrier);
	if (w->workload->check)
		w->wrong = w->workload->check(w);
	return NULL;
}

static int run(char **argv)
{
	marker(MARKER_ROI_BEGIN, 1, 0, 0);
	pid_t child = fork();
	if (!child) {
		execvp(argv[0], argv);
		fprintf(stderr, "faultwork: cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	int status = finish(child);
	marker(MARKER_ROI_END, 1, 0, 0);
	return status;
}

static int wrong_usage(const char *what, const char *value)
{
	fprintf(stderr, "faultwork: %s%s%s (usage: faultwork seq|random|semi|matmul|pagefault|filefault|munmap|fork|exec|run ...)\n",
		what, value ? " " : "", value ? value : "");
	return 2;
}

/* A number above 0. It may end with K, M, G or T. */
static bool number(const char *text, unsigned long most, unsigned long *value)
{
	static const char units[] = "KMGT";
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	unsigned int shift = unit ? 10 * (unit - units + 1) : 0;
	if (*text < '0' || *text > '9' || errno || (*end && (!unit || end[1])) || *value > most >> shift)
		return false;
	*value <<= shift;
	return *value > 0;
}

/* The processors of the threads. */
static bool cpu_list(char *text)
{
	for (char *part; (part = strsep(&text, ",")); options.cpu_count++) {
		char *end;
		if (options.cpu_count == THREADS_MAX || *part < '0' || *part > '9')
			return false;
		options.cpus[options.cpu_count] = strtoul(part, &end, 10);
		if (*end || options.cpus[options.cpu_count] >= CPU_SETSIZE)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	const struct workload *workload = NULL;
	unsigned long done = 0, faults = 0, wrong = 0, dim = 0;
	int option;

	if (argc < 2)
		return wrong_usage("no workload", NULL);
	if (!strcmp(argv[1], "exit"))
		return 0;
	if (!strcmp(argv[1], "run"))
		return argc > 2 ? run(argv + 2) : wrong_usage("run: no command", NULL);
	for (size_t n = 0; n < sizeof(workloads) / sizeof(workloads[0]); n++)
		if (!strcmp(argv[1], workloads[n].name))
			workload = &workloads[n];
	if (!workload)
		return wrong_usage("unknown workload", argv[1]);
	options.bytes = workload->bytes;
	options.count = workload->count;
	argc--;
	argv++;
	opterr = 0;
	while ((option = getopt(argc, argv, workload->flags)) != -1) {
		bool good = true;
		switch (option) {
		case 't': good = number(optarg, THREADS_MAX, &options.threads); break;
		case 'c': good = cpu_list(strdupa(optarg)); break;
		case 'b': good = number(optarg, 1UL << 56, &options.bytes); break;
		case 'n': good = number(optarg, 1UL << 48, &options.count); break;
		case 'r': good = number(optarg, ~0UL >> 3, &options.seed); break;
		case 's': options.spread = true; break;
		case 'g': options.gap = true; break;
		default: return wrong_usage("bad option", argv[optind - 1]);
		}
		if (!good) {
			char name[] = { '-', option, 0 };
			fprintf(stderr, "faultwork: %s %s: bad or too large value\n", name, optarg);
			return 2;
		}
	}
	if (!strcmp(workload->name, "matmul")) {
		if (optind != argc - 1 || !number(argv[optind], DIM_MAX, &dim))
			return wrong_usage("matmul: one N from 1 to 8192, not", optind < argc ? argv[optind] : "none");
		options.count = dim;
	} else if (optind != argc) {
		return wrong_usage("unexpected argument", argv[optind]);
	}
	unsigned long pages = options.bytes / PAGE;
	if (options.bytes % PAGE || (workload->bytes && pages < GROUP)) {
		fprintf(stderr, "faultwork: -b %lu: not a multiple of %lu, or below %d pages\n", options.bytes, PAGE, GROUP);
		return 2;
	}
	/* The default is all pages. `semi` leaves out the last pages if they do not make a whole group. */
	unsigned long most = workload->work == touch_semi ? pages / GROUP * GROUP : pages;
	if (!workload->count && workload->bytes) {
		options.count = options.count ? options.count : most;
		if (options.count > most) {
			fprintf(stderr, "faultwork: -n %lu: the region has %lu pages\n", options.count, most);
			return 2;
		}
	}
	pthread_barrier_init(&barrier, NULL, options.threads);
	for (unsigned long n = 0; n < options.threads; n++)
		workers[n] = (struct worker){ .number = n, .workload = workload, .bytes = options.bytes, .pages = pages,
					      .count = options.count, .fd = -1 };
	/* The main thread is the first worker: with one thread, the process is like any other. */
	for (unsigned long n = 1; n < options.threads; n++)
		if (pthread_create(&workers[n].thread, NULL, worker, &workers[n]))
			die("cannot start a thread");
	worker(&workers[0]);
	for (unsigned long n = 0; n < options.threads; n++) {
		if (n)
			pthread_join(workers[n].thread, NULL);
		done += workers[n].done;
		faults += workers[n].faults;
		wrong += workers[n].wrong;
	}
	printf("%s threads=%lu %s=%lu faults=%lu wrong=%lu\n", workload->name, options.threads, workload->counted, done, faults,
	       wrong);
	return wrong != 0;
}
