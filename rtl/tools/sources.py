# SPDX-License-Identifier: Apache-2.0
"""The SMU's source files, in the order in which tools want them."""

from __future__ import annotations

from pathlib import Path

from rtl.tools.env import RTL

SMU = RTL / "smu" / "rtl"
TOP = "trapless_smu"


def smu() -> list[Path]:
    """Packages first."""
    packages = [SMU / "generated/trapless_spec_pkg.sv", SMU / "generated/trapless_smu_regs_pkg.sv", SMU / "trapless_smu_pkg.sv"]
    modules = [path for path in sorted(SMU.rglob("*.sv")) if path not in packages]
    return [*packages, *modules]


def includes() -> list[str]:
    """Where the header with the registers' macro is."""
    return [f"-I{SMU}"]
