# SPDX-License-Identifier: Apache-2.0
"""Repetitions of the paging simulator's runs. The simulator is deterministic, so repetitions take a mix's programs in several
orders (docs/decisions/066-aspf-orders.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from random import Random

from trapless.loads.setup import Setup
from trapless.study import repeated

ORDERS = (0, 1, 4)
"""What is set against the paper is repeated with the programs in other orders, drawn by these seeds (0: the paper's); quick forms
have two."""
SAME = {"mix", "policy", "process", "processes", "frames", "memory_mib", "latency_us", "prefetch_pages", "shortest_trace_m",
        "capacity", "span", "pages"}
"""What tells rows apart, or is of the traces: no order changes it."""


def in_order(names: Sequence[str], order: int) -> list[str]:
    """A mix's programs in this order."""
    found = list(names)
    if order:
        Random(order).shuffle(found)
    return found


def in_all_orders(measure: Callable[[Setup], list[dict]]) -> Callable[[Setup], list[dict]]:
    """What measures the same in all orders: rows of means, and their intervals."""
    @wraps(measure)
    def every(setup: Setup) -> list[dict]:
        orders = ORDERS[:2] if setup.quick else ORDERS
        return [_mean(rows) for rows in zip(*(measure(replace(setup, order=order)) for order in orders), strict=True)]

    return every


def _mean(rows: Sequence[dict]) -> dict:
    """One row of them, which differ in their order alone; the same of each process. Series over time are the first order's."""
    same = {key: value for key, value in rows[0].items() if key in SAME or key.partition("_")[0] == "paper"}
    row = same | repeated.row({}, [{key: value for key, value in row.items() if key not in same} for row in rows])
    if "each" in row:
        row["each"] = [_mean_of_process(process["process"], rows) for process in rows[0]["each"]]
    return row


def _mean_of_process(name: str, rows: Sequence[dict]) -> dict:
    found = _mean([process for row in rows for process in row["each"] if process["process"] == name])
    return {key: value for key, value in found.items() if key != repeated.RUNS}
