# SPDX-License-Identifier: Apache-2.0
"""Turns the results into a Markdown page. Every number of ours in it comes from a run."""

from __future__ import annotations

from rtl.smu.synth import fpga

# ISCA20, evaluation: area at 22 nm, and its shares in percent.
PAPER_MM2 = 0.014
PAPER_SHARES = {"PMSHR": 87.6, "NVMe registers": 6.7, "prefetch buffer": 3.7, "rest": 2.0}
# Our parts that do the work of the paper's parts.
SAME = {
    "PMSHR": ("pmshr", "front", "lookup", "answer"),
    "NVMe registers": ("desc",),
    "prefetch buffer": ("free",),
}
# What each part does.
WHAT = {
    "pmshr": "entries, search, waiters",
    "desc": "queue descriptors and their registers",
    "complete": "completion queues, deadlines",
    "update": "page table updaters",
    "free": "free ring and prefetch buffer",
    "ports": "software request ports",
    "lookup": "second read of the PTE",
    "submit": "commands, doorbells",
    "counters": "event counters, 64 bits each",
    "return": "return ring",
    "dma_read": "AXI4 reads",
    "dma_write": "AXI4 writes",
    "csr": "identity, control and other registers behind the front",
    "regs": "AXI4-Lite front (generated)",
    "front": "chooses the next request to serve",
    "windows": "windows, and comparisons of addresses with them",
    "idle": "says when the clock may stop",
    "answer": "answers",
    "fence": "fences and drains",
    "doorbell": "doorbell ports",
    "status": "STATUS, and the events that are counted",
    "requests": "joins front, ports, PMSHR, lookup, answer and fence",
    "nvme": "joins desc, submit, complete and doorbell",
    "updaters": "chooses the entry that is updated next",
    "rings": "joins free and return",
    "axi": "joins the AXI channels",
    "registers": "joins regs, csr and windows",
    "installs": "queue of installs",
    "top": "joins all parts",
}


COMPARED = """How does this compare with the ISCA 2020 paper? The paper estimates {paper} mm2 at 22 nm. Ours is {ours:.2f} mm2
of synthesized cells at 0.18 um. The paper's unit has no second read of the PTE, software ports, deadlines,
counters, fences or return ring; these are our `rest`. Our `prefetch buffer` includes the ring's registers. Our
`PMSHR` is all parts that hold or find misses."""


def rows(header: list[str], body: list[list[str]]) -> list[str]:
    """A table; the first column is text, the others are numbers."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *body]
    return ["| " + " | ".join(items) + " |" for items in lines] + [""]


def path(found: dict) -> str:
    """A path in two sentences."""
    parts = ", ".join(f"{step['part']} {step['ns']:.2f}" for step in found["parts"] if step["ns"] >= 0.005)
    return f"{found['ns']:.2f} ns from `{found['begin']}` to `{found['end']}`.\nTime by part in ns: {parts}."


def cells(found: dict) -> list[str]:
    """Section: area by part, and the paper's shares beside ours."""
    total = found["total"]
    order = sorted(found["parts"].items(), key=lambda item: -item[1]["um2"])

    def share(um2: float) -> str:
        return f"{100 * um2 / total['um2']:.1f}"

    body = [[f"{name}: {WHAT.get(name, '')}", f"{p['um2']:,.0f}", share(p["um2"]), f"{p['gates']:,}", f"{p['flip_flops']:,}"]
            for name, p in order]
    body.append(["**all**", f"{total['um2']:,.0f}", "100.0", f"{total['gates']:,}", f"{total['flip_flops']:,}"])
    text = ["## Standard cells (OSU018, 0.18 um), default parameters", ""]
    text += rows(["part", "um2", "%", "NAND2X1", "flip-flops"], body)
    text += [f"Critical path: {path(found['path'])}", ""]
    ours = {name: sum(found["parts"][p]["um2"] for p in parts) for name, parts in SAME.items()}
    ours["rest"] = total["um2"] - sum(ours.values())
    text += [COMPARED.format(paper=PAPER_MM2, ours=total["um2"] / 1e6), ""]
    text += rows(["part", "ISCA20 %", "here %"], [[name, f"{value}", share(ours[name])] for name, value in PAPER_SHARES.items()])
    return text


def sweep(found: list[dict]) -> list[str]:
    """Section: area and critical path by number of PMSHR entries."""
    body = [[str(r["entries"]), f"{r['um2']:,.0f}", f"{r['pmshr_um2']:,.0f}", f"{r['gates']:,}", f"{r['flip_flops']:,}",
             f"{r['ns']:.2f}"] for r in found]
    return ["## PMSHR entries", "", *rows(["entries", "um2", "pmshr, um2", "NAND2X1", "flip-flops", "critical path, ns"], body)]


def xilinx(found: dict) -> list[str]:
    """Section: LUTs and other cells of a Xilinx 7."""
    names = {"lut": "LUT", "flip_flops": "FF", "carry4": "CARRY4", "muxf": "MUXF7/8", "lut_ram": "LUT RAM", "bram": "BRAM"}
    body = [[size, *(f"{counts[key]:,}" for key in names)] for size, counts in found.items()]
    return ["## Xilinx 7 (Yosys, not placed)", "", *rows(["parameters", *names.values()], body)]


def ecp5(found: dict) -> list[str]:
    """Section: placed and routed on an ECP5."""
    verdict = "meets" if found["fmax_mhz"] >= found["target_mhz"] else "misses"
    sizes = ", ".join(f"{name} {value}" for name, value in found["parameters"].items())
    body = [[name, f"{value['used']:,}", f"{100 * value['used'] / value['available']:.0f}"]
            for name, value in found["utilization"].items()]
    way = found["path"]
    return [
        f"## ECP5 ({found['device']}, speed grade {found['speed']}, nextpnr), placed and routed",
        "",
        f"Small parameters: {sizes}.",
        f"The clock reaches **{found['fmax_mhz']:.1f} MHz**, which {verdict} the target of {found['target_mhz']} MHz.",
        "",
        *rows(["cells", "used", "% of the device"], body),
        f"Critical path: {path(way)} The path has {way['levels']} cells; its wires take {way['routing_ns']:.2f} ns.",
        "",
    ]


def core(found: dict) -> list[str]:
    """Section: what the changed walker adds to CVA6."""
    body = [[name, f"{r['without_um2']:,.0f}", f"{r['with_um2']:,.0f}", f"{100 * (r['with_um2'] / r['without_um2'] - 1):+.1f}"
             if r["without_um2"] else "new"] for name, r in sorted(found["modules"].items(), key=lambda row: row[1]["with_um2"])]
    return ["## CVA6 (rv64imac) with the walker that asks the SMU", "", "Only cells are counted, not the caches' memories.", "",
            *rows(["module", "without, um2", "with, um2", "%"], body)]


NOT_COUNTED = f"""## What is not counted, and how far to trust it

- Standard cells: each module is mapped by itself, so logic that a flat design would share or remove at the modules' edges
  is counted. Wires, buffers of wide nets, clock tree, scan and the space between cells have no area. In the critical
  path, wide nets have the delay of a buffer tree, and wires have none. The corner is typical: 1.8 V, 25 degrees.
  Flip-flops have synchronous reset (`TRAPLESS_SYNC_RESET`), because the library's flip-flop with asynchronous reset is
  nearly twice as large. The flip-flops of the generated AXI4-Lite front have asynchronous reset.
- All storage is flip-flops. A memory compiler, or latches, would make PMSHR, prefetch buffer and ports smaller.
- 0.18 um and 22 nm cannot be compared by area; the shares can.
- ECP5: the unit is placed between shift registers (`rtl/smu/synth/fpga_top.sv`), whose flip-flops are counted. nextpnr
  ran with one seed ({fpga.SEED}). The unit is not connected to a memory.
"""


def markdown(results: dict) -> str:
    """The whole page."""
    text = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", "<!-- Made by rtl/smu/synth/cost of cost.json. -->"]
    text += ["# What the SMU costs", "", f"Measured by `rtl/run rtl/smu/synth/cost` with Yosys {results.get('yosys', '')}.", ""]
    for name, section in (("parts", cells), ("sweep", sweep), ("xilinx", xilinx), ("ecp5", ecp5), ("core", core)):
        if name in results:
            text += section(results[name])
    return "\n".join(text) + "\n" + NOT_COUNTED
