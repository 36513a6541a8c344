# SPDX-License-Identifier: Apache-2.0
"""A cache of built things, found by a hash of the content that they are made from.

A cached thing is a folder. It is built under a temporary name and renamed when it is complete, so an interrupted or failed build
never counts. A lock file prevents two builds of the same thing at once.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from trapless.base import process
from trapless.base.paths import CACHE
from trapless.base.ui import UserError, say, step

_CHUNK = 1 << 20
_PARTIAL = ".partial-"
"""Prefix of the folder's name during the build."""
_POLL_SECONDS = 0.2


def content_key(*parts: str | bytes | Path) -> str:
    """Return a short hex key of texts, bytes, and the names and contents of files and folders."""
    digest = hashlib.sha256()
    for part in parts:
        for data in _contents(part):
            if isinstance(data, bytes):
                digest.update(len(data).to_bytes(8, "little"))
                digest.update(data)
            else:
                digest.update(data.stat().st_size.to_bytes(8, "little"))
                with open(data, "rb") as file:
                    while chunk := file.read(_CHUNK):
                        digest.update(chunk)
    return digest.hexdigest()[:16]


def _contents(part: str | bytes | Path) -> Iterator[bytes | Path]:
    """Yield everything that the key depends on: names and texts, and paths of files, because files may be large."""
    if isinstance(part, str):
        yield part.encode()
    elif isinstance(part, bytes):
        yield part
    elif part.is_dir():
        for path in sorted(part.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(part)).encode()
                yield path
    else:
        yield part.name.encode()
        yield part


def file_key(path: Path) -> str:
    """Return the key of a file's or folder's content. A file's key is computed once, until its size or time changes."""
    found = path.stat()
    return content_key(path) if path.is_dir() else _file_key(path, found.st_size, found.st_mtime_ns)


def tree_key(folder: Path) -> str:
    """Return the key of a copied folder as a guest sees it: the folder's name, and for each entry its path, its type (folder,
    link with its target, program, other file) and its content."""
    parts: list[str | Path] = [Path(os.path.abspath(folder)).name]
    for path in sorted(folder.rglob("*")):
        parts.append(str(path.relative_to(folder)))
        if path.is_symlink():
            parts += ["link", os.readlink(path)]
        elif path.is_dir():
            parts.append("folder")
        elif path.is_file():
            parts += ["program" if path.stat().st_mode & 0o111 else "file", path]
    return content_key(*parts)


@cache
def _file_key(path: Path, size: int, changed_ns: int) -> str:
    del size, changed_ns
    return content_key(path)


def hold(lock: IO | int, wait: bool = True) -> bool:
    """Take an open file's lock. The lock ends when the file is closed or its process ends. Returns False if another process has
    the lock and `wait` is False."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock with this name. Prints a message if another process has it."""
    folder = CACHE / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w") as lock:
        if not hold(lock, wait=False):
            say(f"waiting for another trapless process, which builds {name}")
            while not hold(lock, wait=False):
                process.go_on()
                time.sleep(_POLL_SECONDS)
        yield


_WORK = "run-"
_SETTLED_SECONDS = 60
"""A work folder without a lock that is at least this old, in seconds, was left by a killed process."""


@contextmanager
def workspace() -> Iterator[Path]:
    """Make a folder for one run and remove it afterwards. It is on the cache's disk, because job disks can be large. Also removes
    the folders that killed runs left."""
    base = CACHE / "runs"
    try:
        base.mkdir(parents=True, exist_ok=True)
        for leftover in base.glob(f"{_WORK}*"):
            _remove_left_over(leftover)
        folder = Path(tempfile.mkdtemp(prefix=_WORK, dir=base))
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise disk_error(error, base) from error
    try:
        hold(lock)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_left_over(folder: Path) -> None:
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # the run that owned the folder has just ended
    try:
        if time.time() - os.fstat(lock).st_mtime > _SETTLED_SECONDS and hold(lock, wait=False):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


MIB, GIB = 1 << 20, 1 << 30
SMALL = 64 * MIB
"""Bytes of free disk that a build needs if it gives no other number."""


def check_room(need: int, place: Path, what: str) -> None:
    """Raise UserError with advice if the disk of `place` has less than `need` bytes free. `place` need not exist yet."""
    there = next(folder for folder in (place, *place.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(there).free
    if free < need:
        help_ = ("set TRAPLESS_CACHE=FOLDER to use another disk" if place.is_relative_to(CACHE)
                 else "name a folder on another disk")
        raise UserError(f"{what}: needs {_size(need)} in {place}, where only {_size(free)} are free ({help_})")


def _size(count: int) -> str:
    return f"{count / GIB:,.1f} GiB" if count >= GIB else f"{count // MIB} MiB"


def room_for(kind: str, key: str, need: int) -> int:
    """Return how many bytes this build needs: 0 if it is in the cache already."""
    return 0 if (CACHE / kind / key).is_dir() else need


def cached(kind: str, key: str, title: str, builder: Callable[[Path], None], need: int = SMALL) -> Path:
    """Return the folder of `kind` with this key. If it does not exist yet, it is built by `builder(folder)`, provided that the
    disk has the `need` bytes that the build takes. A sparse file counts with the size that it will have on the disk."""
    final = CACHE / kind / key
    if final.is_dir():
        return final
    with locked(f"{kind}-{key}"):
        if final.is_dir():
            return final
        check_room(need, CACHE, title)
        partial = CACHE / kind / f"{_PARTIAL}{key}"
        for leftover in (CACHE / kind).glob(f"{partial.name}*"):
            remove_tree(leftover)
        try:
            partial.mkdir(parents=True)
            with step(title):
                builder(partial)
            partial.rename(final)
        except OSError as error:
            raise disk_error(error, CACHE) from error
        finally:
            # A build that was killed may leave files beside its folder.
            for leftover in (CACHE / kind).glob(f"{partial.name}*"):
                remove_tree(leftover)
    return final


def remove_tree(path: Path) -> None:
    """Remove a folder, also if it does not exist or has files of another user in it."""
    if path.exists():
        shutil.rmtree(path, ignore_errors=True)
        if path.exists() and (os.geteuid() == 0 or shutil.which("sudo")):
            subprocess.run([*as_root("rm"), "rm", "-rf", "--", str(path)], check=False)


def as_root(what: str) -> list[str]:
    """Return the words that make a command run as root. If that is not possible, UserError names `what`."""
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        raise UserError(f"{what}: needs root, and there is no sudo")
    # sudo would drop APT_CONFIG, which tells apt to take its packages from a bundle.
    return ["sudo", "env", f"APT_CONFIG={os.environ['APT_CONFIG']}"] if "APT_CONFIG" in os.environ else ["sudo"]


def disk_error(error: OSError, place: Path) -> UserError:
    """Make a one-line error for a failure to write to `place`."""
    name = error.filename or place
    if error.errno == errno.ENOSPC:
        return UserError(f"disk full while writing {name}")
    return UserError(f"cannot write {name}: {error.strerror}")


_NAMED = re.compile(r"^(E|ERROR): |(^|[\s:])(fatal )?error(\[\w+\])?: ")
_MENTIONED = re.compile("error", re.IGNORECASE)


def why(lines: list[str], cause: str | None = None) -> str:
    """Return from a tool's output why it failed: the first line with an error (or the first that matches `cause`), because later
    errors follow from it; if there is none, the last line."""
    if any("No space left on device" in line for line in lines):
        return "disk full"
    named = next((line for line in lines if _NAMED.search(line) or cause and re.search(cause, line)), None)
    said = named or next((line for line in reversed(lines) if _MENTIONED.search(line)), None)
    return (said or next((line for line in reversed(lines) if line.strip()), "")).strip()


@contextmanager
def own_log(name: str) -> Iterator[Path]:
    """Yield a log for tools that may run in several threads and processes at a time. It is removed unless a tool fails."""
    log = CACHE / "logs" / f"{name}-{os.getpid()}-{threading.get_native_id()}.log"
    yield log
    log.unlink(missing_ok=True)


def run_tool(command: Iterable[str | Path], log: Path, what: str, env: dict[str, str] | None = None,
             cwd: Path | None = None, show: str | None = None, cause: str | None = None) -> None:
    """Run a build tool with its output in `log`; lines that match the pattern `show` are passed on as progress.

    If the tool fails, UserError has one line with the reason (as in `why`) and the log's name.
    """
    process.go_on()
    command = [str(part) for part in command]
    lines: list[str] = []
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "w", buffering=1) as out, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
            env=os.environ | (env or {}), cwd=cwd,
            # The tool gets a process group, so that all of its processes can be ended. sudo gets none: it may have to ask at the
            # terminal.
            process_group=None if command[0] == "sudo" else 0,
        ) as tool:
            assert tool.stdout is not None
            try:
                for line in tool.stdout:
                    out.write(line)
                    if line.strip():
                        lines.append(line.strip())
                    if show and re.search(show, line):
                        # Show the final name of the folder: it no longer has the temporary one when the user looks for it.
                        say(line.strip().replace(f"/{_PARTIAL}", "/"))
            except BaseException:
                if command[0] != "sudo":
                    os.killpg(tool.pid, signal.SIGTERM)
                raise
            status = tool.wait()
    except FileNotFoundError:
        raise UserError(f"{what}: {command[0]} not found (./trapless setup installs it)") from None
    except OSError as error:
        raise disk_error(error, log) from error
    if status:
        reason = why(lines, cause) or f"status {status}"
        raise UserError(f"{what} failed: {reason} (whole log: {log})")
