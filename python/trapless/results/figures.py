# SPDX-License-Identifier: Apache-2.0
"""Figures of a run: what the machine counted in its regions of interest, and what fio reports."""

from __future__ import annotations

from trapless.base.ui import UserError
from trapless.results.columns import HIGHER, LOWER, Column, word

KIND = word("kind", "kind", "Kind of paging of the program's mappings.")
THREADS = Column("threads", "threads", "Threads of the program.", "threads", None, "d")
OPS = Column("ops", "operations", "Operations of all threads together.", "operations", None, ",d")
OPS_PER_SECOND = Column("ops_per_second", "operations/s", "Operations per second, of all threads together.", "1/s", HIGHER,
                        ",.0f")
MEAN_US = Column("mean_us", "mean us", "Mean latency of an operation.", "us", LOWER, ".2f")
P50_US = Column("p50_us", "p50 us", "Latency that half of the operations do not exceed.", "us", LOWER, ".1f")
P99_US = Column("p99_us", "p99 us", "Latency that 99 % of the operations do not exceed.", "us", LOWER, ".1f")
P999_US = Column("p999_us", "p99.9 us", "Latency that 99.9 % of the operations do not exceed.", "us", LOWER, ".1f")
BANDWIDTH = Column("bandwidth_mb_s", "MB/s", "Bandwidth as fio reports it, the time of mmap() included.", "MB/s", HIGHER, ".1f")
RUNTIME = Column("runtime_seconds", "run time s", "Time of fio's longest thread, the time of mmap() included.", "s", LOWER, ".3f")
DEVICE_US = Column("device_us", "device us", "Mean time that a miss spends at the device.", "us", LOWER, ".2f")
NONDEVICE_US = Column("nondevice_us", "outside the device us", "Mean time that a miss spends outside the device.", "us", LOWER,
                      ".2f")
HW_MISSES = Column("hw_misses", "misses in hardware", "First touches of pages that hardware served.", "misses", None, ",d")
OS_FAULTS = Column("os_faults", "page faults", "First touches of pages that the operating system served.", "faults", LOWER, ",d")
RESIDENT = Column("resident", "resident pages", "Pages that were in memory when first touched.", "pages", None, ",d")
DISTINCT = Column("distinct_pages", "distinct pages", "Different pages that were touched.", "pages", None, ",d")
REGION_HW_MISSES = Column("region_hw_misses", "misses in hardware", "Misses that hardware served in regions of interest.",
                          "misses", None, ",d")
REGION_OS_FAULTS = Column("region_os_faults", "page faults", "Page faults in regions of interest.", "faults", LOWER, ",d")
REGION_SECONDS = Column("region_seconds", "region s", "Simulated time in regions of interest.", "s", LOWER, ".4f")
USER_INSTRUCTIONS = Column("user_instructions", "user instructions", "Instructions of user mode in regions of interest.",
                           "instructions", LOWER, ",d")
KERNEL_INSTRUCTIONS = Column("kernel_instructions", "kernel instructions",
                             "Instructions of supervisor mode in regions of interest.", "instructions", LOWER, ",d")
KERNEL_PER_OP = Column("kernel_instructions_per_op", "kernel instructions/operation",
                       "Instructions of supervisor mode on all harts per operation.", "instructions/operation", LOWER, ",.0f")
USER_PER_OP = Column("user_instructions_per_op", "user instructions/operation", "Instructions of user mode per operation.",
                     "instructions/operation", LOWER, ",.0f")
WRONG = Column("wrong", "wrong records", "Records that were read with wrong content.", "records", LOWER, ".0f")
READAHEAD_KB = Column("readahead_kb", "readahead KB", "What the guest's Linux reads ahead on the data disk.", "KB", None, "d")
INSTRUCTIONS = Column("instructions", "instructions", "Instructions of all harts in the whole run.", "instructions", LOWER, ",d")
SIM_SECONDS = Column("sim_seconds", "simulated s", "Simulated time of the whole run.", "s", LOWER, ".2f")
HOST_SECONDS = Column("host_seconds", "host s", "Time that the run took on the host.", "s", LOWER, ".1f")
MIPS = Column("mips", "MIPS", "Million instructions that the machine executed per second of the host.", "MIPS", HIGHER, ".0f")
OF_REGIONS = (HW_MISSES, OS_FAULTS, RESIDENT, DISTINCT, REGION_HW_MISSES, REGION_OS_FAULTS, REGION_SECONDS, USER_INSTRUCTIONS,
              KERNEL_INSTRUCTIONS, DEVICE_US, NONDEVICE_US)
"""Columns of the figures that `of_regions` returns."""
OF_FIO = (OPS, MEAN_US, BANDWIDTH, RUNTIME, P50_US, P99_US, P999_US)
"""Columns of the figures that `of_fio` returns."""
OF_RUN = (SIM_SECONDS, INSTRUCTIONS, MIPS, HOST_SECONDS, READAHEAD_KB)
"""Columns that every run of the machine has."""


def regions(stats: dict) -> list[dict]:
    """Return the regions of interest of a run: the program's own ones if it has some, otherwise the automatic ones. UserError if
    the machine ignored some markers, because sums would then miss a part."""
    if ignored := stats.get("marks_ignored"):
        raise UserError(f"no figures: the machine ignored {ignored} markers, because there were too many or they made no sense")
    found = stats.get("rois", [])
    return [region for region in found if not region.get("automatic")] or found


def of_regions(kind: str | None, regions: list[dict]) -> dict:
    """Return what the machine counted in all regions of interest of a run with this kind of paging. Times are in us unless the
    name says otherwise. First touches count from the moment when a mapping is watched, even before a region of the program.
    """
    watches = regions[-1].get("watch", []) if regions else []
    first = {name: sum(watch[key] for watch in watches)
             for name, key in (("hw_misses", "hw_misses"), ("os_faults", "os_faults"), ("resident", "resident"),
                               ("distinct_pages", "pages_touched"))}
    instructions = [region["instructions"] for region in regions]
    return {
        **first,
        "region_hw_misses": sum(region["hw_miss"]["count"] for region in regions),
        "region_os_faults": sum(region["os_faults"] for region in regions),
        "region_seconds": sum(region["sim_seconds"] for region in regions),
        "user_instructions": sum(mode["user"] for mode in instructions),
        "kernel_instructions": sum(mode["supervisor"] for mode in instructions),
        **_device(kind, regions),
    }


def _device(kind: str | None, regions: list[dict]) -> dict:
    """Return the mean time of a miss at the device, and, if the machine measures whole misses, the mean time outside the
    device."""
    if kind == "ideal":
        return {"device_us": 0.0, "nondevice_us": 0.0}
    if kind == "hwdp":
        misses = [region["hw_miss"] for region in regions]
        return {name: mean([(miss["count"], miss[key]) for miss in misses])
                for name, key in (("device_us", "device_mean_us"), ("nondevice_us", "nondevice_mean_us"))}
    reads = [region["nvme_read"] for region in regions]
    return {"device_us": mean([(read["count"], read["mean_us"]) for read in reads]), "nondevice_us": None}


def mean(parts: list[tuple[int, float]]) -> float | None:
    """Return the mean of all samples, from pairs of a number of samples and their mean. None if there are no samples."""
    parts = [part for part in parts if part[0]]
    if len(parts) == 1:
        return parts[0][1]
    count = sum(count for count, _ in parts)
    return sum(count * mean for count, mean in parts) / count if count else None


def of_fio(said: dict) -> dict:
    """Return the figures of fio's JSON: of reads, or of writes if there are no reads. Percentiles are included only for a single
    group, and only those that fio reports. Bandwidth and run time are left out for groups that ran one after another."""
    jobs = said["jobs"]
    errors = [job["error"] for job in jobs if job.get("error")]
    if errors:
        raise UserError(f"fio reports error {errors[0]}")
    sides = [job["read"] if any(each["read"]["total_ios"] for each in jobs) else job["write"] for job in jobs]
    beside = _beside([(job, side) for job, side in zip(jobs, sides, strict=True) if side["total_ios"]])
    found = {
        "ops": sum(side["total_ios"] for side in sides),
        "mean_us": mean([(side["total_ios"], side["clat_ns"]["mean"] / 1000) for side in sides]),
        "bandwidth_mb_s": sum(side["bw_bytes"] for side in sides) / 1e6 if beside else None,
        "runtime_seconds": max(side["runtime"] for side in sides) / 1000 if beside else None,
    }
    if len(sides) == 1:
        percentiles = sides[0]["clat_ns"].get("percentile", {})
        found |= {name: percentiles[key] / 1000 for name, key in (("p50_us", "50.000000"), ("p99_us", "99.000000"),
                                                                  ("p999_us", "99.900000")) if key in percentiles}
    return found


def _beside(busy: list[tuple[dict, dict]]) -> bool:
    """Whether these jobs ran at the same time. Jobs of one group do. For several groups, fio 3.36 and later reports when each
    began, in ms."""
    if len({job.get("groupid") for job, _ in busy}) <= 1:
        return True
    times = [(job["job_start"], job["job_start"] + side["runtime"]) for job, side in busy if job.get("job_start")]
    return len(times) == len(busy) and max(begin for begin, _ in times) < min(end for _, end in times)
