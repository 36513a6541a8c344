# SPDX-License-Identifier: Apache-2.0
"""The result table on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

# Heading, key of the record, format. Times in us.
COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("kind", "kind", "s"),
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


def cells(record: dict) -> list[str]:
    """One record's cells as text; what is not known is a dash."""
    return [format(record[key], form) if record.get(key) is not None else "-" for _, key, form in COLUMNS]


def markdown(records: list[dict]) -> str:
    """The table as Markdown, as README.md has it."""
    lines = ["| " + " | ".join(heading for heading, _, _ in COLUMNS) + " |",
             "| --- |" + " ---: |" * (len(COLUMNS) - 1)]
    lines += ["| " + " | ".join(cells(record)) + " |" for record in records]
    return "\n".join(lines) + "\n"


def show(records: list[dict], to: Console) -> None:
    """Print the table. A narrow terminal gets one line a figure instead of one a kind."""
    if to.width >= 140 or not to.is_terminal:
        table = Table(box=None, pad_edge=False)
        for number, (heading, _, _) in enumerate(COLUMNS):
            table.add_column(heading, justify="left" if number == 0 else "right", no_wrap=True)
        for record in records:
            table.add_row(*cells(record))
    else:
        table = Table(box=None, pad_edge=False)
        table.add_column("")
        for record in records:
            table.add_column(record["kind"], justify="right", no_wrap=True)
        columns = [cells(record) for record in records]
        for number, (heading, _, _) in enumerate(COLUMNS[1:], 1):
            table.add_row(heading, *(column[number] for column in columns))
    to.print(table)
