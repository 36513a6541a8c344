// SPDX-License-Identifier: GPL-2.0
/* The model: what each page must hold, and how an access to it must end. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "torture.h"

/* Bytes of each file. FIXED and SHORT end within a page. */
static const size_t sizes[FILES] = { [FIXED] = 256 * PAGE + 1232, [SCRATCH] = 16 * PAGE, [SHORT] = 104, [OUTSIDE] = 20 * PAGE };

uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint64_t next(uint64_t *state)
{
	return mix(*state += 0x9e3779b97f4a7c15ull);
}

unsigned below(unsigned n)
{
	return next(&world.random) % n;
}

bool chance(unsigned percent)
{
	return below(100) < percent;
}

/* Record a result. It must not depend on addresses or times. */
void note(const char *what, long a, long b)
{
	uint64_t *hash = &world.report->hash[world.level];

	for (const char *c = what; *c; c++)
		*hash = mix(*hash + *c);
	*hash = mix(mix(*hash + a) + b);
	__atomic_fetch_add(&world.report->steps, 1, __ATOMIC_RELAXED);
	if (world.verbose)
		dprintf(2, "%*s%s %ld %ld\n", 2 * world.level, "", what, a, b);
}

/* Record that a result is not as the model says. */
void note_bad(const char *what, unsigned long a, unsigned long b)
{
	if (!__atomic_fetch_add(&world.report->bad, 1, __ATOMIC_RELAXED))
		snprintf(world.report->first_bad, sizeof(world.report->first_bad), "%s: is %lx, must be %lx", what, a, b);
	if (world.verbose)
		dprintf(2, "%*swrong: %s: is %lx, must be %lx\n", 2 * world.level, "", what, a, b);
}

size_t file_pages(int file)
{
	return (sizes[file] + PAGE - 1) / PAGE;
}

static uint64_t original_word(int file, uint64_t offset)
{
	return offset < sizes[file] ? mix(offset + ((uint64_t)(file + 1) << 40)) : 0;
}

uint64_t file_word(int file, uint64_t offset)
{
	if (file == SCRATCH && offset % PAGE == 8 * WORD && offset / PAGE < file_pages(SCRATCH) && world.scratch[offset / PAGE])
		return world.scratch[offset / PAGE];
	return original_word(file, offset);
}

/* Write the file's first @pages pages as they are at the beginning. */
void fill_file(int fd, int file, unsigned pages)
{
	for (unsigned page = 0; page < pages; page++) {
		uint64_t words[WORDS];
		size_t at = page * PAGE, size = sizes[file] - at < PAGE ? sizes[file] - at : PAGE;

		for (unsigned n = 0; n < WORDS; n++)
			words[n] = original_word(file, at + 8 * n);
		if (pwrite(fd, words, size, at) != (ssize_t)size)
			note_bad("write to a file", errno, 0);
	}
}

static __thread sigjmp_buf *volatile jump;

static void on_fault(int sig)
{
	if (jump)
		siglongjmp(*jump, sig);
	signal(sig, SIG_DFL);	/* nobody expects it: the access is made again and ends the process */
}

void catch_faults(void)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

/* Read or write one word. Return the signal that the access ended with, or 0. */
int probe(char *at, bool write, uint64_t *value)
{
	sigjmp_buf here;
	sigjmp_buf *outer = jump;	/* of the access that a signal handler has interrupted */
	int sig = sigsetjmp(here, 0);

	if (!sig) {
		jump = &here;
		if (write)
			*(volatile uint64_t *)at = *value;
		else
			*value = *(volatile uint64_t *)at;
	}
	jump = outer;
	return sig;
}

/* Return the signal that reading the word must end with, or 0 and the word in *value. */
static int must_be(const struct page *page, unsigned word, uint64_t *value)
{
	*value = 0;
	if (!page->mapped || page->protection == PROT_NONE)
		return SIGSEGV;
	if (page->file != ANON && page->index >= file_pages(page->file))
		return SIGBUS;
	if (page->dirty && word == WORD)
		*value = page->value;
	else if (page->file != ANON)
		*value = file_word(page->file, page->index * PAGE + 8 * word);
	return 0;
}

/* Read a word of a page and compare it with the model. Return the signal. */
int look(const struct page *page, char *at, unsigned word)
{
	uint64_t value = 0, wanted;
	int must = must_be(page, word, &wanted), sig = probe(at + 8 * word, false, &value);

	if (sig != must)
		note_bad("signal of a read", sig, must);
	else if (!sig && value != wanted)
		note_bad("word", value, wanted);
	return sig;
}

/* True for seven of eight pages whose read would end with a signal: signals are slow. */
static bool left_out(const struct page *page, unsigned n)
{
	uint64_t value;

	return must_be(page, 0, &value) && mix(world.random + n) % 8;
}

void look_at_region(const struct region *region, unsigned first, unsigned count)
{
	for (unsigned n = first; n < first + count; n++) {
		const struct page *page = &region->page[n];
		char *at = region->base + n * PAGE;
		unsigned char there = 0;

		if (left_out(page, n))
			continue;
		int sig = look(page, at, below(WORDS));

		note("read", page->index, sig);
		if (sig)
			continue;
		look(page, at, WORD);
		if (!page->pinned && (mincore(at, PAGE, &there) || !(there & 1)))
			note_bad("mincore of a page just read", there, 1);
	}
}

struct region *free_region(void)
{
	for (struct region *region = world.region + 1; region < world.region + REGIONS; region++)
		if (!region->base)
			return region;
	return NULL;
}

struct region *new_region(char *base, unsigned pages)
{
	struct region *region = free_region();

	memset(region, 0, sizeof(*region));
	region->base = base;
	region->pages = pages;
	return region;
}

/* The arena or another region. */
struct region *any_region(void)
{
	struct region *region = world.region + below(REGIONS);

	return region->base && !chance(40) ? region : world.region;
}

/* Choose pages of a region that no thread reads. False if none was found. */
bool any_range(struct region **region, unsigned *first, unsigned *count)
{
	for (unsigned tries = 0; tries < 6; tries++) {
		struct region *found = any_region();
		unsigned n;

		*first = below(found->pages);
		*count = 1 + below(found->pages - *first < 20 ? found->pages - *first : 20);
		if (chance(40)) {
			*first = 0;
			*count = found->pages < 24 ? found->pages : 24;
		}
		for (n = *first; n < *first + *count && !found->page[n].pinned; n++)
			;
		*region = found;
		if (n == *first + *count)
			return true;
	}
	return false;
}

/* Is there an identical mapping? With hwdp -s it may be the same one: a change shows in both. */
bool has_twin(const struct region *region, unsigned first, unsigned count)
{
	for (unsigned n = first; n < first + count; n++)
		for (struct region *other = world.region + 1; region->page[n].key && other < world.region + REGIONS; other++)
			for (unsigned m = 0; other->base && m < other->pages; m++)
				if (other->page[m].key == region->page[n].key && other->page[m].id != region->page[n].id)
					return true;
	return false;
}

/* These pages are no longer mapped. What remains of a region around them needs a free one (free_region()). */
void forget(struct region *region, unsigned first, unsigned count)
{
	unsigned rest = region->pages - first - count;

	if (region == world.region) {
		memset(region->page + first, 0, count * sizeof(struct page));
		return;
	}
	if (first && rest) {
		struct region *tail = new_region(region->base + (first + count) * PAGE, rest);

		memcpy(tail->page, region->page + first + count, rest * sizeof(struct page));
		rest = 0;
	} else if (!first) {
		memmove(region->page, region->page + count, rest * sizeof(struct page));
		region->base = rest ? region->base + count * PAGE : NULL;
		region->pages = rest;
		return;
	}
	region->pages = first;
}

void check_all(void)
{
	for (struct region *region = world.region; region < world.region + REGIONS; region++)
		for (unsigned n = 0; region->base && n < region->pages; n++)
			if (!left_out(&region->page[n], n))
				look(&region->page[n], region->base + n * PAGE, WORD);
}
