# SPDX-License-Identifier: Apache-2.0
"""Data disks: ext4 with one file of seeded random bytes, the same on every host."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from trapless.base.cache import cached, content_key, room_for
from trapless.guest.images import ext4

SEED = 2020
RECIPE = "random data 1"
"""Part of the cache key of the images. Raise it when the images change."""
FILE = "random.bin"
_CHUNK = 4 << 20


def write_random(path: Path, size: int, seed: int = SEED) -> None:
    """Write `size` seeded random bytes."""
    source = random.Random(seed)
    with open(path, "wb") as out:
        for at in range(0, size, _CHUNK):
            out.write(source.randbytes(min(_CHUNK, size - at)))


def image(size: int, seed: int = SEED) -> Path:
    """The image of a data disk whose file random.bin has `size` bytes; default ext4 features, journal included."""
    mib = size / ext4.MIB
    title = f"making a data disk of {mib:.0f} MiB"
    return cached("data", _key(size, seed), title, lambda out: _build(out, size, seed), room(size)) / "data.img"


def _key(size: int, seed: int) -> str:
    return content_key(f"{size} {seed} {FILE}", ext4.RECIPE, RECIPE)


def room(size: int) -> int:
    """Return how many bytes of disk making such an image takes. The file exists twice meanwhile. 0 if the image exists
    already."""
    return room_for("data", _key(size, SEED), 2 * size + size // 64 + 32 * ext4.MIB)


def _build(out: Path, size: int, seed: int) -> None:
    tree = out / "tree"
    tree.mkdir()
    write_random(tree / FILE, size, seed)
    volume = ext4.Volume("trapless-data", (size * 9 // 8 // ext4.MIB + 48) * ext4.MIB)
    ext4.make(volume, tree, out / "data.img")
    shutil.rmtree(tree)
