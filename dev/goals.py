# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev goals`: the registers of stated numbers (studies/*/goals.toml), and measuring them again."""

from __future__ import annotations

import csv
import json
import re
import time
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trapless.base.outputs import output_folder, write_whole
from trapless.base.paths import ROOT, STUDIES
from trapless.base.ui import UserError, no_such, say
from trapless.loads import fio
from trapless.pagesim.traces import MissingTraces
from trapless.results import table
from trapless.results.columns import Column
from trapless.study.catalogue import EXPERIMENTS

from dev import measures

REGISTERS = tuple(sorted(STUDIES.glob("*/goals.toml")))
RECORD = STUDIES / "goals.csv"
"""The figures that documents state of goals, and when they were measured: `./trapless dev goals --docs` writes it."""
DIRECTIONS = ("at least", "at most")


@dataclass(frozen=True)
class Goal:
    """One stated number and what it should be."""

    id: str
    area: str
    sentence: str
    """With `{figure}` where the measured number stands, so that it is true as printed."""
    measure: str
    aim: float
    unit: str
    direction: str

    @property
    def command(self) -> str:
        """The command that measures this goal."""
        return f"./trapless dev goals --area {self.area}"

    def holds(self, figure: float) -> bool:
        """Does this figure reach the aim?"""
        return figure >= self.aim if self.direction == "at least" else figure <= self.aim


@dataclass(frozen=True)
class StatedTable:
    """A table in a document whose figures are measured again."""

    id: str
    area: str
    file: str
    """The CSV with all of its columns, or the page if that shows them all."""
    tolerance_percent: float
    host: tuple[str, ...]
    """Keys of columns that depend on the host, or on chance."""


@dataclass(frozen=True)
class Figure:
    """A measured goal."""

    id: str
    area: str
    sentence: str
    command: str
    figure: float
    aim: float
    unit: str
    direction: str
    holds: bool | None
    """None: depends on the host, printed only."""


def load(*paths: Path) -> tuple[list[Goal], list[StatedTable]]:
    """The registers, by default all of them; every fault in one is one line."""
    goals: list[Goal] = []
    tables: list[StatedTable] = []
    for path in paths or REGISTERS:
        try:
            data = tomllib.loads(path.read_text())
            new = [Goal(**entry) for entry in data.get("goal", [])]
            tables += [StatedTable(**{**entry, "host": tuple(entry["host"])}) for entry in data.get("table", [])]
        except (OSError, tomllib.TOMLDecodeError, TypeError, KeyError) as error:
            raise UserError(f"{path}: {error}") from error
        for goal in new:
            if goal.id in {known.id for known in goals}:
                raise UserError(f"{path}: goal {goal.id} is there twice")
            if goal.measure not in measures.MEASURES:
                raise UserError(f"{path}: goal {goal.id}: nothing measures {goal.measure!r}")
            if goal.direction not in DIRECTIONS:
                raise UserError(f"{path}: goal {goal.id}: direction must be {' or '.join(DIRECTIONS)}, not {goal.direction!r}")
            if "{figure}" not in goal.sentence:
                raise UserError(f"{path}: goal {goal.id}: its sentence has no {{figure}}")
            goals.append(goal)
    return goals, tables


@dataclass(frozen=True)
class Measured:
    """The figure of a goal that documents state."""

    figure: float
    date: str
    """The day of the measurement."""


def measured(path: Path = RECORD) -> dict[str, Measured]:
    """The figures that documents state, by goal."""
    with path.open(newline="") as file:
        return {row["goal"]: Measured(float(row["figure"]), row["date"]) for row in csv.DictReader(file)}


def record(figures: Iterable[Figure], date: str, path: Path = RECORD) -> None:
    """Take these figures of goals as those that documents state; others stay as they are."""
    known = {goal.id for goal in load()[0]}
    new = {figure.id: Measured(figure.figure, date) for figure in figures}
    rows = {name: value for name, value in (measured(path) | new).items() if name in known}
    lines = [f"{name},{value.figure:.6g},{value.date}\n" for name, value in sorted(rows.items())]
    write_whole(path, "goal,figure,date\n" + "".join(lines))


def table_cells(text: str, name: str) -> list[dict[str, str]]:
    """Rows of the Markdown table between `<!-- table NAME -->` and `<!-- end -->`, by heading."""
    match = re.search(rf"<!-- table {re.escape(name)} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    if not match:
        raise UserError(f"no table {name} in the document")
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in match[1].splitlines() if line.strip().startswith("|")]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def stated_rows(stated: StatedTable) -> list[dict[str, str]]:
    """Rows of a stated table by heading: all columns of its CSV file, headed by their keys, or what a page shows."""
    path = ROOT / stated.file
    return table.csv_rows(path.read_text()) if path.suffix == ".csv" else table_cells(path.read_text(), stated.id)


def measured_table(name: str, session: measures.Session) -> tuple[tuple[Column, ...], int, dict[tuple[str, ...], dict]]:
    """Columns of a stated table, how many of them name a row, and its records by name as CSV has it."""
    rows, names = None, 1
    for experiment, entry in EXPERIMENTS.items():
        if name in entry.tables:
            shown = entry.tables[name]
            columns, names, rows = shown.columns, shown.keys, shown.rows(session.experiment(experiment))
    if rows is None:
        columns, rows = fio.SHORT, list(session.demo.values())
    return columns, names, {tuple(column.plain(row.get(column.key)) for column in columns[:names]): row for row in rows}


def check_table(stated: StatedTable, session: measures.Session) -> list[Figure]:
    """Compare each number of a stated table with a fresh measurement."""
    figures = []
    columns, names, records = measured_table(stated.id, session)
    heads = {column.key if stated.file.endswith(".csv") else column.heading: column for column in columns}
    naming = list(heads)[:names]
    for row in stated_rows(stated):
        name = tuple(row[head] for head in naming)
        if name not in records:
            raise UserError(f"{stated.file}: table {stated.id}: nothing measures the row {' '.join(name)}")
        record = records[name]
        for head, cell in row.items():
            column = heads[head]
            value = record.get(column.key)
            if head in naming or cell in ("", "-") or value is None:
                continue
            aim = float(cell.replace(",", ""))
            near = abs(value - aim) <= max(abs(aim) * stated.tolerance_percent / 100, 0.05)
            figures.append(Figure(
                id=f"{stated.id}-{'-'.join(name)}-{column.key}".replace(" ", "-"), area=stated.area,
                command=f"./trapless dev goals --area {stated.area}",
                sentence=f"{stated.file}, table {stated.id}: {column.heading} of {' '.join(name)} is {cell}", figure=value,
                aim=aim, unit=column.unit, direction=f"within {stated.tolerance_percent} %",
                holds=None if column.key in stated.host else near))
    return figures


def line(figure: Figure) -> str:
    """One line of the report: id, figure, aim, verdict."""
    verdict = {True: "holds", False: "falls short", None: "depends on the host"}[figure.holds]
    return f"{figure.id:44} {figure.figure:>14,.3f} {figure.unit:8} {figure.direction} {figure.aim:,g}: {verdict}"


@contextmanager
def if_recorded(name: str, area: str | None) -> Iterator[None]:
    """Leave out what needs recorded traces that are not there, unless its area is what was asked for."""
    try:
        yield
    except MissingTraces as error:
        if area:
            raise
        say(f"{name} is not measured: {error}")


def lost(figures: Iterable[Figure], before: dict[str, Measured], goals: Iterable[Goal]) -> list[str]:
    """What held and does not now: goals by the figures that documents state, figures of stated tables."""
    aims = {goal.id: goal for goal in goals}
    return [figure.id for figure in figures if figure.holds is False and (
        figure.id not in aims or figure.id in before and aims[figure.id].holds(before[figure.id].figure))]


def run(area: str | None, quick: bool, json_file: Path | None, docs: bool = False) -> int:
    """Measure, print, write, with `docs` also into the documents. 1 if something that held does not; what fell short before is
    a finding, not a failure of the command."""
    if docs and quick:
        raise UserError("--docs writes only figures of the full form: leave out --quick")
    goals, tables = load()
    areas = {goal.area for goal in goals} | {stated.area for stated in tables}
    if area and area not in areas:
        raise no_such("area", area, sorted(areas), "--area")
    if json_file:
        output_folder(json_file.parent)
    session = measures.Session(quick)
    figures = []

    def add(figure: Figure) -> None:
        figures.append(figure)
        print(line(figure), flush=True)

    for goal in goals:
        if area in (None, goal.area) and quick and goal.measure in measures.FULL_ONLY:
            say(f"{goal.id} is not measured: only the full form can")
        elif area in (None, goal.area):
            with if_recorded(goal.id, area):
                value = measures.MEASURES[goal.measure](session)
                add(Figure(goal.id, goal.area, goal.sentence, goal.command, value, goal.aim, goal.unit, goal.direction,
                           goal.holds(value)))
                if docs:
                    record(figures[-1:], time.strftime("%Y-%m-%d"))
    for stated in tables:
        # A smaller load has other figures: a stated table is only compared with the full one.
        if area in (None, stated.area) and not quick and not docs:
            with if_recorded(f"table {stated.id}", area):
                for figure in check_table(stated, session):
                    add(figure)
    held, short = sum(figure.holds is True for figure in figures), sum(figure.holds is False for figure in figures)
    print(f"{held} hold, {short} fall short")
    if json_file:
        write_whole(json_file, json.dumps([vars(figure) for figure in figures], indent=1) + "\n")
    if docs:
        from dev import goal_pages

        return goal_pages.run(check=False)
    gone = lost(figures, measured(), goals)
    if gone:
        say(f"held before: {', '.join(gone)}")
    return 1 if gone else 0
