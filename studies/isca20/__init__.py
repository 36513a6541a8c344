# SPDX-License-Identifier: Apache-2.0
"""The ISCA 2020 paper on hardware-based demand paging."""

from trapless.study.experiment import Study

from studies.isca20 import fio, rocksdb, smt

STUDY = Study("ISCA20: A Case for Hardware-Based Demand Paging", fio.EXPERIMENTS | rocksdb.EXPERIMENTS | smt.EXPERIMENTS, 10)
