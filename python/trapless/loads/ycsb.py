# SPDX-License-Identifier: Apache-2.0
"""YCSB's core workloads on RocksDB (sources in ycsb_src/), and databases that are loaded for them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from trapless.guest.images import ext4, loaded
from trapless.guest.programs import cross

WORKLOADS = ("A", "B", "C", "D", "E", "F")
PACKAGES = ("rocksdb-tools",)
"""Packages of the guest's root: RocksDB itself, and its db_bench."""
FOLDER = "/data/db"
_SOURCES = ("ycsb.c", "store.c", "records.c", "draw.c", "latency.c")
_HEADER_BYTES = 16


@dataclass(frozen=True)
class Database:
    """Records that are loaded once."""

    records: int
    fields: int = 10
    """Fields of a record. The number is YCSB's default."""
    field_bytes: int = 408
    """Ten such fields with a header make 4 KiB, the papers' size of a record (ISCA20, section VI)."""

    @property
    def record_bytes(self) -> int:
        """Bytes of a record's value."""
        return _HEADER_BYTES + self.fields * self.field_bytes

    @property
    def bytes(self) -> int:
        """Bytes of all values."""
        return self.records * self.record_bytes

    def options(self) -> list[str]:
        """Return the program's options that say where and what the records are."""
        return ["-d", FOLDER, "-n", str(self.records), "-f", str(self.fields), "-b", str(self.field_bytes)]

    def image(self) -> Path:
        """Return the data disk with this database. Its tables are compacted, and it has room for as much data again."""
        return loaded.image(loaded.Loading(
            title=f"{self.records} records of {self.record_bytes} bytes", inputs=(program(),), packages=PACKAGES,
            command=shlex.join(["./ycsb", "load", *self.options(), "-t", "4"]), size=3 * self.bytes + 256 * ext4.MIB,
            used=2 * self.bytes + 64 * ext4.MIB))


@dataclass(frozen=True)
class Load:
    """Operations on a database."""

    database: Database
    workload: str = "C"
    operations: int = 10_000
    """Measured operations of all threads together."""
    warm: int = 0
    """Operations of the warm-up before them."""
    threads: int = 1
    seed: int = 1

    def argv(self) -> list[str]:
        """Return the program's command line, in the job's folder."""
        return ["./ycsb", "run", *self.database.options(), "-w", self.workload, "-o", str(self.operations), "-W", str(self.warm),
                "-t", str(self.threads), "-s", str(self.seed)]


def program() -> Path:
    """Return the driver, compiled for the guest."""
    folder = Path(__file__).with_name("ycsb_src")
    return cross.compile_program("ycsb", [folder / name for name in _SOURCES], ("-lrocksdb", "-lm"), ("librocksdb-dev",))
