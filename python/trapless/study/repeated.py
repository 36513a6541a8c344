# SPDX-License-Identifier: Apache-2.0
"""Points of a figure: repeats a run with several seeds, and computes mean and confidence interval (Student's t over the
seeds)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from trapless.guest import build, kept
from trapless.loads.setup import Setup
from trapless.results.columns import INTERVAL as INTERVAL

CONFIDENCE = 0.95
RUNS = "runs"
"""Key of a point's single runs."""


@dataclass(frozen=True)
class Point:
    """One point of a figure."""

    names: dict[str, object]
    """Names of the point, by key of its record."""
    runs: dict[int, kept.Run]
    """Runs by seed. Points that are compared with each other have the same seeds in the same order."""


def measure(setup: Setup, points: Sequence[Point]) -> list[dict]:
    """Return a row for each point: its names, the means of its figures, their intervals, its runs."""
    found = iter(kept.records(build.machine(), [run for point in points for run in point.runs.values()], setup.at_once))
    return [row(point.names, [{**next(found), "seed": seed, "configuration": kept.configuration(run)}
                              for seed, run in point.runs.items()]) for point in points]


def row(names: dict[str, object], runs: list[dict]) -> dict:
    """Make the row of runs that differ only in their seed. Values that are not numbers come from the first run."""
    found = dict(names)
    for key, value in runs[0].items():
        if is_number(value) and key != "seed":
            _average(found, key, [run.get(key) for run in runs])
        elif not isinstance(value, dict) and key != "seed":
            found.setdefault(key, value)
    return {**found, "repetitions": len(runs), RUNS: [{"names": names, **run} for run in runs]}


def is_number(value: object) -> bool:
    """Whether the value is a figure."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _average(row: dict, key: str, values: list[float | None]) -> None:
    known = [value for value in values if value is not None]
    if len(known) == len(values):
        row[key] = known[0] if len(set(known)) == 1 else mean(known)
        row[key + INTERVAL] = half_width(known)


def half_width(values: Sequence[float]) -> float | None:
    """Return half the width of the mean's confidence interval; None for a single value."""
    if len(values) < 2:
        return None
    from scipy.stats import t

    return float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / sqrt(len(values))


def widest(rows: Sequence[dict], key: str) -> float | None:
    """Return the widest interval of a figure; None if no row has one."""
    known = [row[key + INTERVAL] for row in rows if row.get(key + INTERVAL) is not None]
    return max(known, default=None)


def half_width_of_ratio(figures: Sequence[float], bases: Sequence[float]) -> float | None:
    """Return half the width of the confidence interval of a ratio of means, if each figure has a separate base; None for one
    pair. The usual first-order approximation is used: from the differences between each figure and its base times the ratio."""
    below = mean(bases)
    share = mean(figures) / below
    return half_width([(figure - share * base) / below for figure, base in zip(figures, bases, strict=True)])


def percent_more(figure: float, base: float) -> float:
    """Return by how many percent the figure exceeds the base."""
    return 100 * (figure / base - 1)


def ratio(figure: float, base: float) -> float:
    """Return the figure divided by the base."""
    return figure / base


def against(rows: list[dict], same: Sequence[str], base: dict[str, object], key: str, name: str,
            change: Callable[[float, float], float] = percent_more) -> None:
    """Add under `name` what `change` returns for a row's `key` and that of its base row. The base row has the values of `base`
    and the same values as the row under the keys `same`. Seeds are compared one by one, and each run gets this figure too; then
    come the mean and its interval."""
    bases = {tuple(row[part] for part in same): row for row in rows if base.items() <= row.items()}
    for row in rows:
        other = bases.get(tuple(row[part] for part in same))
        if other is None or other is row:
            continue
        pairs = [(run.get(key), before.get(key)) for run, before in zip(row[RUNS], other[RUNS], strict=True)]
        if all(figure is not None and before for figure, before in pairs):
            values = [change(figure, before) for figure, before in pairs]
            row[name], row[name + INTERVAL] = mean(values), half_width(values)
            for run, value in zip(row[RUNS], values, strict=True):
                run[name] = value
