# SPDX-License-Identifier: Apache-2.0
"""Guests go on from checkpoints: the same bytes, the same cycles, as often as one likes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from lab.images import dataset, ext4
from lab.runner import guest as guests
from lab.runner import job as jobs

pytestmark = pytest.mark.guest


@pytest.mark.parametrize("ssd", ["optane-m2", "tlc"])
def test_many_runs_start_from_one_boot(program: Path, patched: Path, root: Path, tmp_path: Path, ssd: str) -> None:
    disk, data, place = tmp_path / "job.img", dataset.image(16 * ext4.MIB), tmp_path / "checkpoint"
    jobs.write_disk(jobs.command_job(["mapsum", "-t", "4", "-o", "shuffle", "/data/random.bin"], "hwdp"), disk)
    guest = guests.Guest(patched, root, data)

    def machine(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command, *rest = map(str, arguments)
        done = subprocess.run([program, command, "--ssd", ssd, *rest], text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done

    disks = [part for image in (root, disk, data) for part in ("--disk", f"{image},snapshot")]
    whole = machine("run", "--kernel", patched, "--append", guest.command_line(), *disks)
    before = machine("run", "--kernel", patched, "--append", guest.command_line(), *disks,
                     "--checkpoint", place, "--checkpoint-at", "milestone:1")
    records = []
    for number in range(2):
        record = tmp_path / f"{number}.json"
        after = machine("resume", place, *disks, "--json", record)
        assert before.stdout + after.stdout == whole.stdout
        stats = json.loads(record.read_text())
        records.append({key: stats[key] for key in ("sim_cycles", "instructions_by_mode", "smu_counters")})
    assert records[0] == records[1]
    assert records[0]["smu_counters"]["installed"] == 16 * ext4.MIB // 4096
    # Times of the profile may change, its sizes not.
    faster = tmp_path / "faster.json"
    machine("resume", place, *disks, "--set", "ssd.read_us=10", "--json", faster)
    assert json.loads(faster.read_text())["sim_cycles"] < records[0]["sim_cycles"]
    refused = subprocess.run([program, "resume", place, *disks, "--harts", "2"], text=True, capture_output=True)
    assert refused.returncode == 2 and "machine.harts = 4, not 2" in refused.stderr and refused.stderr.count("\n") == 1
