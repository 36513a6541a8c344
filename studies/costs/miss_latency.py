# SPDX-License-Identifier: Apache-2.0
"""Time of one page miss, by kind of demand paging (FPGA figure 8; THESIS figures 5.3 and 5.4), with the demo's load."""

from __future__ import annotations

from trapless.guest import job as jobs
from trapless.guest.images import dataset
from trapless.loads.fio import COLUMNS, KERNEL_PER_READ, MORE, Load, breakdown, run_one, small_load
from trapless.loads.setup import Setup
from trapless.results import figures
from trapless.study.experiment import Experiment, Table, View


def measure_all(setup: Setup) -> list[dict]:
    """Measure every kind with the demo's load."""
    load = small_load(Load()) if setup.quick else Load()
    guest, runner = setup.guest(dataset.image(load.file_bytes)), setup.runner()
    return breakdown(setup.each("running fio for each kind", setup.kinds or jobs.KINDS, lambda kind: run_one(
        runner, guest, load, kind, setup.out / kind)))


EXPERIMENT = Experiment(
    "time of a miss, all kinds (FPGA figure 8)", measure_all, {"miss_latency": Table(COLUMNS, views={"": View((
        figures.KIND, figures.MEAN_US, figures.P99_US, figures.DEVICE_US, figures.NONDEVICE_US, figures.OS_FAULTS,
        KERNEL_PER_READ))})},
    more=MORE, kinds=True, profile=True,
    about="Unmodified fio reads 4 KiB blocks at random through one mapping: 64 MiB of a file of 320 MiB, none in memory, "
          "readahead off. The time of a miss is the time of a read minus that of a read whose page is mapped.")
