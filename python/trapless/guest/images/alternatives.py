# SPDX-License-Identifier: Apache-2.0
"""Debian's alternatives. Maintainer scripts never run here, so the links that they would make (`libblas.so.3`, `awk`, `java`) are
made from the text of the scripts.

This module understands the commands `update-alternatives --install LINK NAME PATH PRIORITY [--slave LINK NAME PATH]...` of a
`postinst`, with variables that the script sets to plain words, and in loops over plain words. It reports commands that it does
not understand.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PLACE = Path("etc/alternatives")
_ASSIGNED = re.compile(r"""(?:^|[;\s])(\w+)=("[^"]*"|'[^']*'|[^\s;"'`]*)""")
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\s+([^;]*?)\s*(?:;|$)")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


@dataclass(frozen=True)
class Alternative:
    """A link that a package offers, with the links that go along with it."""

    name: str
    link: str
    path: str
    priority: int
    slaves: tuple[tuple[str, str, str], ...] = ()
    """Link, name and path of each additional link."""


def read(script: str) -> tuple[list[Alternative], list[str]]:
    """Return the alternatives that a maintainer script installs, and the commands that are not understood."""
    found, odd, known, loops = [], [], {}, {}
    for line in script.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("#"):
            continue
        if loop := _LOOP.search(line):
            loops[loop[1]] = _filled(loop[2], known).split()
        begin = line.find("update-alternatives")
        if "--install" not in line[max(begin, 0):] or begin < 0:
            known |= {name: _filled(value.strip("\"'"), known) for name, value in _ASSIGNED.findall(line)}
            continue
        for values in _combinations(line, loops):
            command = _filled(line[begin:], known | values)
            try:
                found.append(_of_words(shlex.split(command, comments=True)))
            except ValueError:
                odd.append(line.strip())
    return found, list(dict.fromkeys(odd))


def _filled(text: str, known: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda match: known.get(match[1] or match[2], match[0]), text)


def _combinations(line: str, loops: dict[str, list[str]]) -> Iterator[dict[str, str]]:
    """Yield all combinations of values of the loop variables that the line uses."""
    names = [first or second for first, second in _VARIABLE.findall(line) if (first or second) in loops]
    if not names:
        yield {}
    for name in dict.fromkeys(names):
        yield from ({name: word} for word in loops[name])


def _of_words(words: list[str]) -> Alternative:
    """Return the alternative that these words describe. ValueError if they do not have this form."""
    words = [word for word in words if word not in ("--quiet", "--force", "||", "&&", ";", "true", "then", ">/dev/null")]
    at = words.index("--install")
    link, name, path, priority, *rest = [word.rstrip(";") for word in words[at + 1:]]
    slaves = []
    while rest:
        option, *rest = rest
        if option != "--slave" or len(rest) < 3:
            raise ValueError(option)
        slaves.append((rest[0], rest[1], rest[2]))
        rest = rest[3:]
    if any(sign in word for sign in "$`(" for word in (link, name, path, *(part for slave in slaves for part in slave))):
        raise ValueError(link)
    return Alternative(name, link, path, int(priority), tuple(slaves))


def install(tree: Path, offered: list[Alternative]) -> None:
    """For each name, make the links of the alternative with the highest priority. A file of a package is not replaced by a
    link."""
    best: dict[str, Alternative] = {}
    for one in offered:
        present = os.path.lexists(_in(tree, one.path))
        if present and (one.name not in best or one.priority > best[one.name].priority):
            best[one.name] = one
    for one in best.values():
        for link, name, path in ((one.link, one.name, one.path), *one.slaves):
            place, middle = _in(tree, link), tree / PLACE / name
            if os.path.lexists(place) or not os.path.lexists(_in(tree, path)):
                continue
            for file, target in ((middle, path), (place, f"/{PLACE / name}")):
                file.parent.mkdir(parents=True, exist_ok=True)
                if not os.path.lexists(file):
                    file.symlink_to(target)


def _in(tree: Path, path: str) -> Path:
    """Return where a path of the guest is in the unpacked tree. /bin, /sbin and /lib are links to folders below /usr."""
    parts = Path(path.lstrip("/")).parts
    return tree.joinpath("usr", *parts) if parts and parts[0] in ("bin", "sbin", "lib") else tree.joinpath(*parts)
