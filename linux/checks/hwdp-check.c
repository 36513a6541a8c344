// SPDX-License-Identifier: GPL-2.0
/*
 * Guest test of hardware-based demand paging: contents and interactions.
 *
 *	hwdp-check [-m MIB] [-p] DIR [NAME...]
 *
 * DIR lies on ext4. Every test maps a file with MAP_HWDP, with the page cache
 * dropped, and compares what it reads with what was written, page by page. The
 * same program runs without an SMU: then the mappings are ordinary and only the
 * contents are checked. -m sets the size of the large file (default 32 MiB),
 * -p adds the test whose file is larger than memory.
 */
#include "check.h"

const char *dir;
char why[256];
size_t big_pages = 32 << 8;

static const struct test {
	const char *name;
	bool (*run)(void);
	bool optional;
} tests[] = {
#define TABLE_ROW(name, optional) { #name, t_##name, optional },
	TESTS(TABLE_ROW)
};

int main(int argc, char **argv)
{
	unsigned passed = 0, failed = 0;
	bool pressure = false;
	int opt;

	while ((opt = getopt(argc, argv, "m:p")) > 0) {
		switch (opt) {
		case 'm':
			big_pages = strtoul(optarg, NULL, 0) << 8;
			break;
		case 'p':
			pressure = true;
			break;
		default:
			optind = argc;
		}
	}
	if (optind >= argc || !big_pages) {
		fprintf(stderr, "usage: hwdp-check [-m MIB] [-p] DIR [NAME...]\n");
		return 2;
	}
	dir = argv[optind++];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		bool chosen = optind == argc && (!tests[i].optional ||
						 (pressure && !strcmp(tests[i].name, "pressure")));

		for (int a = optind; a < argc; a++)
			chosen |= !strcmp(argv[a], tests[i].name);
		if (!chosen)
			continue;
		why[0] = 0;
		if (tests[i].run()) {
			passed++;
			printf("ok   %s\n", tests[i].name);
		} else {
			failed++;
			printf("FAIL %s: %s\n", tests[i].name, why);
		}
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
