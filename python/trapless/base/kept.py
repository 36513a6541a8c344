# SPDX-License-Identifier: Apache-2.0
"""Records of runs, and the pools of threads or other workers that make them. A record's key is a hash of what the run depends on.

Simulators are deterministic, so a run need not be repeated: experiments share their runs, and a stopped experiment continues
where it was. The record of the run with the key K is K.json; it is complete or does not exist. K.seconds says how long the run
took (took.py). K.log says who began the run, when, and how it ended, one line for each event. A process that makes a run holds
the lock of K.log, so that no other process makes the same run at that time."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from trapless.base import process, took
from trapless.base.cache import CACHE, disk_error, hold
from trapless.base.outputs import write_whole
from trapless.base.ui import say

PLACE = CACHE / "kept"
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Task:
    """A run: its title, and the function that makes its record (of JSON's types). It must be picklable for pools of processes."""

    title: str
    make: Callable[[], dict]


def known(key: str) -> dict | None:
    """Return the record of the run with this key, or None. A file that a crash of the host emptied counts as missing."""
    try:
        return json.loads(_record(key).read_text())
    except (FileNotFoundError, ValueError):
        return None


def keep(key: str, record: dict) -> None:
    """Store the record of the run with this key."""
    write_whole(_record(key), json.dumps(record))


def unknown(keys: Mapping[str, object]) -> list[str]:
    """Return the keys that have no record. Prints how many have one, and counts the time that those runs took."""
    todo = [key for key in keys if known(key) is None]
    if len(todo) < len(keys):
        say(f"{len(keys) - len(todo)} of {len(keys)} runs are in the cache already")
    for key in keys.keys() - set(todo):
        took.known(_record(key))
    return todo


@contextmanager
def threads(count: int) -> Iterator[Executor]:
    """Make a pool of `count` threads. If the block fails or is interrupted, the pool's simulators end, and no others begin."""
    ended = threading.Event()
    pool = ThreadPoolExecutor(count, initializer=process.belong_to, initargs=(ended,))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        # Without this, each thread that waits for a shared boot would start the boot again.
        process.end_all(ended)
        raise
    pool.shutdown()


def each(pool: Executor, tasks: dict[str, Task]) -> Iterator[tuple[str, dict | Exception]]:
    """Yield the key of each run with its record or its error, as soon as it is known. Runs that another process is making now
    come last."""
    while tasks:
        busy, under_way = {}, {pool.submit(once, task, key): key for key, task in tasks.items()}
        try:
            for done in as_completed(under_way):
                key = under_way[done]
                try:
                    record = done.result()
                except Exception as error:
                    yield key, error
                else:
                    if record is None:
                        busy[key] = tasks[key]
                    else:
                        yield key, record
        finally:
            for future in under_way:
                future.cancel()
        if busy:
            time.sleep(_POLL_SECONDS)
        tasks = busy


def once(task: Task, key: str) -> dict | None:
    """Return the record of the run with this key, from the cache or from a new run. None while another process makes the run."""
    with _log(key) as log:
        if not hold(log, wait=False):
            return None
        if (record := known(key)) is None:
            _note(log, "begins", f"{socket.gethostname()} {os.getpid()}: {task.title}")
            try:
                start = time.monotonic()
                record = task.make()
                took.note(_record(key), time.monotonic() - start)
                keep(key, record)
            except BaseException as error:
                _note(log, "no record", str(error) or type(error).__name__)
                raise
            _note(log, "kept", record.get("status", "ok"))
        return record


def _record(key: str) -> Path:
    return PLACE / f"{key}.json"


def _log(key: str) -> IO[str]:
    try:
        PLACE.mkdir(parents=True, exist_ok=True)
        return open(PLACE / f"{key}.log", "a")
    except OSError as error:
        raise disk_error(error, PLACE) from error


def _note(log: IO[str], event: str, text: str) -> None:
    log.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {event}: {text}\n")
    log.flush()
