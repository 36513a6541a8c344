# SPDX-License-Identifier: Apache-2.0
"""The paper on software translation caches."""

from trapless.study.experiment import Study

from studies.stc import figures

STUDY = Study("STC: Software Translation Caches", figures.EXPERIMENTS, 40)
