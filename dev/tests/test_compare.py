# SPDX-License-Identifier: Apache-2.0
"""Comparison of two results of an experiment: intervals, verdicts, and results that cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scipy.stats import ttest_ind, ttest_rel
from trapless.base.ui import UserError
from trapless.loads.setup import Setup
from trapless.results import figures
from trapless.results.columns import HIGHER, Column
from trapless.study import compare, measure, repeated
from trapless.study.experiment import Experiment, Table

GAIN = Column("gain", "gain %", "More of it.", "%", HIGHER, ".1f")
COLUMNS = (figures.KIND, figures.THREADS, figures.MEAN_US, figures.MEAN_US.interval(), figures.OPS_PER_SECOND, GAIN,
           figures.HW_MISSES, figures.HOST_SECONDS)
BEFORE, AFTER = [100.0, 200.0, 310.0], [98.0, 197.0, 306.0]


def keep(folder: Path, hwdp: list[float], name: str = "made", kinds: tuple[str, ...] = ("osdp", "hwdp"), quick: bool = False,
         script: str = "fio", **more: object) -> Path:
    """Write a result whose osdp is always the same; `more` goes into all of its configurations."""
    rows = [repeated.row({"kind": kind, "threads": 1, "kpoold": None}, [
        {"seed": seed, "mean_us": us, "ops_per_second": 1e4 - us, "hw_misses": 1000 * us, "p99_us": 3.0, "host_seconds": us,
         "configuration": {"title": f"seed {seed}, {more}", "script": script, "kernel": "k1", **more}, "git": "v1"}
        for seed, us in enumerate(hwdp if kind == "hwdp" else BEFORE[:len(hwdp)], 1)]) for kind in kinds]
    repeated.against(rows, ("threads",), {"kind": "osdp"}, "mean_us", "gain")
    folder.mkdir(parents=True)
    made = Experiment("title", lambda setup: rows, {"t": Table(COLUMNS, keys=2)})
    measure.keep(name, made, Setup(folder, quick=quick), rows, {"host_seconds": 1.0})
    return folder


def compared(a: Path, b: Path, every: bool = False) -> dict[tuple[str, str], dict]:
    return {(row["names"]["kind"], row["figure"]): row for row in compare.compare(compare.read(a), compare.read(b), every)}


def test_same_seeds_and_load_are_pairs(tmp_path: Path) -> None:
    """A change of 1 to 2 % is found, although seeds differ by a factor of three."""
    rows = compared(keep(tmp_path / "a", BEFORE), keep(tmp_path / "b", AFTER, kernel="k2"))
    row = rows["hwdp", "mean_us"]
    found = ttest_rel(AFTER, BEFORE).confidence_interval(0.95)
    assert row["paired"]
    assert (row["low"], row["high"]) == (pytest.approx(found.low), pytest.approx(found.high))
    assert row["difference_percent"] == pytest.approx(100 * (sum(AFTER) / sum(BEFORE) - 1))
    assert row["low_percent"] == pytest.approx(100 * found.low / (sum(BEFORE) / 3))
    assert (row["verdict"], row["unit"], row["runs"]) == ("better", "us", [3, 3])
    assert rows["hwdp", "ops_per_second"]["verdict"] == "better"
    assert rows["hwdp", "hw_misses"]["verdict"] == "less"
    assert (rows["osdp", "mean_us"]["verdict"], rows["osdp", "mean_us"]["difference"]) == ("same", 0)


def test_other_way_round_is_worse(tmp_path: Path) -> None:
    rows = compared(keep(tmp_path / "a", AFTER), keep(tmp_path / "b", BEFORE))
    assert [rows["hwdp", key]["verdict"] for key in ("mean_us", "ops_per_second", "hw_misses")] == ["worse", "worse", "more"]


@pytest.mark.parametrize("other", [{"script": "fio --more"}, {"quick": True}, {"data": "d2"}])
def test_other_loads_are_not_pairs(tmp_path: Path, other: dict) -> None:
    row = compared(keep(tmp_path / "a", BEFORE), keep(tmp_path / "b", AFTER, **other))["hwdp", "mean_us"]
    found = ttest_ind(AFTER, BEFORE, equal_var=False).confidence_interval(0.95)
    assert not row["paired"]
    assert (row["low"], row["high"]) == (pytest.approx(found.low), pytest.approx(found.high))
    assert row["verdict"] == "no difference"


def test_other_numbers_of_runs_are_not_pairs(tmp_path: Path) -> None:
    row = compared(keep(tmp_path / "a", [1.0, 1.1, 1.2]), keep(tmp_path / "b", [9.0, 9.1]))["hwdp", "mean_us"]
    assert (row["paired"], row["runs"], row["verdict"]) == (False, [3, 2], "worse")


def test_values_that_never_vary() -> None:
    assert compare.interval([5.0, 5.0], [6.0, 6.0, 6.0], paired=False) == (1, 1)
    assert compare.interval([5.0, 5.0], [6.0, 6.0], paired=True) == (1, 1)
    assert compare.interval([5.0], [6.0, 7.0], paired=False) == (None, None)


@pytest.mark.parametrize(("after", "verdict"), [([4.0], "no interval"), ([2.0], "same")])
def test_single_runs(tmp_path: Path, after: list[float], verdict: str, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (keep(tmp_path / name, us, kinds=("hwdp",)) for name, us in (("a", [2.0]), ("b", after)))
    assert compared(a, b)["hwdp", "mean_us"]["verdict"] == verdict
    assert compare.run(a, b, False, None) == 0
    assert verdict in capsys.readouterr().out


def test_figures_of_the_tables_or_all(tmp_path: Path) -> None:
    """A gain is computed seed by seed, so runs have it. Figures of the host are not results, and names are not figures."""
    a, b = keep(tmp_path / "a", BEFORE), keep(tmp_path / "b", AFTER)
    figures = [key for kind, key in compared(a, b) if kind == "hwdp"]
    assert figures == ["mean_us", "ops_per_second", "gain", "hw_misses"]
    assert {key for _, key in compared(a, b, every=True)} == {*figures, "p99_us", "host_seconds"}
    assert compared(a, b)["hwdp", "gain"]["direction"] == "higher is better"
    (tmp_path / "alone.jsonl").write_text((a / "runs.jsonl").read_text())
    assert {key for _, key in compared(tmp_path / "alone.jsonl", tmp_path / "alone.jsonl")} == {*figures, "p99_us"}


def test_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = keep(tmp_path / "a", BEFORE), keep(tmp_path / "b", AFTER, kinds=("hwdp", "trap"), quick=True, kernel="k2")
    assert compare.run(a / "results.json", b / "experiment.json", False, tmp_path / "c.json") == 0
    said = capsys.readouterr()
    assert "A is the full form, B the quick one" in said.err
    assert "only A has osdp, threads 1" in said.err
    assert "only B has trap, threads 1" in said.err
    assert "different kernel: k1 and k2" in said.out
    assert "different title" not in said.out
    line = next(line for line in said.out.splitlines() if "mean_us" in line)
    assert line.startswith("hwdp, threads 1 ")
    assert " us " in line and "-1.48 %" in line and line.endswith("no difference")
    assert "3 figures: 3 no difference; 0 compared seed by seed" in said.out
    written = json.loads((tmp_path / "c.json").read_text())
    assert (written["experiment"], written["a"]["form"], written["configuration"]["kernel"]) == ("made", "full", [["k1"], ["k2"]])
    assert len(written["rows"]) == 3


def test_figure_that_was_zero(tmp_path: Path) -> None:
    row = compared(keep(tmp_path / "a", BEFORE), keep(tmp_path / "b", BEFORE))["hwdp", "gain"]
    assert (row["a"], row["difference_percent"], row["verdict"]) == (0, None, "same")


def test_not_comparable(tmp_path: Path) -> None:
    a = keep(tmp_path / "a", BEFORE, kinds=("osdp",))
    with pytest.raises(UserError, match=r"a is a result of made, .*b of other"):
        compared(a, keep(tmp_path / "b", BEFORE, name="other"))
    with pytest.raises(UserError, match="no row is in both"):
        compared(a, keep(tmp_path / "c", BEFORE, kinds=("hwdp",)))


@pytest.mark.parametrize(("text", "says"), [
    ("", "no runs"), ("{\n", ":1: not the record of a run"), ("[]\n", ":1: not the record of a run"),
    ('{"experiment": "x", "names": {}, "figures": {}}\n', ":1: not the record of a run"), ("GOOD", "second run"),
    ("MIXED", "several experiments")])
def test_damaged_runs(tmp_path: Path, text: str, says: str) -> None:
    good = (keep(tmp_path / "a", [1.0], kinds=("hwdp",)) / "runs.jsonl").read_text()
    other = good.replace('"made"', '"other"').replace('"seed": 1', '"seed": 2')
    text = {"GOOD": good + good, "MIXED": good + other}.get(text, text)
    (tmp_path / "a" / "runs.jsonl").write_text(text)
    with pytest.raises(UserError, match=says):
        compare.read(tmp_path / "a")


@pytest.mark.parametrize(("key", "value"), [
    ("configuration", None), ("names", {"kind": ["osdp"]}), ("seed", [1]), ("git", 3), ("form", {}),
    ("figures", {"mean_us": {"value": 1.0}})])
def test_runs_whose_parts_are_none(tmp_path: Path, key: str, value: object) -> None:
    folder = keep(tmp_path / "a", [1.0], kinds=("hwdp",))
    run = json.loads((folder / "runs.jsonl").read_text())
    (folder / "runs.jsonl").write_text(json.dumps({**run, key: value}) + "\n")
    with pytest.raises(UserError, match=r":1: not the record of a run$"):
        compare.run(folder, folder, False, None)


def test_missing_or_damaged_files(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no", tmp_path / "no" / "results.json"):
        with pytest.raises(UserError, match="No such file"):
            compare.read(path)
    (keep(tmp_path / "a", [1.0]) / "experiment.json").write_text("[]")
    with pytest.raises(UserError, match="experiment.json: not the results of an experiment"):
        compare.read(tmp_path / "a")


def test_rows_without_runs_are_named_by_their_tables_keys(tmp_path: Path) -> None:
    """The names contain no words that change with the version, and no numbers that are results."""
    rows = [{"kind": "aspf", "threads": threads, "mean_us": 3.0, "git": "v2", "paper_us": 4.0} for threads in (1, 2)]
    made = Experiment("title", lambda setup: rows, {"t": Table(COLUMNS, keys=2)})
    measure.keep("made", made, Setup(tmp_path), rows, {"host_seconds": 1.0})
    result = compare.read(tmp_path)
    assert list(result.rows) == [(("kind", "aspf"), ("threads", threads)) for threads in (1, 2)]
    assert result.rows[("kind", "aspf"), ("threads", 1)][None]["figures"].keys() == {"mean_us"}
