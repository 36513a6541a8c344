# SPDX-License-Identifier: Apache-2.0
"""fio as a load: measures the time of one page miss, for each kind of demand paging.

Unmodified fio reads 4 KiB blocks at random through one mapping: 64 MiB out of a file of 320 MiB, cold, readahead off.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from trapless.base.cache import disk_error
from trapless.base.ui import UserError
from trapless.base.version import git_describe
from trapless.guest import boot as guests
from trapless.guest.images import ext4
from trapless.guest.job import Job, launcher
from trapless.results import figures
from trapless.results.columns import HIGHER, LOWER, Column

BLOCK = 4096
"""Size of a read in bytes."""
KINDS = ("ideal", "osdp", "hwdp")
"""The demo's kinds. Experiments use all kinds (trapless.guest.job.KINDS)."""
MISS_US = Column("miss_by_difference_us", "miss us", "Mean latency of a read minus that of a read whose page is mapped.", "us",
                 LOWER, ".2f")
VS_OSDP = Column("latency_ratio_to_osdp", "latency vs OS paging",
                 "How many times faster a read is than with osdp: osdp's mean latency divided by this one.", "x", HIGHER, ".2f")
KERNEL_PER_READ = figures.KERNEL_PER_OP.but(heading="kernel instructions/read")
COLUMNS = (
    figures.KIND, figures.READAHEAD_KB, figures.OPS.but(heading="reads"), figures.MEAN_US, figures.P50_US, figures.P99_US,
    figures.P999_US, figures.DEVICE_US, figures.NONDEVICE_US, figures.HW_MISSES, figures.OS_FAULTS, KERNEL_PER_READ,
    figures.SIM_SECONDS, figures.HOST_SECONDS, figures.MIPS)
"""Columns of a record that `record` returns, in the order of tables."""
SHORT = (figures.KIND, figures.MEAN_US.but(heading="mean us per read"),
         KERNEL_PER_READ.but(heading="kernel instructions per read"), figures.OS_FAULTS, figures.HW_MISSES)
"""README's table of the demo."""
MORE = (
    *figures.OF_FIO[2:4], figures.RESIDENT, figures.DISTINCT, figures.USER_PER_OP, figures.THREADS, figures.REGION_SECONDS,
    figures.INSTRUCTIONS, MISS_US, VS_OSDP,
    Column("file_bytes", "file bytes", "Size of the file that is read.", "bytes", None, ",d"),
    Column("read_bytes", "read bytes", "Bytes that all threads read.", "bytes", None, ",d"),
    Column("fio_seed", "fio's seed", "Seed of fio's random numbers.", "1", None, "d"),
    Column("ring", "pool, frames", "Frames in the pool of free frames.", "frames", None, ",d"),
    Column("host_mib_over_guest", "host MiB over guest", "Most memory of the host that the run took beside the guest's memory.",
           "MiB", LOWER, ".0f"),
    Column("boot_host_seconds", "boot host s", "Time of the host until the guest's first command.", "s", LOWER, ".2f"),
    Column("boot_instructions", "boot instructions", "Instructions until the guest's first command.", "instructions", LOWER,
           ",d"),
    Column("boot_mips", "boot MIPS", "Million instructions per second of the host until the guest's first command.", "MIPS",
           HIGHER, ".0f"),
    Column("arming_us_per_page", "arming us/page", "Time in which the kernel armed a page of the file.", "us", LOWER, ".3f"),
    Column("waited_seconds", "waited s", "Time before the first read, in which mmap() makes and arms the page tables.", "s",
           LOWER, ".3f"),
    Column("nondevice_by_difference_us", "outside the device us, by difference",
           "Mean latency of a read minus that of a read whose page is mapped, minus the device's time.", "us", LOWER, ".2f"),
    Column("kernel_instructions_share_of_osdp", "kernel instructions vs OS paging",
           "Kernel instructions per read divided by those of osdp.", "1", LOWER, ".2f"),
    Column("runs_at_once", "runs at once", "Runs that shared the host.", "runs", None, "d"),
)
"""Columns of a record that no table shows."""


@dataclass(frozen=True)
class Load:
    """What fio reads, and with how many threads."""

    file_bytes: int = 320 * ext4.MIB
    read_bytes: int = 64 * ext4.MIB
    threads: int = 1
    seed: int = 8
    """fio's random seed. With this seed, no thread draws the file's last block. That matters because fio's mmap engine maps the
    whole file again each time it draws that block."""
    ring: int | None = None
    """Frames in the free ring; None: the kernel's default (4096)."""
    kpoold: bool = True
    """Whether kpoold refills the free ring in the background; otherwise only page faults refill it."""
    kpted: bool = True
    """Whether kpted also adopts pages in the background; otherwise a page is adopted only when its metadata is needed."""
    but_last: bool = False
    """Whether fio never draws the file's last block, with any seed. It may then draw a block more than once."""
    share: bool | None = None
    """Whether threads share one mapping; None: only if there are several threads."""
    apart: bool = False
    """Whether fio reports each thread separately, and how often each latency occurred."""
    log_ms: int | None = None
    """Log the latency of each read (0), or the mean of each interval of this length in ms. The log shows when reading began
    (waited_seconds)."""

    def command(self, kind: str) -> str:
        """Return the shell command for this load."""
        share = self.threads > 1 if self.share is None else self.share
        return (
            f"{shlex.join(launcher(kind, share))} fio --name=miss --filename=/data/random.bin --readonly "
            f"--rw=randread --bs=4k --ioengine=mmap --size={self.file_bytes} --io_size={self.read_bytes} "
            f"--thread --numjobs={self.threads} --randseed={self.seed} --clocksource=clock_gettime "
            f"--invalidate=0 {'' if self.apart else '--group_reporting '}--eta=never --percentile_list=50:99:99.9 "
            f"--output-format=json{'+' if self.apart else ''} --output=/job/out/fio.json"
            + (f" --random_distribution=zoned_abs:100/{self.file_bytes - BLOCK}" if self.but_last else "")
            + ("" if self.log_ms is None else f" --write_lat_log=/job/out/fio --log_avg_msec={self.log_ms} --disable_lat=1")
        )

    def job(self, kind: str) -> Job:
        """Return the job for one kind."""
        settings = "/sys/kernel/mm/hwdp"
        return Job("\n".join([
            "" if self.kpoold or kind in ("ideal", "osdp") else f"echo 0 > {settings}/kpoold || exit $?",
            "" if self.kpted else f"echo 60000 > {settings}/kpted_period_ms || exit $?",
            f"{self.command(kind)}; status=$?; hwdp -e; [ $status = 0 ] || exit $status",
            "cp /proc/vmstat /job/out/vmstat",
            f"[ -e {settings}/stats ] && cp {settings}/stats /job/out/hwdp-stats",
            "exit 0",
        ]))

    def append(self) -> str:
        """Return the text for the kernel's command line. It turns off random addresses: for a mapping that crosses the end of a
        third-level table, each walk reads one entry more, which would look like a difference between kernels."""
        return f"hwdp.ring={self.ring} norandmaps" if self.ring else "norandmaps"

    def guest(self, guest: guests.Guest) -> guests.Guest:
        """Return the guest with this load's settings for the boot."""
        return replace(guest, append=f"{guest.append} {self.append()}".strip())


# Runs a job on a simulator: (guest, job, folder for its files) -> outcome.
Runner = Callable[[guests.Guest, Job, Path], guests.Outcome]


def measure(runner: Runner, guest: guests.Guest, load: Load, out: Path, kinds: tuple[str, ...] = KINDS,
            at_once: int = 1) -> list[dict]:
    """Run each kind, store its raw files in `out`/KIND, and return one record for each kind, in the order of `kinds`."""
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        records = list(pool.map(lambda kind: run_one(runner, guest, load, kind, out / kind), kinds))
    return breakdown(records)


def run_one(runner: Runner, guest: guests.Guest, load: Load, kind: str, folder: Path) -> dict:
    """Return the record of one run. Its raw files stay in `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise disk_error(error, folder) from error
    outcome = runner(load.guest(guest), load.job(kind), folder)
    (folder / "console.txt").write_text(outcome.console)
    if outcome.status:
        raise UserError(f"{kind}: fio ended with status {outcome.status}: {outcome.console.strip()[-300:]}")
    (folder / "stats.json").write_text(json.dumps(outcome.stats, indent=1))
    return read_back(kind, outcome, load, guest, folder)


def read_back(kind: str, outcome: guests.Outcome, load: Load, guest: guests.Guest, folder: Path) -> dict:
    """Make the record of a run that ended normally. Its files are in `folder`."""
    result = record(kind, json.loads((folder / "fio.json").read_text()), outcome, load, guest)
    if counters := kernel_stats(folder):
        result["kernel_stats"] = counters
        # The counters include re-arming, whose cost per page differs from that of arming a whole file at once.
        if counters.get("pages_armed") and not counters.get("pages_rearmed"):
            result["arming_us_per_page"] = counters["arming_ns"] / counters["pages_armed"] / 1000
    if load.log_ms is not None:
        # A thread may begin its own time after its mmap(). fio's run time is that of the longest thread.
        result["waited_seconds"] = max(waited_seconds(folder))
    return result


def logs(folder: Path) -> Iterator[list[tuple[int, int]]]:
    """Read fio's logs of completion latency, one for each thread: pairs of the time in ms since the thread began and the latency
    in ns. Columns of a line: time, value, direction, ... (see fio-log-formats)."""
    for path in sorted(folder.glob("fio_clat.*.log"), key=lambda path: int(path.suffixes[-2][1:])):
        yield [(int(when), int(ns)) for when, ns, *_ in (line.split(",") for line in path.read_text().splitlines())]


def waited_seconds(folder: Path) -> list[float]:
    """Return how long each of fio's threads had run when it began its first read, in seconds. In this time mmap() makes the page
    tables and arms them. fio's run time includes it, which matters in short runs only. (`arming_ns` of the kernel's statistics
    does not serve: it also includes re-arming during the reads.) The precision is 1 ms, or one interval of the log.
    """
    return [max(0.0, when / 1e3 - ns / 1e9) for (when, ns), *_ in logs(folder)]


def kernel_stats(folder: Path) -> dict[str, int]:
    """Return the kernel's own counters; empty if it has none."""
    path = folder / "hwdp-stats"
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: int(value) for name, value in (line.split() for line in lines if line.strip())}


def record(kind: str, fio: dict, outcome: guests.Outcome, load: Load, guest: guests.Guest) -> dict:
    """Make one kind's record from fio's results and the machine's. Times are in us unless the name says otherwise."""
    said, stats = figures.of_fio(fio), outcome.stats
    result = {
        "kind": kind,
        **said,
        "device_us": None,
        "nondevice_us": None,
        "hw_misses": None,
        "os_faults": None,
        "resident": None,
        "distinct_pages": None,
        "kernel_instructions_per_op": None,
        "user_instructions_per_op": None,
        "threads": load.threads,
        "file_bytes": load.file_bytes,
        "read_bytes": load.read_bytes * load.threads,
        "fio_seed": load.seed,
        "ring": load.ring,
        "kpoold": load.kpoold,
        "readahead_kb": outcome.readahead,
        "fio": fio.get("fio version"),
        "profile": guest.profile,
        "settings": list(guest.settings),
        "host_seconds": outcome.host_seconds,
        "sim_seconds": stats.get("sim_seconds"),
        "mips": stats.get("mips"),
        "git": git_describe(),
        "instructions": stats.get("instructions"),
    }
    if stats.get("host_peak_bytes"):
        result["host_mib_over_guest"] = (stats["host_peak_bytes"] - stats["profile"]["machine"]["memory_bytes"]) / ext4.MIB
    for milestone in stats.get("milestones", []):
        if milestone["number"] == 1:
            result["boot_host_seconds"] = milestone["host_seconds"]
            result["boot_instructions"] = milestone["instructions"]
            if milestone["host_seconds"]:
                result["boot_mips"] = milestone["instructions"] / milestone["host_seconds"] / 1e6
    if stats.get("rois"):
        _add_region(result, stats["rois"], said["ops"])
    return result


def _add_region(result: dict, regions: list[dict], ops: int) -> None:
    """Add what the machine counted in the region of interest."""
    kind = result["kind"]
    if len(regions) != 1:
        raise UserError(f"{kind}: expected one region of interest, found {len(regions)}")
    region, found = regions[0], figures.of_regions(kind, regions)
    result |= {key: found[key] for key in ("hw_misses", "os_faults", "resident", "distinct_pages", "region_seconds",
                                           "device_us", "nondevice_us")}
    result["kernel_instructions_per_op"] = found["kernel_instructions"] / ops
    result["user_instructions_per_op"] = found["user_instructions"] / ops
    result["smu"] = region.get("smu")
    if kind == "hwdp":
        result["hw_miss"] = region["hw_miss"]


def breakdown(records: list[dict]) -> list[dict]:
    """Add the figures that need several kinds: time of a miss by difference to `ideal`, and ratios to `osdp`."""
    by_kind = {entry["kind"]: entry for entry in records}
    ideal, osdp = by_kind.get("ideal"), by_kind.get("osdp")
    for entry in records:
        if ideal and entry["kind"] != "ideal" and entry["device_us"] is not None:
            miss = entry["mean_us"] - ideal["mean_us"]
            entry["miss_by_difference_us"] = miss
            entry["nondevice_by_difference_us"] = miss - entry["device_us"]
            if entry["nondevice_us"] is None:
                entry["nondevice_us"] = entry["nondevice_by_difference_us"]
        if osdp and entry["mean_us"]:
            entry["latency_ratio_to_osdp"] = osdp["mean_us"] / entry["mean_us"]
        if osdp and osdp["kernel_instructions_per_op"]:
            entry["kernel_instructions_share_of_osdp"] = (
                entry["kernel_instructions_per_op"] / osdp["kernel_instructions_per_op"])
    return records


def small_load(load: Load) -> Load:
    """Return the load with a quarter of its reads, for quick checks."""
    return replace(load, read_bytes=load.read_bytes // 4)
