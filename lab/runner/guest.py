# SPDX-License-Identifier: Apache-2.0
"""Boots a guest with a job, on the Trapless machine or (without an SMU) on QEMU, and brings back what it did."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.build import RISCV, Arch
from lab.cache import CACHE, disk_error
from lab.images import ext4
from lab.images.rootfs import PARTUUID
from lab.runner import job as jobs
from lab.ui import UserError, say

BOOT = f"root=PARTUUID={PARTUUID} ro rootfstype=ext4 console=ttyS0 init=/sbin/trapless-init panic=-1"

# The data disk's number among the machine's disks: after the root disk and the job's.
DATA_DISK = 3

FIRST_COMMAND = 1
"""Number of the milestone that init sets before its first command (spec/platform.md)."""

# Exit statuses of the machine that mean the guest did not end in order.
_ENDS = {3: "the guest crashed or rebooted", 4: "the run is longer than --max-seconds"}


@dataclass(frozen=True)
class Guest:
    """A guest to boot."""

    kernel: Path
    root: Path
    data: Path | None = None
    """Data disk (label trapless-data)."""
    faults: tuple[str, ...] = ()
    """Faults of disks (docs/nvme.md); the data disk is DATA_DISK."""
    data_options: str = ""
    """Options of its drive and namespaces, as the machine's --disk has them (docs/nvme.md); not on QEMU."""
    job_options: str = ""
    """The same for the job's disk."""
    data_kept: bool = False
    """Writes to the data disk go to the file; otherwise they are dropped at the end."""
    profile: str = "vc707"
    settings: tuple[str, ...] = ()
    """Single profile values, `key=value`."""
    detail: str | None = None
    """When timing is detailed (machine/crates/cli, --detail)."""
    options: tuple[str, ...] = ()
    """More options of the machine."""
    memory: str | None = None
    harts: int | None = None
    smu: bool = True
    arch: Arch = RISCV
    """Others than RISC-V run on QEMU only."""
    cpu: str | None = None
    """QEMU's -cpu."""
    threads: bool = False
    """QEMU gives each x86 processor a host thread of its own (see qemu_command)."""
    append: str = ""
    """More of the kernel's command line."""
    quiet: bool = True
    max_seconds: float | None = None
    """Give up after so many simulated seconds (QEMU: host seconds)."""

    def command_line(self) -> str:
        """The kernel's command line."""
        return " ".join(part for part in (BOOT, "quiet" if self.quiet else "earlycon=sbi", self.append) if part)


@dataclass
class Outcome:
    """What a run left."""

    status: int
    """Exit status of the guest's command."""
    stats: dict = field(default_factory=dict)
    """The machine's record (stats.json); empty on QEMU."""
    console: str = ""
    """What the guest's console showed, if it was captured."""
    messages: str = ""
    """What the simulator itself said."""
    host_seconds: float = 0.0


@contextmanager
def workspace() -> Iterator[Path]:
    """A folder for one run, removed afterwards; on the cache's disk, because job disks can be large."""
    base = CACHE / "runs"
    try:
        base.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=base))
    except OSError as error:
        raise disk_error(error, base) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def machine_command(program: Path, guest: Guest, job_disk: Path, stats: Path, console: str,
                    interactive: bool = False) -> list[str]:
    """Command line of the machine for this guest. The root disk has a partition table, which counts in 512 bytes."""
    command = [str(program), "run", "--profile", guest.profile, "--kernel", str(guest.kernel),
               "--append", guest.command_line(), "--disk", f"{guest.root},snapshot,block=512",
               "--disk", _disk(job_disk, guest.job_options)]
    for setting in guest.settings:
        command += ["--set", setting]
    for fault in guest.faults:
        command += ["--fault", fault]
    if guest.data:
        command += ["--disk", _disk(guest.data, "" if guest.data_kept else "snapshot", guest.data_options)]
    if guest.memory:
        command += ["--memory", guest.memory]
    if guest.harts:
        command += ["--harts", str(guest.harts)]
    if not guest.smu:
        command.append("--no-smu")
    if guest.detail:
        command += ["--detail", guest.detail]
    if guest.max_seconds:
        command += ["--max-seconds", str(guest.max_seconds)]
    command += guest.options
    if interactive:
        command.append("--interactive")
    else:
        command += ["--console", console]
    return [*command, "--json", str(stats)]


def _disk(image: Path, *options: str) -> str:
    return ",".join([str(image), *(option for option in options if option)])


def qemu_command(guest: Guest, job_disk: Path) -> list[str]:
    """Command line of QEMU for this guest: its own board, NVMe disks only.

    Interrupts are messages (on RISC-V that needs AIA): QEMU 7.2's NVMe now and then loses one on a shared interrupt line,
    and the driver then waits 30 s. x86 processors take turns on one host thread: with a thread each, one may meet another's
    half-patched instruction (int3) when Linux has put the whole one there already, and the guest dies of it. That is rare;
    `threads` takes the risk for guests whose processors never rest, which take turns badly (run_on_qemu boots those again).
    """
    board, append = "q35", guest.command_line().replace("earlycon=sbi", "earlyprintk=serial")
    if guest.arch is RISCV:
        board, append = "virt,aia=aplic-imsic", guest.command_line().replace("ttyS0", "hvc0")
    command = [f"qemu-system-{guest.arch.machine}", "-M", board, "-display", "none", "-serial", "mon:stdio",
               "-no-reboot", "-nic", "none", "-smp", str(guest.harts or 4), "-m", guest.memory or "1G",
               "-kernel", str(guest.kernel), "-append", append]
    if guest.arch is not RISCV and not guest.threads:
        command += ["-accel", "tcg,thread=single"]
    if guest.cpu:
        command += ["-cpu", guest.cpu]
    disks = [(guest.root, False), (job_disk, True)] + ([(guest.data, guest.data_kept)] if guest.data else [])
    for number, (path, kept) in enumerate(disks):
        snapshot = "off" if kept else "on"
        command += ["-drive", f"if=none,id=disk{number},format=raw,snapshot={snapshot},file={path}",
                    "-device", f"nvme,serial=trapless{number},drive=disk{number}"]
    return command


def run_on_machine(program: Path, guest: Guest, job: jobs.Job, out: Path | None = None, *, show: bool = False,
                   interactive: bool = False, keep_stats: Path | None = None) -> Outcome:
    """Boot `guest` on the machine and do `job`. Files of /job/out go to `out`, the machine's record to `keep_stats`;
    `show` passes the console through."""
    with workspace() as folder:
        disk, stats_file = folder / "job.img", folder / "stats.json"
        jobs.write_disk(job, disk)
        command = machine_command(program, guest, disk, stats_file, "-", interactive)
        outcome = _run(command, show, interactive, None)
        machine_status = outcome.status
        if machine_status == 130:
            raise KeyboardInterrupt
        if machine_status == 2:
            raise UserError(_complaint(outcome.messages) or "the machine refused its command line")
        if machine_status != 0:
            reason = _ENDS.get(machine_status, f"the machine ended with status {machine_status}")
            raise UserError(f"{reason}; its last words: {_last_line(outcome.messages + outcome.console) or '(none)'}")
        if show:
            sys.stderr.write(outcome.messages)
        if stats_file.exists():
            outcome.stats = json.loads(stats_file.read_text())
            if keep_stats:
                try:
                    shutil.copy(stats_file, keep_stats)
                except OSError as error:
                    raise disk_error(error, keep_stats) from error
        return _collect(outcome, disk, out, interactive)


QEMU_DIED = "Oops: int3"
"""What the guest says when QEMU's threads have killed it: see qemu_command. No code of ours has breakpoints."""
BOOTS = 3
"""How often such a guest is booted at most."""


def run_on_qemu(guest: Guest, job: jobs.Job, out: Path | None = None, *, show: bool = False,
                interactive: bool = False) -> Outcome:
    """Boot `guest` on QEMU and do `job`."""
    with workspace() as folder:
        disk = folder / "job.img"
        for again in reversed(range(BOOTS)):
            jobs.write_disk(job, disk)
            outcome = _run(qemu_command(guest, disk), show, interactive, guest.max_seconds or 600)
            if not (again and guest.threads and not guest.data_kept and QEMU_DIED in outcome.console):
                break
            say("QEMU let a processor meet a patch that was over (int3): booting again")
        if outcome.status != 0:
            raise UserError(f"QEMU ended with status {outcome.status}: {_last_line(outcome.messages or outcome.console)}")
        return _collect(outcome, disk, out, interactive)


def _collect(outcome: Outcome, disk: Path, out: Path | None, interactive: bool) -> Outcome:
    status = jobs.read_status(disk)
    if status is None and not interactive:
        raise UserError(f"the guest ended before its command did; the console's end: {_last_line(outcome.console)}")
    outcome.status = status or 0
    if out is not None:
        ext4.read_tree(disk, "/out", out)
    return outcome


def _complaint(text: str) -> str:
    """The machine's own word on bad input: its line that says error, else its last."""
    lines = [line for line in text.splitlines() if line.startswith("error: ")]
    return (lines[0] if lines else _last_line(text)).removeprefix("error: ").removeprefix("trapless-machine: ")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _run(command: list[str], show: bool, interactive: bool, limit: float | None) -> Outcome:
    """Run a simulator; capture its console, or pass it through as well."""
    start = time.monotonic()
    captured: list[str] = []
    with tempfile.TemporaryFile() as messages:
        try:
            if interactive:
                process = subprocess.Popen(command)
                status = process.wait()
            else:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages)
                emit = captured.append if not show else _both(captured)
                status = _pump(process, emit, start + limit if limit else None)
        except FileNotFoundError:
            raise UserError(f"{command[0]} not found (./trapless setup installs it)") from None
        except BaseException:
            # Ctrl-C reached the simulator as well; other ends did not.
            process.terminate()
            process.wait()
            raise
        messages.seek(0)
        said = messages.read().decode(errors="replace")
    return Outcome(status, console="".join(captured), messages=said, host_seconds=time.monotonic() - start)


def _both(captured: list[str]) -> Callable[[str], None]:
    def emit(text: str) -> None:
        captured.append(text)
        sys.stdout.write(text)
        sys.stdout.flush()

    return emit


def _pump(process: subprocess.Popen, emit: Callable[[str], None], deadline: float | None) -> int:
    """Copy the console to `emit` as it comes; the exit status. Past `deadline` (monotonic) the process is ended."""
    assert process.stdout is not None
    fresh = ConsoleFilter()
    while data := process.stdout.read1(65536):
        emit(fresh.feed(data.decode(errors="replace")))
        if deadline and time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise UserError(f"{Path(process.args[0]).name} did not end in time")
    emit(fresh.rest())
    return process.wait()


class ConsoleFilter:
    """Takes carriage returns and the kernel's own word of farewell out of a console stream."""

    # With or without the kernel's time stamp.
    _FAREWELL = re.compile(r"^(\[ *\d+\.\d+\] )?reboot: Power down\n", re.MULTILINE)
    _MAYBE = re.compile(r"^(\[[ \d.]{0,20}(\] ?)?)?(r|re|reb|rebo|reboo|reboot|reboot:[^\n]{0,20})?\Z", re.MULTILINE)

    def __init__(self) -> None:
        """Start with nothing held back, at the start of a line."""
        self._held = ""
        self._inside = False

    def feed(self, text: str) -> str:
        """What can be shown now of the stream so far."""
        # A mark stands for what was shown of an unfinished line, so that the patterns do not match inside it.
        mark = "\0" if self._inside else ""
        text = self._FAREWELL.sub("", re.sub(r"\r+\n", "\n", mark + self._held + text))
        hold = self._MAYBE.search(text)
        cut = hold.start() if hold else len(text.rstrip("\r"))
        shown, self._held = text[len(mark):cut], text[cut:]
        if shown:
            self._inside = not shown.endswith("\n")
        return shown

    def rest(self) -> str:
        """What was held back when the stream ended."""
        rest, self._held = self._held, ""
        return rest
