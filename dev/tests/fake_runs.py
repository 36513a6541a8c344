# SPDX-License-Identifier: Apache-2.0
"""Runs of experiments that boot nothing: the files and records of a guest and the machine are made up. Each run's own `take`
reads them."""

from __future__ import annotations

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest import build, kept
from trapless.guest import run as guest_run
from trapless.guest.images import dataset, loaded, rootfs, sparse
from trapless.guest.job import Job
from trapless.guest.programs import cross
from trapless.loads import rocksdb, ycsb
from trapless.loads.setup import Setup
from trapless.pagesim import runs as simulated
from trapless.profile import profiling

from studies.aspf import figures as aspf
from studies.stc import runs as stc

DBBENCH = "readrandom   :      36.609 micros/op 53866 ops/sec 0.037 seconds 2000 operations;  210.4 MB/s (1000 of 1000 found)\n"
EVENTS = dict.fromkeys(("l1i", "l1d", "l2", "last", "itlb", "dtlb", "walks", "branches"), 7)
STEPS = dict.fromkeys(("walk", "request", "frame", "command", "device", "completion", "install", "resume"), 1.5)
SPANS = dict.fromkeys((*profiling.BEFORE, "device", *profiling.AFTER), 1.0)
COUNTERS = {"pages_armed": 10, "arming_ns": 5000, "faults_for_want_of_frame": 1, "frames_refilled_by_fault": 64}


def region(title: str) -> dict:
    """A region of interest."""
    miss = {"count": 0, "mean_us": 12.0, "device_mean_us": 1000.0 if "slow" in title else 10.9, "nondevice_mean_us": 1.1,
            "steps": STEPS}
    by = {name: {**miss, "count": 10 if kind in title else 0} for name, kind in (("hw_miss", "hwdp"), ("port_miss", "trap"))}
    return {"number": rocksdb.REGION, "sim_seconds": 0.5, "host_seconds": 1.0, "begin_cycle": 0, "end_cycle": 9000,
            "os_faults": 10,
            "instructions": {"user": 4000, "supervisor": 2000, "machine": 0}, "nvme_read": {"count": 10, "mean_us": 10.9},
            "instructions_by_hart": [{"user": 3000, "supervisor": 1000}, {"user": 1000, "supervisor": 1000}], **by,
            "watch": [{"hw_misses": 10, "os_faults": 10, "resident": 1, "pages_touched": 21}]}


def stats(title: str) -> dict:
    """The machine's record."""
    return {"rois": [region(title)], "sim_seconds": 1.0, "instructions": 9000, "mips": 100.0, "host_peak_bytes": 3 << 30,
            "profile": {"machine": {"memory_bytes": 1 << 30}}, "milestones": [{"number": 1, "host_seconds": 1.0,
                                                                               "instructions": 5000}]}


def profile(stock: bool, task: str) -> dict:
    """The result of the machine's attribution."""
    spent = {"instructions": 1000, "cycles": 3000, "misses": EVENTS}
    names = ("user code", "miss in hardware", "idle", "file map", stc.WALK, stc.TABLES, stc.INTERRUPT)
    names = tuple(name for name in names if not (stock and name == stc.WALK))
    functions = [name for name in stc.FUNCTIONS if name == "__handle_mm_fault" or not stock]
    return {"clock_hz": 10**9, "categories": dict.fromkeys(names, spent),
            "in_faults": dict.fromkeys((*names, stc.WALK), spent), "tasks": {task: spent, "kpted": spent, "kpoold0": spent},
            "faults": {"count": 10, "mean_us": 12.0, "spans_us": SPANS, "instructions": 10_000},
            "minor_faults": {"count": 5, "mean_us": 2.0},
            "functions": [{"name": name, "calls": 4, "cycles": 50, "inclusive_cycles": 90} for name in functions]}


def fio_says(threads: int, mean_ns: float) -> dict:
    """fio's JSON."""
    latency = {"mean": mean_ns, "percentile": {"50.000000": 1e4, "99.000000": 2e4, "99.900000": 3e4}, "bins": {"12000": 100}}
    read = {"total_ios": 100, "clat_ns": latency, "bw_bytes": 10**6, "runtime": 900}
    return {"fio version": "fio-3", "jobs": [{"error": 0, "groupid": 0, "job_start": 1, "read": read, "write": {"total_ios": 0}}
                                             for _ in range(threads)]}


def leave(folder: Path, job: Job, stock: bool) -> None:
    """Write the files of a run."""
    threads = int((re.findall(r"--numjobs=(\d+)", job.script) or ["1"])[0])
    apart = "--group_reporting" not in job.script
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "fio.json").write_text(json.dumps(fio_says(threads if apart else 1, 8e3 if "ideal" in job.script else 12e3)))
    for thread in range(1, threads + 1):
        (folder / f"fio_clat.{thread}.log").write_text("5, 12000, 0, 4096, 0\n6, 12000, 0, 4096, 0\n")
    (folder / "hwdp-stats").write_text("".join(f"{name} {value}\n" for name, value in COUNTERS.items()))
    said = {"ops": 20, "mean_us": 2.0, "p50_us": 1.0, "p99_us": 3.0, "p999_us": 4.0}
    (folder / "ycsb.json").write_text(json.dumps({"wrong": 0, "ops_per_second": 5.0, "all": said, "read": said}))
    (folder / "dbbench.txt").write_text(DBBENCH)
    (folder / "figures.json").write_text(json.dumps(dict.fromkeys(
        ("map_us", "read_us", "unmap_us", "sum", "bandwidth_mb_s", "major_faults"), 3)))
    task = next((word for word in job.script.split() if word == "faultwork"), "ycsb")
    (folder.parent / "attribute").mkdir(exist_ok=True)
    (folder.parent / "attribute" / "profile.json").write_text(json.dumps(profile(stock, task)))


def outcome_of(title: str) -> guests.Outcome:
    """Return the outcome of a run."""
    return guests.Outcome(0, stats(title), "mapsum 123", host_seconds=1.0, counters=COUNTERS, readahead=0)


def simulator(config: dict) -> dict:
    """The paging simulator's record."""
    names, counts = [process["name"] for process in config["process"]], {"issued": 200, "useful": 120, "useless": 60}
    return {
        "time_ns": 10**9, "waited_ns": 10**8, "accesses": 1000, "faults": 500,
        "context_switches": 10, "device_reads": 2, "device_writes": 1,
        "pages_moved": 3, "jain": 0.9995, "bookkeeping": {"bytes": 4096, "operations": 7},
        "prefetch": dict.fromkeys(("neighbour", "set", "successor", "reconstruct"), counts),
        "processes": [{"name": name, "faults": 10, "fault_parts": [6, 3, 1], "finished_ns": 5, "cpu_ns": 4, "waited_ns": 3,
                       "cpu_share": {"0.05": 1 / len(names), "0.1": 1 / len(names)},
                       "timeline": {"window_ns": 33_000_000, "counts": [3, 2, 1]}} for name in names]}


def install(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let experiments boot nothing from now on. `folder` is for their files."""
    there = folder / "there"
    there.write_text("")
    guest = guests.Guest(kernel=there, root=there, data=there)

    def records(_program: Path, wanted: list[kept.Run], _at_once: int) -> list[dict]:
        found = []
        for run in wanted:
            stock = run.title.split(", ")[1:2] == [stc.STOCK]
            place = folder / sha256(f"{stock} {run.job.script}".encode()).hexdigest()
            if not place.exists():
                leave(place / "out", run.job, stock)
            found.append(run.take(outcome_of(run.title), place))
        return found

    def runner(guest: guests.Guest, job: Job, place: Path) -> guests.Outcome:
        leave(place, job, False)
        return outcome_of(str(place))

    for module, name in ((dataset, "image"), (sparse, "image"), (rootfs, "image"), (loaded, "image"), (build, "machine"),
                         (build, "kernel"), (ycsb, "program"), (cross, "compile_program"), (profiling, "symbols_of")):
        monkeypatch.setattr(module, name, lambda *_, **__: there)
    monkeypatch.setattr(build, "beside_machine", lambda find: find())
    monkeypatch.setattr(guest_run, "prepare", lambda request: (guest, Job(" ".join(request.argv))))
    monkeypatch.setattr(kept, "records", records)
    monkeypatch.setattr(kept, "configuration", lambda run: {"title": run.title})
    monkeypatch.setattr(Setup, "runner", lambda self: runner)
    monkeypatch.setattr(simulated, "records", lambda wanted, jobs=None: [simulator(run.config) for run in wanted])
    monkeypatch.setattr(aspf, "traces_of", lambda setup, names: {
        name: aspf.traces.Trace(name, there, 600_000_000, 200, 100, 90) for name in dict.fromkeys(names)})
