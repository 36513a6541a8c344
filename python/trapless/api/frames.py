# SPDX-License-Identifier: Apache-2.0
"""Converts records to data frames with units, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

import pandas as pd

from trapless.results import columns
from trapless.results.columns import Column


def frame_of(rows: list[dict], names: Collection[str] = (),
             known: Mapping[str, Column] = MappingProxyType({})) -> pd.DataFrame:
    """Return rows as a data frame. `attrs` has `units`, `directions` and `meanings` of all columns of numbers except `names`, the
    columns that name a row. `known` gives them by key. An interval has the unit of its figure. A column that is not in `known`
    has the unit 1.
    """
    frame = pd.DataFrame(rows)
    typed = {key: columns.of(known, key) for key in frame.columns
             if key not in names and key not in ("exit_status", "seed",
                                                 "repetitions") and pd.api.types.is_numeric_dtype(frame[key])
             and not pd.api.types.is_bool_dtype(frame[key])}
    frame.attrs |= {"units": {key: column.unit for key, column in typed.items()},
                    "directions": {key: column.direction for key, column in typed.items()},
                    "meanings": {key: column.meaning for key, column in typed.items()}}
    return frame


def rows_of(frame: pd.DataFrame) -> list[dict]:
    """Return the frame's rows as dictionaries. A missing value is None. A whole number stays an `int`, even if other values of
    its column are missing."""
    return [{key: None if value is pd.NA or value is pd.NaT else value for key, value in row.items()}
            for row in frame.convert_dtypes().to_dict("records")]
