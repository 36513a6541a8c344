# SPDX-License-Identifier: Apache-2.0
"""Flame graphs: draws folded stacks (`a;b;c COUNT`, one per line) as a self-contained SVG. Width shows cycles, depth shows
calls."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

_WIDTH, _ROW, _TOP, _CHAR = 1200, 17, 40, 6.6
_NARROWEST = 0.3
"""In pixels. Narrower frames are left out, with everything that they called."""


@dataclass
class Frame:
    """A function, as called from its parent."""

    name: str
    total: int = 0
    """Sum for the function and everything that it called."""
    callees: dict[str, Frame] = field(default_factory=dict)


def tree(lines: Iterable[str], without: frozenset[str] = frozenset()) -> Frame:
    """Make the tree of calls from folded stacks. Stacks with a frame named in `without` are left out."""
    root = Frame("all")
    for line in lines:
        path, _, count = line.rstrip("\n").rpartition(" ")
        names = path.split(";")
        if not without.isdisjoint(names):
            continue
        frame, spent = root, int(count)
        root.total += spent
        for name in names:
            frame = frame.callees.setdefault(name, Frame(name))
            frame.total += spent
    return root


def svg(root: Frame, title: str, unit: str = "cycles") -> str:
    """Draw the graph as SVG. A viewer shows each frame's title under the pointer: its name, its sum and its share."""
    drawn: list[str] = []
    deepest = 0

    def draw(frame: Frame, x: float, depth: int) -> None:
        nonlocal deepest
        width = frame.total * _WIDTH / root.total
        if width < _NARROWEST:
            return
        deepest = max(deepest, depth)
        y = _TOP + depth * _ROW
        label = frame.name if len(frame.name) * _CHAR < width - 4 else frame.name[:max(0, int((width - 4) / _CHAR) - 2)]
        text = (f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(label)}{"" if label == frame.name else ".."}</text>'
                if len(label) > 1 else "")
        hover = f"{escape(frame.name)}: {frame.total:,} {unit}, {100 * frame.total / root.total:.2f} %"
        box = f'x="{x:.1f}" y="{y}" width="{max(width - 0.3, 0.2):.1f}" height="{_ROW - 1}"'
        drawn.append(f'<g><title>{hover}</title><rect {box} fill="{_colour(frame.name)}"/>{text}</g>')
        for callee in sorted(frame.callees.values(), key=lambda callee: callee.name):
            draw(callee, x, depth + 1)
            x += callee.total * _WIDTH / root.total

    if root.total:
        draw(root, 0.0, 0)
    height = _TOP + (deepest + 1) * _ROW + 10
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'font-family="monospace" font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fbfaf7"/>',
        f'<text x="{_WIDTH / 2}" y="24" text-anchor="middle" font-size="16">{escape(title)}</text>',
        *drawn, "</svg>", ""])


def _colour(name: str) -> str:
    """Return a warm colour that depends on the name, or a grey blue if the name is not a function's."""
    mixed = zlib.crc32(name.encode())
    if name.startswith("["):
        return f"hsl(210 {20 + mixed % 20}% {75 + mixed // 32 % 10}%)"
    return f"hsl({10 + mixed % 45} {70 + mixed // 64 % 25}% {62 + mixed // 4096 % 14}%)"
