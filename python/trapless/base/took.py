# SPDX-License-Identifier: Apache-2.0
"""How long runs took. One that is known from before costs nothing now, but a figure cost its time as well.

Beside a run's record, KEY.json, there is KEY.seconds.
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
    """The runs that were asked for while it was open, and were there before that."""

    began: float = field(default_factory=time.time)
    before: dict[Path, float | None] = field(default_factory=dict)
    """How long each took, in seconds of the host; None if that is not on record."""

    @property
    def seconds(self) -> float:
        """Seconds of the host, one run after another."""
        return sum(seconds or 0.0 for seconds in self.before.values())

    def __str__(self) -> str:
        """One line; empty if there was no such run."""
        if not self.before:
            return ""
        unknown = sum(seconds is None for seconds in self.before.values())
        return (f"{len(self.before)} runs known from before, which took {self.seconds / 60:.1f} min one after another"
                + (f" ({unknown} of them not on record)" if unknown else ""))


_OPEN: list[Account] = []


@contextmanager
def account() -> Iterator[Account]:
    """Count the results that this block asks for."""
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
    """The run whose record this is was asked for, and need not run."""
    try:
        seconds = float(record.with_suffix(".seconds").read_text())
    except (OSError, ValueError):
        seconds = None
    for each in _OPEN:
        if record.stat().st_mtime < each.began:
            each.before[record] = seconds
