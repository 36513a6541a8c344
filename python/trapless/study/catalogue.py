# SPDX-License-Identifier: Apache-2.0
"""All studies, and their experiments by name.

A study is a folder of studies/ whose package defines `STUDY`. No list names it: a new folder is found by itself.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Generic, TypeVar

from trapless.base.paths import ROOT, STUDIES
from trapless.study.experiment import Experiment, Study

Value = TypeVar("Value")


@cache
def _found() -> dict[str, Study]:
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    names = [folder.parent.name for folder in STUDIES.glob("*/__init__.py")]
    found = {name: importlib.import_module(f"studies.{name}").STUDY for name in sorted(names)}
    return dict(sorted(found.items(), key=lambda item: item[1].place))


@cache
def _experiments() -> dict[str, Experiment]:
    return {name: entry for study in _found().values() for name, entry in study.experiments.items()}


class _Late(Mapping[str, Value], Generic[Value]):
    """A mapping that is made at its first use, because studies import the library, which imports this module."""

    def __init__(self, make: Callable[[], dict[str, Value]]) -> None:
        self._make = make

    def __getitem__(self, name: str) -> Value:
        return self._make()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make())

    def __len__(self) -> int:
        return len(self._make())


ALL: Mapping[str, Study] = _Late(_found)
"""Studies by the name of their folder, in the order of their `order`."""
EXPERIMENTS: Mapping[str, Experiment] = _Late(_experiments)
