# SPDX-License-Identifier: Apache-2.0
"""Reads the needed parts of a Liberty file: areas, capacitances, pins and delay tables."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

LOAD = "total_output_net_capacitance"
TOKEN = re.compile(r'"[^"]*"|[A-Za-z_][\w.]*|[-+]?[\d.]+(?:[eE][-+]?\d+)?|[{}():;,]')


@dataclass
class Group:
    """A group of the file: cell (NAND2X1) { ... }."""

    kind: str
    name: str
    values: dict[str, str] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    def of(self, kind: str) -> list[Group]:
        """The groups of this kind inside this group."""
        return [group for group in self.groups if group.kind == kind]


@dataclass
class Table:
    """Delay or transition as a function of load and input transition."""

    loads: list[float]
    slews: list[float]
    values: list[list[float]]

    def at(self, load: float, slew: float) -> float:
        """The value at a load and an input transition, interpolated or extrapolated along straight lines."""
        i, x = _place(self.loads, load)
        j, y = _place(self.slews, slew)
        low, high = self.values[i], self.values[min(i + 1, len(self.loads) - 1)]
        k = min(j + 1, len(self.slews) - 1)
        return (low[j] * (1 - y) + low[k] * y) * (1 - x) + (high[j] * (1 - y) + high[k] * y) * x


@dataclass
class Arc:
    """From an input or clock to an output: delay and transition of its rising and falling edge; `sense` says what causes them."""

    source: str
    sense: str
    rise: tuple[Table, Table]
    fall: tuple[Table, Table]


@dataclass
class Cell:
    """A standard cell."""

    name: str
    area: float
    capacitance: dict[str, float] = field(default_factory=dict)
    arcs: dict[str, list[Arc]] = field(default_factory=dict)
    setup: dict[str, float] = field(default_factory=dict)
    clock: str = ""


def _place(points: list[float], value: float) -> tuple[int, float]:
    if len(points) == 1:
        return 0, 0.0
    i = min(max(bisect_right(points, value) - 1, 0), len(points) - 2)
    return i, (value - points[i]) / (points[i + 1] - points[i])


def _numbers(text: str) -> list[float]:
    return [float(item) for item in re.split(r"[\s,]+", text.strip()) if item]


def _parse(text: str) -> Group:
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).replace("\\\n", " ")
    tokens = TOKEN.findall(text)
    stack = [Group("file", "")]
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if token == "}":
            stack.pop()
            i += 1
        elif i + 1 < len(tokens) and tokens[i + 1] == ":":
            end = tokens.index(";", i)
            stack[-1].values[token] = " ".join(tokens[i + 2 : end]).strip('"')
            i = end + 1
        elif i + 1 < len(tokens) and tokens[i + 1] == "(":
            end = tokens.index(")", i)
            arguments = [item.strip('"') for item in tokens[i + 2 : end] if item != ","]
            if end + 1 < len(tokens) and tokens[end + 1] == "{":
                group = Group(token, " ".join(arguments))
                stack[-1].groups.append(group)
                stack.append(group)
                i = end + 2
            else:
                stack[-1].values[token] = ";".join(arguments)
                i = end + 1
        else:
            i += 1
    return stack[0].groups[0]


def _table(group: Group, loads_first: bool) -> Table:
    rows = [_numbers(row) for row in group.values["values"].split(";")]
    first, second = _numbers(group.values.get("index_1", "0")), _numbers(group.values.get("index_2", "0"))
    if loads_first:
        return Table(first, second, rows)
    return Table(second, first, [list(column) for column in zip(*rows, strict=True)])


def read(path: Path) -> dict[str, Cell]:
    """The cells of a library."""
    library = _parse(path.read_text())
    templates = {group.name: group.values.get("variable_1", "") for group in library.of("lu_table_template")}
    cells = {}
    for group in library.of("cell"):
        cell = Cell(group.name, float(group.values.get("area", "0")))
        for pin in group.of("pin"):
            cell.capacitance[pin.name] = float(pin.values.get("capacitance", "0"))
            if pin.values.get("clock") == "true":
                cell.clock = pin.name
            for timing in pin.of("timing"):
                tables = {table.kind: table for table in timing.groups}
                source = timing.values["related_pin"]
                if timing.values.get("timing_type", "").startswith("setup"):
                    worst = max(max(_numbers(table.values["values"].replace(";", " "))) for table in timing.groups)
                    cell.setup[pin.name] = max(worst, cell.setup.get(pin.name, 0.0))
                elif "cell_rise" in tables and "cell_fall" in tables:
                    sense = timing.values.get("timing_sense", "non_unate")
                    read_in = {kind: _table(table, templates[table.name] == LOAD) for kind, table in tables.items()}
                    rise, fall = ((read_in[f"cell_{edge}"], read_in[f"{edge}_transition"]) for edge in ("rise", "fall"))
                    cell.arcs.setdefault(pin.name, []).append(Arc(source, sense, rise, fall))
        cells[cell.name] = cell
    return cells
