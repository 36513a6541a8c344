# SPDX-License-Identifier: Apache-2.0
"""`./trapless claims`: the register of stated numbers (claims.toml), and measuring them again."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import measures
from lab.experiments.catalogue import EXPERIMENTS
from lab.outputs import output_folder, write_whole
from lab.pagesim.traces import MissingTraces
from lab.paths import LAB, ROOT
from lab.report import table
from lab.ui import UserError, no_such, say

REGISTER = LAB / "claims.toml"
DIRECTIONS = ("at least", "at most")


@dataclass(frozen=True)
class Claim:
    """One stated number and what it should be."""

    id: str
    area: str
    sentence: str
    measure: str
    aim: float
    unit: str
    direction: str

    @property
    def command(self) -> str:
        """The command that measures this claim."""
        return f"./trapless claims --area {self.area}"

    def holds(self, figure: float) -> bool:
        """Does this figure reach the aim?"""
        return figure >= self.aim if self.direction == "at least" else figure <= self.aim


@dataclass(frozen=True)
class StatedTable:
    """A table in a document whose figures are measured again."""

    id: str
    area: str
    file: str
    tolerance_percent: float
    host: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A measured claim."""

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


def load(path: Path = REGISTER) -> tuple[list[Claim], list[StatedTable]]:
    """The register; every fault in it is one line."""
    try:
        data = tomllib.loads(path.read_text())
        claims = [Claim(**entry) for entry in data.get("claim", [])]
        tables = [StatedTable(**{**entry, "host": tuple(entry["host"])}) for entry in data.get("table", [])]
    except (OSError, tomllib.TOMLDecodeError, TypeError, KeyError) as error:
        raise UserError(f"{path}: {error}") from error
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise UserError(f"{path}: claim {claim.id} stands there twice")
        seen.add(claim.id)
        if claim.measure not in measures.MEASURES:
            raise UserError(f"{path}: claim {claim.id}: nothing measures {claim.measure!r}")
        if claim.direction not in DIRECTIONS:
            raise UserError(f"{path}: claim {claim.id}: direction {claim.direction!r}")
    return claims, tables


def table_cells(text: str, name: str) -> list[dict[str, str]]:
    """Rows of the Markdown table between `<!-- table NAME -->` and `<!-- end -->`, by heading."""
    match = re.search(rf"<!-- table {re.escape(name)} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    if not match:
        raise UserError(f"no table {name} in the document")
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in match[1].splitlines() if line.strip().startswith("|")]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def measured_table(name: str, session: measures.Session) -> tuple[tuple[table.Column, ...], int, dict[tuple[str, ...], dict]]:
    """Columns of a stated table, how many of them name a row, and its records by name."""
    columns, names = table.COLUMNS, 1
    rows = None
    for experiment, entry in EXPERIMENTS.items():
        if name in entry.tables:
            shown = entry.tables[name]
            columns, names, rows = shown.columns, shown.keys, shown.rows(session.experiment(experiment))
    if rows is None:
        rows = list(session.demo.values())
    return columns, names, {tuple(table.cells(row, columns)[:names]): row for row in rows}


def check_table(stated: StatedTable, session: measures.Session) -> list[Figure]:
    """Compare each number of a stated table with a fresh measurement."""
    figures = []
    columns, names, records = measured_table(stated.id, session)
    keys = {heading: key for heading, key, _ in columns}
    for row in table_cells((ROOT / stated.file).read_text(), stated.id):
        name = tuple(row[heading] for heading, _, _ in columns[:names])
        if name not in records:
            raise UserError(f"{stated.file}: table {stated.id}: nothing measures the row {' '.join(name)}")
        record = records[name]
        for heading, cell in list(row.items())[names:]:
            value = record.get(keys[heading])
            if cell == "-" or value is None:
                continue
            aim = float(cell.replace(",", ""))
            near = abs(value - aim) <= max(abs(aim) * stated.tolerance_percent / 100, 0.05)
            figures.append(Figure(
                id=f"{stated.id}-{'-'.join(name)}-{keys[heading]}".replace(" ", "-"), area=stated.area,
                command=f"./trapless claims --area {stated.area}",
                sentence=f"{stated.file}, table {stated.id}: {heading} of {' '.join(name)} is {cell}", figure=value, aim=aim,
                unit=heading.split()[-1], direction=f"within {stated.tolerance_percent} %",
                holds=None if heading in stated.host else near))
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


def run(area: str | None, quick: bool, json_file: Path | None) -> int:
    """Measure, print, write; 0 whatever the figures are: falling short is a finding, not a failure of the command."""
    claims, tables = load()
    areas = {claim.area for claim in claims} | {stated.area for stated in tables}
    if area and area not in areas:
        raise no_such("area", area, sorted(areas), "--area")
    if json_file:
        output_folder(json_file.parent)
    session = measures.Session(quick)
    figures = []

    def add(figure: Figure) -> None:
        figures.append(figure)
        print(line(figure), flush=True)

    for claim in claims:
        if area in (None, claim.area) and quick and claim.measure in measures.FULL_ONLY:
            say(f"{claim.id} is not measured: only the full form can")
        elif area in (None, claim.area):
            with if_recorded(claim.id, area):
                value = measures.MEASURES[claim.measure](session)
                add(Figure(claim.id, claim.area, claim.sentence, claim.command, value, claim.aim, claim.unit, claim.direction,
                           claim.holds(value)))
    for stated in tables:
        # A smaller load has other figures: a stated table is only compared with the full one.
        if area in (None, stated.area) and not quick:
            with if_recorded(f"table {stated.id}", area):
                for figure in check_table(stated, session):
                    add(figure)
    held, short = sum(figure.holds is True for figure in figures), sum(figure.holds is False for figure in figures)
    print(f"{held} hold, {short} fall short")
    if json_file:
        write_whole(json_file, json.dumps([vars(figure) for figure in figures], indent=1) + "\n")
    return 0
