# SPDX-License-Identifier: Apache-2.0
"""Compares miss-ratio curves with libCacheSim, request by request, and checks what the command line refuses."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from pathlib import Path

import pytest
from trapless.base.paths import ROOT
from trapless.guest import build

from dev import mrc


def call(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(build.pagesim()), "mrc", *map(str, words)], capture_output=True, text=True)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    return mrc.write_objects(tmp_path / "mixed.oracleGeneral", mrc.made(1, 5000)["mixed"])


@pytest.mark.parametrize("name", mrc.made(1, 10))
def test_every_request_is_as_in_libcachesim(name: str, tmp_path: Path) -> None:
    file = mrc.write_objects(tmp_path / f"{name}.oracleGeneral", mrc.made(7)[name])
    found = list(mrc.differences(file))
    assert len(found) == len(mrc.POLICIES) * len(mrc.SIZES)
    assert [each for each in found if each[3] is not None] == []


def test_a_difference_is_found(tmp_path: Path) -> None:
    """A fake simulator returns LRU's hits for FIFO."""
    fake = tmp_path / "fake"
    fake.write_text(f'#!/bin/sh\nexec {build.pagesim()} $(echo "$@" | sed s/fifo/lru/)\n')
    fake.chmod(0o755)
    file = mrc.write_objects(tmp_path / "a.oracleGeneral", mrc.made(1, 3000)["zipf"])
    (found,) = mrc.differences(file, ["fifo"], [100], program=fake)
    assert found[3] is not None


def test_sums_are_those_of_the_requests(mixed: Path, tmp_path: Path) -> None:
    files = ["--json", tmp_path / "a.json", "--out", tmp_path / "a.csv"]
    done = call(mixed, "--policy", "lru,arc,min", "--sizes", "20:500:4", *files)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (found,) = json.loads((tmp_path / "a.json").read_text())
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert found["requests"] == 5000 and len(rows) == 3 * 4
    for curve in found["curves"]:
        for point in curve["points"]:
            call(mixed, "--policy", curve["policy"], "--sizes", point["size"], "--requests", tmp_path / "each")
            assert (tmp_path / "each").read_text().count("0") == point["misses"]
            (row,) = [row for row in rows if (row["policy"], row["size_pages"]) == (curve["policy"], str(point["size"]))]
            assert (row["misses"], row["requests"]) == (str(point["misses"]), "5000")


@pytest.mark.parametrize(("options", "reason"), [
    (["--policy", "lur"], "policy must be one of lru, fifo, "),
    (["--sizes", "0"], "'0' is not a number from 1 to 1000000000"),
    (["--sizes", "9:1:3"], "LOW must not exceed HIGH"),
    (["--sample", "0"], "the sampling rate must be"),
    (["--requests", "x"], "--requests needs one trace, one --policy and one of --sizes"),
    (["--format", "trace"], "mixed.oracleGeneral: "),
    (["--out", "/no/such/folder/x"], "cannot write /no/such/folder/x"),
])
def test_mistakes_are_refused(mixed: Path, options: list[str], reason: str) -> None:
    done = call(mixed, *options)
    assert done.returncode == 2 and reason in done.stderr and done.stdout == ""


def test_a_file_that_is_cut_off(mixed: Path) -> None:
    mixed.write_bytes(mixed.read_bytes()[:100])
    done = call(mixed)
    assert done.returncode == 2 and "byte 96: 4 bytes of a record of 24" in done.stderr and done.stdout == ""
    mixed.write_bytes(b"")
    assert "has no memory access" in call(mixed).stderr


def test_the_reference_is_pinned() -> None:
    lines = [line for line in mrc.REQUIREMENTS.read_text().splitlines() if not line.startswith("#")]
    assert lines and all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in lines)
    known = (ROOT / "docs" / "reference" / "dependencies.md").read_text()
    assert [line for line in lines if line.partition("==")[0] not in known] == []
    # All environments use the same numpy.
    assert {line for line in lines if line.startswith("numpy")} <= {*(ROOT / "python/requirements.txt").read_text().splitlines()}
