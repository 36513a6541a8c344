# SPDX-License-Identifier: Apache-2.0
"""Result tables on a terminal and in documents."""

from __future__ import annotations

import re

from rich.console import Console
from rich.table import Table

Column = tuple[str, str, str]
"""Heading, key of the record, format. Times in us."""

COLUMNS: tuple[Column, ...] = (
    ("kind", "kind", "s"),
    ("readahead KB", "readahead_kb", "d"),
    ("ops", "ops", ",d"),
    ("mean us", "mean_us", ".2f"),
    ("p50 us", "p50_us", ".1f"),
    ("p99 us", "p99_us", ".1f"),
    ("p99.9 us", "p999_us", ".1f"),
    ("device us", "device_us", ".2f"),
    ("not device us", "nondevice_us", ".2f"),
    ("hw misses", "hw_misses", ",d"),
    ("OS faults", "os_faults", ",d"),
    ("kernel instr/op", "kernel_instructions_per_op", ",.0f"),
    ("sim s", "sim_seconds", ".2f"),
    ("host s", "host_seconds", ".1f"),
    ("MIPS", "mips", ".0f"),
)


def cells(record: dict, columns: tuple[Column, ...] = COLUMNS) -> list[str]:
    """One record's cells as text; what is not known is a dash."""
    return [format(record[key], form) if record.get(key) is not None else "-" for _, key, form in columns]


def number(value: float) -> str:
    """A figure of any size: as many digits as count."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) >= 100 else f"{value:.3g}"


def heads(columns: tuple[Column, ...]) -> list[dict]:
    """Headings for grid.html: titles, and whether words stand below."""
    return [{"title": title, "word": form == "s"} for title, _, form in columns]


def markdown(records: list[dict], columns: tuple[Column, ...] = COLUMNS) -> str:
    """The table as Markdown, as documents have it."""
    lines = ["| " + " | ".join(heading for heading, _, _ in columns) + " |",
             "| " + " | ".join("---" if form == "s" else "---:" for _, _, form in columns) + " |"]
    lines += ["| " + " | ".join(cells(record, columns)) + " |" for record in records]
    return "\n".join(lines) + "\n"


def replace(text: str, name: str, table: str) -> str:
    """`text` with what stands between `<!-- table NAME -->` and `<!-- end -->` replaced by `table`."""
    return re.sub(rf"(<!-- table {re.escape(name)} -->\n).*?(?=<!-- end -->)", lambda match: match[1] + table, text,
                  flags=re.DOTALL)


def show(records: list[dict], to: Console, columns: tuple[Column, ...] = COLUMNS) -> None:
    """Print the table. A narrow terminal gets one line a figure instead of one a kind."""
    if to.width >= 140 or not to.is_terminal:
        table = Table(box=None, pad_edge=False)
        for heading, _, form in columns:
            table.add_column(heading, justify="left" if form == "s" else "right", no_wrap=True)
        for record in records:
            table.add_row(*cells(record, columns))
    else:
        table = Table(box=None, pad_edge=False)
        table.add_column("")
        for record in records:
            table.add_column(cells(record, columns)[0], justify="right", no_wrap=True)
        texts = [cells(record, columns) for record in records]
        for number, (heading, _, _) in enumerate(columns[1:], 1):
            table.add_row(heading, *(text[number] for text in texts))
    to.print(table)
