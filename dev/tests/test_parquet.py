# SPDX-License-Identifier: Apache-2.0
"""Results as Parquet, and the paging simulator's log of faults in Python."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pandas as pd
import pyarrow
import pytest
import trapless
from pyarrow import parquet as pq
from trapless.base import kept
from trapless.base.paths import ROOT
from trapless.base.ui import UserError
from trapless.loads.setup import Setup
from trapless.pagesim import output, runs, traces
from trapless.results import columns, figures, parquet
from trapless.results.columns import LOWER, Column
from trapless.study import catalogue, measure
from trapless.study.experiment import Experiment, Table
from trapless.sweeps import command, simulated
from trapless.sweeps.engine import Engine

from dev.tests.fake_lab import Fake

HEAD = "time_ns,process,page,kind,origin,waited_ns,resumed_ns,evicted_process,evicted_page,turn\n"
LOG = HEAD + '1000,xz,281474976710655,demand,demand,3000,11000,"a,""b",7,2\n5050,NA,1,late,neighbour,230,230,,,1\n'


@pytest.fixture
def sweep_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep of the fake simulator (fake_pagesim.py)."""
    monkeypatch.setenv("TRAPLESS_PAGESIM", str(Path(__file__).with_name("fake_pagesim.py")))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    for module, name in ((runs, "CACHE"), (traces, "CACHE"), (kept, "PLACE")):
        monkeypatch.setattr(module, name, tmp_path / "cache" / name.lower())
    (tmp_path / "a.trace").write_text("a")
    file = tmp_path / "mine.toml"
    file.write_text('[base.memory]\nframes = 100\n[[base.process]]\nname = "a"\ntrace = "a.trace"\n'
                    '[vary]\npolicy = ["sync", "virt"]\n"device.latency_us" = [3, 5.5]\n')
    return file


def said(field: pyarrow.Field) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in field.metadata.items()}


def test_types_and_units(tmp_path: Path) -> None:
    mean = Column("mean_us", "mean us", "Mean.", "us", LOWER, ".2f")
    rows = [{"kind": "osdp", "n": 3, "mean_us": 1, "mixed": 1, "yes": True, "list": [1], "none": None, "big": 1 << 70},
            {"kind": None, "n": None, "mean_us": 2.5, "mixed": "x", "yes": None, "list": {}, "none": None, "big": 1}]
    parquet.write(tmp_path / "r.parquet", rows, columns.by_key([mean]), {"n"})
    found = pq.read_table(tmp_path / "r.parquet")
    assert {field.name: str(field.type) for field in found.schema} == {
        "kind": "string", "n": "int64", "mean_us": "double", "mixed": "string", "yes": "bool", "big": "double"}
    assert found["mixed"].to_pylist() == ["1", "x"] and found["n"].to_pylist() == [3, None]
    assert said(found.schema.field("mean_us")) == {"heading": "mean us", "unit": "us", "direction": LOWER, "meaning": "Mean."}
    assert said(found.schema.field("n"))["unit"] == "" and said(found.schema.field("big"))["unit"] == "1"
    frame = trapless.load(tmp_path / "r.parquet")
    assert frame["mean_us"].to_list() == [1.0, 2.5]
    assert frame.attrs["units"] == {"mean_us": "us", "big": "1"} and frame.attrs["directions"]["mean_us"] == LOWER
    assert list(tmp_path.iterdir()) == [tmp_path / "r.parquet"]


def test_a_sweep_of_the_simulator(sweep_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert simulated.run(sweep_file, out, 1) == 0
    assert not (out / parquet.FILE).exists()
    assert command.run(sweep_file, out, Engine(1), as_parquet=True) == 0
    table = pq.read_table(out / parquet.FILE)
    entries = json.loads((out / "results.json").read_text())
    rows = [{**entry["values"], **output.take(entry["record"], output.latencies)} for entry in entries]
    assert [{key: value for key, value in row.items() if value is not None} for row in table.to_pylist()] == [
        {key: value for key, value in row.items() if value is not None} for row in rows]
    kinds = {name: str(table.schema.field(name).type) for name in ("policy", "device.latency_us", "faults", "waiting_share")}
    assert kinds == {"policy": "string", "device.latency_us": "double", "faults": "int64", "waiting_share": "double"}
    assert said(table.schema.field("page_wait_p99_us"))["unit"] == "us"
    frame = trapless.load(out)
    assert frame["waiting_share"].to_list() == [40.0] * 4 and frame["page_wait_p999_us"].to_list() == [6.0] * 4
    assert frame["run_wait_p50_us"].isna().all(), "nobody waited"
    assert frame.attrs["units"]["page_wait_mean_us"] == "us" and frame.attrs["units"]["waiting_share"] == "%"


def test_records_of_earlier_versions_have_no_latencies() -> None:
    assert output.latencies({}) == {}


def test_a_sweep_of_guests(fake: Fake) -> None:
    fake.file("fake ok 7", "fake exit 3")
    out = fake.folder / "out"
    assert command.run(fake.folder / "sweep.toml", out, Engine(), as_parquet=True) == 1
    table = pq.read_table(out / parquet.FILE)
    assert table["status"].to_pylist() == ["ok", "failed"] and table["exit_status"].to_pylist() == [0, 3]
    assert table["n"].to_pylist() == [7, 3] and said(table.schema.field("sim_seconds"))["unit"] == "s"
    assert said(table.schema.field("exit_status"))["unit"] == ""


def test_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"kind": "osdp", "mean_us": 3.5, "each": [{"a": 1}], "seed": 1}]
    monkeypatch.setitem(catalogue._experiments(), "made",
                        Experiment("t", lambda setup: rows, {"made": Table((figures.KIND, figures.MEAN_US))}))
    assert measure.run(["made"], Setup(tmp_path), tmp_path / "out", False) == 0
    assert not (tmp_path / "out" / parquet.FILE).exists()
    assert measure.run(["made"], Setup(tmp_path), tmp_path / "out", False, True, True) == 0
    table = pq.read_table(tmp_path / "out" / parquet.FILE)
    assert table.to_pylist() == [{"kind": "osdp", "mean_us": 3.5, "seed": 1}]
    assert said(table.schema.field("mean_us"))["unit"] == "us"


def test_without_pyarrow_one_line_says_what_to_install(sweep_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line comes before anything runs."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    wanted = re.escape(f"--parquet needs pyarrow, which is not installed: `{sys.executable} -m pip install pyarrow` installs it")
    with pytest.raises(UserError, match=f"^{wanted}$"):
        command.run(sweep_file, tmp_path / "out", Engine(), as_parquet=True)
    with pytest.raises(UserError, match=wanted):
        measure.run(["aspf-6a"], Setup(tmp_path), tmp_path / "out", False, False, True)
    assert not (tmp_path / "out").exists() and not (tmp_path / "log").exists()
    assert simulated.run(sweep_file, tmp_path / "out", 1) == 0, "others need none"
    (tmp_path / "f.csv.zst").write_bytes(b"")
    with pytest.raises(trapless.Error, match="f.csv.zst needs pyarrow, which is not installed"):
        trapless.faults(tmp_path / "f.csv.zst")


@pytest.mark.parametrize("name", ["faults.csv", "faults.csv.zst"])
def test_a_log_of_faults(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with pyarrow.output_stream(str(path), compression="zstd" if name.endswith("zst") else None) as file:
        file.write(LOG.encode())
    frame = trapless.faults(path)
    assert frame["process"].to_list() == ["xz", "NA"] and frame["evicted_process"].to_list()[0] == 'a,"b'
    assert pd.isna(frame["evicted_process"][1]) and pd.isna(frame["evicted_page"][1]) and frame["evicted_page"][0] == 7
    assert frame["page"][0] == 2**48 - 1 and frame["resumed_ns"].sum() == 11230
    assert frame.attrs["units"] == {"time_ns": "ns", "waited_ns": "ns", "resumed_ns": "ns", "turn": "turns"}
    frame.to_parquet(tmp_path / "f.parquet")
    again = pd.read_parquet(tmp_path / "f.parquet")
    assert again["waited_ns"].to_list() == [3000, 230] and again.attrs == frame.attrs
    path.write_bytes(HEAD.encode() if name == "faults.csv" else pyarrow.compress(HEAD.encode(), "zstd", asbytes=True))
    assert len(trapless.faults(path)) == 0


@pytest.mark.parametrize(("name", "text", "message"), [
    ("no.csv", None, "no.csv: No such file or directory"),
    ("no.csv.zst", None, "no.csv.zst: No such file or directory"),
    ("a.csv", "", "a.csv: not a log of faults: "),
    ("a.csv", "a,b\n1,2\n", "a.csv: not a log of faults: its first line must be time_ns,process,"),
    ("a.csv", LOG.replace("3000", "x"), "a.csv: not a log of faults: "),
    ("a.csv.zst", LOG, "a.csv.zst: not a log of faults: "),
])
def test_what_is_no_log(name: str, text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(trapless.Error, match=message) as raised:
        trapless.faults(tmp_path / name)
    assert "\n" not in str(raised.value)


def test_what_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no")
    for name, message in (("a.parquet", "a.parquet: not a Parquet file: "), ("b.parquet", "b.parquet: No such file")):
        with pytest.raises(trapless.Error, match=message):
            trapless.load(tmp_path / name)


def test_one_pyarrow_is_pinned() -> None:
    """The tests and the wheel use the same version."""
    pinned = [re.findall(r"^pyarrow==.*$", (ROOT / name).read_text(), re.MULTILINE)
              for name in ("dev/requirements.txt", "python/requirements-parquet.txt")]
    assert len(pinned[0]) == 1 and pinned[0] == pinned[1]
