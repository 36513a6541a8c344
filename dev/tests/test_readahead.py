# SPDX-License-Identifier: Apache-2.0
"""Without a kind, the guest's readahead is Linux's default; `run` reports the effect of a kind or of --readahead. Also faults of
drives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.base.ui import UserError
from trapless.cli import __main__ as cli
from trapless.guest import boot as guests
from trapless.guest import run
from trapless.guest.images import dataset, rootfs
from trapless.guest.job import KINDS
from trapless.profile import profiling
from trapless.sweeps import point
from trapless.sweeps.grid import Grid

from dev.tests.fake_lab import Fake
from studies.costs import readahead

Call = Callable[..., tuple[int, str]]


def test_stock_means_stock() -> None:
    assert run.readahead_of(None, None) is None
    assert {run.readahead_of(kind, None) for kind in KINDS} == {0}
    assert [run.readahead_of(kind, 512) for kind in (None, "hwdp")] == [512, 512]
    assert run.readahead_of(None, 0) == 0
    for odd in (-4, 6):
        with pytest.raises(UserError, match=f"^--readahead must be 0 .off. or a positive multiple of 4 KB, not {odd}"):
            run.readahead_of(None, odd)


def test_what_experiments_look_at_is_not_read_ahead() -> None:
    """Experiments make their guests themselves, with kinds or without."""
    guest = guests.Guest(Path("K"), Path("R"))
    assert guest.readahead == 0 and " trapless.readahead=0" in guest.command_line()


def test_a_run_says_its_readahead() -> None:
    def said(had: int, **options: object) -> str:
        [line] = run.what_was(run.Request(["true"], data="64M", **options), guests.Outcome(0, readahead=had))
        return line

    assert said(128) == "readahead of /data at the end: 128 KB, Linux's own"
    assert said(8) == "readahead of /data at the end: 8 KB, changed by the command: Linux's own is 128 KB"
    assert said(0, kind="hwdp") == "readahead of /data at the end: 0 KB, off with --kind hwdp (--readahead KB)"
    assert said(64, kind="osdp", readahead=64) == "readahead of /data at the end: 64 KB, as --readahead says"
    assert said(8, kind="osdp") == (
        "readahead of /data at the end: 8 KB, changed from 0 KB, by the command or with a reset of the drive")
    assert run.what_was(run.Request(["true"]), guests.Outcome(0)) == []
    request = run.Request(["true"], data="64M")
    assert ("readahead of /data", "Linux's own") in profiling._settings(request)


def test_faults_are_the_data_disks() -> None:
    assert run.faults_of(("hang,op=read", "late,by=1,disk=2"), True) == ("hang,op=read,disk=3", "late,by=1,disk=2")
    assert run.faults_of(("abort,disk=1",), False) == ("abort,disk=1",)
    for fault in ("hang", "hang,disk=3"):
        with pytest.raises(UserError, match=f"^--fault {fault} strikes the data disk: give --data"):
            run.faults_of((fault,), False)
    outcome = guests.Outcome(0, {"faults": [{"fault": "hang,disk=3", "struck": 2}]})
    assert run.what_was(run.Request(["true"]), outcome) == ["--fault hang,disk=3: struck 2 commands"]


@pytest.mark.parametrize(("arguments", "line"), [
    (["--readahead", "6"], "--readahead must be 0 (off) or a positive multiple of 4 KB, not 6"),
    (["--fault", "hang"], "--fault hang strikes the data disk: give --data"),
    (["--on", "qemu", "--data", "64M", "--fault", "hang"], "--fault hang does not work with --on qemu: leave one of them out"),
    (["--elf", "x", "--fault", "hang"], "--fault applies only to guests: leave it out with --elf"),
    (["--elf", "x", "--readahead", "0"], "--readahead applies only to guests: leave it out with --elf"),
    (["--elf", "x", "--cflags", "-O3"], "--cflags applies only to guests: leave it out with --elf"),
])
@pytest.mark.parametrize("command", ["run", "profile"])
def test_refusals_come_before_anything_is_built(command: str, arguments: list[str], line: str, monkeypatch: pytest.MonkeyPatch,
                                                tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if command == "profile" and "qemu" in arguments:
        line = "profile does not work with --on qemu: leave --on out"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.signals, "listen", lambda: None)
    monkeypatch.setattr(rootfs, "image", lambda *_: pytest.fail("goes on"))
    monkeypatch.setattr("sys.argv", ["trapless", command, *arguments, *([] if "--elf" in arguments else ["--", "true"])])
    assert cli.main() == 1
    assert f"trapless: {line}" in capfd.readouterr().err




def test_points_of_a_sweep_have_them(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "image", lambda size: fake.folder / "root.img")

    def guest(**values: object) -> guests.Guest:
        made = Grid({"command": "fake ok", "data": "64M", **values}, folder=fake.folder)
        point.check(made)
        return point.run_of(made, {}).guest

    assert [guest().readahead, guest(kind="hwdp").readahead, guest(kind="hwdp", readahead=64).readahead] == [None, 0, 64]
    assert guest(fault=["hang,op=read"]).faults == ("hang,op=read,disk=3",)
    fio = point.run_of(Grid({"workload": "fio", "fault": ["hang"]}, folder=fake.folder), {}).guest
    assert (fio.readahead, fio.faults) == (None, ("hang,disk=3",))
    with pytest.raises(UserError, match="--cflags: fake is not compiled"):
        guest(cflags="-O3")
    with pytest.raises(UserError, match="--readahead must be 0 .off. or a positive multiple of 4 KB, not 3"):
        guest(readahead=3)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs `trapless run` in this process: status, and output on stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.signals, "listen", lambda: None)

    def call(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["trapless", "run", *arguments])
        status = cli.main()
        return status, capfd.readouterr().err

    return call


def faults_of_reading(call: Call, *options: str) -> tuple[str, int]:
    """Return what a run prints about its readahead, and how many major faults a sequential reader of 16 MiB has."""
    status, said = call("--data", "16M", "--in", str(readahead.program()), "--out", "o", *options, "--", "./reads", "sequential",
                        "/data/random.bin")
    assert status == 0, said
    [line] = [line for line in said.splitlines() if "readahead" in line]
    return line, json.loads(Path("o/figures.json").read_text())["major_faults"]


@pytest.mark.guest
def test_readahead_acts(call: Call) -> None:
    """By default, Linux reads 16 MiB with few faults. With a kind, or without readahead, each of 4,096 pages is a fault."""
    line, faults = faults_of_reading(call)
    assert line == "trapless: readahead of /data at the end: 128 KB, Linux's own" and faults <= 4096 // 16
    line, faults = faults_of_reading(call, "--readahead", "0")
    assert line == "trapless: readahead of /data at the end: 0 KB, as --readahead says" and faults >= 4096
    line, faults = faults_of_reading(call, "--kind", "osdp")
    assert "0 KB, off with --kind osdp" in line and faults >= 4096
    line, faults = faults_of_reading(call, "--kind", "osdp", "--readahead", "64")
    assert line == "trapless: readahead of /data at the end: 64 KB, as --readahead says" and faults <= 4096 // 8


@pytest.mark.guest
@pytest.mark.parametrize("on", ["machine", "qemu"])
def test_what_a_command_changes_is_not_linux_own(call: Call, on: str) -> None:
    def said(command: str) -> str:
        status, text = call("--on", on, "--data", "16M", "--", "sh", "-c", command)
        assert status == 0, text
        [line] = [line for line in text.splitlines() if "readahead of" in line]
        return line.removeprefix("trapless: readahead of /data at the end: ")

    assert said("true") == "128 KB, Linux's own"
    change = "disk=$(grep ' /data ' /proc/mounts | cut -d' ' -f1); echo 8 > /sys/block/${disk#/dev/}/queue/read_ahead_kb"
    assert said(change) == "8 KB, changed by the command: Linux's own is 128 KB"


@pytest.mark.guest
def test_a_fault_strikes_through_run(call: Call) -> None:
    status, said = call("--data", "16M", "--fault", "media-error,op=read,skip=60", "--", "sh", "-c",
                        "cat /data/random.bin >/dev/null")
    assert status == 1
    assert re.search(r"--fault media-error,op=read,skip=60,disk=3: struck [1-9]\d* commands", said)
