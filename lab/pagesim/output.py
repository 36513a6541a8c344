# SPDX-License-Identifier: Apache-2.0
"""The simulator's record of a run: the one place that knows its keys. Times become seconds of simulated time."""

from __future__ import annotations

from collections.abc import Callable

from lab.ui import UserError

ORIGINS = ("neighbour", "set", "successor", "reconstruct")
"""Why a page was read ahead."""
PARTS = ("head", "middle", "end")
"""Thirds of a time slice."""
SHARES = {"share_5": "0.05", "share_10": "0.1"}
"""The processor's share over the first 5 % and 10 % of the run (ASPF figure 9)."""


def take(record: dict, *parts: Callable[[dict], dict]) -> dict:
    """These parts of a record, `figures` first."""
    try:
        return {key: value for part in (figures, *parts) for key, value in part(record).items()}
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the simulator's record is not one that this laboratory reads: {error!r}") from None


def figures(record: dict) -> dict:
    """What every table may show."""
    return {
        "time_s": record["time_ns"] / 1e9,
        "accesses": record["accesses"],
        "faults": record["faults"],
        "context_switches": record["context_switches"],
        "device_reads": record["device_reads"],
        "device_writes": record["device_writes"],
        "pages_moved": record["pages_moved"],
        "jain": record["jain"],
    }


def over_time(record: dict) -> dict:
    """Faults of all processes by windows of time."""
    series = [process["timeline"] for process in record["processes"]]
    window = max(one["window_ns"] for one in series)
    counts = [0] * max(-(-len(one["counts"]) * one["window_ns"] // window) for one in series)
    for one in series:
        # A long series has windows of twice, four times ... the length.
        for number, count in enumerate(one["counts"]):
            counts[number * one["window_ns"] // window] += count
    return {"window_s": window / 1e9, "window_faults": counts}


def processes(record: dict) -> dict:
    """What each process did, as a list."""
    return {"each": [{
        "process": process["name"],
        "process_faults": process["faults"],
        "finished_s": process["finished_ns"] / 1e9,
        "cpu_s": process["cpu_ns"] / 1e9,
        **{part: count for part, count in zip(PARTS, process["fault_parts"], strict=True)},
        **{name: 100 * process["cpu_share"][key] for name, key in SHARES.items()},
    } for process in record["processes"]]}


def timelines(record: dict) -> dict:
    """Faults of each process by windows of time."""
    return {"timelines": [{
        "process": process["name"],
        "window_s": process["timeline"]["window_ns"] / 1e9,
        "window_faults": process["timeline"]["counts"],
    } for process in record["processes"]]}


def prefetches(record: dict) -> dict:
    """What was read ahead, by origin, and how much of it was accessed before it had to go again."""
    found = {}
    for origin in ORIGINS:
        counts = record["prefetch"].get(origin, {"issued": 0, "useful": 0, "useless": 0})
        judged = counts["useful"] + counts["useless"]
        found |= {f"{origin}_issued": counts["issued"],
                  f"{origin}_useful_share": 100 * counts["useful"] / judged if judged else None}
    return found


def costs(record: dict) -> dict:
    """The policy's own bookkeeping: bytes at most, and changes of its lists and sets."""
    return {f"bookkeeping_{key}": record["bookkeeping"][key] for key in ("bytes", "operations")}
