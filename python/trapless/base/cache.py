# SPDX-License-Identifier: Apache-2.0
"""Built things, kept by the content they are made from.

A thing is a folder. It is built under a temporary name and renamed when whole, so what an interrupted or failed build
leaves behind never counts; a lock file keeps two builds of one thing apart.
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
"""What the name of a folder begins with while it is built."""
_POLL_SECONDS = 0.2


def content_key(*parts: str | bytes | Path) -> str:
    """A short hex key of texts, bytes and the contents (and names) of files and folders."""
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
    """What counts: names and texts, and files, which may be large."""
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
    """The key of a file's or folder's content; of a file that has not changed since, from memory."""
    found = path.stat()
    return content_key(path) if path.is_dir() else _file_key(path, found.st_size, found.st_mtime_ns)


def tree_key(folder: Path) -> str:
    """The key of a folder as a guest meets a copy of it: its name, and of each entry the path, what it is (a folder, a link and
    its target, a file that may run or not), and the content."""
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
    """Take an open file's lock, which ends with the file or with its process; False if another has it and one is not to wait."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of this name; says so if another process has it."""
    folder = CACHE / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w") as lock:
        if not hold(lock, wait=False):
            say(f"waiting for another trapless that builds {name}")
            while not hold(lock, wait=False):
                process.go_on()
                time.sleep(_POLL_SECONDS)
        yield


_WORK = "run-"
_SETTLED_SECONDS = 60
"""A work folder of this age has its lock, or whoever made it was killed."""


@contextmanager
def workspace() -> Iterator[Path]:
    """A folder for one run, removed afterwards; on the cache's disk, because job disks can be large. What killed runs have left
    is removed as well."""
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
        return  # its run has just ended
    try:
        if time.time() - os.fstat(lock).st_mtime > _SETTLED_SECONDS and hold(lock, wait=False):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


MIB, GIB = 1 << 20, 1 << 30
SMALL = 64 * MIB
"""What things that say nothing else take at most while they are built."""


def check_room(need: int, place: Path, what: str) -> None:
    """UserError, which says what to do, if the disk of `place` (which need not exist yet) has less than `need` bytes free."""
    there = next(folder for folder in (place, *place.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(there).free
    if free < need:
        help_ = "TRAPLESS_CACHE=FOLDER takes another disk" if place.is_relative_to(CACHE) else "name a folder on another disk"
        raise UserError(f"{what}: needs {_size(need)} in {place}, where {_size(free)} are free ({help_})")


def _size(count: int) -> str:
    return f"{count / GIB:,.1f} GiB" if count >= GIB else f"{count // MIB} MiB"


def room_for(kind: str, key: str, need: int) -> int:
    """Bytes that building this takes: none if it is there."""
    return 0 if (CACHE / kind / key).is_dir() else need


def cached(kind: str, key: str, title: str, builder: Callable[[Path], None], need: int = SMALL) -> Path:
    """The folder of `kind` with this key; built by `builder(folder)` if it is not there yet, and if the disk has `need` bytes for
    all that this takes meanwhile. What is sparse counts by what it will use."""
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
            # A build that had to be killed leaves its own work beside it.
            for leftover in (CACHE / kind).glob(f"{partial.name}*"):
                remove_tree(leftover)
    return final


def remove_tree(path: Path) -> None:
    """Remove a folder that may not be there, or that has files of another user in it."""
    if path.exists():
        shutil.rmtree(path, ignore_errors=True)
        if path.exists() and (os.geteuid() == 0 or shutil.which("sudo")):
            subprocess.run([*as_root("rm"), "rm", "-rf", "--", str(path)], check=False)


def as_root(what: str) -> list[str]:
    """The prefix that makes a command run as root; UserError, which says for what, if there is none."""
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        raise UserError(f"{what}: needs root, and there is no sudo")
    # sudo would drop it: with it, apt takes its packages from a bundle.
    return ["sudo", "env", f"APT_CONFIG={os.environ['APT_CONFIG']}"] if "APT_CONFIG" in os.environ else ["sudo"]


def disk_error(error: OSError, place: Path) -> UserError:
    """One line for a failure to write to `place`."""
    name = error.filename or place
    if error.errno == errno.ENOSPC:
        return UserError(f"disk full while writing {name}")
    return UserError(f"cannot write {name}: {error.strerror}")


_NAMED = re.compile(r"^(E|ERROR): |(^|[\s:])(fatal )?error(\[\w+\])?: ")
_MENTIONED = re.compile("error", re.IGNORECASE)


def why(lines: list[str], cause: str | None = None) -> str:
    """Why a tool failed, by what it said: its first complaint (or line that matches `cause`), for what comes after follows from
    it; else its last line."""
    if any("No space left on device" in line for line in lines):
        return "disk full"
    named = next((line for line in lines if _NAMED.search(line) or cause and re.search(cause, line)), None)
    said = named or next((line for line in reversed(lines) if _MENTIONED.search(line)), None)
    return (said or next((line for line in reversed(lines) if line.strip()), "")).strip()


def run_tool(command: Iterable[str | Path], log: Path, what: str, env: dict[str, str] | None = None,
             cwd: Path | None = None, show: str | None = None, cause: str | None = None) -> None:
    """Run a build tool with its output in `log`; lines that match the pattern `show` are passed on as progress.

    A failure is one line with the tool's last word (of lines that match `cause` the first) and the log's name.
    """
    process.go_on()
    command = [str(part) for part in command]
    lines: list[str] = []
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "w", buffering=1) as out, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
            env=os.environ | (env or {}), cwd=cwd,
            # A separate group, so that all of it can be ended; but sudo may have to ask at the terminal.
            process_group=None if command[0] == "sudo" else 0,
        ) as tool:
            assert tool.stdout is not None
            try:
                for line in tool.stdout:
                    out.write(line)
                    if line.strip():
                        lines.append(line.strip())
                    if show and re.search(show, line):
                        # The name that the folder has when whoever reads this looks for it.
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
