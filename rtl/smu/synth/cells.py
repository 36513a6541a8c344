# SPDX-License-Identifier: Apache-2.0
"""The SMU in standard cells: area and flip-flops of each part, and the critical path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rtl.smu.synth import liberty, timing, yosys
from rtl.tools import env, sources

# Modules that only connect others. A module inside them counts as its own part.
GROUPS = r"(?:\\?u_(?:registers|requests|rings|nvme|updaters|status|axi)\.)?"
# Map for delay, without buffers: timing.py adds their delay.
ABC = "+strash;ifraig;scorr;dc2;dch,-f;map,-B,0.9;topo"


def map_passes(library: Path) -> list[str]:
    """Passes from a design that was just read to a netlist of the library's cells, each module by itself."""
    coarse = ["proc", "opt -full", "wreduce", "opt_clean", "memory -nomap", "opt -full", "alumacc", "memory_map", "opt -full"]
    # Without these passes, loads would become inverted resets and enables. The library has neither.
    fine = ["techmap", "opt -fast", f"dfflibmap -liberty {library}", "opt -fast"]
    return [*coarse, *fine, f"abc -liberty {library} -script {ABC}", "opt_clean"]


def synthesize(name: str, parameters: Mapping[str, int], path: bool) -> dict:
    """Synthesize the unit: the area by part, and with `path` also the critical path."""
    library = env.liberty()
    passes = [yosys.read(parameters), *map_passes(library), f"tee -q -o {name}.json stat -json -liberty {library}"]
    if path:
        passes += ["flatten", "opt_clean", f"write_json {name}-flat.json"]
    yosys.run(name, passes)
    cells = liberty.read(library)
    result = areas(yosys.statistics(yosys.BUILD / f"{name}.json"), cells)
    if path:
        result["path"] = describe(timing.critical(yosys.BUILD / f"{name}-flat.json", sources.TOP, cells))
    return result


def part_of(module: str) -> str:
    """The part of the unit to which a module belongs: trapless_smu_rr$trapless_smu.u_front.u_pick belongs to front."""
    found = re.search(r"\$" + sources.TOP + r"\." + GROUPS + r"(?:g_\w+(?:\[\d+\])?\.)*u_(\w+)", module)
    return found[1] if found else "top"


def areas(modules: dict[str, dict], cells: dict[str, liberty.Cell]) -> dict:
    """Sums by part: area in um2, area in gates (NAND2X1), and flip-flops."""
    nand = cells["NAND2X1"].area
    parts: dict[str, dict] = {}
    for module, counted in modules.items():
        part = parts.setdefault(part_of(module.lstrip("\\")), {"um2": 0.0, "gates": 0, "flip_flops": 0})
        for kind, count in counted["num_cells_by_type"].items():
            if kind in cells:
                part["um2"] += cells[kind].area * count
                part["flip_flops"] += count if cells[kind].clock else 0
            elif kind.startswith("$"):
                raise yosys.SynthesisError(f"{module} has {kind}, which was not mapped to cells")
    for part in parts.values():
        part["gates"] = round(part["um2"] / nand)
    total = {key: sum(part[key] for part in parts.values()) for key in ("um2", "flip_flops")}
    total["gates"] = round(total["um2"] / nand)
    return {"parts": parts, "total": total}


def describe(way: timing.Way) -> dict:
    """A path for the results: where it begins and ends, and the parts on it with the time spent in each."""
    spent: list[list] = []
    before = 0.0
    for step in way.steps:
        found = re.match(r"(?:\$flatten\\)?" + GROUPS + r"(?:\\?g_\w+(?:\[\d+\])?\.)*\\?u_(\w+)\.", step.cell)
        part = found[1] if found else "top"
        if not spent or spent[-1][0] != part:
            spent.append([part, 0.0])
        spent[-1][1] += step.time - before
        before = step.time
    return {
        "ns": way.delay,
        "cells": len(way.steps),
        "begin": way.steps[0].net if way.steps else "",
        "end": way.end,
        "parts": [{"part": part, "ns": time} for part, time in spent],
    }
