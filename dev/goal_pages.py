# SPDX-License-Identifier: Apache-2.0
"""Makes the texts about goals in documents: the page docs/reference/goals.md, and the measured figure, with its date and aim,
that follows each mark `<!-- goal ID -->` of a page. `./trapless dev reference` writes these texts from the registers and from
studies/goals.csv."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from trapless.base.cache import locked
from trapless.base.outputs import write_whole
from trapless.base.paths import ROOT, STUDIES
from trapless.base.ui import UserError, nearest, say

from dev import goals
from dev.goals import Goal, Measured, number

MARK = re.compile(r"""
    (?P<code> ^```.*?^``` | `[^`\n]*` )
    | <!--\ goal\ (?P<goal>\S+)\ -->(?: \s*\([^()]*\)<!--\ /goal\ -->)? (?P<again> \s*\(measured\ \d)?
    | (?P<odd> <!--\s*/?\s*goals?\b[^\n>]*>? )""", re.VERBOSE | re.MULTILINE | re.DOTALL | re.IGNORECASE)
"""A mark with the text after it; code, in which marks are only examples; and comments that were meant to be marks."""
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
    """Yield the pages that may state results."""
    yield ROOT / "README.md"
    yield from sorted(STUDIES.rglob("*.md"))
    for kind in ("tutorials", "how-to"):
        yield from sorted((ROOT / "docs" / kind).glob("*.md"))


def unit(goal: Goal) -> str:
    """Return the unit after a figure, with a space before it."""
    return {"": "", "x": " times"}.get(goal.unit, f" {goal.unit}")


def behind(goal: Goal, found: Measured | None) -> str:
    """Return the text after a goal's mark."""
    aim = f"aim: {goal.direction} {number(goal.aim, goal.aim)}{unit(goal)}"
    if found is None:
        return f" (not measured yet; {aim})<!-- /goal -->"
    missed = "" if goal.holds(found.figure) else ", not reached"
    return f" (measured {found.date}: {goal.shown(found.figure)}{unit(goal)}; {aim}{missed})<!-- /goal -->"


def marked(text: str, register: dict[str, Goal], found: dict[str, Measured], name: str = "page") -> str:
    """Return the page with the current figures. UserError for a mark without a goal, and for a misspelt mark."""
    def one(match: re.Match[str]) -> str:
        if match["code"]:
            return match[0]
        goal, where = match["goal"], f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
        if match["odd"]:
            raise UserError(f"{where}: {match[0]} belongs to no mark: write <!-- goal ID -->, and nothing after it")
        if goal not in register:
            meant = nearest(goal, register, rest=False) or "studies/*/goals.toml have all"
            raise UserError(f"{where}: no such goal: {goal}; {meant}")
        if match["again"]:
            raise UserError(f"{where}: the figure after goal {goal} has no <!-- /goal -->: remove the figure")
        return f"<!-- goal {goal} -->{behind(register[goal], found.get(goal))}"

    return MARK.sub(one, text)


def page(register: list[Goal], found: dict[str, Measured]) -> str:
    """Return docs/reference/goals.md. Goals that fall short come first."""
    rows: dict[bool | None, str] = {holds: "" for _, holds in PARTS}
    for goal in register:
        last = found.get(goal.id)
        figure, date, holds = "…", "-", None
        if last:
            figure, date, holds = goal.shown(last.figure), last.date, goal.holds(last.figure)
        sentence, aim = goal.sentence.replace("{figure}", figure), f"{goal.direction} {number(goal.aim, goal.aim)}{unit(goal)}"
        rows[holds] += f"| {sentence} | {aim} | {date} | {goal.area} |\n"
    return HEAD + "".join(f"\n## {heading}\n\n| measured | aim | date | area |\n| --- | --- | --- | --- |\n{rows[holds]}"
                          for heading, holds in PARTS if rows[holds])


def pages() -> dict[Path, str]:
    """Return all pages that state goals, by path below the checkout."""
    register, _ = goals.load()
    found = goals.measured()
    by_name = {goal.id: goal for goal in register}
    texts = {path.relative_to(ROOT): marked(path.read_text(), by_name, found, str(path.relative_to(ROOT)))
             for path in documents()}
    return {PAGE: page(register, found), **texts}


def run(check: bool) -> int:
    """Write the pages; with `check`, raise UserError if one is out of date."""
    # Figures that another process measures meanwhile are either in all pages or in none.
    with nullcontext() if check else locked(goals.RECORD.name):
        for path, text in pages().items():
            there = ROOT / path
            if there.is_file() and there.read_text() == text:
                continue
            if check:
                raise UserError(f"{path} is out of date: run ./trapless dev reference")
            write_whole(there, text)
            say(f"{path} written")
    return 0
