# SPDX-License-Identifier: Apache-2.0
"""The paper's policies as its text literally says (preset `paper`), on chains: their access pattern comes from the paper's
figures (docs/decisions/103-chains.md)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from itertools import product

from trapless.loads.setup import Setup
from trapless.pagesim import output
from trapless.results import plots
from trapless.results.columns import Column, word
from trapless.study.compared import Compared, one
from trapless.study.experiment import Experiment, Table, View

from studies.aspf import figures, paper
from studies.aspf.orders import in_all_orders

FIGURES = {"time_s_less": "6a", "context_switches_less": "6b", "faults_less": "6c"}
"""What each of the paper's figures shows."""
PREDICTED = ("Chains are fitted to the share of waiting, to the faults that virt and aspf-star save on Mix6, and to the useful "
             "prefetches from sets. The rest is predicted.")
WHY = {
    "time_s_less": ("time saved over sync", PREDICTED),
    "context_switches_less": ("fewer context switches than sync", "With sync a process leaves the processor only when its slice "
                              "ends, so what virt and agg save follows the time. A-SPF postpones memory-intensive processes."),
    "faults_less": ("fewer ULL accesses than sync", PREDICTED),
}
"""What each figure is called, and why ours may differ."""


def chains(setup: Setup) -> list[dict]:
    """The paper's policies, read literally, on Mix3 to Mix6 of chains."""
    cases = figures.product(figures.MIXES, figures.POLICIES, chains=True)
    records = figures.compare(figures.simulate(setup, cases, output.prefetches))
    virt = {record["mix"]: record for record in records if record["policy"] == figures.VIRT}
    for record in _beside_paper(records):
        record["paper_useful"] = paper.value("6c", "useful_set_prefetches", record["policy"]) if record["mix"] == "mix6" else None
        if record["policy"] not in (figures.BASELINE, figures.VIRT):
            record["moved_less_than_virt"] = 100 * (1 - record["pages_moved"] / virt[record["mix"]]["pages_moved"])
    return records


def programs(setup: Setup) -> list[dict]:
    """The paper's policies on Mix3 to Mix6 of the recorded programs, read literally (preset `paper`) and by default."""
    literal, default = (figures.compare(figures.simulate(setup, figures.product(figures.MIXES, figures.POLICIES, [values]),
                                                         output.prefetches)) for values in ({"preset": "paper"}, {}))
    for record, other in zip(literal, default, strict=True):
        record |= {f"default_{key}": other[key] for key in FIGURES if key in other}
    return _beside_paper(literal)


def _beside_paper(records: list[dict]) -> list[dict]:
    """Add the paper's values of figures 6a to 6c."""
    for record in records:
        for key, figure in FIGURES.items():
            record[f"paper_{key}"] = paper.value(figure, record["mix"], record["policy"])
    return records


def labels(setup: Setup) -> list[dict]:
    """A-SPF on Mix3 of chains with every choice of memory-intensive processes, fixed for the whole run."""
    names = paper.mixes()["mix3"]
    choices = list(product((False, True), repeat=len(names)))
    values = [{f"process.{at}.intense": which for at, which in enumerate(chosen)} for chosen in choices]
    cases = [figures.product(["mix3"], *rest, chains=True) for rest in (([figures.BASELINE],), (["aspf"], values))]
    _, *records = figures.compare(figures.simulate(setup, sum(cases, []), output.prefetches))
    for record, chosen in zip(records, choices, strict=True):
        record["intense"] = ", ".join(name for name, which in zip(names, chosen, strict=True) if which) or "none"
    return records


def beside(records: Sequence[dict]) -> list[Compared]:
    """The paper's values beside ours."""
    found = [Compared(f"{what}: {record['policy']}, {record['mix']}", "%", one(record[f"paper_{key}"]), one(record[key]),
                      record.get(f"{key}_ci"), why)
             for record in records for key, (what, why) in WHY.items() if record[f"paper_{key}"] is not None and key in record]
    return found + [Compared(f"prefetches from sets that were of use, {record['policy']}", "%", one(record["paper_useful"]),
                             one(record["set_useful_share"]), record.get("set_useful_share_ci"), PREDICTED)
                    for record in records
                    if record["paper_useful"] is not None and record.get("set_useful_share") is not None]


def _figure(name: str, measure: Callable[[Setup, bool], list[dict]], why: str = "") -> dict[str, Experiment]:
    """A figure of figures.py on chains. `why`: the reason for differences from the paper, if that of figures.py is wrong here."""
    usual = figures.EXPERIMENTS[f"aspf-{name}"]
    (table,) = usual.tables.values()

    @wraps(measure)
    def on_chains(setup: Setup) -> list[dict]:
        return measure(setup, True)

    def compared(records: list[dict]) -> list[Compared]:
        return [replace(each, reason=why or each.reason) for each in usual.compared(records)]

    return {f"aspf-chains-{name}": replace(
        usual, title=f"{usual.title}, on chains", measure=in_all_orders(on_chains), tables={f"aspf-chains-{name}": table},
        about=f"{inspect.getdoc(measure)} {ABOUT} {figures.IN_ORDERS}", compared=compared)}


def _paper(key: str, heading: str) -> Column:
    return Column(f"paper_{key}", heading, "The paper's value.", "%", None, ".2f")


def _default(column: Column, heading: str) -> tuple[Column, Column]:
    default = column.but(key=f"default_{column.key}", heading=heading, meaning=f"{column.meaning} With the defaults.")
    return figures.with_interval(default, f"± {heading.removesuffix(' %')}")


SAVED, SWITCHES, FAULTS = figures.TIME_LESS, figures.SWITCHES_LESS, figures.FAULTS_LESS
USEFUL = output.USEFUL["set"]
PAPERS = (_paper("time_s_less", "paper's time saved %"), _paper("faults_less", "paper's fewer accesses %"),
          _paper("context_switches_less", "paper's fewer switches %"))
DEFAULTS = (_default(SAVED, "saved by default %"), _default(FAULTS, "fewer accesses by default %"),
            _default(SWITCHES, "fewer switches by default %"))
INTENSE = word("intense", "memory-intensive", "Which processes have this label.")
_KEYS = (figures.MIX, figures.POLICY)
ABOUT = ("By the paging simulator (docs/reference/pagesim.md) in the paper's setting, read literally. Chains (decision 103) take "
         "the places of the paper's programs. A run repeats to the nanosecond.")

EXPERIMENTS = {
    "aspf-chains": Experiment(
        "the paper's policies, read literally, on chains (ASPF 6a to 6c, IV-B1)", in_all_orders(chains), {"aspf-chains": Table((
            *_KEYS, *figures.TIMES, *figures.with_interval(SAVED, "± points"), PAPERS[0],
            *figures.ACCESSES, PAPERS[1], output.SWITCHES, *figures.with_interval(SWITCHES, "± fewer switches"), PAPERS[2],
            output.ISSUED["set"], *figures.with_interval(USEFUL, "± set"), figures.PAPER_USEFUL, output.MOVED,
            *figures.with_interval(figures.MOVED_LESS, "± fewer moved"), figures.TRACE), 2, views={
            "": View((*_KEYS, output.WAITING, SAVED, PAPERS[0], FAULTS, PAPERS[1])),
            "switches": View((*_KEYS, SWITCHES, PAPERS[2], USEFUL, figures.PAPER_USEFUL, figures.MOVED_LESS))})},
        {"time": plots.Bars("mix", "policy", "time_s_less", figures.LESS_TIME, "paper_time_s_less")}, guest=False,
        more=(*figures.WITH_PREFETCHES, *figures.OF_RECORD), compared=beside,
        about=f"{chains.__doc__} {ABOUT} {figures.IN_ORDERS}"),
    "aspf-labels": Experiment(
        "A-SPF by its labels, on Mix3 of chains", labels, {"aspf-labels": Table((
            INTENSE, *figures.TIMES, SAVED, figures.FAULTS, FAULTS, output.SWITCHES, SWITCHES, figures.TRACE), views={
            "": View((INTENSE, SAVED, FAULTS, SWITCHES))})}, {}, guest=False,
        more=(*figures.WITH_PREFETCHES, *figures.OF_RECORD), about=f"{labels.__doc__} {ABOUT} {figures.IN_ONE_ORDER}"),
    **_figure("1b", figures.figure_1b),
    **_figure("1c", figures.figure_1c),
    **_figure("7", figures.figure_7, PREDICTED),
    **_figure("8", figures.figure_8, PREDICTED),
    **_figure("9", figures.figure_9),
    "aspf-programs": Experiment(
        "the paper's policies, read literally, on the recorded programs", in_all_orders(programs), {"aspf-programs": Table((
            *_KEYS, *figures.TIMES, *figures.with_interval(SAVED, "± points"), *DEFAULTS[0], PAPERS[0],
            *figures.ACCESSES, *DEFAULTS[1], PAPERS[1],
            output.SWITCHES, *figures.with_interval(SWITCHES, "± fewer switches"), *DEFAULTS[2], PAPERS[2],
            *figures.with_interval(USEFUL, "± set"), figures.TRACE), 2, views={
            "": View((*_KEYS, output.WAITING, SAVED, DEFAULTS[0][0], PAPERS[0], FAULTS))})}, {}, guest=False,
        more=(*figures.WITH_PREFETCHES, *figures.OF_RECORD),
        about=f"{programs.__doc__} {figures.ABOUT} {figures.IN_ORDERS}"),
}
