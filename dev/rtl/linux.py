# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev rtl-linux`: runs Linux on the core in RTL, and measures the cycles of a page miss by kind.

Linux is booted once; a checkpoint is taken at its shell. rtl/cva6/build makes the program, or TRAPLESS_CVA6 names one. The record
is kept for `dev rtl-predict`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trapless.base.cache import cached, content_key, locked
from trapless.base.paths import CACHE, LINUX, RTL
from trapless.base.ui import UserError, say, step
from trapless.guest import boot as guest
from trapless.guest import build, job
from trapless.guest.images import dataset, ext4, rootfs

SOURCE = RTL / "cva6" / "linux" / "miss.c"
KINDS = ("osdp", "emulated", "trap", "hwdp")
NUMBERS = {"osdp": 1, "emulated": 2, "trap": 3, "hwdp": 4}  # linux/tools/kinds.h
FIRMWARE = Path("/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.bin")
# The free ring holds more frames than there are misses. With one hart, a refill would count in the time of the misses (this is
# the thesis' setting without refill).
SETTINGS = "norandmaps hwdp.ring=2048"
APPEND = f"{guest.BOOT} quiet {SETTINGS} trapless.shell"
DONE = 2
"""Milestone at the end of miss.c."""
MEMORY_MIB = 64
FILE_MIB = 20
MOST_CYCLES = 400_000_000
RECORD = CACHE / "rtl" / "cva6-linux" / "record.json"
"""Record of the last run."""
MOST_OUTSIDE = 0.01
"""Largest share of osdp's time that hwdp may take outside the device. In FPGA figure 8, hwdp takes nearly no time outside the
device."""


def program() -> Path:
    """Return the simulation with the SMU."""
    named = os.environ.get("TRAPLESS_CVA6")
    if named:
        return Path(named)
    done = subprocess.run([RTL / "run", RTL / "cva6" / "build", "--smu"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise UserError("rtl/cva6/build failed")
    return Path(done.stdout.strip().splitlines()[-1])


def job_disk() -> Path:
    """Return the disk with the benchmark."""
    compiler = f"{build.RISCV.compiler_prefix()}gcc"
    key = content_key(SOURCE, LINUX / "tools/kinds.h", LINUX / "tools/marker.h", Path(ext4.__file__))

    def make(out: Path) -> None:
        flags = ["-O2", "-Wall", "-Wextra", "-std=gnu11", "-static", "-s", "-I", LINUX / "tools"]
        subprocess.run([compiler, *flags, "-o", out / "miss", SOURCE], check=True)
        job.write_disk(job.Job("exec ./miss /data/random.bin", (out / "miss",)), out / "job.img")

    return cached("rtl-job", key, "making the benchmark's disk", make) / "job.img"


def checkpoint(cva6: Path, disks: list[str], kernel: Path) -> Path:
    """Return the folder of the checkpoint at the guest's shell; boot the guest if there is no checkpoint."""
    images = [Path(disk.split(",")[0]) for disk in disks]
    key = content_key(cva6, kernel, FIRMWARE, APPEND, repr([(str(path), path.stat().st_mtime) for path in images]))
    folder = CACHE / "rtl" / "cva6-linux" / key
    with locked(f"rtl-cva6-linux-{key}"):
        if folder.exists():
            return folder
        new = folder.with_name(f"{key}.new")
        shutil.rmtree(new, ignore_errors=True)
        command = [cva6, "--smu", "--kernel", kernel, "--firmware", FIRMWARE, "--append", APPEND, "--memory", MEMORY_MIB,
                   *disk_options(disks), "--max-cycles", MOST_CYCLES, "--checkpoint", new]
        folder.parent.mkdir(parents=True, exist_ok=True)
        with step("booting Linux on the core in RTL (some minutes)"):
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", check=False)
        say(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "the simulation printed no error message")
        if done.returncode or not (new / "model").exists():
            raise UserError(f"the guest did not reach its shell; the end of its output: {done.stdout.strip()[-300:]}")
        new.rename(folder)
    return folder


def disk_options(disks: list[str]) -> list[str]:
    """Return a --disk option for each disk."""
    return [word for disk in disks for word in ("--disk", disk)]


def table(regions: dict[str, dict], count: int) -> str:
    """Return a table with the cycles of a miss of each kind."""
    rows = [("kind", "cycles", "device", "outside", "instructions", "to doorbell", "from CQ entry", "served by walker")]
    for name, region in regions.items():
        outside, misses = region["cycles"] - region["device_cycles"], region["misses"]
        each = [f"{region[name] / misses:.1f}" if misses else "" for name in ("before_device_cycles", "after_device_cycles")]
        rows.append((name, f"{region['cycles'] / count:.1f}", f"{region['device_cycles'] / count:.1f}", f"{outside / count:.1f}",
                     f"{region['instructions'] / count:.1f}", *each, f"{misses} of {count}"))
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def outside(regions: dict[str, dict]) -> float:
    """Return the cycles of a miss that hwdp takes outside the device, as a fraction of osdp's cycles per miss."""
    return (regions["hwdp"]["cycles"] - regions["hwdp"]["device_cycles"]) / regions["osdp"]["cycles"]


@dataclass(frozen=True)
class Request:
    """Options of one measurement."""

    count: int = 1000
    """Number of misses of each kind."""
    kinds: tuple[str, ...] = KINDS
    out: Path | None = None
    """JSON file for the figures."""
    root: Path | None = None
    """Another root image."""
    shell: str | None = None
    """A command to type into the guest's shell instead of measuring."""


def run(request: Request) -> int:
    """Boot or continue from the checkpoint, run, and print the result. Return the exit status."""
    kinds = request.kinds
    if not 0 < request.count <= FILE_MIB * 256 // len(kinds) - 16:
        raise UserError(f"--count must be 1 to {FILE_MIB * 256 // len(kinds) - 16} for {len(kinds)} kinds, not {request.count}: "
                        f"the file has {FILE_MIB} MiB")
    if not FIRMWARE.exists():
        raise UserError("OpenSBI is missing (Debian package opensbi)")
    cva6 = program()
    disks = [f"{request.root or rootfs.image()},snapshot,block=512", f"{job_disk()},snapshot",
             f"{dataset.image(FILE_MIB * ext4.MIB)},snapshot"]
    saved = checkpoint(cva6, disks, build.kernel())
    text = request.shell or f"./miss /data/random.bin {request.count} {' '.join(kinds)}"
    figures = CACHE / "rtl" / "cva6-linux" / f"regions-{os.getpid()}.json"
    command = [cva6, "--smu", "--resume", saved, *disk_options(disks), "--input", f"{text}\\nexit\\n",
               *([] if request.shell else ["--end-at", DONE]), "--json", figures]
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, errors="replace", check=False)
    regions = json.loads(figures.read_text()) if figures.exists() else []
    figures.unlink(missing_ok=True)
    print(done.stdout.replace("\r", ""))
    if done.returncode:
        raise UserError(f"the simulation ended with status {done.returncode}")
    if request.shell:
        return 0
    ended = [region["number"] for region in regions]
    if ended != [NUMBERS[kind] for kind in kinds] or done.stdout.count(" 0 wrong") != len(kinds):
        raise UserError("not every kind ended with the expected output")
    named = dict(zip(kinds, regions, strict=True))
    print(table(named, request.count))
    record = json.dumps({"count": request.count, "regions": named}, indent=1) + "\n"
    for path in (RECORD, request.out):
        if path:
            path.write_text(record)
    if not {"osdp", "hwdp"} <= set(kinds):
        return 0
    share = outside(named)
    print(f"hwdp outside the device: {100 * share:.2f} % of osdp's cycles (at most {100 * MOST_OUTSIDE:.0f} %)")
    return int(share > MOST_OUTSIDE)
