# SPDX-License-Identifier: Apache-2.0
"""Shows where the time of a miss goes, for each row of an experiment: steps of misses in hardware, spans of page faults."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import mean

from trapless.results import plots
from trapless.study import repeated

FIGURE = plots.Bars("row", "part", "us", "one miss, us", stacked=True)
"""Figure for the rows that `parts` returns."""


def steps_of(run: dict) -> dict[str, float] | None:
    """Return the us of each step of a run's misses in hardware, or else of each span of its page faults; None if they were not
    recorded."""
    return _inside(run, "steps") or _inside(run, "hw_miss", "steps") or _inside(run, "profile", "faults", "spans_us")


def _inside(found: object, *path: str) -> dict | None:
    """Return the dictionary under these keys, or None. A record may have another value under the same name, as a profile does."""
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) and found else None


def rows(records: Iterable[dict], naming: set[str]) -> list[dict]:
    """Return rows for the records whose runs have steps: the record's name by the keys `naming`, and the mean us of each step
    over its runs. If a record combines several points, each point with steps has a row."""
    found = []
    for record in records:
        points: dict[tuple, list[dict | None]] = defaultdict(list)
        for run in record.get(repeated.RUNS, [record]):
            points[tuple(map(str, run.get("names", {}).values()))].append(steps_of(run))
        telling = {names: known for names, known in points.items() if all(known)}
        name = [str(value) for key, value in record.items() if key in naming]
        for names, known in telling.items():
            words = [*name, *(names if len(telling) > 1 else ())]
            found.append({"row": ", ".join(words),
                          "steps": {step: mean(steps.get(step, 0.0) for steps in known) for step in known[0]}})
    return found


def parts(found: Iterable[dict]) -> list[dict]:
    """Return one row for each part of a bar; parts without time are left out."""
    return [{"row": row["row"], "part": step, "us": us} for row in found for step, us in row["steps"].items() if us > 0]
