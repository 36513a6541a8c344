# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev workloads`: installs, prepares and records the workloads."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from trapless.base.cache import CACHE, GIB, as_root, cached, check_room, content_key, run_tool
from trapless.base.outputs import output_folder, write_whole
from trapless.base.ui import UserError, no_such, say, step
from trapless.guest import build
from trapless.pagesim.workloads.catalogue import WORKLOADS, Command, Workload
from trapless.results import table
from trapless.results.columns import Column, word

PROGRAMS = Path(__file__).with_name("programs")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
LOGS = CACHE / "logs"
# One thread, no random hashes, and no settings or packages of the user, so that the run is the same everywhere.
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/games", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0",
       "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PLACE = "/"
"""Folder in which the workloads run. It is always the same, because Debian's valgrind is a script whose shell puts the folder
into PWD, and the length of PWD moves the program's stack."""

COLUMNS = (
    word("name", "workload", "Our program."),
    word("paper", "stands for", "The paper's program."),
    Column("accesses", "M accesses", "Recorded accesses of memory, in millions.", "million accesses", None, ",.0f"),
    Column("instructions", "M instructions", "Instructions over which they were recorded, in millions.", "million instructions",
           None, ",.0f"),
    Column("footprint", "footprint MiB", "Different pages that were accessed.", "MiB", None, ",.1f"),
    Column("working_set", "working set MiB", "The fewest pages that get 99 % of the accesses behind the processor's cache.",
           "MiB", None, ",.1f"),
    word("intensive", "intensive", "Does the paper call it memory-intensive?"),
)


def run(names: list[str], accesses: int | None, out: Path | None, jobs: int, start: bool = False) -> int:
    """Record these workloads (all if none is named), `jobs` at a time, and return the exit status. `accesses` is the number of
    accesses to record of each; None: the number that the figures are measured with. With `start`, record
    from each workload's first access on. Otherwise the workload's start is skipped, which takes most of the time."""
    for name in names:
        if name not in WORKLOADS:
            raise no_such("workload", name, WORKLOADS)
    chosen = [WORKLOADS[name] for name in dict.fromkeys(names or WORKLOADS)]
    chosen = [replace(workload, skip=0) for workload in chosen] if start else chosen
    folder = output_folder(out or CACHE / "traces").absolute()
    program = build.pagesim()
    versions = install({package for workload in chosen for package in workload.packages} | {"valgrind"})
    plans = [plan(workload, accesses or workload.accesses, versions, folder) for workload in chosen]
    for done in (each for each in plans if each.recorded()):
        say(f"{done.workload.name}: recorded already: {done.trace}")
    check_room(sum(each.accesses for each in plans if not each.recorded()) // 5, folder, "traces")
    failures = record(program, [each for each in plans if not each.recorded()], jobs)
    records = [row(each) for each in plans if each.recorded()]
    if records:
        table.show(records, Console(highlight=False), COLUMNS)
    for failure in failures:
        say(failure)
    return 1 if failures else 0


def outdated(names: Iterable[str], accesses: int | None, folder: Path, start: bool = False) -> list[str]:
    """Return the workloads whose trace was recorded from another state of the workload. A workload whose packages are not
    installed is left out, because its state is not known."""
    chosen = [WORKLOADS[name] for name in names if name in WORKLOADS]
    versions = _versions({package for workload in chosen for package in workload.packages} | {"valgrind"})
    plans = [plan(replace(workload, skip=0) if start else workload, accesses or workload.accesses, versions, folder)
             for workload in chosen if versions.keys() >= {*workload.packages, "valgrind"}]
    return [each.workload.name for each in plans if each.trace.exists() and not each.recorded()]


@dataclass(frozen=True)
class Plan:
    """A recording to make."""

    workload: Workload
    accesses: int
    inputs_key: str
    """Cache key of its prepared files: a hash of all that they depend on. Workloads that prepare the same files share them."""
    key: str
    """Cache key of the trace: a hash of all that it depends on."""
    trace: Path

    @property
    def stamp(self) -> Path:
        """File that contains the key. It is written last."""
        return self.trace.with_name(f"{self.trace.name}.key")

    @property
    def summary(self) -> Path:
        """File with the recorder's summary of the trace."""
        return self.trace.with_name(f"{self.trace.name}.json")

    def recorded(self) -> bool:
        """Whether there is a trace of the current state of the workload."""
        try:
            return self.trace.exists() and self.summary.exists() and self.stamp.read_text() == self.key
        except OSError:
            return False


def install(packages: set[str]) -> dict[str, str]:
    """Install those of these Debian packages that are missing. Return the version of each."""
    missing = sorted(packages - _versions(packages).keys())
    if missing:
        if not shutil.which("apt-get"):
            raise UserError(f"apt-get not found; install these by hand: {', '.join(missing)}")
        what = f"installing {', '.join(missing)}"
        apt = [*as_root(what), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=500"]
        with step(what):
            run_tool([*apt, "update"], LOGS / "apt-update.log", "apt-get update")
            run_tool([*apt, "--no-install-recommends", "install", *missing], LOGS / "apt.log", "apt-get install")
    found = _versions(packages)
    absent = packages - found.keys()
    if absent:
        raise UserError(f"not installed by apt-get: {', '.join(sorted(absent))}")
    return found


def _versions(packages: set[str]) -> dict[str, str]:
    try:
        asked = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n", *sorted(packages)],
                               capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UserError("dpkg-query not found: the workloads are packages of Debian") from None
    lines = (line.split() for line in asked.stdout.splitlines())
    return {words[1]: words[2] for words in lines if words[0] == "installed"}


def plan(workload: Workload, accesses: int, versions: dict[str, str], folder: Path) -> Plan:
    """Plan the recording of a workload, with its keys."""
    inputs = [repr(workload.prepare), *(PROGRAMS / name for name in workload.files),
              *(f"{name} {versions[name]}" for name in workload.packages)]
    whole = [*inputs, repr(workload.command), repr(workload.env | ENV), f"valgrind {versions['valgrind']}",
             f"{workload.skip} {accesses}", PLACE]
    if workload.pypi:
        whole += [REQUIREMENTS, sys.version]
    return Plan(workload, accesses, content_key(*inputs), content_key(*whole), folder / f"{workload.name}.trace")


def _python() -> Path:
    """Return a Python interpreter that has the workloads' own packages."""
    def make(folder: Path) -> None:
        run_tool([sys.executable, "-m", "venv", folder], LOGS / "workloads-venv.log", "making a Python environment")
        run_tool([folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                  "-r", REQUIREMENTS], LOGS / "workloads-pip.log", "pip install")

    return cached("venv-workloads", content_key(REQUIREMENTS, sys.version), "installing the workloads' Python packages",
                  make, 4 * GIB) / "bin" / "python"


def _inputs(each: Plan) -> Path:
    """Return the folder of a workload's prepared files. Prepare them if they do not exist."""
    work = each.workload
    if not work.prepare:
        return Path()
    python = _python() if work.pypi else sys.executable

    def make(folder: Path) -> None:
        for command in work.prepare:
            run_tool(_filled(command, folder, python), LOGS / f"prepare-{work.name}.log", f"preparing {work.name}",
                     _environment(work, folder))

    return cached("workload-inputs", each.inputs_key, f"preparing the input of {work.name}", make, GIB)


def _filled(command: Command, inputs: Path, python: str | Path) -> list[str]:
    return [word.format(programs=PROGRAMS, inputs=inputs, python=python) for word in command]


def _environment(workload: Workload, inputs: Path) -> dict[str, str]:
    return ENV | {name: text.format(inputs=inputs) for name, text in workload.env.items()}


def record(program: Path, plans: list[Plan], jobs: int) -> list[str]:
    """Record workloads, `jobs` at a time. Return a line for each that failed. An interrupt ends the running recordings."""
    waiting, running, failures = list(plans), [], []
    for each in plans:
        _inputs(each)  # before the first recording: a failure later would end the running ones
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(Recording(program, waiting.pop(0)))
            time.sleep(0.2)
            for one in list(running):
                one.show()
                if one.process.poll() is not None:
                    running.remove(one)
                    failures += one.finish()
    finally:
        for one in running:
            one.process.terminate()
        for one in running:
            one.process.wait()
    return failures


class Recording:
    """A running recording of one workload."""

    def __init__(self, program: Path, each: Plan) -> None:
        """Prepare the inputs, and start the recorder."""
        self.plan = each
        work = each.workload
        inputs = _inputs(each)
        command = _filled(work.command, inputs, _python() if work.pypi else sys.executable)
        self.log = LOGS / f"record-{work.name}.log"
        LOGS.mkdir(parents=True, exist_ok=True)
        each.stamp.unlink(missing_ok=True)
        say(f"{work.name}: recording {each.accesses / 1e6:,.0f} M accesses after {work.skip / 1e6:,.0f} M of its start")
        self.said = ""
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [program, "record", "--out", each.trace, "--skip", str(work.skip), "--limit", str(each.accesses), "--", *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=PLACE, env=_environment(work, inputs))

    def _last(self) -> str:
        """Return the recorder's last line."""
        mark = "trapless-pagesim: "
        lines = self.log.read_text(errors="replace").splitlines()
        return next((line.removeprefix(mark) for line in reversed(lines) if line.startswith(mark)), "")

    def show(self) -> None:
        """Show the recorder's progress."""
        line = self._last()
        if line != self.said:
            self.said = line
            say(f"{self.plan.workload.name}: {line}")

    def finish(self) -> list[str]:
        """Mark the trace as complete. Return what went wrong, if anything."""
        name, each = self.plan.workload.name, self.plan
        if self.process.returncode:
            return [f"{name}: {self._last() or f'the recorder ended with status {self.process.returncode}'} "
                    f"(whole log: {self.log})"]
        found = json.loads(each.summary.read_text())["accesses"]
        if found < each.accesses:
            each.trace.unlink()
            each.summary.unlink()
            return [f"{name}: the program ended after {found:,} of {each.accesses:,} accesses (whole log: {self.log})"]
        write_whole(each.stamp, each.key)
        say(f"{name}: {each.trace}")
        return []


def row(each: Plan) -> dict:
    """Return the table's row for a recorded workload."""
    data = json.loads(each.summary.read_text())
    pages = data["hottest_pages"]
    return {"name": each.workload.name, "paper": each.workload.paper, "accesses": data["accesses"] / 1e6,
            "instructions": data["instructions"] / 1e6, "footprint": data["footprint_bytes"] / 2**20,
            "working_set": None if pages is None else pages / 256, "intensive": "yes" if each.workload.intensive else "no"}
