# SPDX-License-Identifier: Apache-2.0
"""A control group pays for its own misses with memory and time, and no other group pays for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import dataset, ext4
from trapless.guest.job import Job, launcher
from trapless.guest.programs import cross

pytestmark = [pytest.mark.guest, pytest.mark.series]

MIB = 64
LIMIT = 16 * ext4.MIB
BATCH = 64 * ext4.BLOCK
READ_US = {"server": 10.5, "vc707": 28}
"""Minimum time in us that the profile's drive takes for a page."""


@pytest.fixture
def run(program: Path, patched: Path, root: Path) -> Callable[..., dict[str, float]]:
    """Return a function: (mode of cgroups.c, kind) -> the figures that it printed."""
    binary = cross.compile_program("cgroups", [Path(__file__).with_name("cgroups.c")])

    def boot(mode: str, kind: str = "hwdp", profile: str = "server", kernel: Path = patched) -> dict[str, float]:
        guest = guests.Guest(kernel, root, dataset.image(MIB * ext4.MIB), profile=profile, harts=4, max_seconds=600,
                             populate=None)
        other = "dd if=/data/random.bin of=/data/other.bin bs=1M count=32 conv=fsync 2> /dev/null && "
        other += "echo 3 > /proc/sys/vm/drop_caches"
        outcome = guests.run_on_machine(program, guest, Job(f"{other} && {' '.join(launcher(kind))} ./{binary.name} {mode}",
                                                            (binary,)))
        assert outcome.status == 0, outcome.console
        lines = (line.split() for line in outcome.console.splitlines())
        return {words[0]: float(words[1]) for words in lines if len(words) == 2}
    return boot


def test_memory_max_is_kept(run: Callable[..., dict[str, float]]) -> None:
    """A file is read twice at random in a quarter of its size: memory never exceeds the limit, nothing is killed, and every miss
    counts."""
    seen = run("max")
    assert seen["peak"] <= LIMIT
    assert seen["max_events"] > 0
    assert seen["oom_kills"] == 0
    assert seen["pgmajfault"] >= seen["majflt"] >= MIB * ext4.MIB // ext4.BLOCK


def test_memory_high_is_kept(run: Callable[..., dict[str, float]]) -> None:
    seen = run("high")
    assert seen["peak"] <= LIMIT + 4 * BATCH
    assert seen["high_events"] > 0


@pytest.mark.parametrize("profile", ["server", "vc707"])
def test_memory_high_is_kept_by_who_has_nothing_to_give(run: Callable[..., dict[str, float]], profile: str) -> None:
    """memory.high is not exceeded batch by batch while reclaim pauses because it found nothing."""
    assert run("vain", profile=profile)["peak"] <= LIMIT + 8 * BATCH


def test_a_full_group_keeps_nobody_from_hardware(run: Callable[..., dict[str, float]]) -> None:
    """Nothing of group a's memory can be reclaimed: pages that hardware reads for a are given up again, and b's misses are
    served."""
    seen = run("full")
    assert seen["peak"] <= LIMIT
    assert seen["a_lives"]


def test_who_yields_goes_on(run: Callable[..., dict[str, float]]) -> None:
    """Another user's misses take a file's area from threads that read and write it: none of these threads dies."""
    seen = run("turns", profile="vc707")
    assert seen["a_lives"] and seen["b_lives"]
    assert seen["areas"] > 3


def test_the_group_has_the_time(run: Callable[..., dict[str, float]]) -> None:
    seen = run("time")
    assert seen["background_us"] > 10_000
    assert seen["charged_us"] >= 0.95 * (seen["background_us"] - seen["others_us"])
    assert seen["others_us"] <= 0.1 * seen["background_us"]


@pytest.mark.long
@pytest.mark.parametrize("profile", ["server", "vc707"])
def test_waits_are_pressure(run: Callable[..., dict[str, float]], profile: str) -> None:
    """The time that a walker waits is in its group's io.pressure, and each page is in its io.stat, as if Linux had read it."""
    pages = MIB * ext4.MIB // ext4.BLOCK
    kernel = build.kernel(configs=("groups.config",))
    seen, ordinary = (run("pressure", kind, profile, kernel) for kind in ("hwdp", "osdp"))
    for each in (seen, ordinary):
        assert each["io_bytes"] == each["io_reads"] * ext4.BLOCK >= pages * ext4.BLOCK
        assert each["some_us"] < each["took_us"]
    assert seen["some_us"] >= pages * READ_US[profile]


@pytest.mark.long
@pytest.mark.parametrize("profile", ["server", "vc707"])
def test_a_bandwidth_is_little_beyond_its_limit(run: Callable[..., dict[str, float]], profile: str) -> None:
    """A group with a limit of a fifth of a hart misses as fast as it can. Another group, which wants all harts, has nearly as
    much time as with OS paging, because the first group pays for the adoption of its pages."""
    kernel = build.kernel(configs=("groups.config",))
    seen, ordinary = (run("bandwidth", kind, profile, kernel) for kind in ("hwdp", "osdp"))
    assert seen["b_part"] >= 0.9 * ordinary["b_part"]


@pytest.mark.long
def test_a_debt_is_of_todays_limit(run: Callable[..., dict[str, float]]) -> None:
    """A group owes at most sixteen times its present quota, here a hundredth of a hart. Without a quota it owes nothing."""
    seen = run("debt", profile="vc707", kernel=build.kernel(configs=("groups.config",)))
    assert seen["after_more"] <= 2
    assert seen["after_none"] <= 0.5


@pytest.mark.parametrize("profile", ["server", "vc707"])
def test_who_does_not_miss_does_not_pay(run: Callable[..., dict[str, float]], profile: str) -> None:
    assert run("idle", profile=profile)["idle_us"] <= 100


def test_charges_follow_the_process_and_hold_nothing(run: Callable[..., dict[str, float]]) -> None:
    """A kernel thread that works for a group is not a member of it: a group without processes can be removed, and a frozen group
    stays frozen."""
    seen = run("moves")
    assert seen["removed_a"] and seen["removed_b"] and not seen["populated_b"]
    assert seen["frozen"] == seen["stays_frozen"] == 1
    assert seen["b_has"] > seen["a_had"] / 4
