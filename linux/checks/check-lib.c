// SPDX-License-Identifier: GPL-2.0
/* The parts of the tests: files with known content, mappings, readers. */
#include "check.h"
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <sys/ioctl.h>

/* Every word of a page depends on file, version and page. */

uint64_t word(uint64_t seed, uint64_t page, unsigned i)
{
	uint64_t x = (seed << 48) ^ (page << 12) ^ i;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

void fill(void *p, uint64_t seed, uint64_t page)
{
	uint64_t *w = p;

	for (unsigned i = 0; i < PAGE / 8; i++)
		w[i] = word(seed, page, i);
}

bool same(const void *p, uint64_t seed, uint64_t page)
{
	const volatile uint64_t *w = p;

	/* Compare a sample of the words: some of every 512-byte block, and the first and the last one. */
	for (unsigned i = 0; i < PAGE / 8; i += 21)
		if (w[i] != word(seed, page, i))
			return false;
	return w[PAGE / 8 - 1] == word(seed, page, PAGE / 8 - 1);
}

const char *path(const char *name)
{
	static char buf[2][512];
	static int n;

	n ^= 1;
	snprintf(buf[n], sizeof(buf[n]), "%s/%s", dir, name);
	return buf[n];
}

void drop_caches(void)
{
	int fd;

	sync();
	fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
	if (fd >= 0) {
		if (write(fd, "3\n", 2) != 2)
			perror("drop_caches");
		close(fd);
	}
}

bool make_file(const char *name, uint64_t seed, size_t pages)
{
	static char buf[64 * PAGE];
	int fd = open(path(name), O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0, "create %s: %s", name, strerror(errno));
	for (size_t p = 0; p < pages; ) {
		size_t n = pages - p < 64 ? pages - p : 64;

		for (size_t i = 0; i < n; i++)
			fill(buf + i * PAGE, seed, p + i);
		CHECK(write(fd, buf, n * PAGE) == (ssize_t)(n * PAGE),
		      "write %s: %s", name, strerror(errno));
		p += n;
	}
	fsync(fd);
	close(fd);
	return true;
}

void *map_file(const char *name, size_t pages, int prot, int flags,
		      int *fdp)
{
	int fd = open(path(name), prot & PROT_WRITE && flags & MAP_SHARED ?
		      O_RDWR : fdp ? O_RDWR : O_RDONLY);
	void *p;

	if (fd < 0)
		return MAP_FAILED;
	p = mmap(NULL, pages * PAGE, prot, flags | MAP_HWDP, fd, 0);
	if (fdp)
		*fdp = fd;
	else
		close(fd);
	return p;
}

long stat_of(const char *name)
{
	FILE *f = fopen("/sys/kernel/mm/hwdp/stats", "r");
	char key[80];
	long value, found = -1;

	if (!f)
		return -1;
	while (fscanf(f, "%79s %ld", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	fclose(f);
	return found;
}

long all_withdrawn(void)
{
	FILE *f = fopen("/sys/kernel/mm/hwdp/stats", "r");
	char key[80];
	long value, sum = 0;

	if (!f)
		return -1;
	while (fscanf(f, "%79s %ld", key, &value) == 2)
		if (!strncmp(key, "areas_withdrawn_", 16))
			sum += value;
	fclose(f);
	return sum;
}

/*
 * Pages that hardware has installed, and that Linux has neither adopted nor discarded
 * although all areas are gone.
 */
long unsettled(void)
{
	long left = 0;

	/* a worker or a dying process may still be at work, for up to two seconds */
	for (int tries = 0; tries < 200; tries++) {
		left = not_adopted();
		if (!have_smu() || !left)
			return 0;
		usleep(10000);
	}
	return left;
}

/*
 * True if a unit serves the system's kind of paging. Without an SMU the kind is osdp,
 * unless another one is chosen.
 */
bool have_smu(void)
{
	FILE *f = fopen("/sys/kernel/mm/hwdp/kind", "r");
	char kinds[80] = "[osdp]";

	if (f) {
		if (!fgets(kinds, sizeof(kinds), f))
			kinds[0] = '\0';
		fclose(f);
	}
	return !strstr(kinds, "[osdp]");
}

/* Make a new file, drop the page cache, and map the file. */
bool setup(const char *name, uint64_t seed, size_t pages, int prot,
		  int flags, int *fd, char **map)
{
	if (!make_file(name, seed, pages))
		return false;
	drop_caches();
	*map = map_file(name, pages, prot, flags, fd);
	CHECK(*map != MAP_FAILED, "mmap: %s", strerror(errno));
	return true;
}

bool read_all(const char *map, uint64_t seed, size_t first, size_t pages)
{
	for (size_t p = 0; p < pages; p++)
		CHECK(same(map + p * PAGE, seed, first + p),
		      "wrong content of page %zu", first + p);
	return true;
}

void *reader(void *arg)
{
	struct reader *r = arg;

	r->ok = true;
	for (size_t i = 0; i < r->pages; i++) {
		size_t p = (i * r->mul + r->mul) % r->pages;

		if (!same(r->map + p * PAGE, r->seed, p))
			r->ok = false;
	}
	return NULL;
}

long number_in(const char *file)
{
	FILE *f = fopen(file, "r");
	long value = -1;

	if (f) {
		if (fscanf(f, "%ld", &value) != 1)
			value = -1;
		fclose(f);
	}
	return value;
}

static __thread sigjmp_buf fault_return;

static void on_fault(int sig)
{
	siglongjmp(fault_return, sig);
}

/* Read a byte. Return 0, or the signal that the access caused. */
int touch(const volatile char *p)
{
	struct sigaction action = { .sa_handler = on_fault }, bus, segv;
	int sig;

	sigaction(SIGBUS, &action, &bus);
	sigaction(SIGSEGV, &action, &segv);
	sig = sigsetjmp(fault_return, 1);
	if (!sig)
		(void)*p;
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return sig;
}

bool is_zero(const void *p)
{
	const volatile uint64_t *w = p;

	for (unsigned i = 0; i < PAGE / 8; i++)
		if (w[i])
			return false;
	return true;
}

/* Where byte @offset of the file is on its disk, in bytes; 0 if it has no place there. */
uint64_t physical(int fd, uint64_t offset)
{
	struct {
		struct fiemap map;
		struct fiemap_extent extent;
	} f = { .map = { .fm_start = offset, .fm_length = 1, .fm_extent_count = 1,
			 .fm_flags = FIEMAP_FLAG_SYNC } };

	if (ioctl(fd, FS_IOC_FIEMAP, &f) || !f.map.fm_mapped_extents ||
	    f.extent.fe_flags & (FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_DATA_INLINE))
		return 0;
	return f.extent.fe_physical + offset - f.extent.fe_logical;
}

/* Pages that the units in hardware and in software have read so far. */
long fast_pages(void)
{
	long hard = stat_of("smu_installed"), soft = stat_of("soft_installed");

	return (hard > 0 ? hard : 0) + (soft > 0 ? soft : 0);
}

/* Pages that the units have read, and that Linux has neither adopted nor discarded. */
long not_adopted(void)
{
	return fast_pages() - stat_of("pages_adopted") - stat_of("pages_discarded");
}

/* Make Linux adopt all pages that hardware has read for this process. */
bool adopt_all(void)
{
	char text[4096];
	int fd = open("/proc/self/smaps_rollup", O_RDONLY);
	bool done = fd >= 0 && read(fd, text, sizeof(text)) > 0;

	close(fd);
	return done;
}

/* Run @body in a separate process. Return its exit status, or minus the signal that ended it. */
int in_child(int (*body)(void *arg), void *arg)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(body(arg));
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* Read pages at random until @stop. Count the pages that were read, and the wrong ones. */
static void *endless_reader(void *arg)
{
	struct endless *e = arg;
	uint64_t x = e->seed * 2654435761u + 1;

	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED)) {
		size_t p;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p = x % e->pages;
		if (!same(e->map + p * PAGE, e->seed, p))
			e->wrong++;
		e->seen++;
	}
	return NULL;
}

void start_readers(struct endless *e, const char *map, uint64_t seed, size_t pages)
{
	for (int i = 0; i < READERS; i++) {
		e[i] = (struct endless){ .map = map, .seed = seed, .pages = pages };
		pthread_create(&e[i].thread, NULL, endless_reader, &e[i]);
	}
}

/* Stop the readers. True if none of them saw a wrong page. */
bool stop_readers(struct endless *e)
{
	bool ok = true;

	for (int i = 0; i < READERS; i++)
		__atomic_store_n(&e[i].stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < READERS; i++) {
		pthread_join(e[i].thread, NULL);
		ok &= !e[i].wrong;
	}
	return ok;
}

/* Write the header of a swap area to the first page of the open file. */
bool make_swap(int fd, size_t pages)
{
	struct {
		char boot[1024];
		uint32_t version, last_page, bad_pages;
		char rest[PAGE - 1024 - 12 - 10];
		char magic[10];
	} __attribute__((packed)) head = { .version = 1, .last_page = pages - 1 };

	memcpy(head.magic, "SWAPSPACE2", 10);
	CHECK(pwrite(fd, &head, PAGE, 0) == PAGE && !fsync(fd), "swap head");
	return true;
}
