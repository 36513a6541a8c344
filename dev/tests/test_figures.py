# SPDX-License-Identifier: Apache-2.0
"""Figures of ISCA20 and THESIS: how they are computed from runs. No test runs a guest."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.loads import dbbench, rocksdb
from trapless.loads.rocksdb import Case
from trapless.loads.setup import Setup
from trapless.profile import profiling
from trapless.study import measure, repeated
from trapless.study.catalogue import EXPERIMENTS
from trapless.study.experiment import Experiment

from studies.fpga import thesis
from studies.isca20 import rocksdb as isca20_rocksdb

SAID = """Warming up benchmark by running 1 times
readrandom   :      41.261 micros/op 47996 ops/sec 0.042 seconds 2000 operations;  187.5 MB/s (1000 of 1000 found)

readrandom   :      36.609 micros/op 53866 ops/sec 0.037 seconds 2000 operations;  210.4 MB/s (1000 of 1000 found)
"""


def test_every_figure_has_its_experiment() -> None:
    isca20 = {f"isca20-{figure}" for figure in (1, 3, 4, *range(11, 18), "area")}
    figures = {f"thesis-{figure}" for figure in ("2.3", *(f"5.{number}" for number in range(2, 13)))}
    assert isca20 | figures <= set(EXPERIMENTS)
    for name in isca20 | figures:
        assert EXPERIMENTS[name].plots


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_says_what_it_is(name: str) -> None:
    """Experiments for a paper's figure also have the paper's values."""
    experiment = EXPERIMENTS[name]
    assert len(experiment.about) > 50
    if name.startswith(("isca20-", "thesis-")) or re.search(r"\((ASPF|STC)", experiment.title):
        assert experiment.compared is not Experiment.compared


def test_dbbench() -> None:
    """The line of the warm-up is not the result."""
    assert dbbench.figures(SAID) == {"ops": 2000, "ops_per_second": 53866, "mean_us": 36.609}
    with pytest.raises(UserError, match="records are missing"):
        dbbench.figures(SAID.replace("(1000 of 1000 found)", "(999 of 1000 found)"))
    with pytest.raises(UserError, match="printed no result of readrandom"):
        dbbench.figures("Segmentation fault")


def region(number: int, seconds: float, hardware: int, faults: int) -> dict:
    return {"number": number, "sim_seconds": seconds, "os_faults": faults, "watch": [{}],
            "instructions": {"user": 4000, "supervisor": 2000, "machine": 0}, "nvme_read": {"mean_us": 10.9},
            "hw_miss": {"count": hardware, "mean_us": 11.0, "device_mean_us": 10.9, "steps": {}}}


def test_a_run_of_ycsb_counts_its_region(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "ycsb.json").write_text(
        '{"wrong": 0, "ops_per_second": 5.0, "all": {"ops": 20, "mean_us": 2, "p99_us": 3}}')
    outcome = guests.Outcome(0, {"rois": [region(0, 9, 70, 70), region(rocksdb.REGION, 1, 30, 10)], "sim_seconds": 2})
    record = rocksdb.take(Case("YCSB-C", "hwdp", 1, rocksdb.SCALE), outcome, tmp_path)
    assert (record["hw_misses"], record["os_faults"], record["hw_share"], record["misses_per_op"]) == (30, 10, 75, 2)
    assert record["kernel_instructions_per_op"] == 100
    (tmp_path / "out" / "ycsb.json").write_text('{"wrong": 1, "ops_per_second": 5.0, "all": {"ops": 20}}')
    with pytest.raises(UserError, match="1 records had wrong contents"):
        rocksdb.take(Case("YCSB-C", "hwdp", 1, rocksdb.SCALE), outcome, tmp_path)


def test_operations() -> None:
    one = Case("YCSB-A", "osdp", 1, rocksdb.SCALE)
    assert replace(one, program="YCSB-E").operations < one.operations
    assert replace(one, seed=2).operations == one.operations


def test_kernel_parts() -> None:
    """User code, misses in hardware and idle time are not work of the kernel; the work of kpoold is shown separately."""
    spent = {"user code": 1000, "miss in hardware": 50, "idle": 7, "file map": 300, "refill (kpoold)": 100}
    profile = {"categories": {name: {"instructions": count, "cycles": 2 * count} for name, count in spent.items()},
               "tasks": {"kpoold0": {"instructions": 100, "cycles": 200}, "ycsb": {"instructions": 1300, "cycles": 2600}}}
    found = isca20_rocksdb.kernel_parts(profile, 10)
    assert (found["all_instructions"], found["kernel_instructions"], found["kpoold_instructions"]) == (40, 30, 10)
    assert (found["kpted_cycles"], found["all_cycles"]) == (0, 80)


def gain(program: str, threads: int, value: float) -> dict:
    return repeated.row({"program": program, "threads": threads, "kind": "hwdp"}, [
        {"gain": value, "gain_ci": 1.0, "kernel_instructions_per_op": 10.0, "misses_per_op": 1.0,
         "user_instructions_per_op": 5.0}] * 2)


def test_gains_beside_the_paper() -> None:
    rows = [gain("FIO", 1, 40), gain("DBBench", 8, 30), gain("YCSB-C", 1, 20), gain("YCSB-A", 1, 60)]
    rows += [{**row, "kind": "osdp"} for row in rows]
    uniform, ycsb, best = isca20_rocksdb.compared_13(rows)
    assert (uniform.ours, uniform.differs) == ((30, 40), False)
    assert (ycsb.ours, ycsb.paper, ycsb.differs) == ((20, 60), (5.3, 27.3), True)
    assert best.ours == (20, 20)
    assert "misses 1.00 to 1.00 pages" in ycsb.reason
    assert "Least" not in best.reason


def test_the_least_gain_tells_what_its_operations_take() -> None:
    def row(kind: str, threads: int, percent: float, read: float, update: float) -> dict:
        latency = {"all": {"mean_us": 1.0}, "read": {"mean_us": read}, "update": {"mean_us": update}}
        return {**gain("YCSB-A", threads, percent), "kind": kind, repeated.RUNS: [{"latency": latency}] * 2}

    rows = [row("osdp", 1, 0, 60, 120), row("osdp", 8, 0, 73, 310), row("hwdp", 1, 20, 40, 100), row("hwdp", 8, -1, 52, 333)]
    (ycsb,) = isca20_rocksdb.compared_13(rows)
    assert ("The smallest gain is that of YCSB-A with 8 threads: read 52 us instead of 73 (with 1 40 instead of 60), update "
            "333 us instead of 310 (with 1 100 instead of 120); then each core has a thread: a") in ycsb.reason


def test_others_of_a_miss_are_over_runs_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The additional time of user code over `ideal` can be computed from the runs; `ideal` has no row."""
    spans = {name: 1.0 for name in (*profiling.BEFORE, "device", *profiling.AFTER)}
    miss = {"count": 10, "device_mean_us": 28.0, "nondevice_mean_us": 1.5, "mean_us": 29.5}

    def record(kind: str, seed: int) -> dict:
        faults, user_us = {"ideal": (0, 70 + seed), "hwdp": (2, 75)}.get(kind, (10, 90 + 3 * seed))
        region = {name: miss if kind == of else {"count": 0} for name, of in (("hw_miss", "hwdp"), ("port_miss", "trap"))}
        return {"profile": {"faults": {"count": faults, "spans_us": spans, "mean_us": 12.0}, "clock_hz": 10**9,
                            "categories": {"user code": {"cycles": user_us * 1000}}}, "stats": {"rois": [region]}, "git": "v1"}

    monkeypatch.setattr(thesis.build, "machine", lambda: tmp_path)
    monkeypatch.setattr(thesis, "_attributed", lambda setup, load, kind, seed: (kind, seed))
    monkeypatch.setattr(thesis.kept, "records", lambda program, runs, at_once: [record(*run) for run in runs])
    monkeypatch.setattr(thesis.kept, "configuration", lambda run: {"title": f"{run[0]} {run[1]}"})
    rows = thesis.figure_5_4(Setup(tmp_path))
    assert [row["kind"] for row in rows] == ["osdp", "emulated", "trap", "hwdp"]
    measure.keep("thesis-5.4", EXPERIMENTS["thesis-5.4"], Setup(tmp_path), rows, {"host_seconds": 1.0})
    runs = {(run["names"]["kind"], run["seed"]): run
            for run in map(json.loads, (tmp_path / "runs.jsonl").read_text().splitlines())}
    assert len(runs) == 5 * len(thesis.SEEDS)
    for (kind, seed), run in runs.items():
        assert run["configuration"]["title"] == f"{kind} {seed}"
        found, ideal = ({name: figure["value"] for name, figure in runs[of, seed]["figures"].items()} for of in (kind, "ideal"))
        if kind != "ideal":
            misses = found["misses"] + found.get("os_faults", 0)
            assert found["pollution"] == pytest.approx((found["user_us"] - ideal["user_us"]) / misses)
    assert rows[0]["pollution"] == pytest.approx(mean((90 + 3 * seed - 70 - seed) / 10 for seed in thesis.SEEDS))


def test_thesis_ratios() -> None:
    rows = [{"kind": "hwdp", "threads": threads, "latency_ratio_to_osdp": ratio, "latency_ratio_to_osdp_ci": 0.1,
             "kernel_instructions_per_op": 1.0} for threads, ratio in ((1, 3.0), (4, 5.5))]
    (found,) = thesis.ratios("5.5", "latency")(rows)
    assert (found.paper, found.ours, found.differs) == ((5.35, 6.33), (3.0, 5.5), True)
