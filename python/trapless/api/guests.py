# SPDX-License-Identifier: Apache-2.0
"""Runs guests: a single one, or a sweep of many."""

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
    """Result of a run. There is one for every run, even if the program crashes or never ends."""

    values: dict[str, object]
    """What was run: command, kind, profile, and all other options that were given."""
    status: str
    """`ok`, `failed`, `killed`, `out of memory`, `time limit`, `crashed` or `no status` (docs/reference/sweeps.md)."""
    exit_status: int | None
    """Exit status of the command; None if it has none."""
    line: str
    """Reason, if the status is not `ok`; otherwise empty."""
    console: str = field(repr=False)
    """All output on the guest's console."""
    files: dict[str, Path] = field(repr=False)
    """Files that the command wrote, by their path below /job/out. They are deleted with this object unless `out` was given."""
    figures: dict[str, float]
    """Counts of the machine, and figures from files that the program wrote under known names (docs/reference/sweeps.md,
    Figures)."""
    stats: dict = field(repr=False)
    """The machine's whole record: harts, regions of interest, drives, the SMU. Empty on QEMU."""
    _folder: object = field(default=None, repr=False, compare=False)
    columns: dict[str, dict] = field(default_factory=dict, repr=False)
    """Unit, direction and meaning of the program's figures, as the program defines them (docs/reference/sweeps.md, Figures)."""

    @property
    def ok(self) -> bool:
        """Whether the command ended with status 0."""
        return self.status == ending.OK

    def check(self) -> Result:
        """Return the result itself. Raises Error if the command did not end with status 0."""
        if not self.ok:
            raise Error(f"{self.values['command']}: {self.line}")
        return self

    def frame(self) -> pd.DataFrame:
        """Return a frame of one row with values, statuses and figures. Units are in its `attrs`. `pandas.concat` joins the rows
        of several results."""
        return frame_of([{**self.values, "status": self.status, "exit_status": self.exit_status, **self.figures}],
                        names=set(self.values), known=record.columns_of([{"columns": self.columns}]))


@one_line
def run(command: str | Sequence[str], *, settings: Mapping[str, object] | None = None, ssd: str | Path | None = None,
        max_seconds: float = 600.0, show: bool = False, out: str | Path | None = None, **options: object) -> Result:
    """Boot a guest and run a command in it, as `./trapless run` does (docs/reference/run.md says what each option means).

    The command is a text, as for a shell, or a list of words. Its first word may be your own program: `./my-program`, or
    `./my-program.c`, which is compiled with `cflags`. `settings` are values of the profile (`ssd.read_us`, `smu.pmshr_entries`)
    and parameters of the kernel (`hwdp.ring`), with the same names as in sweeps. `ssd` is the model of the drives. `max_seconds`
    is simulated time. `show` passes the console through during the run. Files of /job/out are copied to `out`, if it is given.

    Other options, all with the defaults of `./trapless run`:

    - `kind`: how the command's mappings of /data are paged: `ideal`, `osdp`, `emulated`, `trap`, `hwdp`, or None (unchanged);
      `share`: threads that map the same file share one mapping;
    - `data`: a size (`320M`: random bytes in /data/random.bin) or an ext4 image, which keeps what the guest writes; `readahead`:
      how many KB Linux reads ahead on this disk; `faults`: make drives fail (`media-error,lba=9`, docs/reference/nvme.md);
    - `inputs`: files to copy into the command's folder; `packages`: Debian packages; `cflags`: options for the compiler;
    - `profile`, `memory` (a size such as `256M`), `harts`, `detail`, `append` (text for the kernel's command line), `kernel`,
      `stock`, `series`, `simulator`, `arch`; `verbose`: show the kernel's messages on the console.

    `inputs`, `packages`, `faults` and `series` take a list or a single value. Relative paths begin at the current folder. Raises
    Error only if the guest cannot be run. If the command fails, the result says so.
    """
    words = point.words_of(command if isinstance(command, str) else list(command))
    given = {name: _value(name, value) for name, value in options.items()}
    profile_values, parameters = point.dotted(settings or {})
    if odd := [name for name in settings or {} if "." not in name]:
        raise UserError(f"settings: {odd[0]}: neither a value of a profile (ssd.read_us) nor a kernel parameter (hwdp.ring)")
    request = Request(words, **given, max_seconds=max_seconds)
    request = replace(request, settings=(*([f"ssd={ssd}"] if ssd else []), *profile_values),
                      append=" ".join([*([request.append] if request.append else []), *parameters]))
    guest, job = prepare(request)
    # A separate folder, so that files of an earlier run are not taken for files of this run.
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
    """Return a single value as a tuple of one, and several values as a tuple. A text is a single value."""
    return (value,) if isinstance(value, str | Path) else tuple(value)


def _value(name: str, value: object) -> object:
    """Convert the value of an option to the type that a request needs. UserError if there is no such option or choice."""
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
    """Run a guest with every combination of some values (docs/reference/sweeps.md). Returns one row for each point, with its
    values, `status`, `exit_status`, `line` (the reason of a failure) and figures.

    `what` is a TOML file, or a mapping with the same parts: `fixed`, `vary` (an iterable of values for each name) and `limits`.
    Paths in a mapping begin at the current folder. Points that ran before, in any sweep, are not run again. A failed point also
    has a row. `jobs` is the number of runs at a time, `workers` the number of worker processes on this machine, `scheduler` the
    address of a Dask scheduler. With `out`, the sweep's files are written to that folder. Raises Error if the grid itself is
    wrong.
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
    """Return a sweep's result as a row in which numbers stay numbers."""
    values = {name: grid.text(value) if isinstance(value, list) else value for name, value in result["values"].items()}
    named = {**values, **{key: result[key] for key in ("status", "exit_status", "line")}}
    return {**named, **result["figures"], **named}
