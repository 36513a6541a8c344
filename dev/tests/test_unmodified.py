# SPDX-License-Identifier: Apache-2.0
"""Programs as people have them: output and exit status are the same with every kind as without one, and the summary at the end is
true.

Their scripts are in unmodified/. Everything random in them has a seed, and they do not print times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest import build, served
from trapless.guest.images import dataset, ext4, rootfs
from trapless.guest.job import KINDS, Job, launcher

pytestmark = [pytest.mark.guest, pytest.mark.series]

SCRIPTS = Path(__file__).with_name("unmodified")
DATA = 8 * ext4.MIB


@dataclass(frozen=True)
class Program:
    """A program under test."""

    script: str
    """Name of the script in unmodified/."""
    harts: int = 2

    def command(self) -> list[str]:
        """Return the command that runs the program."""
        return ["python3" if self.script.endswith(".py") else "sh", self.script]


PROGRAMS = (
    Program("pipeline.sh"),
    Program("python.py"),
    Program("memmap.py"),
    Program("sqlite.py"),
    Program("lmdb_processes.py", harts=4),
    Program("db_bench.sh"),
    Program("stress.sh"),
    Program("git.sh"),
)
PACKAGES = ("git", "python3", "python3-lmdb", "python3-numpy", "rocksdb-tools", "stress-ng")
# The ordinary suite uses only what every guest has; the other programs take minutes, and need packages of today.
QUICK = [("pipeline.sh", "ideal", False), ("pipeline.sh", "osdp", True), ("pipeline.sh", "hwdp", False)]
WAYS = [(program.script, kind, share) for program in PROGRAMS for kind in KINDS for share in (False, True)]


@cache
def run(script: str, kind: str | None, share: bool = False) -> guests.Outcome:
    """Run the script in a separate guest. Without a kind, readahead is off, too, so that kinds are the only difference."""
    program = next(program for program in PROGRAMS if program.script == script)
    root = rootfs.image(more=() if script == "pipeline.sh" else PACKAGES)
    guest = guests.Guest(build.kernel(), root, dataset.image(DATA), harts=program.harts,
                         memory="512M", max_seconds=900)
    command = " ".join([*launcher(kind, share), *program.command()])
    return guests.run_on_machine(build.machine(), guest, Job(f"exec {command}", (SCRIPTS / script,)))


def check(script: str, kind: str, share: bool) -> None:
    ours, theirs = run(script, None), run(script, kind, share)
    assert ours.status == 0, ours.console
    assert theirs.console == ours.console
    assert theirs.status == ours.status
    check_summary(kind, theirs)


def check_summary(kind: str, outcome: guests.Outcome) -> None:
    """Check that the last line of a run has the numbers that the drive counted."""
    before = guests.first_command(outcome.stats)["reads"][guests.DATA_DISK - 1]
    after = outcome.stats["disks"][guests.DATA_DISK - 1]["reads"]
    by = {who: after[who]["commands"] - before[who]["commands"] for who in ("unit", "software")}
    line = served.line(kind, outcome)
    numbers = [int(number.replace(",", "")) for number in re.findall(r"(?<![\w.,])[\d,]*\d(?![\w.]| %)", line)]
    if kind in ("osdp", "ideal"):
        assert by["unit"] == 0
        assert numbers[:1] == [by["software"]], line
        return
    # The unit in software reads through queues of Linux.
    hardware = outcome.counters["smu_installed"] if kind == "emulated" else by["unit"]
    assert numbers[:2] == [hardware, by["unit"] + by["software"]], line
    assert by["unit"] == (0 if kind == "emulated" else outcome.counters["smu_commands"])
    if hardware < numbers[1]:
        assert ": " in line.partition("Linux ")[2], line  # a reason


@pytest.mark.parametrize(("script", "kind", "share"), QUICK)
def test_quick(script: str, kind: str, share: bool) -> None:
    check(script, kind, share)


@pytest.mark.long
@pytest.mark.parametrize(("script", "kind", "share"), [way for way in WAYS if way not in QUICK])
def test_all(script: str, kind: str, share: bool) -> None:
    check(script, kind, share)


def test_each_has_a_script() -> None:
    assert {program.script for program in PROGRAMS} == {path.name for path in SCRIPTS.iterdir()}
