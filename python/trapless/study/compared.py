# SPDX-License-Identifier: Apache-2.0
"""A figure of a paper beside ours: values, difference, and the measured reason for the difference."""

from __future__ import annotations

from dataclasses import dataclass

NEAR = 0.1
"""A difference up to this fraction of the paper's value needs no reason."""


@dataclass(frozen=True)
class Compared:
    """One quantity of a figure, as the paper prints it and as we measured it."""

    quantity: str
    """Name of the quantity, in a few words."""
    unit: str
    paper: tuple[float | None, float | None] | None
    """Lowest and highest value that the paper prints. They are equal for a single value; None in the pair: no bound; None: no
    value."""
    ours: tuple[float, float]
    """Lowest and highest value that we measured, over the same range of cases."""
    interval: float | None = None
    """Half the width of the confidence interval (trapless.study.repeated), the widest of the range; None: a single run, or no
    run."""
    reason: str = ""
    """Why our value differs. The reason uses figures of the same records, never those of another source."""

    @property
    def differs(self) -> bool:
        """Whether our value is outside the paper's range by more than a tenth."""
        if self.paper is None:
            return False
        (low, high), (least, most) = self.paper, self.ours
        below = low is not None and least < low - NEAR * abs(low)
        above = high is not None and most > high + NEAR * abs(high)
        return below or above


def one(value: float) -> tuple[float, float]:
    """Return a single value as a range."""
    return value, value


def spread(values: list[float]) -> tuple[float, float]:
    """Return the range of some values."""
    return min(values), max(values)
