// SPDX-License-Identifier: GPL-2.0
/*
 * Guest test of hardware-based demand paging: contents and interactions.
 *
 *	hwdp-check [-m MIB] [-s DIR] [-t SECONDS] [-p] DIR [NAME...]
 *
 * DIR is a folder on ext4. Most tests map a file with MAP_HWDP after dropping the
 * page cache, and compare each page that they read with what was written. The
 * program also runs without an SMU: then the mappings are ordinary ones, and only
 * the contents are checked. -m sets the size of the large file (default 32 MiB).
 * -s names a folder on an ext4 with 1 KiB blocks and inline data; without it, the
 * tests of such a file system are skipped. -t limits each test (default 120 s).
 * -p adds the test whose file is larger than memory. Tests that break the disk run
 * only when named.
 *
 * Every test runs in a separate process, in a folder that is emptied after it. A test
 * also fails if the kernel has complained during it, or if afterwards a page that
 * hardware has installed is neither adopted nor discarded.
 */
#include "check.h"
#include <dirent.h>

const char *program = "hwdp-check";
const char *dir, *small_dir, *mount_point;
size_t big_pages = 32 << 8;

static struct test tests[] = {
#define TABLE_ROW(name, optional) { #name, t_##name, optional },
	TESTS(TABLE_ROW)
};

static void empty_folder(const char *name)
{
	DIR *d = opendir(name);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

static bool after_test(bool ok)
{
	long lost;

	empty_folder(dir);
	if (small_dir)
		empty_folder(small_dir);
	lost = unsettled();
	CHECK(!ok || !lost, "%ld pages neither adopted nor discarded", lost);
	return true;
}

static const char *subfolder(const char *parent)
{
	char *name;

	if (asprintf(&name, "%s/hwdp-check", parent) < 0)
		exit(2);
	if (mkdir(name, 0755) && errno != EEXIST) {
		fprintf(stderr, "hwdp-check: cannot make %s: %s\n", name, strerror(errno));
		exit(2);
	}
	return name;
}

int main(int argc, char **argv)
{
	unsigned limit_s = 120;	/* for one test, in the guest's time */
	int opt;

	while ((opt = getopt(argc, argv, "m:s:t:p")) > 0) {
		switch (opt) {
		case 'm':
			big_pages = strtoul(optarg, NULL, 0) << 8;
			break;
		case 's':
			small_dir = subfolder(optarg);
			break;
		case 't':
			limit_s = strtoul(optarg, NULL, 0);
			break;
		case 'p':
			for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
				if (!strcmp(tests[i].name, "pressure"))
					tests[i].optional = false;
			break;
		default:
			optind = argc;
		}
	}
	if (optind >= argc || !big_pages || !limit_s) {
		fprintf(stderr, "usage: hwdp-check [-m MIB] [-s DIR] [-t SECONDS] [-p] DIR [NAME...]\n");
		return 2;
	}
	mount_point = argv[optind++];
	dir = subfolder(mount_point);
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argv + optind, limit_s, after_test);
}
