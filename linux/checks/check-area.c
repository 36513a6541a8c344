// SPDX-License-Identifier: GPL-2.0
/*
 * When a mapping gets an area, and how long it keeps it, with the setting populate = miss.
 * Decision 085, REQ: OS-9
 */
#include "check.h"

#define PAGES 1024

/* Run @body with populate = miss, the default without the boot argument hwdp.populate. */
static bool by_misses(bool (*body)(void))
{
	static const char setting[] = "/sys/kernel/mm/hwdp/populate";
	char choices[80] = "", *begin, *end;
	FILE *f = fopen(setting, "r");
	bool ok;

	if (f) {
		if (!fgets(choices, sizeof(choices), f))
			choices[0] = '\0';
		fclose(f);
	}
	begin = strchr(choices, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (!have_smu() || !end || !put_text(setting, "miss"))
		SKIP("no setting \"populate\"");
	*end = '\0';
	ok = body();
	put_text(setting, begin + 1);
	return ok;
}

/* Linux serves the first miss, the second miss makes the area, and the unit serves the third. */
static bool second_miss(void)
{
	long made = stat_of("areas_made"), fast;
	char *map;

	if (!setup("second", 191, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	CHECK(!madvise(map, PAGES * PAGE, MADV_RANDOM), "advice");
	CHECK(same(map, 191, 0), "wrong content of page 0");
	CHECK(stat_of("areas_made") == made, "the first miss made an area");
	/* in memory already: a fault, but no miss */
	CHECK(!madvise(map, PAGE, MADV_DONTNEED), "advice for page 0");
	CHECK(same(map, 191, 0), "wrong content of page 0, read again");
	CHECK(stat_of("areas_made") == made, "a fault that was no miss made an area");
	CHECK(same(map + 100 * PAGE, 191, 100), "wrong content of page 100");
	CHECK(stat_of("areas_made") == made + 1, "the second miss made %ld areas",
	      stat_of("areas_made") - made);
	fast = fast_pages();
	CHECK(same(map + 200 * PAGE, 191, 200), "wrong content of page 200");
	CHECK(fast_pages() == fast + 1, "the unit did not serve the third miss");
	munmap(map, PAGES * PAGE);
	return true;
}

bool t_second_miss(void) { return by_misses(second_miss); }

/* A mapping keeps its file's area for a second. Then the area goes to another mapping if that one misses. */
static bool turns(void)
{
	long yielded = stat_of("areas_withdrawn_yielded"), fast;
	char *map, *other;

	if (!setup("turns", 192, PAGES, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	other = map_file("turns", PAGES, PROT_READ, MAP_SHARED, NULL);
	CHECK(other != MAP_FAILED, "mmap: %s", strerror(errno));
	CHECK(!madvise(map, PAGES * PAGE, MADV_RANDOM) && !madvise(other, PAGES * PAGE, MADV_RANDOM), "advice");
	if (!read_all(map, 192, 0, 4) || !read_all(other + 100 * PAGE, 192, 100, 4))
		return false;
	usleep(100000);
	CHECK(stat_of("areas_withdrawn_yielded") == yielded, "the area has yielded at once");
	/* no other mapping misses in this time */
	usleep(1100000);
	CHECK(stat_of("areas_withdrawn_yielded") == yielded,
	      "the area has yielded although no other mapping misses");
	if (!read_all(other + 200 * PAGE, 192, 200, 1))
		return false;
	for (int tries = 0; tries < 100 && stat_of("areas_withdrawn_yielded") == yielded; tries++)
		usleep(10000);
	CHECK(stat_of("areas_withdrawn_yielded") == yielded + 1,
	      "the area has not yielded after a second");
	if (!read_all(other + 300 * PAGE, 192, 300, 2))
		return false;
	fast = fast_pages();
	if (!read_all(other + 400 * PAGE, 192, 400, 8) || !read_all(map + 500 * PAGE, 192, 500, 4))
		return false;
	CHECK(fast_pages() >= fast + 8, "the unit served %ld of 8 misses", fast_pages() - fast);
	munmap(map, PAGES * PAGE);
	munmap(other, PAGES * PAGE);
	return true;
}

bool t_turns(void) { return by_misses(turns); }
