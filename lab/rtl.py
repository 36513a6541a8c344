# SPDX-License-Identifier: Apache-2.0
"""What the RTL measures of itself: its own programs, run as a user would, and the records that they leave."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys

from lab.paths import CACHE, RTL
from lab.ui import UserError


def smu_cycles() -> dict[str, float]:
    """Cycles of an idle miss, without memory's, and of one of many (rtl/smu/dv/timing.py): the largest of each kind."""
    _run([RTL / "run", "pytest", "-q", "-p", "no:cacheprovider", RTL / "smu" / "dv", "-k", "timing"])
    found = json.loads((CACHE / "rtl" / "dv" / "timing-timing-full.json").read_text())
    return {name: max(value for key, value in found.items() if key.startswith(name))
            for name in ("request_to_doorbell", "completion_to_answer", "cycles_per_miss")}


def linux() -> tuple[float, dict[str, float]]:
    """Linux on the core in RTL: the share of osdp's time that hwdp takes outside the device, and by kind the machine's error in
    percent, without sign."""
    folder = RTL / "cva6" / "linux"
    _run([sys.executable, folder / "run"])
    program = runpy.run_path(str(folder / "predict"))
    regions = json.loads(program["RTL"]["RECORD"].read_text())["regions"]
    return program["RTL"]["outside"](regions), {kind: abs(error) for kind, (_, _, error) in program["errors"]().items()}


def _run(command: list) -> None:
    if subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, check=False).returncode:
        raise UserError(f"{command[1]} failed")
