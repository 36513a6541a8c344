# SPDX-License-Identifier: Apache-2.0
"""Output for the user: one-line errors and progress go to stderr, results to stdout."""

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
    """Return the terminal. `doctor` and `help` do not use it: they must work before Python's packages are installed."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


class UserError(Exception):
    """An error that the user can fix. Its text is one line that names the cause."""


_MANY = 12
"""An error message lists other names only if there are at most this many."""
_WATCH_SECONDS = 0.5


def nearest(word: str, known: Iterable[str], rest: bool = True) -> str:
    """Say what a word that is not among the `known` ones may have meant. If `rest`, or if no word is similar, also list the known
    words."""
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), names, n=1)
    listed = f"there are {', '.join(names.values())}" if names else "there are none"
    if not close:
        return listed if rest else ""
    return f"did you mean {names[close[0]]}?" + (f" ({listed})" if rest and len(names) <= _MANY else "")


def no_such(what: str, word: str, known: Iterable[str], where: str = "", lister: str = "") -> UserError:
    """Make the error for an unknown name: `where: no such kind: hwpd; did you mean hwdp?`. `lister` is a command that lists the
    known names, if they are too many for a line."""
    hint = nearest(word, known, rest=not lister) or f"{lister} lists them"
    return UserError(f"{where}{': ' if where else ''}no such {what}: {word}; {hint}")


def say(text: str) -> None:
    """Print one line of progress."""
    if console.cache_info().currsize and console().is_terminal:
        # Print through the console, so that a running spinner stays intact.
        console().print(f"trapless: {text}", markup=False, soft_wrap=True)
    else:
        print(f"trapless: {text}", file=sys.stderr, flush=True)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Show that a long step is running (a spinner on a terminal), and how long it took, in host seconds."""
    start = time.monotonic()
    if console().is_terminal:
        with console().status(title):
            yield
    else:
        say(title)
        yield
    say(f"{title}: {time.monotonic() - start:.1f} s")


class Progress:
    """Progress of many runs: a bar with an estimate on a terminal, otherwise one line for each finished run."""

    def __init__(self, doing: str, runs: int, weight: int) -> None:
        """Begin with 0 of `runs` finished. `weight` is the sum of the runs' weights, by which the remaining time is estimated."""
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
        """During the block, a terminal's bar also shows the weight that unfinished runs have done."""
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
        """Show that this number of runs is finished, and the weight that is done."""
        self.behind = weight
        self.bar.update(self.task, completed=weight, runs=f"{finished} of {self.runs} runs")
        if self.bar.disable and finished > self.finished:
            spent = time.monotonic() - self.start
            say(f"{finished} of {self.runs} runs, {spent:.0f} s, about {spent * (self.weight / weight - 1):.0f} s left")
        self.finished = finished
