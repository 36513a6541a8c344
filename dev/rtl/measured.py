# SPDX-License-Identifier: Apache-2.0
"""Measures of the goals for the RTL. They run its benches and `dev rtl-linux`, and read their records."""

from __future__ import annotations

import json
import subprocess

from trapless.base.paths import CACHE, RTL
from trapless.base.ui import UserError

from dev.rtl import linux as on_linux
from dev.rtl import predict


def smu_cycles() -> dict[str, float]:
    """Return the cycles of an idle miss, without those of memory, and the cycles of one of many misses (rtl/smu/dv/timing.py):
    the largest of each kind."""
    _run([RTL / "run", "pytest", "-q", "-p", "no:cacheprovider", RTL / "smu" / "dv", "-k", "timing"])
    found = json.loads((CACHE / "rtl" / "dv" / "timing-timing-full.json").read_text())
    return {name: max(value for key, value in found.items() if key.startswith(name))
            for name in ("request_to_doorbell", "completion_to_answer", "cycles_per_miss")}


def linux() -> tuple[float, dict[str, float]]:
    """Return results of Linux on the core in RTL: the share of osdp's time that hwdp takes outside the device, and the machine's
    error for each kind, in percent without sign."""
    on_linux.run(on_linux.Request())
    regions = json.loads(on_linux.RECORD.read_text())["regions"]
    return on_linux.outside(regions), {kind: abs(error) for kind, (_, _, error) in predict.errors().items()}


def _run(command: list) -> None:
    if subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, check=False).returncode:
        raise UserError(f"{command[1]} failed")
