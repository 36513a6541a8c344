# SPDX-License-Identifier: Apache-2.0
"""Origin of the frames that hardware fills."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from trapless.guest import boot as guests

pytestmark = [pytest.mark.guest, pytest.mark.series]

PAGES = 1 << 14
PROGRAM = f"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
/* Read each page of the file; then print how many blocks of pages hold what cannot be moved. */
int main(void)
{{
	volatile char *page = mmap(NULL, {PAGES}L << 12, PROT_READ, MAP_SHARED, open("/data/random.bin", O_RDONLY), 0);
	FILE *types = fopen("/proc/pagetypeinfo", "r");
	char line[512];
	long sum = 0, unmovable = 0, blocks, all = 0;

	for (long at = 0; at < {PAGES}; at++)
		sum += page[at << 12];
	while (types && fgets(line, sizeof(line), types) && strncmp(line, "Number of blocks type", 21))
		;
	while (types && fgets(line, sizeof(line), types))
		if (sscanf(line, "Node %*d, zone %*s %ld", &blocks) == 1) {{
			unmovable += blocks;
			all++;
		}}
	printf("%ld %ld\\n", all, unmovable);
	return sum == 0;
}}
"""


def test_frames_leave_the_blocks_of_unmovable_pages(paged: Callable[..., guests.Outcome]) -> None:
    """64 MiB of page cache that hardware filled lie among movable pages, as osdp's do."""
    osdp, hwdp = (paged(kind) for kind in ("osdp", "hwdp"))
    assert sum(region["hw_miss"]["count"] for region in hwdp.stats["rois"]) > PAGES // 2
    (zones, usual), (_, found) = (tuple(map(int, outcome.console.split())) for outcome in (osdp, hwdp))
    assert zones > 0
    # The free ring and the kernel's own growth take a few blocks.
    assert found <= usual + 4
