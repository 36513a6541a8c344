# SPDX-License-Identifier: Apache-2.0
"""Runs of guests: what a record depends on, and how it is made. base/kept.py stores the records."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from trapless.base import kept
from trapless.base.cache import CACHE, content_key, file_key, tree_key
from trapless.base.ui import UserError, step
from trapless.guest import boot as guests
from trapless.guest import ending
from trapless.guest.job import Job

FOLDER = "@folder@"
"""Placeholder in a guest's options for the run's folder, in which the guest may leave files for `take`."""
_OWN_MIB = 1024
"""Maximum host memory that a run needs in addition to its guest's memory."""


@dataclass(frozen=True)
class Run:
    """One run, and how its record is made."""

    title: str
    """Title of the run in messages and records."""
    guest: guests.Guest
    job: Job
    take: Callable[[guests.Outcome, Path], dict] = field(compare=False)
    """Makes the record, of JSON's types, from the outcome of a run that ended with status 0 (or of any run, if `failures`) and
    the run's folder, which has the command's files in `out`."""
    form: str
    """Version of the record, a part of its cache key. Change it whenever `take` changes."""
    depends: tuple[Path, ...] = ()
    """Files whose absolute paths are in the guest's options."""
    host_mib: int = 2048
    """Approximate host memory that the guest needs."""
    failures: bool = False
    """Whether a run that fails also has a record, which says how it ended. Otherwise a status other than 0 is an error."""
    from_checkpoint: bool = False
    """Whether the run continues from a checkpoint after the boot, which it shares with other runs."""
    host_limit: float | None = field(default=None, compare=False)
    """Host seconds after which the run is stopped. The cache keeps no record of a stopped run."""


def key(program: Path, run: Run) -> str:
    """Cache key of a record: a hash of everything that the record depends on. It has the contents of files, not their paths, so
    files whose absolute paths are in options must be in `depends`."""
    guest = replace(run.guest, kernel=Path(), root=Path(), data=None, options=())
    disk = _content_of_disk(run.guest.data) if run.guest.data else ""
    files = [file_key(path) for path in (program, run.guest.kernel, run.guest.root)]
    files += [tree_key(path) if path.is_dir() else file_key(path) for path in run.job.inputs]
    files += [file_key(path) for path in (*run.depends, *guests.named_files(run.guest))]
    begin = ["checkpoint"] if run.from_checkpoint else []
    begin += [f"{path.name} may run" for path in run.job.inputs if path.is_file() and os.access(path, os.X_OK)]
    return content_key(run.form, *begin, *files, disk, repr(guest), run.job.script,
                       repr([option for option in run.guest.options if not Path(option).is_absolute()]))


def configuration(run: Run) -> dict:
    """Configuration of a run, without paths of this host."""
    guest = run.guest
    return {
        "title": run.title,
        "profile": guest.profile,
        "settings": list(guest.settings),
        "memory": guest.memory,
        "harts": guest.harts,
        "smu": guest.smu,
        "detail": guest.detail,
        "readahead_kb": "Linux's own" if guest.readahead is None else guest.readahead,
        "kernel_command_line": guest.append,
        "script": run.job.script,
        "data": guest.data and _content_of_disk(guest.data),
        "kernel": file_key(guest.kernel),
    }


def _content_of_disk(disk: Path) -> str:
    """What identifies a disk's content. The name of a disk in the cache does; hashing it would take long."""
    return str(disk.relative_to(CACHE)) if disk.is_relative_to(CACHE) else file_key(disk)


def records(program: Path, runs: Sequence[Run], at_once: int) -> list[dict]:
    """Return the record of each run. Runs without a kept record are run, at most `at_once` at a time, and no more than fit in the
    host's memory."""
    keys = {run: key(program, run) for run in dict.fromkeys(runs)}
    by_key = {name: run for run, name in keys.items()}
    todo = [by_key[name] for name in kept.unknown(by_key)]
    for mib in sorted({run.host_mib for run in todo}):
        group = [run for run in todo if run.host_mib == mib]
        beside = most_beside(group, at_once)
        with step(f"{len(group)} runs with {mib} MiB ({beside} at a time)"), kept.threads(beside) as pool:
            for _, result in each(pool, program, {keys[run]: run for run in group}):
                if isinstance(result, Exception):
                    raise result
    found = {run: kept.known(keys[run]) for run in keys}
    return [found[run] for run in runs]


def each(pool: Executor, program: Path, runs: dict[str, Run]) -> Iterator[tuple[str, dict | Exception]]:
    """Yield the key of each run with its record or its error, as soon as the run has ended."""
    return kept.each(pool, {name: kept.Task(run.title, partial(fresh, program, run)) for name, run in runs.items()})


def most_beside(runs: Sequence[Run], at_once: int) -> int:
    """Return how many of these runs fit into the host's memory at the same time, at most `at_once`."""
    return max(1, min(at_once, len(runs), _available_mib() // (max((run.host_mib for run in runs), default=0) + _OWN_MIB)))


def _available_mib() -> int:
    """Return the host memory that is available."""
    found = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    return int(found[1]) >> 10 if found else 0


def fresh(program: Path, run: Run) -> dict:
    """Make the run, and return its record."""
    with guests.workspace() as folder:
        options = tuple(option.replace(FOLDER, str(folder)) for option in run.guest.options)
        try:
            outcome = guests.run_on_machine(program, replace(run.guest, options=options), run.job, folder / "out",
                                            from_checkpoint=run.from_checkpoint, host_limit=run.host_limit)
            how = ending.of(outcome)
        except guests.GuestError as error:
            if not run.failures:
                raise
            outcome, how = error.outcome, ending.of_error(error, run.guest)
        if run.failures:
            return {"status": how.status, "exit_status": how.exit_status, "line": how.line, "output": ending.output(outcome),
                    **run.take(outcome, folder)}
        if outcome.status:
            raise UserError(f"{run.title}: status {outcome.status}: {outcome.console.strip()[-300:]}")
        return run.take(outcome, folder)
