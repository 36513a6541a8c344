# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev rtl-bench`: cycles of bare-metal programs on the core in RTL and on the machine with the profile `cva6`.

`fit` has one loop for each constant of the core. No constant was fitted to `held_out`. `smu` has misses on a drive; it shows the
SMU's part, from request to doorbell and from completion queue entry to answer."""

from __future__ import annotations

import json
import subprocess
import tempfile
import tomllib
from pathlib import Path
from statistics import mean

from trapless.base.paths import MACHINE, ROOT, RTL
from trapless.base.ui import UserError
from trapless.guest import build

HERE = RTL / "cva6" / "bench"
FLAGS = ["-O2", "-march=rv64gc_zifencei", "-mabi=lp64d", "-mcmodel=medany", "-ffreestanding", "-nostdlib",
         "-fno-tree-loop-distribute-patterns", "-T", str(HERE / "link.ld"), str(HERE / "start.S")]
BARE = MACHINE / "crates/machine/tests/bare"
SMU_FLAGS = ["-O1", "-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany", "-ffreestanding", "-nostdlib", "-static", "-fno-pie",
             "-no-pie", "-fno-stack-protector", "-I", str(BARE), "-I", str(ROOT / "spec/generated"), "-T", str(BARE / "link.ld"),
             str(BARE / "start.S"), str(BARE / "bare.c")]
PROGRAMS = ("fit", "held_out", "smu")
DEVICE_CYCLES = range(2000, 2011)
"""Latencies of the drive in cycles, tried one after the other. Their mean covers every phase between the completion and the next
poll of the queue."""
REGIONS = {1: "marked", 2: "not marked"}
"""Regions: upper entries have their marks already, or not (smu.c)."""


def results(command: list) -> dict[str, tuple[int, int]]:
    """Read the lines `name cycles operations` of a program's console."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, errors="replace", check=False)
    words = [line.split() for line in done.stdout.replace("\r", "").splitlines()]
    if ["end"] not in words:
        raise UserError(f"{Path(command[0]).name} stopped before the end of the program")
    return {w[0]: (int(w[1]), int(w[2])) for w in words if len(w) == 3 and w[1].isdigit() and w[2].isdigit()}


def profile(base: str, cycles: int, folder: Path) -> Path:
    """Write a profile that extends `base` with a drive whose reads take `cycles` cycles. Return its path."""
    path = folder / f"{base}-{cycles}.toml"
    path.write_text(f'extends = "{base}"\n[ssd]\nextends = "optane-m2"\nread_us = {cycles / 100}\n')
    return path


def quietly(command: list) -> None:
    """Run a program without showing its output."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise UserError(f"{Path(command[0]).name} failed: {done.stderr.strip()[-200:]}")


def smu_steps(rtl: str, machine: Path, folder: Path) -> None:
    """Measure misses one after another, and print the SMU's part of a miss."""
    elf, drive, record, out = folder / "smu", folder / "drive.img", folder / "regions.json", folder / "attributed"
    subprocess.run(["riscv64-linux-gnu-gcc", *SMU_FLAGS, HERE / "smu.c", "-o", elf], check=True)
    drive.write_bytes(b"".join(block.to_bytes(8, "little") * 64 for block in range(4096)))
    notify = tomllib.loads((MACHINE / "profiles/cva6.toml").read_text())["smu"]["notify_cycles"]
    core, model = ({(region, step): [] for region in REGIONS for step in ("to doorbell", "from CQ entry")} for _ in range(2))
    for cycles in DEVICE_CYCLES:
        quietly([rtl, "--smu", "--elf", elf, "--disk", f"{drive},snapshot", "--profile", profile("vc707", cycles, folder),
                 "--json", record])
        for region in json.loads(record.read_text()):
            core[region["number"], "to doorbell"].append(region["before_device_cycles"] / region["misses"])
            core[region["number"], "from CQ entry"].append(region["after_device_cycles"] / region["misses"])
        quietly([machine, "elf", "--detail", "start", "--profile", profile("cva6", cycles, folder), "--disk", f"{drive},snapshot",
             "--attribute", out, "--attribute-from", "roi", elf])
        misses = [json.loads(line)["times"] for line in (out / "misses.jsonl").read_text().splitlines()]
        for region in REGIONS:
            half = misses[(region - 1) * len(misses) // 2:region * len(misses) // 2]
            model[region, "to doorbell"].append(mean(t["doorbell"] - t["request"] for t in half))
            model[region, "from CQ entry"].append(mean(t["installed"] - t["device_end"] + notify for t in half))
    print(f"{'smu':>28} {'RTL':>9} {'machine':>9} {'error %':>8}   cycles per miss, without the device's")
    for (region, step), measured in core.items():
        a, b = mean(measured), mean(model[region, step])
        print(f"{step + ', ' + REGIONS[region]:>28} {a:>9.2f} {b:>9.2f} {100 * (b / a - 1):>+8.1f}")


def run(chosen: tuple[str, ...] = PROGRAMS) -> int:
    """Build the programs, run them on both, and print the cycles. Return the exit status."""
    built = subprocess.run([RTL / "run", RTL / "cva6" / "build", "--smu"], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode:
        raise UserError("rtl/cva6/build failed")
    rtl, machine = built.stdout.split()[-1], build.machine()
    for name in chosen:
        if name == "smu":
            with tempfile.TemporaryDirectory() as folder:
                smu_steps(rtl, machine, Path(folder))
            continue
        with tempfile.TemporaryDirectory() as folder:
            elf = Path(folder) / name
            subprocess.run(["riscv64-unknown-elf-gcc", *FLAGS, HERE / f"{name}.c", "-o", elf], check=True)
            core = results([rtl, "--elf", elf])
            model = results([machine, "elf", "--detail", "start", "--profile", "cva6", elf])
        print(f"{name:>16} {'RTL':>9} {'machine':>9} {'error %':>8}   cycles per operation")
        for what, (cycles, n) in core.items():
            other = model[what][0]
            print(f"{what:>16} {cycles / n:>9.2f} {other / n:>9.2f} {100 * (other / cycles - 1):>+8.1f}")
    return 0

