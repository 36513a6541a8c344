# SPDX-License-Identifier: Apache-2.0
"""Tables on a terminal and in a pipe show every cell as a whole."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from trapless.results import table
from trapless.results.columns import Column, word

COLUMNS = (word("kind", "kind", "K."), *(Column(f"c{n}", f"a heading of column {n}", "F.", "us", None, ",.2f") for n in range(9)))
ROWS = [{"kind": kind, **{f"c{n}": 1e6 + n for n in range(9)}} for kind in ("ideal", "osdp")]


def shown(width: int, terminal: bool) -> list[str]:
    """The lines of the table on a terminal of this width, or in a pipe."""
    text = io.StringIO()
    table.show(ROWS, Console(file=text, width=width, force_terminal=terminal, color_system=None, highlight=False), COLUMNS)
    return [line for line in text.getvalue().splitlines() if line.strip()]


@pytest.mark.parametrize(("width", "terminal"), [(40, False), (80, False), (60, True), (150, True), (400, True), (20, True)])
def test_no_cell_is_cut(width: int, terminal: bool) -> None:
    lines = [line.rstrip() for line in shown(width, terminal)]
    text = "\n".join(lines)
    assert "\u2026" not in text
    assert all(column.heading in text for column in COLUMNS[1:])
    assert text.count("1,000,008.00") == 2
    if width >= 60 and terminal:
        assert max(map(len, lines)) <= width


def test_a_table_is_turned_only_where_it_does_not_fit() -> None:
    assert len(shown(400, True)) == len(shown(40, False)) == 3
    assert len(shown(150, True)) == len(shown(60, True)) == 10
