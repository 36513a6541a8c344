# SPDX-License-Identifier: Apache-2.0
"""The packages ("rooms") of the library import only packages below them, and modules have no import cycles
(docs/decisions/093-rooms.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from trapless.base.paths import ROOT

ROOMS = ("base", "guest", "results", "profile", "pagesim", "loads", "sweeps", "study", "api", "cli", "studies", "dev")
"""Each package may import those before it."""
BELOW = {"rtl": {"base"}, "linux": set()}
"""Folders below the library, and the packages that they may use."""
ABOVE = {"trapless": "api"}
"""The package itself re-exports the names of api."""


def room(module: str) -> str | None:
    """Return the package of a module; None for a module of others."""
    first, _, rest = module.partition(".")
    if first == "trapless":
        return rest.partition(".")[0] if rest.partition(".")[0] in ROOMS else ABOVE[first]
    return first if first in ("studies", "dev") else None


def modules() -> Iterator[tuple[str, Path]]:
    """Yield all modules with their files."""
    for base, prefix in ((ROOT / "python" / "trapless", "trapless"), (ROOT / "studies", "studies"), (ROOT / "dev", "dev")):
        for path in sorted(base.rglob("*.py")):
            if "tests" not in path.parts and "programs" not in path.relative_to(base).parts[1:-1]:
                parts = path.relative_to(base).with_suffix("").parts
                yield ".".join([prefix, *(part for part in parts if part != "__init__")]), path


def imports(path: Path, known: set[str], late: bool = True) -> set[str]:
    """Return our modules that a file imports. Without `late`, only the imports that run when the file itself is imported."""
    tree = ast.parse(path.read_text())
    found = set()
    for node in ast.walk(tree) if late else tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in known else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if room(name)}


@pytest.fixture(scope="module")
def files() -> dict[str, Path]:
    return dict(modules())


def test_rooms_import_what_is_below(files: dict[str, Path]) -> None:
    upward = [f"{module} imports {other}" for module, path in files.items() for other in imports(path, set(files))
              if ROOMS.index(room(other)) > ROOMS.index(room(module))]
    assert not upward, "\n".join(upward)


def test_what_lies_below_uses_the_base_alone() -> None:
    upward = []
    for folder, may in BELOW.items():
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and (path.suffix == ".py" or path.open("rb").readline().startswith(b"#!/usr/bin/env python3")):
                upward += [f"{path.relative_to(ROOT)} imports {other}" for other in imports(path, set())
                           if room(other) not in may]
    assert not upward, "\n".join(upward)


def test_nobody_runs_a_script_by_its_path(files: dict[str, Path]) -> None:
    ways = ("runpy", "spec_from_file_location")
    assert not [f"{module}: {way}" for module, path in files.items() for way in ways if way in path.read_text()]


def test_no_circle_of_files(files: dict[str, Path]) -> None:
    arrows = {module: imports(path, set(files), late=False) & set(files) - {module} for module, path in files.items()}
    try:
        list(TopologicalSorter(arrows).static_order())
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_an_upward_arrow_is_seen(tmp_path: Path) -> None:
    (tmp_path / "ui.py").write_text("from trapless.guest import build\n")
    [found] = imports(tmp_path / "ui.py", {"trapless.guest.build"})
    assert found == "trapless.guest.build" and ROOMS.index(room(found)) > ROOMS.index(room("trapless.base.ui"))
