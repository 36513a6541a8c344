# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev difftest|lockstep|fuzz`: compares the machine with QEMU, compares the machine's engines with each other, and
feeds random input to all code that a guest or a file can reach (docs/explanation/difftest.md)."""
from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from trapless.base.paths import MACHINE
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest import job as jobs
from trapless.guest.images import dataset, ext4, rootfs

# Crate of each program.
CRATES = {"difftest": "trapless-difftest", "lockstep": "trapless-difftest", "fuzz": "trapless-fuzz"}
JOB = ["mapsum", "-t", "4", "-o", "shuffle", "/data/random.bin"]


def command(program: str, *arguments: str | Path) -> list[str]:
    """Return the command that runs a program. It uses the tests' profile: its crates are built already, and it catches
    overflows."""
    return ["cargo", "run", "--locked", "-q", "--manifest-path", str(MACHINE / "Cargo.toml"), "-p", CRATES[program],
            "--bin", program, "--", *map(str, arguments)]


def run(program: str, arguments: Sequence[str]) -> int:
    """Run a program. Without arguments, lockstep compares a boot of Linux with a small job."""
    with tempfile.TemporaryDirectory() as scratch:
        if program == "lockstep" and not arguments:
            arguments = linux(Path(scratch))
        done = subprocess.run(command(program, *arguments), env=os.environ | build.cargo_env(), check=False)
        return done.returncode


def linux(scratch: Path) -> list[str]:
    """Return lockstep's arguments for a whole run of Linux: boot, a job that pages through a file, power off."""
    disk, data = scratch / "job.img", dataset.image(16 * ext4.MIB)
    jobs.write_disk(jobs.command_job(JOB, "hwdp"), disk)
    kernel, root = build.kernel(), rootfs.image()
    guest = guests.Guest(kernel, root, data)
    disks = [part for path in (root, disk, data) for part in ("--disk", str(path))]
    return [str(kernel), "--append", guest.command_line(), *disks]
