// SPDX-License-Identifier: GPL-2.0
/* Tests of the kernel's counts: pages of memory, pages of tables, hits. */
#include "stc.h"
#include <fcntl.h>

/* A value of /proc/self/status, in pages. Read without stdio, which would touch pages itself. */
static long status_pages(const char *name)
{
	static char text[8192];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t size = read(fd, text, sizeof(text) - 1);
	char *line;

	close(fd);
	text[size < 0 ? 0 : size] = 0;
	line = strstr(text, name);
	NEED(line, "no %s in /proc/self/status", name);
	return strtol(line + strlen(name), NULL, 10) * 1024 / (long)PAGE;
}

static pthread_barrier_t barrier;

#define RSS_THREADS 8
#define RSS_TABLES 32ul		/* PTE tables of a thread's pages */
#define RSS_PAGES 256ul		/* a thread's pages of each kind */

/* Two threads share a region: each has one half of each PTE table. */
static uint64_t rss_page(unsigned thread, unsigned i)
{
	return i % RSS_TABLES * TABLE + thread % 2 * (TABLE / 2) + i / RSS_TABLES;
}

static char *rss_regions[3];	/* anonymous, memory file, file */
static const char * const rss_names[] = { "RssAnon:", "RssShmem:", "RssFile:" };
static const unsigned long rss_size[] = { 4 * GB, GB, GB };

static void rss_round(struct worker *worker, uint64_t gen, bool last)
{
	for (unsigned kind = 0; kind < 3; kind++) {
		char *region = rss_regions[kind];
		unsigned pages = kind == 0 ? RSS_PAGES : RSS_PAGES / 8, thread = worker->number;

		/* all threads share the files' regions, and each has one page of a table */
		if (kind == 0)
			region += thread / 2 * GB;
		for (unsigned i = 0; i < pages; i++) {
			uint64_t page = kind == 0 ? rss_page(thread, i) : i * TABLE + thread;

			put(region, page, gen);
			EXPECT(region, page, gen, "rss");
			if (kind && !last)
				madvise(region + page * PAGE, PAGE, MADV_DONTNEED);
		}
		for (unsigned i = 0; !kind && !last && i < RSS_TABLES; i++)
			madvise(region + rss_page(thread, i) * PAGE, TABLE / 2 * PAGE, MADV_DONTNEED);
	}
}

static void rss_work(struct worker *worker)
{
	unsigned rounds = 4 * factor;

	rss_round(worker, fresh(), false);
	pthread_barrier_wait(&barrier);		/* the stack and all else is in memory now */
	pthread_barrier_wait(&barrier);
	for (unsigned round = 0; round < rounds; round++)
		rss_round(worker, fresh(), round == rounds - 1);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
}

/* The kernel's counts are exact, also when the process ends: then the kernel checks them itself. */
bool t_rss(void)
{
	const long touched[] = { RSS_THREADS * RSS_PAGES, RSS_THREADS * RSS_PAGES / 8, RSS_THREADS * RSS_PAGES / 8 };
	/* PTE tables, and a PMD table for each GB */
	const long tables = 4 * RSS_TABLES + 4 + 2 * (RSS_PAGES / 8 + 1);
	struct worker workers[RSS_THREADS];
	long before[3], found, table_pages;
	char *name;
	int fds[3] = { -1, memfd_create("rss", MFD_CLOEXEC) };

	NEED(asprintf(&name, "%s/stc-check", dir) > 0, "no memory");
	fds[2] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	unlink(name);
	NEED(fds[1] >= 0 && fds[2] >= 0 && !ftruncate(fds[1], GB) && !ftruncate(fds[2], GB), "%s: %s", name, strerror(errno));
	pthread_barrier_init(&barrier, NULL, RSS_THREADS + 1);
	for (unsigned kind = 0; kind < 3; kind++)
		rss_regions[kind] = map(at(30, 8 * kind), rss_size[kind], kind ? MAP_SHARED : MAP_PRIVATE, fds[kind]);
	start(workers, RSS_THREADS, rss_work, NULL, 0);
	pthread_barrier_wait(&barrier);
	status_pages("VmPTE:");
	table_pages = status_pages("VmPTE:");
	for (unsigned kind = 0; kind < 3; kind++)
		before[kind] = status_pages(rss_names[kind]);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (unsigned kind = 0; kind < 3; kind++) {
		found = status_pages(rss_names[kind]) - before[kind];
		NEED(found == touched[kind], "%s %ld pages more, %ld were touched", rss_names[kind], found, touched[kind]);
	}
	found = status_pages("VmPTE:");
	NEED(found == table_pages, "VmPTE: %ld pages of tables before and %ld after", table_pages, found);
	for (unsigned kind = 0; kind < 3; kind++)
		unmap(rss_regions[kind], rss_size[kind]);
	found = status_pages("VmPTE:");
	NEED(found + tables == table_pages, "VmPTE: %ld pages of tables went, %ld were there", table_pages - found, tables);
	pthread_barrier_wait(&barrier);
	join(workers, RSS_THREADS);
	return true;
}

/* Faults find their tables in the cache. Only for kernels that count hits. */
bool t_hits(void)
{
	long hits = vmstat("stc_hit_pmd"), misses = vmstat("stc_miss");
	char *region = map(at(30, 0), GB, MAP_PRIVATE, -1);

	if (hits < 0 || hits + misses == 0)
		SKIP("this kernel counts no hits");
	for (unsigned page = 0; page < 1000; page++)
		put(region, page, 1);
	hits = vmstat("stc_hit_pmd") - hits;
	NEED(hits > 900, "%ld hits of 1000 faults in one table", hits);
	return true;
}
