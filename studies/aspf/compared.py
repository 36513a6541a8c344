# SPDX-License-Identifier: Apache-2.0
"""ASPF's values beside ours, each difference with figures of the same runs. The simulator repeats to the nanosecond and each
program has one trace: intervals are of the orders in which the programs begin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trapless.study.compared import Compared, one, spread
from trapless.study.repeated import widest

BASELINE = "sync"
NEIGHBOURS = {"virt", "agg"}
"""Policies that read neighbours in address space ahead."""


def times(records: Sequence[dict], case: Callable[[dict], str]) -> list[Compared]:
    """Time saved over waiting alone, by policy; `case` names what else a record is of."""
    return _less(records, case, "time_s", "time saved over sync", _why_time)


def switches(records: Sequence[dict]) -> list[Compared]:
    """Fewer context switches than with waiting alone."""
    return _less(records, _mix, "context_switches", "fewer context switches than sync", _why_switches)


def accesses(records: Sequence[dict]) -> list[Compared]:
    """Fewer accesses that wait for the device than with waiting alone."""
    return _less(records, _mix, "faults", "fewer ULL accesses than sync", _why_accesses)


def times_by_mix(records: Sequence[dict]) -> list[Compared]:
    """Figure 6a."""
    return times(records, _mix)


def times_by_latency(records: Sequence[dict]) -> list[Compared]:
    """Figure 7."""
    return times(records, lambda record: f"{record['latency_us']:g} us")


def times_by_pages(records: Sequence[dict]) -> list[Compared]:
    """Figure 8."""
    return times(records, lambda record: f"{record['prefetch_pages']} pages")


def waiting(records: Sequence[dict]) -> list[Compared]:
    """Figure 1b: what waiting saves, and how long the runs are."""
    switching, waits = records
    found = [Compared(
        "time saved by waiting", "%", one(waits["paper"]), one(waits["time_s_less"]), waits.get("time_s_less_ci"),
        f"Six programs of {waits['shortest_trace_m']:,.0f} M accesses each take {switching['time_s']:.2f} s with switching, "
        f"{waits['time_s']:.2f} s with waiting: {switching['context_switches']:,.0f} context switches against "
        f"{waits['context_switches']:,.0f}, but {waits['faults']:,.0f} faults against {switching['faults']:,.0f}: who waits "
        "keeps the processor and less of the memory stays with who comes next.")]
    return found + [Compared(
        f"the whole run, {record['policy']}", "s", one(record["paper_s"]), one(record["time_s"]), record.get("time_s_ci"),
        f"The traces end after {record['shortest_trace_m']:,.0f} M accesses of each program; where the paper's end is not said.")
        for record in records]


def heads(records: Sequence[dict]) -> list[Compared]:
    """Figure 1c, which has no values: the head's share of a slice's faults."""
    each = records[0]["each"]
    return [Compared(f"faults in the {part} third of time slices, six programs", "%", None,
                     spread([process[f"{part}_share"] for process in each]), widest(each, f"{part}_share"))
            for part in ("head", "middle", "end")]


def processors(records: Sequence[dict]) -> list[Compared]:
    """Figure 9: each process's share of the processor."""
    return [Compared(
        f"{process['process']}'s CPU time over the first {part} % of the run, {record['policy']}", "%",
        one(process[f"paper_{part}"]), one(process[f"share_{part}"]), process.get(f"share_{part}_ci"),
        f"Jain's index of all shares is {record['jain']:.5f}.")
        for record in records for process in record["each"] for part in (5, 10) if process[f"paper_{part}"] is not None]


def useful(records: Sequence[dict]) -> list[Compared]:
    """Section IV-B1: prefetches from sets that were of use."""
    return [Compared(
        f"prefetches from sets that were of use, {record['policy']}", "%", one(record["paper_useful"]),
        one(record["set_useful_share"]), record.get("set_useful_share_ci"),
        f"Of {record['set_issued']:,.0f} pages that were read ahead for a set.")
        for record in records if record["paper_useful"] is not None and record.get("set_useful_share") is not None]


def moved(records: Sequence[dict]) -> list[Compared]:
    """Section IV-B3: energy, here by pages moved."""
    virt = next(record for record in records if record["policy"] == "virt")
    return [Compared(
        f"less energy than virt, {record['policy']} (ours: pages moved)", "%", one(record["paper_energy"]),
        one(record["moved_less_than_virt"]), record.get("moved_less_than_virt_ci"),
        f"It moves {record['pages_moved']:,.0f} pages, virt {virt['pages_moved']:,.0f}. Wanted are {_wanted(record, 'set')} that "
        f"it reads for a set, {_wanted(record, 'reconstruct')} that it brings back, and {_wanted(virt, 'neighbour')} of virt.")
        for record in records if record["paper_energy"] is not None]


def _mix(record: dict) -> str:
    return record["mix"]


def _less(records: Sequence[dict], case: Callable[[dict], str], key: str, quantity: str,
          why: Callable[[dict, dict], str]) -> list[Compared]:
    bases = {(record["mix"], record["latency_us"]): record for record in records if record["policy"] == BASELINE}
    less = f"{key}_less"
    return [Compared(f"{quantity}: {record['policy']}, {case(record)}", "%", one(record["paper"]), one(record[less]),
                     record.get(f"{less}_ci"), why(record, bases[record["mix"], record["latency_us"]]))
            for record in records if record["paper"] is not None and less in record]


def _why_time(record: dict, base: dict) -> str:
    return (f"{base['time_s']:.2f} s with {base['faults']:,.0f} faults and {base['pages_moved']:,.0f} pages moved become "
            f"{record['time_s']:.2f} s, {record['faults']:,.0f} and {record['pages_moved']:,.0f}. {_why(record)}")


def _why_switches(record: dict, base: dict) -> str:
    return (f"{base['context_switches']:,.0f} switches in {base['time_s']:.2f} s become {record['context_switches']:,.0f} in "
            f"{record['time_s']:.2f} s; they come where a slice is over, a program sleeps or ends.")


def _why_accesses(record: dict, base: dict) -> str:
    return (f"{base['faults']:,.0f} faults become {record['faults']:,.0f}, for {record['device_reads']:,.0f} pages read. "
            f"{_why(record)}")


def _why(record: dict) -> str:
    if record["policy"] in NEIGHBOURS:
        return (f"Of what it reads ahead {_wanted(record, 'neighbour')} are wanted: these programs sweep arrays. "
                "With pages at random addresses it loses to sync (aspf-scattered).")
    return (f"Wanted are {_wanted(record, 'set')} that it reads for a set and {_wanted(record, 'reconstruct')} that it brings "
            "back at the start of a slice; all take the drive's link, on which faults wait (aspf-free-drive has it without).")


def _wanted(record: dict, origin: str) -> str:
    """How many pages were read ahead for this, and what part of them was accessed before it had to go again."""
    share = record.get(f"{origin}_useful_share")
    return f"{'none' if share is None else f'{share:.0f} %'} of {record[f'{origin}_issued']:,.0f} pages ({origin})"
