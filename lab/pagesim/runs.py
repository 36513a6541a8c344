# SPDX-License-Identifier: Apache-2.0
"""Many runs of the paging simulator: one process a core, each result kept by the content that it comes from.

A result is a file of the cache, renamed into place when it is whole. So a stopped sweep goes on where it was, and figures
that share runs share their results.
"""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from lab import build
from lab.cache import CACHE, content_key, disk_error
from lab.pagesim import traces
from lab.runner import took
from lab.ui import Progress, UserError, say

FOLDER = CACHE / "pagesim"
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Run:
    """One run: what to call it, the simulator's configuration (traces as absolute paths), more `KEY=VALUE` settings."""

    title: str
    config: dict
    settings: tuple[str, ...] = ()

    def traces(self) -> list[Path]:
        """The traces of its processes."""
        try:
            return [Path(process["trace"]) for process in self.config["process"]]
        except (KeyError, TypeError):
            raise UserError(f"{self.title}: a configuration needs [[process]] sections, each with a `trace`") from None

    def key(self, program: str) -> str:
        """The key of its result: program, configuration, and the traces' content wherever they lie."""
        known = [traces.key(path) for path in self.traces()]
        processes = [{**process, "trace": trace} for process, trace in zip(self.config["process"], known, strict=True)]
        return content_key(program, json.dumps({**self.config, "process": processes}, sort_keys=True), *self.settings)


def changed(config: dict, values: dict[str, object]) -> dict:
    """The configuration with these values, by dotted keys (`memory.frames`; numbers name elements of arrays)."""
    config = copy.deepcopy(config)
    for key, value in values.items():
        *path, last = key.split(".")
        at = config
        try:
            for name in path:
                at = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
            at[int(last) if isinstance(at, list) else last] = value
        except (AttributeError, IndexError, TypeError, ValueError):
            raise UserError(f"{key}: no such key in the configuration") from None
    return config


@dataclass(frozen=True)
class Failure:
    """A run that gave no result, and why, in one line."""

    title: str
    reason: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.title}: {self.reason}"


def run_all(runs: Sequence[Run], jobs: int | None = None, keep_going: bool = True) -> list[dict | Failure]:
    """Results of all runs in their order; those that are not known yet are run, `jobs` at a time (default: all cores).
    Unless it is to `keep_going`, the first failure ends it.
    """
    program = build.pagesim()
    program_key = content_key(program)
    keys = [run.key(program_key) for run in runs]
    results = FOLDER / "runs"
    try:
        results.mkdir(parents=True, exist_ok=True)
        files = {key: results / f"{key}.json" for key in keys}
        known = {key: _known(path) for key, path in files.items()}
        # The longest first, so that no core is idle at the end.
        todo = {key: run for key, run in zip(keys, runs, strict=True) if known[key] is None}
        weights = {key: sum(path.stat().st_size for path in run.traces()) for key, run in todo.items()}
        order = sorted(todo, key=lambda key: -weights[key])
        if len(todo) < len(files):
            say(f"{len(files) - len(todo)} of {len(files)} runs are known already")
        for key in files.keys() - todo.keys():
            took.known(files[key])
        with tempfile.TemporaryDirectory(dir=FOLDER, prefix=".partial-") as work:
            failures = _execute(program, [(todo[key], weights[key], files[key]) for key in order], Path(work),
                                jobs or os.cpu_count() or 1, keep_going)
    except OSError as error:
        raise disk_error(error, FOLDER) from error
    known |= {key: _known(files[key]) for key in todo}
    return [failures.get(files[key]) or known[key] for key in keys]


def _known(place: Path) -> dict | None:
    """The result that is there; a file that a crash of the host has emptied is none."""
    try:
        return json.loads(place.read_text())
    except (FileNotFoundError, ValueError):
        return None


def records(runs: Sequence[Run], jobs: int | None = None) -> list[dict]:
    """Results of all runs; a failed one ends the command."""
    return [result for result in run_all(runs, jobs, keep_going=False) if isinstance(result, dict)]


def _execute(program: Path, todo: list[tuple[Run, int, Path]], work: Path, jobs: int,
             keep_going: bool) -> dict[Path, Failure]:
    """Run each and leave its result at its place; the failures by that place."""
    failures: dict[Path, Failure] = {}
    running: dict[int, subprocess.Popen] = {}
    waiting = list(range(len(todo)))[::-1]
    behind = 0
    progress = Progress("simulating", len(todo), sum(weight for _, weight, _ in todo))
    with progress.bar:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    number = waiting.pop()
                    running[number] = _start(program, todo[number][0], work / str(number))
                time.sleep(_POLL_SECONDS)
                for number in [number for number, process in running.items() if process.poll() is not None]:
                    run, weight, place = todo[number]
                    reason = _finish(running.pop(number).returncode, work / str(number), place)
                    behind += weight
                    if reason:
                        failures[place] = Failure(run.title, reason)
                        if not keep_going:
                            raise UserError(str(failures[place]))
                        say(f"failed: {failures[place]}")
                under_way = sum(_part_done(work / f"{number}.log") * todo[number][1] for number in running)
                progress.show(len(todo) - len(waiting) - len(running), behind + under_way)
        finally:
            for process in running.values():
                process.kill()
                process.wait()
    return failures


def _start(program: Path, run: Run, stem: Path) -> subprocess.Popen:
    """Start one; `stem`.toml, .json and .log are its files."""
    stem.with_suffix(".toml").write_text(tomli_w.dumps(run.config))
    command = [program, "run", stem.with_suffix(".toml"), "--json", stem.with_suffix(".json"), "--progress"]
    command += [text for setting in run.settings for text in ("--set", setting)]
    with open(stem.with_suffix(".log"), "wb") as log:
        # A group of its own: Ctrl-C is for us, and we end it.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0)


def _finish(status: int, stem: Path, place: Path) -> str | None:
    """Put the result in its place; or why there is none."""
    if status:
        # Its last word, not the trace of a program's insides.
        said = [line for line in stem.with_suffix(".log").read_text(errors="replace").splitlines()
                if line and not line.startswith((" ", "note: ", "stack backtrace:"))]
        # The file with the configuration is for this run alone: the title says what is in it.
        text = said[-1].replace(f"{stem.with_suffix('.toml')}: ", "") if said else ""
        return text.removeprefix("trapless-pagesim: ") or f"the simulator ended with status {status}"
    try:
        json.loads(stem.with_suffix(".json").read_text())
    except (OSError, ValueError) as error:
        return f"the simulator left no record: {error}"
    took.note(place, time.time() - stem.with_suffix(".toml").stat().st_mtime)
    stem.with_suffix(".json").replace(place)
    return None


def _part_done(log: Path) -> float:
    """What part of a run is done, by what it said last (`1234.5 k of 12.3 M accesses`)."""
    with open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 200))
        said = re.findall(rb"([\d.]+) ?([kMG]?) of ([\d.]+) ?([kMG]?) accesses", file.read())
    if not said:
        return 0.0
    unit = {b"": 1.0, b"k": 1e3, b"M": 1e6, b"G": 1e9}
    done, done_unit, total, total_unit = said[-1]
    return min(float(done) * unit[done_unit] / max(float(total) * unit[total_unit], 1.0), 1.0)
