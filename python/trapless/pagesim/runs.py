# SPDX-License-Identifier: Apache-2.0
"""Runs the paging simulator, and computes the keys under which base/kept.py keeps the records of runs."""

from __future__ import annotations

import copy
import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import tomli_w

from trapless.base import kept, process
from trapless.base.cache import CACHE, content_key, disk_error
from trapless.base.ui import Progress, UserError, say
from trapless.guest import build
from trapless.pagesim import traces

PYTHON = "python:"
"""Prefix of a `policy` that names a Python file."""


@dataclass(frozen=True)
class Run:
    """One run: its title, the simulator's configuration (with absolute paths of traces), and changes of it (`KEY=VALUE`)."""

    title: str
    config: dict
    settings: tuple[str, ...] = ()

    def traces(self) -> list[Path]:
        """Return the traces of its processes."""
        try:
            return [Path(process["trace"]) for process in self.config["process"]]
        except (KeyError, TypeError):
            raise UserError(f"{self.title}: a configuration needs [[process]] sections, each with a `trace`") from None

    def key(self, program: str) -> str:
        """Return the key of its result. It depends on the program, the configuration, and the content of the traces and of a
        policy in Python, but not on their paths. Changes of files that such a policy imports do not change it.
        """
        known = [traces.key(path) for path in self.traces()]
        processes = [{**process, "trace": trace} for process, trace in zip(self.config["process"], known, strict=True)]
        config = {**self.config, "process": processes}
        if (file := policy_file(config.get("policy"))) is not None:
            try:
                config["policy"] = PYTHON + content_key(file.read_bytes())
            except OSError as error:
                raise UserError(f"{file}: {error.strerror}") from None
        return content_key(program, json.dumps(config, sort_keys=True), *self.settings)


def policy_file(policy: object) -> Path | None:
    """Return the file of a policy in Python (`python:FILE.py`), or None for any other policy."""
    return Path(policy.removeprefix(PYTHON)) if isinstance(policy, str) and policy.startswith(PYTHON) else None


def changed(config: dict, values: dict[str, object]) -> dict:
    """Return the configuration with these values. Keys are dotted (`memory.frames`); numbers name elements of arrays."""
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
    """A run that gave no result, with the reason in one line."""

    title: str
    reason: str

    def __str__(self) -> str:
        """Return title and reason in one line."""
        return f"{self.title}: {self.reason}"


def run_all(runs: Sequence[Run], jobs: int | None = None, keep_going: bool = True,
            simulator: Path | None = None) -> list[dict | Failure]:
    """Return the results of all runs in their order. Runs without a known result run now, `jobs` at a time (default: as many as
    the host has cores). A failed run has a Failure as its result; without `keep_going`, the first failure raises UserError.
    `simulator` is a program to use in place of the project's.
    """
    program = build.pagesim(simulator)
    program_key = content_key(program)
    keys = [run.key(program_key) for run in runs]
    named = dict(zip(keys, runs, strict=True))
    weights = {key: sum(path.stat().st_size for path in named[key].traces()) for key in kept.unknown(named)}
    failures: dict[str, Failure] = {}
    progress = Progress("simulating", len(weights), sum(weights.values()))
    finished = behind = 0
    with _work_folder() as folder:
        work = Path(folder)
        # The longest first, so that no core is idle at the end.
        tasks = {key: kept.Task(named[key].title, partial(_fresh, program, named[key], work / key))
                 for key in sorted(weights, key=lambda key: -weights[key])}
        with progress.bar, progress.watching(lambda: sum(_part_done(work / f"{key}.log") * weights[key] for key in weights)), \
                kept.threads(jobs or os.cpu_count() or 1) as pool:
            for key, result in kept.each(pool, tasks):
                if isinstance(result, UserError):
                    failures[key] = Failure(named[key].title, str(result))
                    if not keep_going:
                        raise UserError(str(failures[key]))
                    say(f"failed: {failures[key]}")
                elif isinstance(result, Exception):
                    raise result
                finished, behind = finished + 1, behind + weights[key]
                progress.show(finished, behind)
    return [failures.get(key) or kept.known(key) for key in keys]


def records(runs: Sequence[Run], jobs: int | None = None) -> list[dict]:
    """Return the results of all runs. Raises UserError if a run fails."""
    return [result for result in run_all(runs, jobs, keep_going=False) if isinstance(result, dict)]


def _work_folder() -> tempfile.TemporaryDirectory:
    """Make the folder for the files of current runs."""
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=CACHE, prefix=".pagesim-")
    except OSError as error:
        raise disk_error(error, CACHE) from error


def _fresh(program: Path, run: Run, stem: Path) -> dict:
    """Run a simulation with the files `stem`.toml, .json and .log. Raises UserError, with the reason, if it leaves no record."""
    config, record, log = (stem.with_suffix(suffix) for suffix in (".toml", ".json", ".log"))
    config.write_text(tomli_w.dumps(run.config))
    command = [program, "run", config, "--json", record, "--progress"]
    command += [text for setting in run.settings for text in ("--set", setting)]
    ended = process.run([str(word) for word in command], log=log)
    if ended.status:
        # The last message, without a backtrace.
        said = [line for line in (ended.console + ended.messages).splitlines()
                if line and not line.startswith((" ", "note: ", "stack backtrace:"))]
        # The configuration file is only for this run, so its name says nothing to the user.
        text = said[-1].replace(f"{config}: ", "") if said else ""
        raise UserError(text.removeprefix("trapless-pagesim: ") or f"the simulator ended with status {ended.status}")
    try:
        found = json.loads(record.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"the simulator left no record: {error}") from error
    log.unlink()
    return found


def _part_done(log: Path) -> float:
    """Return the share of a running simulation that is done, from its last output (`1234.5 k of 12.3 M accesses`)."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 200))
            said = re.findall(rb"([\d.]+) ?([kMG]?) of ([\d.]+) ?([kMG]?) accesses", file.read())
    except FileNotFoundError:
        return 0.0
    if not said:
        return 0.0
    unit = {b"": 1.0, b"k": 1e3, b"M": 1e6, b"G": 1e9}
    done, done_unit, total, total_unit = said[-1]
    return min(float(done) * unit[done_unit] / max(float(total) * unit[total_unit], 1.0), 1.0)
