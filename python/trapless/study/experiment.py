# SPDX-License-Identifier: Apache-2.0
"""The parts of an experiment: tables, views, figures, and the study that it belongs to."""

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
    """What a page shows of a table: some of the columns, and all or some of the rows."""

    columns: tuple[Column, ...]
    """At most MOST_COLUMNS. A figure's interval is in the figure's cell and needs no column."""
    rows: Callable[[dict], bool] = lambda row: True
    """Whether a row is shown. The row comes from a record or from CSV; its numbers are numbers in both cases."""


MOST_COLUMNS = 7
"""Maximum number of columns of a table on a page."""


@dataclass(frozen=True)
class Table:
    """A table of an experiment's records. Pages show parts of it (`views`), and the CSV file beside them all of it."""

    columns: tuple[Column, ...]
    keys: int = 1
    """Number of columns at the left that name a row; the others are figures."""
    rows: Callable[[list[dict]], list[dict]] = list
    """Makes the rows from the records, if the rows are not the records themselves."""
    views: dict[str, View] = field(default_factory=dict)
    """Views by the part after the slash in `<!-- table NAME/VIEW -->`; the empty name is for `<!-- table NAME -->`. Without
    views, the page shows all columns."""

    def view(self, name: str = "") -> View:
        """Return a view by its name. KeyError if there is no such view."""
        if not self.views and not name:
            return View(tuple(column for column in self.columns if not column.key.endswith(typed.INTERVAL)))
        return self.views[name]

    def on_page(self, name: str, records: list[dict], view: str = "") -> str:
        """Return the text of a page's block, with the link to all columns."""
        shown = self.view(view)
        rows = [table.with_intervals(row, shown.columns, self.columns) for row in records if shown.rows(row)]
        return table.laid_out(rows, shown.columns) + table.link(name, len(self.columns))


@dataclass(frozen=True)
class Experiment:
    """One experiment: makes records, and has the tables that show them, by name."""

    title: str
    measure: Callable[[Setup], list[dict]]
    tables: dict[str, Table]
    plots: dict[str, Plot] = field(default_factory=dict)
    """SVG figures by name."""
    more: tuple[Column, ...] = ()
    """Columns of its records that no table shows."""
    guest: bool = True
    """Whether it boots guests."""
    kinds: bool = False
    """Whether --kinds may select some of its kinds."""
    profile: bool = False
    """Whether --profile is allowed; otherwise the figure fixes the profile."""
    about: str = ""
    """Description for readers, in a few sentences: what is measured, and how."""
    compared: Callable[[list[dict]], list[Compared]] = lambda rows: []
    """Returns the paper's values beside ours, for the rows."""

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Return all columns that its records may have, by key."""
        return typed.by_key([*(column for shown in self.tables.values() for column in shown.columns), *self.more])

    def undeclared(self, records: Iterable[dict]) -> set[str]:
        """Return the keys of words and numbers in records for which no column is declared."""
        return {key for record in records for key, value in record.items()
                if key not in NOT_COLUMNS and isinstance(value, str | int | float) and not isinstance(value, bool)
                and not typed.declared(self.columns, key)}


NOT_COLUMNS = {"git", "seed", "repetitions", "profile", "fio", "yosys", "sum", "console"}
"""Keys that give a record's version, seed and software."""


@dataclass(frozen=True)
class Study:
    """The experiments of one paper."""

    title: str
    """Title of the study's part of the report."""
    experiments: dict[str, Experiment]
    place: int = 50
    """Order of the studies in lists: the lowest number comes first."""
