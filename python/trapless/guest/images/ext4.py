# SPDX-License-Identifier: Apache-2.0
"""Makes and reads ext4 images without mounting them. The same input gives the same bytes."""

from __future__ import annotations

import os
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from trapless.base.cache import own_log, run_tool

# The time of everything in an image: 2024-01-01 00:00 UTC.
EPOCH = 1704067200
RECIPE = "ext4 1"
"""Part of the cache key of the images. Raise it when the images change."""
MIB = 1 << 20
BLOCK = 4096

# A volume that is hardly written needs no journal and no checksums. Without them the guest executes fewer instructions.
LEAN = "^has_journal,^metadata_csum,^resize_inode,^64bit"


@dataclass(frozen=True)
class Volume:
    """Content and options of an ext4 image."""

    label: str
    size: int
    """Size in bytes. The file is sparse."""
    features: str = ""
    """Features for mke2fs -O; empty: the defaults, with a small journal."""
    inodes: int = 0
    """Number of inodes; 0: mke2fs chooses."""


def make(volume: Volume, source: Path, image: Path) -> None:
    """Write `image` with the tree `source` in it, owned by root. Changes the times of the files in `source`."""
    entries = _fix_times(source)
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"trapless:{volume.label}"))
    options = [f"hash_seed={identity}", "root_owner=0:0", "lazy_itable_init=1", "lazy_journal_init=1", "nodiscard"]
    command = ["mke2fs", "-q", "-F", "-t", "ext4", "-b", str(BLOCK), "-m", "0", "-L", volume.label, "-U", identity,
               "-E", ",".join(options), "-d", str(source)]
    if volume.features:
        command += ["-O", volume.features]
    else:
        command += ["-J", f"size={16 if volume.size >= 128 * MIB else 4}"]
    if volume.inodes:
        command += ["-N", str(volume.inodes)]
    command += [str(image), f"{volume.size // 1024}k"]
    env = {"E2FSPROGS_FAKE_TIME": str(EPOCH), "SOURCE_DATE_EPOCH": str(EPOCH)}
    with own_log("mke2fs") as log:
        run_tool(command, log, f"making {image.name}", env)
        _fix_inodes(image, entries, env, log)


def _fix_times(source: Path) -> int:
    """Set all modification times. Return the number of inodes below `source`."""
    seen = set()
    for folder, folders, files in os.walk(source, topdown=False):
        for name in folders + files:
            path = os.path.join(folder, name)
            seen.add(os.lstat(path).st_ino)
            os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)
    os.utime(source, (EPOCH, EPOCH))
    return len(seen)


def _fix_inodes(image: Path, entries: int, env: dict[str, str], log: Path) -> None:
    """Set what mke2fs copies from the host without an option to change it: times of inodes, and owners."""
    script = image.with_suffix(".debugfs")
    with open(script, "w") as out:
        # Inode 2 is the root, 11 is lost+found; after it come the files in the order of their names.
        for inode in [2, *range(11, 12 + entries)]:
            for name in ("ctime", "atime", "crtime"):
                out.write(f"set_inode_field <{inode}> {name} @{EPOCH}\n")
                out.write(f"set_inode_field <{inode}> {name}_extra 0\n")
            out.write(f"set_inode_field <{inode}> uid 0\nset_inode_field <{inode}> gid 0\n")
    try:
        run_tool(["debugfs", "-w", "-f", script, image], log, f"finishing {image.name}", env)
    finally:
        script.unlink()


def partition(volume: Path, disk: Path, signature: int) -> None:
    """Write `disk`: a DOS partition table with the signature, and `volume` as its one partition. Linux finds it as
    PARTUUID=<signature>-01 whatever order it meets its drives in."""
    start, sectors = MIB // 512, volume.stat().st_size // 512
    table = bytearray(512)
    table[440:444] = signature.to_bytes(4, "little")
    table[450] = 0x83  # Linux
    table[454:462] = start.to_bytes(4, "little") + sectors.to_bytes(4, "little")
    table[510:512] = b"\x55\xaa"
    disk.write_bytes(table)
    command = ["dd", f"if={volume}", f"of={disk}", f"bs={MIB}", "seek=1", "conv=sparse,notrunc", "status=none"]
    with own_log("partition") as log:
        run_tool(command, log, f"making {disk.name}")
    os.truncate(disk, MIB + volume.stat().st_size)


def label(image: Path) -> str | None:
    """Return the label of an ext4 image; None if the file is not ext4."""
    with open(image, "rb") as disk:
        disk.seek(1024)
        block = disk.read(1024)
    if len(block) < 1024 or block[56:58] != b"\x53\xef":
        return None
    return block[120:136].rstrip(b"\0").decode(errors="replace")


def is_cut_short(image: Path) -> bool:
    """Whether the ext4 image claims to be longer than its file."""
    with open(image, "rb") as disk:
        disk.seek(1024)
        block = disk.read(1024)
    blocks, block_size = int.from_bytes(block[4:8], "little"), 1024 << block[24]
    return blocks * block_size > image.stat().st_size


def read_file(image: Path, path: str) -> bytes | None:
    """Return the contents of a file in an image, or None if there is no such file."""
    done = subprocess.run(["debugfs", "-R", f"cat {path}", str(image)], capture_output=True, check=False)
    if b"File not found" in done.stderr:
        return None
    return done.stdout
