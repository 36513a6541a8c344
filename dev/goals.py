# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev goals`: the registers of stated numbers (studies/*/goals.toml), and how they are measured again."""

from __future__ import annotations

import csv
import datetime
import itertools
import json
import math
import re
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path

from trapless.base.cache import locked
from trapless.base.outputs import output_folder, write_whole
from trapless.base.paths import ROOT, STUDIES
from trapless.base.ui import UserError, nearest, no_such, say
from trapless.loads import fio
from trapless.pagesim.traces import MissingTraces
from trapless.results import table
from trapless.results.columns import Column
from trapless.study.catalogue import EXPERIMENTS

from dev import measures

REGISTERS = tuple(sorted(STUDIES.glob("*/goals.toml")))
RECORD = STUDIES / "goals.csv"
"""Figures of goals that documents state, with the dates of their measurements. `./trapless dev goals --docs` writes this file."""
HEADS = ("goal", "figure", "date")
DIRECTIONS = ("at least", "at most")
_DECIMALS = range(2, 13)
_HUGE = 1e15
"""In figures of this size or more, even the digits before the decimal point vary by chance."""


@dataclass(frozen=True)
class Goal:
    """One stated number and its aim."""

    id: str
    area: str
    sentence: str
    """A sentence with `{figure}` in place of the measured number. It must be true with the number printed."""
    measure: str
    aim: float
    unit: str
    direction: str

    @property
    def command(self) -> str:
        """Return the command that measures this goal."""
        return f"./trapless dev goals --area {self.area}"

    def holds(self, figure: float) -> bool:
        """Whether this figure reaches the aim."""
        return reaches(figure, self.aim, self.direction)

    def shown(self, figure: float) -> str:
        """Return the figure as documents print it: rounded, but not across the aim and not to zero."""
        return number(figure, self.aim, lambda rounded: self.holds(rounded) == self.holds(figure))

    def kept(self, figure: float) -> str:
        """Return the figure as RECORD has it: six digits, or all digits if six would be across the aim."""
        short = f"{figure:.6g}"
        return short if self.holds(float(short)) == self.holds(figure) else repr(figure)


def reaches(figure: float, aim: float, direction: str) -> bool:
    """Whether a figure reaches the aim."""
    return figure >= aim if direction == "at least" else figure <= aim


def number(value: float, aim: float, fits: Callable[[float], bool] = lambda _: True) -> str:
    """Format a figure with two decimals, or with as many as its aim has. It has more decimals if otherwise `fits` would be False,
    or if it would be 0 although `value` is not. Trailing zeros are removed."""
    least = max(_DECIMALS[0], -int(Decimal(repr(aim)).normalize().as_tuple().exponent))
    for digits in range(least, max(least + 1, _DECIMALS[-1])) if abs(value) < _HUGE else ():
        text = f"{value:.{digits}f}"
        if fits(float(text)) and (float(text) or not value):
            whole, _, decimals = f"{float(text) or 0.0:,.{digits}f}".partition(".")
            return f"{whole}.{decimals}".rstrip("0").rstrip(".")
    return f"{value:g}" if fits(float(f"{value:g}")) else repr(value)


@dataclass(frozen=True)
class StatedTable:
    """A table in a document whose figures are measured again."""

    id: str
    area: str
    file: str
    """The CSV file with all columns of the table, or the page if it shows all of them."""
    tolerance_percent: float
    host: tuple[str, ...]
    """Keys of columns whose values depend on the host or on chance."""


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
    """None if the figure depends on the host; it is then only printed."""


_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_TYPES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "str": ("a text of one line without |", lambda value: isinstance(value, str) and not re.search(r"[|\n]", value)),
    "float": ("a number", lambda value: type(value) in (int, float) and math.isfinite(value)),
    "tuple[str, ...]": ("a list of texts", lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value)),
}
"""Allowed values of a register's keys, by the type of the field."""


def _entries(path: Path, kind: type, data: dict[str, object]) -> list:
    """Return the goals or stated tables of a register. UserError if a key is missing or has the wrong type."""
    name = "goal" if kind is Goal else "table"
    listed = data.get(name, [])
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise UserError(f"{path}: write [[{name}]] above the keys of each {name}")
    keys, found = {field.name: _TYPES[str(field.type)] for field in fields(kind)}, []
    for at, entry in enumerate(listed, 1):
        where = f"{path}: {name} {entry.get('id', f'number {at}')}"
        for key in entry:
            if key not in keys:
                raise no_such("key", key, keys, where)
        for key, (what, fits) in keys.items():
            if key not in entry:
                raise UserError(f"{where} has no {key}: add {key}, {what}")
            if not fits(entry[key]):
                raise UserError(f"{where}: {key} must be {what}, not {entry[key]!r}")
        for key in ("id", "area"):
            if not _NAME.fullmatch(entry[key]):
                raise UserError(f"{where}: {key} must be lower-case letters, digits, - _ and ., not {entry[key]!r}")
        found.append(kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}))
    return found


def _check_goal(path: Path, goal: Goal) -> None:
    """Raise UserError for a goal that cannot be measured or printed."""
    where = f"{path}: goal {goal.id}"
    if goal.measure not in measures.MEASURES:
        raise UserError(f"{where}: nothing measures {goal.measure!r}; write that function in dev/measures.py")
    if goal.direction not in DIRECTIONS:
        raise UserError(f"{where}: direction must be {' or '.join(DIRECTIONS)}, not {goal.direction!r}")
    if "{figure}" not in goal.sentence:
        raise UserError(f"{where}: its sentence has no {{figure}}; write it in place of the measured number")
    if re.search("[{}]|<!--", goal.sentence.replace("{figure}", "")):
        raise UserError(f"{where}: its sentence may have no braces but {{figure}}, and no comments")
    if re.search("[()]|<!--", goal.unit):
        raise UserError(f"{where}: unit must be without parentheses and comments, not {goal.unit!r}")


def load(*paths: Path) -> tuple[list[Goal], list[StatedTable]]:
    """Read the registers, by default all of them. Each error in them is one line."""
    goals: dict[str, Goal] = {}
    tables: dict[str, StatedTable] = {}
    for path in paths or REGISTERS:
        try:
            data = tomllib.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: {error}") from error
        for name in data:
            if name not in ("goal", "table"):
                raise no_such("heading", name, ("goal", "table"), str(path))
        for goal in _entries(path, Goal, data):
            _check_goal(path, goal)
            if goals.setdefault(goal.id, goal) is not goal:
                raise UserError(f"{path}: goal {goal.id} occurs twice: give it another id")
        for stated in _entries(path, StatedTable, data):
            if stated.tolerance_percent < 0:
                raise UserError(f"{path}: table {stated.id}: tolerance_percent must be 0 or more, not {stated.tolerance_percent}")
            if tables.setdefault(stated.id, stated) is not stated:
                raise UserError(f"{path}: table {stated.id} occurs twice: give it another id")
    return list(goals.values()), list(tables.values())


@dataclass(frozen=True)
class Measured:
    """The figure of a goal that documents state."""

    figure: float
    date: str
    """Day of the measurement."""


def measured(path: Path | None = None) -> dict[str, Measured]:
    """Read the figures that documents state, by goal, by default from RECORD. Each error in the file is one line."""
    path = path or RECORD
    known = [goal.id for goal in load()[0]]
    try:
        rows = list(csv.reader(path.read_text().splitlines()))
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or error}; git restore brings it back") from error
    if not rows or tuple(rows[0]) != HEADS:
        raise UserError(f"{path}: line 1 must be {','.join(HEADS)}; git restore brings it back")
    found: dict[str, Measured] = {}
    for at, row in enumerate(rows[1:], 2):
        where = f"{path}: line {at}"
        if len(row) != len(HEADS):
            raise UserError(f"{where} must be {','.join(HEADS)}, not {','.join(row)!r}; fix or remove the line")
        goal, figure, date = row
        if goal not in known:
            meant = nearest(goal, known, rest=False)
            raise UserError(f"{where}: no register has a goal {goal}; {meant or 'remove the line'}")
        if goal in found:
            raise UserError(f"{where}: goal {goal} occurs twice; remove the older line")
        for head, cell, shape, good in (("figure", figure, "a number", _is_number), ("date", date, "YYYY-MM-DD", _is_day)):
            if not good(cell):
                raise UserError(f"{where}: {head} of {goal} must be {shape}, not {cell!r}; fix the line, or remove it and "
                                "measure the goal again")
        found[goal] = Measured(float(figure), date)
    return found


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_day(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def record(figures: Iterable[Figure], date: str, path: Path | None = None) -> None:
    """Record these figures of goals for documents. Figures of other goals stay as they are."""
    path = path or RECORD
    known = {goal.id: goal for goal in load()[0]}
    with locked(RECORD.name):
        rows = measured(path) | {figure.id: Measured(figure.figure, date) for figure in figures}
        lines = [f"{name},{known[name].kept(value.figure)},{value.date}\n" for name, value in sorted(rows.items())]
        write_whole(path, f"{','.join(HEADS)}\n{''.join(lines)}")


def table_cells(text: str, name: str) -> list[dict[str, str]]:
    """Return the rows of the Markdown table between `<!-- table NAME -->` and `<!-- end -->`, by heading."""
    match = re.search(rf"<!-- table {re.escape(name)} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    if not match:
        raise UserError(f"no table {name}: write <!-- table {name} --> above it and <!-- end --> below it")
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in match[1].splitlines() if line.strip().startswith("|")]
    return [dict(itertools.zip_longest(rows[0], row)) for row in rows[2:]]


def stated_rows(stated: StatedTable) -> list[dict[str, str]]:
    """Return the rows of a stated table by heading: all columns of its CSV file, by key, or the columns that a page shows."""
    path = ROOT / stated.file
    try:
        text = path.read_text()
        rows = table.csv_rows(text) if path.suffix == ".csv" else table_cells(text, stated.id)
    except (OSError, ValueError, UserError) as error:
        raise UserError(f"{stated.file}: table {stated.id}: {getattr(error, 'strerror', None) or error}") from error
    if not rows:
        raise UserError(f"{stated.file}: table {stated.id} has no rows: write it again")
    for row in rows:
        if None in row or None in row.values():
            raise UserError(f"{stated.file}: table {stated.id}: row {next(iter(row.values()))} has more or fewer cells than "
                            "headings")
    return rows


def measured_table(name: str, session: measures.Session) -> tuple[tuple[Column, ...], int, dict[tuple[str, ...], dict]]:
    """Return the columns of a stated table, how many of them name a row, and its records by name in the form of CSV."""
    rows, names = None, 1
    for experiment, entry in EXPERIMENTS.items():
        if name in entry.tables:
            shown = entry.tables[name]
            columns, names, rows = shown.columns, shown.keys, shown.rows(session.experiment(experiment))
    if rows is None:
        columns, rows = fio.SHORT, list(session.demo.values())
    return columns, names, {tuple(column.plain(row.get(column.key)) for column in columns[:names]): row for row in rows}


def check_table(stated: StatedTable, session: measures.Session) -> list[Figure]:
    """Compare each number of a stated table with a new measurement."""
    figures = []
    columns, names, records = measured_table(stated.id, session)
    heads = {column.key if stated.file.endswith(".csv") else column.heading: column for column in columns}
    naming = list(heads)[:names]
    rows = stated_rows(stated)
    for head in (*naming, *rows[0]):
        if head not in heads or head not in rows[0]:
            fault = "missing" if head in heads else "not measured"
            raise UserError(f"{stated.file}: table {stated.id}: column {head} is {fault}: write the table again")
    for row in rows:
        name = tuple(row[head] for head in naming)
        if name not in records:
            raise UserError(f"{stated.file}: table {stated.id}: nothing measures the row {' '.join(name)}")
        record = records[name]
        for head, cell in row.items():
            column = heads[head]
            value = record.get(column.key)
            if head in naming or cell in ("", "-") or value is None:
                continue
            if not _is_number(cell.replace(",", "")):
                raise UserError(f"{stated.file}: table {stated.id}: {head} of {' '.join(name)} must be a number, not {cell!r}")
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
    """Return one line of the report: id, figure, aim, verdict."""
    verdict = {True: "holds", False: "falls short", None: "depends on the host"}[figure.holds]

    def fits(rounded: float) -> bool:
        return figure.direction not in DIRECTIONS or reaches(rounded, figure.aim, figure.direction) == figure.holds

    shown, aim = number(figure.figure, figure.aim, fits), number(figure.aim, figure.aim)
    return f"{figure.id:44} {shown:>14} {figure.unit:8} {figure.direction} {aim}: {verdict}"


@contextmanager
def if_recorded(name: str, area: str | None) -> Iterator[None]:
    """Skip measurements that need missing traces, unless `area` was asked for."""
    try:
        yield
    except MissingTraces as error:
        if area:
            raise
        say(f"{name} is not measured: {error}")


def lost(figures: Iterable[Figure], before: dict[str, Measured], goals: Iterable[Goal]) -> list[str]:
    """Return what held before and does not now: goals (by the figures that documents state) and figures of stated tables."""
    aims = {goal.id: goal for goal in goals}
    return [figure.id for figure in figures if figure.holds is False and (
        figure.id not in aims or figure.id in before and aims[figure.id].holds(before[figure.id].figure))]


def run(area: str | None, quick: bool, json_file: Path | None, docs: bool = False) -> int:
    """Measure and print; with `docs`, also write the figures into the documents. Return 1 if something that held before does not
    hold now. A goal that fell short before is a finding, not a failure of the command."""
    if docs and quick:
        raise UserError("--docs writes only figures of the full form: leave out --quick")
    goals, tables = load()
    areas = {goal.area for goal in goals} | {stated.area for stated in tables}
    if area and area not in areas:
        raise no_such("area", area, sorted(areas), "--area")
    goals = [goal for goal in goals if area in (None, goal.area)]
    # A smaller load has different figures, so stated tables are compared only in the full form.
    tables = [stated for stated in tables if area in (None, stated.area) and not quick and not docs]
    if not goals and not tables:
        raise UserError(f"--area {area}: it has no goals, only tables: leave out {'--docs' if docs else '--quick'}")
    # All files are read now, because measuring may take hours.
    before = measured()
    for stated in tables:
        stated_rows(stated)
    if docs:
        from dev import goal_pages

        goal_pages.pages()
    if json_file:
        output_folder(json_file.parent)
        if json_file.is_dir():
            raise UserError(f"--json {json_file}: is a folder: name a file")
    figures = _measure(goals, tables, measures.Session(quick), area, docs)
    held, short = sum(figure.holds is True for figure in figures), sum(figure.holds is False for figure in figures)
    print(f"{held} hold, {short} fall short")
    if json_file:
        write_whole(json_file, json.dumps([vars(figure) for figure in figures], indent=1) + "\n")
    if docs:
        goal_pages.run(check=False)
    gone = lost(figures, before, goals)
    if gone:
        say(f"held before, and falls short now: {', '.join(gone)}")
    return 1 if gone else 0


def _measure(goals: list[Goal], tables: list[StatedTable], session: measures.Session, area: str | None,
             docs: bool) -> list[Figure]:
    """Return the figures of goals and tables. Each is printed as soon as it is known, and with `docs` also recorded."""
    figures = []

    def add(figure: Figure) -> None:
        figures.append(figure)
        print(line(figure), flush=True)

    for goal in goals:
        if session.quick and goal.measure in measures.FULL_ONLY:
            say(f"{goal.id} is not measured: it needs the full form")
            continue
        with if_recorded(goal.id, area):
            value = measures.MEASURES[goal.measure](session)
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise UserError(f"goal {goal.id}: {goal.measure} in dev/measures.py returned {value!r}, which is not a number")
            add(Figure(goal.id, goal.area, goal.sentence, goal.command, value, goal.aim, goal.unit, goal.direction,
                       goal.holds(value)))
            if docs:
                record(figures[-1:], time.strftime("%Y-%m-%d"))
    for stated in tables:
        with if_recorded(f"table {stated.id}", area):
            for figure in check_table(stated, session):
                add(figure)
    return figures
