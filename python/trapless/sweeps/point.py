# SPDX-License-Identifier: Apache-2.0
"""A point of a sweep: makes a run from the point's named values. A name is one of these:

- an option of `run` (OPTIONS), including `command` and `workload`;
- a name with a dot: a value of the machine's profile if it begins with a section of the profile (`smu.pmshr_entries`), otherwise
  a parameter of the kernel's command line (`hwdp.ring`);
- any other name: a value for `{name}` in the command, or a parameter of the workload.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from trapless.base.ui import UserError, nearest, no_such
from trapless.guest import boot as guests
from trapless.guest import build, kept, run
from trapless.guest.job import KINDS
from trapless.loads.named import WORKLOADS
from trapless.sweeps import record
from trapless.sweeps.grid import Grid, title

_NOT_OF_POINTS = ("on", "arch", "verbose", "max-seconds", "set")
OPTIONS: dict[str, type | tuple[type, ...]] = {"command": (str, list), "workload": str, "ssd": str} | {
    word: str if option.metadata["kind"] is Path else option.metadata["kind"]
    for word, option in run.OPTIONS.items() if word not in _NOT_OF_POINTS}
"""Options of `run`, and the types of their values."""
SECTIONS = ("machine", "core", "smu", "ssd", "detail")
"""Sections of a machine's profile."""
_FORM = "sweep 3"
_HOLE = re.compile(r"\{\{(\w+)\}\}|\{(\w+)\}")
_NAMES = {str: "text", bool: "true or false", int: "whole number", list: "list", (str, list): "text or list"}


def check(grid: Grid) -> None:
    """Raise UserError for a name or a type that no run could have, before anything runs."""
    where = f"{grid.name}: "
    if twice := set(grid.fixed) & set(grid.vary):
        raise UserError(f"{where}{min(twice)} is in [fixed] and in [vary]: give it once")
    given = {**{name: [value] for name, value in grid.fixed.items()}, **grid.vary}
    if ("command" in given) == ("workload" in given):
        raise UserError(f"{where}needs either a `command` or a `workload`")
    for name, values in given.items():
        for value in values:
            _check_value(where, name, value)
    if any(given.get("share", [])) and "kind" not in given:
        raise UserError(f"{where}share works only with a `kind`: the launcher of a kind makes threads share a mapping")
    if "kernel" in given and (any(given.get("stock", [])) or "series" in given):
        raise UserError(f"{where}kernel does not work with `{'series' if 'series' in given else 'stock'}`: give one of them")
    free = [name for name in given if name not in OPTIONS and "." not in name]
    holes = {hole for value in given.get("command", []) for hole in _holes(value)}
    workloads = given.get("workload", [])
    for name in free:
        for workload in workloads:
            _check_parameter(where, workload, name, given[name])
        if not workloads and name not in holes:
            raise UserError(f"{where}{name}: neither an option nor {{{name}}} in the command; {nearest(name, OPTIONS)}")
    if unknown := holes - set(given):
        name = min(unknown)
        raise UserError(f"{where}command: {{{name}}} has no value ({{{{{name}}}}} means {{{name}}} itself)")


def _check_value(where: str, name: str, value: object) -> None:
    wanted = OPTIONS.get(name, (str, int, float, bool))
    if not isinstance(value, wanted) or isinstance(value, bool) and wanted is int:
        raise UserError(f"{where}{name}: {value!r} is not a {_NAMES.get(wanted, 'text or number')}")
    if wanted is list and not all(isinstance(entry, str) for entry in value):
        raise UserError(f"{where}{name}: {value!r} is not a list of texts")
    if name == "harts" and value < 1:
        raise UserError(f"{where}harts must be at least 1, not {value}")
    if name == "readahead":
        run.readahead_of(None, value)
    if name == "data":
        run.parse_data(value)
    if name == "kind" and value not in KINDS:
        raise no_such("kind", str(value), KINDS, where.removesuffix(": "))
    if name == "workload" and value not in WORKLOADS:
        raise no_such("workload", str(value), WORKLOADS, where.removesuffix(": "))


def _check_parameter(where: str, workload: str, name: str, values: list) -> None:
    known = WORKLOADS[workload].parameters
    if name not in known:
        raise no_such(f"parameter of {workload}", name, known, where.removesuffix(": "))
    wanted = type(known[name])
    if wrong := [value for value in values if not isinstance(value, wanted) or isinstance(value, bool)]:
        raise UserError(f"{where}{name}: {wrong[0]!r} is not a {_NAMES[wanted]}")
    if name == "threads" and min(values) < 1:
        raise UserError(f"{where}threads must be at least 1, not {min(values)}")


def words_of(command: str | list) -> list[str]:
    """Split a command into words as a shell does. Raises UserError if there are no words, or a quote does not end."""
    try:
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    except ValueError as error:
        raise UserError(f"command: {command}: {str(error).lower()}") from None
    if not words or not words[0]:
        raise UserError("command: is empty")
    return words


def _holes(command: str | list) -> Iterator[str]:
    for word in words_of(command):
        yield from (match[2] for match in _HOLE.finditer(word) if match[2])


def _filled(command: str | list, values: dict[str, object]) -> list[str]:
    return [_HOLE.sub(lambda match: f"{{{match[1]}}}" if match[1] else str(values[match[2]]), word) for word in words_of(command)]


def run_of(grid: Grid, varied: dict[str, object], kernel: Callable[..., Path] = build.kernel) -> kept.Run:
    """Build what a point needs, with `kernel` for its kernel, and return its run. Raises UserError if that fails."""
    values, folder = {**grid.fixed, **varied}, grid.folder
    settings, words = dotted(values)
    ssd = [f"ssd={run.file_or_name(folder, values['ssd'])}"] if "ssd" in values else []
    kind, data = values.get("kind"), values.get("data")
    workload = WORKLOADS[values["workload"]] if "workload" in values else None
    prepared = workload and workload.of(
        kind, values.get("share"), {name: values[name] for name in workload.parameters if name in values})
    if prepared and data:
        raise UserError(f"data: workload {values['workload']} has its own data: leave data out")
    if data and "namespace=" in data:
        raise UserError(f"data: {data}: the drive of a sweep has only one namespace: leave namespace out")
    given = {option.name: tuple(values[word]) if option.metadata["kind"] is list else values[word]
             for word, option in run.OPTIONS.items() if word in values and word in OPTIONS}
    asked = run.Request(_filled(values["command"], values) if "command" in values else [], **given)
    request = replace(
        asked, inputs=tuple(map(Path, asked.inputs)), faults=() if prepared else asked.faults,
        profile=run.file_or_name(folder, asked.profile), settings=(*ssd, *settings),
        append=" ".join(part for part in (asked.append, prepared.append if prepared else "", *words) if part),
        kernel=Path(asked.kernel) if asked.kernel else kernel(stock=asked.stock, series=asked.series),
        stock=False, series=run.Request.series,
        packages=tuple(dict.fromkeys([*(prepared.packages if prepared else ()), *asked.packages])),
        max_seconds=grid.limits.simulated_seconds)
    guest, job = run.prepare(request, folder)
    # What a point writes is dropped, so that each point begins with the same data.
    if guests.says_rw(guest.data_options):
        raise UserError(f"data: {data}: leave rw out: what the guest writes to a sweep's data is dropped")
    guest = replace(guest, data_kept=False)
    if prepared:
        faults = run.faults_of(tuple(values.get("fault", [])), data=True)
        guest = replace(guest, data=prepared.data, faults=faults)
        job = replace(prepared.job, inputs=(*prepared.job.inputs, *job.inputs))
    size = run.parse_size(request.memory) if request.memory else None
    return kept.Run(title(varied) or grid.name, guest, job, partial(record.take, kind), _FORM, failures=True,
                    host_mib=(size >> 20) if size else kept.Run.host_mib, from_checkpoint=True,
                    host_limit=grid.limits.host_seconds)


def dotted(values: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """Split names with a dot into those of the machine's profile and parameters of the kernel's command line."""
    names = sorted(name for name in values if "." in name)
    return ([f"{name}={_plain(values[name])}" for name in names if name.partition(".")[0] in SECTIONS],
            [f"{name}={_plain(values[name], int)}" for name in names if name.partition(".")[0] not in SECTIONS])


def _plain(value: object, truth: type = str) -> str:
    """Return a value as text. A truth value is `true` or `false`, or with `truth=int`, for parameters of the kernel, 1 or 0."""
    return str(truth(value)).lower() if isinstance(value, bool) else str(value)
