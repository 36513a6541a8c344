# SPDX-License-Identifier: Apache-2.0
"""Copies files out of ext4 images: all of them, or an error."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from trapless.base.cache import disk_error
from trapless.base.ui import UserError

_VERSION = re.compile(r"debugfs \d")
_HARMLESS = re.compile(r"while (changing ownership|setting permissions|setting times) of ")
"""Complaints of debugfs that do no harm: the guest's files belong to root, and an ordinary user cannot make such files on the
host. Their contents are copied."""
_NO_FOLDER = "File not found by ext2_lookup"


def tree(image: Path, path: str, into: Path) -> None:
    """Copy the content of the folder `path` of an image into the host folder `into`. Files of the same names are replaced. If
    something cannot be copied, UserError is raised, and the files in `into` stay as they were."""
    try:
        into.mkdir(parents=True, exist_ok=True)
        # Copy into a new folder first: older files could stop debugfs, or be taken for copies.
        with tempfile.TemporaryDirectory(prefix=".copy-", dir=into, ignore_cleanup_errors=True) as fresh:
            names = _names(image, path)
            for name in names:
                _copy(image, path, name, Path(fresh), into)
            for name in names:
                _move(Path(fresh, name), into / name)
    except OSError as error:
        raise disk_error(error, into) from error


def _names(image: Path, path: str) -> list[str]:
    """Return the names in a folder of an image; none if there is no such folder. `ls -p` prints
    /inode/mode/uid/gid/name/size/."""
    said, complaints = _debugfs(image, f"ls -p {path}")
    if complaints and _NO_FOLDER not in complaints[0]:
        raise UserError(f"cannot read {path} of the guest's disk {image.name}: {complaints[0]}")
    names = []
    for line in said.splitlines():
        fields = line.split("/")
        if len(fields) >= 7 and fields[5] not in (".", "..", "") and fields[1] != "0":
            names.append(fields[5])
    return names


def _copy(image: Path, path: str, name: str, fresh: Path, into: Path) -> None:
    """Copy one file or folder into the folder `fresh`. debugfs always ends with status 0, but prints complaints."""
    if "\n" in name or '"' in name:
        raise UserError(f"{path}/{name!r}: a name that cannot be copied out of the guest")
    _, complaints = _debugfs(image, f'rdump "{path}/{name}" .', fresh)
    if not complaints and not os.path.lexists(fresh / name):
        complaints = ["debugfs wrote nothing"]
    if complaints:
        raise UserError(f"cannot copy {name} out of the guest into {into}: {complaints[0]}")


def _debugfs(image: Path, request: str, folder: Path | None = None) -> tuple[str, list[str]]:
    """Run a request of debugfs in a folder of the host. Return its output and its error messages."""
    done = subprocess.run(["debugfs", "-R", request, str(image.absolute())], capture_output=True, text=True, errors="replace",
                          check=False, cwd=folder)
    complaints = [line.strip() for line in done.stderr.splitlines() if line.strip() and not _VERSION.match(line)]
    if done.returncode < 0:
        complaints.append(f"debugfs was killed by signal {-done.returncode}")
    return done.stdout, [line.removeprefix("rdump: ") for line in complaints if not _HARMLESS.search(line)]


def _move(source: Path, target: Path) -> None:
    """Move a file, or move a folder's content into a folder of the same name."""
    if source.is_symlink() or not source.is_dir():
        source.replace(target)
        return
    source.chmod(source.stat().st_mode | 0o700)  # otherwise its owner could not move it
    if not target.is_dir():
        source.replace(target)
        return
    for entry in list(source.iterdir()):
        _move(entry, target / entry.name)
