# SPDX-License-Identifier: Apache-2.0
"""What an experiment is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from trapless.loads.setup import Setup
from trapless.results import columns as typed
from trapless.results import table
from trapless.results.columns import Column
from trapless.results.plots import Plot
from trapless.study.compared import Compared


@dataclass(frozen=True)
class View:
    """What a page shows of a table: some columns, of all rows or some."""

    columns: tuple[Column, ...]
    """At most MOST_COLUMNS. A figure's interval is in the figure's cell and needs no column."""
    rows: Callable[[dict], bool] = lambda row: True
    """Whether a row is shown. The row is from a record or from CSV; numbers are given as numbers in both cases."""


MOST_COLUMNS = 7
"""On a page that people read."""


@dataclass(frozen=True)
class Table:
    """A table that shows an experiment's records. Pages show parts of it (`views`), the CSV beside them all of it."""

    columns: tuple[Column, ...]
    keys: int = 1
    """Number of columns at the left that name a row; the others are figures."""
    rows: Callable[[list[dict]], list[dict]] = list
    """Rows from the records, if they are not the records themselves."""
    views: dict[str, View] = field(default_factory=dict)
    """By what follows the table's name and a slash in `<!-- table NAME/VIEW -->`; empty: `<!-- table NAME -->`. Without any, the
    page has all columns."""

    def view(self, name: str = "") -> View:
        """A view by its name. KeyError: it has none of it."""
        if not self.views and not name:
            return View(tuple(column for column in self.columns if not column.key.endswith(typed.INTERVAL)))
        return self.views[name]

    def on_page(self, name: str, records: list[dict], view: str = "") -> str:
        """The text of a page's block, with the link to all columns."""
        shown = self.view(view)
        rows = [table.with_intervals(row, shown.columns, self.columns) for row in records if shown.rows(row)]
        return table.laid_out(rows, shown.columns) + table.link(name, len(self.columns))


@dataclass(frozen=True)
class Experiment:
    """One experiment: records, and the tables that show them, by name."""

    title: str
    measure: Callable[[Setup], list[dict]]
    tables: dict[str, Table]
    plots: dict[str, Plot] = field(default_factory=dict)
    """SVG files by name."""
    more: tuple[Column, ...] = ()
    """Columns of its records that no table shows."""
    guest: bool = True
    """Does it boot guests?"""
    kinds: bool = False
    """May one choose some of its kinds?"""
    profile: bool = False
    """May one choose the profile? Otherwise it is the figure's."""
    about: str = ""
    """What is measured and how, in a few sentences."""
    compared: Callable[[list[dict]], list[Compared]] = lambda rows: []
    """The paper's values beside those of the rows."""

    @cached_property
    def columns(self) -> dict[str, Column]:
        """All columns that its records may have, by key."""
        return typed.by_key([*(column for shown in self.tables.values() for column in shown.columns), *self.more])

    def undeclared(self, records: Iterable[dict]) -> set[str]:
        """Keys of words and numbers in records for which no column is declared."""
        return {key for record in records for key, value in record.items()
                if key not in NOT_COLUMNS and isinstance(value, str | int | float) and not isinstance(value, bool)
                and not typed.declared(self.columns, key)}


NOT_COLUMNS = {"git", "seed", "repetitions", "profile", "fio", "yosys", "sum", "console"}
"""Keys that say of which version, seed and software a record is."""


@dataclass(frozen=True)
class Study:
    """The experiments of one paper."""

    title: str
    """Title of the study's part of the report."""
    experiments: dict[str, Experiment]
    place: int = 50
    """Order of the studies in lists: the lowest number comes first."""
