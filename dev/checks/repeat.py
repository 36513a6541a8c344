# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev repeat`: repeats a run many times with detailed timing. Cycles, statistics and bytes must be identical.

Every second run shares the host with as many busy processes as the host has processors.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from trapless.base.ui import UserError, say, step
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest import job as jobs
from trapless.guest.images import dataset, ext4, rootfs

RUNS = 20
JOB = ["mapsum", "-t", "4", "-o", "shuffle", "/data/random.bin"]
# Keys of a record that describe the host.
_HOST = {"host_seconds", "host_peak_bytes", "mips"}


def run(runs: int) -> int:
    """Run, compare, and print how many runs were identical. Return 0 if all were."""
    digests = []
    program, data = build.machine(), dataset.image(64 * ext4.MIB)
    guest = guests.Guest(build.kernel(), rootfs.image(), data, profile="server", harts=4, memory="512M", detail="milestone:1")
    for number in range(runs):
        loaded = number % 2 == 1
        with step(f"run {number + 1} of {runs}{', host busy' if loaded else ''}"), _busy_host(loaded):
            outcome = guests.run_on_machine(program, guest, jobs.command_job(JOB, "hwdp"))
        if outcome.status != 0:
            raise UserError(f"the job ended with status {outcome.status}")
        digests.append(_digest(outcome))
    same = digests.count(digests[0])
    say(f"{same} of {runs} runs identical: {outcome.stats['sim_cycles']} cycles, {outcome.stats['instructions']} instructions, "
        f"{outcome.stats['smu_counters']['installed']} pages by hardware")
    return 0 if same == runs else 1


def _digest(outcome: guests.Outcome) -> str:
    """Return a hash of all results of a run except host times."""
    known = json.dumps([outcome.status, outcome.console, _without_host(outcome.stats)], sort_keys=True)
    return hashlib.sha256(known.encode()).hexdigest()


def _without_host(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_host(inner) for key, inner in value.items() if key not in _HOST}
    return [_without_host(inner) for inner in value] if isinstance(value, list) else value


@contextmanager
def _busy_host(busy: bool) -> Iterator[None]:
    """Keep every processor of the host busy with one process each, if `busy`."""
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)] if busy else []
    try:
        yield
    finally:
        for process in load:
            process.kill()
            process.wait()
