# SPDX-License-Identifier: Apache-2.0
"""All experiments by name."""

from __future__ import annotations

from lab.experiments import (
    aspf,
    isca20_fio,
    isca20_rocksdb,
    isca20_smt,
    large,
    mapping_cost,
    miss_latency,
    off_cost,
    readahead,
    scale,
    small_no_refill,
    stc,
    thesis,
)
from lab.experiments.setup import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.__name__.rpartition(".")[2]: module.EXPERIMENT
    for module in (miss_latency, readahead, mapping_cost, off_cost, small_no_refill, large, scale)
}
for figures in (isca20_fio, isca20_rocksdb, isca20_smt, thesis, aspf, stc):
    EXPERIMENTS |= figures.EXPERIMENTS
