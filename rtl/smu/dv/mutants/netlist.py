# SPDX-License-Identifier: Apache-2.0
"""Makes the SMU with mutants: Yosys elaborates it, inserts faults that a number selects, and writes Verilog for one model.

Run it with a Python that has pyosys. It reads a JSON request from standard input."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyosys import libyosys

WIDTH = 12
# TRAPLESS_MUTANT is read when the model starts. With 0, or if it is not set, no fault is in force.
SELECT = """
module trapless_mutant (output logic [11:0] sel);
  initial sel = $c12("(std::getenv(\\"TRAPLESS_MUTANT\\") ? atoi(std::getenv(\\"TRAPLESS_MUTANT\\")) : 0)");
endmodule
"""


# Modules that only connect others: left out of the names of parts.
GROUPS = re.compile(r"(?<=\.)u_(?:registers|requests|rings|nvme|updaters|status|axi)\.")


def plain(module: str) -> str:
    """Plain name: trapless_smu_rr__front_pick for trapless_smu_rr$trapless_smu.u_front.u_pick. Modules used once keep their
    names."""
    kind, _, path = GROUPS.sub("", module).partition("$")
    if not path or path.count(".") == 1 and kind not in ("trapless_smu_fence", "trapless_smu_fifo", "trapless_smu_update"):
        return kind
    return kind + "__" + re.sub(r"\W+", "_", path.partition(".")[2].replace("u_", "")).strip("_")


def part(module: str) -> str:
    """The part of the unit to which a module belongs: front for trapless_smu_rr__front_pick."""
    kind, _, path = module.partition("__")
    name = path or kind.removeprefix("trapless_smu").strip("_") or "top"
    return "update" if "update" in name else name.split("_")[0] if path else name


def instance(module: str) -> str:
    """The instance of a module: front.pick for trapless_smu_rr$trapless_smu.u_front.u_pick."""
    return re.sub(r"\bu_", "", GROUPS.sub("", module).partition("$")[2].partition(".")[2]) or "top"


def drawn(*words: object) -> str:
    """A pseudo-random string, always the same for the same words."""
    return hashlib.sha256(" ".join(map(str, words)).encode()).hexdigest()


@cache
def place(source: str) -> str:
    """The first line of the source text that a cell comes from: `a && b` for trapless_smu_x.sv:12.8-12.14."""
    found = re.match(r"(.*):(\d+)\.(\d+)(?:-(\d+)\.(\d+))?", source.split("|")[0])
    if not found:
        return ""
    path, line, column, last_line, last_column = found.groups()
    text = Path(path).read_text().splitlines()[int(line) - 1]
    text = text[int(column) - 1 : int(last_column) - 1 if last_line == line else None]
    return f"{Path(path).name.removeprefix('trapless_smu_').removesuffix('.sv')}: {' '.join(text.split())}"


def cells(module: libyosys.Module) -> list[dict]:
    """A module's cells, named by their source text instead of numbers, so that unchanged code keeps its names."""
    found = defaultdict(list)
    for cell in list(module.cells_.values()):
        own = str(cell.name)
        kind = own[1:].removeprefix("driver$") if re.match(r"\\|\$driver", own) else str(cell.type).strip("$")
        where = place(cell.get_src_attribute())
        number = int((re.findall(r"\d+", own) or ["0"])[-1])
        found[f"{where} | {kind}"].append((number, own, cell, where))
    told = []
    for name, same in found.items():
        same.sort(key=lambda entry: entry[:2])
        for n, (_, own, cell, where) in enumerate(same):
            told.append({"id": own, "cell": cell, "place": where, "name": name + (f" #{n}" if n else "")})
    return told


def drawn_cells(offered: list[dict], count: int, seed: int) -> list[dict]:
    """Draw `count` cells at random: one of each place in turn."""
    places = defaultdict(list)
    for cell in offered:
        places[cell["place"]].append((drawn(seed, cell["name"]), cell))
    lots = []
    for where, here in places.items():
        here.sort(key=lambda lot: lot[0])
        lots += [(turn, drawn(seed, where), cell) for turn, (_, cell) in enumerate(here[:count])]
    return [cell for _, _, cell in sorted(lots, key=lambda lot: lot[:2])[:count]]


def is_fault(cell: libyosys.Cell, port: str, bit: int, mode: str) -> bool:
    """Whether a mutation is a fault: not on a signal that already has this constant value, and not on a clock."""
    pins = {str(name): signal for name, signal in cell.connections_.items()}
    signal = pins[escaped(port)].extract(bit, 1)
    same = signal.is_fully_const() and mode == f"const{int(signal.as_bool())}"
    return not same and port not in ("CLK", "clk", "clk_i")


def escaped(name: str) -> str:
    """A name in the form that Yosys uses inside."""
    return name if name[0] in "$\\" else "\\" + name


def main() -> None:
    """Read the unit, put the faults in, write the netlist and the list of mutants."""
    from pyosys import libyosys

    request = json.load(sys.stdin)
    out = Path(request["out"])
    design = libyosys.Design()

    def run(line: str) -> None:
        libyosys.run_pass(line, design)

    run(request["read"])
    # Nothing is cleaned away, because the model's interface reads some registers by name. But cells that cleaning would
    # remove get no fault.
    for line in ("proc -noopt", "bmuxmap", "demuxmap", "bwmuxmap", "design -save whole", "opt_expr", "opt_clean"):
        run(line)
    alive = {(str(name), str(cell)) for name in list(design.modules_) for cell in list(design.module(name).cells_)}
    run("design -load whole")
    modules = {str(name): design.module(name) for name in list(design.modules_)}
    offered = {
        name: [cell for cell in cells(module) if (name, cell["id"]) in alive] for name, module in sorted(modules.items())
    }
    total = sum(map(len, offered.values()))
    chosen = {}
    for module, here in offered.items():
        for cell in drawn_cells(here, request["least"] + round(request["rest"] * len(here) / total), request["seed"]):
            cell["cell"].set_bool_attribute("\\drawn")
            chosen[module, cell["id"]] = cell | {"name": f"{instance(module)}: {cell['name']}"}
    # List all possible mutations, and choose one for each cell at random.
    listing = out / "list.txt"
    run(f"mutate -list {1 << 20} -seed 1 -o {listing} a:drawn")
    faults = defaultdict(list)
    for line in listing.read_text().splitlines():
        words = line.split()
        options = dict(zip(words[1::2], words[2::2], strict=False))
        key = escaped(options["-module"]), escaped(options["-cell"])
        port, bit, mode = options["-port"].lstrip("\\"), int(options["-portbit"]), options["-mode"]
        if is_fault(chosen[key]["cell"], port, bit, mode):
            name = f"{chosen[key]['name']} {port}[{bit}] {mode}"
            faults[key].append((drawn(request["seed"], name), name, line.strip()))
    described = []
    for number, ((module, _), here) in enumerate(sorted(faults.items(), key=lambda item: chosen[item[0]]["name"]), 1):
        _, name, line = min(here)
        run(f"{line} -ctrl trapless_mutsel {WIDTH} {number}")
        described.append({"number": number, "part": part(plain(module.lstrip("\\"))), "name": name, "yosys": line})
    netlist = out / "smu.v"
    run(f"write_verilog -noattr {netlist}")
    # The selection comes from a module inside, so the ports do not change.
    text = re.sub(r"\\(trapless_smu\w*\$\S+)", lambda found: plain(found[1]), netlist.read_text())
    before, top, after = text.partition("module trapless_smu(")
    wire = f"  wire [{WIDTH - 1}:0] trapless_mutsel;\n"
    after = after.replace(", trapless_mutsel", "", 1).replace(f"  input [{WIDTH - 1}:0] trapless_mutsel;\n", "", 1)
    after = after.replace(wire, f"{wire}  trapless_mutant u_mutant (.sel(trapless_mutsel));\n", 1)
    text = before + top + after
    netlist.write_text(text)
    (out / "select.sv").write_text(SELECT)
    (out / "mutants.json").write_text(json.dumps(described, indent=1))


if __name__ == "__main__":
    main()
