# SPDX-License-Identifier: Apache-2.0
"""Folders and files that commands leave."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trapless.base.cache import MIB, check_room, disk_error

_RESULTS = 16 * MIB
"""A report with its plots takes less."""


def output_folder(out: Path) -> Path:
    """Make the output folder, and be sure that one can write to it before hours are spent."""
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
    """Be sure that one can write this file before hours are spent; what an earlier command left there is removed."""
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
    """A name to write a file under that is to become `path` when the block has ended well: whole, or not there. Others may write
    the same file meanwhile; the last to end has it."""
    partial = path.with_name(f".{path.stem}-{secrets.token_hex(4)}.partial{path.suffix}")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise disk_error(error, path) from error
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is either whole or not there."""
    with whole(path) as partial:
        partial.write_text(text)
