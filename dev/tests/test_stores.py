# SPDX-License-Identifier: Apache-2.0
"""Stores to pages that hardware has read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from trapless.guest import boot as guests

pytestmark = [pytest.mark.guest, pytest.mark.series]

PAGES = 257
STORED = PAGES - 1
"""Pages that are stored to: all but the file's last page, which the operating system serves."""
PROGRAM = f"""
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
/* With an argument: load from each page. Then store to each. */
int main(int argc, char **argv)
{{
	int file = open("/data/random.bin", O_RDWR);
	volatile char *page = mmap(NULL, {PAGES} << 12, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	long sum = 0;

	if (page == MAP_FAILED)
		return 2;
	for (long at = 0; argc > 1 && at < {STORED}; at++)
		sum += page[at << 12];
	for (long at = 0; at < {STORED}; at++)
		page[at << 12] = sum;
	munmap((void *)page, {PAGES} << 12);
	return 0;
}}
"""


def stored(paged: Callable[..., guests.Outcome], kind: str, *arguments: str) -> guests.Outcome:
    """Return the outcome of PROGRAM while kpted does nothing."""
    outcome = paged(kind, *arguments, before="echo 60000 >/sys/kernel/mm/hwdp/kpted_period_ms")
    assert outcome.console == ""
    return outcome


@pytest.mark.parametrize("kind", ["osdp", "hwdp"])
def test_a_store_traps_once(paged: Callable[..., guests.Outcome], kind: str) -> None:
    """The fault that gives a page its metadata also makes it writable."""
    region, = stored(paged, kind, "load").stats["rois"]
    assert region["hw_miss"]["count"] == (STORED if kind == "hwdp" else 0)
    assert region["os_fault_causes"] == ({} if kind == "hwdp" else {"not_armed": STORED}) | {"permission": STORED}


def test_a_store_has_nothing_armed_again(paged: Callable[..., guests.Outcome]) -> None:
    """The operating system serves a page that is stored to, and has it in the page cache afterwards, so kpoold need not hurry."""
    outcome = stored(paged, "hwdp")
    region, = outcome.stats["rois"]
    assert region["hw_miss"]["count"] == 0
    # kpoold's periods cause few fences.
    assert outcome.counters["fences"] < STORED / 4
