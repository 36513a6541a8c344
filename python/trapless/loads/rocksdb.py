# SPDX-License-Identifier: Apache-2.0
"""Runs of programs on a data set that is larger than memory: YCSB and db_bench on RocksDB, and fio (ISCA20, section VI-C).

The paper's data set has 64 GB, and its memory 32 GB. The ratio of the two, the records of 4 KiB, the distributions and the
numbers of threads are the same here, but memory is only as large as a host can spare. As in the paper, each thread has its own
core.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from trapless.base.ui import UserError
from trapless.base.version import git_describe
from trapless.guest import boot as guests
from trapless.guest import kept
from trapless.guest.images import dataset, ext4, rootfs, sparse
from trapless.guest.job import Job, launcher
from trapless.loads import dbbench, ycsb
from trapless.loads.fio import Load as FioLoad
from trapless.loads.fio import waited_seconds
from trapless.loads.setup import Setup
from trapless.profile import profiling
from trapless.results import figures
from trapless.results.columns import HIGHER, LOWER, Column, word

PROFILE = "server"
CORES = ("machine.threads_per_core=1",)
"""Makes the profile's eight harts eight cores, like the paper's processor."""
FIO, DBBENCH, YCSB = "FIO", "DBBench", "YCSB"
PROGRAMS = (FIO, DBBENCH, *(f"{YCSB}-{workload}" for workload in ycsb.WORKLOADS))
KINDS = ("osdp", "emulated", "hwdp")
RECORD_BYTES = 4096
RATIO = 2
"""Size of the data set divided by the size of memory."""
WARM, REGION = 2, 100
"""Milestone at the end of YCSB's warm-up, where detailed timing begins, and number of the region of interest after it
(ycsb.c)."""
SEED_STEP = 1000
"""Distance between the seeds of two runs. The threads of a run take consecutive seeds."""
_FORMS = {FIO: "rocksdb 7", DBBENCH: "rocksdb 7", YCSB: "rocksdb 6"}
_FILL = """\
ahead=/sys/block/$(sed -n 's|^/dev/\\([^ ]*\\) /data .*|\\1|p' /proc/mounts)/queue/read_ahead_kb
echo 512 >$ahead && cat {files} >/dev/null && echo 0 >$ahead || exit $?"""
"""Reads all files into memory with readahead, which is five times as fast, and then turns readahead off again."""
_ATTRIBUTE = "attribute"
PROGRAM_COLUMN = word("program", "program",
                      "FIO reads a mapping at random, DBBench is RocksDB's readrandom, YCSB-A to F its workloads.")
MISSES_PER_OP = Column("misses_per_op", "misses/operation", "Pages per operation that were not in memory.", "misses/operation",
                       LOWER, ".2f")
HW_SHARE = Column("hw_share", "served by hardware %", "Share of the misses that hardware served.", "%", HIGHER, ".1f")
PER_OP = (MISSES_PER_OP, figures.USER_PER_OP, figures.KERNEL_PER_OP)
COLUMNS = (
    figures.OPS, figures.OPS_PER_SECOND, figures.MEAN_US.but(form=".1f"), figures.P99_US, figures.WRONG, figures.HW_MISSES,
    figures.OS_FAULTS, *PER_OP, HW_SHARE, figures.DEVICE_US, figures.REGION_SECONDS, figures.SIM_SECONDS,
    figures.HOST_SECONDS.but(form=".0f"),
    Column("miss_us", "miss us", "Mean time of a miss in hardware, from the walk to the resumed load.", "us", LOWER, ".2f"),
    Column("waited_seconds", "waited s", "Time before fio's first read, in which mmap() makes and arms the page tables.", "s",
           LOWER, ".3f"),
)
"""Columns of a record that `take` returns."""


@dataclass(frozen=True)
class Scale:
    """Sizes of memory and data set, and numbers of operations."""

    memory_mib: int
    data_mib: int
    operations: int
    """Measured operations of all threads together, as in the paper. So the pages in memory do not depend on the number of
    threads."""
    warm: int
    """Operations of the warm-up before them."""

    @property
    def records(self) -> int:
        """Records of the data set."""
        return self.data_mib * ext4.MIB // RECORD_BYTES


SCALE = Scale(memory_mib=256, data_mib=RATIO * 256, operations=12_000, warm=24_000)
SCALE_OF_QUICK = Scale(memory_mib=128, data_mib=RATIO * 128, operations=1_000, warm=2_000)
COST = {"YCSB-E": 0.05, FIO: 4.0}
"""Factor for the number of operations of a program, because the time per operation differs: a scan of YCSB-E reads about fifty
records, and a read of fio hardly computes. Other programs have the factor 1."""


@dataclass(frozen=True)
class Case:
    """One run."""

    program: str
    kind: str
    threads: int
    scale: Scale
    seed: int = 1
    settings: tuple[str, ...] = ()
    """Values of the profile."""
    filled: bool = True
    """Whether memory is full of the data set when the program starts, as it is after a long run."""
    attributed: bool = False
    """Whether the machine charges every cycle to a task and a function (--attribute)."""
    detailed: bool = True
    """Whether caches, TLBs, predictors and DRAM are timed; otherwise every access hits."""
    sparse: bool = False
    """Whether fio's file has only zeros, which take no room on the host."""

    @property
    def title(self) -> str:
        """Title of the run in messages and records."""
        return f"{self.program}, {self.kind}, {self.threads} threads, seed {self.seed}"

    @property
    def operations(self) -> int:
        """Measured operations of all threads together; each thread has the same number."""
        return self.threads * round(self.scale.operations * COST.get(self.program, 1) / self.threads)

    @property
    def warm(self) -> int:
        """Operations of the warm-up, of all threads together."""
        return self.threads * round(self.scale.warm * COST.get(self.program, 1) / self.threads)

    @property
    def data_set(self) -> str:
        """Name of the data set that the program reads; all workloads of YCSB read the same one."""
        return self.program.partition("-")[0]

    def disk(self) -> Path:
        """Disk image with the data set."""
        if self.program == FIO:
            return (sparse if self.sparse else dataset).image(self.scale.data_mib * ext4.MIB)
        if self.program == DBBENCH:
            return dbbench.Database(self.scale.records).image()
        return ycsb.Database(self.scale.records).image()

    def command(self) -> str:
        """Shell command that runs the program."""
        if self.program == FIO:
            # In a cold run, each read is of a different block. A run with full memory makes many more reads, and one would be
            # of the last block.
            return FioLoad(self.scale.data_mib * ext4.MIB, self.operations * RECORD_BYTES // self.threads, self.threads,
                           seed=SEED_STEP * self.seed, but_last=self.filled, apart=True, log_ms=0).command(self.kind)
        seed = SEED_STEP * self.seed
        if self.program == DBBENCH:
            argv = dbbench.Load(dbbench.Database(self.scale.records), self.operations, self.threads, seed).argv()
            said = "dbbench.txt 2>&1"
        else:
            argv = ycsb.Load(ycsb.Database(self.scale.records), self.program[-1], self.operations, self.warm, self.threads,
                             seed).argv()
            said = "ycsb.json"
        return f"{shlex.join([*launcher(self.kind), *argv])} >/job/out/{said}"

    def job(self, inputs: tuple[Path, ...]) -> Job:
        """Return the guest's job: fill memory, run the program, keep the counters. `inputs` are copied into the guest."""
        files = f"/data/{dataset.FILE}" if self.program == FIO else f"{ycsb.FOLDER}/*.sst"
        stats = "/sys/kernel/mm/hwdp/stats"
        return Job("\n".join([
            _FILL.format(files=files) if self.filled else "",
            f"{self.command()} || exit $?",
            f"[ -e {stats} ] && cp {stats} /job/out/hwdp-stats",
            "exit 0",
        ]), inputs)


def run_of(setup: Setup, case: Case) -> kept.Run:
    """Return the run of a case."""
    setup.leaves((*CORES, *case.settings))
    since = f"milestone:{WARM}" if case.data_set == YCSB else "roi"
    data = setup.once((case.data_set, case.scale.data_mib, case.sparse), case.disk)
    root = setup.once(("root", ycsb.PACKAGES), lambda: rootfs.image(more=ycsb.PACKAGES))
    guest = guests.Guest(kernel=setup.kernel_of(), root=root, data=data, profile=PROFILE,
                         settings=(*CORES, *case.settings, *setup.settings), memory=f"{case.scale.memory_mib}M",
                         detail=since if case.detailed else None, append="norandmaps", max_seconds=3600)
    inputs = (setup.once("ycsb", ycsb.program),) if case.data_set == YCSB else ()
    depends: tuple[Path, ...] = ()
    if case.attributed:
        symbols = profiling.symbols_of(guest.kernel)
        # What the program does after the region, such as unmapping the tables, does not belong to the operations.
        where = f"roi:{REGION}" if case.data_set == YCSB else since
        attribute = profiling.Attribute(Path(kept.FOLDER, _ATTRIBUTE), where, (str(symbols),))
        guest = replace(guest, options=(*attribute.options(), "--attribute-limit", "0"))
        depends = (symbols,)
    return kept.Run(case.title, guest, case.job(inputs), partial(take, case), _FORMS[case.data_set], depends,
                    case.scale.memory_mib)


def take(case: Case, outcome: guests.Outcome, folder: Path) -> dict:
    """Make the record of one run: the program's own figures, and what the machine counted in the region of interest."""
    out = folder / "out"
    number, said = _SAID[case.data_set](out, case.threads)
    regions = [region for region in outcome.stats["rois"] if number in (None, region["number"])]
    if case.program == FIO and len(regions[0]["watch"]) > 1:
        raise UserError(f"{case.title}: fio read the file's last block, and so mapped the file again: use another seed")
    hardware, software = (sum(counted) for counted in zip(*(
        (region["hw_miss"]["count"], region["os_faults"]) for region in regions), strict=True))
    # db_bench's region includes the warm-up, which has as many operations as the measured part.
    operations = said["ops"] * (2 if case.program == DBBENCH else 1)
    instructions = {mode: sum(region["instructions"][mode] for region in regions) for mode in ("user", "supervisor")}
    region = max(regions, key=lambda region: region["sim_seconds"])
    record = {
        **said,
        "hw_misses": hardware,
        "os_faults": software,
        "misses_per_op": (hardware + software) / operations,
        "hw_share": 100 * hardware / (hardware + software) if hardware + software else None,
        "user_instructions_per_op": instructions["user"] / operations,
        "kernel_instructions_per_op": instructions["supervisor"] / operations,
        "device_us": region["hw_miss"]["device_mean_us"] if case.kind == "hwdp" else region["nvme_read"]["mean_us"],
        "miss_us": region["hw_miss"]["mean_us"] if case.kind == "hwdp" else None,
        "region_seconds": region["sim_seconds"],
        "sim_seconds": outcome.stats["sim_seconds"],
        "host_seconds": outcome.host_seconds,
        "git": git_describe(),
    }
    if case.kind == "hwdp":
        record["steps"] = region["hw_miss"]["steps"]
    if case.attributed:
        profile = json.loads((folder / _ATTRIBUTE / "profile.json").read_text())
        record["profile"] = {key: profile[key] for key in ("clock_hz", "categories", "in_faults", "tasks", "faults",
                                                           "minor_faults")}
    return record


def _ycsb(out: Path, threads: int) -> tuple[int | None, dict]:
    said = json.loads((out / "ycsb.json").read_text())
    if said["wrong"]:
        raise UserError(f"YCSB: {said['wrong']} records had wrong contents")
    every = said["all"]
    return REGION, {"ops": every["ops"], "ops_per_second": said["ops_per_second"], "mean_us": every["mean_us"],
                    "p99_us": every["p99_us"], "wrong": said["wrong"],
                    "latency": {name: value for name, value in said.items() if isinstance(value, dict)}}


def _dbbench(out: Path, threads: int) -> tuple[int | None, dict]:
    said = dbbench.figures((out / "dbbench.txt").read_text())
    return None, {**said, "ops_per_second": threads * 1e6 / said["mean_us"], "wrong": 0}


def _fio(out: Path, threads: int) -> tuple[int | None, dict]:
    jobs = json.loads((out / "fio.json").read_text())["jobs"]
    if error := next((job["error"] for job in jobs if job["error"]), None):
        raise UserError(f"fio reports error {error}")
    reads = [job["read"] for job in jobs]
    waited = waited_seconds(out)
    latencies: Counter[int] = Counter()
    for read in reads:
        latencies.update({int(ns): count for ns, count in read["clat_ns"]["bins"].items()})
    ops = latencies.total()
    return None, {"ops": ops, "waited_seconds": max(waited), "ops_per_second": sum(
                      read["total_ios"] / (read["runtime"] / 1e3 - before) for read, before in zip(reads, waited, strict=True)),
                  "mean_us": sum(read["total_ios"] * read["clat_ns"]["mean"] for read in reads) / ops / 1000,
                  "p99_us": _quantile(latencies, 0.99) / 1000}


def _quantile(counts: Counter[int], share: float) -> int:
    """Return the smallest value that at least `share` of all values do not exceed."""
    left = share * counts.total()
    for value, count in sorted(counts.items()):
        left -= count
        if left <= 0:
            return value
    raise ValueError("no values")


_SAID: dict[str, Callable[[Path, int], tuple[int | None, dict]]] = {FIO: _fio, DBBENCH: _dbbench, YCSB: _ycsb}
"""Readers of each program's output, for a number of threads. They return the number of its region (None: the only one) and its
figures. Throughput is the sum of the threads' throughputs, each measured in the thread's own time, so that the slowest thread,
which runs alone at the end of a short run, does not lower it."""
