# SPDX-License-Identifier: Apache-2.0
"""One boot, one program that faults, and where its cycles went; kept, so figures share their runs."""

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
"""Functions whose calls and cycles with all that they call are kept."""
STOCK = "stock"
"""The variant that is no variant: the unpatched kernel."""
HUGEPAGES = "/sys/kernel/mm/transparent_hugepage"
SERIES = ("stc",)
LOW_MIB, SPARE_MIB = 2048, 512
"""Memory below 4 GiB (Linux's ZONE_DMA32), and what Linux itself needs."""
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
"""Columns of the records that `figures` returns, and of the time of a run. Those of the handler can be compared with the
unpatched kernel, whose walk is in the handler."""


@dataclass(frozen=True)
class Case:
    """One run."""

    command: str
    """In the guest; makes one region of interest."""
    words: str = "stc=off"
    """For the kernel's command line, or STOCK."""
    paging: str = ""
    """`sv39`, `sv48`, `sv57`; empty: the profile's own."""
    pages: int = 1
    """Pages of 4 KiB that a fault on anonymous memory allocates (a power of two, 1 or from 4 on)."""
    memory_mib: int = 1024
    """Memory that the command needs."""
    attributed: bool = True
    """By function; otherwise only the region's cycles are known, sooner."""
    packages: tuple[str, ...] = ()
    """Debian packages in the guest's root file system."""

    @property
    def title(self) -> str:
        """What to call it."""
        parts = (self.command, self.words, self.paging, f"{self.pages} pages" if self.pages > 1 else "")
        return ", ".join(part for part in parts if part)

    def script(self) -> str:
        """What the guest does. What the kernel says of the cache comes back, for it goes on without one if it does not
        understand its words."""
        lines = []
        if self.pages > 1:
            size = f"{HUGEPAGES}/hugepages-{4 * self.pages}kB/enabled"
            lines = [f"[ -e {size} ] || {{ echo 'the kernel has no {size}'; exit 1; }}",
                     f"for f in {HUGEPAGES}/hugepages-*/enabled; do echo never > $f; done", f"echo always > {size}"]
        return "\n".join([*lines, f"{self.command} || exit $?", "dmesg | grep ' stc: ' || true"])


def kernel(setup: Setup, case: Case) -> Path:
    """The kernel that a case runs on. The quick form builds one alone of those with the cache, which does for all cases."""
    if case.words == STOCK:
        return setup.kernel_of(stock=True)
    configs = ("huge.config",) if case.pages > 1 or setup.quick else ()
    return setup.kernel or setup.built((SERIES, configs), lambda: build.kernel(series=SERIES, configs=configs))


def _memory_mib(case: Case) -> int:
    """All below 4 GiB, or enough above for all that the command needs. Linux fills what is above first; once that has only pages
    left that are not for user memory, each allocation takes the zone's lock and looks there in vain, or does not, by chance
    (ALLOC_NOFRAGMENT): with two threads faults were 70 % longer in half of the boots."""
    whole = case.memory_mib + SPARE_MIB
    return whole if whole <= LOW_MIB else whole + LOW_MIB


def guest(setup: Setup, case: Case) -> guests.Guest:
    """The guest that a case boots."""
    paging = (f"machine.paging={case.paging}",) if case.paging else ()
    setup.leaves(paging)
    image = kernel(setup, case)
    attribute = profiling.Attribute(Path(kept.FOLDER, _ATTRIBUTE), "roi", (str(profiling.symbols_of(image)),), CATEGORIES)
    root = setup.once(("root", case.packages), lambda: rootfs.image(more=case.packages))
    return guests.Guest(image, root, profile=PROFILE, settings=(*paging, *setup.settings), detail="roi", smu=False,
                        memory=f"{_memory_mib(case)}M", append="" if case.words == STOCK else case.words,
                        options=(*attribute.options(), "--attribute-limit", "0") if case.attributed else ())


def run_of(setup: Setup, case: Case) -> kept.Run:
    """The run of a case."""
    booted = guest(setup, case)
    depends = (CATEGORIES, profiling.symbols_of(booted.kernel)) if case.attributed else ()
    return kept.Run(case.title, booted, Job(case.script()), partial(_take, case), _FORM, depends, case.memory_mib)


def records(setup: Setup, cases: Sequence[Case]) -> list[dict]:
    """What each case gave, and its configuration; those that are not known are run."""
    runs = {case: run_of(setup, case) for case in dict.fromkeys(cases)}
    found = kept.records(build.machine(), [runs[case] for case in cases], setup.at_once)
    return [{**record, "configuration": kept.configuration(runs[case])} for case, record in zip(cases, found, strict=True)]


def _take(case: Case, outcome: guests.Outcome, folder: Path) -> dict:
    if "stc: " in outcome.console and "not understood" in outcome.console:
        raise UserError(f"{case.title}: the kernel does not know {case.words}")
    profile = json.loads((folder / _ATTRIBUTE / "profile.json").read_text()) if case.attributed else None
    return take(outcome.stats, profile, outcome.console, shlex.split(case.command)[0])


def take(stats: dict, profile: dict | None, console: str, task: str) -> dict:
    """What is kept of a run: the region's cycles and instructions; of an attributed one, by category, those spent in page
    faults of user accesses, and the cycles that the task had in all."""
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
    """Cycles of a fault on average, from the trap until user code goes on, interrupts on the way apart; of it the walk of the
    upper levels, and the tables that it made. None where the kernel has no walk to see."""
    faults, inside, functions = record["faults"], record["fault"], record["functions"]
    whole = sum(inside.values()) - inside[INTERRUPT]
    walk = inside[WALK] if "fault_walk" in functions else None
    handler = functions.get("__handle_mm_fault")
    # Each walk that does not end in the cache's lowest level fills it; that of the default design has no function for that.
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
