# SPDX-License-Identifier: Apache-2.0
"""RocksDB's own db_bench, as Debian packages it, on mapped tables; and databases that are loaded for it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from trapless.base.ui import UserError
from trapless.guest.images import ext4, loaded

PACKAGES = ("rocksdb-tools",)
FOLDER = "/data/db"
_KEY_BYTES = 16
_RESULT = re.compile(r"^readrandom +: +(?P<us>[\d.]+) micros/op (?P<ops_per_second>\d+) ops/sec .*? (?P<ops>\d+) operations;"
                     r".*\((?P<found>\d+) of (?P<asked>\d+) found\)", re.MULTILINE)


@dataclass(frozen=True)
class Database:
    """Records that are loaded once, in the order of their keys."""

    records: int
    record_bytes: int = 4096
    """Bytes of a key with its value (ISCA20, section VI)."""

    @property
    def bytes(self) -> int:
        """Bytes of all records."""
        return self.records * self.record_bytes

    def options(self) -> list[str]:
        """Return RocksDB's options, as in the YCSB driver: tables are mapped, not compressed, and have Bloom filters; there is no
        block cache."""
        return [f"--db={FOLDER}", f"--num={self.records}", f"--key_size={_KEY_BYTES}",
                f"--value_size={self.record_bytes - _KEY_BYTES}", "--compression_type=none", "--bloom_bits=10", "--cache_size=0",
                "--mmap_read=1"]

    def image(self) -> Path:
        """The data disk with this database."""
        return loaded.image(loaded.Loading(
            title=f"{self.records} records of {self.record_bytes} bytes by db_bench", packages=PACKAGES,
            command=shlex.join(["db_bench", "--benchmarks=fillseq,compact", "--disable_wal=1", *self.options()]),
            size=2 * self.bytes + 256 * ext4.MIB, used=2 * self.bytes + 64 * ext4.MIB))


@dataclass(frozen=True)
class Load:
    """Random reads of records, all with the same distribution. The same number of reads before them is the warm-up. RocksDB
    checks every block that it reads."""

    database: Database
    operations: int = 10_000
    """Measured operations of all threads together."""
    threads: int = 1
    seed: int = 1

    def argv(self) -> list[str]:
        """Return the command line."""
        return ["db_bench", "--benchmarks=readrandom[W1-X1]", *self.database.options(), "--use_existing_db=1", "--readonly=1",
                f"--threads={self.threads}", f"--reads={self.operations // self.threads}", f"--seed={self.seed}"]


def figures(text: str) -> dict:
    """Return the results of db_bench's last readrandom: operations, operations per second, mean time of an operation in us.
    UserError if a record was not found, or if there are no results."""
    found = list(_RESULT.finditer(text))
    if not found:
        raise UserError(f"db_bench printed no result of readrandom: {text.strip()[-200:]}")
    last = found[-1]
    if any(result["found"] != result["asked"] for result in found):
        raise UserError(f"db_bench: records are missing: {last[0]}")
    return {"ops": int(last["ops"]), "ops_per_second": float(last["ops_per_second"]), "mean_us": float(last["us"])}
