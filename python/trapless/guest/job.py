# SPDX-License-Identifier: Apache-2.0
"""Jobs. A job is a command for the guest, files to copy in, files to copy out, and an exit status. It is on an ext4 disk."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from trapless.base.cache import SMALL, check_room
from trapless.base.ui import UserError
from trapless.guest.images import ext4

LABEL = "trapless-job"
KINDS = ("ideal", "osdp", "emulated", "trap", "hwdp")
"""Kinds of demand paging that the guest's launcher supports."""
_ROOM = 256 * ext4.MIB


@dataclass(frozen=True)
class Job:
    """A job for the guest's init."""

    script: str
    """Body of a shell script. It runs in /job/in and may write files to /job/out."""
    inputs: tuple[Path, ...] = ()
    """Host files and folders that appear in /job/in."""


def command_job(argv: list[str], kind: str | None = None, inputs: tuple[Path, ...] = (), share: bool = False) -> Job:
    """Make a job that runs one command. Its file mappings of /data are paged as `kind` says; None leaves them alone."""
    return Job(f"exec {shlex.join(launcher(kind, share) + argv)}", inputs)


def launcher(kind: str | None, share: bool = False) -> list[str]:
    """Return the words to put before a command so that its mappings of /data are paged as `kind` says."""
    return ["hwdp", "-k", kind, "-f", "/data/", *(["-s"] if share else []), "--"] if kind else []


def write_disk(job: Job, image: Path) -> None:
    """Make the job's disk."""
    # The inputs exist twice: in the tree and in the image. The guest may write about as much.
    check_room(2 * sum(map(_size, job.inputs)) + SMALL, image.parent, "the job's disk")
    tree = image.with_suffix(".tree")
    (tree / "in").mkdir(parents=True)
    (tree / "out").mkdir()
    command = tree / "cmd"
    command.write_text(f"#!/bin/sh\n{job.script}\n")
    command.chmod(0o755)
    # Init overwrites these files. It could not create a new file if the command had filled the disk.
    for name in ("status", "readahead"):
        (tree / name).write_text("      \n")
    for path in job.inputs:
        # Not Path.name, which is empty for `.`.
        name = Path(os.path.abspath(path)).name
        target = tree / "in" / name
        if target.exists():
            raise UserError(f"two inputs have the name {name}")
        try:
            if path.is_dir():
                shutil.copytree(path, target, symlinks=True)
            else:
                shutil.copy(path, target)
        except OSError as error:
            raise UserError(f"cannot read input {error.filename or path}: {error.strerror}") from error
    used = sum(path.lstat().st_size for path in tree.rglob("*"))
    size = (used * 5 // 4 + _ROOM) // ext4.MIB * ext4.MIB
    ext4.make(ext4.Volume(LABEL, size, ext4.LEAN), tree, image)
    shutil.rmtree(tree)


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder. Unreadable files are reported later, when they are copied."""
    try:
        return sum(each.lstat().st_size for each in (path.rglob("*") if path.is_dir() else (path,)))
    except OSError:
        return 0


def read_number(image: Path, path: str) -> int | None:
    """Read a number that init left on the job's disk: `/status` (the command's exit status) or `/readahead`. None if it is not
    there."""
    text = ext4.read_file(image, path)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def read_counters(image: Path) -> dict[str, int]:
    """Return how much the kernel's counters grew while the command ran (vmstat, hwdp/stats, and the data disk's reads). Gauges
    may have fallen. Empty if the guest did not get that far."""
    before, after = (_counters(ext4.read_file(image, f"/{name}") or b"") for name in ("before", "after"))
    return {name: value - before.get(name, 0) for name, value in after.items()}


def _counters(text: bytes) -> dict[str, int]:
    lines = (line.split() for line in text.decode(errors="replace").splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal()}
