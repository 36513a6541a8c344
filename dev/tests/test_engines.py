# SPDX-License-Identifier: Apache-2.0
"""The translator gives the same results as the interpreter, only faster: the same registers, cycles and memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from trapless.base.paths import MACHINE
from trapless.guest import build

from dev.checks import repeat, trust

pytestmark = pytest.mark.guest


@pytest.mark.parametrize("timing", [(), ("--profile", "server", "--set", "machine.harts=2", "--detail", "start",
                                           "--max-cycles", "450000000")], ids=["functional", "detailed"])
def test_linux_runs_equally_on_both_engines(timing: tuple[str, ...], tmp_path: Path) -> None:
    command = trust.command("lockstep", *trust.linux(tmp_path), *timing)
    done = subprocess.run(command, cwd=MACHINE, env=os.environ | build.cargo_env(), text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"equal ({'MaxCycle' if timing else 'PowerOff'})" in done.stdout


def test_detailed_timing_repeats_to_the_cycle() -> None:
    assert repeat.run(2) == 0
