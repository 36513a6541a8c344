# SPDX-License-Identifier: Apache-2.0
"""fio beside a CPU-bound program on the two hardware threads of one core (ISCA20 figure 16).

fio reads 4 KiB blocks at random through a mapping on hart 0; the other program computes on hart 1 while fio runs. Caches, TLBs
and branch predictor are on. The machine counts instructions per hart, so the guest needs no counters.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from trapless.base.ui import UserError
from trapless.base.version import git_describe
from trapless.guest import boot as guests
from trapless.guest import kept
from trapless.guest.images import dataset, ext4
from trapless.guest.job import Job
from trapless.loads.fio import Load, waited_seconds
from trapless.loads.setup import Setup
from trapless.results import figures, plots
from trapless.results.columns import HIGHER, LOWER, Column, word
from trapless.study import repeated
from trapless.study.compared import Compared, spread
from trapless.study.experiment import Experiment, Table, View
from trapless.study.repeated import Point, widest

from studies.isca20.rocksdb import SEEDS_OF_QUICK, paper

PROFILE = "server"
HARTS = 4
"""Two cores: the kernel's threads can run on the second one, as they can run on other cores of the paper's processor."""
KINDS = ("osdp", "hwdp")
BESIDE = {
    "nothing": "",
    "shell": "while :; do i=$((i + 1)); done",
    "sha256sum": "dd if=/dev/zero bs=1M count=8 of=/tmp/zero; while :; do sha256sum /tmp/zero; done",
    "awk": "awk 'BEGIN { while (1) { i = (i * 69069 + 1) % 262144; a[i] += i } }'",
}
"""Programs on hart 1. (The paper uses programs of SPEC CPU 2017.) awk uses more memory than the caches of a core hold."""
SEEDS = (8, 9, 10)
FORM = "smt 2"
LOAD = Load(read_bytes=192 * ext4.MIB, log_ms=0)
_STATS = "/sys/kernel/mm/hwdp/stats"


def job(load: Load, kind: str, beside: str) -> Job:
    """Return a job that runs fio on hart 0 and the other program on hart 1."""
    other = f"taskset 2 sh -c {_quoted(BESIDE[beside])} > /dev/null 2>&1 &\nsleep 0.05" if BESIDE[beside] else ""
    return Job(f"{other}\ntaskset 1 {load.command(kind)} || exit $?\n[ ! -e {_STATS} ] || cp {_STATS} /job/out/hwdp-stats")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def measure(setup: Setup) -> list[dict]:
    """Return one row for each kind and each program beside fio, with ratios to osdp."""
    load = replace(LOAD, read_bytes=LOAD.read_bytes // 16) if setup.quick else LOAD
    guest = replace(load.guest(setup.guest(dataset.image(load.file_bytes))), profile=PROFILE, harts=HARTS, memory="1G",
                    detail=f"milestone:{guests.FIRST_COMMAND}")
    points = [Point({"kind": kind, "beside": beside}, {
        seed: kept.Run(f"fio, {kind}, beside {beside}, seed {seed}", guest, job(replace(load, seed=seed), kind, beside), take,
                       FORM, host_mib=1024)
        for seed in (SEEDS[:SEEDS_OF_QUICK] if setup.quick else SEEDS)}) for beside in BESIDE for kind in setup.kinds or KINDS]
    return compare(repeated.measure(setup, points))


def take(outcome: guests.Outcome, folder: Path) -> dict:
    """Make the record of one run: fio's reads per second since its first read, and instructions per hart."""
    read = json.loads((folder / "out" / "fio.json").read_text())["jobs"][0]["read"]
    region = outcome.stats["rois"][0]
    if len(region["watch"]) > 1:
        raise UserError("fio read the file's last block, so it mapped the file again: use another seed")
    (waited,) = waited_seconds(folder / "out")
    seconds = region["sim_seconds"]
    here, there, *_ = region["instructions_by_hart"]
    ops = read["total_ios"]
    total = sum(here.values())
    return {
        "ops": ops,
        "seconds": seconds,
        "waited_seconds": waited,
        "mean_us": read["clat_ns"]["mean"] / 1000,
        "ops_per_second": ops / (read["runtime"] / 1000 - waited),
        "fio_user_per_op": here["user"] / ops,
        "fio_kernel_per_op": (total - here["user"]) / ops,
        "fio_mips": total / seconds / 1e6,
        "beside_mips": there["user"] / seconds / 1e6,
        "host_seconds": outcome.host_seconds,
        "git": git_describe(),
    }


def compare(rows: list[dict]) -> list[dict]:
    """Add ratios to osdp beside the same program, seed by seed: speed of fio, speed of the other program, fio's instructions."""
    for row in rows:
        for run in row[repeated.RUNS]:
            run["fio_per_op"] = run["fio_user_per_op"] + run["fio_kernel_per_op"]
    base = {"kind": "osdp"}
    repeated.against(rows, ("beside",), base, "ops_per_second", "fio_ratio", repeated.ratio)
    repeated.against([row for row in rows if BESIDE[row["beside"]]], ("beside",), base, "beside_mips", "beside_ratio",
                     repeated.ratio)
    repeated.against(rows, ("beside",), base, "fio_mips", "fio_instructions_change")
    repeated.against(rows, ("beside",), base, "fio_per_op", "fio_per_op_change")
    return rows


def compared(rows: list[dict]) -> list[Compared]:
    """Return the paper's values beside ours: fio's speed beside a program that computes, that program's speed, and fio's
    instructions in the same time."""
    beside = [row for row in rows if "beside_ratio" in row and row["kind"] == "hwdp"]
    if not beside:
        return []
    osdp = next(row for row in rows if row["kind"] == "osdp" and row["beside"] == beside[0]["beside"])
    why = (f"For a read, fio executes {osdp['fio_user_per_op']:,.0f} instructions, and the kernel "
           f"{osdp['fio_kernel_per_op']:,.0f} with osdp and {beside[0]['fio_kernel_per_op']:,.0f} with hwdp. In the paper, "
           "programs of SPEC CPU 2017 run beside fio.")
    return [
        Compared("fio's speed beside a program, hwdp : osdp (the paper: more than)", "x", (paper("16", "fio"), None),
                 spread([row["fio_ratio"] for row in beside]), widest(beside, "fio_ratio"), why),
        Compared("the program's speed beside fio, hwdp : osdp (the paper: higher)", "x", (1.0, None),
                 spread([row["beside_ratio"] for row in beside]), widest(beside, "beside_ratio"), why),
        Compared("fio's instructions in the same time (the paper: fewer, by up to)", "%", (paper("16", "instructions"), 0.0),
                 spread([row["fio_instructions_change"] for row in beside]), widest(beside, "fio_instructions_change"), why),
    ]


NAMES = (word("beside", "beside", "The program on the core's other hardware thread."), figures.KIND)
FIO_OPS = figures.OPS_PER_SECOND.but(heading="fio reads/s", meaning="fio's reads per second, from its first read on.")
FIO_RATIO = Column("fio_ratio", "fio's speed vs OS paging", "fio's reads per second divided by those of osdp.", "x", HIGHER,
                   ".2f")
BESIDE_MIPS = Column("beside_mips", "the program's MIPS", "Million instructions of the other program per simulated second.",
                     "MIPS", HIGHER, ",.0f")
BESIDE_RATIO = Column("beside_ratio", "the program's speed vs OS paging",
                      "The other program's instructions per second divided by those of osdp.", "x", HIGHER, ".3f")
USER_PER_READ = Column("fio_user_per_op", "fio's user instructions/read", "Instructions of user mode per read of fio.",
                       "instructions/read", LOWER, ",.0f")
KERNEL_PER_READ = Column("fio_kernel_per_op", "fio's kernel instructions/read",
                         "Instructions of the kernel on fio's hart per read.", "instructions/read", LOWER, ",.0f")
PER_READ_CHANGE = Column("fio_per_op_change", "fio's instructions per read %",
                         "Change of fio's instructions per read against osdp.", "%", LOWER, "+.1f")
INSTRUCTIONS_CHANGE = Column("fio_instructions_change", "fio's instructions per second %",
                             "Change of fio's instructions in the same time against osdp.", "%", None, "+.1f")
MORE = (
    Column("seconds", "region s", "Simulated time of the region of interest.", "s", LOWER, ".3f"),
    Column("waited_seconds", "waited s", "Time before the first read, in which mmap() makes and arms the page tables.", "s",
           LOWER, ".3f"),
    # Neither direction is better: more reads in the same time raise it, less kernel work per read lowers it.
    Column("fio_mips", "fio's MIPS", "Million instructions of fio's hart per simulated second.", "MIPS", None, ",.0f"),
    Column("fio_per_op", "fio's instructions/read", "Instructions of fio's hart per read.", "instructions/read", LOWER, ",.0f"),
)

EXPERIMENTS = {"isca20-16": Experiment(
    title="fio beside a CPU-bound program on one core (ISCA20 figure 16)",
    measure=measure,
    kinds=True,
    about="fio reads a mapping at random on one hardware thread of a core, another program computes on the other one.",
    compared=compared,
    plots={"fio": plots.Bars("beside", "kind", "fio_ratio", "fio's speed, hwdp : osdp"),
           "beside": plots.Bars("beside", "kind", "beside_ratio", "the other program's speed, hwdp : osdp")},
    tables={"isca20-16": Table(
        (*NAMES, figures.MEAN_US, FIO_OPS, FIO_RATIO, FIO_RATIO.interval("± fio", ".3f"), BESIDE_MIPS, BESIDE_RATIO,
         BESIDE_RATIO.interval("± program"), USER_PER_READ, KERNEL_PER_READ, PER_READ_CHANGE, INSTRUCTIONS_CHANGE), keys=2,
        views={"": View((*NAMES, figures.MEAN_US, FIO_RATIO, BESIDE_RATIO, PER_READ_CHANGE, INSTRUCTIONS_CHANGE))})},
    more=(figures.OPS, figures.HOST_SECONDS, *MORE),
)}
