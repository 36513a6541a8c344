# SPDX-License-Identifier: Apache-2.0
"""Hardware serves misses of user mode only: the kernel's own accesses never wait for a device with a lock held. REQ: ISA-3"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.images import dataset, ext4
from lab.programs import cross
from lab.runner import figures
from lab.runner import guest as guests
from lab.runner.job import Job, launcher

pytestmark = [pytest.mark.guest, pytest.mark.series]

PAGES = 1024


@pytest.mark.parametrize("kind", ["osdp", "hwdp"])
def test_the_kernels_accesses(program: Path, patched: Path, root: Path, kind: str) -> None:
    """futex(), write(), get_user_pages(), strings, and walks of the stack in an interrupt, on armed pages: right, and none is the
    walker's. Where it may sleep, the fault handler asks the unit."""
    binary = cross.compile_program("kernel_accesses", [Path(__file__).with_name("kernel_accesses.c")])
    guest = guests.Guest(patched, root, dataset.image(PAGES * ext4.BLOCK), max_seconds=300)
    outcome = guests.run_on_machine(program, guest, Job(" ".join([*launcher(kind), f"./{binary.name}"]), (binary,)))
    assert (outcome.console, outcome.status) == ("", 0)
    if kind == "hwdp":
        regions = figures.regions(outcome.stats)
        assert sum(region["hw_miss"]["count"] for region in regions) == 0
        assert outcome.counters["smu_port_requests"] >= PAGES // 2 - 16
