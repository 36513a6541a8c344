# SPDX-License-Identifier: Apache-2.0
"""Returns results as data frames: of an experiment, of files in a folder, or of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from trapless.api.error import one_line
from trapless.api.frames import frame_of
from trapless.api.guests import row_of, several
from trapless.base.ui import UserError, no_such
from trapless.guest.job import KINDS
from trapless.loads.setup import Setup
from trapless.pagesim import output
from trapless.results import columns, parquet
from trapless.study import compare as comparing
from trapless.study import measure as experiments
from trapless.study.catalogue import EXPERIMENTS
from trapless.sweeps import point


@one_line
def experiment(name: str, *, quick: bool = True, kinds: str | Iterable[str] = (), profile: str = "vc707",
               settings: Mapping[str, object] | None = None, kernel: str | Path | None = None,
               out: str | Path | None = None) -> pd.DataFrame:
    """Measure one figure of the papers, as `./trapless study NAME` does, and leave its files in `out` (default out/NAME): a
    row for each of its points.

    `quick` takes smaller loads; the full form may take hours. `settings` are values of the profile (`ssd.read_us`), and `ssd` for
    the name or file of another drive. Runs with a record in the cache are not run again. The column of a figure has its mean over
    the seeds, and the column with `_ci` added to that name has half the width of its 95 % interval. Raises Error if there is no
    such experiment, or if a run fails.
    """
    if name not in EXPERIMENTS:
        raise no_such("experiment", name, EXPERIMENTS)
    kinds = several(kinds)
    if odd := set(kinds) - set(KINDS):
        raise no_such("kind", min(odd), KINDS, "kinds")
    folder = Path(out or Path("out") / name)
    settings = settings or {}
    changed, parameters = point.dotted(settings)
    if parameters:
        raise UserError(f"settings: {parameters[0]}: an experiment sets the kernel's parameters itself: leave it out")
    if odd := [name for name in settings if "." not in name and name != "ssd"]:
        raise UserError(f"settings: {odd[0]}: neither a value of a profile (ssd.read_us) nor a drive (ssd)")
    drive = [f"ssd={settings['ssd']}"] if "ssd" in settings else []
    setup = Setup(folder, profile, (*drive, *changed), Path(kernel) if kernel else None, quick, kinds)
    experiments.measure(name, setup)
    return load(folder)


@one_line
def load(path: str | Path, *, runs: bool = False) -> pd.DataFrame:
    """Read the results of an experiment, a sweep or the demo from a folder. Returns its rows, or with `runs` one row for each run
    in runs.jsonl. Also reads a results.parquet by its name, which needs pyarrow.

    `attrs` has the columns' `units`, `directions` and `meanings`, and for an experiment its name, title, form and description. In
    results of an earlier version, columns may have no declaration: their unit is 1. Raises Error if there is no such file, or if
    it has none of these results.
    """
    path = Path(path)
    file = path / ("runs.jsonl" if runs else "results.json") if path.is_dir() else path
    if file.suffix == ".parquet":
        return _of_parquet(file)
    try:
        text = file.read_text()
        known = columns.read(file.parent)
        frame = _of_runs(text, known) if file.suffix == ".jsonl" else _of_rows(json.loads(text), known)
        whole = json.loads((file.parent / "experiment.json").read_text()) if (file.parent / "experiment.json").exists() else {}
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UserError(f"{file}: not the results of an experiment, a sweep or the demo") from None
    frame.attrs |= {"folder": str(file.parent),
                    **{key: whole[key] for key in ("experiment", "title", "about", "form", "git") if key in whole}}
    return frame


def _of_rows(rows: list[dict], known: Mapping[str, columns.Column]) -> pd.DataFrame:
    """Make the frame of a results.json: of an experiment, of a sweep of guests, or of a sweep of the paging simulator."""
    guests = any("figures" in row and "values" in row for row in rows)
    found = [row_of(row) if guests else
             {**row["values"], **output.take(row["record"], output.latencies)} if {"values", "record"} == row.keys() else row
             for row in rows]
    return frame_of(found, {name for row in rows if isinstance(row.get("values"), dict) for name in row["values"]}, known)


def _of_runs(text: str, known: Mapping[str, columns.Column]) -> pd.DataFrame:
    """Make the frame of a runs.jsonl, in which each figure has its unit."""
    runs = [json.loads(line) for line in text.splitlines()]
    frame = pd.DataFrame([
        {**run["names"], "seed": run["seed"], **{key: run[key] for key in ("form", "status", "exit_status") if key in run},
         "git": run["git"], **{key: figure["value"] for key, figure in run["figures"].items()}} for run in runs])
    for attribute, key_of in (("units", "unit"), ("directions", "direction")):
        frame.attrs[attribute] = {key: figure[key_of] for run in runs for key, figure in run["figures"].items()}
    frame.attrs["meanings"] = {key: columns.of(known, key).meaning for key in frame.attrs["units"]}
    return frame


def _of_parquet(file: Path) -> pd.DataFrame:
    """Make the frame of a results.parquet, in which each field has its unit."""
    read, known = parquet.read(file)
    frame = read.to_pandas()
    frame.attrs |= {"folder": str(file.parent), "units": {key: column.unit for key, column in known.items()},
                    "directions": {key: column.direction for key, column in known.items()},
                    "meanings": {key: column.meaning for key, column in known.items()}}
    return frame


@one_line
def compare(a: str | Path, b: str | Path, *, every: bool = False) -> pd.DataFrame:
    """Compare two results of one experiment, as `./trapless compare` does: one row for each figure of each row that both have,
    with both means, the difference `b` - `a`, its 95 % interval (`low`, `high`) and a `verdict`
    (docs/how-to/compare-two-results.md). `every` takes all figures of the runs, not only those of the tables. Raises Error if
    there is nothing to compare.
    """
    rows = comparing.compare(comparing.read(Path(a)), comparing.read(Path(b)), every)
    return pd.DataFrame([{**row["names"], **{key: value for key, value in row.items() if key not in ("names", "runs")},
                          "runs_a": row["runs"][0], "runs_b": row["runs"][1]} for row in rows])
