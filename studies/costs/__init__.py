# SPDX-License-Identifier: Apache-2.0
"""Experiments that no paper has: the cost of a miss of each kind, of mapping, of readahead, and of a disabled feature."""

from trapless.study.experiment import Study

from studies.costs import large, mapping_cost, miss_latency, off_cost, readahead, scale, small_no_refill

_MODULES = (miss_latency, readahead, mapping_cost, off_cost, small_no_refill, large, scale)
STUDY = Study("Beyond the papers' figures", {module.__name__.rpartition(".")[2]: module.EXPERIMENT for module in _MODULES}, 90)
