# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev rtl-predict`: predicts the results of `dev rtl-linux` with the machine: cycles of a page miss by kind, and the
error.

The machine runs the same kernel and the same program with the profile `cva6`. The profile's constants come from the bare-metal
programs of rtl/cva6/bench, not from Linux. The last row is the SMU's own part: from request to doorbell, and from completion
queue entry to answer. The command fails if an error is larger than its limit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from statistics import mean

from trapless.base.paths import LINUX, MACHINE, ROOT
from trapless.base.ui import UserError
from trapless.guest import build

from dev.rtl import linux

LINE = re.compile(r"^([\w-]+) \d+ misses ([\d.]+) cycles each, 0 wrong", re.MULTILINE)
PROFILE = "cva6"
LIMITS = {"osdp": 15, "SMU": 2}
"""Largest error, percent."""
OTHERS = 10
SMU = "SMU"


def measured(file: Path) -> tuple[int, dict[str, float]]:
    """Return how many misses each kind had in the RTL, and the cycles of one. Cycles of the SMU are without the device."""
    try:
        record = json.loads(file.read_text())
        regions, count = record["regions"], record["count"]
        cycles = {kind: region["cycles"] / count for kind, region in regions.items()}
        served = [region for kind, region in regions.items() if kind.startswith("hwdp")]
        if served:
            logic = sum(r["before_device_cycles"] + r["after_device_cycles"] for r in served)
            cycles[SMU] = logic / sum(r["misses"] for r in served)
        return count, cycles
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{file}: not a record of dev rtl-linux ({error})") from error


def predicted(count: int, kinds: list[str]) -> dict[str, float]:
    """Return the cycles of a miss on the machine, by kind."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, out = folder / "miss", folder / "out"
        flags = ["-O2", "-std=gnu11", "-static", "-s", "-I", LINUX / "tools"]
        subprocess.run([f"{build.RISCV.compiler_prefix()}gcc", *flags, "-o", program, linux.SOURCE], check=True)
        command = [sys.executable, "-m", "trapless.cli", "profile", "--profile", PROFILE, "--out", out, "--from", "roi",
                   "--detail", "milestone:1", "--memory", f"{linux.MEMORY_MIB}M", "--append", linux.SETTINGS,
                   "--in", program, "--data", f"{linux.FILE_MIB}M", "--", "./miss", "/data/random.bin", count, *kinds]
        done = subprocess.run([str(c) for c in command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        found = {kind: float(cycles) for kind, cycles in LINE.findall(done.stdout)}
        if done.returncode or set(found) != set(kinds):
            raise UserError(f"the machine's run failed: {done.stdout.strip()[-300:]}")
        misses = [json.loads(line) for line in (out / "misses.jsonl").read_text().splitlines()]
    walkers = [miss["times"] for miss in misses if miss["hart"] is not None]
    if walkers:
        notify = tomllib.loads((MACHINE / "profiles" / f"{PROFILE}.toml").read_text())["smu"]["notify_cycles"]
        found[SMU] = mean(t["doorbell"] - t["request"] + t["installed"] - t["device_end"] + notify for t in walkers)
    return found


def errors(record: Path = linux.RECORD) -> dict[str, tuple[float, float, float]]:
    """Return for each kind the cycles of a miss in the RTL and on the machine, and the error in percent."""
    count, rtl = measured(record)
    machine = predicted(count, [kind for kind in rtl if kind != SMU])
    return {kind: (cycles, machine[kind], 100 * (machine[kind] / cycles - 1)) for kind, cycles in rtl.items()}


def run(record: Path = linux.RECORD) -> int:
    """Print the table. UserError if an error exceeds its limit."""
    print(f"{'kind':>12} {'RTL':>10} {'machine':>10} {'error %':>9} {'at most':>8}   cycles per miss")
    bad = []
    for kind, (cycles, machine, error) in errors(record).items():
        most = LIMITS.get(kind, OTHERS)
        print(f"{kind:>12} {cycles:>10.1f} {machine:>10.1f} {error:>+9.1f} {most:>8}")
        bad += [kind] if abs(error) > most else []
    if bad:
        raise UserError(f"the prediction is further from the RTL than the limit for: {', '.join(bad)}")
    return 0
