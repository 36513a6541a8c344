# SPDX-License-Identifier: Apache-2.0
"""The record of a point's run, and the files in which a sweep writes its results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from trapless.base.ui import UserError
from trapless.base.version import git_describe
from trapless.guest import boot as guests
from trapless.guest import ending, kept, served
from trapless.loads import dbbench
from trapless.results import columns as typed
from trapless.results import figures
from trapless.results.columns import HIGHER, LOWER, Column, word
from trapless.sweeps.grid import text

_SHOWN = ("ops_per_second", "ops", "mean_us", "p50_us", "p99_us", "wrong", "device_us", "nondevice_us", "hw_misses", "os_faults",
          "kernel_instructions", "region_seconds", "sim_seconds", "readahead_kb")
"""Figures in the terminal's table, if they exist. A program's own figures come first."""
COLUMNS = typed.by_key((
    *figures.OF_FIO, *figures.OF_REGIONS, *figures.OF_RUN, figures.OPS_PER_SECOND, figures.WRONG,
    Column("data_reads", "reads of the data disk", "Reads of the data disk from the first command on.", "reads", None, ",d"),
    Column("data_reads_by_hardware", "reads by hardware", "Those of them that hardware made.", "reads", None, ",d")))
"""Columns of the records that `take` returns, by key. Figures of a program have their meaning in its figures.json."""
_DIRECTIONS = {"higher": HIGHER, "lower": LOWER, None: None}
_TYPED = ("value", "unit", "direction", "meaning")
_BARE = {"unit": "1", "direction": None, "meaning": ""}


def columns_of(results: list[dict]) -> dict[str, Column]:
    """Return the columns of a sweep's results: the machine's, and those that the programs define."""
    own = [Column(name, name.replace("_", " "), said["meaning"], said["unit"], said["direction"], "g")
           for result in results for name, said in result.get("columns", {}).items()]
    return typed.by_key([*COLUMNS.values(), *own])


def of_ycsb(text: str) -> dict:
    """Return the figures of the YCSB driver."""
    said = json.loads(text)
    return {"ops_per_second": said["ops_per_second"], "wrong": said["wrong"],
            **{key: said["all"][key] for key in ("ops", "mean_us", "p50_us", "p99_us", "p999_us")}}


def of_any(text: str) -> dict:
    """Return the figures of a user's program: names and numbers, or tables as for `columns_said`."""
    said = json.loads(text)
    if not isinstance(said, dict):
        raise UserError("must be a JSON object of names and numbers")
    values = {name: value.get("value") if isinstance(value, dict) else value for name, value in said.items()}
    for name, value in values.items():
        if not isinstance(value, int | float):
            raise UserError(f"{name}: must be a number, or a table with a number `value`, not {json.dumps(said[name])}")
    return values


def columns_said(text: str) -> dict[str, dict]:
    """Return unit, direction and meaning of those figures of figures.json that are tables, like {"value": 3, "unit": "us",
    "direction": "lower", "meaning": "Mean time of a read."}. UserError for another key or value."""
    found = {}
    for name, value in json.loads(text).items():
        if not isinstance(value, dict):
            continue
        if odd := set(value) - set(_TYPED):
            raise UserError(f"{name}: no such key: {min(odd)}; there are {', '.join(_TYPED)}")
        if value.get("direction") not in _DIRECTIONS:
            raise UserError(f"{name}: direction must be higher or lower, not {value['direction']}")
        texts = {key: value.get(key, _BARE[key]) for key in ("unit", "meaning")}
        if odd := [key for key, one in texts.items() if not isinstance(one, str)]:
            raise UserError(f"{name}: {odd[0]} must be a text")
        found[name] = {**texts, "direction": _DIRECTIONS[value.get("direction")]}
    return found


REPORTS: dict[str, Callable[[str], dict]] = {
    "fio.json": lambda text: figures.of_fio(json.loads(text)), "ycsb.json": of_ycsb, "dbbench.txt": dbbench.figures,
    "figures.json": of_any}
_OWN = "figures.json"
"""Files of /job/out that have figures, and the functions that read them."""


def of_program(out: Path) -> dict:
    """Return the figures that the program wrote to files of these names. UserError names a file whose content does not fit its
    name."""
    found: dict = {}
    for name, take_it in REPORTS.items():
        try:
            found |= take_it((out / name).read_text())
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, UserError) as error:
            raise UserError(f"/job/out/{name}: {error}") from None
    return found


def own_columns(out: Path) -> dict[str, dict]:
    """Return what figures.json says about its figures, if the file exists; UserError if its content is wrong."""
    try:
        return columns_said((out / _OWN).read_text())
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError, OSError, UserError) as error:
        raise UserError(f"/job/out/{_OWN}: {error}") from None


def of_machine(kind: str | None, stats: dict) -> dict:
    """Return what the machine counted in regions of interest, if there are any."""
    regions = figures.regions(stats)
    return figures.of_regions(kind, regions) if regions else {}


def take(kind: str | None, outcome: guests.Outcome, folder: Path) -> dict:
    """Make the record of a run, however the run ended."""
    return of_run(kind, outcome, folder / "out")


def of_run(kind: str | None, outcome: guests.Outcome, out: Path) -> dict:
    """Return the figures of a run whose files of /job/out are in `out`, and the details behind them."""
    stats, found, wrong, said = outcome.stats, {}, {}, {}
    for into, taken in ((found, lambda: of_program(out)), (said, lambda: own_columns(out)),
                        (found, lambda: of_machine(kind, stats))):
        try:
            into |= taken()
        except UserError as error:
            wrong = wrong or {"status": ending.FAILED, "line": str(error)}
    found |= served.figures(kind, outcome)
    found |= {name: stats[name] for name in ("sim_seconds", "instructions", "mips") if name in stats}
    found["host_seconds"] = outcome.host_seconds
    found["readahead_kb"] = outcome.readahead
    details = {"instructions_by_mode": stats.get("instructions_by_mode"), "smu": stats.get("smu_counters"),
               "regions": stats.get("rois", [])}
    return {"figures": {name: value for name, value in found.items() if value is not None}, "details": details,
            "git": git_describe(), **({"columns": said} if said else {}), **wrong}


def not_run(why: str) -> dict:
    """Make the record of a point that the host could not run to its end."""
    return {"status": ending.NOT_RUN, "exit_status": None, "line": why, "output": "", "figures": {}, "details": {}, "git": None}


def line(name: str, values: dict, seed: object, run: kept.Run | None, result: dict) -> dict:
    """Make the self-contained record of a run."""
    known = columns_of([result])
    return {
        "sweep": name,
        "names": values,
        "seed": seed,
        "configuration": kept.configuration(run) if run else None,
        "git": result["git"],
        "status": result["status"],
        "exit_status": result["exit_status"],
        "line": result["line"],
        "figures": {key: {"value": value, "unit": (its := typed.of(known, key)).unit, "direction": its.direction}
                    for key, value in result["figures"].items()},
        "details": result["details"],
    }


def row(result: dict) -> dict:
    """Return a result as a row of a table. A value or status of the point replaces a figure of the program with the same name."""
    named = {**{name: text(value) for name, value in result["values"].items()},
             "status": result["status"], "exit_status": result["exit_status"]}
    return {**named, **result["figures"], **named}


def typed_row(result: dict) -> dict:
    """Return the row of `row`, but with values as they are: numbers stay numbers."""
    values = {name: text(value) if isinstance(value, list) else value for name, value in result["values"].items()}
    return {**row(result), **values}


def columns(varied: list[str], rows: list[dict]) -> tuple[Column, ...]:
    """Return the columns of the terminal's table."""
    present = dict.fromkeys(name for row in rows for name in row)
    own = [name for name in present if name not in COLUMNS and name not in {*varied, "status", "exit_status"}]
    shown = [*own, *(name for name in _SHOWN if name in present)]
    return (*(word(name, name, "What the point is.") for name in (*varied, "status")),
            *(typed.of(COLUMNS, name).but(heading=name.replace("_", " "), form=_form([row[name] for row in rows if name in row]))
              for name in shown))


def _form(values: list[float]) -> str:
    if all(isinstance(value, int) for value in values):
        return ",d"
    return ",.2f" if max(abs(value) for value in values) >= 1 else ".4g"
