# SPDX-License-Identifier: Apache-2.0
"""The machine's `--check-atomic`: no code in atomic context asks for a page. What it needs of the kernel, and what it found."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from trapless.base.ui import say
from trapless.guest.build import RISCV

_FUNCTIONS = ("copy_from_kernel_nofault", "copy_from_user_nofault")
"""They begin with pagefault_disable(), which adds one to a member of the task that tp points to."""
_LONGEST = 512
"""Bytes of them that are looked at."""
_LINE = re.compile(r"^ *[0-9a-f]+:\s+(?:[0-9a-f]{4} ?)+\s+(\S+)(?:\s+([^#<]*))?")
_MEMORY = re.compile(r"^(-?\d+)\((\w+)\)$")
_NO_RESULT = re.compile(r"s[bhwd]|b\w+|j|jr|ret|nop|fence.*|e(call|break)")


def options(kernel: Path) -> tuple[str, ...]:
    """The machine's option for this kernel: with the offset of `pagefault_disabled`, if its System.map is beside it."""
    offset = pagefault_disabled(kernel)
    if offset is None:
        say(f"{kernel}: no System.map beside it tells where pagefault_disabled is: only preempt_count and interrupts are checked")
        return ("--check-atomic",)
    return (f"--check-atomic={offset}",)


def pagefault_disabled(kernel: Path) -> int | None:
    """Offset of that member of `struct task_struct`, by the kernel's own code; None if it cannot be told."""
    symbols, objdump = kernel.parent / "System.map", shutil.which(f"{RISCV.compiler_prefix()}objdump")
    if not symbols.is_file() or objdump is None:
        return None
    addresses = {name: int(address, 16) for address, _, name in map(str.split, symbols.read_text().splitlines())}
    found = set()
    for function in _FUNCTIONS:
        if function in addresses and "_start" in addresses:
            begin = addresses[function]
            text = subprocess.run(
                [objdump, "-b", "binary", "-m", "riscv:rv64", "-D", f"--adjust-vma={addresses['_start']:#x}",
                 f"--start-address={begin:#x}", f"--stop-address={begin + _LONGEST:#x}", kernel],
                capture_output=True, text=True, check=False).stdout
            found.add(counted_up(text))
    found.discard(None)
    return found.pop() if len(found) == 1 else None


def counted_up(listing: str) -> int | None:
    """The offset from tp of the first word that this code adds one to; None if there is none."""
    # What is known of registers: (whether tp is in it, a constant), or (offset, how much more) of what was loaded from there.
    known: dict[str, tuple[int, int]] = {"tp": (1, 0), "zero": (0, 0)}
    words: dict[str, tuple[int, int]] = {}
    for line in listing.splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        name, args = match[1].removeprefix("c."), [arg.strip() for arg in (match[2] or "").split(",")]
        memory = _MEMORY.match(args[-1])
        at = known.get(memory[2]) if memory else None
        place = at[1] + int(memory[1]) if at and at[0] == 1 else None
        if name == "sw" and place is not None and words.get(args[0]) == (place, 1):
            return place
        if _NO_RESULT.fullmatch(name):
            continue
        value, word = None, None
        if name == "lui":
            value = (0, _signed(int(args[1], 16) << 12))
        elif name == "li":
            value = (0, int(args[1], 0))
        elif name == "mv":
            value = known.get(args[1])
        elif name in ("add", "addi"):
            value = _sum(known.get(args[1]), known.get(args[2], _number(args[2])))
        elif name == "lw" and place is not None:
            word = (place, 0)
        elif name in ("addw", "addiw") and args[1] in words and (more := _number(args[2])):
            word = (words[args[1]][0], words[args[1]][1] + more[1])
        for registers, new in ((known, value), (words, word)):
            registers.pop(args[0], None)
            if new is not None:
                registers[args[0]] = new
    return None


def _signed(word: int) -> int:
    return (word & 0xffffffff ^ 1 << 31) - (1 << 31)


def _number(text: str) -> tuple[int, int] | None:
    return (0, int(text, 0)) if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", text) else None


def _sum(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    return (a[0] + b[0], a[1] + b[1]) if a and b else None


def line(stats: dict) -> str | None:
    """What a run's record says of it, in one line; None if nobody looked."""
    found = stats.get("atomic")
    if not found:
        return None
    looked = f"looked at {found['walker_requests']:,} requests of walkers and {found['port_requests']:,} through ports"
    places = "".join(f"; {count:,} at pc {pc:#x} ({mode} mode)" for pc, mode, count in
                     ((place["pc"], place["mode"], place["count"]) for place in found["places"][:3]))
    unknown = f", {found['unknown']:,} without a Linux task" if found["unknown"] else ""
    return f"--check-atomic: {looked}{unknown}: {found['reports']:,} in atomic context{places}"


def reports(stats: dict) -> int:
    """How many requests were made in atomic context."""
    return (stats.get("atomic") or {}).get("reports", 0)
