# SPDX-License-Identifier: Apache-2.0
"""Stores to pages that hardware has brought."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from trapless.guest import boot as guests

pytestmark = [pytest.mark.guest, pytest.mark.series]

PAGES = 257
STORED = PAGES - 1
"""The operating system keeps the file's last page."""
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
    """What PROGRAM leaves while kpted does nothing."""
    outcome = paged(kind, *arguments, before="echo 60000 >/sys/kernel/mm/hwdp/kpted_period_ms")
    assert outcome.console == ""
    return outcome


@pytest.mark.parametrize("kind", ["osdp", "hwdp"])
def test_a_store_traps_once(paged: Callable[..., guests.Outcome], kind: str) -> None:
    """The fault that gives a page its metadata makes it writable, too."""
    region, = stored(paged, kind, "load").stats["rois"]
    assert region["hw_miss"]["count"] == (STORED if kind == "hwdp" else 0)
    assert region["os_fault_causes"] == ({} if kind == "hwdp" else {"not_armed": STORED}) | {"permission": STORED}


def test_a_store_has_nothing_armed_again(paged: Callable[..., guests.Outcome]) -> None:
    """A page that is stored to goes to the operating system, which has it in the page cache then: no need to hurry for kpoold."""
    outcome = stored(paged, "hwdp")
    region, = outcome.stats["rois"]
    assert region["hw_miss"]["count"] == 0
    # The fences of kpoold's periods are few.
    assert outcome.counters["fences"] < STORED / 4
