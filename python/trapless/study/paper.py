# SPDX-License-Identifier: Apache-2.0
"""Values that a paper prints, from the file paper.toml of its study."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path


class Paper:
    """Values of a study's paper.toml. `Paper(__file__)` reads the paper.toml in the folder of the calling file.

        paper = Paper(__file__)
        paper("13", "ycsb_c")        # a value of figure 13; None if the paper does not print it
    """

    def __init__(self, beside: str | Path) -> None:
        """Use the paper.toml in the folder of the file `beside`. It is read when the first value is used."""
        self.path = Path(beside).with_name("paper.toml")

    @property
    def data(self) -> dict:
        """Return the whole file. Callers must not change it, because it is shared."""
        return _read(self.path)

    def __call__(self, figure: str, *keys: object) -> float | None:
        """Return the value under these keys of a figure. None if the paper does not print it; KeyError if there is no such
        figure."""
        found = self.data["figure"][figure]
        for key in keys:
            found = found.get(f"{key:g}" if isinstance(key, float) else str(key), {})
        return found if found != {} else None


@cache
def _read(path: Path) -> dict:
    return tomllib.loads(path.read_text())
