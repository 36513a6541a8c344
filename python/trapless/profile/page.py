# SPDX-License-Identifier: Apache-2.0
"""index.html of `./trapless profile`: shows where the time of a run went, on one self-contained page
(docs/reference/profiling.md)."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from markupsafe import Markup

from trapless.base.outputs import write_whole
from trapless.results import drawing as figures
from trapless.results import table
from trapless.results.columns import LOWER, Column, word
from trapless.results.templates import render

PAGE = "index.html"
BINS = 120
"""Number of time intervals in which misses are counted."""
QUANTILES = (1, 25, 50, 75, 99)
"""Quantiles that the page shows, in percent."""
STEPS = (word("name", "step", "A step of a miss."), Column("mean", "mean us", "Mean time of the step.", "us", LOWER, ",.3f"),
         *(Column(f"p{q}", f"p{q} us", f"Time that {q} % of the misses do not exceed.", "us", LOWER, ",.3f") for q in QUANTILES),
         Column("max", "max us", "The longest time.", "us", LOWER, ",.3f"))

_PARTS = {"before": "before", "device": "device", "smu": "SMU", "after": "after", "pollution": "user code over ideal"}

# Records on the page, in this order: file, name, title, and which records of the file are meant.
_READ, _MINOR, _WALKS, _PORTS = "faults", "minor", "walks", "ports"
_KINDS: tuple[tuple[str, str, str, Callable[[dict], bool]], ...] = (
    ("faults.jsonl", _READ, "a page fault that waited for the device", lambda fault: "device_end" in fault["times"]),
    ("faults.jsonl", _MINOR, "a page fault that did not", lambda fault: True),
    ("misses.jsonl", _WALKS, "a miss in hardware, asked by a page walk", lambda miss: miss["hart"] is not None),
    ("misses.jsonl", _PORTS, "a miss in hardware, asked by the page fault handler", lambda miss: True),
)


@dataclass
class Misses:
    """Misses of one kind, with one row for each."""

    name: str
    title: str
    path: Path
    spans: tuple[str, ...] = ()
    """Names of the spans: the steps of a miss."""
    begins: array = field(default_factory=lambda: array("q"))
    """Start of each miss, in core cycles."""
    lines: array = field(default_factory=lambda: array("q"))
    """Offset of each record in the file."""
    flat: array = field(default_factory=lambda: array("q"))

    def add(self, record: dict, at: int) -> None:
        """Add a record, which is in the file at byte `at`."""
        self.spans = tuple(record["spans"])
        self.begins.append(next(iter(record["times"].values())))
        self.lines.append(at)
        self.flat.extend(record["spans"].values())

    @property
    def cycles(self) -> np.ndarray:
        """Return the cycles of each span, with one row for each miss."""
        return np.array(self.flat).reshape(len(self.begins), -1)

    def median(self) -> dict:
        """Return the record with the median duration."""
        order = np.argsort(self.cycles.sum(axis=1), kind="stable")
        with open(self.path, "rb") as file:
            file.seek(self.lines[order[(len(order) - 1) // 2]])
            return json.loads(file.readline())

    def distribution(self, clock_hz: int) -> list[dict]:
        """Return mean, quantiles and maximum in us, of each step that is not always 0 and of the whole miss."""
        columns = [*zip(self.spans, self.cycles.T, strict=True), ("whole", self.cycles.sum(axis=1))]
        return [{"name": name, "mean": us(values.mean(), clock_hz), "max": us(values.max(), clock_hz),
                 **{f"p{q}": us(at, clock_hz)
                    for q, at in zip(QUANTILES, np.percentile(values, QUANTILES, method="inverted_cdf"), strict=True)}}
                for name, values in columns if values.any()]


def us(cycles: float, clock_hz: int) -> float:
    """Convert cycles to microseconds."""
    return float(cycles) * 1e6 / clock_hz


def read(out: Path) -> dict[str, Misses]:
    """Read all misses, by the name of their kind. Kinds without misses are left out."""
    kinds = {name: Misses(name, title, out / file) for file, name, title, _ in _KINDS}
    for source in dict.fromkeys(file for file, *_ in _KINDS):
        choices = [(name, chosen) for file, name, _, chosen in _KINDS if file == source]
        at = 0
        with open(out / source, "rb") as lines:
            for line in lines:
                record = json.loads(line)
                kinds[next(name for name, chosen in choices if chosen(record))].add(record, at)
                at += len(line)
    return {name: misses for name, misses in kinds.items() if misses.begins}


def looked_at(windows: list[dict], cycles: np.ndarray) -> np.ndarray:
    """Convert cycles of the run to cycles of the measured time, in which the windows follow each other without gaps."""
    return sum((np.clip(cycles, w["begin_cycle"], w["end_cycle"]) - w["begin_cycle"] for w in windows), np.zeros_like(cycles))


def lives(misses: Misses, record: dict) -> tuple[str, figures.Figure]:
    """Describe the median miss of a kind: a text that identifies it, and a figure of its steps."""
    clock, one = record["clock_hz"], misses.median()
    steps = [(name, us(cycles, clock)) for name, cycles in one["spans"].items() if cycles]
    begin = next(iter(one["times"].values()))
    where = [f"task {one['task']}"] if one["task"] else []
    where += [f"hart {one['hart']}"] if one["hart"] is not None else []
    where += [f"address {one['va']}"] if int(one["va"], 0) else []
    text = (f"The median of {len(misses.begins):,}: {', '.join([*where, f'{begin / clock * 1e3:,.3f} ms into the run'])}; "
            f"{sum(time for _, time in steps):,.2f} us.")
    return text, figures.timeline(f"life-{misses.name}", f"Steps of {misses.title}, in microseconds", steps)


def steps(misses: Misses, record: dict) -> tuple[list[list[str]], figures.Figure]:
    """Return how long each step takes: cells of the table, and boxes. Times below one cycle are drawn as one cycle, because the
    axis is logarithmic."""
    rows, least = misses.distribution(record["clock_hz"]), us(1, record["clock_hz"])
    drawn = [{key: value if key == "name" else max(value, least) for key, value in row.items()} for row in rows]
    figure = figures.boxes(f"steps-{misses.name}", f"Distribution of the steps of {misses.title}, in microseconds", drawn)
    return [table.cells(row, STEPS) for row in rows], figure


def over_time(kinds: dict[str, Misses], record: dict) -> figures.Figure:
    """Draw the misses over the measured time, by who served them."""
    windows = record["windows"]
    end = max(sum(w["end_cycle"] - w["begin_cycle"] for w in windows), 1)
    shown = {"by hardware, without a fault": _WALKS, "page faults that waited for the device": _READ,
             "page faults that did not": _MINOR}
    bins = {label: np.minimum(looked_at(windows, np.array(kinds[name].begins)) * BINS // end, BINS - 1)
            for label, name in shown.items() if name in kinds}
    counts = {label: np.bincount(places, minlength=BINS).tolist() for label, places in bins.items()}
    width = end / BINS / record["clock_hz"]
    return figures.curves("misses-over-time", "Misses served by hardware and by the operating system over time",
                          [place * width * 1e3 for place in range(BINS)], [(f"in {width * 1e6:,.4g} us", counts)], "ms")


def frames(out: Path, record: dict) -> figures.Figure | None:
    """Draw over time the frames in the free ring, unsynced and adopted; None if there were never any."""
    with open(out / "frames.jsonl") as lines:
        samples = [json.loads(line) for line in lines]
    if not any(sample["ring"] is not None or sample["unsynced"] or sample["adopted"] for sample in samples):
        return None
    cycles = looked_at(record["windows"], np.array([sample["cycle"] for sample in samples], dtype=np.int64))
    before = samples[0]["adopted"]
    levels = {"unsynced": [sample["unsynced"] for sample in samples]}
    if any(sample["ring"] is not None for sample in samples):
        levels = {"in the ring": [sample["ring"] for sample in samples]} | levels
    return figures.curves("frames", "Frames in the ring, unsynced and adopted over time",
                          (cycles * 1e3 / record["clock_hz"]).tolist(),
                          [("frames", levels), ("frames", {"adopted so far": [s["adopted"] - before for s in samples]})], "ms")


def write(out: Path, record: dict, facts: list[tuple[str, str]], tables: list[tuple[str, list[dict], tuple[Column, ...]]],
          graph: tuple[str, int]) -> None:
    """Write the page for the results in `out`. `tables` has a caption, rows and columns for each table; `graph` is the flame
    graph as SVG, and the number of cycles in it."""
    kinds = read(out)
    served = [misses for name, misses in kinds.items() if name != _MINOR]
    write_whole(out / PAGE, render(
        "profile_page.html", style=figures.style(), scripts=figures.scripts(), title="Where the time goes", facts=facts,
        lives=[(misses.title, *lives(misses, record)) for misses in served],
        steps=[(misses.name, misses.title, *steps(misses, record)) for misses in kinds.values()],
        step_heads=table.heads(STEPS), over_time=over_time(kinds, record) if kinds else None,
        frames=frames(out, record), regions=len(record["windows"]),
        tables=[(caption, table.heads(columns), [table.cells(row, columns) for row in rows])
                for caption, rows, columns in tables],
        flame=Markup(graph[0]), flames={"cycles": graph[1], "frames": graph[0].count("<title>")},
        cut={name: record["cut"][name] for name in ("faults", "misses") if record["cut"][name]}))


def write_kinds(out: Path, rows: list[dict], columns: tuple[Column, ...], kinds: list[str],
                facts: list[tuple[str, str]]) -> None:
    """Write the page that compares several kinds: their table, a figure with its bars, and links to their folders."""
    parts = {label: [row.get(part) for row in rows] for part, label in _PARTS.items()}
    figure = figures.stack("kinds", "Time of a page miss by kind, in microseconds", [row["kind"] for row in rows], parts)
    write_whole(out / PAGE, render(
        "profile_kinds.html", style=figures.style(), scripts=figures.scripts(), title="A page miss by kind of paging",
        facts=facts, figure=figure if rows else None, heads=table.heads(columns), kinds=kinds, page=PAGE,
        rows=[table.cells(row, columns) for row in rows]))
