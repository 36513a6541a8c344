# SPDX-License-Identifier: Apache-2.0
"""`./trapless sweep`: runs all points of a grid and writes their records and a table.

The output folder gets results.json (values, status, output and figures of each point), results.csv (a table of values, status
and figures) and runs.jsonl (one self-contained record for each run, with units, configuration and the version of the project).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import closing
from functools import cache
from pathlib import Path

from rich.console import Console

from trapless.base.kept import keep, known, unknown
from trapless.base.outputs import output_folder, write_whole
from trapless.base.ui import Progress, UserError, say
from trapless.guest import build, ending, kept
from trapless.results import columns, parquet, table
from trapless.sweeps import engine as engines
from trapless.sweeps import grid as grids
from trapless.sweeps import point, record
from trapless.sweeps import simulated as pagesim
from trapless.sweeps.engine import Engine
from trapless.sweeps.grid import Grid


def run(file: Path, out: Path, engine: Engine, simulator: Path | None = None, as_parquet: bool = False) -> int:
    """Run the sweep of a file: of guests, or of the paging simulator if the file has a `base`. Return 1 if points failed,
    otherwise 0. `simulator` is a program to use in place of the project's paging simulator. With `as_parquet`, also write the
    table to results.parquet."""
    if as_parquet:
        parquet.arrow("--parquet")
    if "base" in grids.read_toml(file):
        if engine.workers or engine.scheduler:
            raise UserError(f"{file}: --workers and --scheduler are for guests; the paging simulator has --jobs")
        return pagesim.run(file, out, engine.jobs, simulator, as_parquet)
    if simulator is not None:
        raise UserError(f"{file}: --simulator is for the paging simulator, and this file is a sweep of guests")
    grid = grids.load(file)
    results = sweep(grid, out, engine)
    rows = [record.row(result) for result in results]
    table.show(rows, Console(highlight=False), record.columns(list(grid.vary), rows))
    files = ["results.json", "results.csv", "runs.jsonl"]
    if as_parquet:
        files.append(parquet.FILE)
        parquet.write(out / parquet.FILE, [record.typed_row(result) for result in results], record.columns_of(results),
                      {*grid.vary, "exit_status"})
    say(f"results: {', '.join(str(out / name) for name in files)}")
    failed = [result for result in results if result["status"] != ending.OK]
    for result in failed:
        say(f"{_title(grid, result['values'])}: {result['line']}")
    if failed:
        say(f"{len(failed)} of {len(results)} points failed")
    return 1 if failed else 0


def sweep(grid: Grid, out: Path | None = None, engine: Engine | None = None) -> list[dict]:
    """Run all points and return their results in the grid's order. Each has its `values`, how it ended (`status`, `exit_status`,
    `line`, `output`), `figures` and `details`. With `out`, the results are also written there.

    A point that fails has a result like the others. Raises UserError only if the grid itself is wrong.
    """
    point.check(grid)
    if out:
        output_folder(out)
    program, points = build.machine(), grids.combinations(grid.vary)
    kernel = cache(build.kernel)
    runs: list[tuple[kept.Run, str] | UserError] = [_prepare(program, grid, values, kernel) for values in points]
    todo = {name: run for run, name in (found for found in runs if not isinstance(found, UserError))}
    new = unknown(todo)
    records = {name: known(name) for name in todo if name not in new}
    records |= _run(program, {name: todo[name] for name in new}, engine or Engine())
    results, lines = [], []
    for values, found in zip(points, runs, strict=True):
        run, result = (None, record.not_run(str(found))) if isinstance(found, UserError) else (found[0], records[found[1]])
        results.append({"values": values, **result})
        lines.append(record.line(grid.name, values, {**grid.fixed, **values}.get("seed"), run, result))
    if out:
        write_whole(out / "results.json", json.dumps(results, indent=1) + "\n")
        columns.write(out, record.columns_of(results).values())
        write_whole(out / "results.csv", grids.csv_text([record.row(result) for result in results]))
        write_whole(out / "runs.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return results


def _title(grid: Grid, values: dict) -> str:
    return grids.title(values) or grid.name


def _prepare(program: Path, grid: Grid, values: dict, kernel: Callable[..., Path]) -> tuple[kept.Run, str] | UserError:
    """Return the run of a point and its key. Return an error instead of raising it, because a program that does not compile must
    not stop the other points."""
    try:
        run = point.run_of(grid, values, kernel)
        return run, kept.key(program, run)
    except UserError as error:
        return error
    except (ValueError, TypeError, ArithmeticError, OSError) as error:
        return UserError(_why(error))


def _run(program: Path, runs: dict[str, kept.Run], engine: Engine) -> dict[str, dict]:
    """Run the runs that have no record yet; return their records by key."""
    records: dict[str, dict] = {}
    if not runs:
        return records
    progress = Progress("sweeping", len(runs), len(runs))
    # The generator is closed at once: a notebook keeps the frames of an interrupted call alive, and runs would continue unseen.
    with progress.bar, closing(engines.each(program, runs, engine)) as found:
        for name, result in found:
            if isinstance(result, Exception):
                result = record.not_run(_why(result))
            elif known(name) is None:
                keep(name, result)  # a worker may have another cache
            if result["status"] != ending.OK:
                say(f"failed: {runs[name].title}: {result['line']}")
            records[name] = result
            progress.show(len(records), len(records))
    return records


def _why(error: Exception) -> str:
    """Return the reason of an error in one line."""
    if isinstance(error, CancelledError):
        return "the scheduler dropped the run"
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"
