// SPDX-License-Identifier: GPL-2.0
/* hwdp: runs an unmodified program with its file mappings paged in a chosen way. See hwdp.1. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kinds.h"
#include "marker.h"

#define LIBRARY "/usr/lib/libhwdp.so"

static int usage(void)
{
	fputs("usage: hwdp -k ideal|osdp|emulated|trap|hwdp [-f PATHPREFIX] [-s] -- COMMAND [ARGUMENT]...\n"
	      "       hwdp -e\n"
	      "  -k  who serves misses on file mappings: nobody (all resident), the OS, an SMU in software,\n"
	      "      the SMU asked by the OS, the SMU asked by the page table walker\n"
	      "  -f  only mappings of files whose path begins with PATHPREFIX\n"
	      "      (/data/ by default with -s or ideal)\n"
	      "  -s  let threads that map the same file share one mapping\n"
	      "  -e  end the machine's region of interest: from now on nothing is measured\n",
	      stderr);
	return 2;
}

/*
 * Ask the kernel for this kind: for all mappings of the program, or (@named) only for those with
 * MAP_HWDP. Print an error if the kernel refuses.
 */
static bool choose(const struct kind *kind, bool named)
{
	if (!prctl(PR_SET_HWDP, kind->number | (named ? HWDP_KIND_NAMED : 0), 0, 0, 0))
		return true;
	if (errno == ENODEV)
		fprintf(stderr, "hwdp: nothing here serves kind %s "
			"(/sys/kernel/mm/hwdp/kind lists the kinds that are served)\n", kind->name);
	else
		fputs("hwdp: this kernel has no hardware paging (CONFIG_HWDP)\n", stderr);
	return false;
}

/* Preload the library before those that the user preloads. */
static void preload(void)
{
	const char *others = getenv("LD_PRELOAD");
	char *all;

	if (others && *others && asprintf(&all, "%s:%s", LIBRARY, others) > 0)
		setenv("LD_PRELOAD", all, 1);
	else
		setenv("LD_PRELOAD", LIBRARY, 1);
}

int main(int argc, char **argv)
{
	const char *name = NULL, *prefix = NULL;
	bool share = false;
	int option;

	if (argc == 2 && !strcmp(argv[1], "-e")) {
		marker(MARKER_ROI_END, ROI_ANY);
		return 0;
	}
	while ((option = getopt(argc, argv, "+k:f:s")) != -1) {
		if (option == 'k')
			name = optarg;
		else if (option == 'f')
			prefix = optarg;
		else if (option == 's')
			share = true;
		else
			return usage();
	}
	if (!name || optind == argc)
		return usage();
	const struct kind *kind = find_kind(name);
	if (!kind) {
		fprintf(stderr, "hwdp: no such kind: %s\n", name);
		return usage();
	}
	bool library = prefix || share || kind->number < 0;
	/* Every kernel can serve osdp: so ignore an error for it. */
	if (kind->advice && !choose(kind, library))
		return 2;
	if (!kind->advice && kind->number > 0)
		prctl(PR_SET_HWDP, kind->number, 0, 0, 0);
	if (library) {
		setenv("HWDP_KIND", name, 1);
		setenv("HWDP_PREFIX", prefix ? prefix : "/data/", 1);
		if (share)
			setenv("HWDP_SHARE", "1", 1);
		preload();
	}
	execvp(argv[optind], argv + optind);
	fprintf(stderr, "hwdp: cannot run %s: ", argv[optind]);
	perror(NULL);
	return 127;
}
