# SPDX-License-Identifier: Apache-2.0
"""Loads the paging simulator's log of faults as a data frame."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pandas as pd

from trapless.api.error import one_line
from trapless.base.ui import UserError
from trapless.results import parquet

_TYPES = {"time_ns": "int64", "process": "category", "page": "int64", "kind": "category", "origin": "category",
          "waited_ns": "int64", "resumed_ns": "int64", "evicted_process": "category", "evicted_page": "Int64", "turn": "int64"}
"""Types of the log's columns, in their order (docs/reference/pagesim-report.md)."""
_MEANINGS = {"time_ns": "When the access was made, from the start of the run.",
             "waited_ns": "From the access until its page was in memory.",
             "resumed_ns": "From the access until the process went on.",
             "turn": "Which turn of the process on the processor it was."}


@one_line
def faults(path: str | Path) -> pd.DataFrame:
    """Load a log of faults that `trapless-pagesim run --faults` wrote (.csv, or .csv.zst, which needs pyarrow). It has a row
    for each access that waited for its page.

    `attrs` has `units`, `directions` and `meanings` of the columns of numbers. `frame.to_parquet(...)` writes it as Parquet.
    Raises Error if the file does not exist or is not such a log.
    """
    path = Path(path)
    try:
        with _opened(path) as file:
            frame = pd.read_csv(file, dtype=_TYPES, keep_default_na=False, na_values={"evicted_page": [""]})
    except FileNotFoundError:
        raise UserError(f"{path}: No such file or directory") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a log of faults: {str(error).splitlines()[0]}") from None
    if list(frame.columns) != list(_TYPES):
        raise UserError(f"{path}: not a log of faults: its first line must be {','.join(_TYPES)}")
    names = frame["evicted_process"]
    frame["evicted_process"] = names.cat.remove_categories([name for name in names.cat.categories if name == ""])
    units = {name: "ns" for name in _MEANINGS if name.endswith("_ns")} | {"turn": "turns"}
    lower = {name: "lower is better" if name in ("waited_ns", "resumed_ns") else None for name in units}
    frame.attrs |= {"units": units, "directions": lower, "meanings": dict(_MEANINGS)}
    return frame


def _opened(path: Path) -> BinaryIO:
    """Open the text of a log."""
    if path.suffix != ".zst":
        return open(path, "rb")
    return parquet.arrow(str(path)).input_stream(str(path), compression="zstd")
