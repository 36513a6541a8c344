# SPDX-License-Identifier: Apache-2.0
"""Runs many points: in threads of this process, in worker processes on this machine, or on workers anywhere that a Dask scheduler
knows (decision 059).

A run that has a record is not repeated, and a run that another process is making is not started (base/kept.py). So the loss of a
worker, or of the whole sweep, does no harm: records of finished runs stay, and unfinished runs begin again on another worker or
in the next sweep.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trapless.base.kept import threads
from trapless.base.paths import CACHE
from trapless.base.ui import UserError
from trapless.guest import kept

_PATIENCE_SECONDS = 15
"""Seconds to wait for a scheduler that does not answer."""


@dataclass(frozen=True)
class Engine:
    """Where the points run."""

    jobs: int | None = None
    """Number of runs in this process at a time; None: the number of cores, if memory suffices."""
    workers: int | None = None
    """Number of worker processes on this machine, with one run each; None: threads of this process."""
    scheduler: str | None = None
    """Address of a scheduler whose workers run the points."""


def each(program: Path, runs: dict[str, kept.Run], engine: Engine) -> Generator[tuple[str, dict | Exception], None, None]:
    """Yield the key of each run as soon as the run has ended, with its record, or with the error if the host made none."""
    with _pool(engine, list(runs.values())) as pool:
        yield from kept.each(pool, program, runs)


@contextmanager
def _pool(engine: Engine, runs: list[kept.Run]) -> Iterator[Executor]:
    if engine.workers or engine.scheduler:
        with _workers(engine) as pool:
            yield pool
        return
    with threads(kept.most_beside(runs, engine.jobs or os.cpu_count() or 1)) as pool:
        yield pool


@contextmanager
def _workers(engine: Engine) -> Iterator[Executor]:
    """Start worker processes, or connect to a scheduler. If a worker is lost, Dask's scheduler gives its runs to another one."""
    import dask

    # Dask logs much about each lost worker, but the results already say what happened to its points.
    dask.config.set({"logging": {"distributed": "critical", "distributed.client": "critical"},
                     "distributed.nanny.pre-spawn-environ": {"DASK_LOGGING__DISTRIBUTED": "critical"},
                     "temporary-directory": str(CACHE / "workers")})
    from distributed import Client, LocalCluster

    if engine.scheduler:
        try:
            client = Client(engine.scheduler, timeout=_PATIENCE_SECONDS)
        except (OSError, ValueError) as error:
            raise UserError(f"--scheduler {engine.scheduler}: {str(error).splitlines()[0]}") from None
        with client:
            yield client.get_executor()
        return
    with _without_interrupts():
        cluster = LocalCluster(n_workers=engine.workers, threads_per_worker=1, memory_limit=0, dashboard_address=None)
    with cluster, Client(cluster) as client:
        yield client.get_executor()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that start in this block ignore Ctrl-C. This process handles it and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def work(address: str, jobs: int | None) -> None:
    """Become worker processes of the scheduler at this address, until the scheduler ends."""
    (CACHE / "workers").mkdir(parents=True, exist_ok=True)
    os.execv(sys.executable, [
        sys.executable, "-m", "distributed.cli.dask_worker", address, "--nworkers", str(jobs or os.cpu_count() or 1),
        "--nthreads", "1", "--memory-limit", "0", "--no-dashboard", "--death-timeout", "60",
        "--local-directory", str(CACHE / "workers")])
