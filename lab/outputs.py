# SPDX-License-Identifier: Apache-2.0
"""Folders and files that commands leave."""

from __future__ import annotations

import tempfile
from pathlib import Path

from lab.cache import disk_error


def output_folder(out: Path) -> Path:
    """Make the output folder, and be sure that one can write to it before hours are spent."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out) as probe:
            probe.write(b"x")
            probe.flush()
    except OSError as error:
        raise disk_error(error, out) from error
    return out


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is either whole or not there."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text)
        partial.replace(path)
    except OSError as error:
        raise disk_error(error, path) from error
