# SPDX-License-Identifier: Apache-2.0
"""Plots that only the paging study has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab.report.plots import Bars, Plot, legend, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def windows(records: list[dict]) -> Figure:
    """Faults by windows of time: a line for each record (ASPF 1b)."""
    figure, (axes,) = sheet()
    for record in records:
        axes.plot(*_steps(record), label=record["policy"], linewidth=0.8)
    axes.set(xlabel="time, s", ylabel="faults a ms")
    return legend(figure, axes)


def timelines(records: list[dict]) -> Figure:
    """Faults of each process by windows of time: axes for each process, a line for each record."""
    names = [line["process"] for line in records[0]["timelines"]]
    figure, rows = sheet(len(names), height=1.6 * len(names) + 0.8, sharex=True)
    for number, (name, axes) in enumerate(zip(names, rows, strict=True)):
        for record in records:
            axes.plot(*_steps(record["timelines"][number]), label=record["policy"], linewidth=0.8)
        axes.set_title(name, fontsize="small", loc="left")
    rows[-1].set_xlabel("time, s")
    figure.supylabel("faults a ms", fontsize="medium")
    return legend(figure, rows[0])


def thirds(parts: Sequence[str]) -> Plot:
    """Faults of each process by parts of its time slices (ASPF 1c)."""

    def draw(records: list[dict]) -> Figure:
        rows = [{"process": process["process"], "part": part, "faults": process[part]}
                for process in records[0]["each"] for part in parts]
        return Bars("process", "part", "faults", "faults")(rows)

    return draw


def _steps(series: dict) -> tuple[list[float], list[float]]:
    """Times of a series' windows, and their counts a millisecond: windows may differ in length."""
    window, counts = series["window_s"], series["window_faults"]
    return [number * window for number in range(len(counts))], [count / (1000 * window) for count in counts]
