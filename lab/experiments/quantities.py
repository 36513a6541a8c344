# SPDX-License-Identifier: Apache-2.0
"""Units of what records hold, and which way is better, by the record's key."""

from __future__ import annotations

from dataclasses import dataclass

HIGHER, LOWER = "higher is better", "lower is better"


@dataclass(frozen=True)
class Quantity:
    """What a number is."""

    unit: str
    direction: str | None = None
    """HIGHER, LOWER, or None: neither."""


_NAMED = {
    "ops_per_second": Quantity("1/s", HIGHER),
    "gain": Quantity("%", HIGHER),
    "ipc": Quantity("instructions a cycle", HIGHER),
    "user_ipc": Quantity("instructions a cycle", HIGHER),
    "os_faults": Quantity("faults", LOWER),
    "region_os_faults": Quantity("faults", LOWER),
    "hw_misses": Quantity("misses"),
    "region_hw_misses": Quantity("misses"),
    "data_reads": Quantity("reads"),
    "data_reads_by_hardware": Quantity("reads"),
    "resident": Quantity("pages"),
    "distinct_pages": Quantity("pages"),
    "hw_share": Quantity("%", HIGHER),
    "wrong": Quantity("records", LOWER),
    "ops": Quantity("operations"),
    "threads": Quantity("threads"),
    "ring": Quantity("frames"),
    "um2": Quantity("um2", LOWER),
    "gates": Quantity("NAND2", LOWER),
    "flip_flops": Quantity("bits", LOWER),
    "share": Quantity("%"),
    # Parts of a miss (lab.profiling.kind_rows).
    **{part: Quantity("us", LOWER) for part in ("before", "device", "smu", "after", "whole", "pollution")},
    "saved": Quantity("%", HIGHER),
    "over_off": Quantity("%", LOWER),
    "over_stock": Quantity("%", LOWER),
    "over_stock_percent": Quantity("%", LOWER),
    "kernel_instructions_per_fault": Quantity("instructions a fault", LOWER),
    "us_per_fault": Quantity("us", LOWER),
    "software": Quantity("us", LOWER),
    "hits": Quantity("%", HIGHER),
    "gain_over_emulated": Quantity("%", HIGHER),
    "latency_change": Quantity("%", LOWER),
    "latency_change_by_kpoold": Quantity("%", LOWER),
    "bandwidth_change_by_kpoold": Quantity("%", HIGHER),
    "ops_per_second_change": Quantity("%", HIGHER),
    "user_ipc_change": Quantity("%", HIGHER),
    "refill_faults": Quantity("faults", LOWER),
    "refill_faults_removed": Quantity("%", HIGHER),
    "before_us_less": Quantity("us", HIGHER),
    "after_us_less": Quantity("us", HIGHER),
    "time_s_less": Quantity("%", HIGHER),
    "faults_less": Quantity("%", HIGHER),
    "context_switches_less": Quantity("%", HIGHER),
    "pages_moved_less": Quantity("%", HIGHER),
    "moved_less_than_virt": Quantity("%", HIGHER),
    "arming_us_per_page": Quantity("us", LOWER),
    **{f"user_{event}": Quantity("misses per 1000 instructions", LOWER)
       for event in ("l1i", "l1d", "l2", "last", "dtlb", "branches")},
    "mips": Quantity("million instructions a host second", HIGHER),
    # More reads in the same time make them more, less work of the kernel for a read makes them fewer.
    "fio_mips": Quantity("million instructions a second"),
    # Of a page fault (lab.stc.runs.figures), and of whole programs.
    **{part: Quantity("cycles", LOWER) for part in ("walk", "tables", "fault", "handler", "cycles")},
    **{counted: Quantity("instructions", LOWER) for counted in ("instructions", "walk_instructions")},
    "faults": Quantity("faults"),
    "rows": Quantity("rows"),
    "pages": Quantity("pages"),
    "boots": Quantity("boots"),
}
# By the key's end; of two that fit the longer one.
_BY_END = {
    "_instructions_per_op": Quantity("instructions an operation", LOWER),
    "_instructions": Quantity("instructions", LOWER),
    "_cycles": Quantity("cycles", LOWER),
    "_per_op": Quantity("an operation", LOWER),
    "_mb_s": Quantity("MB/s", HIGHER),
    "_seconds": Quantity("s", LOWER),
    "_percent": Quantity("%"),
    "_share": Quantity("%"),
    "_change": Quantity("%"),
    "_of_fault": Quantity("%"),
    "_of_handler": Quantity("%"),
    "_over_off": Quantity("%", LOWER),
    "_over_stock": Quantity("%", LOWER),
    "_ratio": Quantity("x", HIGHER),
    "_ratio_to_osdp": Quantity("x", HIGHER),
    "_ratio_to_emulated": Quantity("x", HIGHER),
    "_bytes": Quantity("bytes"),
    "_kb": Quantity("KB"),
    "_mib": Quantity("MiB"),
    "_mips": Quantity("million instructions a second", HIGHER),
    "_us": Quantity("us", LOWER),
    "_ns": Quantity("ns", LOWER),
    "_mm2": Quantity("mm2", LOWER),
    "_s": Quantity("s", LOWER),
}


def of(key: str) -> Quantity:
    """The quantity that a record holds under this key; a bare number if it is none of the known."""
    return _NAMED[key] if key in _NAMED else by_end(key)


def by_end(key: str) -> Quantity:
    """What the end of a name says, whoever gave it; else a bare number."""
    fitting = [end for end in _BY_END if key.endswith(end)]
    return _BY_END[max(fitting, key=len)] if fitting else Quantity("1")
