# SPDX-License-Identifier: Apache-2.0
"""Hardware serves only misses of user mode: the kernel's own accesses never wait for a device while they hold a lock. REQ:
ISA-3"""

from __future__ import annotations

from pathlib import Path

import pytest
from trapless.guest import atomic, build
from trapless.guest import boot as guests
from trapless.guest.images import dataset, ext4
from trapless.guest.job import Job, launcher
from trapless.guest.programs import cross
from trapless.results import figures

pytestmark = [pytest.mark.guest, pytest.mark.series]

PAGES = 1024


def run(program: Path, kernel: Path, root: Path, kind: str, **more: object) -> guests.Outcome:
    """Run kernel_accesses with --check-atomic."""
    binary = cross.compile_program("kernel_accesses", [Path(__file__).with_name("kernel_accesses.c")])
    guest = guests.Guest(kernel, root, dataset.image(PAGES * ext4.BLOCK), max_seconds=300, options=atomic.options(kernel), **more)
    return guests.run_on_machine(program, guest, Job(" ".join([*launcher(kind), f"./{binary.name}"]), (binary,)))


@pytest.mark.parametrize("kind", ["osdp", "trap", "hwdp"])
def test_the_kernels_accesses(program: Path, patched: Path, root: Path, kind: str) -> None:
    """futex(), write(), get_user_pages(), strings, and walks of the stack in an interrupt, all on armed pages: the data is right,
    and the walker serves no miss. Where it may sleep, the fault handler asks the unit."""
    outcome = run(program, patched, root, kind)
    assert (outcome.console, outcome.status) == ("", 0)
    checked = outcome.stats["atomic"]
    assert (checked["reports"], checked["unknown"], checked["pagefault_disabled_known"]) == (0, 0, True)
    assert checked["port_requests"] == outcome.counters["smu_port_requests"]
    if kind == "hwdp":
        regions = figures.regions(outcome.stats)
        assert sum(region["hw_miss"]["count"] for region in regions) == 0
        assert outcome.counters["smu_port_requests"] >= PAGES // 2 - 16


@pytest.mark.long
def test_a_walker_that_serves_the_kernel_is_reported(patched: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walkers of this machine serve misses of every mode. So futex() waits for the drive while page faults are disabled, and
    the interrupt that walks the stack waits while preempt_count is raised. Without this bug, the check reports nothing."""
    program = build.seeded_machine()
    assert run(program, patched, root, "hwdp").stats["atomic"]["reports"] == 0
    monkeypatch.setenv("TRAPLESS_SEED_SERVES_KERNEL", "1")
    outcome = run(program, patched, root, "hwdp")
    places = [place for place in outcome.stats["atomic"]["places"] if place["by"] == "walker"]
    assert places and {place["mode"] for place in places} == {"supervisor"}
    assert any(place["pagefault_disabled"] > 0 for place in places)
    assert any(place["preempt_count"] > 0 for place in places)
    assert "in atomic context: miss at" in outcome.messages


def test_the_offset_comes_from_the_kernels_code() -> None:
    """The test has the forms in which compilers have built `current->pagefault_disabled++`, and other code that must not
    match."""
    line = "ffffffff800b0960:\t9792                \t{}\n".format
    plain = ["lui\ta5,0x1", "add\ta5,a5,tp", "lw\ta4,-1836(a5) # 0x8d4", "addw\ta4,a4,1", "sw\ta4,-1836(a5)"]
    assert atomic.counted_up("".join(map(line, plain))) == 2260
    moved = ["mv\ts4,tp", "lui\ta5,0x1", "add\ts4,s4,a5", "lw\ta5,836(s4)", "addiw\ta5,a5,1", "sw\ta5,836(s4)"]
    assert atomic.counted_up("".join(map(line, moved))) == 4932
    others = (1, "add\ta5,a5,gp"), (3, "addw\ta4,a4,-1"), (3, "addw\ta4,a3,1"), (1, "ld\ta5,0(sp)")
    for at, other in others:
        assert atomic.counted_up("".join(map(line, [*plain[:at], other, *plain[at + 1:]]))) is None
