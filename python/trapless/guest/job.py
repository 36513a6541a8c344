# SPDX-License-Identifier: Apache-2.0
"""A job: a command for the guest, files that go in, files that come out, an exit status. It travels on an ext4 disk."""

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
"""Kinds of demand paging that the guest's launcher knows."""
_ROOM = 256 * ext4.MIB


@dataclass(frozen=True)
class Job:
    """The work of the guest's init."""

    script: str
    """Body of a shell script; runs in /job/in, may write files to /job/out."""
    inputs: tuple[Path, ...] = ()
    """Host files and folders that appear in /job/in."""


def command_job(argv: list[str], kind: str | None = None, inputs: tuple[Path, ...] = (), share: bool = False) -> Job:
    """A job that runs one command, its file mappings of /data paged as `kind` says (None: left alone)."""
    return Job(f"exec {shlex.join(launcher(kind, share) + argv)}", inputs)


def launcher(kind: str | None, share: bool = False) -> list[str]:
    """Words to put before a command so that its mappings of /data are paged as `kind` says."""
    return ["hwdp", "-k", kind, "-f", "/data/", *(["-s"] if share else []), "--"] if kind else []


def write_disk(job: Job, image: Path) -> None:
    """Make the job's disk."""
    # Once in the tree, once in the image; what the guest may write comes to that.
    check_room(2 * sum(map(_size, job.inputs)) + SMALL, image.parent, "the job's disk")
    tree = image.with_suffix(".tree")
    (tree / "in").mkdir(parents=True)
    (tree / "out").mkdir()
    command = tree / "cmd"
    command.write_text(f"#!/bin/sh\n{job.script}\n")
    command.chmod(0o755)
    # Init writes over it: for a new file there may be no room when the command has ended.
    for name in ("status", "readahead"):
        (tree / name).write_text("      \n")
    for path in job.inputs:
        # Not the path's own: that of `.` is empty.
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
    """Bytes of a file, or of all files in a folder; what cannot be read is complained of when it is copied."""
    try:
        return sum(each.lstat().st_size for each in (path.rglob("*") if path.is_dir() else (path,)))
    except OSError:
        return 0


def read_number(image: Path, path: str) -> int | None:
    """A number that init left on the job's disk: `/status`, the command's exit status, or `/readahead`; None if it did not."""
    text = ext4.read_file(image, path)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def read_counters(image: Path) -> dict[str, int]:
    """By how much the kernel's counters grew while the command ran (vmstat, hwdp/stats and the data disk's reads; gauges may
    have fallen); empty if the guest never got so far."""
    before, after = (_counters(ext4.read_file(image, f"/{name}") or b"") for name in ("before", "after"))
    return {name: value - before.get(name, 0) for name, value in after.items()}


def _counters(text: bytes) -> dict[str, int]:
    lines = (line.split() for line in text.decode(errors="replace").splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal()}
