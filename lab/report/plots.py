# SPDX-License-Identifier: Apache-2.0
"""Plots of records. matplotlib is loaded when the first one is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lab.cache import disk_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Plot = Callable[[list[dict]], "Figure"]


def save(figure: Figure, path: Path) -> None:
    """Write it as SVG, the same bytes for the same figure, whole or not at all."""
    import matplotlib

    partial = path.with_name(f".{path.name}.partial")
    try:
        with matplotlib.rc_context({"svg.hashsalt": path.name}):
            figure.savefig(partial, format="svg", metadata={"Date": None})
        partial.replace(path)
    except OSError as error:
        raise disk_error(error, path) from error


def sheet(rows: int = 1, width: float = 8.0, height: float = 4.0, **options: object) -> tuple[Figure, list[Axes]]:
    """A figure with so many rows of axes."""
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained")
    found = figure.subplots(rows, 1, squeeze=False, **options)
    for axes in found[:, 0]:
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
    return figure, list(found[:, 0])


def bars(group: str, series: str, key: str, label: str, paper: str | None = None,
         rows: Callable[[list[dict]], list[dict]] = list) -> Plot:
    """Bars of the rows' `key`: a group for each value of `group`, a bar for each of `series`; the paper's value is a line."""

    def draw(records: list[dict]) -> Figure:
        figure, (axes,) = sheet()
        records = [record for record in rows(records) if record.get(key) is not None]
        groups, names = _values(records, group), _values(records, series)
        width = 0.8 / max(len(names), 1)
        for number, name in enumerate(names):
            mine = [record for record in records if record[series] == name]
            places = [groups.index(record[group]) + (number - (len(names) - 1) / 2) * width for record in mine]
            axes.bar(places, [record[key] for record in mine], width * 0.95, label=str(name))
            known = [(place, record[paper]) for place, record in zip(places, mine, strict=True)
                     if paper and record.get(paper) is not None]
            if known:
                axes.hlines([value for _, value in known], [place - width / 2 for place, _ in known],
                            [place + width / 2 for place, _ in known], "black", linewidth=1.5)
        if paper:
            axes.hlines([], [], [], "black", linewidth=1.5, label="paper")
        axes.set_xticks(range(len(groups)), [str(name) for name in groups])
        axes.set(xlabel=group.replace("_", " "), ylabel=label)
        return legend(figure, axes)

    return draw


def lines(x: str, series: str, key: str, xlabel: str, label: str, paper: str | None = None, panel: str | None = None) -> Plot:
    """Lines of records' `key` over `x`, one for each value of `series`; the paper's values dotted, in the same colour.
    With `panel`, axes of their own for each value of it.
    """

    def draw(records: list[dict]) -> Figure:
        records = [record for record in records if record.get(key) is not None]
        panels = _values(records, panel) if panel else [None]
        figure, rows = sheet(len(panels), height=2.5 * len(panels) + 1.5, sharex=True)
        for axes, value in zip(rows, panels, strict=True):
            shown = [record for record in records if panel is None or record[panel] == value]
            for name in _values(records, series):
                points = [record for record in shown if record[series] == name]
                (line,) = axes.plot([record[x] for record in points], [record[key] for record in points], marker="o",
                                    label=str(name))
                printed = [(record[x], record[paper]) for record in points if paper and record.get(paper) is not None]
                if printed:
                    axes.plot(*zip(*printed, strict=True), marker="x", linestyle=":", color=line.get_color(),
                              label=f"{name}, paper")
            axes.set_ylabel(label)
            axes.set_xscale("log" if panel else "linear")
            if panel:
                axes.set_title(f"{value} {panel}", fontsize="small", loc="left")
            axes.set_xticks(_values(records, x), [f"{place:g}" for place in _values(records, x)], minor=False)
            axes.minorticks_off()
        rows[-1].set_xlabel(xlabel)
        return legend(figure, rows[0])

    return draw


def legend(figure: Figure, axes: Axes) -> Figure:
    """What is what, beside the axes, where it hides nothing."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    return figure


def _values(records: list[dict], key: str) -> list:
    """The values of a key, in the order of the records."""
    return list(dict.fromkeys(record[key] for record in records))
