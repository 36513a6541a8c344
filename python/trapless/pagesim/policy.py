# SPDX-License-Identifier: Apache-2.0
"""Runs a policy of the paging simulator that is written in Python (docs/how-to/add-a-policy-of-yours.md).

`trapless-pagesim` contains the text of this file, and runs `python3 -c TEXT FILE.py` for `policy = "python:FILE.py"`. Standard
input is a socket to the simulator, which asks one question at a time:

    question   op (1 byte), 3 unused bytes, process (4), page (8), time (8), another number (8)
    answer     kind (4 bytes: DONE, ASK, FAILED or BEGUN), number of orders (4), value (8); then the orders, 16 bytes each:
               op (1), origin (1), 2 unused bytes, process (4), page (8)

All numbers are little-endian. In an answer of kind ASK, the last order is the question, and the simulator answers with a question
in its usual form. In an answer of kind FAILED, text follows instead of orders; the number of orders is its length in bytes. The
first answer, of kind BEGUN, has the same form. Its value has a bit for each method of the policy, and its text is the policy's
order of replacement, if it has one.
"""

from __future__ import annotations

import os
import random
import struct
import sys
import tomllib
from bisect import bisect_right
from types import FrameType, TracebackType
from typing import NamedTuple

HOOKS = ("fault", "wait", "used", "evicted", "enter", "slice", "goes_on", "leave", "call")
"""Methods that a policy may have. The `op` of a question is the index of its method."""
SETTINGS, AREAS = 100, 101
DONE, ASK, FAILED, BEGUN = range(4)
PREFETCH, DEMOTE, KEEP, CALL_AT, PAGE, READY = range(6)
ORIGINS = ("demand", "neighbour", "set", "successor", "reconstruct")
PLACES = ("device", "reading", "resident", "writing")
MOST_ORDERS = 1 << 20
MOST_TEXT = 2000

_QUESTION = struct.Struct("<BxxxIQQq")
_ANSWER = struct.Struct("<IIq")
_ORDER = struct.Struct("<BBxxIQ")


class Wrong(Exception):
    """Says in one line what a policy does wrong."""


class Over(Exception):
    """The simulator has no more questions."""


class Page(NamedTuple):
    """The state of a page."""

    place: str
    """One of "device", "reading", "resident", "writing"."""
    arrives: int
    """Time at which the page arrives if it is being read, ps; otherwise 0."""
    accessed: bool
    dirty: bool
    origin: str
    """What caused its read: "demand", or the `origin` of the prefetch."""


class Core:
    """The simulated system as a policy sees it. Times are in ps, and pages are virtual page numbers."""

    def __init__(self, socket: int, settings: dict) -> None:
        """Begin without mapped ranges. The simulator sends them before its first question."""
        self.settings = settings
        """The whole configuration; `[own]` is for the policy's own values."""
        self.now = 0
        """The current time."""
        self._socket = socket
        self._orders: list[bytes] = []
        self._starts: list[list[int]] = []
        self._ends: list[list[int]] = []

    def mapped(self, pid: int, page: int) -> bool:
        """Return whether the process's address space has this page."""
        at = bisect_right(self._starts[pid], page) - 1
        return at >= 0 and page < self._ends[pid][at]

    def area(self, pid: int, page: int) -> tuple[int, int] | None:
        """Return the mapped range around a page: its first page, and its last page plus one; None if the page is not mapped."""
        at = bisect_right(self._starts[pid], page) - 1
        return (self._starts[pid][at], self._ends[pid][at]) if at >= 0 and page < self._ends[pid][at] else None

    def prefetch(self, pid: int, page: int, origin: str = "neighbour") -> None:
        """Begin to read a page if it is mapped, is out of memory, and a frame is available at once. Otherwise, do nothing."""
        self._order(PREFETCH, pid, page, ORIGINS.index(origin) if origin in ORIGINS[1:] else _refuse(
            f"prefetch: origin {origin!r} is not one of {', '.join(ORIGINS[1:])}"))

    def demote(self, pid: int, page: int) -> None:
        """Say that a page will not be used soon. If it is in memory, it is evicted before others."""
        self._order(DEMOTE, pid, page)

    def keep(self, pid: int, page: int) -> None:
        """Keep a page that is being written: it stays in its frame after the write. Do nothing for other pages."""
        self._order(KEEP, pid, page)

    def call_at(self, time: int) -> None:
        """Arrange a call of the method `call` at this time, which must be later than now."""
        if time <= self.now:
            _refuse(f"call_at: {time} ps is not later than now, {self.now} ps")
        self._order(CALL_AT, 0, time)

    def page(self, pid: int, page: int) -> Page:
        """Ask the simulator about a page. It takes the host as long as a call of `fault`. `mapped` and `area` are fast."""
        _, place, flags, _, arrives = self._ask(PAGE, pid, page)
        return Page(PLACES[place], arrives, bool(flags & 1), bool(flags & 2), ORIGINS[flags >> 2])

    def ready(self) -> tuple[int | None, int]:
        """Ask which process would run next (None: no process), and how many processes sleep. It takes the host as long as a
        call of `fault`."""
        _, asleep, following, _, _ = self._ask(READY, 0, 0)
        return (following - 1 if following else None), asleep

    def _order(self, op: int, pid: int, page: int, origin: int = 0) -> None:
        if len(self._orders) >= MOST_ORDERS:
            _refuse(f"more than {MOST_ORDERS} orders at once")
        try:
            self._orders.append(_ORDER.pack(op, origin, pid, page))
        except struct.error:
            _refuse(f"process {pid!r}, page or time {page!r}: both must be whole numbers, 0 or more")

    def _ask(self, op: int, pid: int, page: int) -> tuple:
        self._order(op, pid, page)
        self._answer(ASK, 0)
        return _QUESTION.unpack(_read(self._socket, _QUESTION.size))

    def _answer(self, kind: int, value: int) -> None:
        text = _ANSWER.pack(kind, len(self._orders), value) + b"".join(self._orders)
        self._orders.clear()
        _write(self._socket, text)


def _refuse(text: str) -> int:
    raise Wrong(text)


def _read(socket: int, size: int) -> bytes:
    text = b""
    while len(text) < size:
        more = os.read(socket, size - len(text))
        if not more:
            raise Over
        text += more
    return text


def _write(socket: int, text: bytes) -> None:
    while text:
        text = text[os.write(socket, text):]


def _number(hook: str, answer: object, usual: int) -> int:
    """Return the number that stands for a method's answer in a message. For None it is `usual`, except for `wait`."""
    if hook == "wait":
        if answer not in ("spin", "switch"):
            _refuse(f"wait returned {answer!r}, not \"spin\" or \"switch\"")
        return int(answer == "switch")
    if hook == "slice" and answer is not None:
        if not isinstance(answer, int) or not 1 <= answer <= 10**15:
            _refuse(f"slice returned {answer!r}, not a time from 1 to 10^15 ps")
        return answer
    if hook == "goes_on" and answer is not None:
        return int(bool(answer))
    return usual


def _methods(policy: object) -> int:
    """Return the methods of a policy as a set of bits."""
    if not hasattr(policy, "fault"):
        _refuse("class Policy has no method fault(core, pid, page)")
    return sum(1 << number for number, hook in enumerate(HOOKS) if hasattr(policy, hook))


def _load(file: str, settings: dict) -> object:
    with open(file, encoding="utf-8") as source:
        code = compile(source.read(), file, "exec")
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    space = {"__name__": "policy", "__file__": file}
    exec(code, space)
    found = space.get("Policy")
    if not isinstance(found, type):
        _refuse("has no class Policy")
    return found() if found.__init__ is object.__init__ else found(settings)


def _serve(socket: int, core: Core, policy: object) -> None:
    """Answer questions until the simulator has no more."""
    hooks = [getattr(policy, hook, None) for hook in HOOKS]
    wait, evicted, sliced, goes_on, call = (HOOKS.index(hook) for hook in ("wait", "evicted", "slice", "goes_on", "call"))
    enter, leave = HOOKS.index("enter"), HOOKS.index("leave")
    unpack, size, pack, plain = _QUESTION.unpack, _QUESTION.size, _ANSWER.pack, HOOKS.index("fault")
    read, orders = os.read, core._orders
    while True:
        text = read(socket, size)
        if len(text) < size:
            text += _read(socket, size - len(text))
        op, pid, page, core.now, extra = unpack(text)
        value = 0
        if op == plain:
            hooks[op](core, pid, page)
        elif op == AREAS:
            text = _read(socket, page * 16)
            ranges = list(struct.iter_unpack("<QQ", text))
            core._starts.append([first for first, _ in ranges])
            core._ends.append([end for _, end in ranges])
            continue
        elif op == evicted:
            hooks[op](core, pid, page, bool(extra))
        elif op == wait:
            value = _number("wait", hooks[op](core, pid, page, extra), 0)
        elif op in (sliced, goes_on):
            value = _number(HOOKS[op], hooks[op](core, pid, extra if op == sliced else bool(extra)), extra)
        elif op == call:
            hooks[op](core)
        elif op in (enter, leave):
            hooks[op](core, pid)
        else:
            hooks[op](core, pid, page)
        answer = pack(DONE, len(orders), value)
        if orders:
            answer += b"".join(orders)
            orders.clear()
        _write(socket, answer)


def _place(error: BaseException, file: str, trace: TracebackType | None) -> str:
    """Return the text of an error: file, line and what was wrong."""
    line: int | None = None
    if isinstance(error, SyntaxError) and error.filename == file:
        line, text = error.lineno, f"SyntaxError: {error.msg}"
    elif isinstance(error, Wrong):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    while trace is not None:
        frame: FrameType = trace.tb_frame
        if frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return " ".join(f"{file}{f', line {line}' if line else ''}: {text}".split())


def _die_with_simulator() -> None:
    """End this process when the simulator is killed. Otherwise a policy that never answers would run on."""
    try:
        import ctypes

        pr_set_pdeathsig, sigkill = 1, 9
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, sigkill)
    except (ImportError, OSError, AttributeError):
        pass


def main(file: str) -> int:
    """Serve one simulation."""
    # The policy's own input and output must not mix with the messages of the simulator.
    socket = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout.reconfigure(line_buffering=True)
    _die_with_simulator()
    random.seed(0)
    try:
        op, _, size, _, _ = _QUESTION.unpack(_read(socket, _QUESTION.size))
        assert op == SETTINGS
        core = Core(socket, tomllib.loads(_read(socket, size).decode()))
        policy = _load(file, core.settings)
        order = str(getattr(policy, "replacement", "")).encode()[:MOST_TEXT]
        _write(socket, _ANSWER.pack(BEGUN, len(order), _methods(policy)) + order)
        _serve(socket, core, policy)
    except Over:
        pass
    except (BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        return 1
    except BaseException as error:
        text = _place(error, file, error.__traceback__).encode()[:MOST_TEXT]
        _write(socket, _ANSWER.pack(FAILED, len(text), 0) + text)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
