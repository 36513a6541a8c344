# SPDX-License-Identifier: Apache-2.0
"""Data frames of records, with units."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pandas as pd

from lab.experiments import quantities, repeated


def frame_of(rows: list[dict], names: Collection[str] = (),
             quantity: Callable[[str], quantities.Quantity] = quantities.of) -> pd.DataFrame:
    """Rows as a data frame; the units of all columns of numbers but those that name a row are in its `attrs`, as `quantity` says
    by name. An interval has the unit of its figure.
    """
    frame = pd.DataFrame(rows)
    frame.attrs["units"] = {
        key: quantity(key.removesuffix(repeated.INTERVAL)).unit for key in frame.columns
        if key not in names and key not in ("exit_status", "seed", "repetitions") and pd.api.types.is_numeric_dtype(frame[key])
        and not pd.api.types.is_bool_dtype(frame[key])}
    return frame


def rows_of(frame: pd.DataFrame) -> list[dict]:
    """The rows again; what a row has not is None, and a whole number is one although others of its column are missing."""
    return [{key: None if value is pd.NA or value is pd.NaT else value for key, value in row.items()}
            for row in frame.convert_dtypes().to_dict("records")]
