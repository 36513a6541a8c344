# SPDX-License-Identifier: Apache-2.0
"""Guests: one run, or a sweep of many."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from trapless.api.error import Error, one_line
from trapless.api.frames import frame_of
from trapless.base.outputs import output_folder
from trapless.base.ui import UserError, no_such
from trapless.guest import boot as guests
from trapless.guest import build, ending
from trapless.guest.run import OPTIONS, Request, prepare
from trapless.sweeps import command as sweeps
from trapless.sweeps import grid, point, record
from trapless.sweeps.engine import Engine


@dataclass(frozen=True)
class Result:
    """What a run left. Whatever the program does, crash or never end, there is one."""

    values: dict[str, object]
    """What was asked for: command, kind, profile, and what else was given."""
    status: str
    """`ok`, `failed`, `killed`, `out of memory`, `time limit`, `crashed` or `no status` (docs/reference/sweeps.md)."""
    exit_status: int | None
    """Exit status of the command; None if it has none."""
    line: str
    """What to say of a run that is not `ok`; else empty."""
    console: str = field(repr=False)
    """All that the guest's console showed."""
    files: dict[str, Path] = field(repr=False)
    """What the command wrote to /job/out, by path from there; they are gone with this object unless `out` was given."""
    figures: dict[str, float]
    """What the machine counted, and what the program itself left in files of known names (docs/reference/sweeps.md, Figures)."""
    stats: dict = field(repr=False)
    """The machine's whole record: harts, regions of interest, drives, the SMU. Empty on QEMU."""
    _folder: object = field(default=None, repr=False, compare=False)
    columns: dict[str, dict] = field(default_factory=dict, repr=False)
    """What the program itself says of its figures: unit, direction, meaning (docs/reference/sweeps.md, Figures)."""

    @property
    def ok(self) -> bool:
        """Did the command end with status 0?"""
        return self.status == ending.OK

    def check(self) -> Result:
        """The result itself; Error if the command did not end with status 0."""
        if not self.ok:
            raise Error(f"{self.values['command']}: {self.line}")
        return self

    def frame(self) -> pd.DataFrame:
        """A row: values, statuses, figures; units in its `attrs`. `pandas.concat` makes a table of several."""
        return frame_of([{**self.values, "status": self.status, "exit_status": self.exit_status, **self.figures}],
                        names=set(self.values), known=record.columns_of([{"columns": self.columns}]))


@one_line
def run(command: str | Sequence[str], *, settings: Mapping[str, object] | None = None, ssd: str | Path | None = None,
        max_seconds: float = 600.0, show: bool = False, out: str | Path | None = None, **options: object) -> Result:
    """Boot a guest and run a command in it, as `./trapless run` does (docs/reference/run.md says what each option means).

    The command is a text, as for a shell, or a list of words; its first word may be a program of yours: `./my-program`, or
    `./my-program.c`, compiled with `cflags`. `settings` are values of the profile (`ssd.read_us`, `smu.pmshr_entries`) and
    parameters of the kernel (`hwdp.ring`), with the names of sweeps. `ssd` says what the drives are, `max_seconds` are simulated
    ones. `show` passes the console through as it comes. Files of /job/out go to `out`, if given.

    Other options, all with the defaults of `./trapless run`:

    - `kind`: how its mappings of /data are paged: `ideal`, `osdp`, `emulated`, `trap`, `hwdp`, or None: left alone; `share`:
      threads that map the same file share one mapping;
    - `data`: a size (`320M`: random bytes in /data/random.bin) or an ext4 image, which keeps what is written to it;
      `readahead`: how many KB Linux reads ahead on it; `faults`: make drives fail (`media-error,lba=9`, docs/reference/nvme.md);
    - `inputs`: files that appear in the command's folder; `packages`: Debian packages; `cflags`: of the compiler;
    - `profile`, `memory` (a size such as `256M`), `harts`, `detail`, `append` (of the kernel's command line), `kernel`, `stock`,
      `series`, `simulator`, `arch`; `verbose`: the kernel's messages are on the console.

    `inputs`, `packages`, `faults` and `series` may be one alone. Relative paths begin at the current folder. Error if the run
    could not be made: how the program ends is in the result.
    """
    words = point.words_of(command if isinstance(command, str) else list(command))
    given = {name: _value(name, value) for name, value in options.items()}
    profile_values, parameters = point.dotted(settings or {})
    if odd := [name for name in settings or {} if "." not in name]:
        raise UserError(f"settings: {odd[0]}: neither a value of a profile (ssd.read_us) nor a kernel's parameter (hwdp.ring)")
    request = Request(words, **given, max_seconds=max_seconds)
    request = replace(request, settings=(*([f"ssd={ssd}"] if ssd else []), *profile_values),
                      append=" ".join([*([request.append] if request.append else []), *parameters]))
    guest, job = prepare(request)
    # In a separate folder: what an earlier run has left is not this one's.
    kept = tempfile.TemporaryDirectory(prefix="trapless-")
    folder = Path(kept.name)
    if out:
        output_folder(Path(out))
    try:
        if request.simulator == "machine":
            outcome = guests.run_on_machine(build.machine(), guest, job, folder, show=show)
        else:
            outcome = guests.run_on_qemu(guest, job, folder, show=show)
        how = ending.of(outcome)
    except guests.GuestError as error:
        outcome, how = error.outcome, ending.of_error(error, guest)
    taken = record.of_run(request.kind, outcome, folder)
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    if out:
        folder = Path(shutil.copytree(folder, out, symlinks=True, dirs_exist_ok=True))
    named = {"ssd": ssd and str(ssd),
             **{name: getattr(request, name) for name in ("data", "readahead", "memory", "harts", "detail")}}
    if request.faults:
        named["fault"] = " ".join(request.faults)
    values = {"command": shlex.join(words), "kind": request.kind, "profile": request.profile,
              **{name: value for name, value in named.items() if value is not None}, **(settings or {})}
    return Result(values, taken.get("status", how.status) if how.status == ending.OK else how.status, how.exit_status,
                  how.line or taken.get("line", ""), outcome.console,
                  {str(path): folder / path for path in files},
                  taken["figures"], outcome.stats, kept, taken.get("columns", {}))


def several(value: str | Path | Iterable) -> tuple:
    """What was given as one, or as many: a text is one, and not its letters."""
    return (value,) if isinstance(value, str | Path) else tuple(value)


def _value(name: str, value: object) -> object:
    """The value of an option as a request has it; UserError if there is no such option, or no such choice."""
    known = {option.name: option.metadata for option in OPTIONS.values() if option.name not in ("settings", "max_seconds")}
    if name not in known:
        raise no_such("option", name, known, "run")
    if known[name]["choices"] and value is not None and value not in known[name]["choices"]:
        raise no_such(name, str(value), known[name]["choices"], "run")
    if known[name]["kind"] is list:
        return tuple(map(Path, several(value))) if name == "inputs" else several(value)
    if value is not None and name in ("data", "profile"):
        return str(value)
    return Path(value) if value is not None and known[name]["kind"] is Path else value


@one_line
def sweep(what: str | Path | Mapping[str, Mapping[str, object]], *, out: str | Path | None = None, jobs: int | None = None,
          workers: int | None = None, scheduler: str | None = None) -> pd.DataFrame:
    """Run a guest with every combination of some values (docs/reference/sweeps.md): a row a point, with its values, `status`,
    `exit_status`, `line` (what to say of a failure) and figures.

    `what` is a TOML file, or a mapping with what such a file has: `fixed`, `vary` (an iterable a name) and `limits`; its paths
    begin at the current folder. Points that ran once, ever, are not run again. A point that fails is a row like the others.
    `jobs` is how many run at a time, `workers` how many processes of this machine do it, `scheduler` the address of a Dask
    scheduler. With `out`, the sweep's files are left in that folder. Error if the grid itself is wrong.
    """
    for name, count in (("jobs", jobs), ("workers", workers)):
        if count is not None and count < 1:
            raise UserError(f"{name} must be at least 1, not {count}")
    if isinstance(what, Mapping):
        vary = what.get("vary", {})
        data = {**what, "vary": {name: values if isinstance(values, str | Mapping) or not isinstance(values, Iterable)
                                 else list(values) for name, values in vary.items()} if isinstance(vary, Mapping) else vary}
        made = grid.of_table(data, Path(), "sweep", "sweep")
    else:
        made = grid.load(Path(what))
    results = sweeps.sweep(made, Path(out) if out else None, Engine(jobs, workers, scheduler))
    frame = frame_of([row_of(result) for result in results], names=set(made.vary), known=record.columns_of(results))
    frame.attrs |= {"sweep": made.name, **({"folder": str(out)} if out else {})}
    return frame


def row_of(result: dict) -> dict:
    """A sweep's result as a row: numbers stay numbers."""
    values = {name: grid.text(value) if isinstance(value, list) else value for name, value in result["values"].items()}
    named = {**values, **{key: result[key] for key in ("status", "exit_status", "line")}}
    return {**named, **result["figures"], **named}
