# SPDX-License-Identifier: Apache-2.0
"""The master's thesis and the FPGA prototype."""

from trapless.study.experiment import Study

from studies.fpga import thesis

STUDY = Study("THESIS and FPGA: the prototype on RISC-V", thesis.EXPERIMENTS, 20)
