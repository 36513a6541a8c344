# SPDX-License-Identifier: Apache-2.0
"""The process of a simulator: start, console and end. It never outlives the thread that started it."""

from __future__ import annotations

import codecs
import os
import re
import select
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

from trapless.base.ui import UserError

# The kernel kills a simulator when the thread that started it ends: nobody would read its results.
_END_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
_running: set[subprocess.Popen] = set()
_closed = threading.Event()
_mine = threading.local()
"""`ended`: the event after which this thread must start no simulators."""
_starting = threading.RLock()
"""Held during the start of a simulator, so that `close` misses none. Reentrant, because the signal handler calls `close` and may
interrupt a start."""
_MOST_CONSOLE = 64 << 20
"""Maximum number of bytes that are kept of the console's output: the last ones. A guest may print for ever."""
_LAST_BYTES_SECONDS = 5
"""How long a simulator may be silent after SIGTERM, and then how long reading the rest of its console may take."""
_LAST_WORDS_SECONDS = 60
"""How long a simulator may print after SIGTERM."""
_STEP_SECONDS = 0.05


@dataclass
class Ended:
    """Result of a process that ended."""

    status: int
    console: str
    messages: str
    """Messages of the simulator itself."""
    host_seconds: float


class TooLong(UserError):
    """Raised if a simulator exceeds its limit of host seconds."""


def run(command: list[str], show: bool = False, interactive: bool = False, limit: float | None = None,
        returns: int = 1, log: Path | None = None) -> Ended:
    """Run a simulator and capture its console; `show` also passes the console through. After `limit` host seconds the simulator
    is killed. At the end of a line, at most `returns` carriage returns are removed, because no program wrote them. The
    simulator's own messages can be read from `log` during the run."""
    if shutil.which(command[0]) is None:
        raise UserError(f"{command[0]} not found (./trapless setup installs it)")
    start = time.monotonic()
    with open(log, "w+b") if log else tempfile.TemporaryFile() as messages:
        pipes = {} if interactive else {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": messages}
        with _starting:
            go_on()
            process = subprocess.Popen([*_END_WITH_US, *command], **pipes)
            _running.add(process)
        late = threading.Event()
        watch = threading.Timer(limit, lambda: (late.set(), process.kill())) if limit else None
        console = _Console(process, show, returns)
        try:
            if watch:
                watch.start()
            console.join()
            status = process.wait()
            console.check()
        except BaseException:
            # Ctrl-C reaches the simulator as well, other signals do not. Output up to its end is still shown.
            process.terminate()
            if not console.patience(lambda: process.poll() is not None):
                process.kill()
                process.wait()
            console.patience(console.ended)
            raise
        finally:
            if watch:
                watch.cancel()
            _running.discard(process)
        messages.seek(0)
        said = messages.read().decode(errors="replace")
    if late.is_set():
        raise TooLong(f"{Path(command[0]).name} did not end within {limit:g} host seconds")
    return Ended(status, console.text(), said, time.monotonic() - start)


def go_on() -> None:
    """Raise UserError if this thread must not start another simulator."""
    if _closed.is_set() or getattr(_mine, "ended", _closed).is_set():
        raise UserError("stopped, because trapless is ending")


def belong_to(ended: threading.Event) -> None:
    """Let this thread start no more simulators once `ended` is set."""
    _mine.ended = ended


def end_all(ended: threading.Event) -> None:
    """End the simulators of all threads, and let threads that belong to `ended` start no others. Other threads may start new
    ones: a notebook continues after Ctrl-C."""
    with _starting:
        ended.set()
        for process in list(_running):
            process.terminate()


def close() -> None:
    """End the simulators of all threads, and start no others."""
    end_all(_closed)


class _Console:
    """Reads a simulator's console in a thread, if the console is a pipe. In a thread, Ctrl-C cannot come between reading a byte
    and storing it."""

    def __init__(self, process: subprocess.Popen, show: bool, returns: int) -> None:
        self._process, self._show = process, show
        self._filter = ConsoleFilter(returns)
        self._parts: deque[bytes] = deque()
        self._length = self._heard = 0
        self._trouble: Exception | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._thread = threading.Thread(target=self._pump, daemon=True)
        if process.stdout is not None:
            self._thread.start()

    def join(self) -> None:
        """Wait for the end of the console."""
        if self._thread.ident is not None:
            self._thread.join()

    def ended(self) -> bool:
        """Whether the console has ended."""
        return not self._thread.is_alive()

    def patience(self, done: Callable[[], bool]) -> bool:
        """Wait until `done()`, as long as the simulator still prints; return `done()`. The limit counts short waits instead of
        clock time, so that a busy host does not shorten it."""
        quiet, heard = 0.0, -1
        for _ in range(round(_LAST_WORDS_SECONDS / _STEP_SECONDS)):
            if done():
                return True
            quiet = quiet + _STEP_SECONDS if heard == self._heard else 0.0
            if quiet > _LAST_BYTES_SECONDS:
                break
            heard = self._heard
            time.sleep(_STEP_SECONDS)
        return done()

    def check(self) -> None:
        """Raise the error that stopped the reading thread, if there was one."""
        if self._trouble is not None:
            raise self._trouble

    def text(self) -> str:
        """Return the console's text: the last part, if it was too long."""
        return b"".join(self._parts).decode(errors="replace")

    def _pump(self) -> None:
        assert self._process.stdout is not None
        try:
            with self._process.stdout as stdout:
                while data := stdout.read1(65536):
                    self._add(self._filter.feed(data))
            self._add(self._filter.rest(powered_off=self._process.wait() == 0))
        except Exception as trouble:
            self._trouble = trouble
            self._process.terminate()

    def _add(self, part: bytes) -> None:
        self._parts.append(part)
        self._length += len(part)
        self._heard += len(part)
        while self._length > _MOST_CONSOLE:
            self._length -= len(self._parts.popleft())
        if self._show:
            self._write(part)

    def _write(self, data: bytes) -> None:
        """Write all bytes unchanged to standard output, even if standard output is in non-blocking mode."""
        sys.stdout.flush()
        try:
            out = sys.stdout.buffer.fileno()
        except (AttributeError, OSError):
            # The standard output of a notebook takes only text.
            sys.stdout.write(self._decoder.decode(data))
            sys.stdout.flush()
            return
        while data:
            try:
                data = data[os.write(out, data):]
            except BlockingIOError:
                select.select([], [out], [])


class ConsoleFilter:
    """Removes from a console stream what no program wrote: the terminal's carriage return at the end of each line, and the
    kernel's power-off message (with or without time stamp) at the end of the stream."""

    _FAREWELL = re.compile(rb"(\[ *\d+\.\d+\] )?reboot: Power down\n\Z")
    _MOST_FAREWELL = 64
    """Maximum number of bytes that are held back."""
    _MAYBE = re.compile(rb"(\[[ \d.]{0,20}(\] ?)?)?(%s)?\r*\Z" % b"|".join(
        re.escape(b"reboot: Power down\n"[:length]) for length in range(19, 0, -1)))

    def __init__(self, returns: int = 1) -> None:
        """Begin a stream. At most `returns` carriage returns are removed at the end of a line."""
        self._returns = re.compile(rb"\r{1,%d}\n" % returns)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the stream, and return what can be shown now."""
        data = self._returns.sub(b"\n", self._held + data)
        hold = self._MAYBE.search(data, max(0, len(data) - self._MOST_FAREWELL))
        cut = hold.start() if hold else len(data)
        self._held = data[cut:]
        return data[:cut]

    def rest(self, powered_off: bool) -> bytes:
        """Return what was held back when the stream ended. The power-off message is removed if the guest `powered_off`."""
        rest, self._held = self._held, b""
        return self._FAREWELL.sub(b"", rest) if powered_off else rest
