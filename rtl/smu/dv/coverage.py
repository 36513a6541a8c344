# SPDX-License-Identifier: Apache-2.0
"""Functional coverage: the points planned in plan.toml, hit by the benches' checkers. A point that is not planned fails the test.

As a program, it adds up the hits of all runs and prints a report.

    rtl/run python -m rtl.smu.dv.coverage"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from pathlib import Path

from rtl.tools.env import BUILDS

PLAN = tomllib.loads((Path(__file__).parent / "plan.toml").read_text())
GOAL = 95
FOLDER = BUILDS / "dv" / "coverage"

POINTS = {f"{group}.{point}": text for group, points in PLAN["points"].items() for point, text in points.items()}
HOLES = PLAN.get("holes", {})
CROSS_HOLES = PLAN.get("cross_holes", {})
CROSS_GOAL = 90
"""Percent of the crosses that a short run must meet. A long run must meet all that have no reason in plan.toml."""
_hits: Counter[str] = Counter()


def cover(point: str) -> None:
    """Note that a point was hit."""
    assert point in POINTS, f"{point} is not in plan.toml"
    _hits[point] += 1


def save(name: str) -> None:
    """Keep what this run has hit."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(_hits))


def report(folder: Path = FOLDER) -> tuple[float, str]:
    """The share of planned points that were hit, in percent, and a table. Writes both beside the hits of the runs."""
    total: Counter[str] = Counter()
    runs = sorted(path for path in folder.glob("run-*.json") if "seeded" not in path.name)
    for run in runs:
        total.update(json.loads(run.read_text()))
    hit = [point for point in POINTS if total[point]]
    share = 100 * len(hit) / len(POINTS)
    lines = [f"{len(hit)} of {len(POINTS)} points hit in {len(runs)} runs: {share:.1f} % (goal {GOAL} %)", ""]
    for point, text in POINTS.items():
        state = f"{total[point]:9}" if total[point] else "   hole  "
        lines.append(f"{state} {point:32} {text}" + (f" [{HOLES[point]}]" if not total[point] and point in HOLES else ""))
    text = "\n".join(lines) + "\n"
    data = {"percent": round(share, 1), "goal": GOAL, "runs": len(runs), "hits": {point: total[point] for point in POINTS},
            "holes": {point: HOLES.get(point, "not justified") for point in POINTS if not total[point]}}
    (folder.parent / "coverage.json").write_text(json.dumps(data, indent=1) + "\n")
    (folder.parent / "coverage.txt").write_text(text)
    return share, text


def cross_report(crosses: Counter[str]) -> tuple[float, str]:
    """The share of the crosses (crosses.sv) that were met, in percent, and a list of the others."""
    unmet = sorted(name for name, count in crosses.items() if not count)
    share = 100 * (len(crosses) - len(unmet)) / max(len(crosses), 1)
    lines = [f"{len(crosses) - len(unmet)} of {len(crosses)} crosses met: {share:.1f} % (goal {CROSS_GOAL} %)"]
    return share, "\n".join([*lines, *(f"not met: {name} [{CROSS_HOLES.get(name, 'not in this run')}]" for name in unmet)]) + "\n"


if __name__ == "__main__":
    share, table = report()
    print(table, end="")
    sys.exit(0 if share >= GOAL else 1)
