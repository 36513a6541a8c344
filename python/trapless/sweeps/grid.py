# SPDX-License-Identifier: Apache-2.0
"""Reads the grid of a sweep, which says which points the sweep has. The grid's file looks like this:

    [fixed]
    command = "fio --name=x --filename=/data/random.bin --rw=randread --ioengine=mmap --numjobs={threads} --thread"
    data = "64M"

    [vary]
    kind = ["osdp", "hwdp"]
    threads = [1, 2]
    smu.pmshr_entries = [8, 32]

    [limits]
    simulated_seconds = 60
"""

from __future__ import annotations

import csv
import io
import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

from trapless.base.ui import UserError


@dataclass(frozen=True)
class Limits:
    """How long one point may take, in seconds."""

    simulated_seconds: float = 600.0
    """Simulated time of the guest, including its boot."""
    host_seconds: float = 3600.0


@dataclass(frozen=True)
class Grid:
    """The points of a sweep: the fixed values, and every combination of the varied ones. Names are those of
    docs/reference/sweeps.md."""

    fixed: dict[str, object] = field(default_factory=dict)
    vary: dict[str, list] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    folder: Path = Path()
    """Folder to which relative paths in the grid belong."""
    name: str = "sweep"


def load(file: Path) -> Grid:
    """Read the grid of a file. Raises UserError with one line if its form is wrong."""
    return of_table(read_toml(file), file.parent, file.stem, file)


def of_table(data: dict, folder: Path, name: str, where: Path | str) -> Grid:
    """Make the grid from a file's content; `where` is the file's name in error messages."""
    if odd := set(data) - {"fixed", "vary", "limits"}:
        raise UserError(f"{where}: {min(odd)}: should be in [fixed], [vary] or [limits]")
    for part in sorted(data):
        if not isinstance(data[part], dict):
            raise UserError(f"{where}: {part}: not a table of names and values")
    limits, known = dict(_flat(data.get("limits", {}))), {limit.name for limit in fields(Limits)}
    for limit, value in limits.items():
        if limit not in known:
            raise UserError(f"{where}: limits.{limit}: no such limit; the limits are {', '.join(sorted(known))}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise UserError(f"{where}: limits.{limit}: must be a positive number, not {value!r}")
    return Grid(dict(_flat(data.get("fixed", {}))), checked(where, dict(_flat(data.get("vary", {})))), Limits(**limits),
                folder, name)


def _flat(table: dict, before: str = "") -> Iterator[tuple[str, object]]:
    """Yield each value with its dotted name, no matter whether the file has the name in quotes or as tables."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def checked(file: Path | str, vary: dict) -> dict[str, list]:
    """Return `vary` if the values of each name are a list with at least one value. Otherwise raises UserError."""
    for name, values in vary.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"{file}: vary.{name}: not a list of values (put keys with dots in quotes)")
    return vary


def combinations(vary: dict[str, list]) -> list[dict[str, object]]:
    """Return every combination of the values. The values of the last name change fastest."""
    return [dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values())]


def read_toml(file: Path) -> dict:
    """Read a TOML file. Raises UserError with one line if it cannot be read or is not TOML."""
    try:
        return tomllib.loads(file.read_text())
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: {error}") from None


def title(values: dict[str, object]) -> str:
    """Return a title for the point with these values."""
    return ", ".join(f"{name}={text(value)}" for name, value in values.items())


def text(value: object) -> str:
    """Return a value as the text of a cell. A value that has a name is shown by its name."""
    if isinstance(value, list):
        return "+".join(str(entry.get("name", entry)) if isinstance(entry, dict) else str(entry) for entry in value)
    return str(value)


def csv_text(rows: list[dict]) -> str:
    """Return rows as CSV. A row may lack some columns."""
    written = io.StringIO()
    writer = csv.DictWriter(written, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()
