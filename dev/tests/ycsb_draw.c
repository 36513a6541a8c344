// SPDX-License-Identifier: Apache-2.0
/* ycsb_draw hash|zipfian|scrambled|latest|record ITEMS COUNT: prints the random numbers of YCSB's driver. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "records.h"

static uint64_t damaged(struct shape shape, const char *value, size_t size)
{
	uint64_t found = 0;
	struct header header;
	char copy[256];

	for (size_t at = 0; at < size; at++)
		for (int bit = 0; bit < 8; bit++) {
			memcpy(copy, value, size);
			copy[at] ^= 1 << bit;
			found += !record_read(shape, copy, size, &header);
		}
	return found;
}

int main(int argc, char **argv)
{
	const char *what = argc == 4 ? argv[1] : "";
	uint64_t items = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
	struct random random;
	struct zipfian zipfian;

	random_seed(&random, 1);
	if (!strcmp(what, "scrambled"))
		scrambled_init(&zipfian);
	else
		zipfian_init(&zipfian, !strcmp(what, "latest") ? items / 2 : items);
	for (uint64_t n = 0; n < count; n++) {
		uint64_t drawn = 0;

		if (!strcmp(what, "hash"))
			drawn = fnv_hash(items + n);
		else if (!strcmp(what, "zipfian"))
			drawn = zipfian_next(&zipfian, &random);
		else if (!strcmp(what, "scrambled"))
			drawn = scrambled_next(&zipfian, items, &random);
		else if (!strcmp(what, "latest"))
			drawn = latest_next(&zipfian, items, &random);
		else if (!strcmp(what, "record")) {
			/* For a record: how many flips of one bit are detected. */
			struct shape shape = { 3, 17 };
			char value[256];

			record_write(shape, items + n, n, value);
			drawn = damaged(shape, value, record_size(shape));
		} else {
			return 2;
		}
		printf("%" PRIu64 "\n", drawn);
	}
	return 0;
}
