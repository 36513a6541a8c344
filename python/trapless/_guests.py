# SPDX-License-Identifier: Apache-2.0
"""Guests: one run, or a sweep of many."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from lab import build
from lab.outputs import output_folder
from lab.run import Request, prepare
from lab.runner import ending
from lab.runner import guest as guests
from lab.runner.job import KINDS
from lab.sweeps import command as sweeps
from lab.sweeps import grid, point, record
from lab.sweeps.engine import Engine
from lab.ui import UserError, no_such
from trapless._error import Error, one_line
from trapless._frames import frame_of


@dataclass(frozen=True)
class Result:
    """What a run left. Whatever the program does, crash or never end, there is one."""

    values: dict[str, object]
    """What was asked for: command, kind, profile, and what else was given."""
    status: str
    """`ok`, `failed`, `killed`, `out of memory`, `time limit`, `crashed` or `no status` (docs/sweeps.md)."""
    exit_status: int | None
    """Of the command; None if it has none."""
    line: str
    """What to say of a run that is not `ok`; else empty."""
    console: str = field(repr=False)
    """All that the guest's console showed."""
    files: dict[str, Path] = field(repr=False)
    """What the command wrote to /job/out, by path from there; they are gone with this object unless `out` was given."""
    figures: dict[str, float]
    """What the machine counted, and what the program itself left in files of known names (docs/sweeps.md, Figures)."""
    stats: dict = field(repr=False)
    """The machine's whole record: harts, regions of interest, drives, the SMU. Empty on QEMU."""
    _folder: object = field(default=None, repr=False, compare=False)

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
                        names=set(self.values), quantity=record.quantity)


@one_line
def run(command: str | Sequence[str], *, kind: str | None = None, data: str | Path | None = None, readahead: int | None = None,
        faults: str | Iterable[str] = (), inputs: str | Path | Iterable[str | Path] = (), packages: str | Iterable[str] = (),
        cflags: str = "", share: bool = False, profile: str | Path = "vc707", ssd: str | Path | None = None,
        settings: Mapping[str, object] | None = None, memory: str | None = None, harts: int | None = None, append: str = "",
        kernel: str | Path | None = None, stock: bool = False, series: str | Iterable[str] = build.SERIES,
        detail: str | None = None, simulator: str = "machine", arch: str = "riscv", max_seconds: float = 600.0,
        show: bool = False, verbose: bool = False, out: str | Path | None = None) -> Result:
    """Boot a guest and run a command in it, as `./trapless run` does (docs/run.md says what each option means).

    The command is a text, as for a shell, or a list of words; its first word may be a program of yours: `./my-program`, or
    `./my-program.c`, compiled with `cflags`. `kind` is how its mappings of /data are paged: `ideal`, `osdp`, `emulated`, `trap`,
    `hwdp`, or None: left alone. `data` is a size (`320M`: random bytes in /data/random.bin) or an ext4 image, which keeps what is
    written to it, and `readahead` how many KB Linux reads ahead on it (None: Linux' own without a kind, none with one). `faults`
    make drives fail (`media-error,lba=9`, docs/nvme.md). `settings` are values of the profile (`ssd.read_us`,
    `smu.pmshr_entries`) and parameters of the kernel (`hwdp.ring`), with the names of sweeps. `memory` is a size such as `256M`,
    `max_seconds` are simulated ones. `show` passes the console through as it comes, `verbose` has the kernel's messages on it.
    Files of /job/out go to `out`, if given. `inputs`, `packages`, `faults` and `series` may be one alone.

    Relative paths begin at the current folder. Error if the run could not be made: how the program ends is in the result.
    """
    words = point.words_of(command if isinstance(command, str) else list(command))
    _one_of("kind", kind, (None, *KINDS))
    _one_of("simulator", simulator, ("machine", "qemu"))
    _one_of("arch", arch, tuple(build.ARCHS))
    profile_values, parameters = point.dotted(settings or {})
    if odd := [name for name in settings or {} if "." not in name]:
        raise UserError(f"settings: {odd[0]}: neither a value of a profile (ssd.read_us) nor a kernel's parameter (hwdp.ring)")
    request = Request(
        words, kind, share, tuple(map(Path, several(inputs))), data=None if data is None else str(data),
        readahead=readahead, faults=several(faults), profile=str(profile),
        settings=(*([f"ssd={ssd}"] if ssd else []), *profile_values), memory=memory, harts=harts,
        append=" ".join([*([append] if append else []), *parameters]), kernel=Path(kernel) if kernel else None, stock=stock,
        simulator=simulator, arch=arch, verbose=verbose, max_seconds=max_seconds, detail=detail, series=several(series),
        packages=several(packages), cflags=cflags)
    guest, job = prepare(request)
    # In a folder of its own: what an earlier run has left is not this one's.
    kept = tempfile.TemporaryDirectory(prefix="trapless-")
    folder = Path(kept.name)
    if out:
        output_folder(Path(out))
    try:
        if simulator == "machine":
            outcome = guests.run_on_machine(build.machine(), guest, job, folder, show=show)
        else:
            outcome = guests.run_on_qemu(guest, job, folder, show=show)
        how = ending.of(outcome)
    except guests.GuestError as error:
        outcome, how = error.outcome, ending.of_error(error, guest)
    taken = record.of_run(kind, outcome, folder)
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    if out:
        folder = Path(shutil.copytree(folder, out, symlinks=True, dirs_exist_ok=True))
    given = {"ssd": ssd and str(ssd), "data": request.data, "readahead": readahead, "memory": memory, "harts": harts,
             "detail": detail}
    if faults:
        given["fault"] = " ".join(request.faults)
    values = {"command": shlex.join(words), "kind": kind, "profile": str(profile),
              **{name: value for name, value in given.items() if value is not None}, **(settings or {})}
    return Result(values, taken.get("status", how.status) if how.status == ending.OK else how.status, how.exit_status,
                  how.line or taken.get("line", ""), outcome.console,
                  {str(path): folder / path for path in files},
                  taken["figures"], outcome.stats, kept)


def several(value: str | Path | Iterable) -> tuple:
    """What was given as one, or as many: a text is one, and not its letters."""
    return (value,) if isinstance(value, str | Path) else tuple(value)


def _one_of(name: str, value: str | None, known: tuple[str | None, ...]) -> None:
    if value not in known:
        raise no_such(name, str(value), [each for each in known if each])


@one_line
def sweep(what: str | Path | Mapping[str, Mapping[str, object]], *, out: str | Path | None = None, jobs: int | None = None,
          workers: int | None = None, scheduler: str | None = None) -> pd.DataFrame:
    """Run a guest with every combination of some values (docs/sweeps.md): a row a point, with its values, `status`,
    `exit_status`, `line` (what to say of a failure) and figures.

    `what` is a TOML file, or a mapping with what such a file has: `fixed`, `vary` (an iterable a name) and `limits`; its paths
    begin at the current folder. Points that ran once, ever, are not run again. A point that fails is a row like the others.
    `jobs` is how many run at a time, `workers` how many processes of this machine do it, `scheduler` the address of a Dask
    scheduler. With `out`, the sweep's files are left in that folder. Error if the grid itself is wrong.
    """
    for name, count in (("jobs", jobs), ("workers", workers)):
        if count is not None and count < 1:
            raise UserError(f"{name}: {count}: at least 1")
    if isinstance(what, Mapping):
        vary = what.get("vary", {})
        data = {**what, "vary": {name: values if isinstance(values, str | Mapping) or not isinstance(values, Iterable)
                                 else list(values) for name, values in vary.items()} if isinstance(vary, Mapping) else vary}
        made = grid.of_table(data, Path(), "sweep", "sweep")
    else:
        made = grid.load(Path(what))
    results = sweeps.sweep(made, Path(out) if out else None, Engine(jobs, workers, scheduler))
    frame = frame_of([row_of(result) for result in results], names=set(made.vary), quantity=record.quantity)
    frame.attrs |= {"sweep": made.name, **({"folder": str(out)} if out else {})}
    return frame


def row_of(result: dict) -> dict:
    """A sweep's result as a row: numbers stay numbers."""
    values = {name: grid.text(value) if isinstance(value, list) else value for name, value in result["values"].items()}
    named = {**values, **{key: result[key] for key in ("status", "exit_status", "line")}}
    return {**named, **result["figures"], **named}
