# SPDX-License-Identifier: Apache-2.0
"""Data disks for large files: ext4 with one file. All its blocks are allocated and marked as written, but hold zeros, which take
no space on the host. A read of a hole would not reach the drive; a read of these blocks does.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import BinaryIO

from trapless.base.cache import cached, content_key, own_log, run_tool
from trapless.base.ui import UserError
from trapless.guest.images import ext4
from trapless.guest.images.dataset import FILE

RECIPE = "sparse data 1"
"""Part of the cache key of the images. Raise it when the images change."""


def image(size: int) -> Path:
    """The image of a data disk whose file random.bin has `size` bytes (a multiple of 4096) of zeros."""
    key = content_key(f"{size} {FILE}", ext4.RECIPE, RECIPE)
    gib = size / (1 << 30)
    return cached("data", key, f"making a sparse data disk of {gib:.1f} GiB", lambda out: _build(out, size)) / "data.img"


def _build(out: Path, size: int) -> None:
    tree, disk, script = out / "tree", out / "data.img", out / "script"
    tree.mkdir()
    (tree / FILE).touch()
    # No checksums of metadata: the extents are changed without updating them.
    volume = ext4.Volume("trapless-data", (size * 9 // 8 // ext4.MIB + 48) * ext4.MIB, "^metadata_csum", inodes=1024)
    ext4.make(volume, tree, disk)
    script.write_text(f"fallocate /{FILE} 0 {size // ext4.BLOCK - 1}\nset_inode_field /{FILE} size {size}\n")
    with own_log("sparse") as log:
        run_tool(["debugfs", "-w", "-f", script, disk], log, f"finishing {disk.name}", {"E2FSPROGS_FAKE_TIME": str(ext4.EPOCH)})
    where = subprocess.run(["debugfs", "-R", f"imap /{FILE}", disk], capture_output=True, text=True, check=False).stdout
    found = re.search(r"located at block (\d+), offset (0x[0-9a-f]+)", where)
    if not found:
        raise UserError(f"{disk}: debugfs does not find the inode of {FILE}: {where.strip()}")
    with open(disk, "r+b") as image_file:
        _mark_written(image_file, int(found[1]) * ext4.BLOCK + int(found[2], 16) + _I_BLOCK)
    script.unlink()
    shutil.rmtree(tree)


# From ext4's layout on disk (kernel.org, "Dynamic Structures"): offset of the extent tree's root in the inode, and the structures
# of a node's header and entries.
_I_BLOCK = 40
_HEADER = struct.Struct("<HHHHI")
_MAGIC = 0xF30A
_ENTRY = 12
_UNWRITTEN = 32768


def _mark_written(disk: BinaryIO, node: int) -> None:
    """Mark all extents below the node at this byte of the disk as written."""
    disk.seek(node)
    magic, entries, _, depth, _ = _HEADER.unpack(disk.read(_HEADER.size))
    if magic != _MAGIC:
        raise UserError(f"{disk.name}: no node of extents at byte {node}")
    for entry in range(node + _HEADER.size, node + _HEADER.size + entries * _ENTRY, _ENTRY):
        disk.seek(entry + 4)
        if depth:
            low, high = struct.unpack("<IH", disk.read(6))
            _mark_written(disk, (high << 32 | low) * ext4.BLOCK)
            continue
        length = int.from_bytes(disk.read(2), "little")
        if length > _UNWRITTEN:
            disk.seek(entry + 4)
            disk.write((length - _UNWRITTEN).to_bytes(2, "little"))
