# SPDX-License-Identifier: Apache-2.0
"""The paper on synchronous page faults."""

from trapless.study.experiment import Study

from studies.aspf import figures, literal, readings

STUDY = Study("ASPF: Exploring Synchronous Page Fault Handling",
              figures.EXPERIMENTS | literal.EXPERIMENTS | readings.EXPERIMENTS, 30)
