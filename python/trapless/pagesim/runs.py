# SPDX-License-Identifier: Apache-2.0
"""Runs of the paging simulator: what their records depend on, and what makes them. base/kept.py keeps the records."""

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
"""What `policy` begins with if it is a file of Python."""


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
        """The key of its result: program, configuration, and the content of the traces and of a policy in Python, wherever they
        lie. What such a policy imports does not count.
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
    """The file of a policy in Python (`python:FILE.py`); None for any other policy."""
    return Path(policy.removeprefix(PYTHON)) if isinstance(policy, str) and policy.startswith(PYTHON) else None


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


def run_all(runs: Sequence[Run], jobs: int | None = None, keep_going: bool = True,
            simulator: Path | None = None) -> list[dict | Failure]:
    """Results of all runs in their order; those that are not known yet are run, `jobs` at a time (default: all cores).
    Unless it is to `keep_going`, the first failure ends it. `simulator` is another program than the project's.
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
    """Results of all runs; a failed one ends the command."""
    return [result for result in run_all(runs, jobs, keep_going=False) if isinstance(result, dict)]


def _work_folder() -> tempfile.TemporaryDirectory:
    """Where files of runs under way lie."""
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=CACHE, prefix=".pagesim-")
    except OSError as error:
        raise disk_error(error, CACHE) from error


def _fresh(program: Path, run: Run, stem: Path) -> dict:
    """Run it; `stem`.toml, .json and .log are its files. UserError says why there is no record."""
    config, record, log = (stem.with_suffix(suffix) for suffix in (".toml", ".json", ".log"))
    config.write_text(tomli_w.dumps(run.config))
    command = [program, "run", config, "--json", record, "--progress"]
    command += [text for setting in run.settings for text in ("--set", setting)]
    ended = process.run([str(word) for word in command], log=log)
    if ended.status:
        # Its last word, not the trace of a program's insides.
        said = [line for line in (ended.console + ended.messages).splitlines()
                if line and not line.startswith((" ", "note: ", "stack backtrace:"))]
        # The file with the configuration is for this run alone: the title says what is in it.
        text = said[-1].replace(f"{config}: ", "") if said else ""
        raise UserError(text.removeprefix("trapless-pagesim: ") or f"the simulator ended with status {ended.status}")
    try:
        found = json.loads(record.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"the simulator left no record: {error}") from error
    log.unlink()
    return found


def _part_done(log: Path) -> float:
    """Return which part of a running simulation is done, by its last output (`1234.5 k of 12.3 M accesses`)."""
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
