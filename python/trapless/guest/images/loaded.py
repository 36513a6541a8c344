# SPDX-License-Identifier: Apache-2.0
"""Data disks that a program fills in the guest. It runs once, on the unpatched kernel and without timing; then the disk is
cached."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from trapless.base.cache import cached, content_key, file_key
from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import ext4, rootfs
from trapless.guest.job import Job

RECIPE = "loaded data 1"
"""Part of the cache key of the disks. Raise it when the disks change."""


@dataclass(frozen=True)
class Loading:
    """How to fill a disk."""

    title: str
    """Description of the data, for messages."""
    command: str
    """Shell command that writes the data to /data."""
    size: int
    """Size of the file system in bytes."""
    used: int
    """Approximate number of bytes that are written."""
    inputs: tuple[Path, ...] = ()
    """Programs that are copied into the command's folder."""
    packages: tuple[str, ...] = ()
    """Debian packages that the command needs."""
    memory: str = "1G"
    harts: int = 4


def image(loading: Loading) -> Path:
    """Return the disk's image; load it if it does not exist yet. Its layout may depend on everything that ran."""
    program, kernel, root = build.machine(), build.kernel(), rootfs.image(more=loading.packages)
    described = json.dumps([loading.command, loading.size, loading.packages, loading.memory, loading.harts])
    key = content_key(described, *(file_key(path) for path in (program, kernel, root, *loading.inputs)), ext4.RECIPE, RECIPE)
    title = f"loading {loading.title} in the guest"
    return cached("data", key, title, lambda out: _load(loading, program, kernel, root, out), loading.used) / "data.img"


def _load(loading: Loading, program: Path, kernel: Path, root: Path, out: Path) -> None:
    tree, disk = out / "tree", out / "data.img"
    tree.mkdir()
    ext4.make(ext4.Volume("trapless-data", loading.size), tree, disk)
    tree.rmdir()
    guest = guests.Guest(kernel, root, disk, data_kept=True, memory=loading.memory, harts=loading.harts)
    outcome = guests.run_on_machine(program, guest, Job(loading.command, loading.inputs))
    if outcome.status:
        raise UserError(f"loading {loading.title} ended with status {outcome.status}: {outcome.console.strip()[-300:]}")
    os.chmod(disk, 0o444)
