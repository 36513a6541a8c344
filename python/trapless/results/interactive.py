# SPDX-License-Identifier: Apache-2.0
"""Converts a figure's description (plots.py) to a Plotly figure, for notebooks. On pages, site.js draws figures in the
browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLOURS = ("#3b76d4", "#d97421", "#2f9e62", "#c2425c", "#8a63c9", "#8c6d4f", "#3f97a9", "#8f8f25")
_GAP = 0.04
"""Gap between panels, as a fraction of the figure's height."""


def figure(described: dict) -> go.Figure:
    """Draw a figure from its description."""
    import plotly.graph_objects as go

    bars, panels = described["kind"] == "bars", list(dict.fromkeys(trace["panel"] for trace in described["traces"]))
    names, drawn = list(dict.fromkeys(trace["name"] for trace in described["traces"])), []
    for trace in described["traces"]:
        panel, colour = panels.index(trace["panel"]), COLOURS[names.index(trace["name"]) % len(COLOURS)]
        shared = {"name": trace["name"], "legendgroup": trace["name"], "showlegend": panel == 0 and len(names) > 1,
                  "yaxis": f"y{panel + 1}"}
        # Plotly takes null for 0, but draws nothing for a word.
        wide = trace["error"] and ["unknown" if one is None else one for one in trace["error"]]
        error = {"type": "data", "array": wide, "thickness": 1, "width": 3} if wide else None
        if bars:
            drawn.append(go.Bar(x=trace["x"], y=trace["y"], error_y=error, marker={"color": colour},
                                offsetgroup=None if described["stacked"] else trace["name"], **shared))
        else:
            drawn.append(go.Scatter(x=trace["x"], y=trace["y"], error_y=error, line={"color": colour},
                                    mode="lines+markers" if described["marks"] else "lines", **shared))
        if known := [(x, value) for x, value in zip(trace["x"], trace["paper"] or [], strict=bool(trace["paper"]))
                     if value is not None]:
            mark = {"symbol": "line-ew-open", "size": 16, "color": "black" if bars else colour, "line": {"width": 3}}
            drawn.append(go.Scatter(x=[x for x, _ in known], y=[value for _, value in known], mode="markers", marker=mark,
                                    offsetgroup=trace["name"], **{**shared, "name": f"{trace['name']}, paper"}))
    made = go.Figure(drawn, {"template": "plotly_white", "barmode": "stack" if described["stacked"] else "group",
                             "scattermode": "group" if bars else "overlay", "height": 350 + 140 * max(len(panels) - 1, 0),
                             "margin": {"l": 60, "r": 20, "t": 30, "b": 60}})
    words = described["categories"]
    made.update_xaxes(title_text=described["xlabel"], **(
        {"type": "log" if described["log"] else "linear"} if words is None else
        {"type": "category", "categoryorder": "array", "categoryarray": words}))
    height = (1 - _GAP * (len(panels) - 1)) / max(len(panels), 1)
    for number, panel in enumerate(panels):
        top = 1 - number * (height + _GAP)
        axis = {"title": {"text": panel or described["ylabel"]}, "domain": [max(top - height, 0), top]}
        made.layout[f"yaxis{number + 1}"] = axis
    if len(panels) > 1:
        made.update_xaxes(anchor=f"y{len(panels)}")
    return made
