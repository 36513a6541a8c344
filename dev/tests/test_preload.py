# SPDX-License-Identifier: Apache-2.0
"""Programs behave the same under a kind as without one, and the record has all their reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest import served
from trapless.guest.images import dataset, ext4
from trapless.guest.job import KINDS, launcher
from trapless.guest.programs import cross
from trapless.results import figures

pytestmark = [pytest.mark.guest, pytest.mark.series]
Boot = Callable[..., guests.Outcome]

PAGES = 2048
CASES = ("vfork", "return", "many", "files", "grow", "fork", "whole-pages", "users", "edges")


@pytest.fixture(scope="session")
def data() -> Path:
    return dataset.image(PAGES * ext4.BLOCK)


@pytest.fixture(scope="session")
def cases() -> Path:
    return cross.compile_program("preload_cases", [Path(__file__).with_name("preload_cases.c")])


def command(kind: str | None, case: str, share: bool = False) -> str:
    return " ".join([*launcher(kind, share), "./preload_cases", case, "/data/random.bin"])


@pytest.fixture(scope="module")
def run(program: Path, patched: Path, root: Path, data: Path, cases: Path,
        tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], guests.Outcome]:
    """Return a function that runs a shell script with the cases in its folder."""
    def boot(script: str) -> guests.Outcome:
        guest = guests.Guest(patched, root, data, max_seconds=300)
        return guests.run_on_machine(program, guest, guests.jobs.Job(script, (cases,)), tmp_path_factory.mktemp("out"))
    return boot


def test_a_program_cannot_tell(run: Callable[[str], guests.Outcome]) -> None:
    """Runs each case with every kind, with and without shared mappings, one after another in one boot."""
    ways = [(kind, share) for kind in (None, *KINDS) for share in ((False, True) if kind else (False,))]
    outcome = run("\n".join(f"{command(kind, case, share)}; echo status $?" for kind, share in ways for case in CASES))
    lines = outcome.console.splitlines()
    told = [lines[at:at + 2 * len(CASES)] for at in range(0, len(lines), 2 * len(CASES))]
    assert [line for line in told[0] if line.startswith("status")] == ["status 0"] * len(CASES)
    for way, said in zip(ways, told, strict=True):
        assert said == told[0], way


@pytest.mark.parametrize("kind", ["osdp", "hwdp"])
@pytest.mark.parametrize("case", ["many", "grow", "fork"])
def test_the_record_has_every_page(run: Callable[[str], guests.Outcome], kind: str, case: str) -> None:
    """The cases: more mappings than a table of fixed size holds, a mapping that is moved, and a mapping that a child inherits."""
    outcome = run(command(kind, case))
    assert outcome.status == 0, outcome.console
    counted = figures.of_regions(kind, figures.regions(outcome.stats))
    assert counted["distinct_pages"] == PAGES
    assert counted["hw_misses"] + counted["os_faults"] + counted["resident"] == PAGES
    if kind == "osdp":
        assert counted["os_faults"] + counted["resident"] == PAGES
    else:
        # Linux serves the misses that a mapping loses because it was moved, inherited, or is a second mapping of its file.
        assert counted["hw_misses"] >= {"many": 1, "grow": PAGES // 4, "fork": PAGES // 4}[case]


def test_any_number_of_mappings_is_served(run: Callable[[str], guests.Outcome]) -> None:
    outcome = run(command("hwdp", "files"))
    assert outcome.status == 0, outcome.console
    counted = figures.of_regions("hwdp", figures.regions(outcome.stats))
    assert counted["distinct_pages"] == counted["hw_misses"] == 1200
    assert outcome.counters["areas_made"] == 300


def test_what_is_not_served_is_said(run: Callable[[str], guests.Outcome]) -> None:
    outcome = run(command("hwdp", "grow"))
    hardware, total = served.reads("hwdp", outcome)
    assert hardware == outcome.stats["smu_counters"]["installed"] == outcome.counters["smu_installed"]
    assert total - hardware >= PAGES // 2
    said = served.line("hwdp", outcome)
    assert said.startswith(f"hwdp: hardware made {hardware:,} of {total:,} reads of the data disk (")
    assert "1 mapping given up after mremap()" in said


def test_two_processes_have_one_region(run: Callable[[str], guests.Outcome]) -> None:
    """The second process neither resets nor ends the measurement of the first one."""
    outcome = run(f"{launcher('osdp')[0]} -k osdp -f /data/ -- sh -c './preload_cases many /data/random.bin & "
                  "./preload_cases grow /data/random.bin; wait'")
    assert outcome.status == 0, outcome.console
    regions = figures.regions(outcome.stats)
    counted = figures.of_regions("osdp", regions)
    assert counted["distinct_pages"] == 2 * PAGES
    assert len(regions) == 1


def test_a_region_can_end_before_the_command(run: Callable[[str], guests.Outcome]) -> None:
    """Programs need not unmap. Without `hwdp -e`, a region lasts as long as the command."""
    case, after = command("hwdp", "return"), "seq 20000 >/dev/null"
    outcome = run(f"{case}; hwdp -e; {after}; {case}; {after}")
    assert outcome.status == 0, outcome.console
    first, second = figures.regions(outcome.stats)
    # A loop step of seq takes more than 20 cycles.
    assert second["begin_cycle"] - first["end_cycle"] > 20 * 20000
    assert second["end_cycle"] - second["begin_cycle"] > first["end_cycle"] - first["begin_cycle"] + 20 * 20000
    misses = [region["hw_miss"]["count"] for region in (first, second, outcome.stats["outside"])]
    assert sum(misses) == outcome.counters["smu_installed"]
