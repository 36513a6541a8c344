// SPDX-License-Identifier: Apache-2.0
/*
 * ycsb: the core workloads of YCSB (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010) on RocksDB, in one
 * process. Names, proportions and distributions are those of YCSB's files workloada to workloadf; every record is checked.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "draw.h"
#include "latency.h"
#include "marker.h"
#include "store.h"

#define MILESTONE_WARM 2
#define REGION 100	/* number of the region of interest; libhwdp.so numbers its own from 0 */
#define SCAN_LENGTH 100	/* maxscanlength; uniform */

enum operation { READ, UPDATE, INSERT, SCAN, READ_MODIFY_WRITE, OPERATIONS };
static const char *const operation_names[] = { "read", "update", "insert", "scan", "read_modify_write" };

enum distribution { ZIPFIAN, LATEST, UNIFORM };

struct workload {
	char name;
	enum distribution distribution;
	double proportion[OPERATIONS];
};

static const struct workload workloads[] = {
	{ 'A', ZIPFIAN, { [READ] = 0.5, [UPDATE] = 0.5 } },
	{ 'B', ZIPFIAN, { [READ] = 0.95, [UPDATE] = 0.05 } },
	{ 'C', ZIPFIAN, { [READ] = 1 } },
	{ 'D', LATEST, { [READ] = 0.95, [INSERT] = 0.05 } },
	{ 'E', ZIPFIAN, { [SCAN] = 0.95, [INSERT] = 0.05 } },
	{ 'F', ZIPFIAN, { [READ] = 0.5, [READ_MODIFY_WRITE] = 0.5 } },
	{ 'U', UNIFORM, { [READ] = 1 } },	/* not in YCSB: all records equally likely, as in db_bench's readrandom */
};

static struct {
	const char *folder;
	const struct workload *workload;
	uint64_t records, operations, warm, seed;
	unsigned threads;
	struct shape shape;
} asked = { .workload = &workloads[2], .threads = 1, .shape = { 10, 100 } };

static struct store store;
static pthread_barrier_t all;

struct worker {
	pthread_t thread;
	unsigned number;
	struct random random;
	struct zipfian zipfian;
	struct latency latency[OPERATIONS];
	uint64_t busy_ns;	/* time of its share of the measured operations */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Return the records with twice the expected inserts, like YCSB's CoreWorkload. */
static uint64_t expected_records(void)
{
	return asked.records + (asked.operations + asked.warm) * asked.workload->proportion[INSERT] * 2;
}

static uint64_t choose_record(struct worker *worker)
{
	uint64_t number;

	do {
		uint64_t newest = store.present - 1;

		switch (asked.workload->distribution) {
		case ZIPFIAN:
			number = scrambled_next(&worker->zipfian, expected_records(), &worker->random);
			break;
		case LATEST:
			number = latest_next(&worker->zipfian, newest, &worker->random);
			break;
		default:
			number = random_below(&worker->random, newest + 1);
		}
	} while (number >= store.present);
	return number;
}

static enum operation choose_operation(struct worker *worker)
{
	double left = random_unit(&worker->random);
	int operation = 0;

	while (operation + 1 < OPERATIONS && left >= asked.workload->proportion[operation])
		left -= asked.workload->proportion[operation++];
	return operation;
}

static void operate(struct worker *worker, enum operation operation)
{
	switch (operation) {
	case READ:
		store_read(&store, choose_record(worker));
		break;
	case UPDATE:
	case READ_MODIFY_WRITE: {
		uint64_t number = choose_record(worker);

		if (operation == READ_MODIFY_WRITE)
			store_read(&store, number);
		store_update(&store, number);
		break;
	}
	case INSERT:
		store_insert(&store);
		break;
	default: {
		uint64_t number = choose_record(worker);

		store_scan(&store, number, 1 + random_below(&worker->random, SCAN_LENGTH));
	}
	}
}

static uint64_t share(uint64_t total, unsigned number)
{
	return total / asked.threads + (number < total % asked.threads);
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	for (uint64_t n = share(asked.warm, worker->number); n; n--)
		operate(worker, choose_operation(worker));
	/* The first barrier ends the warm-up; the measurement begins after the second one. */
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	uint64_t begin = now_ns();

	for (uint64_t n = share(asked.operations, worker->number); n; n--) {
		enum operation operation = choose_operation(worker);
		uint64_t start = now_ns();

		operate(worker, operation);
		latency_add(&worker->latency[operation], now_ns() - start);
	}
	worker->busy_ns = now_ns() - begin;
	pthread_barrier_wait(&all);
	return NULL;
}

/*
 * Sum the threads' throughputs, each measured in the thread's own time. In a short run, the slowest thread runs alone at the end,
 * which must not lower the sum.
 */
static double ops_per_second(const struct worker *workers)
{
	double sum = 0;

	for (unsigned n = 0; n < asked.threads; n++)
		if (workers[n].busy_ns)
			sum += share(asked.operations, n) * 1e9 / workers[n].busy_ns;
	return sum;
}

static void report(const struct worker *workers, uint64_t ns)
{
	static struct latency whole, sums[OPERATIONS];

	for (unsigned n = 0; n < asked.threads; n++)
		for (int operation = 0; operation < OPERATIONS; operation++)
			latency_merge(&sums[operation], &workers[n].latency[operation]);
	for (int operation = 0; operation < OPERATIONS; operation++)
		latency_merge(&whole, &sums[operation]);
	printf("{\"workload\": \"%c\", \"records\": %" PRIu64 ", \"record_bytes\": %zu, \"threads\": %u, \"seed\": %" PRIu64
	       ",\n \"warm_ops\": %" PRIu64 ", \"seconds\": %.9f, \"ops_per_second\": %.3f, \"wrong\": %" PRIu64 ",\n \"all\": ",
	       asked.workload->name, asked.records, record_size(asked.shape), asked.threads, asked.seed, asked.warm, ns / 1e9,
	       ops_per_second(workers), (uint64_t)store.wrong);
	latency_print(&whole, stdout);
	for (int operation = 0; operation < OPERATIONS; operation++) {
		if (!sums[operation].count)
			continue;
		printf(",\n \"%s\": ", operation_names[operation]);
		latency_print(&sums[operation], stdout);
	}
	puts("}");
}

static int run(void)
{
	struct worker *workers = calloc(asked.threads, sizeof(*workers));
	struct zipfian zipfian = { 0 };

	if (!workers)
		return 1;
	store_open(&store, asked.folder, false, asked.shape, asked.records, expected_records());
	if (asked.workload->distribution == LATEST)
		zipfian_init(&zipfian, asked.records - 1);
	else
		scrambled_init(&zipfian);
	pthread_barrier_init(&all, NULL, asked.threads + 1);
	for (unsigned n = 0; n < asked.threads; n++) {
		workers[n].number = n;
		workers[n].zipfian = zipfian;
		random_seed(&workers[n].random, asked.seed + n);
		if (pthread_create(&workers[n].thread, NULL, work, &workers[n])) {
			fprintf(stderr, "ycsb: cannot start thread %u\n", n);
			return 1;
		}
	}
	pthread_barrier_wait(&all);
	marker(MARKER_MILESTONE, MILESTONE_WARM, 0, 0);
	marker(MARKER_ROI_BEGIN, REGION, 0, 0);
	uint64_t start = now_ns();

	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	uint64_t end = now_ns();

	marker(MARKER_ROI_END, REGION, 0, 0);
	for (unsigned n = 0; n < asked.threads; n++)
		pthread_join(workers[n].thread, NULL);
	report(workers, end - start);
	store_close(&store);
	return store.wrong ? 3 : 0;
}

static void *load_share(void *argument)
{
	struct worker *worker = argument;
	uint64_t from = 0;

	for (unsigned n = 0; n < worker->number; n++)
		from += share(asked.records, n);
	store_load(&store, from, from + share(asked.records, worker->number));
	return NULL;
}

static int load(void)
{
	struct worker *workers = calloc(asked.threads, sizeof(*workers));

	if (!workers)
		return 1;
	store_open(&store, asked.folder, true, asked.shape, 0, asked.records);
	for (unsigned n = 0; n < asked.threads; n++) {
		workers[n].number = n;
		if (pthread_create(&workers[n].thread, NULL, load_share, &workers[n]))
			return 1;
	}
	for (unsigned n = 0; n < asked.threads; n++)
		pthread_join(workers[n].thread, NULL);
	store_settle(&store);
	store_close(&store);
	return 0;
}

static int usage(void)
{
	fputs("usage: ycsb load|run -d FOLDER -n RECORDS [-f FIELDS] [-b BYTES] [-t THREADS]\n"
	      "                [-w A|B|C|D|E|F|U] [-o OPERATIONS] [-W WARM-UP OPERATIONS] [-s SEED]\n"
	      "  records have FIELDS fields of BYTES bytes (10, 100) and a header of 16; run prints JSON\n"
	      "  exit status 3: a record was wrong, old or missing\n", stderr);
	return 2;
}

static bool number_of(const char *text, uint64_t *number)
{
	char *end;

	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end;
}

static bool parse(int argc, char **argv)
{
	uint64_t number = 0;
	int option;

	while ((option = getopt(argc, argv, "d:n:f:b:t:w:o:W:s:")) != -1) {
		if (option != 'd' && option != 'w' && (option == '?' || !number_of(optarg, &number)))
			return false;
		switch (option) {
		case 'd':
			asked.folder = optarg;
			break;
		case 'w':
			asked.workload = NULL;
			for (size_t n = 0; n < sizeof(workloads) / sizeof(workloads[0]); n++)
				if (!optarg[1] && optarg[0] == workloads[n].name)
					asked.workload = &workloads[n];
			break;
		case 'n':
			asked.records = number;
			break;
		case 'f':
			asked.shape.fields = number;
			break;
		case 'b':
			asked.shape.field_bytes = number;
			break;
		case 't':
			asked.threads = number;
			break;
		case 'o':
			asked.operations = number;
			break;
		case 'W':
			asked.warm = number;
			break;
		default:
			asked.seed = number;
		}
	}
	return optind == argc && asked.folder && asked.workload && asked.records > 1 && asked.threads &&
	       asked.threads <= 1024 && asked.shape.fields && asked.shape.field_bytes;
}

int main(int argc, char **argv)
{
	if (argc < 2 || !parse(argc - 1, argv + 1))
		return usage();
	if (!strcmp(argv[1], "load"))
		return load();
	return strcmp(argv[1], "run") ? usage() : run();
}
