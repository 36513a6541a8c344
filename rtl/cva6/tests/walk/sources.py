# SPDX-License-Identifier: Apache-2.0
"""The core's sources with the overlay, for the tests of the walker."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
CVA6 = HERE.parent.parent
ROOT = CVA6.parent.parent
SMU = ROOT / "rtl/smu/rtl"
LEFT_OUT = re.compile(r"_config_pkg\.sv$|/fpu/src/|fpu_wrap|/cvxif_example/|/instr_tracer|/ariane\.sv$")
SMU_PACKAGES = [SMU / "generated/trapless_spec_pkg.sv", SMU / "generated/trapless_smu_regs_pkg.sv",
                SMU / "trapless_smu_pkg.sv"]
INCLUDES = ["common/submodules/common_cells/include", "common/submodules/common_cells/src", "common/local/util"]

# Start of the code that traces every instruction into the current folder.
TRACER = "// mock tracer for Verilator, to be used with spike-dasm\n`else\n"


class Missing(Exception):
    """A package or file that is needed is missing or has changed."""


def wheel() -> Path:
    """The folder of CVA6's sources."""
    spec = importlib.util.find_spec("pythondata_cpu_cva6")
    if spec is None or spec.origin is None:
        raise Missing("the package pythondata-cpu-cva6 is missing (rtl/requirements.txt)")
    return Path(spec.origin).parent / "system_verilog"


def overlay(source: Path, target: Path) -> None:
    """Copy the files that the overlay changes from `source` to `target`, and apply the patches."""
    for patch in sorted((CVA6 / "overlay").glob("*.patch")):
        name = re.search(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE).group(1)
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, target / name)
        done = subprocess.run(["patch", "-s", "-p1", "-d", target, "-i", patch], capture_output=True, text=True)
        if done.returncode:
            raise Missing(f"{patch.name} does not apply: {done.stdout.strip()}")
    top = target / "core/cva6.sv"
    if TRACER not in (text := top.read_text()):
        raise Missing("core/cva6.sv of the package has another tracer than expected")
    top.write_text(text.replace(TRACER, "`elsif TRAPLESS_MOCK_TRACER\n"))


def files(source: Path, target: Path | None, config: Path) -> list[Path]:
    """The core's files in order. With a `target`, its files replace those of `source`, and the overlay's modules are added."""
    listing = (source / "core/Flist.cv64a6_imafdc_sv39").read_text()
    names = [n for n in re.findall(r"^\$\{CVA6_REPO_DIR\}/(\S+)", listing, re.MULTILINE) if not LEFT_OUT.search("/" + n)]
    result = [config]
    for name in names:
        result.append(target / name if target and (target / name).exists() else source / name)
    if not target:
        return result
    own = sorted((CVA6 / "overlay" / "rtl").glob("*.sv"), key=lambda p: (not p.stem.endswith("_pkg"), p.name))
    packages = [*SMU_PACKAGES[::2], *(p for p in own if p.stem.endswith("_pkg"))]
    at = next(i for i, p in enumerate(result) if p.name == "axi_intf.sv")
    return [*result[:at], *packages, *result[at:], *(p for p in own if not p.stem.endswith("_pkg"))]


def smu() -> list[Path]:
    """The SMU's files and the module that joins its ports, without the packages that `files` already has."""
    own = [p for p in sorted(SMU.rglob("*.sv")) if p not in SMU_PACKAGES]
    return [SMU_PACKAGES[1], *own, CVA6 / "soc" / "join_doorbells.sv"]
