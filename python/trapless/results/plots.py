# SPDX-License-Identifier: Apache-2.0
"""Plots of records. matplotlib is imported only when a plot is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from trapless.base.outputs import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save(figure: Figure, path: Path) -> None:
    """Write the figure as SVG. The same figure gives the same bytes; the file is either complete or absent."""
    import matplotlib

    with whole(path) as partial, matplotlib.rc_context({"svg.hashsalt": path.name}):
        figure.savefig(partial, format="svg", metadata={"Date": None})


def sheet(rows: int = 1, width: float = 8.0, height: float = 4.0, **options: object) -> tuple[Figure, list[Axes]]:
    """Make a figure with `rows` rows of axes."""
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained")
    found = figure.subplots(rows, 1, squeeze=False, **options)
    for axes in found[:, 0]:
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
    return figure, list(found[:, 0])


@dataclass(frozen=True)
class Bars:
    """Bars of the rows' `key`: one group for each value of `group`, one bar for each value of `series`. The paper's value is a
    line, a known interval an error bar."""

    group: str
    series: str
    key: str
    label: str
    paper: str | None = None
    rows: Callable[[list[dict]], list[dict]] = list
    stacked: bool = False
    """Whether bars are on top of each other instead of side by side."""

    def shown(self, records: list[dict]) -> list[dict]:
        """Return the rows that have a bar."""
        return [record for record in self.rows(records) if record.get(self.key) is not None]

    def categories(self, rows: list[dict]) -> list[str]:
        """Return the groups, in the order of the x axis."""
        return words(rows, self.group)

    def __call__(self, records: list[dict]) -> Figure:
        """Draw it."""
        figure, (axes,) = sheet()
        records = self.shown(records)
        groups, names = values(records, self.group), values(records, self.series)
        width = 0.8 / (1 if self.stacked else max(len(names), 1))
        feet = dict.fromkeys(groups, 0.0)
        for number, name in enumerate(names):
            mine = [record for record in records if record[self.series] == name]
            beside = 0 if self.stacked else (number - (len(names) - 1) / 2) * width
            places = [groups.index(record[self.group]) + beside for record in mine]
            heights = [record[self.key] for record in mine]
            axes.bar(places, heights, width * 0.95, label=str(name), yerr=_bars(mine, self.key), capsize=2,
                     bottom=[feet[record[self.group]] for record in mine] if self.stacked else 0)
            for record, height in zip(mine, heights, strict=True):
                feet[record[self.group]] += height
            known = [(place, record[self.paper]) for place, record in zip(places, mine, strict=True)
                     if self.paper and record.get(self.paper) is not None]
            if known:
                axes.hlines([value for _, value in known], [place - width / 2 for place, _ in known],
                            [place + width / 2 for place, _ in known], "black", linewidth=1.5)
        if self.paper:
            axes.hlines([], [], [], "black", linewidth=1.5, label="paper")
        axes.set_xticks(range(len(groups)), [str(name) for name in groups])
        axes.set(xlabel=self.group.replace("_", " "), ylabel=self.label)
        return legend(figure, axes)


@dataclass(frozen=True)
class Lines:
    """Lines of the rows' `key` over `x`, one for each value of `series`. The paper's values are dotted, in the same colour. If
    `x` has words, they keep the order of the rows. `panel` makes separate axes for each value of that column."""

    x: str
    series: str
    key: str
    xlabel: str
    label: str
    paper: str | None = None
    panel: str | None = None
    rows: Callable[[list[dict]], list[dict]] = list
    log: bool = False
    """Whether an x axis of numbers is logarithmic."""
    marks: bool = True
    """Whether each point has a marker; long series are better without."""

    def shown(self, records: list[dict]) -> list[dict]:
        """Return the rows that have a point."""
        return [record for record in self.rows(records) if record.get(self.x) is not None and record.get(self.key) is not None]

    def categories(self, rows: list[dict]) -> list[str] | None:
        """Return the words of the x axis; None if it has numbers."""
        return None if all(isinstance(row[self.x], Real) for row in rows) else words(rows, self.x)

    def __call__(self, records: list[dict]) -> Figure:
        """Draw it."""
        records = self.shown(records)
        panels = values(records, self.panel) if self.panel else [None]
        figure, rows = sheet(len(panels), height=(2.5 if self.marks else 1.6) * len(panels) + 1.5, sharex=True)
        categories = self.categories(records)

        def place(record: dict) -> float:
            return categories.index(str(record[self.x])) if categories else record[self.x]

        for axes, value in zip(rows, panels, strict=True):
            shown = [record for record in records if self.panel is None or record[self.panel] == value]
            for name in values(records, self.series):
                points = [record for record in shown if record[self.series] == name]
                line, *_ = axes.errorbar([place(record) for record in points], [record[self.key] for record in points],
                                         _bars(points, self.key), marker="o" if self.marks else "", capsize=2,
                                         linewidth=None if self.marks else 0.8, label=str(name))
                printed = [(place(record), record[self.paper]) for record in points
                           if self.paper and record.get(self.paper) is not None]
                if printed:
                    axes.plot(*zip(*printed, strict=True), marker="x", linestyle=":", color=line.get_color(),
                              label=f"{name}, paper")
            axes.set_ylabel(self.label)
            axes.set_xscale("log" if self.log and not categories else "linear")
            if self.panel:
                axes.set_title(f"{value} {self.panel}", fontsize="small", loc="left")
            if categories:
                axes.set_xticks(range(len(categories)), categories)
            elif self.marks:
                axes.set_xticks(values(records, self.x), [f"{value:g}" for value in values(records, self.x)], minor=False)
                axes.minorticks_off()
        rows[-1].set_xlabel(self.xlabel)
        return legend(figure, rows[0])


Plot = Bars | Lines


def describe(plot: Bars | Lines, records: list[dict]) -> dict:
    """Describe a figure in JSON's types for the code that draws it: kind, labels, words of the x axis (None: it has numbers), and
    traces of x, y, half widths of intervals, the paper's values and panels. These are lists of equal length, with None for
    unknown values."""
    rows, x = plot.shown(records), plot.group if isinstance(plot, Bars) else plot.x
    panel, categories = None if isinstance(plot, Bars) else plot.panel, plot.categories(rows)
    traces = []
    for value in values(rows, panel) if panel else [None]:
        for name in values(rows, plot.series):
            mine = [row for row in rows if row[plot.series] == name and (panel is None or row[panel] == value)]
            traces.append({
                "name": str(name), "panel": None if value is None else f"{value} {panel}",
                "x": [row[x] if categories is None else str(row[x]) for row in mine], "y": [row[plot.key] for row in mine],
                "error": intervals(mine, plot.key),
                "paper": [row.get(plot.paper) for row in mine] if plot.paper else None})
    return {
        "kind": "bars" if isinstance(plot, Bars) else "lines",
        "stacked": isinstance(plot, Bars) and plot.stacked,
        "log": isinstance(plot, Lines) and plot.log and categories is None,
        "marks": isinstance(plot, Bars) or plot.marks,
        "xlabel": x.replace("_", " ") if isinstance(plot, Bars) else plot.xlabel,
        "ylabel": plot.label,
        "categories": categories,
        "traces": traces,
    }


def intervals(records: list[dict], key: str) -> list[float | None] | None:
    """Return half the widths of the figures' intervals (trapless.study.repeated), if known. None if no interval is known."""
    found = [record.get(f"{key}_ci") for record in records]
    return None if set(found) <= {None} else found


def _bars(records: list[dict], key: str) -> list[float] | None:
    """Return half widths of the intervals as error bars for matplotlib. A mean without an interval has no bar (nan)."""
    found = intervals(records, key)
    return found and [nan if wide is None else wide for wide in found]


def legend(figure: Figure, axes: Axes) -> Figure:
    """Draw the legend beside the axes, where it hides nothing."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    return figure


def values(records: list[dict], key: str) -> list:
    """Return the values of a key, in the order of the records."""
    return list(dict.fromkeys(record[key] for record in records))


def words(records: list[dict], key: str) -> list[str]:
    """Return the values of this column as words, as an axis shows them."""
    return list(dict.fromkeys(str(record[key]) for record in records))
