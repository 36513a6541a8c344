# SPDX-License-Identifier: Apache-2.0
"""SQLite: a mapped database, several connections that read while one writes, growth, and a vacuum."""

import pathlib
import sqlite3
import threading
import zlib


def connect() -> sqlite3.Connection:
    connection = sqlite3.connect("/data/test.db", timeout=60)
    connection.execute("PRAGMA mmap_size = 268435456")
    connection.execute("PRAGMA cache_size = 20")
    return connection


def rows(first: int, count: int) -> list:
    return [(number, zlib.crc32(b"%d" % number), b"%08d" % number * 40) for number in range(first, first + count)]


def reader(number: int) -> None:
    connection = connect()
    found[number] = sum(crc for (crc,) in connection.execute("SELECT crc FROM t WHERE id < 2000"))
    connection.close()


print(connect().execute("PRAGMA mmap_size").fetchone())
writer = connect()
writer.execute("PRAGMA journal_mode = WAL").fetchone()
writer.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, crc INTEGER, body BLOB)")
writer.executemany("INSERT INTO t VALUES (?, ?, ?)", rows(0, 2000))
writer.commit()
writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
found = {}
readers = [threading.Thread(target=reader, args=(number,)) for number in range(3)]
for thread in readers:
    thread.start()
writer.executemany("INSERT INTO t VALUES (?, ?, ?)", rows(2000, 1500))  # the file and its mapping grow
writer.commit()
for thread in readers:
    thread.join()
print("readers", found[0], found[1] == found[0], found[2] == found[0])
writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
writer.execute("DELETE FROM t WHERE id % 3 = 0")
writer.commit()
writer.execute("VACUUM")
print("rows", writer.execute("SELECT count(*), sum(crc), sum(length(body)) FROM t").fetchone())
print(writer.execute("PRAGMA integrity_check").fetchone())
