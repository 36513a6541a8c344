# SPDX-License-Identifier: Apache-2.0
"""A figure of a paper beside ours: values, difference, and the measured reason for it."""

from __future__ import annotations

from dataclasses import dataclass

NEAR = 0.1
"""Values that differ by no more than this part of the paper's need no reason."""


@dataclass(frozen=True)
class Compared:
    """One quantity of a figure, as the paper prints it and as it was measured here."""

    quantity: str
    """What it is, in a few words."""
    unit: str
    paper: tuple[float | None, float | None] | None
    """Lowest and highest value that the paper prints (equal if it is one value; None: no bound); None: it prints none."""
    ours: tuple[float, float]
    """Lowest and highest value that we measured, over the same range of cases."""
    interval: float | None = None
    """Half the width of the confidence interval (trapless.study.repeated), the widest of the range; None: one run, or no run."""
    reason: str = ""
    """Why ours differs: with figures of the same records, never with figures of the source."""

    @property
    def differs(self) -> bool:
        """Is ours outside of the paper's range by more than a tenth?"""
        if self.paper is None:
            return False
        (low, high), (least, most) = self.paper, self.ours
        below = low is not None and least < low - NEAR * abs(low)
        above = high is not None and most > high + NEAR * abs(high)
        return below or above


def one(value: float) -> tuple[float, float]:
    """A single value as a range."""
    return value, value


def spread(values: list[float]) -> tuple[float, float]:
    """The range of some values."""
    return min(values), max(values)
