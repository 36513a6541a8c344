// SPDX-License-Identifier: GPL-2.0
/*
 * Each page that a unit reads is counted once in every counter of reads and faults
 * that users look at: those of the disk and the partition, /proc/PID/stat and io,
 * getrusage(), vmstat. Page faults that remain are counted as usual, so the sums do
 * not depend on who has served a page.
 */
#include "check.h"
#include <glob.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define PAGES 1024ul

struct sums {
	long reads, sectors;		/* of the partition, or of the whole disk */
	long disk_reads, disk_sectors;	/* of the whole disk minus its other partitions */
	long majflt, stat_majflt;	/* getrusage(), /proc/self/stat */
	long inblock, read_bytes;
	long pgfault, pgmajfault, pgpgin;	/* pgpgin in KiB */
};

static bool disk_sums(const char *file, long *reads, long *sectors)
{
	FILE *f = fopen(file, "r");
	bool ok = f && fscanf(f, "%ld %*d %ld", reads, sectors) == 2;

	if (f)
		fclose(f);
	return ok;
}

/* The field @name of /proc/self/io. */
static long io_of(const char *name)
{
	FILE *f = fopen("/proc/self/io", "r");
	char key[80];
	long value, found = -1;

	while (f && fscanf(f, "%79[^:]: %ld ", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

/* Major faults of the process in /proc/self/stat. */
static long stat_majflt(void)
{
	FILE *f = fopen("/proc/self/stat", "r");
	long value = -1;

	if (f) {
		if (fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %ld", &value) != 1)
			value = -1;
		fclose(f);
	}
	return value;
}

static bool take(struct sums *s)
{
	char part[64], disk[80], whole[96];
	struct rusage usage;
	struct stat st;
	glob_t found;

	CHECK(!stat(dir, &st), "stat: %s", strerror(errno));
	snprintf(part, sizeof(part), "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	snprintf(disk, sizeof(disk), "%s/stat", part);
	CHECK(disk_sums(disk, &s->reads, &s->sectors), "%s: %s", disk, strerror(errno));
	snprintf(whole, sizeof(whole), "%s/partition", part);
	snprintf(disk, sizeof(disk), "%s/%sstat", part, access(whole, F_OK) ? "" : "../");
	CHECK(disk_sums(disk, &s->disk_reads, &s->disk_sectors), "%s: %s", disk, strerror(errno));
	if (!access(whole, F_OK)) {
		/* leave out the other partitions: their file systems may read at any time */
		s->disk_reads += s->reads;
		s->disk_sectors += s->sectors;
		snprintf(disk, sizeof(disk), "%s/../*/partition", part);
		if (!glob(disk, 0, NULL, &found)) {
			for (size_t i = 0; i < found.gl_pathc; i++) {
				long reads = 0, sectors = 0;

				strcpy(strrchr(found.gl_pathv[i], '/'), "/stat");
				disk_sums(found.gl_pathv[i], &reads, &sectors);
				s->disk_reads -= reads;
				s->disk_sectors -= sectors;
			}
			globfree(&found);
		}
	}
	s->stat_majflt = stat_majflt();
	s->read_bytes = io_of("read_bytes");
	CHECK(s->read_bytes >= 0, "no /proc/self/io");
	s->pgfault = vmstat("pgfault");
	s->pgmajfault = vmstat("pgmajfault");
	s->pgpgin = vmstat("pgpgin");
	getrusage(RUSAGE_SELF, &usage);
	s->majflt = usage.ru_majflt;
	s->inblock = usage.ru_inblock;
	return true;
}

static bool grew(const struct sums *a, const struct sums *b, long pages)
{
	CHECK(b->reads - a->reads == pages, "the partition's reads: %ld for %ld pages", b->reads - a->reads, pages);
	CHECK(b->sectors - a->sectors == 8 * pages, "the partition's sectors: %ld for %ld pages",
	      b->sectors - a->sectors, pages);
	CHECK(b->disk_reads - a->disk_reads == pages, "the disk's reads: %ld for %ld pages",
	      b->disk_reads - a->disk_reads, pages);
	CHECK(b->disk_sectors - a->disk_sectors == 8 * pages, "the disk's sectors: %ld for %ld pages",
	      b->disk_sectors - a->disk_sectors, pages);
	CHECK(b->read_bytes - a->read_bytes == pages * (long)PAGE, "read_bytes: %ld for %ld pages",
	      b->read_bytes - a->read_bytes, pages);
	CHECK(b->pgpgin - a->pgpgin >= 4 * pages, "pgpgin: %ld for %ld pages", b->pgpgin - a->pgpgin, pages);
	CHECK(b->inblock - a->inblock == 8 * pages, "ru_inblock: %ld for %ld pages", b->inblock - a->inblock, pages);
	return true;
}

static bool faults_grew(const struct sums *a, const struct sums *b, long pages)
{
	CHECK(b->majflt - a->majflt == pages, "ru_majflt: %ld for %ld pages", b->majflt - a->majflt, pages);
	CHECK(b->stat_majflt - a->stat_majflt == pages, "majflt of /proc/self/stat: %ld for %ld pages",
	      b->stat_majflt - a->stat_majflt, pages);
	CHECK(b->pgmajfault - a->pgmajfault >= pages, "pgmajfault: %ld for %ld pages",
	      b->pgmajfault - a->pgmajfault, pages);
	CHECK(b->pgfault - a->pgfault >= b->pgmajfault - a->pgmajfault, "pgfault %ld is less than pgmajfault %ld",
	      b->pgfault - a->pgfault, b->pgmajfault - a->pgmajfault);
	return true;
}

/*
 * Drop the page cache and map the file. The process may still have to read code from the disk:
 * so take() runs once before, and callers ignore the counts of their first round.
 */
static bool map_cold(const char *name, char **map)
{
	struct sums unused;

	drop_caches();
	if (!take(&unused))
		return false;
	*map = map_file(name, PAGES, PROT_READ, MAP_SHARED, NULL);
	CHECK(*map != MAP_FAILED, "mmap: %s", strerror(errno));
	return true;
}

bool t_account(void)
{
	struct sums before, after;
	char *map;

	if (!have_smu())
		SKIP("ordinary paging reads ahead");
	if (!make_file("account", 200, PAGES))
		return false;
	for (int round = 0; round < 2; round++) {
		long fast = fast_pages();

		if (!map_cold("account", &map) || !take(&before) || !read_all(map, 200, 0, PAGES))
			return false;
		munmap(map, PAGES * PAGE);
		if (!take(&after))
			return false;
		fast = fast_pages() - fast;
		CHECK(fast > (long)PAGES / 2, "the unit served only %ld pages", fast);
		if (round && (!grew(&before, &after, PAGES) || !faults_grew(&before, &after, PAGES)))
			return false;
	}
	return true;
}

/* Threads miss on the same page at the same time: it is read once. */
bool t_account_threads(void)
{
	struct reader r[READERS];
	pthread_t thread[READERS];
	struct sums before, after;
	char *map;

	if (!have_smu())
		SKIP("ordinary paging reads ahead");
	if (!make_file("accthr", 201, PAGES))
		return false;
	for (int round = 0; round < 2; round++) {
		if (!map_cold("accthr", &map) || !take(&before))
			return false;
		for (int i = 0; i < READERS; i++) {
			r[i] = (struct reader){ .map = map, .seed = 201, .pages = PAGES, .mul = 1 };
			pthread_create(&thread[i], NULL, reader, &r[i]);
		}
		for (int i = 0; i < READERS; i++)
			pthread_join(thread[i], NULL);
		munmap(map, PAGES * PAGE);
		if (!take(&after))
			return false;
		CHECK(r[0].ok && r[1].ok && r[2].ok, "wrong content of a page");
		if (round && !grew(&before, &after, PAGES))
			return false;
	}
	/* each thread that has waited in a page fault counts one */
	CHECK(after.majflt - before.majflt >= (long)PAGES, "ru_majflt: %ld", after.majflt - before.majflt);
	return true;
}

static int read_and_end(void *arg)
{
	char *map = map_file(arg, PAGES, PROT_READ, MAP_SHARED, NULL);

	if (map == MAP_FAILED || !read_all(map, 202, 0, PAGES))
		return 1;
	return 0;	/* at exit the pages are adopted */
}

/* The counts of a process that has ended go to the process that waits for it. */
bool t_account_exit(void)
{
	struct rusage before, after;
	long bytes = 0;

	if (!have_smu())
		SKIP("ordinary paging reads ahead");
	if (!make_file("accexit", 202, PAGES))
		return false;
	for (int round = 0; round < 2; round++) {
		drop_caches();
		getrusage(RUSAGE_CHILDREN, &before);
		bytes = io_of("read_bytes");
		CHECK(!in_child(read_and_end, "accexit"), "wrong content of a page");
		bytes = io_of("read_bytes") - bytes;
		getrusage(RUSAGE_CHILDREN, &after);
	}
	CHECK(after.ru_majflt - before.ru_majflt == (long)PAGES, "ru_majflt of children: %ld for %ld pages",
	      after.ru_majflt - before.ru_majflt, PAGES);
	/* looking up the file's blocks may read some pages, too */
	CHECK(bytes >= (long)(PAGES * PAGE) && bytes <= (long)(PAGES * PAGE) + 64 * (long)PAGE,
	      "read_bytes of children: %ld for %ld pages", bytes, PAGES);
	return true;
}

/* perf stat -e page-faults,major-faults counts faults that trap. */
bool t_account_perf(void)
{
	static const uint64_t configs[2] = { PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MAJ };
	uint64_t count[2];
	char *map;
	int fd[2];

	for (int i = 0; i < 2; i++) {
		struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = configs[i] };

		fd[i] = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
		CHECK(fd[i] >= 0, "perf_event_open: %s", strerror(errno));
	}
	map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED, "mmap: %s", strerror(errno));
	for (size_t p = 0; p < PAGES; p++)
		map[p * PAGE] = 1;
	for (int i = 0; i < 2; i++)
		CHECK(read(fd[i], &count[i], 8) == 8, "read: %s", strerror(errno));
	CHECK(count[0] >= PAGES && count[0] < PAGES + 64, "%lu page faults for %lu pages", (unsigned long)count[0], PAGES);
	CHECK(count[1] < 64, "%lu major faults", (unsigned long)count[1]);
	return true;
}

#define FULL	"/sys/fs/cgroup/hwdp-full"

/* Miss in a group that has reached its limit. When *step becomes 1, the last pages are not adopted. */
static int miss_beyond_limit(void *arg)
{
	volatile int *step = arg;
	char *map;

	if (!put_text(FULL "/cgroup.procs", "0"))
		return 1;
	map = map_file("full", 8000, PROT_READ, MAP_SHARED, NULL);
	if (map == MAP_FAILED)
		return 2;
	if (!read_all(map, 203, 0, 4000) || !adopt_all() || !read_all(map + 4000 * PAGE, 203, 4000, 1000))
		return 3;
	*step = 1;
	while (*step == 1)
		usleep(1000);
	return 0;
}

/* Pages of the group that reclaim has scanned. */
static long scanned(void)
{
	char text[8192] = "", *at;
	int fd = open(FULL "/memory.stat", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return -1;
	close(fd);
	at = strstr(text, "\npgscan ");
	return at ? atol(at + 8) : -1;
}

/* Read the process's smaps. For this, Linux adopts or discards the process's unsynced pages. */
static bool ask(pid_t pid)
{
	char name[64], text[4096];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/smaps", pid);
	fd = open(name, O_RDONLY);
	if (fd < 0)
		return false;
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
	return true;
}

/*
 * A process reads the smaps of a process of another group. Linux then discards the pages
 * that exceed the limit of that other group, and reclaims nothing for them. REQ: OS-9
 */
bool t_cgroup_stranger(void)
{
	volatile int *step = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long before, after, left;
	bool asked;
	int status;
	pid_t pid;

	if (!have_smu())
		SKIP("all pages are adopted");
	if (!put_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory"))
		SKIP("no memory cgroups");
	mkdir(FULL, 0755);
	CHECK(put_text(FULL "/memory.max", "8388608"), "memory.max");
	if (!make_file("full", 203, 8000))
		return false;
	drop_caches();
	put_text("/sys/kernel/mm/hwdp/kpted_period_ms", "60000");
	pid = fork();
	if (!pid)
		_exit(miss_beyond_limit((void *)step));
	while (!*step && !waitpid(pid, &status, WNOHANG))
		usleep(1000);
	left = not_adopted();
	before = scanned();
	asked = ask(pid);
	after = scanned();
	*step = 2;
	waitpid(pid, &status, 0);
	put_text("/sys/kernel/mm/hwdp/kpted_period_ms", "1000");
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "child ended with wait status %x", status);
	CHECK(asked && before >= 0, "cannot read smaps or memory.stat");
	CHECK(left > 500, "only %ld pages are not adopted", left);
	CHECK(after == before, "%ld pages of the group were scanned by reclaim", after - before);
	rmdir(FULL);
	return true;
}
