# SPDX-License-Identifier: Apache-2.0
"""Draws figures of data frames and of experiments: interactive ones for the screen, and others for print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from trapless.api.error import one_line
from trapless.api.frames import rows_of
from trapless.api.results import load
from trapless.base.ui import UserError, no_such
from trapless.results import interactive, plots
from trapless.study import repeated
from trapless.study.catalogue import EXPERIMENTS

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from matplotlib.figure import Figure

_FORMS = ("bars", "lines")


@one_line
def plot(what: pd.DataFrame | str | Path, x: str | None = None, y: str | None = None, series: str | None = None, *,
         form: str | None = None, stacked: bool = False, log: bool = False, figure: str | None = None) -> go.Figure:
    """Draw an interactive figure (Plotly) of a data frame's columns, or a figure that an experiment defines.

    With `x` and `y`, it draws `y` over `x`, as a line or a group of bars for each value of `series`. Rows with the same `x` and
    the same `series` are repetitions: it draws their mean, with its 95 % interval as error bar. `form` is `bars` or `lines`
    (default: lines if `x` has numbers, else bars). If `x` has words, they keep the order of the rows. `stacked` stacks bars.
    `log` makes an x axis of numbers logarithmic.

    Without x and y, it draws a figure as the experiment defines it. `what` is then the result of `experiment` or `load`, a folder
    of results, or the name of an experiment with results in out/NAME. `figure` names one of the experiment's figures (default:
    the first one).

    Raises Error if the column, the experiment or the figure does not exist.
    """
    return interactive.figure(plots.describe(*_drawn(what, x, y, series, form, stacked, log, figure)))


@one_line
def figure(what: pd.DataFrame | str | Path, x: str | None = None, y: str | None = None, series: str | None = None, *,
           form: str | None = None, stacked: bool = False, log: bool = False, figure: str | None = None) -> Figure:
    """Draw the same figure as `plot` for print (matplotlib). `.savefig("miss.pdf")` writes PDF, SVG or PNG. To fit the column of
    a paper, call `.set_size_inches(3.4, 2.2)` first.
    """
    spec, rows = _drawn(what, x, y, series, form, stacked, log, figure)
    return spec(rows)


def _drawn(what: pd.DataFrame | str | Path, x: str | None, y: str | None, series: str | None, form: str | None, stacked: bool,
           log: bool, figure: str | None) -> tuple[plots.Plot, list[dict]]:
    """Return the plot and the rows that it draws."""
    if form not in (None, *_FORMS):
        raise no_such("form", form, _FORMS, "plot")
    if not isinstance(what, pd.DataFrame):
        what = load(Path("out", what) if str(what) in EXPERIMENTS and not Path(what).is_dir() else what)
    if x is None and y is None:
        return _of_experiment(what, figure)
    if x is None or y is None:
        raise UserError("plot: give both x and y, or neither")
    for column in (x, y, *([series] if series else [])):
        if column not in what.columns:
            raise no_such("column", column, map(str, what.columns), "plot")
    label, whole = _label(what, y), series or ""
    rows = _means(rows_of(what if series else what.assign(**{whole: label})), x, y, whole)
    lines = plots.Lines(x, whole, y, _label(what, x), label, log=log)
    if log and lines.categories(lines.shown(rows)):
        raise UserError(f"plot: log: the column {x} has words, not numbers")
    if (form or ("lines" if pd.api.types.is_numeric_dtype(what[x]) else "bars")) == "bars":
        return plots.Bars(x, whole, y, label, stacked=stacked), rows
    return lines, rows


def _of_experiment(frame: pd.DataFrame, figure: str | None) -> tuple[plots.Plot, list[dict]]:
    known = EXPERIMENTS.get(frame.attrs.get("experiment", ""))
    if known is None:
        raise UserError("plot: give x and y: only results of an experiment define figures")
    if not known.plots:
        raise UserError(f"plot: {frame.attrs['experiment']} has no figure; name x and y")
    name = figure or next(iter(known.plots))
    if name not in known.plots:
        raise no_such("figure", name, known.plots, f"plot: {frame.attrs['experiment']}")
    # Not from the frame: in a frame, a key that a row lacks looks like a missing value.
    return known.plots[name], json.loads(Path(frame.attrs["folder"], "results.json").read_text())


def _means(rows: list[dict], x: str, y: str, series: str) -> list[dict]:
    """Return one row for each point, in the order of the rows. Several rows of a point become their mean with its interval."""
    points: dict[tuple, list[dict]] = {}
    for row in rows:
        if row[y] is not None:
            points.setdefault((row[x], row[series]), []).append(row)
    return [same[0] if len(same) == 1 else repeated.row({x: place, series: name}, [{y: row[y]} for row in same])
            for (place, name), same in points.items()]


def _label(frame: pd.DataFrame, key: str) -> str:
    """Return a column's name, followed by a comma and its unit."""
    unit = frame.attrs.get("units", {}).get(key, "1")
    words = key.removesuffix(f"_{unit.replace('/', '_').lower()}").replace("_", " ")
    return words if unit in ("1", words) else f"{words}, {unit}"
