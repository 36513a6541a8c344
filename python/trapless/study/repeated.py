# SPDX-License-Identifier: Apache-2.0
"""Points of a figure: the same run with several seeds, its mean and its confidence interval (Student's t over the seeds)."""

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
    """Which one it is, by keys of its record."""
    runs: dict[int, kept.Run]
    """By seed. Points that are set against each other have the same seeds in the same order."""


def measure(setup: Setup, points: Sequence[Point]) -> list[dict]:
    """A row for each point: its names, the means of its figures, their intervals, its runs."""
    found = iter(kept.records(build.machine(), [run for point in points for run in point.runs.values()], setup.at_once))
    return [row(point.names, [{**next(found), "seed": seed, "configuration": kept.configuration(run)}
                              for seed, run in point.runs.items()]) for point in points]


def row(names: dict[str, object], runs: list[dict]) -> dict:
    """The row of runs that differ in nothing but their seed. What is no number is the first run's."""
    found = dict(names)
    for key, value in runs[0].items():
        if is_number(value) and key != "seed":
            _average(found, key, [run.get(key) for run in runs])
        elif not isinstance(value, dict) and key != "seed":
            found.setdefault(key, value)
    return {**found, "repetitions": len(runs), RUNS: [{"names": names, **run} for run in runs]}


def is_number(value: object) -> bool:
    """Is it a figure?"""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _average(row: dict, key: str, values: list[float | None]) -> None:
    known = [value for value in values if value is not None]
    if len(known) == len(values):
        row[key] = known[0] if len(set(known)) == 1 else mean(known)
        row[key + INTERVAL] = half_width(known)


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of the mean's confidence interval; None of a single value."""
    if len(values) < 2:
        return None
    from scipy.stats import t

    return float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / sqrt(len(values))


def widest(rows: Sequence[dict], key: str) -> float | None:
    """The widest interval of a figure; None: none has one."""
    known = [row[key + INTERVAL] for row in rows if row.get(key + INTERVAL) is not None]
    return max(known, default=None)


def half_width_of_ratio(figures: Sequence[float], bases: Sequence[float]) -> float | None:
    """Half the width of the confidence interval of the ratio of means, if each figure has a separate base; None for one pair. It
    is computed to the first order, as usual: from the differences between each figure and its base times the ratio."""
    below = mean(bases)
    share = mean(figures) / below
    return half_width([(figure - share * base) / below for figure, base in zip(figures, bases, strict=True)])


def percent_more(figure: float, base: float) -> float:
    """By how many percent it is more."""
    return 100 * (figure / base - 1)


def ratio(figure: float, base: float) -> float:
    """How many times it is the base."""
    return figure / base


def against(rows: list[dict], same: Sequence[str], base: dict[str, object], key: str, name: str,
            change: Callable[[float, float], float] = percent_more) -> None:
    """Add under `name` what `change` says of a row's `key` and that of the row which has the values of `base` and is alike in
    the keys `same`: seed by seed, which is a figure of the run, too; then the mean and its interval."""
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
