# SPDX-License-Identifier: Apache-2.0
"""ISCA20's figures of single misses: 3, 11, 12, 17 with fio on a file of which nothing is in memory, and the SMU's area."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable

from lab import profiling
from lab.experiments import repeated, rocksdb
from lab.experiments.compared import Compared, one
from lab.experiments.isca20_rocksdb import paper, points
from lab.experiments.rocksdb import FIO, Case, Scale
from lab.experiments.setup import Experiment, Setup, Table
from lab.paths import RTL
from lab.report import plots
from lab.ui import UserError

THREADS = (1, 2, 4, 8)
SCALE = Scale(memory_mib=1024, data_mib=512, operations=4_000, warm=0)
"""Memory for all that is read. The paper's file has 4 GB; how large it is does not change a cold miss."""
SCALE_OF_QUICK = Scale(memory_mib=512, data_mib=256, operations=500, warm=0)
DRIVES = ("z-ssd", "optane-ssd", "optane-pmm")
"""Figure 17's, slowest first (machine/profiles/ssd)."""
PARTS = {
    "exception": ("exception",),
    "fault handling": ("fault handling",),
    "submission": ("file map", "file system", "block layer", "driver"),
    "interrupt": ("interrupt delivery", "interrupt"),
    "switch": ("context switch",),
    "completion": ("completion", "rest of the fault"),
}
"""Figure 3's parts by the machine's spans (docs/seeing.md); the paper has no bar for what is fault handling here."""
STEPS_BEFORE, STEPS_AFTER = ("walk", "request", "frame", "command"), ("completion", "install", "resume")
"""Steps of a miss in hardware."""
BLOCKS = {"pmshr": "PMSHR", "descriptors": "NVMe registers", "prefetch": "prefetch buffer", "rest": "rest"}


def cold(setup: Setup, cases: Iterable[tuple[dict, dict]]) -> list[dict]:
    """Rows of fio's reads of pages that are not in memory."""
    scale = SCALE_OF_QUICK if setup.quick else SCALE
    return repeated.measure(setup, points(setup, (
        (names, Case(program=FIO, scale=scale, filled=False, **{"threads": 1, **values})) for names, values in cases)))


def figure_3(setup: Setup) -> list[dict]:
    """Parts of a page fault that the operating system serves, in percent of the device's time."""
    (row,) = cold(setup, [({"kind": "osdp"}, {"kind": "osdp", "attributed": True})])
    for run in row[repeated.RUNS]:
        spans = run["profile"]["faults"]["spans_us"]
        run |= {part: 100 * sum(spans[span] for span in its) / spans["device"] for part, its in PARTS.items()}
        run["whole"] = sum(run[part] for part in PARTS)
        run["span_device_us"] = spans["device"]
        run["fault_instructions"] = run["profile"]["faults"]["instructions"]
    row = repeated.row({"kind": "osdp"}, row[repeated.RUNS])
    return [{"part": part, "of_device": row[part], "of_device_ci": row[part + repeated.INTERVAL], "paper": paper("3", part),
             "instructions": row["fault_instructions"], "device_us": row["span_device_us"],
             repeated.RUNS: row[repeated.RUNS] if part == "whole" else []} for part in (*PARTS, "whole")]


def compared_3(rows: list[dict]) -> list[Compared]:
    """Each part that the paper prints."""
    device, instructions = rows[0]["device_us"], rows[0]["instructions"]
    why = (f"A fault executes {instructions:,.0f} instructions of Linux 6.12 on RISC-V here, beside a device of {device:.1f} us; "
           "the paper's kernel is 4.9 on x86, and which function belongs to which part is its authors' choice.")
    return [Compared(f"{row['part']}, of the device's time", "%", one(row["paper"]), one(row["of_device"]), row["of_device_ci"],
                     why) for row in rows if row["paper"] is not None]


def figure_11(setup: Setup) -> list[dict]:
    """Time before and after the device, of a page fault and of a miss in hardware; the latter's steps."""
    osdp, hwdp = cold(setup, [({"kind": "osdp"}, {"kind": "osdp", "attributed": True}), ({"kind": "hwdp"}, {"kind": "hwdp"})])
    for run in osdp[repeated.RUNS]:
        spans = run["profile"]["faults"]["spans_us"]
        run |= {"before_us": sum(spans[name] for name in profiling.BEFORE), "span_device_us": spans["device"],
                "after_us": sum(spans[name] for name in profiling.AFTER)}
    for run in hwdp[repeated.RUNS]:
        steps = run["steps"]
        run |= {"before_us": sum(steps[name] for name in STEPS_BEFORE), "span_device_us": steps["device"],
                "after_us": sum(steps[name] for name in STEPS_AFTER), **{f"{name}_step_ns": 1000 * steps[name] for name in steps}}
    rows = [repeated.row({"kind": row["kind"]}, row[repeated.RUNS]) for row in (osdp, hwdp)]
    for part in ("before_us", "after_us"):
        repeated.against(rows, (), {"kind": "osdp"}, part, f"{part}_less", lambda ours, before: before - ours)
    return rows


def parts_11(rows: list[dict]) -> list[dict]:
    """A bar's part each."""
    return [{"kind": row["kind"], "part": part, "us": row[key]} for row in rows
            for part, key in (("before", "before_us"), ("device", "span_device_us"), ("after", "after_us"))]


def compared_11(rows: list[dict]) -> list[Compared]:
    """How much shorter the hardware's parts are."""
    hwdp = rows[1]
    why = ("osdp's part takes {0:.2f} us here and hwdp's {1:.2f}: a kernel of another version, on cores modelled with one cycle "
           "an instruction and what caches, TLBs and branches add.")
    return [Compared(f"time {part} the device, osdp less hwdp", "us", one(paper("11", part)), one(hwdp[f"{part}_us_less"]),
                     hwdp[f"{part}_us_less_ci"], why.format(rows[0][f"{part}_us"], hwdp[f"{part}_us"]))
            for part in ("before", "after")]


def figure_12(setup: Setup) -> list[dict]:
    """Latency of a 4 KiB read by threads."""
    threads = (1, 8) if setup.quick else THREADS
    rows = cold(setup, [({"threads": count, "kind": kind}, {"threads": count, "kind": kind})
                        for count in threads for kind in setup.kinds or rocksdb.KINDS])
    repeated.against(rows, ("threads",), {"kind": "osdp"}, "mean_us", "latency_change")
    for row in rows:
        row["paper"] = paper("12", row["threads"]) if row["kind"] == "hwdp" else None
    return rows


def compared_12(rows: list[dict]) -> list[Compared]:
    """hwdp's latency over osdp's, with 1 and 8 threads."""
    found = []
    for row in rows:
        if row["paper"] is None or "latency_change" not in row:
            continue
        before = next(other for other in rows if other["kind"] == "osdp" and other["threads"] == row["threads"])
        found.append(Compared(
            f"latency of a read, hwdp over osdp, {row['threads']} threads", "%", one(row["paper"]), one(row["latency_change"]),
            row["latency_change_ci"],
            f"A read takes {before['mean_us']:.1f} us with osdp and {row['mean_us']:.1f} us with hwdp; of the first the device "
            f"has {before['device_us']:.1f} us, and {before['kernel_instructions_per_op']:,.0f} instructions of the kernel are "
            "executed for it."))
    return found


def figure_17(setup: Setup) -> list[dict]:
    """Latency of a miss, hwdp over the emulation, on three drives; a miss is a read less one that finds its page mapped."""
    rows = cold(setup, [({"drive": drive, "kind": kind}, {"kind": kind, "settings": (f"ssd={drive}",)})
                        for drive in DRIVES for kind in ("ideal", *rocksdb.KINDS)])
    hits = {row["drive"]: row[repeated.RUNS] for row in rows if row["kind"] == "ideal"}
    for row in rows:
        for run, hit in zip(row[repeated.RUNS], hits[row["drive"]], strict=True):
            run["fault_us"] = run["mean_us"] - hit["mean_us"]
    rows = [repeated.row(row[repeated.RUNS][0]["names"], row[repeated.RUNS]) for row in rows if row["kind"] != "ideal"]
    repeated.against(rows, ("drive",), {"kind": "emulated"}, "fault_us", "latency_change")
    for row in rows:
        row["paper"] = paper("17", row["drive"]) if row["kind"] == "hwdp" else None
    return rows


def compared_17(rows: list[dict]) -> list[Compared]:
    """hwdp's latency over the emulation's, by drive."""
    found = []
    for row in rows:
        if row["kind"] != "hwdp":
            continue
        before = next(other for other in rows if (other["drive"], other["kind"]) == (row["drive"], "emulated"))
        found.append(Compared(
            f"latency of a miss on {row['drive']}, hwdp over emulated", "%", row["paper"] and one(row["paper"]),
            one(row["latency_change"]), row["latency_change_ci"],
            f"Beside the device's {row['device_us']:.1f} us the emulation takes "
            f"{before['fault_us'] - before['device_us']:.2f} us and the hardware "
            f"{row['fault_us'] - row['device_us']:.2f} us. The paper's emulation waits with mwait for an "
            "interrupt; ours polls the completion queue in the fault handler."))
    return found


def area(setup: Setup) -> list[dict]:
    """The SMU in standard cells by the paper's parts. The quick form takes what the last synthesis left."""
    if not setup.quick:
        done = subprocess.run([str(RTL / "run"), str(RTL / "smu" / "synth" / "cost"), "parts"], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            raise UserError(f"synthesis failed: {(done.stderr or done.stdout).strip()[-300:]}")
    record = json.loads((RTL / "smu" / "doc" / "cost.json").read_text())
    parts = {name: part["um2"] for name, part in record["parts"]["parts"].items()}
    gates = {name: part["gates"] for name, part in record["parts"]["parts"].items()}
    same = {"pmshr": ("pmshr", "front", "lookup", "answer"), "descriptors": ("desc",), "prefetch": ("free",)}
    same["rest"] = tuple(set(parts) - {part for its in same.values() for part in its})
    whole = sum(parts.values())
    return [{"part": BLOCKS[name], "um2": sum(parts[part] for part in its), "gates": sum(gates[part] for part in its),
             "share": 100 * sum(parts[part] for part in its) / whole, "paper": paper("area", name), "yosys": record["yosys"]}
            for name, its in same.items()]


def compared_area(rows: list[dict]) -> list[Compared]:
    """Shares; the areas themselves are of other processes."""
    rest, gates = rows[-1], sum(row["gates"] for row in rows)
    why = (f"The rest is {rest['share']:.1f} % here: page table updaters, deadlines, fences, counters, software ports and a "
           "return ring, which the paper's unit has not.")
    return [
        *(Compared(f"share of {row['part']}", "%", one(row["paper"]), one(row["share"]), None, why) for row in rows),
        Compared("area (the paper: estimated by McPAT at 22 nm; here: cells synthesized at 0.18 um)", "mm2",
                 one(paper("area", "mm2")), one(sum(row["um2"] for row in rows) / 1e6), None,
                 f"Another process, 0.18 um against 22 nm: {gates:,} gates of two inputs, all storage in flip-flops. {why}"),
    ]


EXPERIMENTS = {
    "isca20-3": Experiment(
        "parts of a page fault, in % of the device (ISCA20 figure 3)", figure_3, {"isca20-3": Table((
            ("part", "part", "s"), ("% of the device", "of_device", ".2f"), ("± %", "of_device_ci", ".2f"),
            ("paper %", "paper", ".2f")))},
        {"parts": plots.Bars("part", "kind", "of_device", "% of the device's time", "paper",
                             rows=lambda rows: [{**row, "kind": "osdp"} for row in rows])},
        about="One thread of fio reads 4 KiB blocks at random, none of them in memory. The machine follows each fault's "
              "task through the kernel and back (docs/seeing.md).",
        compared=compared_3),
    "isca20-11": Experiment(
        "before and after the device: page fault and miss in hardware (ISCA20 figure 11)", figure_11, {"isca20-11": Table((
            ("kind", "kind", "s"), ("before us", "before_us", ".3f"), ("device us", "span_device_us", ".2f"),
            ("after us", "after_us", ".3f"), ("before less us", "before_us_less", ".2f"),
            ("after less us", "after_us_less", ".2f"),
            *((f"{step} ns", f"{step}_step_ns", ".1f") for step in (*STEPS_BEFORE, *STEPS_AFTER))))},
        {"miss": plots.Bars("kind", "part", "us", "us", rows=parts_11, stacked=True)},
        about="One thread of fio reads 4 KiB blocks at random, none of them in memory: time from the trap to the "
              "doorbell and from the device's end to user code for osdp, and the steps of the SMU for hwdp.",
        compared=compared_11),
    "isca20-12": Experiment(
        "latency of a 4 KiB read by threads (ISCA20 figure 12)", figure_12, {"isca20-12": Table((
            ("threads", "threads", "d"), ("kind", "kind", "s"), ("mean us", "mean_us", ".2f"), ("± us", "mean_us_ci", ".2f"),
            ("over osdp %", "latency_change", "+.1f"), ("± %", "latency_change_ci", ".1f"), ("paper %", "paper", "+.1f"),
            ("p99 us", "p99_us", ".1f"), ("by hardware %", "hw_share", ".1f"),
            ("kernel instr/op", "kernel_instructions_per_op", ",.0f")), keys=2)},
        {"latency": plots.Lines("threads", "kind", "mean_us", "threads", "us")},
        about="fio's threads read 4 KiB blocks at random through one mapping, each thread on a core of its own, no "
              "block in memory.",
        compared=compared_12),
    "isca20-17": Experiment(
        "what hardware is worth over its emulation, by drive (ISCA20 figure 17)", figure_17, {"isca20-17": Table((
            ("drive", "drive", "s"), ("kind", "kind", "s"), ("device us", "device_us", ".2f"), ("read us", "mean_us", ".2f"),
            ("miss us", "fault_us", ".2f"), ("± us", "fault_us_ci", ".2f"), ("over emulated %", "latency_change", "+.1f"),
            ("± %", "latency_change_ci", ".1f"), ("paper %", "paper", "+.1f")), keys=2)},
        {"miss": plots.Bars("drive", "kind", "fault_us", "us a miss")},
        about="One thread of fio reads 4 KiB blocks at random, none of them in memory, on three drives. A miss is what "
              "a read takes longer than with `ideal`.",
        compared=compared_17),
    "isca20-area": Experiment(
        "area of the SMU by part (ISCA20 section VI-E)", area, {"isca20-area": Table((
            ("part", "part", "s"), ("um2", "um2", ",.0f"), ("gates", "gates", ",d"), ("%", "share", ".1f"),
            ("paper %", "paper", ".1f")))},
        {"area": plots.Bars("part", "unit", "share", "% of the SMU", "paper",
                            rows=lambda rows: [{**row, "unit": "SMU"} for row in rows])},
        guest=False,
        about="The RTL (rtl/smu) by Yosys in the public cells OSU018, default parameters. rtl/smu/doc/cost.md has each "
              "of its parts.",
        compared=compared_area),
}
