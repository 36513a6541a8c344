# SPDX-License-Identifier: Apache-2.0
"""ISCA20's figures 3, 11, 12 and 17 (single misses, with fio on a file that is not in memory), and the SMU's area."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import replace

from trapless.base.paths import RTL
from trapless.base.ui import UserError
from trapless.loads import rocksdb
from trapless.loads.rocksdb import FIO, HW_SHARE, MISSES_PER_OP, Case, Scale
from trapless.loads.setup import Setup
from trapless.profile import profiling
from trapless.results import figures, plots
from trapless.results.columns import HIGHER, LOWER, Column, word
from trapless.study import repeated
from trapless.study.compared import Compared, one
from trapless.study.experiment import Experiment, Table, View

from studies.isca20.rocksdb import PAPER, paper, points

THREADS = (1, 2, 4, 8)
SCALE = Scale(memory_mib=1024, data_mib=512, operations=4_000, warm=0)
"""Memory for all pages that are read. The paper's file has 4 GB, but its size does not affect a cold miss of one thread."""
SCALE_OF_QUICK = Scale(memory_mib=512, data_mib=256, operations=500, warm=0)
SCALE_OF_12 = replace(SCALE, data_mib=4096)
"""Scale of figure 12, with the paper's file. In a small file, eight threads would find every third page in memory, because
another thread has read it already."""
SCALE_OF_QUICK_12 = replace(SCALE_OF_12, operations=500)
TIMINGS = {"detailed": True, "every access hits": False}
"""Timings of figure 3: with the time of caches, TLBs, branch prediction and DRAM, and without it."""
DRIVES = ("z-ssd", "optane-ssd", "optane-pmm")
"""Drives of figure 17, the slowest first (machine/profiles/ssd)."""
PARTS = {
    "exception": ("exception",),
    "fault handling": ("fault handling",),
    "submission": ("file map", "file system", "block layer", "driver"),
    "interrupt": ("interrupt delivery", "interrupt"),
    "switch": ("context switch",),
    "completion": ("completion", "rest of the fault"),
}
"""Figure 3's parts, as spans of the machine (docs/explanation/attribution.md). The paper has no bar for the spans of fault
handling."""
SMU_BEFORE, SMU_AFTER = ("request", "frame", "command"), ("completion", "install")
"""Steps of a miss in hardware that the SMU makes, as in figure 11b."""
STEPS_BEFORE, STEPS_AFTER = ("walk", *SMU_BEFORE), (*SMU_AFTER, "resume")
"""The SMU's steps and the walker's."""
BLOCKS = {"pmshr": "PMSHR", "descriptors": "NVMe registers", "prefetch": "prefetch buffer", "rest": "rest",
          "whole": "whole"}
MODULES = {"pmshr": ("pmshr", "front", "lookup", "answer"), "descriptors": ("desc",), "prefetch": ("free",)}
"""The paper's parts of the SMU, as modules of the RTL. All other modules are the rest."""
CELLS_NM = 180
"""Feature size of the cells (rtl/smu/doc/cost.md)."""


def cold(setup: Setup, cases: Iterable[tuple[dict, dict]], full: Scale = SCALE, quick: Scale = SCALE_OF_QUICK) -> list[dict]:
    """Return rows of fio's reads of pages that are not in memory."""
    scale = quick if setup.quick else full
    return repeated.measure(setup, points(setup, (
        (names, Case(program=FIO, scale=scale, filled=False, **{"threads": 1, **values})) for names, values in cases)))


def figure_3(setup: Setup) -> list[dict]:
    """Return the parts of a page fault that the operating system serves, in percent of the device's time, and their values if
    every access hit."""
    rows = cold(setup, [({"timing": name}, {"kind": "osdp", "attributed": True, "detailed": detailed})
                        for name, detailed in TIMINGS.items()])
    for row in rows:
        for run in row[repeated.RUNS]:
            run |= parts_of(run["profile"]["faults"])
    timed, hits = (repeated.row({"timing": row["timing"]}, row[repeated.RUNS]) for row in rows)
    return [{"part": part, "us": timed[f"{part}_us"], "of_device": timed[f"{part}_percent"],
             "of_device_ci": timed[f"{part}_percent{repeated.INTERVAL}"], "if_hits": hits[f"{part}_percent"],
             "paper": paper("3", part), "instructions": timed["fault_instructions"],
             repeated.RUNS: [*timed[repeated.RUNS], *hits[repeated.RUNS]] if part == "whole" else []}
            for part in (*PARTS, "whole")]


def parts_of(faults: dict) -> dict:
    """Return figure 3's parts of a fault, in percent of its device time and in us."""
    spans = faults["spans_us"]
    found = {f"{part}_us": sum(spans[span] for span in its) for part, its in PARTS.items()}
    found["whole_us"] = sum(found.values())
    return {**found, **{f"{part}_percent": 100 * found[f"{part}_us"] / spans["device"] for part in (*PARTS, "whole")},
            "span_device_us": spans["device"], "fault_instructions": faults["instructions"]}


def compared_3(rows: list[dict]) -> list[Compared]:
    """Compare each part that the paper prints."""
    named = sum(row["paper"] for row in rows if row["paper"] is not None and row["part"] != "whole")
    whole = rows[-1]["paper"]
    return [Compared(
        f"{row['part']}, of the device's time", "%", one(row["paper"]), one(row["of_device"]), row["of_device_ci"],
        f"It takes {row['us']:.2f} us here. Of its {row['of_device']:.1f} %, {row['of_device'] - row['if_hits']:.1f} are misses "
        f"of caches, TLBs and branches; {row['if_hits']:.1f} are left if every access hits. A whole fault executes "
        f"{row['instructions']:,.0f} instructions of Linux 6.12 on RISC-V, at most one per cycle; the paper uses Linux 4.9 on "
        f"x86. The parts that the paper names are {named:.1f} of its {whole:.1f} %; it does not say what the rest is.")
        for row in rows if row["paper"] is not None]


def figure_11(setup: Setup) -> list[dict]:
    """Return how long a page fault and a miss in hardware take before and after the device, and the steps of the miss."""
    osdp, hwdp = cold(setup, [({"kind": "osdp"}, {"kind": "osdp", "attributed": True}), ({"kind": "hwdp"}, {"kind": "hwdp"})])
    for run in osdp[repeated.RUNS]:
        spans = run["profile"]["faults"]["spans_us"]
        run |= {"before_us": sum(spans[name] for name in profiling.BEFORE), "span_device_us": spans["device"],
                "fault_instructions": run["profile"]["faults"]["instructions"],
                "after_us": sum(spans[name] for name in profiling.AFTER)}
    for run in hwdp[repeated.RUNS]:
        steps = run["steps"]
        run |= {"before_us": sum(steps[name] for name in STEPS_BEFORE), "span_device_us": steps["device"],
                "after_us": sum(steps[name] for name in STEPS_AFTER), **{f"{name}_step_ns": 1000 * steps[name] for name in steps},
                "smu_before_ns": 1000 * sum(steps[name] for name in SMU_BEFORE),
                "smu_after_ns": 1000 * sum(steps[name] for name in SMU_AFTER)}
    rows = [repeated.row({"kind": row["kind"]}, row[repeated.RUNS]) for row in (osdp, hwdp)]
    for part in ("before_us", "after_us"):
        repeated.against(rows, (), {"kind": "osdp"}, part, f"{part}_less", lambda ours, before: before - ours)
    return rows


def parts_11(rows: list[dict]) -> list[dict]:
    """Return one row for each part of a bar."""
    return [{"kind": row["kind"], "part": part, "us": row[key]} for row in rows
            for part, key in (("before", "before_us"), ("device", "span_device_us"), ("after", "after_us"))]


def compared_11(rows: list[dict]) -> list[Compared]:
    """Compare how much shorter the hardware's parts are, and how long its own steps take."""
    osdp, hwdp = rows
    found = [Compared(
        f"time {part} the device, osdp minus hwdp", "us", one(paper("11", part)), one(hwdp[f"{part}_us_less"]),
        hwdp[f"{part}_us_less_ci"],
        f"osdp's part takes {osdp[f'{part}_us']:.2f} us here, hwdp's {hwdp[f'{part}_us']:.2f}: the difference is the kernel, "
        f"which executes {osdp['fault_instructions']:,.0f} instructions of Linux 6.12 per fault. isca20-3 shows what "
        "cache misses add.")
        for part in ("before", "after")]
    for part, steps in (("before", SMU_BEFORE), ("after", SMU_AFTER)):
        taken = ", ".join(f"{step} {hwdp[f'{step}_step_ns']:.1f}" for step in steps)
        found.append(Compared(
            f"the SMU's steps {part} the device", "ns", one(smu_ns(part)), one(hwdp[f"smu_{part}_ns"]), hwdp[f"smu_{part}_ns_ci"],
            f"In ns: {taken}. Here the SMU's memory accesses go through the machine's caches and DRAM; the paper assumes "
            "a constant time for each."))
    return found


def smu_ns(part: str) -> float:
    """Return the paper's time of the SMU's steps before or after the device."""
    return paper("11", f"smu_{part}_cycles") / paper("11", "clock_ghz") + (paper("11", f"smu_{part}_ns") or 0)


def figure_12(setup: Setup) -> list[dict]:
    """Measure the latency of a 4 KiB read, by number of threads."""
    threads = (1, 8) if setup.quick else THREADS
    rows = cold(setup, [({"threads": count, "kind": kind}, {"threads": count, "kind": kind, "sparse": True})
                        for count in threads for kind in setup.kinds or rocksdb.KINDS], SCALE_OF_12, SCALE_OF_QUICK_12)
    repeated.against(rows, ("threads",), {"kind": "osdp"}, "mean_us", "latency_change")
    for row in rows:
        row["paper"] = paper("12", row["threads"]) if row["kind"] == "hwdp" else None
    return rows


def compared_12(rows: list[dict]) -> list[Compared]:
    """Compare hwdp's latency with osdp's, for 1 and 8 threads."""
    by_name = {(row["threads"], row["kind"]): row for row in rows}
    found = []
    for (threads, _), row in by_name.items():
        if row["paper"] is None or "latency_change" not in row:
            continue
        before, emulated = by_name[threads, "osdp"], by_name.get((threads, "emulated"), {})
        # The paper computes its values from its emulation, minus a constant.
        said = (f" The emulation, from which the paper calculates its values, has {emulated['latency_change']:+.1f} % here."
                if "latency_change" in emulated else "")
        found.append(Compared(
            f"latency of a read, hwdp over osdp, {threads} threads", "%", one(row["paper"]), one(row["latency_change"]),
            row["latency_change_ci"],
            f"A read takes {before['mean_us']:.1f} us with osdp and {row['mean_us']:.1f} us with hwdp. The device takes "
            f"{before['device_us']:.1f} and {row['device_us']:.1f} us of these. With hwdp, "
            f"{row['mean_us'] - row['miss_us']:.1f} us are outside the miss: fio, and other work on its core.{said}"))
    return found


def figure_17(setup: Setup) -> list[dict]:
    """Measure the latency of a miss on three drives with hwdp and with the emulation. The latency of a miss is that of a read
    minus that of a read whose page is mapped."""
    rows = cold(setup, [({"drive": drive, "kind": kind}, {"kind": kind, "settings": (f"ssd={drive}",)})
                        for drive in DRIVES for kind in ("ideal", *rocksdb.KINDS)])
    hits = {row["drive"]: row[repeated.RUNS] for row in rows if row["kind"] == "ideal"}
    rows = [row for row in rows if row["kind"] != "ideal"]
    for row in rows:
        for run, hit in zip(row[repeated.RUNS], hits[row["drive"]], strict=True):
            run["fault_us"] = run["mean_us"] - hit["mean_us"]
    rows = [repeated.row(row[repeated.RUNS][0]["names"], row[repeated.RUNS]) for row in rows]
    repeated.against(rows, ("drive",), {"kind": "emulated"}, "fault_us", "latency_change")
    for row in rows:
        row["paper"] = paper("17", row["drive"]) if row["kind"] == "hwdp" else None
    # The reads that hit have no row, but their runs are recorded.
    rows[0][repeated.RUNS] += [run for runs in hits.values() for run in runs]
    return rows


def compared_17(rows: list[dict]) -> list[Compared]:
    """Compare hwdp's latency with the emulation's, by drive."""
    by_name = {(row["drive"], row["kind"]): row for row in rows}
    found = []
    for (drive, kind), row in by_name.items():
        if kind != "hwdp" or "latency_change" not in row:
            continue
        software = by_name[drive, "emulated"]["fault_us"] - by_name[drive, "emulated"]["device_us"]
        said = "" if row["paper"] is None else (
            " To reach the paper's value, the emulation would have to take "
            f"{row['fault_us'] / (1 + row['paper'] / 100) - row['device_us']:.2f} us.")
        found.append(Compared(
            f"latency of a miss on {drive}, hwdp over emulated", "%", None if row["paper"] is None else one(row["paper"]),
            one(row["latency_change"]), row["latency_change_ci"],
            f"Beside the device's {row['device_us']:.1f} us the emulation takes {software:.2f} us and the hardware "
            f"{row['fault_us'] - row['device_us']:.2f} us.{said} The paper's emulation sleeps in mwait until an interrupt's "
            "handler wakes it; ours polls the completion queue."))
    return found


def area(setup: Setup) -> list[dict]:
    """Return the SMU's area in standard cells, by the paper's parts. The quick form uses the results of the last synthesis."""
    if not setup.quick:
        done = subprocess.run([str(RTL / "run"), str(RTL / "smu" / "synth" / "cost"), "parts"], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            raise UserError(f"synthesis failed: {(done.stderr or done.stdout).strip()[-300:]}")
    record = json.loads((RTL / "smu" / "doc" / "cost.json").read_text())
    return [{**row, "yosys": record["yosys"]} for row in blocks(record["parts"]["parts"])]


def blocks(modules: dict[str, dict]) -> list[dict]:
    """Return a row for each of the paper's parts and one for the whole SMU, from the RTL's modules."""
    rest = tuple(set(modules) - {module for its in MODULES.values() for module in its})
    names = {**MODULES, "rest": rest, "whole": tuple(modules)}
    rows = [{"part": BLOCKS[name], "paper": paper("area", name),
             **{key: sum(modules[module][key] for module in its) for key in ("um2", "gates", "flip_flops")}}
            for name, its in names.items()]
    for row in rows:
        row["share"] = 100 * row["um2"] / rows[-1]["um2"]
        row["scaled_mm2"] = row["um2"] / 1e6 * (paper("area", "nm") / CELLS_NM) ** 2
    return rows


def compared_area(rows: list[dict]) -> list[Compared]:
    """Compare the shares, and the area scaled by the square of the feature sizes."""
    *parts, whole = rows
    rest = parts[-1]
    why = (f"The rest is {rest['share']:.1f} % here: page table updaters, deadlines, fences, counters, software ports and a "
           "return ring. The paper's unit does not have these.")
    without = whole["scaled_mm2"] - rest["scaled_mm2"]
    return [
        *(Compared(f"share of {row['part']}", "%", one(row["paper"]), one(row["share"]), None, why) for row in parts),
        Compared("area at 22 nm (here: synthesized cells of 0.18 um, scaled by the square of the feature size)", "mm2",
                 one(paper("area", "mm2")), one(whole["scaled_mm2"]), None,
                 f"Ours is {whole['gates']:,} gates (NAND2), {whole['um2'] / 1e6:.2f} mm2 at 0.18 um. The paper has McPAT's "
                 f"estimate for arrays of {paper('area', 'bits'):,} bits and some registers, without logic; ours has logic and "
                 f"{whole['flip_flops']:,} bits, all of them flip-flops. {why} Without the rest, {without:.3f} mm2 are left."),
    ]


PART = word("part", "part", "A part of a page fault, or of the SMU.")
PART_US = Column("us", "us", "Mean time of the part.", "us", LOWER, ".2f")
OF_DEVICE = Column("of_device", "% of the device's time", "Time of the part in percent of the device's time.", "%", LOWER, ".2f")
IF_HITS = Column("if_hits", "if every access hits %", "The same without the time of caches, TLBs, branch prediction and DRAM.",
                 "%", LOWER, ".2f")
FAULT_INSTRUCTIONS = Column("fault_instructions", "instructions/fault", "Instructions of a whole page fault.",
                            "instructions/fault", LOWER, ",.0f")
DEVICE_SPAN = Column("span_device_us", "device us", "Mean time of a miss at the device.", "us", LOWER, ".2f")
OF_PARTS = (
    FAULT_INSTRUCTIONS, DEVICE_SPAN, *(column for part in (*PARTS, "whole") for column in (
        Column(f"{part}_us", f"{part} us", f"Time of a page fault's part `{part}`.", "us", LOWER, ".2f"),
        Column(f"{part}_percent", f"{part} %", f"Time of a page fault's part `{part}` in percent of the device's.", "%", LOWER,
               ".2f"))))
"""Columns of the records that `parts_of` returns."""
BEFORE_US = Column("before_us", "before the device us", "Time from the trap or the walk to the doorbell.", "us", LOWER, ".3f")
AFTER_US = Column("after_us", "after the device us", "Time from the completion queue entry until user code goes on.", "us",
                  LOWER, ".3f")
LESS = tuple(Column(f"{part}_us_less", f"saved {part} the device us",
                    f"By how much the time {part} the device is less than with osdp.", "us", HIGHER, ".2f")
             for part in ("before", "after"))
SMU_NS = tuple(Column(f"smu_{part}_ns", f"SMU {part} ns", f"Time of the SMU's own steps {part} the device.", "ns", LOWER, ".1f")
               for part in ("before", "after"))
STEP_NS = tuple(Column(f"{step}_step_ns", f"{step} ns", f"Mean time of the step `{step}` of a miss in hardware.", "ns", LOWER,
                       ".1f")
                for step in (*STEPS_BEFORE, *STEPS_AFTER))
READ_US = figures.MEAN_US
LATENCY_CHANGE = Column("latency_change", "latency vs OS paging %", "Change of the mean latency against osdp.", "%", LOWER,
                        "+.1f")
OVER_EMULATED = Column("latency_change", "miss vs emulation %", "Change of the time of a miss against emulated.", "%", LOWER,
                       "+.1f")
MISS_US = Column("fault_us", "miss us", "Mean latency of a read minus that of a read whose page is mapped.", "us", LOWER, ".2f")
DRIVE = word("drive", "drive", "The drive's profile.")
OF_12 = (figures.THREADS, figures.KIND)
OF_17 = (DRIVE, figures.KIND)

EXPERIMENTS = {
    "isca20-3": Experiment(
        "parts of a page fault, in % of the device (ISCA20 figure 3)", figure_3, {"isca20-3": Table(
            (PART, PART_US, OF_DEVICE, OF_DEVICE.interval("± %"), IF_HITS, PAPER.but(form=".2f")))},
        {"parts": plots.Bars("part", "kind", "of_device", "% of the device's time", "paper",
                             rows=lambda rows: [{**row, "kind": "osdp"} for row in rows])},
        (FAULT_INSTRUCTIONS.but(key="instructions"), *OF_PARTS, *rocksdb.COLUMNS),
        about="One thread of fio reads 4 KiB blocks at random, none of them in memory. The machine follows each fault's "
              "task through the kernel and back (docs/explanation/attribution.md). The same runs without the time of caches, "
              "TLBs, branch prediction and DRAM show which part is due to misses.",
        compared=compared_3),
    "isca20-11": Experiment(
        "before and after the device: page fault and miss in hardware (ISCA20 figure 11)", figure_11, {"isca20-11": Table(
            (figures.KIND, BEFORE_US, DEVICE_SPAN, AFTER_US, *LESS, *SMU_NS, *STEP_NS),
            views={"": View((figures.KIND, BEFORE_US, AFTER_US, *LESS, *SMU_NS)),
                   "steps": View(STEP_NS, lambda row: row["kind"] == "hwdp")})},
        {"miss": plots.Bars("kind", "part", "us", "us", rows=parts_11, stacked=True)},
        (FAULT_INSTRUCTIONS, Column("device_step_ns", "device ns", "Mean time of a miss at the device.", "ns", LOWER, ".1f"),
         *rocksdb.COLUMNS),
        about="One thread of fio reads 4 KiB blocks at random, none of them in memory: time from the trap to the "
              "doorbell and from the device's end to user code for osdp, and the steps of the SMU for hwdp.",
        compared=compared_11),
    "isca20-12": Experiment(
        "latency of a 4 KiB read by threads (ISCA20 figure 12)", figure_12, {"isca20-12": Table(
            (*OF_12, READ_US, READ_US.interval("± us"), LATENCY_CHANGE, LATENCY_CHANGE.interval("± %"), PAPER, figures.DEVICE_US,
             figures.P99_US, MISSES_PER_OP.but(heading="misses/read", form=".3f"), HW_SHARE), keys=2,
            views={"": View((*OF_12, READ_US, LATENCY_CHANGE, PAPER, figures.DEVICE_US,
                             MISSES_PER_OP.but(heading="misses/read", form=".3f")))})},
        {"latency": plots.Lines("threads", "kind", "mean_us", "threads", "us")}, rocksdb.COLUMNS,
        about="fio's threads read 4 KiB blocks at random through one mapping of a file of 4 GiB, each thread on a "
              "separate core, with no block in memory. They read a small part of the file, so that hardly any read finds a page "
              "that another read brought (misses/read). The paper reads the whole file again and again with 32 GB of memory.",
        kinds=True, compared=compared_12),
    "isca20-17": Experiment(
        "miss latency of the hardware against its emulation, by drive (ISCA20 figure 17)", figure_17, {"isca20-17": Table(
            (*OF_17, figures.DEVICE_US, READ_US.but(heading="read us"), MISS_US, MISS_US.interval("± us"), OVER_EMULATED,
             OVER_EMULATED.interval("± %"), PAPER), keys=2)},
        {"miss": plots.Bars("drive", "kind", "fault_us", "us per miss")}, rocksdb.COLUMNS,
        about="One thread of fio reads 4 KiB blocks at random, none of them in memory, on three drives. The time "
              "of a miss is the time of a read minus that with `ideal`.",
        compared=compared_17),
    "isca20-area": Experiment(
        "area of the SMU by part (ISCA20 section VI-D)", area, {"isca20-area": Table((
            PART, Column("um2", "um2 at 0.18 um", "Area in standard cells of 0.18 um.", "um2", LOWER, ",.0f"),
            Column("gates", "gates", "Area divided by that of a NAND with two inputs.", "NAND2", LOWER, ",d"),
            Column("flip_flops", "flip-flops", "Flip-flops.", "bits", LOWER, ",d"),
            Column("scaled_mm2", "mm2 scaled to 22 nm", "Area scaled by the square of the feature sizes.", "mm2", LOWER, ".4f"),
            Column("share", "share %", "Share of the SMU's area.", "%", None, ".1f"), PAPER.but(form=".1f")))},
        {"area": plots.Bars("part", "unit", "share", "% of the SMU", "paper",
                            rows=lambda rows: [{**row, "unit": "SMU"} for row in rows[:-1]])},
        guest=False,
        about="The RTL (rtl/smu) with default parameters, synthesized by Yosys to the public cells OSU018 of 0.18 um. Gates are "
              "areas divided by that of a NAND with two inputs. The area is scaled to 22 nm by the square of the feature size. "
              "This classical rule is a lower bound: real libraries shrink less. rtl/smu/doc/cost.md has all parts.",
        compared=compared_area),
}
