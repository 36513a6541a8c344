# SPDX-License-Identifier: Apache-2.0
"""The constants of the specification, read from the package that the RTL uses; functions that build and split entries."""

from __future__ import annotations

import re

from rtl.tools.sources import SMU

_PACKAGE = (SMU / "generated/trapless_spec_pkg.sv").read_text()
C: dict[str, int] = {
    name: int(digits, 16 if base == "h" else 10)
    for name, base, digits in re.findall(r"localparam int unsigned (\w+) = 32'([hd])(\w+);", _PACKAGE)
}
"""Every constant by its name in the package."""

COUNTERS = sorted((name for name, _ in re.findall(r"int unsigned CNT_(\w+) = 32'd(\d+);", _PACKAGE) if name != "COUNT"),
                  key=lambda name: C[f"CNT_{name}"])
REASONS = {value: name[len("REASON_"):].lower() for name, value in C.items() if name.startswith("REASON_")}
DONE, CHANGED, FAILED = C["OUTCOME_DONE"], C["OUTCOME_CHANGED"], C["OUTCOME_FAILED"]
OUTCOMES = {DONE: "done", CHANGED: "changed", FAILED: "failed"}
WORD = 2**64 - 1
PFN_MASK = 2**44 - 1
"""The bits of a frame number."""


def mask(field: str) -> int:
    """The bits of a field."""
    low, high = C[f"{field}_LSB"], C[f"{field}_MSB"]
    return (2 ** (high - low + 1) - 1) << low


def get(field: str, word: int) -> int:
    """A field's value in a word."""
    return (word & mask(field)) >> C[f"{field}_LSB"]


def of(field: str, value: int) -> int:
    """A word with a field set to a value, which is cut to fit."""
    return (value << C[f"{field}_LSB"]) & mask(field)


def reg(name: str) -> int:
    """Offset of a register that exists once."""
    return C[f"REG_{name}"]


def desc(d: int, name: str) -> int:
    """Offset of a descriptor's register."""
    return C["DESC_BASE"] + C["DESC_STRIDE"] * d + C[f"DESC_{name}"]


def window(w: int, name: str) -> int:
    """Offset of a window's register."""
    return C["WINDOW_BASE"] + C["WINDOW_STRIDE"] * w + C[f"WINDOW_{name}"]


def port(p: int, name: str) -> int:
    """Offset of a software request port's register."""
    return C["PORT_BASE"] + C["PORT_STRIDE"] * p + C[f"PORT_{name}"]


def names_block(pte: int) -> bool:
    """Whether an entry has the armed form. SOFT is not looked at."""
    def has(name: str) -> bool:
        return pte & mask(f"PTE_{name}") != 0

    leaf = (has("R") or has("X")) and not (has("W") and not has("R"))
    return has("L") and has("U") and leaf and not any(map(has, ("V", "G", "D", "HIGH")))


def installed(seen: int, pfn: int) -> int:
    """The entry that is installed for an armed one."""
    carried = seen & sum(mask(f"PTE_{bit}") for bit in "RWXUA")
    return carried | mask("PTE_V") | mask("PTE_L") | of("PTE_PFN", pfn)
