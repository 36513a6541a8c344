# SPDX-License-Identifier: Apache-2.0
"""ISCA20's figures of single misses: cases, shares, and the paper's values beside ours. No test runs a guest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from trapless.base.paths import RTL
from trapless.guest.images import ext4
from trapless.loads import rocksdb, setup
from trapless.loads.rocksdb import FIO, Case
from trapless.loads.setup import Setup
from trapless.study import measure, repeated

from studies.isca20 import fio
from studies.isca20 import rocksdb as isca20_rocksdb
from studies.isca20 import smt as isca20_smt

SPANS = {"exception": 0.1, "fault handling": 0.4, "file map": 1.0, "file system": 0.5, "block layer": 0.3, "driver": 0.2,
         "device": 10.0, "interrupt delivery": 0.1, "interrupt": 0.2, "completion": 1.0, "context switch": 1.5,
         "rest of the fault": 0.7}
FAULTS = {"spans_us": SPANS, "instructions": 10_000}


def run_of(case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> rocksdb.kept.Run:
    for module, name in ((setup.build, "kernel"), (rocksdb.rootfs, "image"), (rocksdb.dataset, "image"),
                         (rocksdb.sparse, "image")):
        monkeypatch.setattr(module, name, lambda *_, module=module, **__: tmp_path / module.__name__)
    monkeypatch.setattr(rocksdb.profiling, "symbols_of", lambda _: tmp_path / "System.map")
    return rocksdb.run_of(Setup(tmp_path), case)


def test_parts_of_a_fault_are_all_of_it() -> None:
    """Each span except the device's belongs to one part."""
    named = [span for its in fio.PARTS.values() for span in its]
    assert sorted([*named, "device"]) == sorted(SPANS)
    found = fio.parts_of(FAULTS)
    assert found["submission_us"] == pytest.approx(2.0)
    assert found["submission_percent"] == pytest.approx(20)
    assert found["whole_percent"] == pytest.approx(60)
    assert sum(found[f"{part}_percent"] for part in fio.PARTS) == pytest.approx(found["whole_percent"])


def cold(monkeypatch: pytest.MonkeyPatch, *rows: dict) -> None:
    """Let the runs return these rows."""
    monkeypatch.setattr(fio, "cold", lambda *_: list(rows))


def test_figure_3_tells_misses_from_instructions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hits = {**FAULTS, "spans_us": {**SPANS, "file map": 0.5}}
    cold(monkeypatch, *(repeated.row({"timing": timing}, [{"profile": {"faults": faults}, "seed": seed} for seed in (1, 2)])
                        for timing, faults in (("detailed", FAULTS), ("every access hits", hits))))
    rows = {row["part"]: row for row in fio.figure_3(Setup(tmp_path))}
    submission = rows["submission"]
    assert (submission["of_device"], submission["if_hits"], submission["paper"]) == (pytest.approx(20), pytest.approx(15), 9.85)
    assert submission["of_device_ci"] == pytest.approx(0)
    assert rows["fault handling"]["paper"] is None
    assert len(rows["whole"][repeated.RUNS]) == 4
    found = {one.quantity.partition(",")[0]: one for one in fio.compared_3(list(rows.values()))}
    assert set(found) == {"exception", "submission", "interrupt", "switch", "completion", "whole"}
    assert "Of its 20.0 %, 5.0 are misses" in found["submission"].reason
    assert "15.0 are left if every access hits" in found["submission"].reason
    assert "45.2 of its 76.3 %" in found["submission"].reason
    assert found["submission"].differs


def test_figure_11_sets_the_smu_beside_the_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {"walk": 0.04, "request": 0.002, "frame": 0.0, "command": 0.08, "device": 10.0, "completion": 0.001, "install": 0.035,
             "resume": 0.03}
    cold(monkeypatch, repeated.row({"kind": "osdp"}, [{"profile": {"faults": FAULTS}}] * 2),
         repeated.row({"kind": "hwdp"}, [{"steps": steps}] * 2))
    osdp, hwdp = rows = fio.figure_11(Setup(tmp_path))
    assert (osdp["before_us"], osdp["after_us"]) == (pytest.approx(2.5), pytest.approx(3.5))
    assert hwdp["before_us_less"] == pytest.approx(2.5 - 0.122)
    assert (hwdp["smu_before_ns"], hwdp["smu_after_ns"]) == (pytest.approx(82), pytest.approx(36))
    before, after, smu_before, smu_after = fio.compared_11(rows)
    assert (before.differs, after.differs) == (False, True)
    assert smu_before.paper == (pytest.approx(7 / 2.8 + 78.76), pytest.approx(7 / 2.8 + 78.76))
    assert (smu_before.differs, smu_after.differs) == (False, False)
    assert sum(us for part, us in ((part["part"], part["us"]) for part in fio.parts_11(rows)) if part == "device") == 20


@pytest.mark.parametrize("scale", [fio.SCALE_OF_12, fio.SCALE_OF_QUICK_12])
def test_reads_of_figure_12_hardly_meet(scale: rocksdb.Scale) -> None:
    """The threads draw independently, so one thread may read a page that another has read. All pages must fit into memory,
    too."""
    case = Case(FIO, "osdp", max(fio.THREADS), scale, filled=False, sparse=True)
    share = case.operations / (scale.data_mib * ext4.MIB // rocksdb.RECORD_BYTES)
    assert share / 2 < 0.02
    assert case.operations * rocksdb.RECORD_BYTES < scale.memory_mib * ext4.MIB // 2


def test_cases_of_figure_12(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = []
    monkeypatch.setattr(fio, "cold", lambda setup, cases, *scales: seen.append((list(cases), scales)) or [])
    fio.figure_12(Setup(tmp_path))
    fio.figure_12(Setup(tmp_path, quick=True, kinds=("osdp", "hwdp")))
    (full, scales), (quick, _) = seen
    assert [names["threads"] for names, _ in full] == [threads for threads in (1, 2, 4, 8) for _ in rocksdb.KINDS]
    assert [(names["threads"], names["kind"]) for names, _ in quick] == [
        (threads, kind) for threads in (1, 8) for kind in ("osdp", "hwdp")]
    assert scales == (fio.SCALE_OF_12, fio.SCALE_OF_QUICK_12)
    run = run_of(Case(FIO, scale=fio.SCALE_OF_12, filled=False, **full[0][1]), monkeypatch, tmp_path)
    assert run.guest.data == tmp_path / "trapless.guest.images.sparse"
    assert "cat " not in run.job.script


def test_cases_differ_in_what_they_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    case = Case(FIO, "osdp", 1, fio.SCALE, filled=False, attributed=True)
    detailed, hits = (run_of(replace(case, detailed=on), monkeypatch, tmp_path) for on in (True, False))
    assert (detailed.guest.detail, hits.guest.detail) == ("roi", None)
    assert replace(detailed.guest, detail=None) == hits.guest
    assert (detailed.guest.data, detailed.job) == (tmp_path / "trapless.guest.images.dataset", hits.job)


def test_the_quick_form_has_fewer_seeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(isca20_rocksdb.rocksdb, "run_of", lambda _, case: case.seed)
    case = Case(FIO, "osdp", 1, fio.SCALE)
    for quick, seeds in ((True, (1, 2)), (False, (1, 2, 3))):
        (point,) = isca20_rocksdb.points(Setup(tmp_path, quick=quick), [({}, case)])
        assert tuple(point.runs) == tuple(point.runs.values()) == seeds


def test_figure_12_names_what_the_paper_measured() -> None:
    """The paper's numbers are those of its emulation. The reason has our number, and the time outside the miss."""
    rows = [{"kind": kind, "threads": 8, "mean_us": us, "device_us": 10.9, "miss_us": 11.0, "paper": paper,
             "latency_change": change, "latency_change_ci": 1.0}
            for kind, us, paper, change in (("osdp", 30, None, None), ("emulated", 24, None, -20.0), ("hwdp", 21, -27.0, -30.0))]
    del rows[0]["latency_change"]
    (found,) = fio.compared_12(rows)
    assert (found.paper, found.ours, found.differs) == ((-27, -27), (-30, -30), True)
    assert "30.0 us with osdp and 21.0 us with hwdp" in found.reason
    assert "10.0 us are outside the miss" in found.reason
    assert "-20.0 % here" in found.reason
    assert fio.compared_12([row for row in rows if row["kind"] == "hwdp"][:0]) == []
    (alone,) = fio.compared_12([rows[0], rows[2]])
    assert "emulation" not in alone.reason


def test_figure_17_takes_the_read_that_hits_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a miss is the time of a read minus that of a read with `ideal`, seed by seed. The runs of `ideal` are recorded.
    The reason says how fast the emulation would have to be for the paper's value."""
    cold(monkeypatch, *(repeated.row({"drive": drive, "kind": kind}, [
        {"mean_us": us + seed, "device_us": device, "seed": seed} for seed in (1, 2)])
        for drive, device in (("z-ssd", 10.9), ("optane-ssd", 8.9), ("optane-pmm", 2.1))
        for kind, us in (("ideal", 4.0), ("osdp", device + 16), ("emulated", device + 6), ("hwdp", device + 4.5))))
    rows = fio.figure_17(Setup(tmp_path))
    assert {row["kind"] for row in rows} == {"osdp", "emulated", "hwdp"}
    pmm = next(row for row in rows if (row["drive"], row["kind"]) == ("optane-pmm", "hwdp"))
    assert (pmm["fault_us"], pmm["fault_us_ci"]) == (pytest.approx(2.6), pytest.approx(0))
    assert pmm["latency_change"] == pytest.approx(100 * (2.6 / 4.1 - 1))
    measure.keep("isca20-17", fio.EXPERIMENTS["isca20-17"], Setup(tmp_path), rows, {"host_seconds": 1.0})
    runs = {(*run["names"].values(), run["seed"]): {key: figure["value"] for key, figure in run["figures"].items()}
            for run in map(json.loads, (tmp_path / "runs.jsonl").read_text().splitlines())}
    assert len(runs) == 3 * 4 * 2
    for (drive, kind, seed), run in runs.items():
        hit = runs[drive, "ideal", seed]
        assert ("fault_us" not in run) if kind == "ideal" else run["fault_us"] == run["mean_us"] - hit["mean_us"]
    z_ssd, optane, found = fio.compared_17(rows)
    assert (found.paper, found.differs, optane.paper, optane.differs) == ((-44, -44), True, None, False)
    assert "takes 2.00 us and the hardware 0.50 us" in found.reason
    assert f"would have to take {2.6 / 0.56 - 2.1:.2f}" in found.reason
    assert "would have" not in optane.reason
    assert z_ssd.paper == (-14, -14)


MODULES = {"pmshr": 50, "front": 10, "lookup": 5, "answer": 5, "desc": 10, "free": 5, "update": 10, "fence": 5}


def test_area_by_the_papers_parts() -> None:
    rows = fio.blocks({name: {"um2": 1e6 * size, "gates": size, "flip_flops": 2 * size} for name, size in MODULES.items()})
    assert [(row["part"], row["share"]) for row in rows] == [
        ("PMSHR", 70), ("NVMe registers", 10), ("prefetch buffer", 5), ("rest", 15), ("whole", 100)]
    assert [row["paper"] for row in rows] == [87.6, 6.7, 3.7, 2.0, None]
    assert rows[-1]["scaled_mm2"] == pytest.approx(100 * (22 / 180) ** 2)
    *shares, whole = fio.compared_area(rows)
    assert len(shares) == 4
    assert (whole.paper, whole.ours, whole.differs) == ((0.014, 0.014), (pytest.approx(1.4938, abs=1e-4),) * 2, True)
    assert "100 gates" in whole.reason and "200 bits" in whole.reason and "12,416 bits" in whole.reason


def test_area_takes_the_synthesis_that_is_there(tmp_path: Path) -> None:
    """Every module of the RTL is in one part, and the parts add up to the whole."""
    known = json.loads((RTL / "smu" / "doc" / "cost.json").read_text())["parts"]
    assert {module for its in fio.MODULES.values() for module in its} <= set(known["parts"])
    *parts, whole = fio.area(Setup(tmp_path, quick=True))
    assert sum(row["share"] for row in parts) == pytest.approx(100)
    assert whole["um2"] == pytest.approx(known["total"]["um2"])


def test_the_papers_bars_are_printed_values() -> None:
    assert [isca20_rocksdb.paper("12", threads) for threads in fio.THREADS] == [-37.0, None, None, -27.0]
    assert [isca20_rocksdb.paper("17", drive) for drive in fio.DRIVES] == [-14.0, None, -44.0]
    assert fio.smu_ns("after") == pytest.approx(101 / 2.8)


def test_fio_and_its_neighbour_are_pinned_to_two_threads_of_a_core() -> None:
    script = isca20_smt.job(isca20_smt.LOAD, "osdp", "awk").script
    assert "taskset 2 sh -c 'awk" in script and "taskset 1 hwdp" in script
    assert "taskset 2" not in isca20_smt.job(isca20_smt.LOAD, "osdp", "nothing").script


@pytest.mark.parametrize("program", ["FIO", "DBBench", "YCSB-E"])
def test_threads_share_the_operations(program: str) -> None:
    """For every number of threads, the same operations run before the measurement and during it."""
    for threads in isca20_rocksdb.THREADS:
        one, several = Case(program, "osdp", 1, rocksdb.SCALE), Case(program, "osdp", threads, rocksdb.SCALE)
        assert several.operations % threads == several.warm % threads == 0
        assert (several.operations, several.warm) == (one.operations, one.warm)


def test_what_runs_share_is_found_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Checking whether a kernel or a disk is up to date takes half a second, and a figure has hundreds of runs."""
    asked = []
    shared, case = Setup(tmp_path), Case(FIO, "osdp", 1, fio.SCALE)
    monkeypatch.setattr(setup.build, "kernel", lambda **_: asked.append("kernel") or tmp_path / "Image")
    monkeypatch.setattr(rocksdb.rootfs, "image", lambda **_: asked.append("root") or tmp_path / "root.img")
    monkeypatch.setattr(rocksdb.dataset, "image", lambda size: asked.append(size) or tmp_path / "data.img")
    for threads in (1, 2, 4):
        rocksdb.run_of(shared, replace(case, threads=threads))
    rocksdb.run_of(shared, replace(case, scale=rocksdb.SCALE_OF_QUICK))
    assert asked.count("kernel") == asked.count("root") == 1
    assert len(asked) == 4


def test_computing_is_of_the_threads_own_time() -> None:
    """Four threads do 100,000 operations in one second each. The region lasts longer for one of them; this must not count for
    all."""
    run = {"seed": 1, "names": {"ratio": 2}, "ops": 400_000, "ops_per_second": 400_000.0, "region_seconds": 1.5,
           "profile": {"faults": {"count": 400_000, "mean_us": 3.0}, "minor_faults": {"count": 0, "mean_us": None}}}
    row = isca20_rocksdb._split({"ratio": 2, repeated.RUNS: [run]})
    assert (row["fault_us"], row["compute_us"], row["fault_share"]) == (3.0, pytest.approx(7.0), pytest.approx(30.0))


def test_throughput_is_the_sum_of_the_threads_own(tmp_path: Path) -> None:
    """The second of fio's threads reads alone at the end. Before the first read, both wait for mmap(), which arms; this time is
    not a read's. Percentiles are over all reads."""
    def job(ios: int, runtime: int, bins: dict[str, int]) -> dict:
        mean = sum(int(ns) * count for ns, count in bins.items()) / ios
        return {"error": 0, "read": {"total_ios": ios, "runtime": runtime, "clat_ns": {"mean": mean, "bins": bins}}}

    (tmp_path / "fio.json").write_text(json.dumps({"jobs": [job(100, 110, {"1000": 99, "5000": 1}),
                                                            job(100, 210, {"1000": 97, "5000": 3})]}))
    # Most of this time was re-arming during the reads.
    (tmp_path / "hwdp-stats").write_text("pages_armed 300\npages_rearmed 200\narming_ns 90000000\n")
    (tmp_path / "fio_clat.1.log").write_text("15, 5000000, 0, 4096, 0, 0\n16, 1000, 0, 4096, 0, 0\n")
    (tmp_path / "fio_clat.2.log").write_text("10, 0, 0, 4096, 0, 0\n")
    _, said = rocksdb._SAID[FIO](tmp_path, 2)
    assert (said["ops"], said["ops_per_second"]) == (200, pytest.approx(100 / 0.1 + 100 / 0.2))
    assert (said["mean_us"], said["p99_us"]) == (pytest.approx((196 * 1 + 4 * 5) / 200), 5.0)
    (tmp_path / "dbbench.txt").write_text(
        "readrandom   :      50.000 micros/op 30000 ops/sec 0.1 seconds 3000 operations;  1.5 MB/s (3000 of 3000 found)\n")
    assert rocksdb._SAID[rocksdb.DBBENCH](tmp_path, 2)[1]["ops_per_second"] == 40_000
    (tmp_path / "fio.json").write_text(json.dumps({"jobs": [job(1, 1, {"1": 1}), {**job(1, 1, {"1": 1}), "error": 5}]}))
    with pytest.raises(rocksdb.UserError, match="error 5"):
        rocksdb._SAID[FIO](tmp_path, 2)
