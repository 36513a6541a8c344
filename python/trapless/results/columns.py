# SPDX-License-Identifier: Apache-2.0
"""Columns of results: each describes one figure of a record. The code that makes records declares their columns.

    MEAN_US = Column("mean_us", "mean us", "Mean latency of an operation.", "us", LOWER, ".2f")

The columns of results are in `columns.json` beside the rows. `compare`, `report`, plots and the Python API read them. A figure
without a declared column, as in results of earlier versions, is a bare number: its unit is 1, and no direction is better.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from trapless.base.outputs import write_whole
from trapless.base.ui import UserError

HIGHER, LOWER = "higher is better", "lower is better"
INTERVAL = "_ci"
"""Suffix of a column's key, for the column with half the width of the figure's interval."""
FILE = "columns.json"
"""File beside results.json with the columns of its rows, by key."""


@dataclass(frozen=True)
class Column:
    """Description of the values under one key of records."""

    key: str
    """Name in records, in JSON and in CSV."""
    heading: str
    """Heading in tables that people read."""
    meaning: str
    """What the values mean, in one sentence."""
    unit: str = ""
    """Unit. Empty: the values are words or names; 1: a bare number."""
    direction: str | None = None
    """HIGHER, LOWER, or None: neither is better."""
    form: str = "s"
    """Format of a value, for format()."""

    @property
    def word(self) -> bool:
        """Whether its values are words."""
        return self.form == "s"

    def interval(self, heading: str = "", form: str = "") -> Column:
        """Return the column with half the width of this column's 95 % confidence interval."""
        return Column(f"{self.key}{INTERVAL}", heading or f"± {self.heading}",
                      f"Half the width of the 95 % confidence interval of {self.key}.", self.unit, LOWER,
                      form or self.form.lstrip("+"))

    def but(self, **values: str | None) -> Column:
        """Return this column with another heading, meaning or form."""
        return replace(self, **values)

    def printed(self, value: object) -> str:
        """Return a value as tables show it; a missing value is a dash."""
        return "-" if value is None else format(value, self.form)

    def plain(self, value: object) -> str:
        """Return a value as CSV has it: the same digits, without separators and plus signs; a missing value is empty."""
        return "" if value is None else str(value) if self.word else format(value, self.form).replace(",", "").lstrip("+")


def word(key: str, heading: str, meaning: str) -> Column:
    """Make a column of words."""
    return Column(key, heading, meaning)


def bare(key: str) -> Column:
    """Make the column of a figure that has no declared column."""
    return Column(key, key.replace("_", " "), "", "1", None, "g")


def by_key(columns: Iterable[Column]) -> dict[str, Column]:
    """Return columns by their keys. If a key occurs twice, the first column counts."""
    found: dict[str, Column] = {}
    for column in columns:
        found.setdefault(column.key, column)
    return found


def of(known: Mapping[str, Column], key: str) -> Column:
    """Return the column of a key. The column of an interval is made from its figure's column. Without a declared column, it is
    `bare`."""
    if key in known:
        return known[key]
    figure = known.get(key.removesuffix(INTERVAL)) if key.endswith(INTERVAL) else None
    return figure.interval() if figure else bare(key)


def declared(known: Mapping[str, Column], key: str) -> bool:
    """Whether a column is declared for a key, or for the figure of an interval's key."""
    return key in known or key.removesuffix(INTERVAL) in known


def typed(column: Column) -> dict:
    """Return unit, direction and meaning, for JSON."""
    return {"unit": column.unit, "direction": column.direction, "meaning": column.meaning}


def from_json(entry: object) -> Column:
    """Read a column in the form of `asdict`, or of earlier versions: heading, key and form. ValueError if it is neither."""
    if isinstance(entry, list) and len(entry) == 3 and all(isinstance(part, str) for part in entry):
        heading, key, form = entry
        return Column(key, heading, "", "" if form == "s" else "1", None, form)
    if not isinstance(entry, dict) or entry.keys() != {field.name for field in fields(Column)}:
        raise ValueError("not a column")
    return Column(**entry)


def write(folder: Path, columns: Iterable[Column]) -> None:
    """Write the columns of results.json to the same folder."""
    write_whole(folder / FILE, json.dumps([asdict(column) for column in columns], indent=1) + "\n")


def read(folder: Path) -> dict[str, Column]:
    """Read the columns of the results in a folder, by key; empty if an earlier version wrote the results. UserError for a damaged
    file."""
    path = folder / FILE
    try:
        return by_key(from_json(entry) for entry in json.loads(path.read_text()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path}: not the columns of results: {error}; run the experiment again") from None
