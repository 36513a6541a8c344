# SPDX-License-Identifier: Apache-2.0
"""STC's values beside ours. Each difference is explained with figures of the same runs. A run repeats to the cycle; an interval
is over several boots."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trapless.study.compared import Compared, one, spread
from trapless.study.repeated import widest

OFF = "off"


def shares(key: str, quantity: str) -> Callable[[Sequence[dict]], list[Compared]]:
    """Return a function that compares figures 2 and 3, for which the paper prints no values: a share of the program's time, by
    order and pages per fault."""
    def beside(records: Sequence[dict]) -> list[Compared]:
        orders = dict.fromkeys(record["order"] for record in records)
        by_order = {order: [record for record in records if record["order"] == order] for order in orders}
        return [Compared(f"{quantity}, {order}", "%", None, spread([record[key] for record in mine]), widest(mine, key))
                for order, mine in by_order.items()]

    return beside


def walks(records: Sequence[dict]) -> list[Compared]:
    """Compare figure 4: the walk's share of a fault."""
    large = records[-1]
    return [Compared(
        "walk, of a page fault's time", "%", (large["paper_least"], large["paper_most"]),
        spread([record["walk_of_fault"] for record in records]), widest(records, "walk_of_fault"),
        f"With {large['rows']:,} rows a walk takes {large['walk']:.0f} of {large['fault']:,.0f} cycles: "
        f"{large['walk_instructions']:.0f} for instructions and {large['walk'] - large['walk_instructions']:.0f} for misses, "
        f"because the matrices replace the content of the caches between faults. The walk is {large['walk_of_handler']:.1f} % of "
        "the handler. The paper's timers enclose the handler, in a virtual machine. Its walks use a second set of tables.")]


def savings(*names: str) -> Callable[[Sequence[dict]], list[Compared]]:
    """Return a function that compares figures 6 and 7: cycles of walks saved by our default and by the paper's design. `names`
    are the keys that identify the work of a record."""
    def beside(records: Sequence[dict]) -> list[Compared]:
        def work(record: dict) -> tuple:
            return tuple(record[name] for name in names)

        bases = {work(record): record for record in records if record["variant"] == OFF}
        return [Compared(
            f"cycles of walks saved, {record['variant']}: {', '.join(f'{name} {record[name]}' for name in names)}", "%",
            one(record["paper"]), one(record["saved"]), record["saved_ci"], _why(record, bases[work(record)]))
            for record in records if record.get("paper") is not None]

    return beside


def _why(record: dict, base: dict) -> str:
    return (f"A walk of {base['walk_instructions']:.0f} instructions and {base['walk']:.0f} cycles becomes one of "
            f"{record['walk_instructions']:.0f} and {record['walk']:.0f}; {record['hits']:.0f} % of walks hit the last table.")
