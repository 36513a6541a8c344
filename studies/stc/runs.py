# SPDX-License-Identifier: Apache-2.0
"""Makes the record of one boot with one program that causes page faults: where its cycles went. Records are cached, so figures
share runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest import build, kept
from trapless.guest.images import rootfs
from trapless.guest.job import Job
from trapless.loads.setup import Setup
from trapless.profile import profiling
from trapless.results import figures as shared
from trapless.results.columns import HIGHER, LOWER, Column

PROFILE = "server"
CATEGORIES = Path(__file__).with_name("categories.toml")
WALK, TABLES, INTERRUPT = "page table walk", "page tables made", "interrupt"
"""Categories that figures need by name."""
FUNCTIONS = ("fault_walk", "fault_walk_tables", "stc_fill", "__handle_mm_fault")
"""Functions whose calls and cycles (including everything that they call) are recorded."""
STOCK = "stock"
"""Name for the unpatched kernel in the list of variants."""
HUGEPAGES = "/sys/kernel/mm/transparent_hugepage"
SERIES = ("stc",)
LOW_MIB, SPARE_MIB = 2048, 512
"""Memory below 4 GiB (Linux's ZONE_DMA32), and memory that Linux itself needs, in MiB."""
_ATTRIBUTE = "attribute"
"""Folder of a run for the machine's attribution."""
_FORM = "stc 5"
"""Version of the records below. It is raised when they change."""
CYCLES = Column("cycles", "cycles", "Cycles of the whole region of interest.", "cycles", LOWER, ",.0f")
SPENT = (CYCLES, shared.INSTRUCTIONS.but(meaning="Instructions of all harts in the region of interest."), shared.HOST_SECONDS)
FAULTS = Column("faults", "page faults", "Page faults of user accesses.", "faults", None, ",.0f")
WALK_CYCLES = Column("walk", "walk cycles", "Cycles per fault of the walk from the root to the entry of the last table but one.",
                     "cycles", LOWER, ",.1f")
TABLES_MADE = Column("tables", "tables made, cycles", "Cycles per fault in which tables are made.", "cycles", LOWER, ",.1f")
FAULT_CYCLES = Column("fault", "fault cycles", "Cycles of a fault from its trap until user code goes on, without interrupts.",
                      "cycles", LOWER, ",.0f")
WALK_INSTRUCTIONS = Column("walk_instructions", "walk instructions", "Instructions of a walk.", "instructions", LOWER, ",.1f")
HITS = Column("hits", "hits %", "Walks that found the entry of the last table but one at once.", "%", HIGHER, ".1f")
FAULT_SHARE = Column("fault_share", "time in faults %", "Share of the program's time in page faults.", "%", LOWER, ".1f")
WALK_SHARE = Column("walk_share", "time in walks %", "Share of the program's time in walks.", "%", LOWER, ".2f")
WALK_OF_FAULT = Column("walk_of_fault", "walk, % of the fault", "Walk cycles in percent of fault cycles.", "%", LOWER, ".2f")
WALK_OF_HANDLER = Column("walk_of_handler", "walk, % of its handler",
                         "Walk cycles in percent of all cycles of __handle_mm_fault.", "%", LOWER, ".2f")
HANDLER = Column("handler", "handler cycles", "Cycles per fault of __handle_mm_fault's own code and the walk.", "cycles", LOWER,
                 ",.1f")
COLUMNS = (*SPENT, FAULTS, WALK_CYCLES, TABLES_MADE, FAULT_CYCLES, WALK_INSTRUCTIONS, HITS, FAULT_SHARE, WALK_SHARE,
           WALK_OF_FAULT, WALK_OF_HANDLER, HANDLER)
"""Columns of the records that `figures` returns, and of the run time. Those of the handler can be compared with the unpatched
kernel, in which the walk is part of the handler."""


@dataclass(frozen=True)
class Case:
    """One run."""

    command: str
    """Command in the guest. It marks one region of interest."""
    words: str = "stc=off"
    """Words for the kernel's command line, or STOCK."""
    paging: str = ""
    """`sv39`, `sv48`, `sv57`; empty: the profile's paging."""
    pages: int = 1
    """Pages of 4 KiB that a fault on anonymous memory allocates (a power of two, 1 or from 4 on)."""
    memory_mib: int = 1024
    """MiB of memory that the command needs."""
    attributed: bool = True
    """Whether cycles are attributed to functions. Otherwise only the region's cycles are known, and the run is faster."""
    packages: tuple[str, ...] = ()
    """Debian packages in the guest's root file system."""

    @property
    def title(self) -> str:
        """Return the title of the run."""
        parts = (self.command, self.words, self.paging, f"{self.pages} pages" if self.pages > 1 else "")
        return ", ".join(part for part in parts if part)

    def script(self) -> str:
        """Return the guest's script. It also prints the kernel's messages about the cache, because a kernel that does not
        understand the command line continues without a cache."""
        lines = []
        if self.pages > 1:
            size = f"{HUGEPAGES}/hugepages-{4 * self.pages}kB/enabled"
            lines = [f"[ -e {size} ] || {{ echo 'the kernel has no {size}'; exit 1; }}",
                     f"for f in {HUGEPAGES}/hugepages-*/enabled; do echo never > $f; done", f"echo always > {size}"]
        return "\n".join([*lines, f"{self.command} || exit $?", "dmesg | grep ' stc: ' || true"])


def kernel(setup: Setup, case: Case) -> Path:
    """Return the kernel of a case. The quick form uses one kernel with the cache for all cases."""
    if case.words == STOCK:
        return setup.kernel_of(stock=True)
    configs = ("huge.config",) if case.pages > 1 or setup.quick else ()
    return setup.kernel or setup.built((SERIES, configs), lambda: build.kernel(series=SERIES, configs=configs))


def _memory_mib(case: Case) -> int:
    """Return the guest's memory: all of it below 4 GiB, or enough above 4 GiB for everything that the command needs. Linux fills
    the upper zone first. When it has only pages left that are not for user memory, each allocation takes the zone's lock and
    searches without success, or does not, by chance (ALLOC_NOFRAGMENT): with two threads, faults were 70 % longer in half of the
    boots."""
    whole = case.memory_mib + SPARE_MIB
    return whole if whole <= LOW_MIB else whole + LOW_MIB


def guest(setup: Setup, case: Case) -> guests.Guest:
    """Return the guest of a case."""
    paging = (f"machine.paging={case.paging}",) if case.paging else ()
    setup.leaves(paging)
    image = kernel(setup, case)
    attribute = profiling.Attribute(Path(kept.FOLDER, _ATTRIBUTE), "roi", (str(profiling.symbols_of(image)),), CATEGORIES)
    root = setup.once(("root", case.packages), lambda: rootfs.image(more=case.packages))
    return guests.Guest(image, root, profile=PROFILE, settings=(*paging, *setup.settings), detail="roi", smu=False,
                        memory=f"{_memory_mib(case)}M", append="" if case.words == STOCK else case.words,
                        options=(*attribute.options(), "--attribute-limit", "0") if case.attributed else ())


def run_of(setup: Setup, case: Case) -> kept.Run:
    """Return the run of a case."""
    booted = guest(setup, case)
    depends = (CATEGORIES, profiling.symbols_of(booted.kernel)) if case.attributed else ()
    return kept.Run(case.title, booted, Job(case.script()), partial(_take, case), _FORM, depends, case.memory_mib)


def records(setup: Setup, cases: Sequence[Case]) -> list[dict]:
    """Return the record of each case, with its configuration. Cases without a record are run."""
    runs = {case: run_of(setup, case) for case in dict.fromkeys(cases)}
    found = kept.records(build.machine(), [runs[case] for case in cases], setup.at_once)
    return [{**record, "configuration": kept.configuration(runs[case])} for case, record in zip(cases, found, strict=True)]


def _take(case: Case, outcome: guests.Outcome, folder: Path) -> dict:
    if "stc: " in outcome.console and "not understood" in outcome.console:
        raise UserError(f"{case.title}: the kernel does not know {case.words}")
    profile = json.loads((folder / _ATTRIBUTE / "profile.json").read_text()) if case.attributed else None
    return take(outcome.stats, profile, outcome.console, shlex.split(case.command)[0])


def take(stats: dict, profile: dict | None, console: str, task: str) -> dict:
    """Make the record of a run: the region's cycles and instructions; for an attributed run also those by category in page faults
    of user accesses, and the cycles of the whole task."""
    region = stats["rois"][0]
    record = {
        "console": console,
        "cycles": region["end_cycle"] - region["begin_cycle"],
        "instructions": sum(region["instructions"].values()),
        "host_seconds": region["host_seconds"],
    }
    if profile is None:
        return record
    return record | {
        "faults": profile["faults"]["count"] + profile["minor_faults"]["count"],
        "fault": {name: spent["cycles"] for name, spent in profile["in_faults"].items()},
        "fault_instructions": {name: spent["instructions"] for name, spent in profile["in_faults"].items()},
        "task": profile["tasks"][task]["cycles"],
        "functions": {line["name"]: {"calls": line["calls"], "own": line["cycles"], "cycles": line["inclusive_cycles"]}
                      for line in profile["functions"] if line["name"] in FUNCTIONS},
    }


def figures(record: dict) -> dict:
    """Return the mean cycles of a fault, from the trap until user code continues, without interrupts; its walk of the upper
    levels; and the tables that it made. None if the kernel has no separate walk."""
    faults, inside, functions = record["faults"], record["fault"], record["functions"]
    whole = sum(inside.values()) - inside[INTERRUPT]
    walk = inside[WALK] if "fault_walk" in functions else None
    handler = functions.get("__handle_mm_fault")
    # A walk that does not end in the cache's lowest level fills that level. In the default design, no function does this.
    misses = next((functions[name]["calls"] for name in ("stc_fill", "fault_walk_tables") if name in functions), 0)
    return {
        "faults": faults,
        "walk": walk and walk / faults,
        "tables": inside[TABLES] / faults,
        "fault": whole / faults,
        "walk_instructions": walk and record["fault_instructions"][WALK] / faults,
        "hits": walk and 100 * (1 - misses / functions["fault_walk"]["calls"]),
        "fault_share": 100 * whole / record["task"],
        "walk_share": walk and 100 * walk / record["task"],
        "walk_of_fault": walk and 100 * walk / whole,
        "walk_of_handler": walk and handler and 100 * walk / handler["cycles"],
        "handler": handler and (handler["own"] + (walk or 0)) / faults,
    }
