// SPDX-License-Identifier: GPL-2.0
/* hwdp: runs an unmodified program with its file mappings paged in a chosen way. See libhwdp.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "/usr/lib/libhwdp.so"

static int usage(void)
{
	fputs("usage: hwdp -k ideal|osdp|hwdp [-f PATHPREFIX] [-s] -- COMMAND [ARGUMENT]...\n"
	      "  -k  how misses on file mappings are served: all resident, by the OS, by hardware\n"
	      "  -f  only files whose path begins so (default /data/)\n"
	      "  -s  threads that map the same file share one mapping\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const char *kind = NULL;
	int option;

	while ((option = getopt(argc, argv, "+k:f:s")) != -1) {
		if (option == 'k')
			kind = optarg;
		else if (option == 'f')
			setenv("HWDP_PREFIX", optarg, 1);
		else if (option == 's')
			setenv("HWDP_SHARE", "1", 1);
		else
			return usage();
	}
	if (!kind || optind == argc)
		return usage();
	if (strcmp(kind, "ideal") && strcmp(kind, "osdp") && strcmp(kind, "hwdp")) {
		fprintf(stderr, "hwdp: no such kind: %s\n", kind);
		return usage();
	}
	if (!strcmp(kind, "hwdp") && access("/sys/kernel/mm/hwdp", F_OK)) {
		fputs("hwdp: this kernel has no hardware paging (/sys/kernel/mm/hwdp is missing)\n", stderr);
		return 2;
	}
	setenv("HWDP_KIND", kind, 1);
	setenv("LD_PRELOAD", LIBRARY, 1);
	execvp(argv[optind], argv + optind);
	fprintf(stderr, "hwdp: cannot run %s: ", argv[optind]);
	perror(NULL);
	return 127;
}
