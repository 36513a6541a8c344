# SPDX-License-Identifier: Apache-2.0
"""Measures the SMU on FPGAs: its cells on a Xilinx 7 (Yosys only), and placed and routed on an ECP5 (nextpnr)."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rtl.smu.synth import yosys
from rtl.tools import sources

HERE = Path(__file__).resolve().parent
DEVICE = "LFE5U-85F"
SPEED = 8
SEED = 1


def count(modules: dict[str, dict], kinds: str) -> int:
    """Number of cells in all modules whose type matches the pattern `kinds`."""
    return sum(n for counted in modules.values() for kind, n in counted["num_cells_by_type"].items() if re.fullmatch(kinds, kind))


def xilinx(parameters: Mapping[str, int]) -> dict:
    """Look-up tables, flip-flops and memories on a Xilinx 7. Modules are kept apart, so a flat design needs a little less."""
    passes = [yosys.read(parameters), "proc", "opt_clean"]
    passes += [f"synth_xilinx -family xc7 -noiopad -noclkbuf -top {sources.TOP}", "tee -q -o xc7.json stat -json"]
    yosys.run("xc7", passes)
    modules = yosys.statistics(yosys.BUILD / "xc7.json")
    return {
        "lut": count(modules, r"\\?LUT\d"),
        "carry4": count(modules, r"\\?CARRY4"),
        "muxf": count(modules, r"\\?MUXF[78]"),
        "flip_flops": count(modules, r"\\?FD[RSCP]E"),
        "lut_ram": count(modules, r"\\?RAM(32|64|128)\w+"),
        "bram": count(modules, r"\\?RAMB\w+"),
    }


def ecp5(parameters: Mapping[str, int], target: int) -> dict:
    """Place and route for `target` MHz: the cells used, the clock reached, and the critical path."""
    passes = [yosys.read(parameters, extra=(HERE / "fpga_top.sv",), top="fpga_top"), "proc", "opt_clean"]
    passes += ["synth_ecp5 -top fpga_top -noabc9 -json ecp5.json"]
    yosys.run("ecp5", passes)
    report = yosys.BUILD / "ecp5-report.json"
    report.unlink(missing_ok=True)
    command = ["nextpnr-ecp5", "--85k", "--package", "CABGA756", "--speed", str(SPEED), "--json", "ecp5.json"]
    command += ["--seed", str(SEED), "--freq", str(target), "--report", report.name, "--timing-allow-fail"]
    command += ["--lpf-allow-unconstrained", "--quiet"]
    record = yosys.BUILD / "ecp5-route.log"
    with record.open("w") as log:
        status = subprocess.run(command, cwd=yosys.BUILD, stdout=log, stderr=log, check=False).returncode
    if status != 0:
        raise yosys.SynthesisError(f"nextpnr-ecp5 failed with status {status} (log: {yosys.relative(record)})")
    found = json.loads(report.read_text())
    clock, speed = next(iter(found["fmax"].items()))
    path = next(path for path in found["critical_paths"] if path["from"].endswith(clock) and path["to"].endswith(clock))
    used = {name: value for name, value in found["utilization"].items() if value["used"]}
    return {
        "device": DEVICE,
        "speed": SPEED,
        "parameters": dict(parameters),
        "target_mhz": target,
        "fmax_mhz": speed["achieved"],
        "utilization": {name: used[name] for name in ("TRELLIS_COMB", "TRELLIS_FF", "DP16KD", "TRELLIS_RAMW") if name in used},
        "path": describe(path["path"]),
    }


def describe(path: list[dict]) -> dict:
    """A path for the results: its ends, its delay, the share of routing, and the time spent in each part of the unit."""
    spent: list[list] = []
    for step in path:
        name = step.get("to", {}).get("cell", "")
        found = re.match(r"u_smu\.(?:g_\w+(?:\[\d+\])?\.)*u_(\w+?)\.", name)
        part = found[1] if found else "top"
        if not spent or spent[-1][0] != part:
            spent.append([part, 0.0])
        spent[-1][1] += step["delay"]
    return {
        "ns": sum(step["delay"] for step in path),
        "routing_ns": sum(step["delay"] for step in path if step["type"] == "routing"),
        "levels": sum(step["type"] == "logic" for step in path),
        "begin": path[0]["from"]["cell"],
        "end": path[-1]["to"]["cell"],
        "parts": [{"part": part, "ns": time} for part, time in spent],
    }
