# SPDX-License-Identifier: Apache-2.0
"""Hits and misses of libCacheSim for an oracleGeneral file: `python mrc_reference.py FILE OUT POLICY:SIZE ...`.

Runs in the environment of dev/mrc.py, which has the package libcachesim. Each POLICY:SIZE gives a file OUT-POLICY-SIZE with
a byte for each request: 1 for a hit, 0 for a miss. Every object has size 1."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import libcachesim

RECORD = struct.Struct("<IQIq")
CACHES = {"lru": libcachesim.LRU, "fifo": libcachesim.FIFO, "clock": libcachesim.Clock, "arc": libcachesim.ARC,
          "s3-fifo": libcachesim.S3FIFO}


def main(file: str, out: str, *wanted: str) -> None:
    """Write one file for each policy and size."""
    objects = [record[1] for record in RECORD.iter_unpack(Path(file).read_bytes())]
    request = libcachesim.Request()
    request.obj_size = 1
    for name in wanted:
        policy, _, size = name.partition(":")
        cache = CACHES[policy](int(size))
        hits = bytearray()
        for object_ in objects:
            request.obj_id = object_
            hits.append(cache.get(request))
        Path(f"{out}-{policy}-{size}").write_bytes(hits)


if __name__ == "__main__":
    main(*sys.argv[1:])
