# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev stc`: runs linux/checks/stc-check, the guest test of the software translation cache, on self-checking kernels.

It runs on the machine with the init of linux/checks, and as a job on QEMU, whose processors run truly in parallel. KCSAN finds
races in every Linux 6.12 (its maple trees are read while they are written). Only races in which a function of the cache takes
part count.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from trapless.base.cache import CACHE
from trapless.base.outputs import output_folder
from trapless.base.ui import UserError, step
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import dataset, ext4, rootfs
from trapless.guest.job import Job

from dev.checks import guest
from dev.soak import REPORT

SERIES = ("stc",)
BOTH = ("hwdp", "stc")
"""Both series: hardware paging in the same kernel."""
KERNELS = {"plain": ("huge.config",), "debug": ("huge.config", "debug.config"), "kcsan": ("huge.config", "kcsan.config")}
CHECKS = {"stc": "stc-check.config", "hwdp": "hwdp-kunit.config"}
"""Configuration fragment with the checks of each series."""
DESIGNS = ("", "mm,lines=1", "mm,upper,lines=64,ways=2", "mm,entry", "vma", "vma,lines=16,entry,folded,from-top", "vma,ways=2",
           "cpu", "cpu,ways=2", "cpu,lines=2,entry,folded", "off")
"""Values of the boot parameter stc=. They differ in what a cache line is, who owns it, and who empties it; "" is the default."""
PLACES = ("machine", "riscv64", "x86_64")
"""Where a check runs: on the machine, or on QEMU with this architecture."""
OURS = re.compile(r"\b(stc_\w|fault_walk)")
"""Functions that the series adds, including those that inline its code. KCSAN names both sides of a race."""


@dataclass(frozen=True)
class Check:
    """One boot of stc-check."""

    place: str = "machine"
    kernel: str | Path = "plain"
    """Name in KERNELS, or an image."""
    stock: bool = False
    """Whether the kernel is without the series."""
    series: tuple[str, ...] = SERIES
    design: str = ""
    factor: int = 1
    """Value of -n of stc-check."""
    seed: int = 1
    names: tuple[str, ...] = ()
    append: str = ""
    """Text to add to the kernel's command line."""
    cpu: str | None = None
    """QEMU's -cpu."""
    settings: tuple[str, ...] = ()
    """Single values of the machine's profile."""

    def arch(self) -> build.Arch:
        """Return the architecture of the processor."""
        return build.RISCV if self.place == "machine" else {arch.machine: arch for arch in build.ARCHS.values()}[self.place]

    def image(self) -> Path:
        """Return the kernel of this check, built if it does not exist."""
        if isinstance(self.kernel, Path):
            return self.kernel
        return build.kernel(self.stock, arch=self.arch(), configs=self.configs(), series=self.series)

    def configs(self) -> tuple[str, ...]:
        """Return the configuration fragments of the kernel."""
        assert isinstance(self.kernel, str)
        return KERNELS[self.kernel] + (() if self.stock else tuple(CHECKS[name] for name in self.series))

    def options(self) -> tuple[str, ...]:
        """Return the options of stc-check. The time limit is long, because a test with many steps takes long."""
        return "-n", str(self.factor), "-r", str(self.seed), "-t", str(120 * max(1, self.factor))

    def boot_words(self) -> str:
        """Return the text to add to the kernel's command line."""
        preempted = "" if self.stock else "preempt=full"
        return " ".join(part for part in (f"stc={self.design}" if self.design else "", preempted, self.append) if part)


@dataclass(frozen=True)
class Outcome:
    """Result of a boot."""

    said: str
    """Output of stc-check. The kernel's messages are in it, or in `messages`."""
    messages: str = ""

    def faults(self) -> list[str]:
        """Return all errors, one line each."""
        found = [line for line in self.said.splitlines() if line.startswith("FAIL ")]
        if not found and not re.search(r"^[1-9]\d* passed, 0 failed$", self.said, re.MULTILINE):
            found.append("the test did not end")
        found += [f"kernel: {line.strip()}" for line in self.messages.splitlines() if REPORT.search(line)]
        return [line for line in found if "KCSAN" not in line or OURS.search(line)]


def run_check(check: Check) -> Outcome:
    """Boot and test."""
    image = check.image()
    if check.place == "machine":
        result = guest.run(guest.Boot(image, "stc-check", check.options(), check.names, check.settings, append=check.boot_words(),
                                      max_seconds=1e6))
        return Outcome(result.console, "" if result.finished else "the guest did not end normally (kernel panic?)")
    arch = check.arch()
    program = build.guest_checks(arch) / "stc-check"
    # Not read from the console: QEMU's serial port can lose the last lines.
    job = Job(f"./{program.name} {' '.join((*check.options(), '/data', *check.names))} >/job/out/checks; dmesg >/job/out/dmesg",
              (program,))
    root = guests.Guest(image, rootfs.image(arch), dataset.image(64 * ext4.MIB), arch=arch, cpu=check.cpu,
                        append=f"{check.boot_words()} log_buf_len=4M", threads=True, max_seconds=36000)
    folder = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        guests.run_on_qemu(root, job, folder)
        said, messages = ((folder / name).read_text(errors="replace") for name in ("checks", "dmesg"))
    finally:
        shutil.rmtree(folder)
    return Outcome(said, messages)


def run(check: Check, designs: tuple[str, ...], out: Path) -> int:
    """Test each design and print the results. Return the exit status."""
    if check.kernel == "kcsan" and check.place != "x86_64":
        raise UserError("--kernel kcsan: Linux supports KCSAN only on x86_64: give --on x86_64")
    output_folder(out)
    passed = failed = 0
    for design in designs:
        with step(f"stc={design or '(default)'}"):
            outcome = run_check(replace(check, design=design))
        (out / f"{design or 'default'}.txt").write_text(outcome.said + outcome.messages)
        found = outcome.faults()
        for line in found:
            print(f"FAIL stc={design or '(default)'}: {line}")
        passed, failed = passed + (not found), failed + bool(found)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
