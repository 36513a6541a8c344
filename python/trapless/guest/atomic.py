# SPDX-License-Identifier: Apache-2.0
"""The machine's `--check-atomic`: checks that no code in atomic context asks for a page. What it needs from the kernel, and what
it found."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from trapless.base.ui import say
from trapless.guest.build import RISCV

_FUNCTIONS = ("copy_from_kernel_nofault", "copy_from_user_nofault")
"""Functions that begin with pagefault_disable(), which adds 1 to a member of the task that tp points to."""
_LONGEST = 512
"""Bytes of each function that are searched."""
_LINE = re.compile(r"^ *[0-9a-f]+:\s+(?:[0-9a-f]{4} ?)+\s+(\S+)(?:\s+([^#<]*))?")
_MEMORY = re.compile(r"^(-?\d+)\((\w+)\)$")
_NO_RESULT = re.compile(r"s[bhwd]|b\w+|j|jr|ret|nop|fence.*|e(call|break)")


def options(kernel: Path) -> tuple[str, ...]:
    """Return the machine's option for this kernel. It includes the offset of `pagefault_disabled` if System.map is beside the
    kernel."""
    offset = pagefault_disabled(kernel)
    if offset is None:
        say(f"{kernel}: no System.map beside it gives the offset of pagefault_disabled: only preempt_count and interrupts are "
            "checked")
        return ("--check-atomic",)
    return (f"--check-atomic={offset}",)


def pagefault_disabled(kernel: Path) -> int | None:
    """Return the offset of that member of `struct task_struct`, found in the kernel's code; None if it is not found."""
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
    """Return the offset from tp of the first word to which this code adds 1; None if there is none."""
    # `known` is what each register has: (1 if it has tp, plus this constant). `words` is what was loaded from tp + offset:
    # (offset, how much was added since).
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
    """Return what a run's record says about the check, in one line; None if it was not made."""
    found = stats.get("atomic")
    if not found:
        return None
    looked = f"looked at {found['walker_requests']:,} requests of walkers and {found['port_requests']:,} through ports"
    places = "".join(f"; {count:,} at pc {pc:#x} ({mode} mode)" for pc, mode, count in
                     ((place["pc"], place["mode"], place["count"]) for place in found["places"][:3]))
    unknown = f", {found['unknown']:,} without a Linux task" if found["unknown"] else ""
    return f"--check-atomic: {looked}{unknown}: {found['reports']:,} in atomic context{places}"


def reports(stats: dict) -> int:
    """Return how many requests were made in atomic context."""
    return (stats.get("atomic") or {}).get("reports", 0)
