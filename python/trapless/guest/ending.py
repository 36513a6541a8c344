# SPDX-License-Identifier: Apache-2.0
"""How a guest's command ended, in a word and in a line for people."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from trapless.guest import boot as guests

OK, FAILED, KILLED, OUT_OF_MEMORY = "ok", "failed", "killed", "out of memory"
"""Statuses of commands that ended, beside those of guests that did not end in order (runner.guest)."""
NOT_RUN = "not run"
"""Status of a run that the host stopped. It says nothing about the guest."""
KEPT_OUTPUT = 4000
"""How many characters of the console are kept: the last ones."""
# What Linux says when it has no memory left (mm/oom_kill.c).
# What programs say of ENOMEM: of the memory, of a limit, or of the addresses that a process can have.
_NO_MEMORY = re.compile(r"Cannot allocate memory|ENOMEM|bad_alloc|MemoryError|OutOfMemory|[Oo]ut of memory|[Nn]ot enough memory")
_ADDRESS_BITS = {"sv39": 38, "sv48": 47, "sv57": 56}
"""Bits of a process's addresses, by the machine's paging (Documentation/arch/riscv/vm-layout.rst)."""
_VICTIM = re.compile(r"Out of memory(?: \([\w -]+\))?: Killed process \d+ \((.*?)\)")


@dataclass(frozen=True)
class Ending:
    """How it ended."""

    status: str
    exit_status: int | None
    """Exit status of the command; None if it has none."""
    line: str
    """What to say of it; empty if it ended as it should."""


def of(outcome: guests.Outcome, words: bool = True) -> Ending:
    """How the command of a guest ended that did end in order; with its last `words` if they say more."""
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
    """What the guest has of memory and addresses, and what gives it more, if the command said that it got none: a program meets
    the same bare error for both."""
    machine = outcome.stats.get("profile", {}).get("machine")
    if not machine or not _NO_MEMORY.search(outcome.console):
        return ""
    paging = machine["paging"]
    deeper = " (--set machine.paging=sv48: 128 TiB)" if paging == "sv39" else ""
    # Linux puts a program that can be anywhere (ELF_ET_DYN_BASE) at two thirds.
    space = 1 << _ADDRESS_BITS[paging] - 30
    return (f"; it had {machine['memory_bytes'] >> 20:,} MiB of memory (--memory), and for the mappings of a process "
            f"{space:,} GiB of addresses with {paging}, {2 * space // 3:,} of them in one piece{deeper}")


def of_error(error: guests.GuestError, guest: guests.Guest) -> Ending:
    """How a guest ended that did not end in order."""
    late = error.how == guests.TIME_LIMIT
    return Ending(error.how, None, f"did not end in {guest.max_seconds:g} simulated seconds" if late else str(error))


def output(outcome: guests.Outcome) -> str:
    """The end of what the console showed."""
    return outcome.console[-KEPT_OUTPUT:]
