# SPDX-License-Identifier: Apache-2.0
"""LMDB with eight processes, each with a separate mapping: one writes, seven read."""

import multiprocessing
import pathlib
import zlib

import lmdb

ENTRIES = 1500
SIZE = 16 << 20


def key(number: int) -> bytes:
    return b"%08d" % number


def read(process: int) -> int:
    with lmdb.open("/data/lmdb", map_size=SIZE, readonly=True, max_readers=16) as environment, environment.begin() as view:
        return sum(zlib.crc32(view.get(key(number))) for number in range(process % 3, ENTRIES, 3))


def write(results: object) -> None:
    with lmdb.open("/data/lmdb", map_size=SIZE, max_readers=16) as environment:
        for first in range(ENTRIES, ENTRIES + 400, 100):
            with environment.begin(write=True) as change:
                for number in range(first, first + 100):
                    change.put(key(number), key(number) * 25)
    results.put("written")


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with lmdb.open("/data/lmdb", map_size=SIZE, max_readers=16) as environment:
        with environment.begin(write=True) as change:
            for number in range(ENTRIES):
                change.put(key(number), key(number) * 100)
        environment.sync(True)
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
    results = context.Queue()
    writer = context.Process(target=write, args=(results,))
    writer.start()
    with context.Pool(7) as pool:
        print("readers", pool.map(read, range(7), chunksize=1))
    print(results.get())
    writer.join()
    with lmdb.open("/data/lmdb", map_size=SIZE, readonly=True) as environment, environment.begin() as view:
        print("entries", view.stat()["entries"], zlib.crc32(b"".join(value for _, value in view.cursor())))
