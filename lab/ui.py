# SPDX-License-Identifier: Apache-2.0
"""What the user sees: one-line errors and progress on stderr; results go to stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

console = Console(stderr=True, highlight=False)


class UserError(Exception):
    """Something the user can mend. Its text is one line that names the thing."""


def say(text: str) -> None:
    """Print one line of progress."""
    if console.is_terminal:
        # Through the console, so that a spinner under way stays whole.
        console.print(f"trapless: {text}", markup=False, soft_wrap=True)
    else:
        print(f"trapless: {text}", file=sys.stderr, flush=True)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Show that a long step is under way (a spinner on a terminal) and how long it took, in host seconds."""
    start = time.monotonic()
    if console.is_terminal:
        with console.status(title):
            yield
    else:
        say(title)
        yield
    say(f"{title}: {time.monotonic() - start:.1f} s")
