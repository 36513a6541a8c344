# SPDX-License-Identifier: Apache-2.0
"""What the paper says (paper.toml): its setting, its mixes and the values of its figures."""

from __future__ import annotations

import copy
import tomllib
from functools import cache

from lab.paths import LAB
from lab.report.paper import printed


@cache
def _data() -> dict:
    return tomllib.loads((LAB / "pagesim" / "paper.toml").read_text())


def setting() -> dict:
    """The paper's setting as a configuration of the simulator, without memory's size, policy and processes."""
    return copy.deepcopy(_data()["setting"])


def mixes() -> dict[str, list[str]]:
    """Programs of each mix."""
    return _data()["mix"]


def intense(program: str) -> bool:
    """Does the paper call this program memory-intensive?"""
    return program in _data()["labels"]["intense"]


def value(figure: str, *keys: object) -> float | None:
    """A value of a figure; None if the paper does not print it."""
    return printed(_data(), figure, *keys)
