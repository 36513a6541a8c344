# SPDX-License-Identifier: Apache-2.0
"""SIGINT, SIGTERM and SIGHUP end the laboratory with all that it has started, directly or not: simulators, builds with their
compilers, worker processes.

The handler raises in the main thread, where `with` and `finally` put things in order (half-made parts of the cache, work
folders, locks). Meanwhile another thread ends the processes, which other threads may be waiting for.
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
"""For processes that put things in order after SIGTERM; a second signal ends it."""
_AFTERWARDS_SECONDS = 1.0
"""For those that are left when all is in order."""
_GIVE_UP_SECONDS = 10.0
"""After all is in order, or after a second signal, this process ends whatever its threads wait for. Putting things in order may
take longer: a kernel's sources are many files."""
_SAY_SECONDS = 3.0
_PR_SET_CHILD_SUBREAPER = 36


def started() -> list[int]:
    """All living descendants of this process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue  # it has just ended
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
    """The end of the laboratory, once a signal has come."""

    def __init__(self) -> None:
        self.number = 0
        """The signal that came; 0: none yet."""
        self.kill_at = float("inf")
        """When processes that are still there are killed."""
        self.give_up_at = float("inf")
        self._read, self._write = os.pipe()
        self._asked: set[int] = set()
        threading.Thread(target=self._watch, daemon=True).start()

    def handle(self, number: int, _: object) -> None:
        """Begin the end; a second signal hastens it and breaks into nothing."""
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
                os.write(2, b"trapless: removing what is half made (once more leaves it)\n")
            time.sleep(0.1)
        os._exit(128 + self.number)

    def _sweep(self) -> bool:
        """Ask each process to end, once, or kill it if it is late. Are there any?"""
        there = started()
        late = time.monotonic() > self.kill_at
        _send(signal.SIGKILL if late else signal.SIGTERM, [each for each in there if late or each not in self._asked])
        self._asked.update(there)
        return bool(there)

    def finish(self) -> None:
        """Leave nothing running behind."""
        if self.number:
            self.kill_at = min(self.kill_at, time.monotonic() + _AFTERWARDS_SECONDS)
            self.give_up_at = min(self.give_up_at, time.monotonic() + _GIVE_UP_SECONDS)
            while self._sweep():
                time.sleep(0.05)


_ending: _Ending | None = None


def listen() -> None:
    """From now on these signals end the laboratory and all that it has started, with status 128 and the signal's number. One
    that is ignored (nohup) stays so."""
    global _ending
    # Processes whose parent has ended become ours, not init's, so that they are found.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _ending = _Ending()

    def ignored(what: sys.UnraisableHookArgs) -> None:
        """Where Python can raise nothing, as in a finalizer, the signal would be lost: it comes again a moment later."""
        if what.exc_type in (SystemExit, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        else:
            sys.__unraisablehook__(what)

    sys.unraisablehook = ignored
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _ending.handle)


def finish() -> None:
    """After all has been put in order: end what is still running, if a signal has come."""
    if _ending:
        _ending.finish()
