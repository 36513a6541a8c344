# SPDX-License-Identifier: Apache-2.0
"""A-SPF* by how the paper's text is read, on a drive on which reading ahead is not free: which reading is the best default?"""

from __future__ import annotations

from itertools import product

from trapless.loads.setup import Setup
from trapless.results.columns import HIGHER, Column, word
from trapless.study.experiment import Experiment, Table, View

from studies.aspf import figures

READINGS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "full set": ({"aspf.full_set": "replace", "aspf.set_capacity": 256}, {"aspf.full_set": "leave", "aspf.set_capacity": 16}),
    "turns": ({"aspf.sets_span_turns": False}, {"aspf.sets_span_turns": True}),
    "next": ({"aspf.rebuilt": "any-intense"}, {"aspf.rebuilt": "next-only"}),
    "accessed": ({"aspf.accessed": "since-read"}, {"aspf.accessed": "last-turn"}),
    "rate": ({"aspf.fault_rate": "window"}, {"aspf.fault_rate": "turn"}),
    "ready": ({"aspf.postponed_are_ready": False}, {"aspf.postponed_are_ready": True}),
}
"""Sentences with two readings (choices.md): the values of the presets `today` and `paper`."""


def readings(setup: Setup) -> list[dict]:
    """A-SPF* with every combination of readings, on Mix3 to Mix6 of the recorded programs."""
    choices = list(product((0, 1), repeat=len(READINGS)))
    values = [{key: value for pair, which in zip(READINGS.values(), chosen, strict=True) for key, value in pair[which].items()}
              for chosen in choices]
    cases = [figures.Case(mix, figures.BASELINE) for mix in figures.MIXES]
    cases += figures.product(figures.MIXES, [figures.STAR], values)
    records = figures.compare(figures.simulate(setup, cases))[len(figures.MIXES):]
    rows = []
    for at, chosen in enumerate(choices):
        # `product` has all values of the first mix, then those of the second.
        found = records[at::len(choices)]
        literal = [name for name, which in zip(READINGS, chosen, strict=True) if which]
        rows.append({"literal": ", ".join(literal) or "none", "count": len(literal),
                     **{f"{record['mix']}_less": record["time_s_less"] for record in found},
                     "mean_less": sum(record["time_s_less"] for record in found) / len(found),
                     "faults_mean_less": sum(record["faults_less"] for record in found) / len(found)})
    return ranked(rows)


def ranked(rows: list[dict]) -> list[dict]:
    """Add the rank of each combination by the mean of time."""
    ranks = {id(row): rank for rank, row in enumerate(sorted(rows, key=lambda row: -row["mean_less"]), 1)}
    return [{**row, "rank": ranks[id(row)]} for row in rows]


LITERAL = word("literal", "read literally", "Which sentences are read as in the preset `paper`; the others as in `today`.")
COUNT = Column("count", "number", "How many sentences are read literally.", "sentences", None, "d")
MIXES = tuple(Column(f"{mix}_less", f"{mix.capitalize()} %", f"Time saved over sync on {mix.capitalize()}.", "%", HIGHER, ".2f")
              for mix in figures.MIXES)
MEAN = Column("mean_less", "mean %", "Mean of the time saved over sync on the four mixes.", "%", HIGHER, ".2f")
FAULTS = Column("faults_mean_less", "fewer accesses %", "Mean of the ULL accesses saved over sync on the four mixes.", "%",
                HIGHER, ".2f")
RANK = Column("rank", "rank", "Rank of the combination by the mean of time (1: the best).", "1", None, "d")
EXPERIMENTS = {
    "aspf-readings": Experiment(
        "A-SPF* by how its text is read", readings, {"aspf-readings": Table(
            (LITERAL, COUNT, *MIXES, MEAN, FAULTS, RANK), views={"": View(
                (LITERAL, *MIXES, MEAN, FAULTS),
                lambda row: row["count"] in (0, 1, len(READINGS)) or row["rank"] == 1)})}, {}, guest=False,
        about=f"{readings.__doc__} {figures.ABOUT} {figures.IN_ONE_ORDER}"),
}
