# SPDX-License-Identifier: Apache-2.0
"""`./trapless sweep` of the paging simulator: runs one configuration with every combination of the values in a file.

    base = "config.toml"        # or the configuration itself: [base], [base.memory], [[base.process]] ...

    [vary]
    policy = ["sync", "aspf-star"]
    "device.latency_us" = [3, 5, 7]
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from rich.console import Console

from trapless.base.outputs import output_folder, write_whole
from trapless.base.ui import UserError, say
from trapless.pagesim import output, runs
from trapless.results import columns as typed
from trapless.results import parquet, table
from trapless.sweeps import grid

FIGURES = (output.TIME.but(form=".4f"), output.WAITING, output.FAULTS, output.SWITCHES, output.MOVED, output.JAIN)
"""Columns of the table on the terminal."""

_TRACE = re.compile(r"process\.\d+\.trace")


def run(file: Path, out: Path, jobs: int | None, simulator: Path | None = None, as_parquet: bool = False) -> int:
    """Run all combinations. Write results.json, results.csv and, with `as_parquet`, results.parquet to `out`, and print a table.
    Return 1 if some runs failed, otherwise 0. `simulator` is a program to use in place of the project's."""
    base, vary = load(file)
    combinations = grid.combinations(vary)
    todo = [runs.Run(grid.title(values) or file.name, runs.changed(base, _placed(values, file.parent)))
            for values in combinations]
    output_folder(out)
    results = runs.run_all(todo, jobs, simulator=simulator)
    good = [(values, result) for values, result in zip(combinations, results, strict=True) if isinstance(result, dict)]
    records = [{"values": values, "record": result} for values, result in good]
    found = [output.take(result, output.latencies) for _, result in good]
    rows = [{**{key: grid.text(value) for key, value in values.items()}, **figures}
            for (values, _), figures in zip(good, found, strict=True)]
    write_whole(out / "results.json", json.dumps(records, indent=1) + "\n")
    known = (*output.COLUMNS, *output.OF_LATENCIES)
    typed.write(out, known)
    write_whole(out / "results.csv", grid.csv_text(rows))
    files = [out / "results.json", out / "results.csv"]
    if as_parquet:
        files.append(out / parquet.FILE)
        named = [{**{key: grid.text(value) if isinstance(value, list) else value for key, value in values.items()}, **figures}
                 for (values, _), figures in zip(good, found, strict=True)]
        parquet.write(files[-1], named, typed.by_key(known), vary)
    columns = (*(typed.word(key, key, "A varied value.") for key in vary), *FIGURES)
    table.show(rows, Console(highlight=False), columns)
    say(f"results: {', '.join(map(str, files))}")
    failed = len(todo) - len(good)
    if failed:
        say(f"{failed} of {len(todo)} runs failed")
    return 1 if failed else 0


def load(file: Path) -> tuple[dict, dict[str, list]]:
    """Return the base configuration, with absolute paths of traces, and the values of each varied key. Raises UserError with one
    line if the file is wrong."""
    data = grid.read_toml(file)
    base, folder = data.get("base"), file.parent
    if isinstance(base, str):
        folder, base = (file.parent / base).parent, grid.read_toml(file.parent / base)
    vary = data.get("vary", {})
    if not isinstance(base, dict) or not isinstance(vary, dict) or set(data) - {"base", "vary"}:
        raise UserError(f"{file}: must have `base` (a configuration or its file) and [vary], and nothing else")
    grid.checked(file, vary)
    for process in _processes(base, vary):
        process["trace"] = str((folder / process["trace"]).absolute())
    return _placed(base, folder), vary


def _placed(values: dict[str, object], folder: Path) -> dict[str, object]:
    """Return the values. Paths of single traces and of policies in Python, which are relative to `folder`, become absolute."""
    return {key: _placed_value(key, value, folder) for key, value in values.items()}


def _placed_value(key: str, value: object, folder: Path) -> object:
    if _TRACE.fullmatch(key) and isinstance(value, str):
        return str((folder / value).absolute())
    if key == "policy" and (policy := runs.policy_file(value)) is not None:
        return f"{runs.PYTHON}{(folder / policy).absolute()}"
    return value


def _processes(base: dict, vary: dict[str, list]) -> list[dict]:
    """Return all processes that name a trace, including those among the varied values."""
    groups = [base.get("process", []), *vary.get("process", [])]
    return [process for group in groups if isinstance(group, list) for process in group
            if isinstance(process, dict) and isinstance(process.get("trace"), str)]
