# SPDX-License-Identifier: Apache-2.0
"""The SMU with mutants in it: Yosys elaborates it, inserts faults that a number selects, and writes Verilog for one model.

A script for a Python that has pyosys, with a JSON request on standard input."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

WIDTH = 12
# Read when the model starts; 0, and nothing given, is the unit as it is.
SELECT = """
module trapless_mutant (output logic [11:0] sel);
  initial sel = $c12("(std::getenv(\\"TRAPLESS_MUTANT\\") ? atoi(std::getenv(\\"TRAPLESS_MUTANT\\")) : 0)");
endmodule
"""


def plain(module: str) -> str:
    """trapless_smu_rr$trapless_smu.u_front.u_pick becomes trapless_smu_rr__front_pick; what is there once keeps its name."""
    kind, _, path = module.partition("$")
    if not path or path.count(".") == 1 and kind not in ("trapless_smu_fence", "trapless_smu_fifo", "trapless_smu_update"):
        return kind
    return kind + "__" + re.sub(r"\W+", "_", path.partition(".")[2].replace("u_", "")).strip("_")


def part(module: str) -> str:
    """The part of the unit: that of front for trapless_smu_rr__front_pick."""
    kind, _, path = module.partition("__")
    name = path or kind.removeprefix("trapless_smu").strip("_") or "top"
    return "update" if "update" in name else name.split("_")[0] if path else name


def main() -> None:
    """Read, mutate, write; answer with the list of mutants."""
    from pyosys import libyosys

    request = json.load(sys.stdin)
    out = Path(request["out"])
    design = libyosys.Design()

    def run(line: str) -> None:
        libyosys.run_pass(line, design)

    run(request["read"])
    # Nothing is cleaned away, for the model's interface looks at some registers by name; but what would be is not worth a fault.
    for line in ("proc -noopt", "bmuxmap", "demuxmap", "bwmuxmap", "design -save whole", "opt_expr", "opt_clean"):
        run(line)
    alive = {(str(name), str(cell)) for name in list(design.modules_) for cell in list(design.module(name).cells_)}
    run("design -load whole")
    sizes = {str(name).removeprefix("\\"): len(design.module(name).cells_) for name in list(design.modules_)}
    shares = {name: request["least"] + round(request["rest"] * size / sum(sizes.values())) for name, size in sizes.items()}
    mutants = []
    for index, (name, count) in enumerate(sorted(shares.items())):
        listing = out / "list.txt"
        run(f"mutate -list {4 * count} -seed {request['seed'] + index} -module {name} -o {listing}")
        lines = [line.strip() for line in listing.read_text().splitlines() if line.strip()]
        chosen = [line for line in lines if ("\\" + name, re.search(r"-cell (\S+)", line)[1]) in alive]
        mutants += [(name, line) for line in chosen[:count]]
    described = []
    for number, (name, line) in enumerate(mutants, 1):
        run(f"{line} -ctrl trapless_mutsel {WIDTH} {number}")
        words = shlex.split(line)
        options = dict(zip(words[1::2], words[2::2], strict=False))
        described.append({
            "number": number, "part": part(plain(name)), "mode": options["-mode"], "port": options.get("-port", ""),
            "bit": int(options.get("-portbit", 0)), "cell": options.get("-cell", "").removeprefix("\\"),
            "wire": options.get("-wire", "").removeprefix("\\"), "source": Path(options.get("-src", "").split("|")[0]).name,
        })
    netlist = out / "smu.v"
    run(f"write_verilog -noattr {netlist}")
    # The selection comes from inside, so the ports stay as they are.
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
