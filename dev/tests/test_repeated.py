# SPDX-License-Identifier: Apache-2.0
"""Means, intervals and differences of runs with different seeds, and the files of an experiment."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from trapless.base.ui import UserError
from trapless.loads.setup import Setup
from trapless.results import figures
from trapless.results.columns import HIGHER
from trapless.study import measure, repeated
from trapless.study.compared import Compared, one, spread
from trapless.study.experiment import Experiment, Table


def test_interval_of_a_mean() -> None:
    """Student's t of 95 % with two degrees of freedom is 4.303."""
    assert repeated.half_width([1.0, 2.0, 3.0]) == pytest.approx(4.303 / 3**0.5, rel=1e-3)
    assert repeated.half_width([5.0]) is None
    assert repeated.half_width([5.0, 5.0]) == 0


def rows() -> list[dict]:
    return [repeated.row({"kind": kind, "threads": 1}, [{"ops_per_second": ops, "git": "v1", "latency": {"p50": 1}, "none": None,
                                                         "seed": seed} for seed, ops in enumerate(found, 1)])
            for kind, found in (("osdp", [100.0, 200.0]), ("hwdp", [150.0, 300.0]))]


def test_row_has_means_and_intervals() -> None:
    osdp, _ = rows()
    assert (osdp["ops_per_second"], osdp["repetitions"], osdp["git"]) == (150, 2, "v1")
    assert osdp["ops_per_second_ci"] > 0
    assert "latency" not in osdp
    assert "seed" not in osdp


def test_runs_have_the_seeds_they_ran_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(repeated.build, "machine", lambda: tmp_path)
    monkeypatch.setattr(repeated.kept, "records", lambda program, runs, at_once: [{"ops": len(run)} for run in runs])
    monkeypatch.setattr(repeated.kept, "configuration", lambda run: {"title": run})
    (row,) = repeated.measure(Setup(tmp_path), [repeated.Point({"kind": "osdp"}, {8: "a", 9: "bbb"})])
    assert [(run["seed"], run["configuration"]["title"]) for run in row["runs"]] == [(8, "a"), (9, "bbb")]
    assert row["ops"] == 2


def test_differences_are_seed_by_seed() -> None:
    """A factor of two between seeds does not widen the interval of a gain that is the same for each seed."""
    found = rows()
    repeated.against(found, ["threads"], {"kind": "osdp"}, "ops_per_second", "gain")
    assert (found[1]["gain"], found[1]["gain_ci"]) == (50, 0)
    assert "gain" not in found[0]


def test_differences_need_reasons() -> None:
    assert not Compared("a", "us", (10, 20), (9.1, 21.9)).differs
    assert Compared("a", "us", (10, 20), (8.9, 20)).differs
    assert Compared("a", "%", one(-10), spread([-8.9, -9.5])).differs
    assert not Compared("a", "us", None, one(3)).differs
    assert not Compared("a", "x", (1.72, None), one(9)).differs
    assert Compared("a", "x", (1.72, None), one(1.5)).differs


def test_documents_take_the_whole_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of the quick form, or with another drive, are refused."""
    made = Experiment("title", lambda setup: rows(), {"t": Table((figures.KIND,))})
    monkeypatch.setattr(measure, "EXPERIMENTS", {"x": made})
    written = []
    monkeypatch.setattr(measure, "write_to_documents", written.append)
    for setup, command in ((Setup(tmp_path, quick=True), "./trapless study x --quick"),
                           (Setup(tmp_path, settings=("ssd=z-ssd",)), "./trapless study x --set ssd=z-ssd")):
        measure.run(["x"], setup, tmp_path, False)
        assert json.loads((tmp_path / "experiment.json").read_text())["command"] == command
        with pytest.raises(UserError, match=f"has the results of `{command}`, not of the full experiment"):
            measure.run(["x"], Setup(tmp_path), tmp_path, True, measured=True)
    measure.run(["x"], Setup(tmp_path), tmp_path, False)
    assert not written
    measure.run(["x"], Setup(tmp_path), tmp_path, True, measured=True)
    assert len(written) == 1


@pytest.mark.parametrize(("changed", "complaint"), [
    ({"kinds": ("osdp",)}, "x: the figure fixes the kinds: leave --kinds out"),
    ({"profile": "server"}, "x: the figure fixes the profile: leave --profile out")])
def test_options_that_a_figure_does_not_take(changed: dict, complaint: str, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    made = Experiment("title", lambda setup: rows(), {"t": Table((figures.KIND,))})
    monkeypatch.setattr(measure, "EXPERIMENTS", {"x": made, "y": replace(made, kinds=True, profile=True)})
    with pytest.raises(UserError, match=complaint):
        measure.measure("x", Setup(tmp_path, **changed))
    measure.measure("y", Setup(tmp_path, **changed))


def test_killed_between_its_files_it_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Experiment("title", lambda setup: rows(), {"t": Table((figures.KIND,))})
    monkeypatch.setattr(measure, "EXPERIMENTS", {"x": made})
    measure.run(["x"], Setup(tmp_path), tmp_path, False)

    def killed(path: Path, text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "write_whole", killed)
    with pytest.raises(KeyboardInterrupt):
        measure.run(["x"], Setup(tmp_path), tmp_path, False)
    assert not (tmp_path / "experiment.json").exists()


def test_one_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    def broken(setup: Setup) -> list[dict]:
        raise UserError("no such drive")

    shown = Table((figures.KIND,))
    monkeypatch.setattr(measure, "EXPERIMENTS", {
        "bad": Experiment("bad", broken, {"bad": shown}), "good": Experiment("good", lambda setup: rows(), {"good": shown})})
    assert measure.run(["all"], Setup(tmp_path), tmp_path, False) == 1
    assert (tmp_path / "good" / "experiment.json").is_file()
    assert not (tmp_path / "bad" / "experiment.json").exists()
    said = capsys.readouterr().err
    assert "bad: no such drive" in said
    assert "1 of 2 experiments failed: bad" in said


def test_what_an_experiment_leaves(tmp_path: Path) -> None:
    made = Experiment("title", lambda setup: rows(), {"t": Table((figures.KIND, figures.OPS_PER_SECOND))},
                      compared=lambda found: [Compared("throughput", "1/s", one(150), one(found[0]["ops_per_second"]))])
    measure.keep("x", made, Setup(tmp_path, quick=True), rows(), {"host_seconds": 1.0})
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [(run["names"], run["seed"]) for run in runs] == [
        ({"kind": kind, "threads": 1}, seed) for kind in ("osdp", "hwdp") for seed in (1, 2)]
    assert runs[3]["figures"]["ops_per_second"] == {"value": 300, "unit": "1/s", "direction": HIGHER}
    assert all(run["git"] == "v1" for run in runs)
    whole = json.loads((tmp_path / "experiment.json").read_text())
    assert (whole["form"], whole["runs"], whole["command"]) == ("quick", 4, "./trapless study x --quick")
    assert whole["compared"][0]["differs"] is False
    assert "runs" not in json.loads((tmp_path / "results.json").read_text())[0]
