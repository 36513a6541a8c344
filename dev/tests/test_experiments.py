# SPDX-License-Identifier: Apache-2.0
"""How experiments, soak and selftests read the files of a guest."""

from __future__ import annotations

from pathlib import Path

import pytest
from trapless.base.ui import UserError
from trapless.guest.job import KINDS
from trapless.loads import rocksdb
from trapless.loads.rocksdb import FIO, Case
from trapless.loads.setup import Setup
from trapless.results import table
from trapless.study import measure, repeated
from trapless.study.catalogue import EXPERIMENTS

from dev import goals, selftests, soak
from studies.aspf import figures as aspf
from studies.costs import small_no_refill
from studies.isca20 import fio, smt
from studies.stc import runs


def test_every_table_of_an_experiment_is_stated_and_measured() -> None:
    stated = {entry.id for entry in goals.load()[1]}
    for entry in EXPERIMENTS.values():
        assert set(entry.tables) <= stated


def test_cases_cover_the_papers_settings() -> None:
    cases = small_no_refill.cases(KINDS, quick=False)
    assert len({case.name for case in cases}) == len(cases)
    for kind in ("emulated", "trap", "hwdp"):
        for threads in (1, 2, 4):
            kpoold = {case.load.kpoold for case in cases
                      if (case.setting, case.kind, case.load.threads) == ("small", kind, threads) and not case.device}
            assert kpoold == {True, False}


def run_of(kind: str, kpoold: str | None, mean: float, **more: float) -> dict:
    return {"setting": "small", "threads": 1, "kind": kind, "kpoold": kpoold, "mean_us": mean, "bandwidth_mb_s": 100 / mean,
            "read_bytes": 1e6, "runtime_seconds": 1.0, "waited_seconds": 0.2, **more}


def test_ratios() -> None:
    records = small_no_refill.compare([
        run_of("ideal", None, 30), run_of("osdp", None, 240), run_of("emulated", "off", 90),
        run_of("hwdp", "off", 60, refill_faults=100), run_of("hwdp", "on", 48, refill_faults=25)])
    off, on = records[3:]
    assert off["latency_ratio_to_osdp"] == 4
    assert off["latency_ratio_to_emulated"] == 1.5
    assert off["miss_by_difference_us"] == 30
    assert (off["bandwidth_mb_s"], off["reading_mb_s"]) == (pytest.approx(100 / 60), pytest.approx(1.25))
    assert on["latency_change_by_kpoold"] == pytest.approx(-20)
    assert on["refill_faults_removed"] == 75
    assert "latency_ratio_to_emulated" not in on
    rows = {row["figure"]: row for row in small_no_refill.against_papers(records)}
    assert rows["ISCA20: refill faults that kpoold removes, %"]["low"] == 75


def test_smt_ratios() -> None:
    def row(kind: str, beside: str, ops: float, other: float, instructions: float) -> dict:
        return repeated.row({"kind": kind, "beside": beside}, [
            {"ops_per_second": ops, "beside_mips": other, "fio_mips": instructions * ops, "fio_user_per_op": instructions,
             "fio_kernel_per_op": 0.0}] * 2)

    osdp, hwdp, _, alone = smt.compare([row("osdp", "awk", 100, 1000, 8), row("hwdp", "awk", 200, 1100, 2),
                                        row("osdp", "nothing", 100, 0, 8), row("hwdp", "nothing", 150, 0, 2)])
    assert "fio_ratio" not in osdp
    assert (hwdp["fio_ratio"], hwdp["beside_ratio"]) == (2, 1.1)
    assert (hwdp["fio_per_op_change"], hwdp["fio_instructions_change"]) == (-75, -50)
    assert alone["fio_ratio"] == 1.5
    assert "beside_ratio" not in alone
    fio, beside, instructions = smt.compared([osdp, hwdp])
    assert (fio.ours, fio.differs, beside.differs, instructions.differs) == ((2, 2), False, False, True)


def test_overlap() -> None:
    usual = {"refill_fault_us": 500.0, "device_us": 28.0}
    assert small_no_refill.overlap(usual, {"refill_fault_us": 500.0, "device_us": 128.0}) == 100
    assert small_no_refill.overlap(usual, {"refill_fault_us": 600.0, "device_us": 128.0}) == 0
    assert small_no_refill.overlap({}, usual) is None


def test_table_is_replaced_in_a_document() -> None:
    text = "a\n<!-- table x -->\nold\n<!-- end -->\nb\n<!-- table y -->\nkept\n<!-- end -->\n"
    assert table.replace(text, "x", "| new |\n") == text.replace("old", "| new |")


def test_experiment_complaints(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such experiment"):
        measure.run(["nothing"], Setup(tmp_path), None, False)
    with pytest.raises(UserError, match="no records of an earlier run"):
        measure.run(["off_cost"], Setup(tmp_path), tmp_path, False, measured=True)
    (tmp_path / "experiment.json").write_text('{"experiment": "area"}')
    (tmp_path / "results.json").write_text('[{"block": "smu"}]')
    with pytest.raises(UserError, match=r"^--measured: .* has the results of area, not of off_cost$"):
        measure.run(["off_cost"], Setup(tmp_path), tmp_path, False, measured=True)


def test_options_do_not_change_what_a_run_is_named_by(tmp_path: Path) -> None:
    setup = Setup(tmp_path, settings=("ssd=tlc", "machine.harts=2"))
    setup.leaves(("machine.threads_per_core=1",))
    with pytest.raises(UserError, match="^ssd=tlc: this experiment sets ssd itself: leave it out$"):
        setup.leaves(("machine.threads_per_core=1", "ssd=z-ssd"))
    with pytest.raises(UserError, match="ssd.read_us=3: this experiment sets ssd.read_us itself"):
        Setup(tmp_path, settings=("ssd.read_us=3",)).leaves(("ssd=z-ssd",))
    with pytest.raises(UserError, match="memory.frames"):
        aspf.simulate(Setup(tmp_path, settings=("memory.frames=9",), traces=tmp_path, frames=5), [aspf.Case("mix3", "sync")])
    case = Case(FIO, "hwdp", 1, fio.SCALE, settings=("ssd=z-ssd",))
    with pytest.raises(UserError, match="ssd=tlc"):
        rocksdb.run_of(setup, case)
    with pytest.raises(UserError, match="machine.paging=sv57"):
        runs.guest(Setup(tmp_path, kernel=tmp_path, settings=("machine.paging=sv57",)), runs.Case("faultwork seq", "", "sv48"))


def test_options_that_mean_nothing_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "measure", lambda *_: pytest.fail("goes on"))
    for option, setup in (("--frames", Setup(tmp_path, frames=5)), ("--traces", Setup(tmp_path, traces=tmp_path))):
        with pytest.raises(UserError, match=f"^{option} applies only to experiments of the paging simulator"):
            measure.run(["isca20-13"], setup, tmp_path, False)


SOUND = {"stats": "frames_refilled 10\npages_adopted 6\npages_discarded 1\nframes_returned 3\n", "dmesg": "[1] all is well\n",
         "failures": "", "kmemleak": "", "page_owner.before": " hwdp_refill+0x12/0x34\nnr_base_pages: 3\n", "page_owner": ""}


@pytest.mark.parametrize(("file", "text", "found"), [
    ("stats", "frames_refilled 10\npages_adopted 6\npages_discarded 1\nframes_returned 2\n", "1 frames lost"),
    ("dmesg", "[2] BUG: KASAN: slab-use-after-free in hwdp_area_put\n", "KASAN"),
    ("dmesg", "[2] WARNING: possible circular locking dependency detected\n", "circular"),
    ("dmesg", "[2] BUG: Bad rss-counter state mm:1 type:MM_FILEPAGES val:1\n", "rss"),
    ("dmesg", "[2] BUG: KCSAN: data-race in hwdp_refill / mas_find\n", "hwdp_refill"),
    ("kmemleak", "unreferenced object 0xff (size 64):\n", "unreferenced"),
    ("page_owner", " hwdp_refill+0x12/0x34\nnr_base_pages: 3\n", "still allocated"),
    ("page_owner.before", "", "proves nothing"),
    ("failures", "round 3: mapsum read 1 instead of 2\n", "instead of"),
])
def test_soak_finds_what_is_wrong(tmp_path: Path, file: str, text: str, found: str) -> None:
    for name, sound in SOUND.items():
        (tmp_path / name).write_text(sound)
    assert soak.faults(tmp_path) == []
    (tmp_path / file).write_text(text)
    assert any(found in line for line in soak.faults(tmp_path))


def test_soak_leaves_reports_of_linux_alone(tmp_path: Path) -> None:
    for name, sound in SOUND.items():
        (tmp_path / name).write_text(sound)
    for sides in ("mas_find / mas_store", "hwdp_make_table / kthread_is_per_cpu", "hwdp_adopt_next / page_vma_mapped_walk"):
        (tmp_path / "dmesg").write_text(f"[2] BUG: KCSAN: data-race in {sides}\n")
        assert soak.faults(tmp_path) == []
    (tmp_path / "dmesg").write_text("[2] BUG: KCSAN: data-race in hwdp_make_table / kthread_charged\n")
    assert len(soak.faults(tmp_path)) == 1
    leaked = "[2] BUG: workqueue leaked atomic, lock or RCU: kworker/1:1H[105]\n[2]      preempt=0 workfn={}\n[2] Call Trace:\n"
    leaked += "[2] [<0>] process_one_work+0xc56/0x1878\n[2] [<0>] ret_from_fork+0xe/0x18\n"
    (tmp_path / "dmesg").write_text(leaked.format("blk_mq_timeout_work"))
    assert soak.faults(tmp_path) == []
    (tmp_path / "dmesg").write_text(leaked.format("hwdp_yield"))
    assert len(soak.faults(tmp_path)) == 2


@pytest.mark.parametrize(("text", "found"), [
    ("vforks 3\n", None), ("latest_us 1000000\n", None), ("latest_us 0\n", None),
    ("vforks 3\nfutex_woken 0\n", "futex_woken is 0"), ("latest_us 1000001\n", "1000001 us late"), ("", "no counts"),
])
def test_soak_finds_what_was_not_mixed(tmp_path: Path, text: str, found: str | None) -> None:
    (tmp_path / "mix").mkdir()
    (tmp_path / "mix" / "part").write_text(text)
    assert [found in line for line in soak.unmixed(tmp_path, ("part",))] == ([True] if found else [])


def test_selftests_compare_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "0.txt").write_text("TAP version 13\nok 1 mapped at 0x7f00 after 3 ms\nnoise\nnot ok 2 other\nstatus 1\n")
    lines = selftests.result(tmp_path / "0.txt")
    assert lines == ["ok N mapped at N after N ms", "not ok N other", "status 1"]
    changed = ["not ok N mapped at N after N ms", *lines[1:]]
    assert selftests.verdict(tmp_path, ["./t"], {"stock": {"./t": lines}, "off": {"./t": lines}, "on": {"./t": lines}}, {}) == 0
    assert selftests.verdict(tmp_path, ["./t"], {"stock": {"./t": lines}, "off": {"./t": lines}, "on": {"./t": changed}}, {}) == 1
    assert "only on: not ok" in capsys.readouterr().out
