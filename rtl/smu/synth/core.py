# SPDX-License-Identifier: Apache-2.0
"""Measures what the changed walker adds to CVA6: the core in standard cells, without and with the page table extension."""

from __future__ import annotations

import re
import shutil
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

from rtl.smu.synth import cells, liberty, yosys
from rtl.tools import env

CONFIG = "rv64imac"
# Memories of the caches, and modules that exist only in simulation.
BLACK_BOXES = ("sram", "tc_sram", "tc_sram_wrapper", "sim_probe", "div_sqrt_top_mvp")
# Modules that the change touches or adds; all other modules are reported as one.
TOUCHED = ("ptw", "mmu", "csr_regfile", "wt_dcache_missunit", "wt_dcache_inval", "shwdp_core", "shwdp_wait")


def builder() -> ModuleType:
    """rtl/cva6/build as a module; it knows the core's sources."""
    loader = SourceFileLoader("cva6_build", str(env.RTL / "cva6" / "build"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def sources(build: ModuleType, extended: bool) -> list[Path]:
    """The core's files: with the overlay, or as its authors released them, except for the size of the caches."""
    wheel, changed = env.cva6(), yosys.BUILD / "cva6-source"
    shutil.rmtree(changed, ignore_errors=True)
    config = build.HERE / "config" / f"{CONFIG}_config_pkg.sv"
    if not extended:
        build.HERE = changed  # a folder without an overlay
        build.change(wheel, changed)
        names = build.core_files(wheel)
        return [config, *(changed / name if (changed / name).exists() else wheel / name for name in names)]
    mine = (env.RTL / "cva6" / "soc", env.RTL / "cva6" / "sim")
    return [path for path in build.sources(wheel, changed, CONFIG, smu=False) if path.parent not in mine]


def synthesize(extended: bool) -> dict[str, float]:
    """Area of each module of the core in um2."""
    build, wheel, library = builder(), env.cva6(), env.liberty()
    name = "cva6-shwdp" if extended else "cva6"
    files = sources(build, extended)
    include = " ".join(f"-I {wheel / folder}" for folder in build.INCLUDES)
    boxes = " ".join(f"--blackboxed-module {box}" for box in BLACK_BOXES)
    # The core selects parts of fields that are one bit wide in configurations that do not use them.
    read = "read_slang --threads 1 --ignore-assertions -Wno-range-width-oob --keep-hierarchy -D WT_DCACHE -D SYNTHESIS"
    read += f" {include} {boxes} --top cva6 {'-G Shwdp=1' if extended else ''} " + " ".join(map(str, files))
    yosys.run(name, [read, *cells.map_passes(library), f"tee -q -o {name}.json stat -json -liberty {library}"])
    known = liberty.read(library)
    areas: dict[str, float] = {}
    for module, counted in yosys.statistics(yosys.BUILD / f"{name}.json").items():
        kind = re.split(r"\$", module.lstrip("\\"))[0]
        um2 = sum(known[cell].area * count for cell, count in counted["num_cells_by_type"].items() if cell in known)
        areas[kind] = areas.get(kind, 0.0) + um2
    return areas


def measure() -> dict:
    """Areas of the changed modules and of the whole core, without and with the change."""
    without, extended = synthesize(False), synthesize(True)
    modules = {name: {"without_um2": without.get(name, 0.0), "with_um2": extended[name]} for name in TOUCHED if name in extended}
    modules["all of the core"] = {"without_um2": sum(without.values()), "with_um2": sum(extended.values())}
    return {"config": CONFIG, "modules": modules}
