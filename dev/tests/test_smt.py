# SPDX-License-Identifier: Apache-2.0
"""Linux knows which harts are threads of one core."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.guest import boot as guests

pytestmark = [pytest.mark.guest, pytest.mark.series]


@pytest.mark.parametrize(("harts", "threads"), [(4, 2), (8, 4)])
def test_tasks_take_cores_before_threads(boot: Callable[..., guests.Outcome], patched: Path, tmp_path: Path, harts: int,
                                         threads: int) -> None:
    """There are as many threads as cores: each gets a core, except in a round in which the kernel itself keeps one busy."""
    program = tmp_path / "spread_threads"
    subprocess.run(["riscv64-linux-gnu-gcc", "-O1", "-static", "-pthread", "-o", program,
                    Path(__file__).with_name("spread_threads.c")], check=True)
    outcome = boot(patched, f"cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list; ./spread_threads {threads} 12",
                   inputs=(program,), settings=(f"machine.harts={harts}", "machine.threads_per_core=2"))
    assert outcome.status == 0, outcome.console
    siblings, *rounds = outcome.console.splitlines()[-13:]
    assert siblings == "0-1"
    shared = [line for line in rounds if len({int(cpu) // 2 for cpu in line.split()}) < threads]
    assert len(rounds) == 12 and len(shared) <= 1, outcome.console
