# SPDX-License-Identifier: Apache-2.0
"""The software translation cache: no fault uses a freed table, and every page is counted."""

from __future__ import annotations

import re

import pytest

from dev.checks import stc
from dev.checks.stc import Check
from dev.soak import REPORT

pytestmark = pytest.mark.guest

# The default, the paper's design, and one that many address spaces share.
IN_SHORT = {"": "in each mm", "vma,lines=16,entry,folded,from-top": "in each VMA, 16 lines", "cpu,ways=2": "in each processor"}


def check(wanted: Check, words: str = "", levels: int = 0, tests: int = 10) -> None:
    """Check that all tests pass, and that the kernel reports its design and page tables with `levels` levels: so no other design
    ran."""
    outcome = stc.run_check(wanted)
    assert not outcome.faults(), outcome.said + "\n" + "\n".join(
        line for line in outcome.messages.splitlines() if REPORT.search(line))
    assert words in outcome.said
    assert not levels or f"page tables of {levels} levels" in outcome.said
    assert len(re.findall(r"^ok   ", outcome.said, re.MULTILINE)) >= tests


def test_races_of_the_cache_count() -> None:
    race = "BUG: KCSAN: data-race in {} / mas_walk\n"
    said = f"ok   fork\nFAIL storm: kernel: {race.format('mas_topiary_replace')}14 passed, 1 failed\n"
    assert stc.Outcome(said, race.format("mas_topiary_replace")).faults() == []
    assert len(stc.Outcome(said, race.format("fault_walk_tables")).faults()) == 1
    assert len(stc.Outcome(said, "BUG: KASAN: use-after-free in mas_walk\n").faults()) == 1


@pytest.mark.parametrize("design", IN_SHORT)
def test_designs(design: str) -> None:
    """The processors run truly in parallel, and the kernel has both series, as in test_qemu.py."""
    check(Check("x86_64", series=stc.BOTH, design=design), f"stc: {IN_SHORT[design]}", tests=14)


def test_a_mistaken_parameter_is_no_cache() -> None:
    """The kernel reports it, and continues without a cache."""
    outcome = stc.run_check(Check("x86_64", series=stc.BOTH, design="mm,lines=3", names=("tags",)))
    assert "stc=lines=3: not understood, no cache" in outcome.said
    assert "stc: in each" not in outcome.said


@pytest.mark.long
@pytest.mark.parametrize("design", IN_SHORT)
def test_machine(design: str) -> None:
    """Four harts of the machine; two of the tests need features that the ordinary kernel lacks."""
    check(Check(design=design, factor=2), f"stc: {IN_SHORT[design]}", tests=14)


@pytest.mark.long
@pytest.mark.parametrize(("paging", "levels"), [("sv48", 4), ("sv57", 5)])
@pytest.mark.parametrize("design", ["mm,upper", "cpu,ways=2,upper"])
def test_machine_levels(design: str, paging: str, levels: int) -> None:
    """Tables above the PMD are cached and freed as well."""
    check(Check(design=design, settings=(f"machine.paging={paging}",)), "stc: in each", levels, tests=14)


@pytest.mark.long
@pytest.mark.parametrize(("place", "series"), [("riscv64", stc.SERIES), ("x86_64", stc.BOTH), ("x86_64", stc.SERIES)])
def test_qemu(place: str, series: tuple[str, ...]) -> None:
    check(Check(place, series=series, factor=2), "stc: in each mm", tests=14)


@pytest.mark.long
def test_stock_kernel() -> None:
    """The tests themselves also pass where there is no cache."""
    check(Check(stock=True, factor=4), tests=13)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("design", stc.DESIGNS)
def test_all_designs(design: str, seed: int) -> None:
    check(Check(design=design, factor=16, seed=seed), tests=13)


@pytest.mark.long
@pytest.mark.parametrize("design", IN_SHORT)
def test_rss_of_a_million_faults(design: str) -> None:
    """Eight threads with a million faults each: RssAnon, RssShmem, RssFile and VmPTE are exact."""
    check(Check(design=design, factor=1024, names=("rss",)), tests=1)


@pytest.mark.long
@pytest.mark.parametrize("design", IN_SHORT)
@pytest.mark.parametrize(("place", "append", "cpu", "levels"), [
    ("riscv64", "no4lvl", None, 3), ("riscv64", "no5lvl", None, 4), ("riscv64", "", None, 5),
    ("x86_64", "", None, 4), ("x86_64", "pti=on", "max", 5),
])
def test_levels(design: str, place: str, append: str, cpu: str | None, levels: int) -> None:
    """Three, four and five levels on QEMU; the upper tables are freed as well."""
    check(Check(place, design=design, factor=8, append=append, cpu=cpu), levels=levels, tests=13)


@pytest.mark.long
@pytest.mark.parametrize("place", stc.PLACES)
@pytest.mark.parametrize("design", IN_SHORT)
def test_debug_kernel(place: str, design: str) -> None:
    """KASAN, lockdep and DEBUG_VM report nothing."""
    check(Check(place, "debug", design=design), tests=13)
