// SPDX-License-Identifier: Apache-2.0
// Draws each figure of a page from the JSON beside it, in the colours of the reader's scheme.
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");
// On a touch screen, a finger scrolls the page, not the figure.
const finger = matchMedia("(pointer: coarse)").matches;
const config = { responsive: true, displaylogo: false, displayModeBar: finger ? false : "hover" };
const colours = ["#3b76d4", "#d97421", "#2f9e62", "#c2425c", "#8a63c9", "#8c6d4f", "#3f97a9", "#8f8f25"];
let printing = false;

function theme() {
  const night = dark.matches && !printing;
  return { ink: night ? "#e4e4e4" : "#222222", grid: night ? "#444444" : "#dddddd" };
}

// Layout of all figures; in print they are as wide as a sheet.
function base() {
  return { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: theme().ink, size: 13 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, dragmode: finger ? false : "zoom", colorway: colours,
    modebar: { bgcolor: "rgba(0,0,0,0)" }, ...(printing ? { width: 660 } : {}) };
}

function axis(title, more) {
  const { grid } = theme();
  return { title: { text: title }, gridcolor: grid, zerolinecolor: grid, automargin: true, ...more };
}

function paperMarks(trace, colour, group) {
  const known = trace.paper.map((value, n) => [trace.x[n], value]).filter(([, value]) => value !== null);
  return {
    type: "scatter", mode: "markers", name: `${trace.name}, paper`, legendgroup: trace.name, offsetgroup: group,
    x: known.map(([x]) => x), y: known.map(([, value]) => value),
    marker: { symbol: "line-ew-open", size: 16, line: { width: 3, color: colour }, color: colour },
    hovertemplate: "%{x}: %{y:.4g}<extra>paper</extra>",
  };
}

// Traces and layout in plotly's format (figures.py), without colours.
function ready({ data, layout }) {
  const axes = Object.entries(layout).filter(([name]) => name.includes("axis")).map(([name, own]) => [name, { ...axis(), ...own }]);
  return [data, { ...base(), ...layout, ...Object.fromEntries(axes) }];
}

function draw(holder) {
  const figure = JSON.parse(document.getElementById(`${holder.id}-data`).textContent);
  return Plotly.react(holder, ...(figure.layout ? ready(figure) : described(figure)), config);
}

// Bars and lines as records describe them (plots.py).
function described(figure) {
  const { ink } = theme();
  const panels = [...new Set(figure.traces.map((trace) => trace.panel))];
  const names = [...new Set(figure.traces.map((trace) => trace.name))];
  const traces = [];
  for (const trace of figure.traces) {
    const panel = panels.indexOf(trace.panel) + 1;
    const colour = colours[names.indexOf(trace.name) % colours.length];
    const axes = panel > 1 ? { xaxis: "x", yaxis: `y${panel}` } : {};
    const shared = {
      name: trace.name, x: trace.x, y: trace.y, legendgroup: trace.name, showlegend: panel < 2, ...axes,
      // Plotly takes null for 0, but draws nothing for a word.
      error_y: trace.error
        ? { type: "data", array: trace.error.map((wide) => wide ?? "unknown"), thickness: 1, width: 3, color: ink } : undefined,
      hovertemplate: `%{x}: %{y:.4g} ${figure.ylabel}<extra>${trace.name}</extra>`,
    };
    if (figure.kind === "bars") {
      traces.push({ ...shared, type: "bar", marker: { color: colour }, offsetgroup: figure.stacked ? undefined : trace.name });
    } else {
      traces.push({ ...shared, type: "scatter", mode: figure.marks ? "lines+markers" : "lines", marker: { color: colour },
        line: { color: colour, width: figure.marks ? 2 : 1 } });
    }
    if (trace.paper && trace.paper.some((value) => value !== null)) {
      traces.push({ ...paperMarks(trace, figure.kind === "bars" ? ink : colour, trace.name), ...axes, showlegend: panel < 2 });
    }
  }
  const rows = Math.max(panels.length, 1);
  const layout = {
    ...base(), margin: { l: 50, r: 10, t: 10, b: 50 }, height: 300 + 140 * (rows - 1) + 90,
    barmode: figure.stacked ? "stack" : "group", scattermode: figure.kind === "bars" ? "group" : "overlay",
    xaxis: axis(figure.xlabel, figure.categories ? { type: "category", categoryorder: "array", categoryarray: figure.categories }
      : { type: figure.kind === "bars" ? "category" : figure.log ? "log" : "linear" }),
  };
  panels.forEach((panel, n) => {
    const gap = 0.04, height = (1 - gap * (rows - 1)) / rows, top = 1 - n * (height + gap);
    layout[n ? `yaxis${n + 1}` : "yaxis"] = axis(panel ? `${panel}` : figure.ylabel, { domain: [Math.max(top - height, 0), top] });
  });
  if (rows > 1) layout.xaxis.anchor = `y${rows}`;
  return [traces, layout];
}

const drawAll = () => Promise.all([...document.querySelectorAll(".figure")].map(draw));
dark.addEventListener("change", drawAll);
addEventListener("beforeprint", () => { printing = true; drawAll(); });
addEventListener("afterprint", () => {
  printing = false;
  drawAll().then(() => document.querySelectorAll(".figure").forEach((holder) => Plotly.Plots.resize(holder)));
});
drawAll().then(() => { document.documentElement.dataset.drawn = "yes"; });
