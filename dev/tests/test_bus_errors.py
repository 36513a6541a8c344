# SPDX-License-Identifier: Apache-2.0
"""An SMU whose exchanges of page table entries fail with bus errors, so that nobody knows whether they took effect: Linux frees
no frame that is mapped. REQ: SMU-13, OS-5"""

from __future__ import annotations

from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import dataset, ext4
from trapless.guest.job import Job, launcher
from trapless.guest.programs import cross

pytestmark = [pytest.mark.guest, pytest.mark.series, pytest.mark.long]

PAGES = 2048
ROUNDS = 3
EVERY = 50


def test_no_frame_is_freed_that_may_be_mapped(patched: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four errors occur. One miss is served nevertheless. In one case the exchange took no effect, and the access is killed. In
    two cases the frame may be mapped: the accesses are killed, too, and Linux keeps the frames. No byte is wrong, and the kernel
    logs no complaint."""
    program = build.seeded_machine()
    monkeypatch.setenv("TRAPLESS_SEED_EXCHANGE_ERRORS", str(EVERY))
    binary = cross.compile_program("bus_errors", [Path(__file__).with_name("bus_errors.c")])
    guest = guests.Guest(patched, root, dataset.image(PAGES * ext4.BLOCK), max_seconds=300)
    outcome = guests.run_on_machine(program, guest, Job(" ".join([*launcher("hwdp"), f"./{binary.name}"]), (binary,)))
    killed, wrong, complaints, kept = map(int, outcome.console.split())
    errors = outcome.counters["smu_installed"] // EVERY
    assert (wrong, complaints) == (0, 0)
    assert errors >= ROUNDS * PAGES // EVERY // 2
    assert abs(killed - errors * 3 // 4) <= 4
    assert kept > 0
