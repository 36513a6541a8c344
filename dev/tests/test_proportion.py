# SPDX-License-Identifier: Apache-2.0
"""Work is proportional to the pages touched: mappings, holes, reports, idle time. A program sees no boundary that a kind made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest.images import dataset, ext4
from trapless.guest.job import Job, launcher
from trapless.guest.programs import cross
from trapless.results import figures

from studies.costs import mapping_cost

pytestmark = [pytest.mark.guest, pytest.mark.series]

MIB = 64


@pytest.fixture
def run(program: Path, patched: Path, root: Path, tmp_path: Path) -> Callable[..., guests.Outcome]:
    """Return a function: (kind, program, its arguments) -> outcome. Its files are in tmp_path/out."""

    def boot(kind: str, binary: Path, *arguments: str) -> guests.Outcome:
        guest = guests.Guest(patched, root, dataset.image(2 * MIB * ext4.MIB), profile="server", harts=2, max_seconds=300,
                             populate=None)
        job = Job(" ".join([*launcher(kind), f"./{binary.name}", *arguments]), (binary,))
        outcome = guests.run_on_machine(program, guest, job, tmp_path / "out")
        assert outcome.status == 0, outcome.console
        return outcome
    return boot


def grown(folder: Path) -> dict[str, int]:
    """Return how much each counter grew during the program's one operation."""
    before, after = (dict(line.split() for line in (folder / "out" / when).read_text().splitlines())
                     for when in ("before", "after"))
    return {name: int(after[name]) - int(before[name]) for name in after}


def kernel_instructions(outcome: guests.Outcome) -> int:
    """Return the kernel's instructions in the regions of all mappings."""
    return sum(region["instructions"]["supervisor"] for region in figures.regions(outcome.stats))


def proportion() -> Path:
    return cross.compile_program("proportion", [Path(__file__).with_name("proportion.c")])


def test_a_mapping_costs_what_is_read_of_it(run: Callable[..., guests.Outcome]) -> None:
    """40 mappings of 64 MiB, with one page or no page of each read: no area is made, and Linux's work is the same as with
    osdp."""
    for reads in mapping_cost.READS:
        arguments = (reads, str(MIB * 1024), "/data/random.bin")
        osdp, hwdp = (run(kind, mapping_cost.program(), *arguments) for kind in ("osdp", "hwdp"))
        assert hwdp.counters["areas_made"] == hwdp.counters["pages_armed"] == hwdp.counters["fences"] == 0
        assert kernel_instructions(hwdp) < 1.05 * kernel_instructions(osdp)


def test_a_hole_disarms_itself_alone(run: Callable[..., guests.Outcome], tmp_path: Path) -> None:
    run("hwdp", proportion(), "punch")
    assert 1 <= grown(tmp_path)["pages_disarmed"] <= 8


@pytest.mark.parametrize("what", ["pagemap", "fsync"])
def test_nothing_is_fenced_for(run: Callable[..., guests.Outcome], tmp_path: Path, what: str) -> None:
    """Reading a word of pagemap needs the entries of one table. A sync needs no entry, as pages that hardware read are clean."""
    run("hwdp", proportion(), what)
    assert grown(tmp_path)["fences"] == 0


def test_an_idle_area_wakes_nobody(run: Callable[..., guests.Outcome], tmp_path: Path) -> None:
    """kpoold wakes less and less often: four seconds have a thousand of its periods."""
    run("hwdp", proportion(), "idle")
    assert grown(tmp_path)["kpoold_runs"] <= 16


@pytest.mark.parametrize("kind", ["osdp", "hwdp"])
def test_neighbours_are_one_to_mremap(run: Callable[..., guests.Outcome], kind: str) -> None:
    run(kind, proportion(), "neighbours")
