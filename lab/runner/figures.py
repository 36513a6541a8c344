# SPDX-License-Identifier: Apache-2.0
"""Figures of a run: what the machine counted in its regions of interest, and what fio reports."""

from __future__ import annotations

from lab.ui import UserError


def regions(stats: dict) -> list[dict]:
    """The regions of interest of a run: those of its program's own if it has some, else the automatic ones. UserError if the
    machine has not kept all that was marked: sums would be of a part."""
    if ignored := stats.get("marks_ignored"):
        raise UserError(f"no figures: the machine ignored {ignored} markers, because there were too many or they made no sense")
    found = stats.get("rois", [])
    return [region for region in found if not region.get("automatic")] or found


def of_regions(kind: str | None, regions: list[dict]) -> dict:
    """What the machine counted in all regions of interest of a run with this kind of paging: times in us unless the name says
    otherwise. First touches of watched mappings count since they were first watched, also before a region of the program's own.
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
    """Mean time of a miss at the device, and elsewhere where the machine sees the whole of it."""
    if kind == "ideal":
        return {"device_us": 0.0, "nondevice_us": 0.0}
    if kind == "hwdp":
        misses = [region["hw_miss"] for region in regions]
        return {name: mean([(miss["count"], miss[key]) for miss in misses])
                for name, key in (("device_us", "device_mean_us"), ("nondevice_us", "nondevice_mean_us"))}
    reads = [region["nvme_read"] for region in regions]
    return {"device_us": mean([(read["count"], read["mean_us"]) for read in reads]), "nondevice_us": None}


def mean(parts: list[tuple[int, float]]) -> float | None:
    """Of several means, each of so many samples, that of all samples."""
    parts = [part for part in parts if part[0]]
    if len(parts) == 1:
        return parts[0][1]
    count = sum(count for count, _ in parts)
    return sum(count * mean for count, mean in parts) / count if count else None


def of_fio(said: dict) -> dict:
    """Of fio's JSON: reads, or writes where there are no reads. Percentiles only of a single group, and only what fio reports;
    bandwidth and runtime not of groups that ran one after another."""
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
    """Did these jobs run beside each other? Those of one group do; of several, fio 3.36 and later say when each began, in ms."""
    if len({job.get("groupid") for job, _ in busy}) <= 1:
        return True
    times = [(job["job_start"], job["job_start"] + side["runtime"]) for job, side in busy if job.get("job_start")]
    return len(times) == len(busy) and max(begin for begin, _ in times) < min(end for _, end in times)
