# SPDX-License-Identifier: Apache-2.0
"""Addresses of a run: anywhere in physical memory, different for each run (SMU_RUN). Neighbours of one kind differ in only one
bit, so a unit that overlooks a bit of an address takes one for the other. With SMU_NEAR everything except the frames lies side
by side, so that windows can hold it (REQ: SMU-15)."""

from __future__ import annotations

import os
import random

ADDRESS_BITS, PFN_BITS, DMA_BITS, NSID_BITS = 56, 44, 64, 32
COUNT = 160
"""Limit of entries of one kind, and of frames."""
DEVICES = 8
PAGE = 4096

_rng = random.Random(os.environ.get("SMU_RUN", ""))


def _spread(base: int, low: int, high: int) -> list[int]:
    """Different numbers that begin with `base`. Each differs from the one before in one bit, from `low` to below `high`."""
    found, bits = [base], []
    while len(found) < COUNT:
        bits = bits or _rng.sample(range(low, high), high - low)
        further = found[-1] ^ 1 << bits.pop()
        if further not in found:
            found.append(further)
    return found


def _anywhere(align: int) -> int:
    return _rng.getrandbits(ADDRESS_BITS) & -align


NEAR = "SMU_NEAR" in os.environ
if NEAR:
    _base = _anywhere(1 << 24)
    PT, PMD, PUD = ([_base + table * 0x1_0000 + 8 * i for i in range(COUNT)] for table in range(3))
    FREE_RING, RET_RING = _base + 0x3_0000, _base + 0x4_0000
    SQ, CQ = ([_base + 0x10_0000 + (2 * d + half) * 0x1_0000 for d in range(DEVICES)] for half in range(2))
    _bells = _anywhere(PAGE)
    BELLS = [_bells + 8 * d for d in range(DEVICES)]
else:
    PT, PMD, PUD = (_spread(_anywhere(8), 3, ADDRESS_BITS) for _ in range(3))
    FREE_RING, RET_RING = _anywhere(PAGE), _anywhere(PAGE)
    SQ, CQ = ([_anywhere(PAGE) for _ in range(DEVICES)] for _ in range(2))
    BELLS = [_anywhere(8) for _ in range(DEVICES)]
FIRMWARE = PT[0] & -PAGE ^ 1 << _rng.randrange(30, ADDRESS_BITS)
"""Memory that the unit must not touch."""
PFN = _spread(_rng.getrandbits(PFN_BITS), 0, PFN_BITS)
DMA = _spread(_rng.getrandbits(DMA_BITS) & -PAGE, 12, DMA_BITS)
NSID = [1 + _rng.getrandbits(NSID_BITS - 1) for _ in range(DEVICES)]
LBA = _rng.getrandbits(32)
"""Address of the first block, in multiples of the number of blocks of a generation."""
