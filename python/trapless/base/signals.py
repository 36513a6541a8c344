# SPDX-License-Identifier: Apache-2.0
"""On SIGINT, SIGTERM and SIGHUP, ends this process and all its descendants: simulators, builds with their compilers, worker
processes.

The handler raises in the main thread, where `with` and `finally` clean up: incomplete parts of the cache, work folders, locks.
Meanwhile another thread ends the processes that threads of this process may be waiting for.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from trapless.base import process

_PATIENCE_SECONDS = 10.0
"""How long a process may clean up after SIGTERM. A second signal ends this time."""
_AFTERWARDS_SECONDS = 1.0
"""How long processes may take that are still there after this process has cleaned up."""
_GIVE_UP_SECONDS = 10.0
"""How long after cleaning up, or after a second signal, this process ends even if its threads still wait. Cleaning up may take
longer: the sources of a kernel are many files."""
_SAY_SECONDS = 3.0
_PR_SET_CHILD_SUBREAPER = 36


def started() -> list[int]:
    """Return the ids of all living descendants of this process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue  # the process has just ended
            if state not in "ZX":
                parents[int(entry.name)] = int(parent)
    found: list[int] = []
    level = {os.getpid()}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found += level
    return found


def _send(number: int, processes: Iterable[int]) -> None:
    refused = []
    for each in processes:
        try:
            os.kill(each, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            refused.append(str(each))
    if refused and shutil.which("sudo"):
        subprocess.run(["sudo", "-n", "kill", f"-{number}", *refused], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)


class _Ending:
    """Ends this process and its descendants after a signal."""

    def __init__(self) -> None:
        self.number = 0
        """The signal that came, or 0."""
        self.kill_at = float("inf")
        """Time from which processes that still run are killed."""
        self.give_up_at = float("inf")
        self._read, self._write = os.pipe()
        self._asked: set[int] = set()
        threading.Thread(target=self._watch, daemon=True).start()

    def handle(self, number: int, _: object) -> None:
        """Handle a signal: the first one starts the end, a second one hastens it. The second one never interrupts cleaning up."""
        if self.number:
            if number == signal.SIGALRM:
                self._raise()
            self.kill_at = 0
            self.give_up_at = time.monotonic() + _GIVE_UP_SECONDS
            return
        self.number, self.kill_at = number, time.monotonic() + _PATIENCE_SECONDS
        process.close()
        os.write(self._write, b"x")
        self._raise()

    def _raise(self) -> None:
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + self.number)

    def _watch(self) -> None:
        os.read(self._read, 1)
        say_at = time.monotonic() + _SAY_SECONDS
        while time.monotonic() < self.give_up_at:
            self._sweep()
            if time.monotonic() > say_at:
                say_at = float("inf")
                os.write(2, b"trapless: removing incomplete files (a second signal leaves them)\n")
            time.sleep(0.1)
        os._exit(128 + self.number)

    def _sweep(self) -> bool:
        """Send each process SIGTERM once, or SIGKILL if time is up. Return whether any process is left."""
        there = started()
        late = time.monotonic() > self.kill_at
        _send(signal.SIGKILL if late else signal.SIGTERM, [each for each in there if late or each not in self._asked])
        self._asked.update(there)
        return bool(there)

    def finish(self) -> None:
        """End all processes that are left."""
        if self.number:
            self.kill_at = min(self.kill_at, time.monotonic() + _AFTERWARDS_SECONDS)
            self.give_up_at = min(self.give_up_at, time.monotonic() + _GIVE_UP_SECONDS)
            while self._sweep():
                time.sleep(0.05)


_ending: _Ending | None = None


def listen() -> None:
    """Let these signals end this process and all its descendants, with status 128 plus the signal's number. A signal that is
    ignored (nohup) stays ignored."""
    global _ending
    # Orphans among our descendants become our children, not init's, so that we find them.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _ending = _Ending()

    def ignored(what: sys.UnraisableHookArgs) -> None:
        """Python cannot raise in some places, such as a finalizer, and would lose the signal. Send it again a moment later."""
        if what.exc_type in (SystemExit, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        else:
            sys.__unraisablehook__(what)

    sys.unraisablehook = ignored
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _ending.handle)


def finish() -> None:
    """After cleaning up: end all processes that are left, if a signal came."""
    if _ending:
        _ending.finish()
