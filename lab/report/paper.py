# SPDX-License-Identifier: Apache-2.0
"""What a paper's figures say, from a TOML file that has a table `figure`."""

from __future__ import annotations


def printed(data: dict, figure: str, *keys: object) -> float | None:
    """A value of a figure; None if the paper does not print it."""
    found = data["figure"][figure]
    for key in keys:
        found = found.get(f"{key:g}" if isinstance(key, float) else str(key), {})
    return found if found != {} else None
