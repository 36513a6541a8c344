# SPDX-License-Identifier: Apache-2.0
"""`./trapless profile`: shows where every cycle of a command goes, and what each page miss waits for
(docs/reference/profiling.md)."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path

from rich.console import Console

from trapless.base.outputs import output_folder, write_whole
from trapless.base.ui import UserError, say
from trapless.base.version import git_describe
from trapless.guest import build, run
from trapless.guest.boot import FIRST_COMMAND
from trapless.guest.run import Attribute as Attribute
from trapless.profile import flame
from trapless.profile import page as profile_page
from trapless.results import figures, table
from trapless.results.columns import HIGHER, LOWER, Column, word

BEFORE = ("exception", "fault handling", "file map", "file system", "block layer", "driver")
"""Spans of a page fault before the device (machine/crates/attribution, SPANS)."""
AFTER = ("interrupt delivery", "interrupt", "completion", "context switch", "rest of the fault")
"""Spans of a page fault after the device."""
USER = ("user code", "miss in hardware")
"""Categories of user mode."""
NOT_WORK = ("idle", "miss in hardware")
"""Categories in which a hart executes nothing that another part waits for."""

_KINDS_RECORD = "kinds.json"
_STEPS = (word("name", "step", "A step of a miss."), Column("us", "us", "Mean time of the step.", "us", LOWER, ",.2f"),
          Column("of_device", "% of device", "The same in percent of the device's time.", "%", LOWER, ",.1f"))
_CATEGORIES = (
    word("name", "category", "What harts worked on."),
    Column("us", "us", "Time of all harts.", "us", LOWER, ",.2f"), Column("share", "%", "Share of the time of all harts.", "%",
                                                                          None, ".1f"),
    Column("instructions", "instructions", "Instructions of all harts.", "instructions", LOWER, ",.0f"),
    Column("fault_us", "us in faults", "Time of all harts inside page faults.", "us", LOWER, ",.2f"),
    Column("fault_instructions", "instructions in faults", "Instructions of all harts inside page faults.", "instructions", LOWER,
           ",.0f"))
BEFORE_US = Column("before", "before the device us", "Mean time of software before the device.", "us", LOWER, ",.2f")
DEVICE_PART = Column("device", "device us", "Mean time of a miss at the device.", "us", LOWER, ",.2f")
SMU_US = Column("smu", "SMU us", "Mean time of a miss in the SMU.", "us", LOWER, ",.2f")
AFTER_US = Column("after", "after the device us", "Mean time of software after the device.", "us", LOWER, ",.2f")
WHOLE_US = Column("whole", "whole us", "Mean time of a whole miss.", "us", LOWER, ",.2f")
POLLUTION = Column("pollution", "user code over ideal us", "Time per miss that user code takes longer than with `ideal`.", "us",
                   LOWER, ",.2f")
MISSES_COLUMN = Column("misses", "misses", "Misses that hardware served, or page faults if it served none.", "misses", None, ",d")
OF_KINDS = (figures.KIND, MISSES_COLUMN, figures.OS_FAULTS.but(heading="page faults beside"), BEFORE_US, DEVICE_PART, SMU_US,
            AFTER_US, WHOLE_US, POLLUTION)
"""Columns of the rows that `kind_rows` returns."""
IPC = Column("ipc", "IPC", "Instructions per cycle.", "instructions/cycle", HIGHER, ".3f")
_WHERE = {"l1i": "the first instruction cache", "l1d": "the first data cache", "l2": "the second level", "last": "the last level",
          "itlb": "the instruction TLB", "dtlb": "the data TLB", "walks": "TLBs, so that the page table was walked",
          "branches": "branch prediction"}
EVENTS = {name: Column(name, f"{name}/1000", f"Misses of {where} per 1000 instructions.", "misses/1000 instructions", LOWER,
                       ".2f")
          for name, where in _WHERE.items()}
_MISSES = (word("name", "", "User code or the kernel."), IPC, *EVENTS.values())
"""Columns of the rows that `mode_rows` returns."""


def symbols_of(kernel: Path) -> Path:
    """Return the System.map that belongs to a kernel's image."""
    beside = kernel.parent / "System.map"
    if not beside.is_file():
        raise UserError(f"--kernel {kernel}: no System.map beside it, which has the names of its functions")
    return beside


def profile(request: run.Request, out: Path, since: str | None, symbols: tuple[str, ...], categories: Path | None) -> int:
    """Run a command in a guest and attribute its cycles. Return the command's exit status."""
    if request.simulator != "machine":
        raise UserError("profile does not work with --on qemu: leave --on out")
    run.check(request)
    _prepare(out, symbols, categories)
    kernel = request.kernel or build.kernel(stock=request.stock, series=request.series)
    # Regions of interest exist only with the launcher of a kind.
    since = since or ("roi" if request.kind else f"milestone:{FIRST_COMMAND}")
    attribute = run.Attribute(out, since, (str(symbols_of(kernel)), *symbols), categories)
    request = replace(request, kernel=kernel, stock=False, series=run.Request.series)
    status = run.run(replace(request, stats=out / "stats.json", out=out / "job", attribute=attribute))
    return finish(out, shlex.join(request.argv), (("kind", request.kind or "none"), *_settings(request)), status)


def _settings(request: run.Request) -> tuple[tuple[str, str], ...]:
    readahead = run.readahead_of(request.kind, request.readahead)
    ahead = () if request.data is None else (("readahead of /data", "Linux's own" if readahead is None else f"{readahead} KB"),)
    return ("profile", " ".join([request.profile, *request.settings])), ("data", request.data or "none"), *ahead


def _prepare(out: Path, symbols: tuple[str, ...], categories: Path | None) -> None:
    """Check that the given files exist, and remove results of earlier runs."""
    for file in symbols:
        if not Path(file.rpartition("@")[0] or file).is_file() and not Path(file).is_file():
            raise UserError(f"--symbols {file}: no such file")
    if categories and not categories.is_file():
        raise UserError(f"--categories {categories}: no such file")
    output_folder(out)
    for name in ("profile.json", "stats.json", profile_page.PAGE):
        (out / name).unlink(missing_ok=True)


def compare(request: run.Request, out: Path, since: str | None, symbols: tuple[str, ...], categories: Path | None,
            kinds: tuple[str, ...]) -> int:
    """Profile a command with each kind of paging and compare them. Return the last status that is not 0, or 0."""
    output_folder(out)
    for name in (_KINDS_RECORD, profile_page.PAGE):
        (out / name).unlink(missing_ok=True)
    failed, records = 0, []
    for kind in kinds:
        say(f"kind {kind}")
        status = profile(replace(request, kind=kind), out / kind, since, symbols, categories)
        if status and not (out / kind / "profile.json").exists():
            return status
        failed = status or failed
        records.append((kind, json.loads((out / kind / "profile.json").read_text()),
                        json.loads((out / kind / "stats.json").read_text())))
    rows = kind_rows(records)
    write_whole(out / _KINDS_RECORD, json.dumps(rows, indent=1) + "\n")
    console = _console()
    console.print("Time of a page miss by kind (THESIS figure 5.4), us:")
    table.show(rows, console, OF_KINDS)
    facts = _facts(shlex.join(request.argv), _settings(replace(request, kind=kinds[0])))
    profile_page.write_kinds(out, rows, OF_KINDS, list(kinds), facts)
    say(f"page over all kinds: {out / profile_page.PAGE}")
    return failed


def _facts(command: str, more: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Return the facts for the head of a page: where its results come from."""
    return [("command", command), *more, ("version", git_describe() or "-")]


def kind_rows(records: list[tuple[str, dict, dict]]) -> list[dict]:
    """Make one row for each kind from its profile and its stats: time of software before and after the device, of the device, and
    of the SMU. `pollution` is how much longer user code took than with `ideal`, if `ideal` was measured."""
    base = next((user_us(record) for kind, record, _ in records if kind == "ideal"), None)
    rows = []
    for kind, record, stats in records:
        if kind == "ideal":
            continue
        count = pages(record, stats)
        walks, ports = (_served(stats, key) for key in ("hw_miss", "port_miss"))
        by_hardware = sum(miss["count"] for miss in walks)
        row = {"kind": kind, "misses": by_hardware or count, "os_faults": record["faults"]["count"] if by_hardware else None}
        if walks:
            row |= {"before": 0.0, "device": _mean(walks, "device_mean_us"), "smu": _mean(walks, "nondevice_mean_us"),
                    "after": 0.0, "whole": _mean(walks, "mean_us")}
        elif count:
            spans = record["faults"]["spans_us"]
            device = _mean(ports, "device_mean_us") if ports else spans["device"]
            row |= {"before": sum(spans[name] for name in BEFORE), "device": device, "smu": spans["device"] - device,
                    "after": sum(spans[name] for name in AFTER), "whole": record["faults"]["mean_us"]}
        if base is not None and count:
            row["pollution"] = (user_us(record) - base) / count
        rows.append(row)
    return rows


def _served(stats: dict, key: str) -> list[dict]:
    """Return the machine's figures for misses in hardware (`hw_miss`, `port_miss`), for each region that had some."""
    return [region[key] for region in figures.regions(stats) if region[key]["count"]]


def _mean(misses: list[dict], *keys: str) -> float | None:
    """Return the mean, over all misses, of the value under these keys."""
    return figures.mean([(miss["count"], reduce(getitem, keys, miss)) for miss in misses])


def user_us(record: dict) -> float:
    """Return the time of user code in a profile, of all harts together, in us."""
    return record["categories"]["user code"]["cycles"] * 1e6 / record["clock_hz"]


def profile_elf(elf: Path, profile_name: str, settings: tuple[str, ...], detail: str | None, out: Path, since: str | None,
                symbols: tuple[str, ...], categories: Path | None, options: tuple[str, ...] = ()) -> int:
    """Profile a bare-metal ELF file. `options` are additional options of the machine."""
    _prepare(out, symbols, categories)
    attribute = run.Attribute(out, since or "start", symbols, categories)
    status = run.run_elf(elf, profile_name, settings, detail,
                         (*attribute.options(), "--json", str(out / "stats.json"), *options))
    return finish(out, elf.name, (("profile", " ".join([profile_name, *settings])),), status)


def finish(out: Path, command: str, settings: tuple[tuple[str, str], ...] = (), status: int = 0) -> int:
    """Draw the flame graph, write the page, and show the tables for the results that the machine left in `out`. Returns the run's
    status. The page shows `settings`. If the machine refused its input, there are no results, and its message was already
    printed."""
    if status and not (out / "profile.json").exists():
        return status
    record, stats = json.loads((out / "profile.json").read_text()), json.loads((out / "stats.json").read_text())
    if not record["windows"]:
        raise UserError("profile: nothing was measured: the guest never reached the beginning (--from; with --kind the first "
                        "mapping of a file in /data)")
    with open(out / "stacks.folded") as lines:
        root = flame.tree(lines, without=frozenset({"[asleep]"}))
    graph = flame.svg(root, f"cycles by stack of calls: {command}")
    write_whole(out / "flame.svg", graph)
    console = _console()
    if record["faults"]["count"]:
        console.print(f"A page fault served by the operating system (mean of {record['faults']['count']:,}):")
        table.show(fault_rows(record), console, _STEPS)
    for name, key in (("page walks", "hw_miss"), ("the page fault handler", "port_miss")):
        if misses := _served(stats, key):
            console.print(f"A miss served by the hardware, asked by {name} (mean of {sum(miss['count'] for miss in misses):,}):")
            table.show(miss_rows(misses), console, _STEPS)
    if line := without_read(record):
        console.print(f"{line}.")
    count = pages(record, stats)
    tables = [(f"Work of all harts by category, per page miss (of {count:,}):" if count else "Work of all harts by category:",
               category_rows(record, count), _CATEGORIES)]
    if rows := mode_rows(record):
        tables.append(("Misses of user code and of the kernel per 1000 of their instructions:", rows, _MISSES))
    for heading, rows, columns in tables:
        console.print(heading)
        table.show(rows, console, columns)
    profile_page.write(out, record, _facts(command, settings), tables, (graph, root.total))
    if cut := {name: n for name, n in record["cut"].items() if n}:
        say(f"trace.json and the .jsonl files are limited in size; they lack: {cut}")
    say(f"page: {out / profile_page.PAGE}, timeline: {out / 'trace.json'} (ui.perfetto.dev), "
        f"flame graph: {out / 'flame.svg'}, record: {out / 'profile.json'}")
    return status


def _console() -> Console:
    return Console(width=None if os.isatty(1) else 140, highlight=False)


def without_read(record: dict) -> str | None:
    """Say how many page faults waited for no read, and how long they took. None if there were none."""
    count, mean = record["minor_faults"]["count"], record["minor_faults"]["mean_us"]
    if not count:
        return None
    return (f"Page faults without a read: {count:,}, {count * mean:,.0f} us in all ({mean:,.1f} us on average). In them Linux "
            "prepares mappings, page tables and the program's own memory")


def mode_rows(record: dict) -> list[dict]:
    """Return IPC and misses of caches, TLBs and predictors per 1000 instructions, for user code and for the rest (ISCA20 figure
    14); empty if timing was not detailed."""
    rows = []
    for name, mine in (("user", True), ("kernel", False)):
        # A miss in hardware stalls an instruction of the user. The waiting time counts neither for user code nor for the kernel.
        work = [(category, spent) for category, spent in record["categories"].items()
                if category != "idle" and (category in USER) == mine]
        instructions = sum(spent["instructions"] for _, spent in work)
        cycles = sum(spent["cycles"] for category, spent in work if category not in NOT_WORK)
        misses = [spent["misses"] for _, spent in work if "misses" in spent]
        if instructions and misses:
            rows.append({"name": name, "ipc": instructions / cycles,
                         **{kind: 1000 * sum(m[kind] for m in misses) / instructions for kind in misses[0]}})
    return rows


def pages(record: dict, stats: dict) -> int:
    """Return the number of page misses: faults that waited for a device, and misses that hardware served for page walks."""
    return record["faults"]["count"] + sum(miss["count"] for miss in _served(stats, "hw_miss"))


def fault_rows(record: dict) -> list[dict]:
    """Return the steps of a page fault, and their sums before and after the device (ISCA20 figures 3 and 11, THESIS figure
    5.4)."""
    spans = record["faults"]["spans_us"]
    rows = [(name, spans[name]) for name in spans]
    rows += [("before the device", sum(spans[name] for name in BEFORE)), ("the device", spans["device"]),
             ("after the device", sum(spans[name] for name in AFTER)), ("whole", record["faults"]["mean_us"])]
    return _step_rows(rows, spans["device"])


def miss_rows(misses: list[dict]) -> list[dict]:
    """Return the steps of a miss in hardware: means over the misses of all regions."""
    steps = [(name, _mean(misses, "steps", name)) for name in misses[0]["steps"]]
    return _step_rows([*steps, ("whole", _mean(misses, "mean_us"))], _mean(misses, "device_mean_us"))


def _step_rows(rows: list[tuple[str, float]], device: float) -> list[dict]:
    return [{"name": name, "us": us, "of_device": 100 * us / device if device else None} for name, us in rows]


def category_rows(record: dict, count: int) -> list[dict]:
    """Return the categories with their time and instructions, for each page miss if there are any. The largest is first; idle
    ones are left out."""
    per = max(count, 1)
    work = {name: spent for name, spent in record["categories"].items() if name not in NOT_WORK and spent["cycles"]}
    whole = sum(spent["cycles"] for spent in work.values())
    us = 1e6 / record["clock_hz"] / per
    rows = [{"name": name, "us": spent["cycles"] * us, "share": 100 * spent["cycles"] / whole,
             "instructions": spent["instructions"] / per, "fault_us": record["in_faults"][name]["cycles"] * us,
             "fault_instructions": record["in_faults"][name]["instructions"] / per} for name, spent in work.items()]
    return sorted(rows, key=lambda row: -row["us"])
