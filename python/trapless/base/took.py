# SPDX-License-Identifier: Apache-2.0
"""Run times of records. A record from the cache costs nothing now, but its run once took time, which counts in a figure's cost.

The time is in KEY.seconds, beside the record KEY.json.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from trapless.base.outputs import write_whole


@dataclass
class Account:
    """Counts runs that were asked for while this account was open, and that had a record before."""

    began: float = field(default_factory=time.time)
    before: dict[Path, float | None] = field(default_factory=dict)
    """Host seconds that each run took; None if no file has them."""

    @property
    def seconds(self) -> float:
        """Return the sum of the run times, in seconds of the host."""
        return sum(seconds or 0.0 for seconds in self.before.values())

    def __str__(self) -> str:
        """Return one line for the user; empty if there was no such run."""
        if not self.before:
            return ""
        unknown = sum(seconds is None for seconds in self.before.values())
        return (f"{len(self.before)} runs taken from the cache, which once took {self.seconds / 60:.1f} min one after another"
                + (f" ({unknown} of them without a recorded time)" if unknown else ""))


_OPEN: list[Account] = []


@contextmanager
def account() -> Iterator[Account]:
    """Count the records from the cache that this block asks for."""
    opened = Account()
    _OPEN.append(opened)
    try:
        yield opened
    finally:
        _OPEN.remove(opened)


def note(record: Path, seconds: float) -> None:
    """Note beside a record how many seconds its run took."""
    write_whole(record.with_suffix(".seconds"), f"{seconds:.3f}\n")


def known(record: Path) -> None:
    """Count the run of this record: it was asked for, and need not run."""
    try:
        seconds = float(record.with_suffix(".seconds").read_text())
    except (OSError, ValueError):
        seconds = None
    for each in _OPEN:
        if record.stat().st_mtime < each.began:
            each.before[record] = seconds
