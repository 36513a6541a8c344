# SPDX-License-Identifier: Apache-2.0
"""How a guest's command ended, as one word and as one line for people."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from trapless.guest import boot as guests

OK, FAILED, KILLED, OUT_OF_MEMORY = "ok", "failed", "killed", "out of memory"
"""Statuses of commands that ended. Guests that did not end normally have the statuses of trapless.guest.boot."""
NOT_RUN = "not run"
"""Status of a run that the host stopped. It says nothing about the guest."""
KEPT_OUTPUT = 4000
"""How many characters of the console are kept, from its end."""
# Messages of programs about ENOMEM: memory, a limit, or the addresses of a process are used up.
_NO_MEMORY = re.compile(r"Cannot allocate memory|ENOMEM|bad_alloc|MemoryError|OutOfMemory|[Oo]ut of memory|[Nn]ot enough memory")
_ADDRESS_BITS = {"sv39": 38, "sv48": 47, "sv57": 56}
"""Bits of a process's addresses, for each paging mode (Documentation/arch/riscv/vm-layout.rst)."""
# Linux prints this when it has no memory left (mm/oom_kill.c).
_VICTIM = re.compile(r"Out of memory(?: \([\w -]+\))?: Killed process \d+ \((.*?)\)")


@dataclass(frozen=True)
class Ending:
    """The end of a guest's command."""

    status: str
    exit_status: int | None
    """Exit status of the command; None if it has none."""
    line: str
    """Explanation for people; empty if the command ended well."""


def of(outcome: guests.Outcome, words: bool = True) -> Ending:
    """Describe how the command ended, for a guest that ended normally. With `words`, add its last output if that says more."""
    status = outcome.status
    if status == 0:
        return Ending(OK, 0, "")
    victims = _VICTIM.findall(outcome.console)
    if victims:
        return Ending(OUT_OF_MEMORY, status, f"out of memory: the guest's kernel killed {victims[-1]} (exit status {status})")
    if status > 128 and status - 128 in set(signal.Signals):
        line = f"killed by {signal.Signals(status - 128).name} (exit status {status}){_limits(outcome)}"
        return Ending(KILLED, status, line)
    said = guests.last_line(outcome.console) if words else ""
    return Ending(FAILED, status, f"exit status {status}{f'; its last words: {said}' if said else ''}{_limits(outcome)}")


def _limits(outcome: guests.Outcome) -> str:
    """If the command said that it got no memory: say how much memory and how many addresses the guest has, and which option gives
    more. Programs print the same error for both."""
    machine = outcome.stats.get("profile", {}).get("machine")
    if not machine or not _NO_MEMORY.search(outcome.console):
        return ""
    paging = machine["paging"]
    deeper = " (--set machine.paging=sv48 gives 128 TiB)" if paging == "sv39" else ""
    # Linux places a position-independent program at two thirds of the addresses (ELF_ET_DYN_BASE).
    space = 1 << _ADDRESS_BITS[paging] - 30
    return (f"; the guest had {machine['memory_bytes'] >> 20:,} MiB of memory (--memory), and a process "
            f"{space:,} GiB of addresses ({paging}), {2 * space // 3:,} of them contiguous{deeper}")


def of_error(error: guests.GuestError, guest: guests.Guest) -> Ending:
    """Describe how a guest ended that did not end normally."""
    late = error.how == guests.TIME_LIMIT
    return Ending(error.how, None, f"did not end in {guest.max_seconds:g} simulated seconds" if late else str(error))


def output(outcome: guests.Outcome) -> str:
    """Return the end of the console's output."""
    return outcome.console[-KEPT_OUTPUT:]
