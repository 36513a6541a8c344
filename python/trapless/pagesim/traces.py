# SPDX-License-Identifier: Apache-2.0
"""Finds recorded traces and reads their summaries, which have the size of memory by the paper's rule."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trapless.base.cache import CACHE, content_key
from trapless.base.outputs import write_whole
from trapless.base.ui import UserError

FOLDER = CACHE / "traces"
FOLDER_OF_QUICK = CACHE / "traces-quick"
"""Folder of short traces for checks."""
RECORD = "./trapless dev workloads"
"""The command that records traces."""


class MissingTraces(UserError):
    """The traces of an experiment must be recorded first."""


@dataclass(frozen=True)
class Trace:
    """A recorded trace and its summary."""

    name: str
    path: Path
    accesses: int
    pages: int
    """Footprint: number of different pages of 4 KiB that the program accessed."""
    working_set: int
    """The fewest pages that together get 99 % of the accesses that miss the processor's cache. This is our reading of the paper's
    rule (docs/decisions/053-working-set.md)."""
    working_set_lru: int
    """Another reading of the rule: the smallest memory with LRU, in pages, in which 99 % of these accesses hit. First accesses to
    pages are not counted."""


def find(names: Iterable[str], folder: Path | None = None) -> dict[str, Trace]:
    """Return the traces of these programs. Raises MissingTraces, which names all missing ones in one line."""
    folder = folder or FOLDER
    names = list(dict.fromkeys(names))
    missing = absent(names, folder)
    if missing:
        raise MissingTraces(f"no trace of {', '.join(missing)} in {folder}: `{RECORD} {' '.join(missing)}` records "
                            f"{'it' if len(missing) == 1 else 'them'}")
    return {name: _read(name, folder / f"{name}.trace") for name in names}


def absent(names: Iterable[str], folder: Path) -> list[str]:
    """Return the names of the programs that have no trace in this folder."""
    return [name for name in dict.fromkeys(names) if not (folder / f"{name}.trace").is_file()]


def _read(name: str, path: Path) -> Trace:
    summary = path.with_name(path.name + ".json")
    try:
        data = json.loads(summary.read_text())
        sizes = data["working_set_pages"]
        return Trace(name, path.absolute(), int(data["accesses"]), int(data["footprint_pages"]), int(data["hottest_pages"]),
                     int(sizes["cache_filtered"]))
    except OSError as error:
        raise UserError(f"{summary}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{summary}: not the summary of a trace ({error!r}); record the trace again") from None


def key(path: Path) -> str:
    """Return a key of all that the simulator reads of a trace: its content and its summary."""
    summary = path.with_name(path.name + ".json")
    return content_key(_file_key(path), summary.read_bytes() if summary.is_file() else b"")


def _file_key(path: Path) -> str:
    """Return a key of a large file's content. It is kept in the cache until the size or time of the file changes."""
    try:
        stat = path.stat()
        known = CACHE / "pagesim" / "traces" / content_key(str(path.resolve()), str(stat.st_size), str(stat.st_mtime_ns))
        # A crash of the host may have emptied this file. An empty file would match every trace.
        if known.is_file() and (found := known.read_text()):
            return found
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        known.parent.mkdir(parents=True, exist_ok=True)
        write_whole(known, found)
        return found
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
