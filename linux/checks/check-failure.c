// SPDX-License-Identifier: GPL-2.0
/*
 * failure-check: which pages of a mapped file can be read, and what is in them.
 *
 *   failure-check [-k KIND] [-t THREADS] [-n PAGES] [-x COMMAND] FILE
 *
 * One of the threads reads each page once. If a page cannot be read, the thread catches the
 * SIGBUS. With -x, COMMAND runs between the first and the second half of the pages. At the end,
 * all pages that could be read are read again: they must stay readable, with the same bytes.
 * Prints
 *   failed: PAGES     that could not be read (ranges, or none)
 *   lost: PAGES       that could be read at first, but at the end not or with other bytes
 *   sum: HEX          over the content of the pages that could be read
 * The exit status is 0 if no page is lost, even if pages failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tools/kinds.h"

#define PAGE 4096ul
#define THREADS_MAX 16

enum state { UNREAD, GOOD, FAILED, LOST };

static struct {
	const volatile unsigned char *map;
	size_t pages;
	unsigned int threads;
	enum state *state;
	uint32_t *crc;
} f = { .threads = 1 };

struct part {
	pthread_t thread;
	size_t first, last;	/* the thread reads its share of these pages */
	unsigned int number;
};

static uint32_t crc_table[256];
static __thread sigjmp_buf bus_error;

static void on_bus_error(int sig)
{
	siglongjmp(bus_error, sig);
}

/* CRC-32 of IEEE 802.3, as in zlib. */
static void make_crc_table(void)
{
	for (uint32_t n = 0; n < 256; n++) {
		uint32_t c = n;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
		crc_table[n] = c;
	}
}

static uint32_t crc_of(const volatile unsigned char *p)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < PAGE; i++)
		crc = crc_table[(crc ^ p[i]) & 0xff] ^ crc >> 8;
	return ~crc;
}

static void read_page(size_t page)
{
	uint32_t crc;

	if (f.state[page] == FAILED)
		return;
	if (sigsetjmp(bus_error, 1)) {
		f.state[page] = f.state[page] == UNREAD ? FAILED : LOST;
		return;
	}
	crc = crc_of(f.map + page * PAGE);
	if (f.state[page] == UNREAD) {
		f.crc[page] = crc;
		f.state[page] = GOOD;
	} else if (f.crc[page] != crc) {
		f.state[page] = LOST;
	}
}

static void *read_part(void *arg)
{
	struct part *part = arg;

	for (size_t page = part->first + part->number; page < part->last; page += f.threads)
		read_page(page);
	return NULL;
}

static void read_range(size_t first, size_t last)
{
	struct part part[THREADS_MAX];

	for (unsigned int n = 0; n < f.threads; n++) {
		part[n] = (struct part){ .first = first, .last = last, .number = n };
		if (pthread_create(&part[n].thread, NULL, read_part, &part[n])) {
			fprintf(stderr, "failure-check: cannot start a thread\n");
			exit(2);
		}
	}
	for (unsigned int n = 0; n < f.threads; n++)
		pthread_join(part[n].thread, NULL);
}

/* Print the pages in this state as ranges. Return their number. */
static size_t print_pages(const char *title, enum state state)
{
	size_t count = 0;

	printf("%s:", title);
	for (size_t page = 0; page < f.pages; page++) {
		size_t first = page;

		if (f.state[page] != state)
			continue;
		while (page + 1 < f.pages && f.state[page + 1] == state)
			page++;
		count += page - first + 1;
		printf(first == page ? " %zu" : " %zu-%zu", first, page);
	}
	puts(count ? "" : " none");
	return count;
}

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "failure-check: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void map_file(const char *file, const struct kind *kind)
{
	int fd = open(file, O_RDONLY);
	struct stat st;
	void *map;

	if (fd < 0 || fstat(fd, &st))
		fail(file);
	if (!f.pages || f.pages > (size_t)st.st_size / PAGE)
		f.pages = st.st_size / PAGE;
	map = mmap(NULL, f.pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	/* A kernel with only one kind knows the flag, but not the advice. */
	if (map != MAP_FAILED && kind->advice && madvise(map, f.pages * PAGE, kind->advice)) {
		if (errno != EINVAL || strcmp(kind->name, "hwdp"))
			fail(kind->name);
		munmap(map, f.pages * PAGE);
		map = mmap(NULL, f.pages * PAGE, PROT_READ, MAP_SHARED | MAP_HWDP, fd, 0);
	}
	if (map == MAP_FAILED)
		fail("mmap");
	close(fd);
	f.map = map;
	f.state = calloc(f.pages, sizeof(*f.state));
	f.crc = calloc(f.pages, sizeof(*f.crc));
	if (!f.state || !f.crc)
		fail("memory");
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_bus_error };
	const struct kind *kind = find_kind("osdp");
	const char *command = NULL;
	uint64_t sum = 0;
	int option;

	while ((option = getopt(argc, argv, "k:t:n:x:")) != -1) {
		if (option == 'k')
			kind = find_kind(optarg);
		else if (option == 't')
			f.threads = atoi(optarg);
		else if (option == 'n')
			f.pages = strtoul(optarg, NULL, 10);
		else if (option == 'x')
			command = optarg;
		else
			kind = NULL;
	}
	if (optind != argc - 1 || !kind || kind->number < 0 || f.threads < 1 || f.threads > THREADS_MAX) {
		fprintf(stderr, "usage: failure-check [-k KIND] [-t THREADS] [-n PAGES] [-x COMMAND] FILE\n");
		return 2;
	}
	make_crc_table();
	map_file(argv[optind], kind);
	sigaction(SIGBUS, &action, NULL);

	read_range(0, f.pages / 2);
	if (command && system(command))
		fprintf(stderr, "failure-check: the command failed: %s\n", command);
	read_range(f.pages / 2, f.pages);
	read_range(0, f.pages);

	for (size_t page = 0; page < f.pages; page++)
		if (f.state[page] == GOOD)
			sum += (uint64_t)f.crc[page] * (2 * page + 1);
	print_pages("failed", FAILED);
	option = print_pages("lost", LOST) ? 1 : 0;
	printf("sum: %016llx\n", (unsigned long long)sum);
	return option;
}
