# SPDX-License-Identifier: Apache-2.0
"""Setting `large` of the papers: a file of 16 GiB, 2 GiB read by each of four threads, 1 GiB of memory (FPGA figure 10,
THESIS figures 5.9 to 5.12).

The file's blocks are allocated and written and take no room on the host (lab/images/sparse.py). Harts take longer turns than the
profile's, still far below the drive's latency: these runs are of minutes, and shorter turns change latencies by a percent.
"""

from __future__ import annotations

from dataclasses import replace

from lab import build
from lab.experiments.miss_latency import Load
from lab.experiments.setup import Experiment, Setup, Table
from lab.experiments.small_no_refill import Case, compare, run_of
from lab.images import ext4, sparse
from lab.runner import kept

MEMORY_MIB = 1024
FILE_BYTES = 16 << 30
LOAD = Load(file_bytes=FILE_BYTES, read_bytes=2 << 30, threads=4, ring=1024, log_ms=10)
KINDS = ("osdp", "emulated", "trap", "hwdp")
"""`ideal` cannot be: the file does not fit."""
TURN = "machine.quantum_cycles=1000"


def measure(setup: Setup) -> list[dict]:
    """One record a kind, with ratios."""
    load = replace(LOAD, read_bytes=LOAD.read_bytes // 32) if setup.quick else LOAD
    disk = sparse.image(load.file_bytes)
    guest = setup.guest(disk)
    guest = replace(guest, memory=f"{MEMORY_MIB}M", settings=(TURN, *guest.settings), max_seconds=3600)
    # kpoold is on for all that have it; osdp has none.
    runs = [run_of(Case("large", load, kind), load.seed, guest) for kind in setup.kinds or KINDS]
    records = kept.records(build.machine(), runs, setup.at_once)
    for entry in records:  # the disk as it was made: runs drop what they write
        entry["disk_mib"] = disk.stat().st_blocks * 512 / ext4.MIB
    return compare(records)


EXPERIMENT = Experiment(
    title="setting `large` of the papers: 16 GiB, 4 threads of 2 GiB, 1 GiB of memory",
    measure=measure,
    kinds=True,
    profile=True,
    about="Four threads read 2 GiB each of a file of 16 GiB through one mapping, with 1 GiB of memory. The file's blocks take no "
          "room on the host.",
    tables={"large": Table((
        ("kind", "kind", "s"),
        ("ops", "ops", ",d"),
        ("mean us", "mean_us", ".2f"),
        ("MB/s", "bandwidth_mb_s", ".1f"),
        ("MB/s but arming", "reading_mb_s", ".1f"),
        ("osdp : it", "latency_ratio_to_osdp", ".2f"),
        ("emulated : it", "latency_ratio_to_emulated", ".2f"),
        ("it : osdp", "reading_ratio_to_osdp", ".2f"),
        ("hw misses", "hw_misses", ",d"),
        ("OS faults", "os_faults", ",d"),
        ("kernel instr/op", "kernel_instructions_per_op", ",.0f"),
        ("sim s", "sim_seconds", ".1f"),
        ("host s", "host_seconds", ".0f"),
        ("MIPS", "mips", ".0f"),
        ("host MiB over guest", "host_mib_over_guest", ".0f"),
        ("disk MiB", "disk_mib", ".0f"),
    ))},
)
