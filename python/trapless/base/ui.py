# SPDX-License-Identifier: Apache-2.0
"""What the user sees: one-line errors and progress on stderr; results go to stdout."""

from __future__ import annotations

import difflib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@cache
def console() -> Console:
    """The terminal. `doctor` and `help` must do without: Python's packages may not be there yet."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


class UserError(Exception):
    """Something the user can mend. Its text is one line that names the thing."""


_MANY = 12
"""If there are more names than this, an error message does not list them."""
_WATCH_SECONDS = 0.5


def nearest(word: str, known: Iterable[str], rest: bool = True) -> str:
    """What a word that is not among the `known` ones may have meant; then (`rest`), or if nothing is like it, what there is."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), names, n=1)
    listed = f"there are {', '.join(names.values())}" if names else "there are none"
    if not close:
        return listed if rest else ""
    return f"did you mean {names[close[0]]}?" + (f" ({listed})" if rest and len(names) <= _MANY else "")


def no_such(what: str, word: str, known: Iterable[str], where: str = "") -> UserError:
    """The line for a name that nothing has: `where: no such kind: hwpd; did you mean hwdp?`."""
    return UserError(f"{where}{': ' if where else ''}no such {what}: {word}; {nearest(word, known)}")


def say(text: str) -> None:
    """Print one line of progress."""
    if console.cache_info().currsize and console().is_terminal:
        # Through the console, so that a spinner under way stays whole.
        console().print(f"trapless: {text}", markup=False, soft_wrap=True)
    else:
        print(f"trapless: {text}", file=sys.stderr, flush=True)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Show that a long step is under way (a spinner on a terminal) and how long it took, in host seconds."""
    start = time.monotonic()
    if console().is_terminal:
        with console().status(title):
            yield
    else:
        say(title)
        yield
    say(f"{title}: {time.monotonic() - start:.1f} s")


class Progress:
    """How far many runs are: a bar with an estimate on a terminal, else a line a finished run."""

    def __init__(self, doing: str, runs: int, weight: int) -> None:
        """Start with no run finished of `runs`; the estimate of the time left goes by their `weight`, the sum over all runs."""
        from rich import progress as bars

        self.runs, self.weight, self.finished, self.start = runs, max(weight, 1), 0, time.monotonic()
        self.behind = 0.0
        columns = (bars.TextColumn(doing), bars.BarColumn(), bars.TaskProgressColumn(), bars.TextColumn("{task.fields[runs]}"),
                   bars.TimeElapsedColumn(), bars.TextColumn("left"), bars.TimeRemainingColumn(elapsed_when_finished=False))
        self.bar = bars.Progress(*columns, console=console(), transient=True, speed_estimate_period=3600,
                                 disable=not (console().is_terminal and runs))
        self.task = self.bar.add_task("", total=self.weight, runs="")

    @contextmanager
    def watching(self, part_done: Callable[[], float]) -> Iterator[None]:
        """Meanwhile a terminal's bar shows the weight of runs under way, too."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_WATCH_SECONDS):
                self.bar.update(self.task, completed=self.behind + part_done())

        thread = threading.Thread(target=watch, daemon=True)
        if not self.bar.disable:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            if thread.ident is not None:
                thread.join()

    def show(self, finished: int, weight: float) -> None:
        """Show that this number of runs is finished, and how much of the weight they have."""
        self.behind = weight
        self.bar.update(self.task, completed=weight, runs=f"{finished} of {self.runs} runs")
        if self.bar.disable and finished > self.finished:
            spent = time.monotonic() - self.start
            say(f"{finished} of {self.runs} runs, {spent:.0f} s, about {spent * (self.weight / weight - 1):.0f} s left")
        self.finished = finished
