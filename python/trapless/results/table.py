# SPDX-License-Identifier: Apache-2.0
"""Tables of results on a terminal, in documents and in CSV files beside the documents."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from trapless.results.columns import INTERVAL, Column

DATA = "data"
"""Folder, beside a page, with the CSV files of its tables."""
MEANINGS = "columns.csv"
"""File in that folder that describes the columns of the CSV files."""
MEANINGS_HEADS = ("table", "column", "heading", "unit", "direction", "meaning")


def cells(record: dict, columns: Sequence[Column]) -> list[str]:
    """Return one record's cells as text; a missing value is a dash."""
    return [column.printed(record.get(column.key)) for column in columns]


def number(value: float) -> str:
    """Format a figure of any size with its significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) >= 100 else f"{value:.3g}"


def heads(columns: Sequence[Column]) -> list[dict]:
    """Return headings for grid.html: title, meaning, and whether the column has words."""
    return [{"title": column.heading, "meaning": column.meaning, "word": column.word} for column in columns]


def markdown(records: list[dict], columns: Sequence[Column]) -> str:
    """Return the table as Markdown."""
    return laid_out([cells(record, columns) for record in records], columns)


def laid_out(rows: list[list[str]], columns: Sequence[Column]) -> str:
    """Return a Markdown table of cells that are already text."""
    lines = ["| " + " | ".join(column.heading for column in columns) + " |",
             "| " + " | ".join("---" if column.word else "---:" for column in columns) + " |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def with_intervals(record: dict, shown: Sequence[Column], columns: Sequence[Column]) -> list[str]:
    """Return the cells of a row of a page's table. If `columns` include the interval of a figure, it is in the figure's cell."""
    intervals = {column.key: column for column in columns if column.key.endswith(INTERVAL)}
    found = []
    for column in shown:
        cell, wide = column.printed(record.get(column.key)), intervals.get(f"{column.key}{INTERVAL}")
        known = wide and record.get(wide.key) is not None and cell != "-"
        found.append(f"{cell} ± {wide.printed(record[wide.key])}" if wide and known else cell)
    return found


def csv_text(records: list[dict], columns: Sequence[Column]) -> str:
    """Return all columns as CSV. The headings are the keys; values have the digits of the table."""
    return csv_lines([[column.key for column in columns],
                      *([column.plain(record.get(column.key)) for column in columns] for record in records)])


def csv_lines(rows: list[list[str]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def csv_rows(text: str) -> list[dict[str, str]]:
    """Read the rows of a CSV file, by its headings."""
    return list(csv.DictReader(io.StringIO(text)))


def meanings(before: str, name: str, columns: Sequence[Column]) -> str:
    """Return the text of MEANINGS (`before`) with this table's columns replaced. Tables are in alphabetical order."""
    kept = [[row[head] for head in MEANINGS_HEADS] for row in csv_rows(before) if row["table"] != name]
    mine = [[name, column.key, column.heading, column.unit, column.direction or "", column.meaning] for column in columns]
    return csv_lines([list(MEANINGS_HEADS), *sorted([*kept, *mine], key=lambda row: row[0])])


def link(name: str, count: int) -> str:
    """Return the line below a page's table: links to all columns and their meaning."""
    return f"\n[All {count} columns]({DATA}/{name}.csv) ([meaning]({DATA}/{MEANINGS}))\n"


def blocks(text: str) -> list[str]:
    """Return the names in `<!-- table NAME -->`, in the order of a page."""
    return re.findall(r"<!-- table (\S+) -->", text)


def replace(text: str, name: str, table: str) -> str:
    """Return `text` with `table` between `<!-- table NAME -->` and `<!-- end -->`."""
    return re.sub(rf"(<!-- table {re.escape(name)} -->\n).*?(?=<!-- end -->)", lambda match: match[1] + table, text,
                  flags=re.DOTALL)


def show(records: list[dict], to: Console, columns: Sequence[Column]) -> None:
    """Print the table, and never cut a cell. If a terminal is too narrow and the turned table fits, each figure has a line, and
    each record a column."""
    table = _upright(records, columns)
    if to.is_terminal and _width(table, to) > to.width:
        turned = _turned(records, columns)
        table = turned if _width(turned, to) <= to.width else table
    print_whole(table, to)


def print_whole(table: Table, to: Console) -> None:
    """Print a table as wide as it is: rich makes none wider than its console, and cuts the cells instead."""
    width = to.width
    try:
        to.width = max(width, _width(table, to))
        to.print(table, crop=False)
    finally:
        to.width = width


def _upright(records: list[dict], columns: Sequence[Column]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.heading, justify="left" if column.word else "right", no_wrap=True)
    for record in records:
        table.add_row(*cells(record, columns))
    return table


def _turned(records: list[dict], columns: Sequence[Column]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    texts = [cells(record, columns) for record in records]
    for text in texts:
        table.add_column(text[0], justify="right", no_wrap=True)
    for at, column in enumerate(columns[1:], 1):
        table.add_row(column.heading, *(text[at] for text in texts))
    return table


def _width(table: Table, to: Console) -> int:
    """Characters of the table's longest line."""
    return Measurement.get(to, to.options.update(max_width=100_000), table).maximum
