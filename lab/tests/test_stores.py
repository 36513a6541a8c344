# SPDX-License-Identifier: Apache-2.0
"""Stores to pages that hardware has brought."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.images import dataset, ext4
from lab.runner import guest as guests
from lab.runner.job import Job, launcher

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


@pytest.fixture(scope="module")
def stored(program: Path, patched: Path, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., guests.Outcome]:
    folder = tmp_path_factory.mktemp("store")
    (folder / "store.c").write_text(PROGRAM)
    subprocess.run(["riscv64-linux-gnu-gcc", "-O1", "-o", folder / "store", folder / "store.c"], check=True)

    def run(kind: str, *arguments: str) -> guests.Outcome:
        guest = guests.Guest(patched, root, dataset.image(PAGES * ext4.BLOCK), max_seconds=300)
        script = "\n".join(["echo 60000 >/sys/kernel/mm/hwdp/kpted_period_ms",
                            " ".join([*launcher(kind), "./store", *arguments])])
        outcome = guests.run_on_machine(program, guest, Job(script, (folder / "store",)))
        assert (outcome.console, outcome.status) == ("", 0)
        return outcome
    return run


@pytest.mark.parametrize("kind", ["osdp", "hwdp"])
def test_a_store_traps_once(stored: Callable[..., guests.Outcome], kind: str) -> None:
    """The fault that gives a page its metadata makes it writable, too."""
    region, = stored(kind, "load").stats["rois"]
    assert region["hw_miss"]["count"] == (STORED if kind == "hwdp" else 0)
    assert region["os_fault_causes"] == ({} if kind == "hwdp" else {"not_armed": STORED}) | {"permission": STORED}


def test_a_store_has_nothing_armed_again(stored: Callable[..., guests.Outcome]) -> None:
    """A page that is stored to goes to the operating system, which has it in the page cache then: no need to hurry for kpoold."""
    outcome = stored("hwdp")
    region, = outcome.stats["rois"]
    assert region["hw_miss"]["count"] == 0
    # Those of kpoold.s periods are few.
    assert outcome.counters["fences"] < STORED / 4
