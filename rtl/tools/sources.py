# SPDX-License-Identifier: Apache-2.0
"""The SMU's source files, in the order in which tools want them."""

from __future__ import annotations

from pathlib import Path

from rtl.tools.env import RTL

SMU = RTL / "smu" / "rtl"
FORMAL = RTL / "smu" / "formal"
TOP = "trapless_smu"


def smu() -> list[Path]:
    """The unit's source files, packages first."""
    packages = [SMU / "generated/trapless_spec_pkg.sv", SMU / "generated/trapless_smu_regs_pkg.sv", SMU / "trapless_smu_pkg.sv"]
    modules = [path for path in sorted(SMU.rglob("*.sv")) if path not in packages]
    return [*packages, *modules]


def claims() -> list[Path]:
    """Files of the claims and of the crosses of coverage, which are bound to the unit: their package first, then in any order."""
    bound = [path for path in sorted(FORMAL.glob("*.sv")) if path.name != "unit_pkg.sv"]
    return [FORMAL / "unit_pkg.sv", *bound, RTL / "smu" / "dv" / "crosses.sv"]


def includes() -> list[str]:
    """The option with the folder of the header that has the macro for registers."""
    return [f"-I{SMU}"]
