# SPDX-License-Identifier: Apache-2.0
"""README's figure: the mean time of a cold read, by kind, in a light and a dark version."""

from __future__ import annotations

from pathlib import Path

from trapless.results import plots

NAMES = {"ideal": "in memory already\n(the limit)", "osdp": "page fault\n(Linux 6.12)", "hwdp": "miss in hardware\n(Trapless)"}
THEMES = {"light": {"text": "#1f2328", "device": "#9aa4b2", "rest": "#0969da"},
          "dark": {"text": "#e6edf3", "device": "#6e7681", "rest": "#58a6ff"}}


def draw(records: list[dict], folder: Path) -> list[Path]:
    """Write demo-light.svg and demo-dark.svg to a folder, from the demo's records: `kind`, `mean_us`, `device_us`."""
    import matplotlib
    from matplotlib.figure import Figure

    made = []
    for theme, colors in THEMES.items():
        look = {"text.color": colors["text"], "axes.labelcolor": colors["text"], "xtick.color": colors["text"],
                "ytick.color": colors["text"], "axes.edgecolor": colors["text"], "font.size": 11, "svg.fonttype": "none"}
        with matplotlib.rc_context(look):
            figure = Figure((7.6, 2.5), layout="constrained")
            figure.patch.set_alpha(0)
            axes = figure.subplots()
            axes.patch.set_alpha(0)
            for place, record in enumerate(reversed(records)):
                device = record["device_us"] or 0.0
                axes.barh(place, device, 0.6, color=colors["device"], label="SSD" if not place else None)
                axes.barh(place, record["mean_us"] - device, 0.6, device, color=colors["rest"],
                          label="program and kernel" if not place else None)
                axes.text(record["mean_us"] + 3, place, f"{record['mean_us']:.0f} us", va="center")
            axes.set_yticks(range(len(records)), [NAMES[record["kind"]] for record in reversed(records)])
            axes.set(xlabel="mean time of a 4 KiB read, us", xlim=(0, 1.12 * max(record["mean_us"] for record in records)))
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(loc="lower right", frameon=False)
            path = folder / f"demo-{theme}.svg"
            plots.save(figure, path)
            made.append(path)
    return made
