# SPDX-License-Identifier: Apache-2.0
"""What the paper says (paper.toml): its setting, its mixes and the values of its figures."""

from __future__ import annotations

import copy

from trapless.pagesim.traces import Trace
from trapless.study.paper import Paper

value = Paper(__file__)
FRAMES = 200 * 256
"""The paper's memory of 200 MB in pages of 4 KiB (ASPF IV-A)."""


def setting() -> dict:
    """The paper's setting as a configuration of the simulator, without memory's size, policy and processes."""
    return copy.deepcopy(value.data["setting"])


def mixes() -> dict[str, list[str]]:
    """Programs of each mix."""
    return value.data["mix"]


def intense(program: str) -> bool:
    """Does the paper call this program memory-intensive?"""
    return program in value.data["labels"]["intense"]


def frames(found: dict[str, Trace]) -> int:
    """Memory in pages by the paper's rule: the working set of the smallest process of Mix6 (ASPF IV-A)."""
    return min(found[name].working_set for name in mixes()["mix6"])
