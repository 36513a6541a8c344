# SPDX-License-Identifier: Apache-2.0
"""What documents say of the goals: docs/reference/goals.md, and behind each mark `<!-- goal ID -->` of a page the measured figure
with its date and aim. Written by `./trapless dev reference` from the registers and from studies/goals.csv."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trapless.base.outputs import write_whole
from trapless.base.paths import ROOT, STUDIES
from trapless.base.ui import UserError, say

from dev import goals
from dev.goals import Goal, Measured

MARK = re.compile(r"<!-- goal (\S+) -->(?:\s*\([^()]*\)<!-- /goal -->)?")
"""A mark, with what is written behind it."""
PAGE = Path("docs/reference/goals.md")
HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by ./trapless dev reference from studies/*/goals.toml and studies/goals.csv. -->
# Goals

Each sentence has the figure that was measured last. `./trapless dev goals --area AREA` measures the goals of an area again, and
ends with status 1 if a goal that held does not. `--docs` writes the new figures and dates into all pages. [Check a
change](../how-to/check-a-change.md) says how to add a goal.

The [glossary](glossary.md) explains kinds of paging, kernel threads, parts of the SMU and short names of papers. `small` and
`large` are [settings](../../studies/costs/results-pool.md) of the load. "The machine" is the
[simulator](../explanation/machine.md); host time is the time that it takes on the computer where it runs. A-SPF*, sync, virt,
agg, adaptive and foresight are [policies](pagesim.md) of the paging simulator, and a mix is a [set of
programs](../../studies/aspf/workloads.md). Points are percentage points of the time, or of the faults, that sync has; a
negative lead means that A-SPF* is behind.
"""
PARTS = (("What falls short", False), ("What holds", True), ("What was not measured yet", None))


def documents() -> Iterator[Path]:
    """The pages that may state results."""
    yield ROOT / "README.md"
    yield from sorted(STUDIES.rglob("*.md"))
    for kind in ("tutorials", "how-to"):
        yield from sorted((ROOT / "docs" / kind).glob("*.md"))


def number(value: float, aim: float) -> str:
    """A figure with two decimals, or as many as its aim has, without zeros at its end."""
    digits = max(2, len(f"{aim:g}".partition(".")[2]))
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".")


def unit(goal: Goal) -> str:
    """The unit behind a figure, with its space."""
    return {"": "", "x": " times"}.get(goal.unit, f" {goal.unit}")


def behind(goal: Goal, found: Measured | None) -> str:
    """What stands behind a mark."""
    if found is None:
        return ""
    missed = "" if goal.holds(found.figure) else ", not reached"
    return (f" (measured {found.date}: {number(found.figure, goal.aim)}{unit(goal)}; aim: {goal.direction} "
            f"{number(goal.aim, goal.aim)}{unit(goal)}{missed})<!-- /goal -->")


def marked(text: str, register: dict[str, Goal], found: dict[str, Measured]) -> str:
    """The page with the figures of today. UserError for a mark without a goal."""
    def one(match: re.Match[str]) -> str:
        if match[1] not in register:
            raise UserError(f"no such goal: {match[1]}")
        return f"<!-- goal {match[1]} -->{behind(register[match[1]], found.get(match[1]))}"

    return MARK.sub(one, text)


def page(register: list[Goal], found: dict[str, Measured]) -> str:
    """docs/reference/goals.md: what falls short comes first."""
    rows: dict[bool | None, str] = {holds: "" for _, holds in PARTS}
    for goal in register:
        last = found.get(goal.id)
        figure, date, holds = "…", "-", None
        if last:
            figure, date, holds = number(last.figure, goal.aim), last.date, goal.holds(last.figure)
        sentence, aim = goal.sentence.replace("{figure}", figure), f"{goal.direction} {number(goal.aim, goal.aim)}{unit(goal)}"
        rows[holds] += f"| {sentence} | {aim} | {date} | {goal.area} |\n"
    return HEAD + "".join(f"\n## {heading}\n\n| measured | aim | date | area |\n| --- | --- | --- | --- |\n{rows[holds]}"
                          for heading, holds in PARTS if rows[holds])


def pages() -> dict[Path, str]:
    """All pages that state goals, by path below the checkout."""
    register, _ = goals.load()
    found = goals.measured()
    by_name = {goal.id: goal for goal in register}
    texts = {path.relative_to(ROOT): marked(path.read_text(), by_name, found) for path in documents()}
    return {PAGE: page(register, found), **texts}


def run(check: bool) -> int:
    """Write the pages; with `check`, UserError if one is out of date."""
    for path, text in pages().items():
        there = ROOT / path
        if there.is_file() and there.read_text() == text:
            continue
        if check:
            raise UserError(f"{path} is out of date: run ./trapless dev reference")
        write_whole(there, text)
        say(f"{path} written")
    return 0
