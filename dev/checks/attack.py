# SPDX-License-Identifier: Apache-2.0
"""The stale block attack of linux/checks/attack.c: can an unprivileged program read another user's blocks? REQ: OS-3"""

from __future__ import annotations

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from trapless.base.ui import UserError, say
from trapless.guest import build

from dev.checks import guest

WAYS = ("truncate", "punch", "collapse", "unmap", "mixed")
ROUNDS = 10_000
# Rounds in one boot. A run consists of boots with different seeds, so that a long run can use every core.
_BATCH = 500


@dataclass(frozen=True)
class Outcome:
    """Result of an attack."""

    rounds: int
    """Rounds in which the victim's file got a block that had belonged to the attacker."""
    reads: int
    """Pages that the attacker read."""
    fast_pages: int
    """Pages that hardware read for the attacker."""
    foreign: int
    """Bytes of the victim that the attacker saw."""

    def __add__(self, other: Outcome) -> Outcome:
        """Return the sum of both."""
        return Outcome(self.rounds + other.rounds, self.reads + other.reads, self.fast_pages + other.fast_pages,
                       self.foreign + other.foreign)


def run_attack(rounds: int, way: str = "mixed", seed: int = 1, kernel: Path | None = None, kind: str = "",
               append: str = "") -> Outcome:
    """Run one boot with `rounds` successful rounds, in which blocks are given back in this way. `kind` is the guest's kind of
    paging."""
    boot = guest.Boot(kernel or build.kernel(), "attack", ("-n", str(rounds), "-s", str(seed), "-k", way),
                      append=" ".join(part for part in (append, f"hwdp.kind={kind}" if kind else "") if part),
                      max_seconds=60 + rounds)
    result = guest.run(boot)
    counted = re.search(r"^attack: (\d+) of \d+ rounds", result.console, re.MULTILINE)
    seen = re.search(r"^attack: (\d+) reads .* (-?\d+) pages by hardware, (\d+) foreign", result.console, re.MULTILINE)
    if not result.finished or not counted or not seen:
        last = [line for line in result.console.splitlines() if line.strip()][-1:] or ["(nothing)"]
        raise UserError(f"the attack did not end; the last line of the guest: {last[0]}")
    outcome = Outcome(int(counted[1]), int(seen[1]), int(seen[2]), int(seen[3]))
    if not outcome.foreign and outcome.rounds < rounds:
        raise UserError(f"the guest could not start the attack: {result.lines('attack: ')[-1]}")
    return outcome


def run(rounds: int, way: str, seed: int, kernel: Path | None, kind: str) -> int:
    """Run the whole attack and print its result. Return the exit status."""
    if rounds < 1:
        raise UserError(f"--rounds must be at least 1, not {rounds}")
    if kernel and not kernel.is_file():
        raise UserError(f"--kernel {kernel}: no such file")
    image = kernel or build.kernel()
    guest.prepare()
    sizes = [_BATCH] * (rounds // _BATCH) + ([rounds % _BATCH] if rounds % _BATCH else [])
    total = Outcome(0, 0, 0, 0)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        boots = [pool.submit(run_attack, size, way, seed + number, image, kind) for number, size in enumerate(sizes)]
        for number, boot in enumerate(boots):
            total += boot.result()
            if sys.stderr.isatty() or (number + 1) % 4 == 0:
                say(f"{total.rounds} rounds, {total.foreign} foreign bytes")
    print(f"attack: {total.rounds} rounds reused a block, {total.reads} reads, {total.fast_pages} pages by hardware, "
          f"{total.foreign} foreign bytes")
    return 1 if total.foreign else 0

