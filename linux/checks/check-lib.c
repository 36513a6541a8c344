// SPDX-License-Identifier: GPL-2.0
/* What the tests are made of: files with known content, mappings, readers. */
#include "check.h"

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

	/* A sample that touches every 512-byte block, and both ends. */
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

bool have_smu(void)
{
	return access("/sys/kernel/mm/hwdp/stats", R_OK) == 0;
}

/* A fresh file, cache dropped, mapped. */
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
		      "page %zu differs", first + p);
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
