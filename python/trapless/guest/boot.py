# SPDX-License-Identifier: Apache-2.0
"""Boots a guest with a job, on the Trapless machine or on QEMU (which has no SMU), and returns the results."""

from __future__ import annotations

import json
import re
import shutil
import sys
import threading
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

from trapless.base import process
from trapless.base.cache import cached, content_key, disk_error, file_key, workspace
from trapless.base.ui import UserError, say
from trapless.guest import harts
from trapless.guest import job as jobs
from trapless.guest.build import RISCV, Arch
from trapless.guest.images import fetch
from trapless.guest.images.rootfs import PARTUUID

BOOT = f"root=PARTUUID={PARTUUID} ro rootfstype=ext4 console=ttyS0 init=/sbin/trapless-init panic=-1"

QEMU_HARTS = 4
"""Number of harts of a guest on QEMU, if the guest gives none."""

# The data disk's number: the machine's disks 1 and 2 are the root disk and the job's.
DATA_DISK = 3

BOOTED, FIRST_COMMAND = 0, 1
"""Milestones that init sets: the first before it reads the disks, the second before its first command (spec/platform.md)."""

CRASHED, TIME_LIMIT, NO_STATUS = "crashed", "time limit", "no status"
"""Ways in which a guest fails: it crashes, exceeds the time limit, or ends without a status."""

# Meaning of the machine's exit statuses.
_ENDS = {3: (CRASHED, "the guest crashed or rebooted"), 4: (TIME_LIMIT, "the run is longer than --max-seconds")}


@dataclass(frozen=True)
class Guest:
    """A guest to boot."""

    kernel: Path
    root: Path
    data: Path | None = None
    """Data disk (label trapless-data)."""
    faults: tuple[str, ...] = ()
    """Faults of disks (docs/reference/nvme.md); the data disk is DATA_DISK."""
    data_options: str = ""
    """Options of the data disk's drive and namespaces, as for the machine's --disk (docs/reference/nvme.md); not on QEMU."""
    job_options: str = ""
    """Options of the job disk's drive."""
    data_kept: bool = False
    """Whether writes to the data disk go to the file; otherwise they are dropped at the end."""
    profile: str = "vc707"
    settings: tuple[str, ...] = ()
    """Single profile values, `key=value`."""
    detail: str | None = None
    """Which part of the run has detailed timing (machine/crates/cli, --detail)."""
    options: tuple[str, ...] = ()
    """Additional options of the machine."""
    memory: str | None = None
    harts: int | None = None
    smu: bool = True
    arch: Arch = RISCV
    """Architectures other than RISC-V run only on QEMU."""
    cpu: str | None = None
    """QEMU's -cpu."""
    threads: bool = False
    """Whether QEMU gives each x86 processor a separate host thread (see qemu_command)."""
    readahead: int | None = 0
    """KB that Linux reads ahead on the job's and the data disk (init writes it to read_ahead_kb); None: Linux's default. It is 0
    unless `run` says otherwise, as in the papers, because experiments and checks look at misses."""
    populate: str | None = "sync"
    """When entries are armed (hwdp.populate). `sync`: in mmap(), as in the papers. None: Linux's default, at the first miss in
    each page table, unless the command line says otherwise."""
    append: str = ""
    """Text to add to the kernel's command line."""
    quiet: bool = True
    max_seconds: float | None = None
    """Simulated seconds (on QEMU: host seconds) after which the run is stopped."""

    def command_line(self) -> str:
        """Return the kernel's command line."""
        readahead = "" if self.readahead is None else f"trapless.readahead={self.readahead}"
        populate = f"hwdp.populate={self.populate}" if self.populate else ""
        return " ".join(part for part in (BOOT, "quiet" if self.quiet else "earlycon=sbi", readahead, populate, self.append)
                        if part)


@dataclass
class Outcome:
    """Result of a run."""

    status: int
    """Exit status of the guest's command."""
    stats: dict = field(default_factory=dict)
    """The machine's record (stats.json); empty on QEMU."""
    console: str = ""
    """Output on the guest's console, if it was captured."""
    messages: str = ""
    """Messages of the simulator itself."""
    host_seconds: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)
    """How much the guest's kernel counters grew while the command ran (job.read_counters)."""
    readahead: int | None = None
    """Linux's readahead on the data disk at the end of the run, in KB; None without such a disk."""


def first_command(stats: dict) -> dict:
    """Return the milestone in the machine's record at which the guest's first command began."""
    return next(milestone for milestone in stats["milestones"] if milestone["number"] == FIRST_COMMAND)


class GuestError(UserError):
    """The guest did not end normally. The cause is in the guest: the same run would end in the same way again."""

    def __init__(self, how: str, text: str, outcome: Outcome) -> None:
        """Make the error. `how` is CRASHED, TIME_LIMIT or NO_STATUS. The outcome's status is then not the exit status of the
        command."""
        super().__init__(text)
        self.how, self.outcome = how, outcome


def machine_command(program: Path, guest: Guest, job_disk: Path, stats: Path, console: str, interactive: bool = False,
                    checkpoint: Path | None = None) -> list[str]:
    """Return the machine's command line for this guest, from its boot or from a checkpoint. The root disk has blocks of 512
    bytes, the unit of its partition table. UserError if the kernel does not support all harts."""
    harts.check(guest.kernel, harts.of_machine(guest.profile, guest.settings, guest.harts))
    begin = (["resume", str(checkpoint)] if checkpoint else
             ["run", "--kernel", str(guest.kernel), "--append", guest.command_line()])
    command = [str(program), *begin, "--profile", guest.profile, "--disk", f"{guest.root},snapshot,block=512",
               "--disk", _disk(job_disk, guest.job_options)]
    for setting in guest.settings:
        command += ["--set", setting]
    for fault in guest.faults:
        command += ["--fault", fault]
    if guest.data:
        if not guest.data_kept and says_rw(guest.data_options):
            raise UserError(f"{guest.data},{guest.data_options}: leave rw out: what the guest writes to this disk is dropped")
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


def says_rw(options: str) -> bool:
    """Whether the drive's options make its first image writable. An `rw` after `snapshot` would cancel the `snapshot`."""
    return "rw" in options.partition("namespace=")[0].split(",")


def qemu_command(guest: Guest, job_disk: Path) -> list[str]:
    """Return QEMU's command line for this guest. It uses QEMU's own board, with NVMe disks only.

    Interrupts are messages, which on RISC-V need AIA: with a shared interrupt line, QEMU 7.2's NVMe sometimes loses an interrupt,
    and the driver then waits 30 s. x86 processors share one host thread. With one thread each, a processor may run into the int3
    of a half-patched instruction after Linux has already completed the patch, and the guest dies. That is rare. `threads` accepts
    the risk for guests whose processors are always busy, which run badly on one thread. If a guest dies in this way, run_on_qemu
    boots it again.
    """
    processors = guest.harts or QEMU_HARTS
    harts.check(guest.kernel, processors)
    # An early console, because run_on_qemu must know why a guest died.
    board, append = "q35", f"{guest.command_line().replace(' earlycon=sbi', '')} earlyprintk=serial"
    if guest.arch is RISCV:
        board, append = "virt,aia=aplic-imsic", guest.command_line().replace("ttyS0", "hvc0")
    command = [f"qemu-system-{guest.arch.machine}", "-M", board, "-display", "none", "-serial", "mon:stdio",
               "-no-reboot", "-nic", "none", "-smp", str(processors), "-m", guest.memory or "1G",
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
                   interactive: bool = False, keep_stats: Path | None = None, from_checkpoint: bool = False,
                   host_limit: float | None = None) -> Outcome:
    """Boot `guest` on the machine and do `job`. Files of /job/out go to `out`, the machine's record to `keep_stats`; `show`
    passes the console through. With `from_checkpoint`, the run continues from a boot that many runs share. It is stopped after
    `host_limit` seconds of the host."""
    with workspace() as folder:
        disk, stats_file = folder / "job.img", folder / "stats.json"
        jobs.write_disk(job, disk)
        boot = checkpoint(program, guest, disk.stat().st_size, host_limit) if from_checkpoint else None
        command = machine_command(program, guest, disk, stats_file, "-", interactive, boot)
        try:
            outcome = run_machine(command, stats_file, show, interactive, host_limit)
            if show:
                sys.stderr.write(outcome.messages)
            return _collect(outcome, disk, out, interactive)
        finally:
            # Done last, so that an error here loses no other result; and done however the guest ended.
            if keep_stats and stats_file.exists():
                _keep(stats_file, keep_stats)


def _keep(stats: Path, place: Path) -> None:
    try:
        shutil.copy(stats, place)
    except OSError as error:
        raise disk_error(error, place) from error


def run_machine(command: list[str], stats: Path, show: bool = False, interactive: bool = False,
                host_limit: float | None = None) -> Outcome:
    """Run the machine, which leaves its record in `stats`. GuestError if the guest did not end normally; UserError if the machine
    did not (a bad option, or an error of the host)."""
    ended = process.run(command, show, interactive, host_limit)
    if ended.status == 130:
        raise KeyboardInterrupt
    if ended.status == 2:
        raise UserError(_complaint(ended.messages) or "the machine refused its command line")
    found = json.loads(stats.read_text()) if stats.exists() else {}
    outcome = Outcome(0, found, ended.console, ended.messages, ended.host_seconds)
    if ended.status in _ENDS:
        how, text = _ENDS[ended.status]
        raise GuestError(how, f"{text}; its last words: {_last_words(ended) or '(none)'}", outcome)
    if ended.status != 0:
        raise UserError(f"the machine ended with status {ended.status}; its last words: {_last_words(ended) or '(none)'}")
    return outcome


_BOOTING: dict[str, threading.Lock] = defaultdict(threading.Lock)
_TIMES = re.compile(
    r"core\..*|detail\..*|smu\.\w+_(cycles|ns)|ssd\.(\w+_us|mb_per_s|latency|\w+_shape|seed)"
    r"|machine\.(quantum_cycles|thread_turn_cycles|walk_cache_entries|sbi_call_cycles)")


def is_time(setting: str) -> bool:
    """Whether this profile value (`key=value`) may differ from its value at the boot. It may if it is a time, or configures state
    that checkpoints do not contain (caches, TLBs, predictors). It may not if the guest's kernel has already seen or used it."""
    return bool(_TIMES.fullmatch(setting.partition("=")[0]))


def checkpoint(program: Path, guest: Guest, job_bytes: int, host_limit: float | None = None) -> Path:
    """Return a checkpoint from which this guest continues with any job disk of this size. It is taken before init reads a disk.

    The checkpoint is cached by content. Guests that differ only in times and in the content of their disks share it. So that it
    does not depend on which guest boots first, the boot uses the profile's own times and empty disks.
    """
    sizes = [job_bytes, guest.data.stat().st_size if guest.data else 0]
    shape = replace(guest, settings=tuple(setting for setting in guest.settings if not is_time(setting)), detail=None,
                    data_kept=False, max_seconds=None)
    described = repr((replace(shape, kernel=Path(), root=Path(), data=None), shape.command_line(), sizes))
    key = content_key(described, *(file_key(path) for path in (program, guest.kernel, guest.root, *named_files(shape))))

    def boot(out: Path) -> None:
        disks = [out / name for name in ("job.img", "data.img")]
        for disk, size in zip(disks, sizes, strict=True):
            with open(disk, "wb") as empty:
                empty.truncate(size)
        options = (*guest.options, "--checkpoint", str(out / "machine"), "--checkpoint-at", f"milestone:{BOOTED}")
        booted = replace(shape, data=disks[1] if guest.data else None, options=options, max_seconds=guest.max_seconds)
        command = machine_command(program, booted, disks[0], out / "stats.json", "-")
        outcome = run_machine(command, out / "stats.json", host_limit=host_limit)
        if not (out / "machine").is_dir():
            raise GuestError(NO_STATUS, f"the guest ended during its boot; its last words: {last_line(outcome.console)}", outcome)
        for disk in disks:
            disk.unlink()

    # Threads of one sweep wait here without a message; waiting for another process prints one.
    with _BOOTING[key]:
        return cached("checkpoint", key, "booting once for many runs", boot) / "machine"


def named_files(guest: Guest) -> list[Path]:
    """Return the files that the guest's profile, settings and drives name: profiles and drives of the user, and the drive that
    such a profile names."""
    drives = [part for options in (guest.data_options, guest.job_options) for part in options.split(",")]
    named = [guest.profile, *(text.partition("=")[2] for text in (*guest.settings, *drives))]
    found = [Path(name) for name in named if name and Path(name).is_file()]
    return found + [drive for path in found if (drive := _drive_of(path))]


def _drive_of(profile: Path) -> Path | None:
    """Return the drive file that a profile file names. If the file is not a valid profile, return None: the machine reports the
    error."""
    try:
        drive = tomllib.loads(profile.read_text()).get("ssd")
    except (OSError, ValueError):
        return None
    return Path(drive) if isinstance(drive, str) and Path(drive).is_file() else None


QEMU_DIED = "Oops: int3"
"""Text in the console of a guest that died of QEMU's threads (see qemu_command). Our own code has no breakpoints."""
BOOTS = 5
"""How often such a guest is booted at most. On a busy host, one boot in ten dies in this way."""


def run_on_qemu(guest: Guest, job: jobs.Job, out: Path | None = None, *, show: bool = False,
                interactive: bool = False) -> Outcome:
    """Boot `guest` on QEMU and do `job`."""
    with workspace() as folder:
        disk = folder / "job.img"
        for again in reversed(range(BOOTS)):
            jobs.write_disk(job, disk)
            # On hvc0, OpenSBI adds a carriage return to the terminal's own.
            ended = process.run(qemu_command(guest, disk), show, interactive, guest.max_seconds or 600,
                                returns=2 if guest.arch is RISCV else 1)
            if not (again and guest.threads and not guest.data_kept and QEMU_DIED in ended.console):
                break
            say("QEMU let a processor execute the int3 of a patch that was already complete: booting again")
        if ended.status != 0:
            raise UserError(f"QEMU ended with status {ended.status}: {last_line(ended.messages or ended.console)}")
        outcome = Outcome(0, {}, ended.console, ended.messages, ended.host_seconds)
        return _collect(outcome, disk, out, interactive)


def _collect(outcome: Outcome, disk: Path, out: Path | None, interactive: bool) -> Outcome:
    status = jobs.read_number(disk, "/status")
    if status is None and not interactive:
        text = f"the guest ended before its command did; its last words: {last_line(outcome.console)}"
        raise GuestError(NO_STATUS, text, outcome)
    outcome.status, outcome.readahead = status or 0, jobs.read_number(disk, "/readahead")
    outcome.counters = jobs.read_counters(disk)
    if out is not None:
        fetch.tree(disk, "/out", out)
    return outcome


def _complaint(text: str) -> str:
    """Return the machine's message about bad input: its first line with "error", otherwise its last line."""
    lines = [line for line in text.splitlines() if line.startswith("error: ")]
    return (lines[0] if lines else last_line(text)).removeprefix("error: ").removeprefix("trapless-machine: ")


PANIC = "Kernel panic - not syncing: "


def _last_words(ended: process.Ended) -> str:
    """Return the kernel's reason for a panic, if there is one, because much output follows it; otherwise the last line."""
    panics = [line.strip() for line in ended.console.splitlines() if PANIC in line]
    return panics[0] if panics else last_line(ended.messages + ended.console)


def last_line(text: str) -> str:
    """Return the last line that is not blank."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
