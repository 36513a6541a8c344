# SPDX-License-Identifier: Apache-2.0
"""What is kept of a point's run, and the forms in which a sweep leaves it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from lab.experiments import quantities
from lab.programs import dbbench
from lab.report.table import Column
from lab.runner import ending, figures, kept, served
from lab.runner import guest as guests
from lab.sweeps.grid import text
from lab.ui import UserError
from lab.version import git_describe

_SHOWN = ("ops_per_second", "ops", "mean_us", "p50_us", "p99_us", "wrong", "device_us", "nondevice_us", "hw_misses", "os_faults",
          "kernel_instructions", "region_seconds", "sim_seconds", "readahead_kb")
"""Figures of the terminal's table, as far as there are any; a program's own come first."""
_KNOWN = {*_SHOWN, "p999_us", "bandwidth_mb_s", "runtime_seconds", "resident", "distinct_pages", "region_hw_misses",
          "region_os_faults", "user_instructions", "instructions", "host_seconds", "mips", "data_reads", "data_reads_by_hardware"}


def quantity(name: str) -> quantities.Quantity:
    """What a figure of a run is: of a program's own, its name's end says it (docs/sweeps.md)."""
    return quantities.of(name) if name in _KNOWN else quantities.by_end(name)


def of_ycsb(text: str) -> dict:
    """Figures of the YCSB driver."""
    said = json.loads(text)
    return {"ops_per_second": said["ops_per_second"], "wrong": said["wrong"],
            **{key: said["all"][key] for key in ("ops", "mean_us", "p50_us", "p99_us", "p999_us")}}


def of_any(text: str) -> dict:
    """Figures of a program of the user's: names and numbers."""
    said = json.loads(text)
    if not isinstance(said, dict) or not all(isinstance(value, int | float) for value in said.values()):
        raise UserError("not a table of names and numbers")
    return said


REPORTS: dict[str, Callable[[str], dict]] = {
    "fio.json": lambda text: figures.of_fio(json.loads(text)), "ycsb.json": of_ycsb, "dbbench.txt": dbbench.figures,
    "figures.json": of_any}
"""Files of /job/out that have figures, and what takes them."""


def of_program(out: Path) -> dict:
    """What the program itself reports, in files of these names. UserError names one that is not what its name says."""
    found: dict = {}
    for name, take_it in REPORTS.items():
        try:
            found |= take_it((out / name).read_text())
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, UserError) as error:
            raise UserError(f"/job/out/{name}: {error}") from None
    return found


def of_machine(kind: str | None, stats: dict) -> dict:
    """What the machine counted in regions of interest, if there are any."""
    regions = figures.regions(stats)
    return figures.of_regions(kind, regions) if regions else {}


def take(kind: str | None, outcome: guests.Outcome, folder: Path) -> dict:
    """What is kept of a run, however it ended."""
    return of_run(kind, outcome, folder / "out")


def of_run(kind: str | None, outcome: guests.Outcome, out: Path) -> dict:
    """The figures of a run whose files of /job/out are in `out`, and what is behind them."""
    stats, found, wrong = outcome.stats, {}, {}
    for taken in (lambda: of_program(out), lambda: of_machine(kind, stats)):
        try:
            found |= taken()
        except UserError as error:
            wrong = {"status": ending.FAILED, "line": str(error)}
    found |= served.figures(kind, outcome)
    found |= {name: stats[name] for name in ("sim_seconds", "instructions", "mips") if name in stats}
    found["host_seconds"] = outcome.host_seconds
    found["readahead_kb"] = outcome.readahead
    details = {"instructions_by_mode": stats.get("instructions_by_mode"), "smu": stats.get("smu_counters"),
               "regions": stats.get("rois", [])}
    return {"figures": {name: value for name, value in found.items() if value is not None}, "details": details,
            "git": git_describe(), **wrong}


def not_run(why: str) -> dict:
    """The record of a point that the host did not let end."""
    return {"status": ending.NOT_RUN, "exit_status": None, "line": why, "output": "", "figures": {}, "details": {}, "git": None}


def line(name: str, values: dict, seed: object, run: kept.Run | None, result: dict) -> dict:
    """A run's record that says all of itself."""
    return {
        "sweep": name,
        "names": values,
        "seed": seed,
        "configuration": kept.configuration(run) if run else None,
        "git": result["git"],
        "status": result["status"],
        "exit_status": result["exit_status"],
        "line": result["line"],
        "figures": {key: {"value": value, **asdict(quantity(key))} for key, value in result["figures"].items()},
        "details": result["details"],
    }


def row(result: dict) -> dict:
    """A result as a row of a table. What it is of and how it ended come before a figure of the program's with that name."""
    named = {**{name: text(value) for name, value in result["values"].items()},
             "status": result["status"], "exit_status": result["exit_status"]}
    return {**named, **result["figures"], **named}


def columns(varied: list[str], rows: list[dict]) -> tuple[Column, ...]:
    """Columns of the terminal's table."""
    present = dict.fromkeys(name for row in rows for name in row)
    own = [name for name in present if name not in _KNOWN and name not in {*varied, "status", "exit_status"}]
    shown = [*own, *(name for name in _SHOWN if name in present)]
    return (*((name, name, "s") for name in (*varied, "status")),
            *((name.replace("_", " "), name, _form([row[name] for row in rows if name in row])) for name in shown))


def _form(values: list[float]) -> str:
    if all(isinstance(value, int) for value in values):
        return ",d"
    return ",.2f" if max(abs(value) for value in values) >= 1 else ".4g"
