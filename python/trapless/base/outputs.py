# SPDX-License-Identifier: Apache-2.0
"""Folders and files that commands write."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trapless.base.cache import MIB, check_room, disk_error

_RESULTS = 16 * MIB
"""Upper bound for the size of a report with its plots, in bytes."""


def output_folder(out: Path) -> Path:
    """Make the output folder. Raises an error now if it is not writable, not after hours of measuring."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out) as probe:
            probe.write(b"x")
            probe.flush()
    except OSError as error:
        raise disk_error(error, out) from error
    check_room(_RESULTS, out, "results")
    return out


def output_file(file: Path) -> Path:
    """Check that this file can be written, before hours are spent. Removes the file of an earlier command."""
    try:
        with open(file, "ab"):
            pass
        if file.is_file():
            file.resolve().unlink()
    except OSError as error:
        raise disk_error(error, file) from error
    return file


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary name for a file. When the block ends without error, the file is renamed to `path`, so `path` is either
    complete or absent. If several processes write the same file, the last one to end wins."""
    partial = path.with_name(f".{path.stem}-{secrets.token_hex(4)}.partial{path.suffix}")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise disk_error(error, path) from error
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is either complete or absent."""
    with whole(path) as partial:
        partial.write_text(text)
