# SPDX-License-Identifier: Apache-2.0
"""`./trapless experiment`: one experiment, its records and tables."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from lab import claims
from lab.experiments.catalogue import EXPERIMENTS
from lab.experiments.setup import Setup
from lab.outputs import output_folder, write_whole
from lab.paths import ROOT
from lab.report import plots, table
from lab.ui import UserError, say


def run(name: str | None, setup: Setup, out: Path | None, update_docs: bool, measured: bool = False) -> int:
    """Run one experiment: results.json, results.md and plots in its folder, tables on the terminal; without a name, list them.
    If it is `measured` already, take the records of that run.
    """
    if name is None:
        for known, experiment in EXPERIMENTS.items():
            print(f"{known:16} {experiment.title}")
        return 0
    if name not in EXPERIMENTS:
        raise UserError(f"experiment {name}: not one of {', '.join(EXPERIMENTS)}")
    experiment, folder = EXPERIMENTS[name], out or Path("out") / name
    output_folder(folder)
    records = _read(folder) if measured else experiment.measure(replace(setup, out=folder))
    texts = {known: table.markdown(shown.rows(records), shown.columns) for known, shown in experiment.tables.items()}
    write_whole(folder / "results.json", json.dumps(records, indent=1) + "\n")
    write_whole(folder / "results.md", "\n".join(texts.values()))
    for drawn, plot in experiment.plots.items():
        plots.save(plot(records), folder / f"{drawn}.svg")
    console = Console(width=None if os.isatty(1) else 200, highlight=False)
    for shown in experiment.tables.values():
        table.show(shown.rows(records), console, shown.columns)
        console.print()
    if update_docs:
        write_to_documents(texts)
    say(", ".join([f"results: {folder / 'results.json'}", *(f"{folder / drawn}.svg" for drawn in experiment.plots)]))
    return 0


def _read(folder: Path) -> list[dict]:
    try:
        return json.loads((folder / "results.json").read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"no records of an earlier run in {folder}: {error}") from None


def write_to_documents(texts: dict[str, str]) -> None:
    """Put the tables into the documents that state them (those that the register of claims names)."""
    for stated in claims.load()[1]:
        if stated.id in texts:
            path = ROOT / stated.file
            write_whole(path, table.replace(path.read_text(), stated.id, texts[stated.id]))
            say(f"{stated.file}: table {stated.id} written")
