# SPDX-License-Identifier: Apache-2.0
"""Data disks that a program loads in the guest: once, on the unpatched kernel and without timing; then kept by content."""

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
"""Part of the cache key of what this file makes. Raise it when that changes."""


@dataclass(frozen=True)
class Loading:
    """How a disk is loaded."""

    title: str
    """What is loaded, in words for messages."""
    command: str
    """Shell command that leaves the data in /data."""
    size: int
    """Bytes of the file system."""
    used: int
    """Bytes of it that are written at all, about."""
    inputs: tuple[Path, ...] = ()
    """Programs that the command needs, in its folder."""
    packages: tuple[str, ...] = ()
    """Debian packages that it needs."""
    memory: str = "1G"
    harts: int = 4


def image(loading: Loading) -> Path:
    """The disk's image, loaded if it is not there yet. How a program lays its data out may depend on all that ran."""
    program, kernel, root = build.machine(), build.kernel(stock=True), rootfs.image(more=loading.packages)
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
