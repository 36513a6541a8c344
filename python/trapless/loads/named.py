# SPDX-License-Identifier: Apache-2.0
"""Workloads that sweeps know by name. Each has its own data and its own figures."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trapless.base.ui import UserError
from trapless.guest.images import dataset
from trapless.guest.job import Job, launcher
from trapless.guest.run import parse_size
from trapless.loads import dbbench, ycsb
from trapless.loads import fio as miss_latency
from trapless.loads.rocksdb import SEED_STEP


@dataclass(frozen=True)
class Prepared:
    """A workload that is ready to run."""

    job: Job
    data: Path
    """Data disk."""
    packages: tuple[str, ...] = ()
    append: str = ""
    """Text to add to the kernel's command line."""


@dataclass(frozen=True)
class Workload:
    """A program and its load."""

    about: str
    parameters: dict[str, object]
    """Parameters by name, with their defaults."""
    prepare: Callable[[str | None, bool | None, dict], Prepared]
    """Makes the workload ready from three values: the kind of paging, whether threads share a mapping (None: the workload's
    default), and the parameters."""

    def of(self, kind: str | None, share: bool | None, given: dict[str, object]) -> Prepared:
        """Make the workload ready with these parameters."""
        return self.prepare(kind, share, {**self.parameters, **given})


def _size(name: str, text: object) -> int:
    found = parse_size(str(text))
    if not found:
        raise UserError(f"{name}: {text}: not a size like 320M")
    return found


def _fio(kind: str | None, share: bool | None, given: dict) -> Prepared:
    # With some seeds, fio would draw the last block and then map the whole file again.
    load = miss_latency.Load(_size("file", given["file"]), _size("read", given["read"]), given["threads"], given["seed"],
                             but_last=True, share=share)
    return Prepared(load.job(kind), dataset.image(load.file_bytes), append=load.append())


def _ycsb(workload: str, kind: str | None, share: bool | None, given: dict) -> Prepared:
    database = ycsb.Database(given["records"], given["fields"], given["field_bytes"])
    load = ycsb.Load(database, workload, given["operations"], given["warm"], given["threads"], SEED_STEP * given["seed"])
    command = shlex.join([*launcher(kind, bool(share)), *load.argv()])
    return Prepared(Job(f"{command} >/job/out/ycsb.json", (ycsb.program(),)), database.image(), ycsb.PACKAGES)


def _dbbench(kind: str | None, share: bool | None, given: dict) -> Prepared:
    database = dbbench.Database(given["records"], given["record_bytes"])
    load = dbbench.Load(database, given["operations"], given["threads"], SEED_STEP * given["seed"])
    command = shlex.join([*launcher(kind, bool(share)), *load.argv()])
    return Prepared(Job(f"{command} >/job/out/dbbench.txt 2>&1"), database.image(), dbbench.PACKAGES)


_RECORDS = ycsb.Database(records=16_384)
_LOAD, _READS = ycsb.Load(_RECORDS), dbbench.Load(dbbench.Database(_RECORDS.records))
_YCSB = {"records": _RECORDS.records, "fields": _RECORDS.fields, "field_bytes": _RECORDS.field_bytes,
         "operations": _LOAD.operations, "warm": _LOAD.warm, "threads": _LOAD.threads, "seed": _LOAD.seed}
_DBBENCH = {"records": _READS.database.records, "record_bytes": _READS.database.record_bytes, "operations": _READS.operations,
            "threads": _READS.threads, "seed": _READS.seed}

WORKLOADS: dict[str, Workload] = {
    "fio": Workload("fio reads blocks of 4 KiB at random through a mapping of a cold file",
                    {"threads": 1, "seed": miss_latency.Load.seed, "file": "320M", "read": "64M"}, _fio),
    "db_bench": Workload("RocksDB's own benchmark reads records at random", _DBBENCH, _dbbench),
    **{f"ycsb-{name}": Workload(f"YCSB's core workload {name} on RocksDB", _YCSB, partial(_ycsb, name))
       for name in ycsb.WORKLOADS},
}
