# SPDX-License-Identifier: Apache-2.0
"""Experiments and sweeps of the paging simulator, with a fake program that makes up figures (fake_pagesim.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from trapless.base import kept
from trapless.base.paths import PYTHONPATH
from trapless.base.ui import UserError
from trapless.loads.setup import Setup
from trapless.pagesim import output, runs, traces
from trapless.study import measure, repeated
from trapless.study.experiment import Experiment
from trapless.sweeps import simulated as sweep

from dev import measures
from studies.aspf import STUDY, paper
from studies.aspf import figures as aspf
from studies.aspf import orders as aspf_orders

FAKE = Path(__file__).with_name("fake_pagesim.py")
PROGRAMS = dict.fromkeys(name for mix in paper.mixes().values() for name in mix)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the fake program and a separate cache; return the file that notes each start."""
    monkeypatch.setenv("TRAPLESS_PAGESIM", str(FAKE))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setattr(runs, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(kept, "PLACE", tmp_path / "cache" / "kept")
    monkeypatch.setattr(traces, "CACHE", tmp_path / "cache")
    (tmp_path / "log").touch()
    return tmp_path / "log"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Return a folder with traces of all programs; tensorflow has the smallest working set."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for number, name in enumerate([*PROGRAMS, *(f"chains-{name}" for name in PROGRAMS)]):
        (folder / f"{name}.trace").write_text(name)
        pages = 77 if name == "tensorflow" else 100 + number
        (folder / f"{name}.trace.json").write_text(json.dumps(
            {"accesses": 600_000_000, "footprint_pages": 2 * pages, "hottest_pages": pages,
             "working_set_pages": {"all": 1, "cache_filtered": pages}}))
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache that figures share."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def sweep_file(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a sweep of these policies over one trace."""

    def write(policies: str) -> Path:
        (tmp_path / "a.trace").write_text("a")
        file = tmp_path / "mine.toml"
        file.write_text(f'[base.memory]\nframes = 100\n[[base.process]]\nname = "a"\ntrace = "a.trace"\n'
                        f'[vary]\npolicy = {policies}\n"device.latency_us" = [3, 5]\n')
        return file

    return write


def test_a_stopped_sweep_goes_on_where_it_was(log: Path, tmp_path: Path, sweep_file: Callable[[str], Path]) -> None:
    file, hang = sweep_file('["sync", "hang", "virt"]'), log.with_suffix(".hang")
    hang.touch()
    command = [sys.executable, "-m", "trapless.cli", "sweep", file, "--out", tmp_path / "out", "--jobs", "1"]
    environment = os.environ | {"TRAPLESS_CACHE": str(tmp_path / "cache"), "PYTHONPATH": PYTHONPATH}
    # In the background of a script, interrupts are ignored for the tests, and would be for the sweep.
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        try:
            while log.read_text().split() != ["sync", "sync", "hang"]:
                assert process.poll() is None
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert "interrupted" in process.communicate(timeout=60)[1]
        finally:
            hang.unlink()
        assert process.returncode == 130
    assert not (tmp_path / "out" / "results.json").exists()
    assert list((tmp_path / "cache").glob(".pagesim-*")) == []
    subprocess.run(command, env=environment, check=True)
    assert log.read_text().split() == ["sync", "sync", "hang", "hang", "hang", "virt", "virt"]
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [entry["values"] for entry in found] == [
        {"policy": policy, "device.latency_us": us} for policy in ("sync", "hang", "virt") for us in (3, 5)]
    assert len((tmp_path / "out" / "results.csv").read_text().splitlines()) == 7


def test_results_belong_to_their_content(log: Path, sweep_file: Callable[[str], Path], tmp_path: Path,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """A moved trace changes nothing; changed content, another value or another program does."""
    config = runs.changed(sweep.load(sweep_file('["sync"]'))[0], {"policy": "sync"})
    runs.records([runs.Run("one", config), runs.Run("the same", config)])
    (tmp_path / "b.trace").write_text("a")
    moved = runs.changed(config, {"process.0.trace": str(tmp_path / "b.trace")})
    runs.records([runs.Run("moved", moved)])
    assert log.read_text().split() == ["sync"]
    (tmp_path / "b.trace.json").write_text("{}")
    runs.records([runs.Run("summary", moved)])
    (tmp_path / "b.trace").write_text("other")
    for run in (runs.Run("content", moved), runs.Run("value", runs.changed(config, {"memory.frames": 101})),
                runs.Run("setting", config, ("memory.frames=102",))):
        before = len(log.read_text().split())
        runs.records([run])
        assert len(log.read_text().split()) == before + 1, run.title
    other = tmp_path / "program"
    other.write_text(FAKE.read_text() + "\n")
    other.chmod(0o755)
    monkeypatch.setenv("TRAPLESS_PAGESIM", str(other))
    runs.records([runs.Run("program", config)])
    assert len(log.read_text().split()) == 6


def test_files_that_a_crash_has_emptied_are_none(log: Path, sweep_file: Callable[[str], Path], tmp_path: Path) -> None:
    """Empty results do not count, nor do empty keys of traces, with which every trace would look like any other."""
    run = runs.Run("one", runs.changed(sweep.load(sweep_file('["sync"]'))[0], {"policy": "sync"}))
    first = runs.records([run])
    (place,), (key,) = kept.PLACE.glob("*.json"), (tmp_path / "cache" / "pagesim" / "traces").iterdir()
    for path in (place, key):
        path.write_text("")
        assert runs.records([run]) == first and path.read_text()
    assert log.read_text().split() == ["sync", "sync"]


def test_what_known_runs_took_is_told(log: Path, sweep_file: Callable[[str], Path], tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Two experiments share a run. It comes from the cache only in the second measurement."""
    config = runs.changed(sweep.load(sweep_file('["sync"]'))[0], {"policy": "sync"})

    def both(_: Setup) -> list[dict]:
        return [{"frames": len(runs.records([runs.Run("one", config), runs.Run("two", {**config, "policy": "virt"})]))}]

    monkeypatch.setattr(measure, "EXPERIMENTS", {name: Experiment(name, both, {}) for name in ("a", "b")})

    def ends() -> str:
        assert measure.run(["all"], Setup(tmp_path), tmp_path / "out", False) == 0
        return capsys.readouterr().err.splitlines()[-1]

    def known(name: str) -> int:
        return json.loads((tmp_path / "out" / name / "experiment.json").read_text())["runs_known"]

    assert ends().endswith(" min")
    assert (known("a"), known("b")) == (0, 2)
    for mark in kept.PLACE.glob("*.seconds"):
        assert 0 < float(mark.read_text()) < 60
        mark.write_text("90")
    assert ends().endswith("and 2 runs taken from the cache, which once took 3.0 min one after another")
    assert len(log.read_text().split()) == 2
    mark.unlink()
    assert ends().endswith("1.5 min one after another (1 of them without a recorded time)")


def test_a_failed_run_names_its_configuration(log: Path, sweep_file: Callable[[str], Path], tmp_path: Path,
                                              capfd: pytest.CaptureFixture[str]) -> None:
    """The other runs are made, and not made again."""
    file = sweep_file('["fail", "sync"]')
    assert sweep.run(file, tmp_path / "out", None) == 1
    lines = [line for line in capfd.readouterr().err.splitlines() if "frames" in line]
    reason = "memory.frames: 1 is not from 4 to 1000000000"
    assert sorted(lines) == [f"trapless: failed: policy=fail, device.latency_us={us}: {reason}" for us in (3, 5)]
    assert len(json.loads((tmp_path / "out" / "results.json").read_text())) == 2
    assert sorted(log.read_text().split()) == ["fail", "fail", "sync", "sync"]
    with pytest.raises(UserError, match="policy fail: memory.frames"):
        runs.records([runs.Run("policy fail", {**sweep.load(file)[0], "policy": "fail"})])


def test_traces_that_are_varied_are_sought_beside_the_file(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name in "ab":
        (tmp_path / f"{name}.trace").write_text(name)
    (tmp_path / "mine.toml").write_text('[base]\npolicy = "sync"\n[[base.process]]\nname = "x"\n'
                                        '[vary]\n"process.0.trace" = ["a.trace", "b.trace"]\n')
    assert sweep.run(Path("..") / "mine.toml", tmp_path / "out", None) == 0
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [entry["values"] for entry in found] == [{"process.0.trace": "a.trace"}, {"process.0.trace": "b.trace"}]
    assert log.read_text().split() == ["sync", "sync"]


@pytest.mark.parametrize(("text", "message"), [
    ("base = 1", "must have `base`"),
    ('base = "no.toml"', "no.toml: No such file"),
    ("[vary]\na = [1]", "must have `base`"),
    ("[base]\n[vary]\na = 1", "vary.a"),
    ("[base]\n[vary]\na = [1]", r"\[\[process\]\]"),
    ("[base]\na = 1\n[vary]\n'a.b' = [1]", "a.b: no such key"),
    ("[[base.process]]\ntrace = 'no.trace'", "no.trace: No such file"),
    ("[", "mine.toml: "),
])
def test_faulty_sweeps(log: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(UserError, match=message):
        sweep.run(tmp_path / "mine.toml", tmp_path / "out", None)


@pytest.mark.parametrize("name", list(STUDY.experiments))
def test_figures(name: str, log: Path, recorded: Path, tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each experiment writes records, a table and plots, with memory by the paper's rule. A second call runs nothing."""
    monkeypatch.setattr(kept, "PLACE", shared)
    out = tmp_path / "out"
    assert measure.run([name], Setup(Path(), traces=recorded), out, False) == 0
    records = json.loads((out / "results.json").read_text())
    rows = (out / "results.md").read_text().splitlines()
    assert len(rows) > 3
    frames = paper.FRAMES if name.startswith(("aspf-chains", "aspf-labels")) else 77
    assert name == "aspf-memory" or all(entry.get("frames", frames) == frames for entry in records)
    entry = STUDY.experiments[name]
    for drawn in entry.plots:
        assert ElementTree.parse(out / f"{drawn}.svg").getroot().tag.endswith("svg")
    shown = entry.tables[name]
    assert len({column.heading for column in shown.columns}) == len(shown.columns)
    for row in shown.rows(records):
        for column in shown.columns[shown.keys:]:
            assert not column.word and column.printed(row.get(column.key))
    for column in shown.columns:
        assert any(row.get(column.key) is not None for row in shown.rows(records)), f"nothing in column {column.key}"
    assert not entry.undeclared([*records, *(row for row in shown.rows(records))])
    ran, first = len(log.read_text().split()), _files(out)
    assert measure.run([name], Setup(Path(), traces=recorded), out, False) == 0
    assert len(log.read_text().split()) == ran
    assert _files(out) == first


def _files(folder: Path) -> dict[str, bytes]:
    """Return all files, without parts that depend on run time."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "experiment.json"}


def test_papers_values_stand_beside_ours(log: Path, recorded: Path) -> None:
    setup = Setup(Path(), traces=recorded)
    found = {(record["mix"], record["policy"]): record for record in aspf.EXPERIMENTS["aspf-6a"].measure(setup)}
    star = found["mix3", "aspf-star"]
    assert (star["time_s_less"], star["paper"], star["shortest_trace_m"]) == (pytest.approx(12), 12.33, 600)
    assert found["mix4", "aspf-star"]["paper"] is None
    ran = len(log.read_text().split())
    assert ran == 20 * len(aspf_orders.ORDERS)
    aspf.EXPERIMENTS["aspf-6b"].measure(setup)
    aspf.EXPERIMENTS["aspf-7"].measure(setup)
    assert len(log.read_text().split()) == ran + 12 * len(aspf_orders.ORDERS), "6b takes the runs of 6a, 7 those with 3 us"
    by_latency = {(record["latency_us"], record["policy"]): record["paper"]
                  for record in aspf.EXPERIMENTS["aspf-7"].measure(setup)}
    assert (by_latency[7.0, "aspf-star"], by_latency[3.0, "virt"]) == (14.29, 7.16)


def test_orders_of_programs() -> None:
    """Each mix has as many orders as there are repetitions. The paper's order is first, and no program is lost."""
    for names in paper.mixes().values():
        orders = [aspf_orders.in_order(names, order) for order in aspf_orders.ORDERS]
        assert orders[0] == list(names) and len({tuple(order) for order in orders}) == len(aspf_orders.ORDERS)
        assert all(sorted(order) == sorted(names) for order in orders)


def test_figures_are_means_of_all_orders(tmp_path: Path) -> None:
    """Figures of single processes, which orders put into other places, are means, too. Percentages are computed order by
    order."""
    def measured(setup: Setup) -> list[dict]:
        """Return faults that grow with the order."""
        each = [{"process": name, "process_faults": ord(name) + setup.order, "paper_5": 7.0}
                for name in aspf_orders.in_order("abc", setup.order)]
        rows = [{"mix": "mix3", "policy": policy, "latency_us": 3.0, "seed": setup.order, "time_s": time_s, "faults": 60,
                 "context_switches": 5, "pages_moved": 9, "paper": 12.33, "useful": None if setup.order else 3.0, "each": each}
                for policy, time_s in (("sync", 10.0 + setup.order), ("virt", 5.0))]
        return aspf.compare(rows)

    _, row = aspf_orders.in_all_orders(measured)(Setup(tmp_path))
    less = [100 * (1 - 5 / (10 + order)) for order in aspf_orders.ORDERS]
    assert row["time_s_less"] == pytest.approx(sum(less) / len(less))
    assert row["time_s_less_ci"] == pytest.approx(repeated.half_width(less))
    assert (row["time_s"], row["time_s_ci"], row["faults"], row["paper"]) == (5, 0, 60, 12.33)
    assert "paper_ci" not in row and "useful" not in row, "not known of all"
    assert [run["seed"] for run in row[repeated.RUNS]] == list(aspf_orders.ORDERS)
    assert aspf_orders.in_all_orders(measured)(Setup(tmp_path, quick=True))[0]["repetitions"] == 2
    mean = sum(aspf_orders.ORDERS) / len(aspf_orders.ORDERS)
    assert [(process["process"], process["process_faults"], process["paper_5"]) for process in row["each"]] == [
        (name, pytest.approx(ord(name) + mean), 7.0) for name in "abc"]
    assert all(process["process_faults_ci"] > 0 and repeated.RUNS not in process for process in row["each"])


def test_measures() -> None:
    """Each measure uses its worst case."""
    session = measures.Session(quick=True)

    def run(mix: str, policy: str, less: float, **more: float) -> dict:
        return {"mix": mix, "policy": policy, "latency_us": 3.0, "time_s_less": less, "faults_less": less / 2, **more}

    sync = {"mix": "mix3", "policy": "sync", "latency_us": 3.0}
    session._records = {
        "aspf-6a": [sync, run("mix3", "virt", 9), run("mix3", "agg", 1), run("mix3", "aspf", 13), run("mix3", "aspf-star", 12)],
        "aspf-beyond": [run(mix, policy, less, points_over_star=points, jain=0.99 + points / 1000)
                        for mix, policy, less, points in (
                            ("mix3", "foresight", 30, 4.0), ("mix4", "foresight", 20, 1.0), ("mix5", "foresight", 9, 2.5),
                            ("mix6", "foresight", 25, 3.0), ("mix3", "leap", 28, 0), ("mix4", "virt", 17, 0),
                            ("mix5", "leap", 10, 0), ("mix6", "agg", 1, 0), ("mix3", "optimum", 40, 0),
                            ("mix4", "optimum", 40, 0), ("mix5", "optimum", 12, 0), ("mix6", "optimum", 50, 0))],
        "aspf-chains": [{**run("mix6", policy, less, context_switches_less=switches, set_useful_share=useful),
                         "paper_faults_less": None if policy == "sync" else 4.0,
                         "paper_context_switches_less": None if policy == "sync" else 21.0, "paper_useful": paper}
                        for policy, less, switches, useful, paper in (
                            ("sync", 0, 0.0, None, None), ("agg", 3, 20.0, None, None), ("virt", 5, 23.5, None, None),
                            ("aspf", 9, 21.0, 50.0, None), ("aspf-star", 8.5, 21.0, 56.0, 54.5))],
        "aspf-slow-device": [{**sync, "policy": "async"}, run("mix3", "sync", -20), run("mix3", "adaptive", -0.5),
                             run("mix6", "async", 0), run("mix6", "sync", 25), run("mix6", "adaptive", 22)]}
    session._records["aspf-6c"] = session._records["aspf-6a"]
    session._records["aspf-1b"] = [{**sync, "policy": "async"}, run("figure1", "sync", 19)]
    session._records["aspf-6b"] = [run(mix, "aspf-star", 0, context_switches_less=less)
                                   for mix, less in (("mix3", 48), ("mix4", 26))]
    timed = ("aspf_replayed", "aspf_memory_growth")
    found = {name: measure(session) for name, measure in measures.MEASURES.items()
             if name.startswith("aspf_") and name not in timed}
    assert found == {"aspf_least_lead": 3, "aspf_least_lead_accesses": 1.5, "aspf_ours_points": 2.5, "aspf_ours_jain": 0.991,
                     "aspf_ours_over_rivals": -1, "aspf_ours_to_bound": 50, "aspf_chains_order": 2,
                     "aspf_chains_accesses": 2.5, "aspf_chains_switches": 2.5, "aspf_chains_useful": 1.5,
                     "aspf_sync_loss": 20, "aspf_adaptive_loss": 3, "aspf_sync_gain": 19, "aspf_switches_less": 26}


def test_windows_of_two_lengths_are_added() -> None:
    def series(window: int, counts: list[int]) -> dict:
        return {"timeline": {"window_ns": window, "counts": counts}}

    record = {"processes": [series(10**9, [1, 2, 3]), series(2 * 10**9, [10, 20]), series(10**9, [])]}
    assert output.over_time(record) == {"window_s": 2, "window_faults": [13, 23]}


def test_progress(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x" * 300 + "\n5.0 k of 2.0 M accesses, 9 s left\n500.0 k of 2.0 M accesses, 3 s left\n")
    assert runs._part_done(tmp_path / "log") == 0.25


def test_missing_traces(log: Path, recorded: Path) -> None:
    (recorded / "xz.trace").unlink()
    with pytest.raises(UserError, match=r"no trace of xz in .*: `./trapless dev workloads"):
        aspf.EXPERIMENTS["aspf-9"].measure(Setup(Path(), traces=recorded))
    assert aspf.EXPERIMENTS["aspf-9"].measure(Setup(Path(), traces=recorded, frames=5))[0]["frames"] == 5


def test_values_of_the_paper_belong_to_a_figure() -> None:
    """A misspelt mix or policy would never be found."""
    data = paper.value.data["figure"]
    for figure in ("6a", "6b"):
        assert set(data[figure]) <= set(aspf.MIXES)
        for values in data[figure].values():
            assert set(values) < set(aspf.POLICIES)
    assert {float(latency) for latency in data["7"]} == set(aspf.LATENCIES)
    assert set(data["8"]) - {"energy_saved"} == {str(pages) for pages in aspf.PAGES}
    for name in ("9a", "9b"):
        assert all(set(shares) == set(paper.mixes()["figure9"]) for shares in data[name].values())
