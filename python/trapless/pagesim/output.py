# SPDX-License-Identifier: Apache-2.0
"""Reads the simulator's record of a run. Only this file knows the record's keys. Times become seconds of simulated time."""

from __future__ import annotations

from collections.abc import Callable

from trapless.base.ui import UserError
from trapless.results.columns import HIGHER, LOWER, Column, word

ORIGINS = ("neighbour", "set", "successor", "reconstruct")
"""Reasons for which a page was read ahead."""
PARTS = ("head", "middle", "end")
"""Thirds of a time slice."""
SHARES = {"share_5": "0.05", "share_10": "0.1"}
"""Parts of a run, the first 5 % and 10 %, for which each process's share of the processor is shown (ASPF figure 9)."""
PROCESS = word("process", "process", "Name of a process.")
TIME = Column("time_s", "time s", "Simulated time until the last process ends.", "s", LOWER, ".3f")
WAITING = Column("waiting_share", "waiting %",
                 "Share of the time of one processor in which processes kept it and waited for pages.", "%", LOWER, ".2f")
ACCESSES = Column("accesses", "accesses", "Accesses of memory of all processes.", "accesses", None, ",.0f")
FAULTS = Column("faults", "faults", "Accesses of pages for which a process had to wait.", "faults", LOWER, ",.0f")
SWITCHES = Column("context_switches", "context switches", "Times that the processor went to another process.", "switches", LOWER,
                  ",.0f")
READS = Column("device_reads", "pages read", "Pages read from the device, those read ahead included.", "pages", LOWER, ",.0f")
WRITES = Column("device_writes", "pages written", "Pages written to the device.", "pages", LOWER, ",.0f")
MOVED = Column("pages_moved", "pages moved", "Pages read and written.", "pages", LOWER, ",.0f")
JAIN = Column("jain", "Jain's index", "How equal the shares of the processor are when the first process ends (1: equal).", "1",
              HIGHER, ".5f")
COLUMNS = (TIME, WAITING, ACCESSES, FAULTS, SWITCHES, READS, WRITES, MOVED, JAIN)
"""Columns of the record that `figures` returns."""
WINDOW = Column("window_s", "window s", "Length of a window of time in which faults are counted.", "s", None, ".3f")
PROCESS_FAULTS = Column("process_faults", "faults", "Faults of the process.", "faults", LOWER, ",.0f")
FINISHED = Column("finished_s", "finished s", "When the process ended.", "s", LOWER, ".3f")
PROCESS_WAITING = Column("process_waiting_share", "waiting %",
                         "Share of the run's time in which the process kept the processor and waited for pages.", "%", LOWER,
                         ".2f")
CPU = Column("cpu_s", "CPU s", "Processor time of the process.", "s", LOWER, ".3f")
THIRDS = tuple(Column(part, f"faults in the {part}", f"Faults of the process in the {part} third of its time slices.", "faults",
                      None, ",.0f") for part in PARTS)
SHARE = {name: Column(name, f"first {part} %", f"The process's share of the processor over the first {part} % of the run.", "%",
                      None, ".2f") for name, part in (("share_5", 5), ("share_10", 10))}
OF_PROCESSES = (PROCESS, PROCESS_FAULTS, FINISHED, CPU, PROCESS_WAITING, *THIRDS, *SHARE.values())
"""Columns of each record that `processes` returns."""
_WHY = {"neighbour": "as neighbours in the address space", "set": "as part of a set of A-SPF",
        "successor": "because they followed before", "reconstruct": "to bring back what the process had lost"}
ISSUED = {origin: Column(f"{origin}_issued", f"{origin} pages", f"Pages that were read ahead {why}.", "pages", None, ",.0f")
          for origin, why in _WHY.items()}
USEFUL = {origin: Column(f"{origin}_useful_share", f"{origin} of use %",
                         f"Of the pages read ahead {why} that are accessed or gone, the share that was accessed.", "%", HIGHER,
                         ".2f")
          for origin, why in _WHY.items()}
OF_PREFETCHES = (*ISSUED.values(), *USEFUL.values())
"""Columns of the record that `prefetches` returns."""
BOOK_BYTES = Column("bookkeeping_bytes", "bookkeeping bytes", "Most bytes that the policy's own lists and sets took.", "bytes",
                    LOWER, ",.0f")
BOOK_OPERATIONS = Column("bookkeeping_operations", "list operations", "Changes of the policy's own lists and sets.", "operations",
                         LOWER, ",.0f")
OF_COSTS = (BOOK_BYTES, BOOK_OPERATIONS)
"""Columns of the record that `costs` returns."""


_LATENCIES = {"until_page": ("page_wait", "until its page is in memory"), "until_run": ("run_wait", "until its process goes on")}
_NUMBERS = {"mean": ("mean", "Mean time"), "p50": ("p50", "Median of the time"), "p90": ("p90", "90th percentile of the time"),
            "p99": ("p99", "99th percentile of the time"), "p999": ("p99.9", "99.9th percentile of the time"),
            "max": ("longest", "Longest time")}
OF_LATENCIES = tuple(
    Column(f"{key}_{number}_us", f"{key.replace('_', ' ')} {heading}, us", f"{what} from an access that waits {until}.", "us",
           LOWER, ",.2f")
    for key, until in _LATENCIES.values() for number, (heading, what) in _NUMBERS.items())
"""Columns of the record that `latencies` returns."""


def take(record: dict, *parts: Callable[[dict], dict]) -> dict:
    """Return the values of `figures` and of the other `parts` of a record."""
    try:
        return {key: value for part in (figures, *parts) for key, value in part(record).items()}
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"this version of trapless cannot read the record of the paging simulator: {error!r}") from None


def figures(record: dict) -> dict:
    """Return the values that every table may show."""
    return {
        "time_s": record["time_ns"] / 1e9,
        "waiting_share": 100 * record["waited_ns"] / max(record["time_ns"], 1),
        "accesses": record["accesses"],
        "faults": record["faults"],
        "context_switches": record["context_switches"],
        "device_reads": record["device_reads"],
        "device_writes": record["device_writes"],
        "pages_moved": record["pages_moved"],
        "jain": record["jain"],
    }


def latencies(record: dict) -> dict:
    """Return how long accesses waited for their pages. A value is None if no access waited. The record of an earlier version has
    none of these values."""
    found = record.get("latency", {})
    return {f"{key}_{number}_us": None if (value := found[name][f"{number}_ns"]) is None else value / 1e3
            for name, (key, _) in _LATENCIES.items() if name in found for number in _NUMBERS}


def over_time(record: dict) -> dict:
    """Return the faults of all processes in windows of time."""
    series = [process["timeline"] for process in record["processes"]]
    window = max(one["window_ns"] for one in series)
    counts = [0] * max(-(-len(one["counts"]) * one["window_ns"] // window) for one in series)
    for one in series:
        # The simulator doubles a series' window when the series gets too long; `window` is the longest.
        for number, count in enumerate(one["counts"]):
            counts[number * one["window_ns"] // window] += count
    return {"window_s": window / 1e9, "window_faults": counts}


def processes(record: dict) -> dict:
    """Return the values of each process, as a list."""
    return {"each": [{
        "process": process["name"],
        "process_faults": process["faults"],
        "finished_s": process["finished_ns"] / 1e9,
        "cpu_s": process["cpu_ns"] / 1e9,
        "process_waiting_share": 100 * process["waited_ns"] / max(record["time_ns"], 1),
        **{part: count for part, count in zip(PARTS, process["fault_parts"], strict=True)},
        **{name: 100 * process["cpu_share"][key] for name, key in SHARES.items()},
    } for process in record["processes"]]}


def timelines(record: dict) -> dict:
    """Return the faults of each process in windows of time."""
    return {"timelines": [{
        "process": process["name"],
        "window_s": process["timeline"]["window_ns"] / 1e9,
        "window_faults": process["timeline"]["counts"],
    } for process in record["processes"]]}


def prefetches(record: dict) -> dict:
    """Return, for each origin, how many pages were read ahead, and which share of those accessed or evicted was accessed."""
    found = {}
    for origin in ORIGINS:
        counts = record["prefetch"].get(origin, {"issued": 0, "useful": 0, "useless": 0})
        judged = counts["useful"] + counts["useless"]
        found |= {f"{origin}_issued": counts["issued"],
                  f"{origin}_useful_share": 100 * counts["useful"] / judged if judged else None}
    return found


def costs(record: dict) -> dict:
    """Return the costs of the policy's own lists and sets: the most bytes that they took, and the number of their changes."""
    return {f"bookkeeping_{key}": record["bookkeeping"][key] for key in ("bytes", "operations")}
