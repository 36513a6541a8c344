# SPDX-License-Identifier: Apache-2.0
"""Results as Parquet: typed columns, whose fields have heading, unit, direction and meaning as metadata. Needs pyarrow, which is
not among the packages that everybody gets."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from trapless.base.outputs import whole
from trapless.base.ui import UserError
from trapless.results import columns as typed
from trapless.results.columns import Column

if TYPE_CHECKING:
    import pyarrow

FILE = "results.parquet"
"""Name of the file, which is beside results.json."""
_SAID = ("heading", "unit", "direction", "meaning")


def arrow(what: str) -> ModuleType:
    """Return the package pyarrow, which `what` needs. If it is missing, UserError says how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise UserError(f"{what} needs pyarrow, which is not installed: `{sys.executable} -m pip install pyarrow` installs "
                        "it") from None
    return pyarrow


def write(path: Path, rows: list[dict], known: Mapping[str, Column], names: Collection[str] = ()) -> None:
    """Write rows: a column for each key that has texts, numbers or truths in some row. Lists and tables are left out. `known` has
    the columns by key; keys in `names` say what a row is, and have no unit."""
    pa = arrow("Parquet")
    import pyarrow.parquet

    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if _plain([row.get(key) for row in rows])]
    fields, arrays = [], []
    for key in keys:
        values = [row.get(key) for row in rows]
        kind = _kind(pa, values)
        if kind == pa.string():
            values = [value if value is None else str(value) for value in values]
        elif kind == pa.float64():
            values = [value if value is None else float(value) for value in values]
        word = key in names or kind in (pa.string(), pa.bool_()) and not typed.declared(known, key)
        column = typed.word(key, key, "") if word else typed.of(known, key)
        said = {name: getattr(column, name) or "" for name in _SAID}
        fields.append(pa.field(key, kind, metadata=said))
        arrays.append(pa.array(values, type=kind))
    with whole(path) as partial:
        pyarrow.parquet.write_table(pa.table(arrays, schema=pa.schema(fields)), partial, compression="zstd")


def read(path: Path) -> tuple[pyarrow.Table, dict[str, Column]]:
    """Return the table of a file, and the columns that its fields declare, by key. Fields without a unit are words. UserError if
    the file does not exist or is not a Parquet file."""
    pa = arrow(str(path))
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except FileNotFoundError:
        raise UserError(f"{path}: No such file or directory") from None
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: not a Parquet file: {str(error).splitlines()[0]}") from None
    known = {}
    for field in table.schema:
        said = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        if said.get("unit"):
            known[field.name] = Column(field.name, said.get("heading", field.name), said.get("meaning", ""), said["unit"],
                                       said.get("direction") or None, "g")
    return table, known


def _plain(values: list) -> bool:
    """Whether a column has a value, and no lists or tables."""
    there = [value for value in values if value is not None]
    return bool(there) and all(isinstance(value, str | int | float) for value in there)


def _kind(pa: ModuleType, values: list) -> pyarrow.DataType:
    """Return the narrowest type that all values have: truths, whole numbers, numbers or texts."""
    there = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in there):
        return pa.bool_()
    if any(isinstance(value, bool | str) for value in there):
        return pa.string()
    return pa.int64() if all(isinstance(value, int) and abs(value) < 1 << 63 for value in there) else pa.float64()
