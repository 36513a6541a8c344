# SPDX-License-Identifier: Apache-2.0
"""The table of workloads, and how they are recorded: completely, once, and with a one-line message if recording fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from trapless.base import cache
from trapless.base.paths import ROOT
from trapless.base.ui import UserError
from trapless.guest import build
from trapless.pagesim.workloads import record
from trapless.pagesim.workloads.catalogue import WORKLOADS, Workload

ACCESSES = 2_000_000
XZ = replace(WORKLOADS["xz"], skip=1_000_000)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAPLESS_PAGESIM", str(build.pagesim()))
    for module in (cache, record):
        monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(record, "LOGS", tmp_path / "cache" / "logs")


def only(monkeypatch: pytest.MonkeyPatch, *workloads: Workload) -> None:
    monkeypatch.setattr(record, "WORKLOADS", {workload.name: workload for workload in workloads})


def test_the_table_is_whole() -> None:
    used = set()
    for name, workload in WORKLOADS.items():
        assert workload.name == name and re.fullmatch("(chains-)?[a-z]+", name)
        assert workload.packages or workload.pypi
        assert workload.paper and workload.skip > 0
        commands = [*workload.prepare, workload.command]
        text = " ".join(word for command in commands for word in command)
        assert set(re.findall(r"{programs}/([\w.]+)", text)) == set(workload.files), name
        assert ("{inputs}" in text) == bool(workload.prepare), name
        used |= set(workload.files)
    assert len({workload.paper for workload in WORKLOADS.values()}) == len(WORKLOADS)
    intensive = {name for name, workload in WORKLOADS.items() if workload.intensive}
    assert intensive == {"pagerank", "randomwalk", "chains-pagerank", "chains-randomwalk"}
    assert {path.name for path in record.PROGRAMS.iterdir() if path.is_file()} == used


def test_python_packages_are_pinned() -> None:
    lines = [line for line in record.REQUIREMENTS.read_text().splitlines() if not line.startswith("#")]
    assert lines and all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)


def test_recorded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    only(monkeypatch, XZ)
    out = tmp_path / "out"
    assert record.run(["xz"], ACCESSES, out, 1) == 0
    shown = capfd.readouterr()
    assert "xz of SPEC CPU 2017" in shown.out
    summary = json.loads((out / "xz.trace.json").read_text())
    assert ACCESSES <= summary["accesses"] <= ACCESSES + 10
    assert sorted(path.name for path in out.iterdir()) == ["xz.trace", "xz.trace.json", "xz.trace.key"]
    first = (out / "xz.trace").stat().st_mtime_ns

    assert record.run([], ACCESSES, out, 1) == 0
    shown = capfd.readouterr()
    assert "recorded already" in shown.err and "xz of SPEC CPU 2017" in shown.out
    assert (out / "xz.trace").stat().st_mtime_ns == first

    assert record.outdated(["xz", "other"], ACCESSES, out) == []
    assert record.outdated(["xz"], ACCESSES + 1, out) == ["xz"]
    assert record.outdated(["xz"], ACCESSES, tmp_path) == [], "a trace that does not exist is not outdated"

    # The same bytes are recorded again, from the existing inputs and in another folder.
    content = (out / "xz.trace").read_bytes()
    monkeypatch.chdir(out)
    (out / "xz.trace.key").unlink()
    assert record.run([], ACCESSES, out, 1) == 0
    assert "preparing" not in capfd.readouterr().err
    assert (out / "xz.trace").stat().st_mtime_ns != first
    assert (out / "xz.trace").read_bytes() == content


@pytest.mark.parametrize("other", [replace(XZ, skip=2), replace(XZ, command=("xz", "-1")), replace(XZ, prepare=()),
                                   replace(XZ, env={"A": "b"}), replace(XZ, files=("wrf.py",)), replace(XZ, pypi=True)])
def test_key_follows_what_the_trace_depends_on(tmp_path: Path, other: Workload) -> None:
    versions = {"xz-utils": "1", "valgrind": "1"}
    key = record.plan(XZ, ACCESSES, versions, tmp_path).key
    assert record.plan(replace(XZ, paper="x"), ACCESSES, versions, tmp_path).key == key
    others = [record.plan(other, ACCESSES, versions, tmp_path), record.plan(XZ, 1, versions, tmp_path),
              record.plan(XZ, ACCESSES, versions | {"xz-utils": "2"}, tmp_path),
              record.plan(XZ, ACCESSES, versions | {"valgrind": "2"}, tmp_path)]
    assert key not in {plan.key for plan in others}


def test_one_that_ends_too_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    """There is a one-line message, no trace is left, and the others are recorded."""
    only(monkeypatch, Workload("short", "nothing", ("coreutils",), ("true",), skip=1000), XZ)
    assert record.run([], ACCESSES, tmp_path, 2) == 1
    shown = capfd.readouterr()
    last = shown.err.strip().splitlines()[-1]
    assert re.search(r"short: the program ended after [\d,]+ of 2,000,000 accesses", last)
    assert not list(tmp_path.glob("short.trace*"))
    assert "xz" in shown.out and (tmp_path / "xz.trace").exists()


def test_the_recorders_complaint_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              capfd: pytest.CaptureFixture) -> None:
    only(monkeypatch, Workload("absent", "nothing", ("coreutils",), ("no-such-program",), skip=0))
    assert record.run([], ACCESSES, tmp_path, 1) == 1
    assert "absent: no-such-program: no such program" in capfd.readouterr().err.strip().splitlines()[-1]


def test_unknown_workload(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such workload: nothing; there are pagerank"):
        record.run(["xz", "nothing"], ACCESSES, tmp_path, 1)


def test_a_package_that_apt_get_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "run_tool", lambda *_, **__: None)
    with pytest.raises(UserError, match="not installed by apt-get: no-such-package"):
        record.install({"coreutils", "no-such-package"})


def test_stopped_it_ends_its_recorders(tmp_path: Path) -> None:
    recorder = tmp_path / "recorder"
    recorder.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid.part; mv {tmp_path}/pid.part {tmp_path}/pid; exec sleep 600\n")
    recorder.chmod(0o755)
    environment = os.environ | {"TRAPLESS_PAGESIM": str(recorder), "TRAPLESS_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "trapless.cli", "dev", "workloads", "xz", "--out", tmp_path / "out"]
    with subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 120
            while not (tmp_path / "pid").exists():
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 143
        finally:
            process.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert not list((tmp_path / "out").iterdir())


def test_trace_of_any_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trapless.cli", "trace", "--skip", "1k", "--limit", "10k", "--out", tmp_path / "t",
               "--", "true"]
    subprocess.run(command, check=True, cwd=ROOT)
    assert 10_000 <= json.loads((tmp_path / "t.json").read_text())["accesses"] < 10_010
