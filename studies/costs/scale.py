# SPDX-License-Identifier: Apache-2.0
"""Effect of scaling: the gains of ISCA20's figure 13 with larger and smaller memory, data sets and runs, all in the same
ratio."""

from __future__ import annotations

from dataclasses import replace

from trapless.loads import rocksdb
from trapless.loads.rocksdb import HW_SHARE, MISSES_PER_OP, PER_OP, PROGRAM_COLUMN, Case, Scale
from trapless.loads.setup import Setup
from trapless.results import figures, plots
from trapless.results.columns import Column
from trapless.study import repeated
from trapless.study.compared import Compared, one
from trapless.study.experiment import Experiment, Table, View

from studies.isca20.rocksdb import GAIN, READ_ONLY, SEVERAL, THROUGHPUT, points

PROGRAMS = (rocksdb.FIO, "YCSB-A", READ_ONLY)
TIMES, TIMES_OF_QUICK = (0.5, 1, 2), (0.75, 1)
"""Factors by which the form's scale is multiplied."""


def times(scale: Scale, factor: float) -> Scale:
    """Return the scale with all sizes multiplied by `factor`."""
    return replace(scale, **{name: round(factor * value) for name, value in vars(scale).items()})


def measure(setup: Setup) -> list[dict]:
    """Measure the throughput of osdp and hwdp at each size, and hwdp's gain."""
    base, factors = (rocksdb.SCALE_OF_QUICK, TIMES_OF_QUICK) if setup.quick else (rocksdb.SCALE, TIMES)
    rows = repeated.measure(setup, points(setup, (
        ({"program": program, "memory_mib": scale.memory_mib, "kind": kind}, Case(program, kind, SEVERAL, scale))
        for program in (PROGRAMS[-1:] if setup.quick else PROGRAMS) for scale in (times(base, factor) for factor in factors)
        for kind in ("osdp", "hwdp"))))
    repeated.against(rows, ("program", "memory_mib"), {"kind": "osdp"}, "ops_per_second", "gain")
    return rows


def gains(rows: list[dict]) -> list[dict]:
    """Return the rows that have a gain."""
    return [row for row in rows if "gain" in row]


def compared(rows: list[dict]) -> list[Compared]:
    """Return the gains at each size. The paper has a gain only for its own size."""
    return [Compared(f"gain of {row['program']} with {row['memory_mib']} MiB of memory", "%", None, one(row["gain"]),
                     row["gain_ci"]) for row in gains(rows)]


MEMORY = Column("memory_mib", "memory MiB", "The guest's memory; the data set is twice as large.", "MiB", None, "d")
NAMES = (PROGRAM_COLUMN, MEMORY, figures.KIND)

EXPERIMENT = Experiment(
    "what scaling does: gains of hwdp by size of memory and data set", measure, {"scale": Table(
        (*NAMES, *THROUGHPUT, GAIN, GAIN.interval(), figures.MEAN_US.but(form=".1f"), HW_SHARE, *PER_OP), keys=3,
        views={"": View((*NAMES, THROUGHPUT[0], GAIN, HW_SHARE, MISSES_PER_OP))})},
    {"gain": plots.Lines("memory_mib", "program", "gain", "memory, MiB", "hwdp over osdp, %", rows=gains, log=True)},
    more=rocksdb.COLUMNS,
    about="Runs of isca20-13 with 4 threads, and the same runs with memory, data set and operations multiplied by one factor. "
          "A gain that does not change with the size can be expected at the paper's sizes too.",
    compared=compared)
