# SPDX-License-Identifier: Apache-2.0
"""Plots that only the paging study has."""

from __future__ import annotations

from collections.abc import Sequence

from trapless.results.plots import Bars, Lines

_FAULTS = "faults a ms"


def _points(records: list[dict]) -> list[dict]:
    """Return a row for each window of each record."""
    return [{"policy": record["policy"], **point} for record in records for point in _windows(record)]


def _points_by_process(records: list[dict]) -> list[dict]:
    """Return a row for each window of each process of each record."""
    return [{"policy": record["policy"], "process": line["process"], **point}
            for record in records for line in record["timelines"] for point in _windows(line)]


def _windows(series: dict) -> list[dict]:
    """Return start and faults per millisecond of each window of a series. The windows of two series may differ in length."""
    window = series["window_s"]
    return [{"time_s": number * window, "faults_ms": count / (1000 * window)}
            for number, count in enumerate(series["window_faults"])]


WINDOWS = Lines("time_s", "policy", "faults_ms", "time, s", _FAULTS, rows=_points, marks=False)
"""Faults in windows of time, with a line for each record (ASPF figure 1b)."""
TIMELINES = Lines("time_s", "policy", "faults_ms", "time, s", _FAULTS, panel="process", rows=_points_by_process, marks=False)
"""Faults of each process in windows of time, with a panel for each process and a line for each record."""


def thirds(parts: Sequence[str]) -> Bars:
    """Return the plot of each process's faults in each part of its time slices (ASPF figure 1c)."""
    return Bars("process", "part", "faults", "faults", rows=lambda records: [
        {"process": process["process"], "part": part, "faults": process[part]}
        for process in records[0]["each"] for part in parts])
