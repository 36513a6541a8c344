# SPDX-License-Identifier: Apache-2.0
"""The translator is the interpreter, faster: the same guest on both has the same registers, cycles and memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab import build
from lab.checks import repeat
from lab.images import dataset, ext4
from lab.paths import MACHINE
from lab.runner import guest as guests
from lab.runner import job as jobs

pytestmark = pytest.mark.guest


def lockstep(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the comparison; it says where two engines differ."""
    # The profile of the tests: the crates are built already, and arithmetic overflows are caught.
    command = ["cargo", "run", "--locked", "-q", "-p", "trapless-difftest", "--bin", "lockstep", "--", *map(str, arguments)]
    return subprocess.run(command, cwd=MACHINE, env=os.environ | build.cargo_env(), text=True, capture_output=True)


@pytest.mark.parametrize("timing", [(), ("--profile", "server", "--set", "machine.harts=2", "--detail", "start",
                                           "--max-cycles", "450000000")], ids=["functional", "detailed"])
def test_linux_runs_equally_on_both_engines(timing: tuple[str, ...], patched: Path, root: Path, tmp_path: Path) -> None:
    disk, data = tmp_path / "job.img", dataset.image(16 * ext4.MIB)
    jobs.write_disk(jobs.command_job(["mapsum", "-t", "4", "-o", "shuffle", "/data/random.bin"], "hwdp"), disk)
    guest = guests.Guest(patched, root, data)
    done = lockstep(patched, "--append", guest.command_line(), "--disk", root, "--disk", disk, "--disk", data,
                    *timing)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"equal ({'MaxCycle' if timing else 'PowerOff'})" in done.stdout



def test_detailed_timing_repeats_to_the_cycle() -> None:
    assert repeat.run(2) == 0
