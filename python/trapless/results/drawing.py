# SPDX-License-Identifier: Apache-2.0
"""Figures other than bars and lines, for self-contained pages. They are in Plotly's format, and site.js draws them.

A figure is an empty element with an id. After it comes an element whose id ends in `-data`, with the figure's JSON: `data` and
`layout`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from plotly.offline import get_plotlyjs

_FOLDER = Path(__file__).parent
_ROW, _FRAME = 26, 70
"""Height in pixels: of a bar's row, and of the space above and below all rows."""


@dataclass(frozen=True)
class Figure:
    """A figure of a page."""

    id: str
    label: str
    """Description for people who cannot see the figure."""
    traces: list[dict]
    """Traces in Plotly's format."""
    layout: dict
    height: int
    """Height in pixels."""

    def __html__(self) -> str:
        """Return the element and its data. Plotly checks the traces."""
        usual = {"height": self.height, "margin": {"l": 8, "r": 8, "t": 8, "b": 8}, "template": {}}
        shown = go.Figure(self.traces, usual | self.layout).to_plotly_json()
        return (Markup('<div class="figure" id="{}" role="img" aria-label="{}" style="min-height: {}px"></div>\n'
                       '<script type="application/json" id="{}-data">').format(self.id, self.label, self.height, self.id)
                + htmlsafe_json_dumps(shown) + Markup("</script>"))


def style() -> Markup:
    """Return the style of the pages."""
    return Markup((_FOLDER / "site.css").read_text())


def scripts() -> Markup:
    """Return the scripts that draw the figures. They must come once, after all figures."""
    return Markup(f"<script>{get_plotlyjs()}</script>\n<script>{(_FOLDER / 'site.js').read_text()}</script>")


def timeline(name: str, label: str, steps: list[tuple[str, float]], unit: str = "us") -> Figure:
    """Draw steps that follow each other, each with its time, from top to bottom."""
    begins = [sum(time for _, time in steps[:number]) for number in range(len(steps))]
    bars = {"type": "bar", "orientation": "h", "y": [step for step, _ in steps], "x": [time for _, time in steps],
            "base": begins, "text": [f"{time:.3g} {unit}" for _, time in steps], "textposition": "auto", "cliponaxis": False,
            "hovertemplate": f"%{{y}}: %{{x:.4g}} {unit}, from %{{base:.4g}} on<extra></extra>"}
    layout = {"yaxis": {"autorange": "reversed"}, "showlegend": False,
              "xaxis": {"title": unit, "range": [0, 1.25 * sum(time for _, time in steps)]}}
    return Figure(name, label, [bars], layout, _ROW * len(steps) + _FRAME)


def boxes(name: str, label: str, rows: list[dict], unit: str = "us") -> Figure:
    """Draw for each row's `name` a box from `p25` to `p75` with a line at `p50`, and whiskers from `p1` to `p99`, on a
    logarithmic axis."""
    keys = {"lowerfence": "p1", "q1": "p25", "median": "p50", "q3": "p75", "upperfence": "p99"}
    box = {"type": "box", "orientation": "h", "y": [row["name"] for row in rows],
           **{part: [row[key] for row in rows] for part, key in keys.items()}}
    layout = {"yaxis": {"autorange": "reversed"}, "xaxis": {"type": "log", "title": unit}, "showlegend": False}
    return Figure(name, label, [box], layout, _ROW * len(rows) + _FRAME)


def curves(name: str, label: str, x: list[float], panels: list[tuple[str, dict[str, list]]], xlabel: str) -> Figure:
    """Draw curves over x, in which each value holds until the next one. Each panel has the name of its axis and its curves; the
    first panel is on top."""
    share, traces = 1 / len(panels), []
    layout = {"xaxis": {"title": xlabel, "anchor": f"y{len(panels)}"}, "hovermode": "x unified"}
    for number, (title, lines) in enumerate(panels, 1):
        top = 1 - (number - 1) * share
        bottom = top - share * (1 if number == len(panels) else 0.9)
        layout[f"yaxis{number}"] = {"title": title, "domain": [bottom, top], "rangemode": "tozero"}
        traces += [{"type": "scatter", "mode": "lines", "name": line, "x": x, "y": values, "yaxis": f"y{number}",
                    "line": {"shape": "hv"}} for line, values in lines.items()]
    return Figure(name, label, traces, layout, 60 + 240 * len(panels))


def stack(name: str, label: str, groups: list[str], parts: dict[str, list[float | None]], unit: str = "us") -> Figure:
    """Draw a bar for each group, of parts on top of each other."""
    bars = [{"type": "bar", "orientation": "h", "name": part, "y": groups, "x": values} for part, values in parts.items()]
    layout = {"barmode": "relative", "yaxis": {"autorange": "reversed"}, "xaxis": {"title": unit}}
    return Figure(name, label, bars, layout, 2 * _ROW * len(groups) + 2 * _FRAME)
