# SPDX-License-Identifier: Apache-2.0
"""`./trapless study`: runs experiments and writes their records, tables and plots.

In an experiment's folder are results.json (the rows of its tables), columns.json (descriptions of these rows' columns),
runs.jsonl (one self-contained record for each run), experiment.json (everything that the report shows), results.md and a plot for
each figure.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from trapless.base import took
from trapless.base.outputs import output_folder, write_whole
from trapless.base.paths import ROOT, STUDIES
from trapless.base.ui import UserError, no_such, say
from trapless.base.version import git_describe
from trapless.loads.setup import Setup
from trapless.results import columns, parquet, plots, table
from trapless.study import breakdown, repeated
from trapless.study.catalogue import EXPERIMENTS
from trapless.study.experiment import NOT_COLUMNS, Experiment, Table

_WHOLE = "experiment.json"
ALL = "all"
"""Name that means all experiments."""


def run(names: list[str], setup: Setup, out: Path | None, update_docs: bool, measured: bool = False,
        as_parquet: bool = False) -> int:
    """Run experiments, each in a folder of its name (or in `out` if there is only one), and print their tables. Without a name,
    list the experiments. If `measured`, use the rows of an earlier run. With `as_parquet`, also write results.parquet. If one of
    several experiments fails, the others still run, and the status is 1.
    """
    if as_parquet:
        parquet.arrow("--parquet")
    if not names:
        for known, experiment in EXPERIMENTS.items():
            print(f"{known:16} {experiment.title}")
        return 0
    for name in names:
        if name not in EXPERIMENTS and name != ALL:
            raise no_such("experiment", name, [*EXPERIMENTS, ALL], lister="./trapless study")
    if ALL in names:
        names = list(EXPERIMENTS)
    for option, given in (("--traces", setup.traces), ("--frames", setup.frames)):
        if given and all(EXPERIMENTS[name].guest for name in names):
            raise UserError(f"{option} applies only to experiments of the paging simulator (aspf-*): leave it out")
    if len(names) == 1:
        _run_one(names[0], replace(setup, out=out or Path("out") / names[0]), update_docs, measured, as_parquet)
        return 0
    failed, start = [], time.monotonic()
    with took.account() as runs:
        for name in names:
            say(f"experiment {name}")
            try:
                _run_one(name, replace(setup, out=(out or Path("out")) / name), update_docs, measured, as_parquet)
            except UserError as error:
                say(f"{name}: {error}")
                failed.append(name)
    say(", and ".join(filter(None, [f"{len(names)} experiments: {(time.monotonic() - start) / 60:.1f} min", str(runs)])))
    if failed:
        say(f"{len(failed)} of {len(names)} experiments failed: {', '.join(failed)}")
    return 1 if failed else 0


def measure(name: str, setup: Setup, measured: bool = False) -> tuple[list[dict], dict[str, str]]:
    """Measure an experiment and write all its files to `setup.out`. If `measured`, use the rows of an earlier run. Returns its
    rows, and its tables as Markdown by name.
    """
    experiment, folder = EXPERIMENTS[name], setup.out
    if setup.kinds and not experiment.kinds:
        raise UserError(f"{name}: the figure fixes the kinds: leave --kinds out")
    if setup.profile != Setup.profile and not experiment.profile:
        raise UserError(f"{name}: the figure fixes the profile: leave --profile out")
    output_folder(folder)
    start = time.monotonic()
    with took.account() as runs:
        rows = _read(folder, name) if measured else experiment.measure(setup)
    times = {"host_seconds": time.monotonic() - start, "runs_known": len(runs.before), "host_seconds_known": runs.seconds}
    texts = {known: table.markdown(shown.rows(rows), shown.columns) for known, shown in experiment.tables.items()}
    if not measured:
        # This file says that the results are complete, so it is removed first and written last.
        (folder / _WHOLE).unlink(missing_ok=True)
    write_whole(folder / "results.md", "\n".join(texts.values()))
    for drawn, plot in experiment.plots.items():
        plots.save(plot(rows), folder / f"{drawn}.svg")
    if not measured:
        keep(name, experiment, setup, rows, times)
    return rows, texts


def _run_one(name: str, setup: Setup, update_docs: bool, measured: bool, as_parquet: bool) -> None:
    experiment, folder = EXPERIMENTS[name], setup.out
    if measured and update_docs:
        _check_full(folder)
    rows, _ = measure(name, setup, measured)
    console = Console(highlight=False)
    for shown in experiment.tables.values():
        table.show(shown.rows(rows), console, shown.columns)
        console.print()
    if update_docs:
        write_to_documents({known: (shown, shown.rows(rows)) for known, shown in experiment.tables.items()})
    left = [folder / "results.json"]
    if as_parquet:
        left.append(folder / parquet.FILE)
        parquet.write(left[-1], rows, experiment.columns, NOT_COLUMNS)
    say(", ".join([f"results: {left[0]}", *map(str, left[1:]), *(f"{folder / drawn}.svg" for drawn in experiment.plots)]))


def keep(name: str, experiment: Experiment, setup: Setup, rows: list[dict], times: dict[str, float]) -> None:
    """Write the results and the run times (base/took.py). experiment.json comes last, so that it exists only if everything
    does."""
    folder, git = setup.out, git_describe()
    naming = {column.key for shown in experiment.tables.values() for column in shown.columns[:shown.keys]}
    found = [run for row in rows for run in runs_of(name, row, setup, git, naming, experiment.columns)]
    if unknown := experiment.undeclared([*rows, *(run for row in rows for run in row.get(repeated.RUNS, ()))]):
        say(f"{name}: no column is declared for {', '.join(sorted(unknown))}: kept as bare numbers")
    bare = [{key: value for key, value in row.items() if key != repeated.RUNS} for row in rows]
    write_whole(folder / "results.json", json.dumps(bare, indent=1) + "\n")
    columns.write(folder, experiment.columns.values())
    write_whole(folder / "runs.jsonl", "".join(json.dumps(run) + "\n" for run in found))
    tables = {known: {"columns": [asdict(column) for column in shown.columns], "keys": shown.keys, "rows": shown.rows(bare)}
              for known, shown in experiment.tables.items()}
    write_whole(folder / _WHOLE, json.dumps({
        "experiment": name,
        "title": experiment.title,
        "about": experiment.about,
        "form": "quick" if setup.quick else "full",
        "command": command(name, setup),
        "git": git,
        "confidence": repeated.CONFIDENCE,
        "runs": len(found),
        **times,
        "environment": {"host": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version(),
                        "kind of host kernel": platform.release(), "settings": list(setup.settings)},
        "tables": tables,
        "figures": {drawn: plots.describe(plot, bare) for drawn, plot in experiment.plots.items()},
        "breakdown": breakdown.rows(rows, naming),
        "compared": [{**asdict(one), "differs": one.differs} for one in experiment.compared(rows)],
    }, indent=1) + "\n")


def command(name: str, setup: Setup) -> str:
    """Return the command that measures the same again."""
    options = [("--kinds", ",".join(setup.kinds)), ("--profile", "" if setup.profile == Setup.profile else setup.profile),
               *(("--set", setting) for setting in setup.settings), ("--kernel", str(setup.kernel or "")),
               ("--traces", str(setup.traces or "")), ("--frames", str(setup.frames or ""))]
    words = ["./trapless", "study", name, *(["--quick"] if setup.quick else []),
             *(word for option, value in options if value for word in (option, value))]
    return shlex.join(words)


def runs_of(name: str, row: dict, setup: Setup, git: str | None, naming: set[str],
            known: Mapping[str, columns.Column]) -> list[dict]:
    """Return a self-contained record for each run of a row. A row without runs is a run itself, named by the keys in `naming`,
    which name rows of tables. `known` are the columns of its figures.
    """
    found = []
    words = {key: value for key, value in row.items() if key in naming} or {
        key: value for key, value in row.items() if isinstance(value, str)}
    for run in row.get(repeated.RUNS, [row]):
        names = run.get("names") or words
        figures = {key: {"value": value, "unit": (its := columns.of(known, key)).unit, "direction": its.direction}
                   for key, value in run.items()
                   if repeated.is_number(value) and key not in ("seed", *names) and key.partition("_")[0] != "paper"
                   and not key.endswith(repeated.INTERVAL)}
        found.append({
            "experiment": name,
            "names": names,
            "seed": run.get("seed"),
            "configuration": run.get("configuration") or {"profile": setup.profile, "settings": list(setup.settings)},
            "form": "quick" if setup.quick else "full",
            "git": run.get("git") or git,
            "figures": figures,
            "details": {key: value for key, value in run.items()
                        if isinstance(value, dict) and key not in ("configuration", "names")},
        })
    return found


def _check_full(folder: Path) -> None:
    """Raise UserError unless the folder has the full experiment on the default machine: documents must not show anything else."""
    try:
        kept = json.loads((folder / _WHOLE).read_text())
        command, form = kept["command"], kept["form"]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"no records of an earlier run in {folder}: {error}") from None
    if form != "full" or " --" in command:
        raise UserError(f"--docs: {folder} has the results of `{command}`, not of the full experiment")


def _read(folder: Path, name: str) -> list[dict]:
    try:
        found = json.loads((folder / _WHOLE).read_text())["experiment"]
        if found == name:
            return json.loads((folder / "results.json").read_text())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"no records of an earlier run in {folder}: {error}") from None
    raise UserError(f"--measured: {folder} has the results of {found}, not of {name}")


def write_to_documents(tables: dict[str, tuple[Table, list[dict]]]) -> None:
    """Write tables, each with its rows, into the pages that show them. A page has its table between `<!-- table NAME -->` (or
    NAME/VIEW) and `<!-- end -->`. All columns go as CSV to the folder `data` beside the page."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(STUDIES.rglob("*.md"))]:
        text = path.read_text()
        for block in table.blocks(text):
            name, _, view = block.partition("/")
            if name not in tables:
                continue
            shown, rows = tables[name]
            text = table.replace(text, block, shown.on_page(name, rows, view))
            write_whole(path, text)
            write_data(path.parent / table.DATA, name, shown, rows)
            say(f"{path.relative_to(ROOT)}: table {block} written")


def write_data(folder: Path, name: str, shown: Table, rows: list[dict]) -> None:
    """Write all columns of a table to a folder as CSV, and a description of the columns."""
    folder.mkdir(exist_ok=True)
    write_whole(folder / f"{name}.csv", table.csv_text(rows, shown.columns))
    meanings = folder / table.MEANINGS
    write_whole(meanings, table.meanings(meanings.read_text() if meanings.exists() else "", name, shown.columns))
