# SPDX-License-Identifier: Apache-2.0
"""A simulator's process: what its console shows, and its end, whoever else ends."""

from __future__ import annotations

import codecs
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.ui import UserError

# A simulator whose laboratory is killed would go on for nobody. What the thread that started it leaves behind is killed, too.
_END_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
_running: set[subprocess.Popen] = set()
_closed = threading.Event()
_mine = threading.local()
"""`ended`: what this thread belongs to."""
_starting = threading.RLock()
"""Held where one starts, so that none starts behind `close`'s back; its handler of signals may run in the midst of that."""
_MOST_CONSOLE = 64 << 20
"""Characters of the console that are kept, the last ones: a guest may print for ever."""


@dataclass
class Ended:
    """What a process left."""

    status: int
    console: str
    messages: str
    """What the simulator itself said."""
    host_seconds: float


class TooLong(UserError):
    """It took longer on the host than it may."""


def run(command: list[str], show: bool = False, interactive: bool = False, limit: float | None = None) -> Ended:
    """Run a simulator; capture its console, or (`show`) pass it through as well. It is killed after `limit` host seconds."""
    if shutil.which(command[0]) is None:
        raise UserError(f"{command[0]} not found (./trapless setup installs it)")
    start = time.monotonic()
    captured = _Captured()
    with tempfile.TemporaryFile() as messages:
        pipes = {} if interactive else {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": messages}
        with _starting:
            go_on()
            process = subprocess.Popen([*_END_WITH_US, *command], **pipes)
            _running.add(process)
        late = threading.Event()
        watch = threading.Timer(limit, lambda: (late.set(), process.kill())) if limit else None
        try:
            if watch:
                watch.start()
            if not interactive:
                _pump(process, _both(captured) if show else captured.add)
            status = process.wait()
        except BaseException:
            # Ctrl-C reached the simulator as well; other ends did not.
            process.terminate()
            process.wait()
            raise
        finally:
            if watch:
                watch.cancel()
            _running.discard(process)
        messages.seek(0)
        said = messages.read().decode(errors="replace")
    if late.is_set():
        raise TooLong(f"{Path(command[0]).name} did not end in {limit:g} s of the host")
    return Ended(status, captured.text(), said, time.monotonic() - start)


def go_on() -> None:
    """UserError if this thread is to begin nothing any more."""
    if _closed.is_set() or getattr(_mine, "ended", _closed).is_set():
        raise UserError("the laboratory ends")


def belong_to(ended: threading.Event) -> None:
    """Once this is set, no simulator begins in this thread any more."""
    _mine.ended = ended


def end_all(ended: threading.Event) -> None:
    """End the simulators that other threads wait for; in those that belong to `ended` none begins any more. Others are free to
    begin some: a notebook goes on after Ctrl-C."""
    with _starting:
        ended.set()
        for process in list(_running):
            process.terminate()


def close() -> None:
    """The same for all threads."""
    end_all(_closed)


class _Captured:
    """The end of a text that comes in parts."""

    def __init__(self) -> None:
        self._parts: deque[str] = deque()
        self._length = 0

    def add(self, part: str) -> None:
        self._parts.append(part)
        self._length += len(part)
        while self._length > _MOST_CONSOLE:
            self._length -= len(self._parts.popleft())

    def text(self) -> str:
        return "".join(self._parts)


def _both(captured: _Captured) -> Callable[[str], None]:
    def emit(text: str) -> None:
        captured.add(text)
        sys.stdout.write(text)
        sys.stdout.flush()

    return emit


def _pump(process: subprocess.Popen, emit: Callable[[str], None]) -> None:
    """Copy the console to `emit` as it comes."""
    assert process.stdout is not None
    # A character may come in two parts.
    fresh, decoder = ConsoleFilter(), codecs.getincrementaldecoder("utf-8")(errors="replace")
    with process.stdout as stdout:
        while data := stdout.read1(65536):
            emit(fresh.feed(decoder.decode(data)))
    emit(fresh.feed(decoder.decode(b"", final=True)) + fresh.rest())


class ConsoleFilter:
    """Takes carriage returns and the kernel's own word of farewell out of a console stream."""

    # With or without the kernel's time stamp.
    _FAREWELL = re.compile(r"^(\[ *\d+\.\d+\] )?reboot: Power down\n", re.MULTILINE)
    _MAYBE = re.compile(r"^(\[[ \d.]{0,20}(\] ?)?)?(r|re|reb|rebo|reboo|reboot|reboot:[^\n]{0,20})?\Z", re.MULTILINE)

    def __init__(self) -> None:
        """Start with nothing held back, at the start of a line."""
        self._held = ""
        self._inside = False

    def feed(self, text: str) -> str:
        """What can be shown now of the stream so far."""
        # A mark stands for what was shown of an unfinished line, so that the patterns do not match inside it.
        mark = "\0" if self._inside else ""
        text = self._FAREWELL.sub("", re.sub(r"\r+\n", "\n", mark + self._held + text))
        hold = self._MAYBE.search(text)
        cut = hold.start() if hold else len(text.rstrip("\r"))
        shown, self._held = text[len(mark):cut], text[cut:]
        if shown:
            self._inside = not shown.endswith("\n")
        return shown

    def rest(self) -> str:
        """What was held back when the stream ended."""
        rest, self._held = self._held, ""
        return rest
