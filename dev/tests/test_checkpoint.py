# SPDX-License-Identifier: Apache-2.0
"""Guests continue from checkpoints: the same bytes, the same cycles, any number of times."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from trapless.base import cache
from trapless.guest import boot as guests
from trapless.guest import job as jobs
from trapless.guest.images import dataset, ext4

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
    # Times of the profile may change; its sizes may not. Whole runs do not compare: one may end a tick of the kernel later.
    faster = tmp_path / "faster.json"
    machine("resume", place, *disks, "--set", "ssd.read_us=10", "--json", faster)
    quick, slow = (json.loads(path.read_text())["rois"][0]["hw_miss"]["mean_us"] for path in (faster, tmp_path / "0.json"))
    assert quick < slow - 10
    refused = subprocess.run([program, "resume", place, *disks, "--harts", "2"], text=True, capture_output=True)
    assert refused.returncode == 2 and "machine.harts = 4, not 2" in refused.stderr and refused.stderr.count("\n") == 1


MAPSUM = jobs.command_job(["mapsum", "-t", "2", "-o", "shuffle", "/data/random.bin"], "hwdp")


@pytest.fixture
def share(program: Path, patched: Path, root: Path, tmp_path: Path,
          monkeypatch: pytest.MonkeyPatch) -> Callable[..., guests.Outcome]:
    """Return a function that runs jobs which share a boot, in a separate cache: (cache's name, job, changes of the guest) ->
    outcome."""
    guest = guests.Guest(patched, root, dataset.image(16 * ext4.MIB), profile="server", memory="256M")

    def run(place: str, job: jobs.Job, shared: bool = True, **changes: object) -> guests.Outcome:
        monkeypatch.setattr(cache, "CACHE", tmp_path / place)
        return guests.run_on_machine(program, replace(guest, **changes), job, from_checkpoint=shared)

    return run


def what(outcome: guests.Outcome) -> tuple:
    """Return everything of a run that does not depend on the host."""
    kept = ("sim_cycles", "instructions_by_mode", "smu_counters", "watch")
    return outcome.console, *(outcome.stats[key] for key in kept), [
        {key: value for key, value in region.items() if key != "host_seconds"} for region in outcome.stats["rois"]]


def test_a_run_does_not_depend_on_whom_it_shares_a_boot_with(share: Callable[..., guests.Outcome], tmp_path: Path) -> None:
    """Whichever run boots first: each run finds its own disks, and is the same to the cycle."""
    other = jobs.Job("cat /job/in/* | md5sum; echo $0", (Path(__file__),))
    first = share("a", MAPSUM)
    assert share("a", other).status == 0
    again = share("a", MAPSUM, settings=("smu.cam_cycles=9",)), share("a", MAPSUM)
    assert "/job/cmd" in share("b", other).console
    assert what(share("b", MAPSUM)) == what(first) == what(again[1]) != what(again[0])
    boots = list((tmp_path / "a" / "checkpoint").iterdir())
    assert len(boots) == 1, "times do not need another boot"
    share("a", MAPSUM, settings=("smu.pmshr_entries=2",))
    share("a", MAPSUM, append="hwdp.ring=512")
    assert len(list((tmp_path / "a" / "checkpoint").iterdir())) == 3, "sizes and the kernel's command line do"


def test_a_shared_boot_changes_no_figure_much(share: Callable[..., guests.Outcome]) -> None:
    """A run after a shared boot has the same misses as a run after a separate boot, and takes nearly the same time. It has one
    thread, because two threads may or may not share a core."""
    job = jobs.command_job(["mapsum", "-t", "1", "/data/random.bin"], "hwdp")
    own, shared = (share("a", job, shared).stats["rois"][0] for shared in (False, True))
    assert [watch["hw_misses"] for watch in own["watch"]] == [watch["hw_misses"] for watch in shared["watch"]] == [4096]
    assert shared["instructions"]["user"] == pytest.approx(own["instructions"]["user"], rel=1e-3)
    assert shared["sim_seconds"] == pytest.approx(own["sim_seconds"], rel=0.02)
    for time in ("device_mean_us", "nondevice_mean_us"):
        assert shared["hw_miss"][time] == pytest.approx(own["hw_miss"][time], rel=0.02)


def test_a_boot_that_fails_is_the_guests_end(share: Callable[..., guests.Outcome]) -> None:
    with pytest.raises(guests.GuestError, match="crashed or rebooted.*Kernel panic") as caught:
        share("a", MAPSUM, append="init=/nothing rootdelay=0")
    assert caught.value.how == guests.CRASHED
