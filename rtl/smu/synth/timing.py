# SPDX-License-Identifier: Apache-2.0
"""Static timing analysis of a mapped, flattened netlist (`write_json`): the longest path from a register or pin to another.

Delays and transitions come from the library's tables, with the load of the pins that a net goes to. Wires add no load. A net to
many pins is timed as if it had a balanced tree of buffers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

from rtl.smu.synth.liberty import Arc, Cell

# Transition at pins and clocks in ns: typical for a gate that drives a few others.
SLEW = 0.12
RISE, FALL = 0, 1
# Limit of pins that a gate drives itself. A net to more pins gets buffers of the type BUFFER, which drive FANOUT pins each.
FANOUT = 12
BUFFER = "BUFX4"
CAUSES = {"positive_unate": ((RISE,), (FALL,)), "negative_unate": ((FALL,), (RISE,)), "non_unate": ((RISE, FALL), (RISE, FALL))}


@dataclass
class Step:
    """A cell on the path, and when its output changes, in ns."""

    cell: str
    kind: str
    net: str
    time: float


@dataclass
class Way:
    """The critical path. Its delay in ns includes the setup time at its end."""

    delay: float
    steps: list[Step]
    end: str


def critical(path: Path, top: str, cells: dict[str, Cell]) -> Way:
    """The longest path of the design."""
    module = json.loads(path.read_text())["modules"][top]
    names: dict[int, str] = {}
    for name, net in module["netnames"].items():
        for index, bit in enumerate(net["bits"]):
            if isinstance(bit, int) and (bit not in names or (names[bit].startswith("$") and not name.startswith("$"))):
                names[bit] = name if len(net["bits"]) == 1 else f"{name}[{index}]"
    gates = {name: (cells[cell["type"]], cell["connections"]) for name, cell in module["cells"].items() if cell["type"] in cells}
    load: dict[int, float] = {}
    sinks: dict[int, int] = {}
    driver: dict[int, tuple[str, str]] = {}
    for name, (cell, pins) in gates.items():
        for pin, (bit, *_) in pins.items():
            if not isinstance(bit, int):
                continue
            if pin in cell.arcs:
                driver[bit] = (name, pin)
            else:
                load[bit] = load.get(bit, 0.0) + cell.capacitance[pin]
                sinks[bit] = sinks.get(bit, 0) + 1
    # The delay of a tree is the delay of its levels; each buffer drives FANOUT buffers. The tree's root loads the driver.
    buffer = cells[BUFFER]
    levels: dict[int, int] = {}
    for bit, pins in sinks.items():
        while pins > FANOUT:
            pins = -(-pins // FANOUT)
            levels[bit] = levels.get(bit, 0) + 1
        if bit in levels:
            load[bit] = pins * next(iter(buffer.capacitance.values()))
    through = next(iter(buffer.arcs.values()))[0]
    leaf = FANOUT * next(iter(buffer.capacitance.values()))
    level = max(through.rise[0].at(leaf, SLEW), through.fall[0].at(leaf, SLEW))

    def arcs(name: str, pin: str) -> list[Arc]:
        cell = gates[name][0]
        return [arc for arc in cell.arcs[pin] if not cell.clock or arc.source == cell.clock]

    order = TopologicalSorter(
        {bit: {source for arc in arcs(name, pin) for source in gates[name][1][arc.source] if isinstance(source, int)}
         if not gates[name][0].clock else set() for bit, (name, pin) in driver.items()}
    )
    # net -> for each edge: time, transition, and the net and edge that caused it
    arrival: dict[int, list[tuple[float, float, int | None, int]]] = {}
    start = [(0.0, SLEW, None, RISE), (0.0, SLEW, None, FALL)]
    for bit in order.static_order():
        if bit not in driver:
            continue
        name, pin = driver[bit]
        cell, pins = gates[name]
        best: list[tuple[float, float, int | None, int]] = [(-1.0, SLEW, None, RISE), (-1.0, SLEW, None, FALL)]
        for arc in arcs(name, pin):
            source = None if cell.clock else pins[arc.source][0]
            if source is not None and not isinstance(source, int):
                continue
            before = start if source is None else arrival.get(source, start)
            for edge, tables in ((RISE, arc.rise), (FALL, arc.fall)):
                for cause in CAUSES[arc.sense][edge] if source is not None else (RISE,):
                    time = before[cause][0] + tables[0].at(load.get(bit, 0.0), before[cause][1]) + level * levels.get(bit, 0)
                    if time > best[edge][0]:
                        best[edge] = (time, max(tables[1].at(load.get(bit, 0.0), before[cause][1]), 0.0), source, cause)
        arrival[bit] = best

    worst, at, edge, end = 0.0, None, RISE, ""
    ends = [(bit, f"output {name}", 0.0) for name, port in module["ports"].items() if port["direction"] == "output"
            for bit in port["bits"]]
    ends += [(pins[pin][0], f"register {name}", cell.setup.get(pin, 0.0)) for name, (cell, pins) in gates.items() if cell.clock
             for pin in pins if pin not in cell.arcs and pin != cell.clock]
    for bit, name, setup in ends:
        for e in (RISE, FALL):
            if isinstance(bit, int) and bit in arrival and arrival[bit][e][0] + setup > worst:
                worst, at, edge, end = arrival[bit][e][0] + setup, bit, e, name
    steps = []
    while at is not None:
        if at in driver:
            name = driver[at][0]
            steps.append(Step(name, gates[name][0].name, names.get(at, ""), arrival[at][edge][0]))
            at, edge = arrival[at][edge][2], arrival[at][edge][3]
        else:
            steps.append(Step("pin", "", names.get(at, ""), 0.0))
            at = None
    return Way(worst, steps[::-1], end)
