# SPDX-License-Identifier: Apache-2.0
"""Runs kept by what they depend on: the machine is deterministic, so what ran once need not run again, experiments share their
runs, and a stopped one goes on where it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from lab.cache import CACHE, content_key, disk_error
from lab.outputs import write_whole
from lab.runner import guest as guests
from lab.runner.job import Job
from lab.ui import UserError, say, step

FOLDER = "@folder@"
"""In a guest's options: the run's own folder, where files for `take` may be left."""
_PLACE = CACHE / "kept"
_OWN_MIB = 1024
"""Memory that a run takes of the host besides its guest's, at most."""


@dataclass(frozen=True)
class Run:
    """One run, and what is kept of it."""

    title: str
    """What to call it."""
    guest: guests.Guest
    job: Job
    take: Callable[[guests.Outcome, Path], dict] = field(compare=False)
    """The record, of JSON's types: from the outcome of a run that ended with status 0 and from the run's folder, where the
    command's files are in `out`."""
    form: str
    """Which record it is: another text when `take` changes."""
    depends: tuple[Path, ...] = ()
    """Files that the guest's options name."""
    host_mib: int = 2048
    """Memory that its guest takes of the host, about."""


@cache
def _content(path: Path) -> str:
    return content_key(path)


def key(program: Path, run: Run) -> str:
    """Of everything that the record depends on; not where things lie, so options that are absolute paths are in `depends`."""
    guest = replace(run.guest, kernel=Path(), root=Path(), data=None, options=())
    disk = _content_of_disk(run.guest.data) if run.guest.data else ""
    files = [program, run.guest.kernel, run.guest.root, *run.job.inputs, *run.depends]
    return content_key(run.form, *(_content(path) for path in files), disk, repr(guest), run.job.script,
                       repr([option for option in run.guest.options if not Path(option).is_absolute()]))


def configuration(run: Run) -> dict:
    """What ran, in words that do not depend on where things lie."""
    guest = run.guest
    return {
        "title": run.title,
        "profile": guest.profile,
        "settings": list(guest.settings),
        "memory": guest.memory,
        "harts": guest.harts,
        "smu": guest.smu,
        "detail": guest.detail,
        "kernel_command_line": guest.append,
        "script": run.job.script,
        "data": guest.data and _content_of_disk(guest.data),
        "kernel": _content(guest.kernel),
    }


def _content_of_disk(disk: Path) -> str:
    """A disk of the cache is named by what is in it, and large."""
    return str(disk.relative_to(CACHE)) if disk.is_relative_to(CACHE) else _content(disk)


def records(program: Path, runs: Sequence[Run], at_once: int) -> list[dict]:
    """What each run gave; those that are not known are run, so many at once as asked and as the host has memory for."""
    places = {run: _PLACE / f"{key(program, run)}.json" for run in dict.fromkeys(runs)}
    todo = [run for run, place in places.items() if not place.is_file()]
    if len(todo) < len(places):
        say(f"{len(places) - len(todo)} of {len(places)} runs are known already")
    try:
        _PLACE.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, _PLACE) from error

    def run_one(run: Run) -> None:
        write_whole(places[run], json.dumps(fresh(program, run)))

    available = _available_mib()
    for mib in sorted({run.host_mib for run in todo}):
        group = [run for run in todo if run.host_mib == mib]
        beside = max(1, min(at_once, len(group), available // (mib + _OWN_MIB)))
        with step(f"{len(group)} runs with {mib} MiB ({beside} at a time)"), ThreadPoolExecutor(max_workers=beside) as pool:
            list(pool.map(run_one, group))
    known = {run: json.loads(place.read_text()) for run, place in places.items()}
    return [known[run] for run in runs]


def _available_mib() -> int:
    """Memory that this host can give."""
    found = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    return int(found[1]) >> 10 if found else 0


def fresh(program: Path, run: Run) -> dict:
    """Its record, fresh."""
    with guests.workspace() as folder:
        options = tuple(option.replace(FOLDER, str(folder)) for option in run.guest.options)
        outcome = guests.run_on_machine(program, replace(run.guest, options=options), run.job, folder / "out")
        if outcome.status:
            raise UserError(f"{run.title}: status {outcome.status}: {outcome.console.strip()[-300:]}")
        return run.take(outcome, folder)
