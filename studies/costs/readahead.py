# SPDX-License-Identifier: Apache-2.0
"""Sequential, random and populate reads of a cold file through `run`: with Linux's readahead, without it, and with kinds.

The rows show what a kind changes, and what Linux does by itself. The readahead of each row is the value that the guest's kernel
reports.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest import build, kept, run
from trapless.guest.programs import cross
from trapless.loads.setup import Setup
from trapless.results import figures
from trapless.results.columns import LOWER, Column, word
from trapless.study.experiment import Experiment, Table
from trapless.sweeps import record

ACCESSES = ("sequential", "random", "populate")
WAYS: tuple[tuple[str, dict], ...] = (
    ("stock Linux", {"stock": True}),
    ("stock Linux --readahead 0", {"stock": True, "readahead": 0}),
    ("--kind osdp", {"kind": "osdp"}),
    ("--kind osdp --readahead 128", {"kind": "osdp", "readahead": 128}),
    ("--kind hwdp", {"kind": "hwdp"}),
)
"""Options of `run`."""
SIZE, QUICK_SIZE = "256M", "64M"
PROFILE = "server"
_FORM = "readahead 1"


def run_of(setup: Setup, way: dict, access: str) -> kept.Run:
    """Return one run, prepared in the same way as by `./trapless run`."""
    data = QUICK_SIZE if setup.quick else SIZE
    kernel = setup.kernel_of(way.get("stock", False))
    request = run.Request(["./reads", access, "/data/random.bin"], inputs=(program(),), data=data, profile=PROFILE,
                          settings=setup.settings, kernel=kernel, harts=1, max_seconds=600,
                          **{name: value for name, value in way.items() if name != "stock"})
    guest, job = run.prepare(request)
    return kept.Run(f"{access}, {way}", guest, job, partial(take, way.get("kind")), _FORM)


def program() -> Path:
    """Return the program that reads."""
    return cross.compile_program("reads", [Path(__file__).with_name("reads") / "reads.c"])


def take(kind: str | None, outcome: guests.Outcome, folder: Path) -> dict:
    """Make the record of a run: the program's own figures, and the readahead of the guest's kernel."""
    found = record.of_program(folder / "out")
    return {name: found[name] for name in ("bandwidth_mb_s", "major_faults", "sum")} | {"readahead_kb": outcome.readahead}


def measure(setup: Setup) -> list[dict]:
    """Return one record for each combination of options and access."""
    cases = [(name, way, access) for name, way in WAYS for access in ACCESSES]
    runs = [run_of(setup, way, access) for _, way, access in cases]
    found = kept.records(build.machine(), runs, setup.at_once)
    if len({one["sum"] for one in found}) > 1:
        raise UserError("readahead: the ways of reading returned different bytes")
    return [{"way": name, "access": access, **one, "configuration": kept.configuration(run)}
            for (name, _, access), run, one in zip(cases, runs, found, strict=True)]


EXPERIMENT = Experiment("reads with Linux's own readahead, without it, and with kinds", measure, {"readahead": Table((
    word("way", "options of run", "The options of `./trapless run`."),
    word("access", "reads", "In which order one thread reads the file."),
    figures.READAHEAD_KB,
    figures.BANDWIDTH.but(meaning="Bytes of the file divided by the time to read it.", form=",.0f"),
    Column("major_faults", "major faults", "Page faults that Linux counts as major: they waited for the drive.", "faults", LOWER,
           ",d"),
), keys=2)}, about="On profile server, one thread reads every page of a cold file through a mapping, in order or scattered, or "
                   "lets the kernel populate the mapping. The readahead is the value that the guest's kernel reports for its "
                   "data disk.")
