# SPDX-License-Identifier: Apache-2.0
"""The papers' setting `large`: a file of 16 GiB, four threads that read 2 GiB each, 1 GiB of memory (FPGA figure 10, THESIS
figures 5.9 to 5.12).

The file's blocks are allocated and written, but take no space on the host (trapless.guest.images.sparse). A hart's turn is longer
than the profile's, but still much shorter than the drive's latency: these runs take minutes, and shorter turns would change
latencies by only one percent.
"""

from __future__ import annotations

from dataclasses import replace

from trapless.guest import build, kept
from trapless.guest.images import ext4, sparse
from trapless.loads.fio import KERNEL_PER_READ, MORE, VS_OSDP, Load
from trapless.loads.setup import Setup
from trapless.results import figures
from trapless.results.columns import LOWER, Column
from trapless.study.experiment import Experiment, Table, View

from studies.costs.small_no_refill import OF_ROWS, READING, READING_VS_OSDP, VS_EMULATED, Case, compare, run_of

MEMORY_MIB = 1024
FILE_BYTES = 16 << 30
LOAD = Load(file_bytes=FILE_BYTES, read_bytes=2 << 30, threads=4, ring=1024, log_ms=10)
KINDS = ("osdp", "emulated", "trap", "hwdp")
"""`ideal` is impossible, because the file does not fit into memory."""
TURN = "machine.quantum_cycles=1000"
SIM_SECONDS, HOST_SECONDS = figures.SIM_SECONDS.but(form=".1f"), figures.HOST_SECONDS.but(form=".0f")
HOST_MEMORY = next(column for column in MORE if column.key == "host_mib_over_guest")
DISK = Column("disk_mib", "disk MiB", "What the guest's disk takes on the host when it is made.", "MiB", LOWER, ".0f")


def measure(setup: Setup) -> list[dict]:
    """Return one record for each kind, with ratios."""
    load = replace(LOAD, read_bytes=LOAD.read_bytes // 32) if setup.quick else LOAD
    disk = sparse.image(load.file_bytes)
    guest = setup.guest(disk)
    guest = replace(guest, memory=f"{MEMORY_MIB}M", settings=(TURN, *guest.settings), max_seconds=3600)
    # kpoold is on for all kinds that use it; osdp does not.
    runs = [run_of(Case("large", load, kind), load.seed, guest) for kind in setup.kinds or KINDS]
    records = kept.records(build.machine(), runs, setup.at_once)
    for entry in records:  # the disk as it was made: a run drops its writes
        entry["disk_mib"] = disk.stat().st_blocks * 512 / ext4.MIB
    return compare(records)


EXPERIMENT = Experiment(
    title="setting `large` of the papers: 16 GiB, 4 threads of 2 GiB, 1 GiB of memory",
    measure=measure,
    kinds=True,
    profile=True,
    about="Four threads read 2 GiB each of a file of 16 GiB through one mapping, with 1 GiB of memory. The file's blocks take no "
          "space on the host.",
    tables={"large": Table(
        (figures.KIND, figures.OPS.but(heading="reads"), figures.MEAN_US, figures.BANDWIDTH, READING, VS_OSDP, VS_EMULATED,
         READING_VS_OSDP, figures.HW_MISSES, figures.OS_FAULTS, KERNEL_PER_READ, SIM_SECONDS,
         HOST_SECONDS, figures.MIPS, HOST_MEMORY, DISK),
        views={"": View((figures.KIND, figures.MEAN_US, VS_OSDP, VS_EMULATED, READING, READING_VS_OSDP, KERNEL_PER_READ)),
               "host": View((figures.KIND, SIM_SECONDS, HOST_SECONDS, figures.MIPS, HOST_MEMORY,
                             DISK))})},
    more=OF_ROWS,
)
