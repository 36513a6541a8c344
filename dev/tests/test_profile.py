# SPDX-License-Identifier: Apache-2.0
"""Profiles: the table of categories, flame graphs, and the attribution of a whole guest."""

from __future__ import annotations

import json
import subprocess
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from trapless.base.paths import MACHINE
from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest import run
from trapless.guest.images import dataset, ext4
from trapless.guest.job import command_job
from trapless.loads import fio as miss_latency
from trapless.profile import flame, profiling

from dev.tests.test_profile_page import numbers

TABLE = MACHINE / "crates" / "attribution" / "linux.toml"
RING = 4096
"""Frames that Linux gives to the SMU's free ring by default."""
FIRST_STEPS = ["trap", "handler", "file_map", "file_system", "block", "driver", "doorbell", "device_end"]
LOAD = miss_latency.Load(file_bytes=64 * ext4.MIB, read_bytes=2 * ext4.MIB)


def test_every_function_of_the_table_is_the_kernels(patched: Path) -> None:
    names = {line.split()[2] for line in profiling.symbols_of(patched).read_text().splitlines() if line.split()[1] in "tTwW"}
    table = tomllib.loads(TABLE.read_text())
    for entry in table["category"] + table["step"]:
        for function in entry["functions"]:
            if function.startswith("["):
                continue
            beginning = function.removesuffix("*")
            known = any(name.startswith(beginning) for name in names) if beginning != function else function in names
            assert known, f"{entry['name']}: {function}"


def test_a_kernel_without_symbols_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no System.map beside it"):
        profiling.symbols_of(tmp_path / "Image")


def test_flame_graph() -> None:
    lines = ["fio;[user] 60", "fio;[page fault];handle_mm_fault 30", "fio;[page fault];a<b 10", "swapper/0;[asleep] 1000"]
    root = flame.tree(lines, without=frozenset({"[asleep]"}))
    assert (root.total, root.callees["fio"].callees["[page fault]"].total) == (100, 40)
    picture = flame.svg(root, "x < y")
    titles = {group.find("{*}title").text: float(group.find("{*}rect").get("width"))
              for group in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}g")}
    assert list(titles) == ["all: 100 cycles, 100.00 %", "fio: 100 cycles, 100.00 %", "[page fault]: 40 cycles, 40.00 %",
                            "a<b: 10 cycles, 10.00 %", "handle_mm_fault: 30 cycles, 30.00 %", "[user]: 60 cycles, 60.00 %"]
    assert titles["[user]: 60 cycles, 60.00 %"] == pytest.approx(0.6 * titles["all: 100 cycles, 100.00 %"], abs=1)
    ElementTree.fromstring(flame.svg(flame.tree([]), "nothing"))


def test_kinds_side_by_side() -> None:
    spans = {name: 1.0 for name in (*profiling.BEFORE, "device", *profiling.AFTER)} | {"device": 30.0}

    def one(kind: str, faults: int, user_us: int, **misses: dict) -> tuple[str, dict, dict]:
        none = {"count": 0}
        record = {"faults": {"count": faults, "spans_us": spans, "mean_us": sum(spans.values())}, "clock_hz": 10**9,
                  "categories": {"user code": {"cycles": user_us * 1000}}}
        return kind, record, {"rois": [{"hw_miss": none, "port_miss": none, **misses}]}

    miss = {"count": 10, "device_mean_us": 28.0, "nondevice_mean_us": 1.5, "mean_us": 29.5}
    osdp, trap, hwdp = profiling.kind_rows([
        one("ideal", 0, 70), one("osdp", 10, 90), one("trap", 10, 80, port_miss=miss), one("hwdp", 0, 70, hw_miss=miss)])
    assert (osdp["before"], osdp["device"], osdp["smu"], osdp["after"]) == (6, 30, 0, 5)
    assert osdp["whole"] == 41 and osdp["pollution"] == pytest.approx(2)
    assert (trap["device"], trap["smu"]) == (28, 2)
    assert hwdp["misses"] == 10 and hwdp["smu"] == 1.5 and hwdp["pollution"] == 0


def test_means_are_over_all_regions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A region is weighted by its number of misses."""
    def miss(count: int, device: float) -> dict:
        return {"count": count, "mean_us": device + 2, "device_mean_us": device, "nondevice_mean_us": 2.0 if count else 0.0,
                "steps": {"walk": 2.0, "device": device}}

    def region(**misses: dict) -> dict:
        return {"hw_miss": miss(0, 0.0), "port_miss": miss(0, 0.0), **misses}

    spans = {name: 1.0 for name in (*profiling.BEFORE, "device", *profiling.AFTER)} | {"device": 30.0}
    none = {"faults": {"count": 0}, "minor_faults": {"count": 2, "mean_us": 600.5}, "clock_hz": 10**9}
    faults = {"faults": {"count": 40, "spans_us": spans, "mean_us": 41.0}, "clock_hz": 10**9}
    shares = [miss(0, 0.0), miss(10, 20.0), miss(30, 28.0)]
    hwdp, trap = profiling.kind_rows([("hwdp", none, {"rois": [region(hw_miss=one) for one in shares]}),
                                      ("trap", faults, {"rois": [region(port_miss=one) for one in shares]})])
    assert (hwdp["misses"], hwdp["device"], hwdp["smu"], hwdp["whole"]) == (40, 26, 2, 28)
    assert (trap["misses"], trap["device"], trap["smu"]) == (40, 26, 4)
    record = {**none, "windows": [{"begin_cycle": 0, "end_cycle": 1}], "categories": {}, "cut": {"faults": 0, "misses": 0}}
    stats = {"rois": [region(hw_miss=one) for one in shares]}
    for name, text in {"profile.json": json.dumps(record), "stats.json": json.dumps(stats), "stacks.folded": "fio;[user] 60\n",
                       "faults.jsonl": "", "misses.jsonl": "", "frames.jsonl": ""}.items():
        (tmp_path / name).write_text(text)
    assert profiling.finish(tmp_path, "test") == 0
    said = capsys.readouterr().out
    assert "asked by page walks (mean of 40)" in said
    assert "Page faults without a read: 2, 1,201 us in all (600.5 us on average)." in " ".join(said.split())
    assert ["device", "26.00", "100.0"] in [line.split() for line in said.splitlines()]


def test_a_comparison_that_fails_shows_nothing_of_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kinds.json", "index.html"):
        (tmp_path / name).write_text("earlier")
    monkeypatch.setattr(profiling, "profile", lambda *_: 7)
    assert profiling.compare(run.Request(["true"]), tmp_path, None, (), None, ("osdp",)) == 7
    assert not list(tmp_path.iterdir())


def test_the_stock_kernel_is_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "System.map").touch()
    asked = []
    monkeypatch.setattr(profiling.build, "kernel", lambda **what: asked.append(what) or tmp_path / "Image")
    monkeypatch.setattr(run, "run", lambda request: asked.append(request) or 7)
    assert profiling.profile(run.Request(["true"], stock=True), tmp_path / "out", None, (), None) == 7
    assert asked[0]["stock"] and (asked[1].kernel, asked[1].stock) == (tmp_path / "Image", False)


def check_trace(trace: dict) -> dict[str, int]:
    """Check that slices of one track are nested or separate, and in order; return how many there are of each name."""
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    begun: dict[tuple[int, int], int] = defaultdict(int)
    counts: dict[str, int] = defaultdict(int)
    named = set()
    for event in trace["traceEvents"]:
        if event["ph"] == "C":
            assert event["args"]["frames"] >= 0
            counts[event["name"]] += 1
            continue
        track = event["pid"], event["tid"]
        if event["ph"] == "M":
            named.add(track)
            continue
        assert event["ph"] == "X" and event["name"] and event["dur"] >= 0
        begin, end = round(event["ts"] * 1000), round(event["ts"] * 1000) + round(event["dur"] * 1000)
        assert begin >= begun[track]
        begun[track] = begin
        around = tracks[track]
        while around and around[-1][1] <= begin:
            around.pop()
        assert not around or end <= around[-1][1], event
        around.append((begin, end))
        counts[event["name"]] += 1
    assert set(tracks) <= named
    return counts


def check_page(folder: Path, stats: dict) -> dict[str, dict]:
    """Finish a profile; return the numbers of its page's figures by their ids."""
    (folder / "stats.json").write_text(json.dumps(stats))
    assert profiling.finish(folder, "test") == 0
    ElementTree.parse(folder / "flame.svg")
    return numbers((folder / "index.html").read_text())


def check_frames(folder: Path, job: Path) -> list[dict]:
    """Check that as many frames are adopted at the end as the kernel says, and that there are never more than the ring holds."""
    kernel = dict(line.split() for line in (job / "hwdp-stats").read_text().splitlines())
    frames = [json.loads(line) for line in (folder / "frames.jsonl").read_text().splitlines()]
    assert 100 < len(frames) <= 2048
    assert frames[-1]["adopted"] + frames[-1]["unsynced"] == int(kernel["smu_installed"]) == int(kernel["pages_adopted"]) > 500
    assert max(frame["unsynced"] for frame in frames) > 50
    assert all((frame["ring"] or 0) + frame["unsynced"] <= RING for frame in frames)
    return frames


def attributed(program: Path, kernel: Path, root: Path, out: Path, kind: str, attribute: bool, **options: object) -> dict:
    guest = guests.Guest(kernel, root, data=dataset.image(LOAD.file_bytes), max_seconds=300, **options)
    if attribute:
        wanted = profiling.Attribute(out / "profile", "roi", (str(profiling.symbols_of(kernel)),))
        guest = LOAD.guest(replace(guest, options=tuple(wanted.options())))
    else:
        guest = LOAD.guest(guest)
    outcome = guests.run_on_machine(program, guest, LOAD.job(kind), out / "job")
    assert outcome.status == 0, outcome.console
    return outcome.stats


@pytest.mark.guest
@pytest.mark.series
def test_page_faults_of_the_operating_system(program: Path, patched: Path, root: Path, tmp_path: Path) -> None:
    """Cycles are the same with and without attribution; everything adds up; each fault's steps come in order."""
    without = attributed(program, patched, root, tmp_path / "without", "osdp", attribute=False)
    stats = attributed(program, patched, root, tmp_path, "osdp", attribute=True)
    for key in ("sim_cycles", "instructions_by_mode"):
        assert stats[key] == without[key]
    record = json.loads((tmp_path / "profile" / "profile.json").read_text())
    region, = stats["rois"]
    assert sum(region["instructions"].values()) == sum(spent["instructions"] for spent in record["categories"].values())
    assert record["categories"]["user code"]["instructions"] == region["instructions"]["user"]
    window = region["end_cycle"] - region["begin_cycle"]
    for hart in record["harts"]:
        # At both ends, a hart's clock may be ahead of the machine's by a window: up to MAX_WINDOW cycles if the hart runs alone.
        assert sum(spent["cycles"] for spent in hart["categories"].values()) == hart["total"]["cycles"]
        assert hart["total"]["cycles"] == pytest.approx(window, abs=1_000_000)
    faults = [json.loads(line) for line in (tmp_path / "profile" / "faults.jsonl").read_text().splitlines()]
    read = [fault for fault in faults if "device_end" in fault["times"]]
    assert len(read) == record["faults"]["count"]
    watch, = region["watch"]
    # `read` also has the faults at pages of fio's libraries, in fio and when it exits.
    watched = [fault for fault in read if watch["va"] <= int(fault["va"], 16) < watch["va"] + watch["len"]]
    assert watch["os_faults"] == LOAD.read_bytes // 4096 == len(watched)
    for fault in [fault for fault in read if fault["task"] == "fio" and fault["lba"] is not None]:
        times = list(fault["times"].values())
        assert list(fault["times"])[:8] == FIRST_STEPS
        assert times == sorted(times), fault
    spans = record["faults"]["spans_us"]
    assert sum(spans.values()) == pytest.approx(record["faults"]["mean_us"])
    assert spans["device"] == pytest.approx(region["nvme_read"]["mean_us"], rel=0.01)
    for name in ("exception", "file map", "file system", "block layer", "driver", "interrupt", "completion", "context switch"):
        assert spans[name] > 0.3, name
    counts = check_trace(json.loads((tmp_path / "profile" / "trace.json").read_text()))
    assert counts["page fault"] == len(read) and counts["read"] >= len(read) and counts["region 0"] == 1
    figures = check_page(tmp_path / "profile", stats)
    assert {"life-faults", "steps-faults", "misses-over-time", "flame"} <= set(figures)
    assert not {"life-walks", "life-ports", "frames"} & set(figures)
    waited = next(curve for curve in figures["misses-over-time"]["data"] if "waited" in curve["name"])
    assert sum(waited["y"]) == len(read)
    median = sorted(fault["times"]["return"] - fault["times"]["trap"] for fault in read)[(len(read) - 1) // 2]
    assert sum(figures["life-faults"]["data"][0]["x"]) == pytest.approx(median * 1e6 / record["clock_hz"])


PROGRAM = """
#define KEEP __attribute__((noinline))
KEEP unsigned long inner(unsigned long x) { for (int i = 0; i < 100; i++) x = x * 5 + 1; return x; }
KEEP unsigned long outer(unsigned long x) { return inner(x) + inner(x + 1); }
int main(void) { unsigned long s = 0; for (int i = 0; i < 200; i++) s += outer(i); return s == 1; }
"""


@pytest.mark.guest
def test_functions_of_a_program(program: Path, patched: Path, root: Path, tmp_path: Path) -> None:
    """Names apply only to tasks of the program, although the guest's shell has code at the same addresses."""
    (tmp_path / "hot.c").write_text(PROGRAM)
    subprocess.run(["riscv64-linux-gnu-gcc", "-O1", "-static", "-o", tmp_path / "hot", tmp_path / "hot.c"], check=True)
    wanted = profiling.Attribute(tmp_path / "profile", f"milestone:{guests.FIRST_COMMAND}",
                                 (str(profiling.symbols_of(patched)), str(tmp_path / "hot")))
    guest = guests.Guest(patched, root, max_seconds=300, smu=False, options=tuple(wanted.options()))
    assert guests.run_on_machine(program, guest, command_job(["./hot"], inputs=(tmp_path / "hot",))).status == 0
    record = json.loads((tmp_path / "profile" / "profile.json").read_text())
    functions = {function["name"]: function for function in record["functions"] if function["category"] == "user code"}
    assert (functions["inner"]["calls"], functions["outer"]["calls"]) == (400, 200)
    assert functions["outer"]["inclusive_cycles"] >= functions["inner"]["inclusive_cycles"]
    assert {"hot", "swapper/0", "trapless-init"} <= set(record["tasks"])
    stacks = (tmp_path / "profile" / "stacks.folded").read_text().splitlines()
    assert all(line.startswith("hot;") for line in stacks if ";inner" in line)
    assert any("main;outer;inner " in line for line in stacks)


@pytest.mark.guest
@pytest.mark.series
@pytest.mark.parametrize("kind", ["trap", "hwdp"])
def test_misses_of_the_hardware(program: Path, patched: Path, root: Path, tmp_path: Path, kind: str) -> None:
    """Every miss is recorded, with the steps from which the machine's own means are computed."""
    stats = attributed(program, patched, root, tmp_path, kind, attribute=True, profile="server", detail="roi")
    misses = [json.loads(line) for line in (tmp_path / "profile" / "misses.jsonl").read_text().splitlines()]
    region, = stats["rois"]
    mine = region["hw_miss" if kind == "hwdp" else "port_miss"]
    assert len(misses) == mine["count"] > 500
    record = json.loads((tmp_path / "profile" / "profile.json").read_text())
    whole = sum(miss["times"]["resumed"] - miss["times"]["walk"] for miss in misses) / len(misses)
    assert whole * 1e6 / record["clock_hz"] == pytest.approx(mine["mean_us"], rel=0.01)
    assert (record["categories"]["miss in hardware"]["cycles"] > 0) == (kind == "hwdp")
    counts = check_trace(json.loads((tmp_path / "profile" / "trace.json").read_text()))
    frames = check_frames(tmp_path / "profile", tmp_path / "job")
    assert counts["unsynced"] == counts["in the ring"] == len(frames)
    assert any(frame["ring"] for frame in frames)
    figures = check_page(tmp_path / "profile", stats)
    assert {"life-walks" if kind == "hwdp" else "life-ports", "misses-over-time", "frames", "flame"} <= set(figures)
    assert figures["frames"]["data"][0]["y"] == [frame["ring"] for frame in frames]
    # Misses in caches, TLBs and predictors are attributed, too.
    for miss in ("l1d", "walks", "branches"):
        spent = {category: spent.get("misses", {}).get(miss, 0) for category, spent in record["categories"].items()}
        user = spent.pop("user code") + spent.pop("miss in hardware")
        for name, own in (("user", user), ("kernel", sum(spent.values()))):
            assert own == pytest.approx(region["misses"][name][miss], rel=0.02, abs=20), (name, miss)


@pytest.mark.guest
@pytest.mark.series
def test_frames_of_the_unit_in_software(program: Path, patched: Path, root: Path, tmp_path: Path) -> None:
    """Frames are recorded as with hardware, but without those in the ring."""
    attributed(program, patched, root, tmp_path, "emulated", attribute=True)
    assert not any(frame["ring"] for frame in check_frames(tmp_path / "profile", tmp_path / "job"))
