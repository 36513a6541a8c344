/* SPDX-License-Identifier: GPL-2.0 */
/* Kinds of demand paging, and how a program asks the kernel for them (include/uapi/linux/hwdp.h, prctl.h and
 * asm-generic/mman-common.h of the series; the C library's headers do not have them yet). */
#ifndef TRAPLESS_KINDS_H
#define TRAPLESS_KINDS_H

#include <stddef.h>
#include <string.h>

#define PR_SET_HWDP 0x48574450
#define PR_GET_HWDP 0x48574451
#define MAP_HWDP 0x200000
#define HWDP_KIND_NAMED 0x10	/* added to a kind: only for mappings with MAP_HWDP */

struct kind {
	const char *name;
	int number;	/* enum hwdp_kind; -1: not the kernel's, but made by libhwdp.so */
	int advice;	/* madvise() that chooses it for a mapping; 0: an ordinary mapping */
};

static const struct kind kinds[] = {
	{ "ideal", -1, 0 },
	{ "osdp", 1, 0 },
	{ "emulated", 2, 28 },
	{ "trap", 3, 29 },
	{ "hwdp", 4, 30 },
};

static inline const struct kind *find_kind(const char *name)
{
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++)
		if (!strcmp(kinds[n].name, name))
			return &kinds[n];
	return NULL;
}

#endif
