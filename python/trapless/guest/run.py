# SPDX-License-Identifier: Apache-2.0
"""`./trapless run`: one command in a guest, or one bare-metal ELF file."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from trapless.base.arguments import check_settings, twice
from trapless.base.outputs import output_file, output_folder
from trapless.base.ui import UserError, say
from trapless.guest import atomic, build, ending, served
from trapless.guest import boot as guests
from trapless.guest.images import dataset, ext4, rootfs
from trapless.guest.job import KINDS, Job, command_job
from trapless.guest.programs import own

NOT_FOUND = 127
"""Exit status of a shell that does not find the command."""
MODES = ("ro", "rw", "snapshot")
"""Options that decide whether writes to a namespace are kept."""
_DRIVE = re.compile(rf",(?=(?:block|ssd|namespace)=|(?:{'|'.join(MODES)})(?:,|$))")
"""The comma before the first option of a drive."""
LINUX_READAHEAD = 128
"""Linux's readahead in KB for a drive that reports no optimal size, like the drives of the machine and of QEMU."""
_MOST_READAHEAD = (1 << 32) - 4
"""Largest readahead that Linux accepts, in KB."""


@dataclass(frozen=True)
class Attribute:
    """Which cycles the machine must charge to tasks and functions, and where it writes the result."""

    out: Path
    since: str
    """`start`, `roi`, `milestone:N` or `instructions:N`."""
    symbols: tuple[str, ...] = ()
    """Symbol files, FILE[@BASE]."""
    categories: Path | None = None

    def options(self) -> list[str]:
        """Return the machine's options."""
        options = ["--attribute", str(self.out), "--attribute-from", self.since]
        for file in self.symbols:
            options += ["--symbols", file]
        return options + (["--categories", str(self.categories)] if self.categories else [])


def _option(default: object, about: str, *, word: str = "", shown: str | None = None, kind: type = str,
            choices: tuple[str, ...] = (), bare: bool = False) -> Any:  # noqa: ANN401
    """A field that users set: by `--WORD` on the command line, by WORD in sweeps, by its own name in Python.

    `shown` is the name of the value in help texts. `kind` is its type; for a list, the user repeats the option. `bare` says that
    the option also applies to bare-metal programs."""
    return field(default=default, metadata={"about": about, "word": word, "shown": shown, "kind": kind, "choices": choices,
                                            "bare": bare})


@dataclass(frozen=True)
class Request:
    """What the user asked for, from the command line, a sweep or Python down to the guest and the machine's arguments."""

    argv: list[str]
    kind: str | None = _option(None, "how the command's mappings of files below /data are paged", choices=KINDS)
    share: bool = _option(False, "let threads that map the same file share one mapping", kind=bool)
    inputs: tuple[Path, ...] = _option((), "file or folder to copy into the command's folder", word="in", shown="FILE",
                                       kind=list)
    packages: tuple[str, ...] = _option((), "Debian package to install in the guest", word="package", shown="NAME", kind=list)
    cflags: str = _option("", "compiler options if the command is a C or C++ file: '-O3 -llmdb' with --package liblmdb-dev",
                          shown="TEXT")
    data: str | None = _option(None, "data disk at /data: random.bin of this size, or an ext4 image; then options of the "
                                     "machine's drive: ,block=4096 ,ssd=NAME ,namespace=IMAGE", shown="SIZE|IMAGE[,OPTION...]")
    readahead: int | None = _option(None, "how much Linux reads ahead on the disks of /data and /job (default: 0 with --kind, "
                                          "otherwise Linux's default, 128)", shown="KB", kind=int)
    faults: tuple[str, ...] = _option((), "make the data disk's drive fail: media-error,every=100 or hang,op=read,skip=100 "
                                          "(docs/reference/nvme.md)", word="fault", shown="KIND[,KEY=VALUE...]", kind=list)
    memory: str | None = _option(None, "guest memory, for instance 256M", shown="SIZE", bare=True)
    harts: int | None = _option(None, "hardware threads of the machine (default: the profile's)", shown="N", kind=int, bare=True)
    append: str = _option("", "text to add to the kernel's command line", shown="TEXT")
    stock: bool = _option(False, "boot the unmodified kernel", kind=bool)
    series: tuple[str, ...] = _option(build.SERIES, "series that the kernel has: hwdp (default), stc", shown="NAME[,NAME]",
                                      kind=list)
    simulator: str = _option("machine", "what the guest runs on (default machine)", word="on", choices=("machine", "qemu"))
    arch: str = _option(build.RISCV.kernel, "architecture of the guest (default riscv)", choices=tuple(build.ARCHS))
    verbose: bool = _option(False, "show the kernel's messages", kind=bool)
    max_seconds: float | None = _option(None, "give up after S simulated seconds", word="max-seconds", shown="S", kind=float,
                                        bare=True)
    detail: str | None = _option(None, "use detailed timing: from `start`, in `roi`s, from `milestone:N` or `instructions:N` on",
                                 shown="FROM", bare=True)
    profile: str = _option("vc707", "profile of the machine (default vc707)", shown="NAME|FILE", bare=True)
    settings: tuple[str, ...] = _option((), "change one value of the profile", word="set", shown="KEY=VALUE", kind=list,
                                         bare=True)
    kernel: Path | None = _option(None, "boot this kernel instead of the patched one", shown="IMAGE", kind=Path)
    out: Path | None = None
    stats: Path | None = None
    interactive: bool = False
    check_atomic: bool = False
    """Whether the machine checks every miss that the SMU serves (guest/atomic.py)."""
    options: tuple[str, ...] = ()
    """Additional options of the machine."""
    attribute: Attribute | None = None
    """What the machine must record about cycles."""


OPTIONS: dict[str, Field] = {option.metadata["word"] or option.name: option for option in fields(Request) if option.metadata}
"""Fields that users set, by the option's name on the command line."""


def parse_size(text: str) -> int | None:
    """Return the bytes of a size like 320M or 1G; None if the text is not a size."""
    match = re.fullmatch(r"(\d+)([KMG])", text)
    return int(match[1]) << {"K": 10, "M": 20, "G": 30}[match[2]] if match else None


def file_or_name(folder: Path, name: str) -> str:
    """Return the path of a file, which is relative to `folder`, or the name of something built in."""
    return str((folder / name).absolute()) if (folder / name).is_file() else name


def _beside(folder: Path, option: str) -> str:
    """Return a drive's option with its path relative to `folder`: the machine itself uses the current folder."""
    key, _, name = option.partition("=")
    return f"ssd={file_or_name(folder, name)}" if key == "ssd" and folder != Path() else option


def parse_data(argument: str) -> tuple[str, list[str]]:
    """Split the value of `--data` into the size or image and the drive's options. UserError for a size of 0, for an empty option,
    and for an option that would replace an earlier one."""
    text, *rest = _DRIVE.split(argument, maxsplit=1)
    options = rest[0].split(",") if rest else []
    if parse_size(text) == 0:
        raise UserError(f"--data {text}: random.bin would be empty; give a size like 320M")
    if empty := [option for option in options if option in ("", "block=", "ssd=", "namespace=")]:
        raise UserError(f"--data {argument}: {empty[0] or 'an option'} is empty; give its value, or leave it out")
    namespace = 1
    given = []
    for option in options:
        key = option.partition("=")[0]
        namespace += key == "namespace"
        if key == "ssd":
            given.append("ssd")
        elif key == "block" or option in MODES:
            given.append(f"{'block' if key == 'block' else ' or '.join(MODES)} of namespace {namespace}")
    if again := twice(given):
        raise UserError(f"--data {argument}: {again} is given twice; give it once")
    return text, options


def data_disk(argument: str | None, folder: Path = Path()) -> tuple[Path | None, bool, str]:
    """Return the data disk for `--data`, whether writes to it are kept (only in the user's own image), and its options. Paths are
    relative to `folder`."""
    if argument is None:
        return None, False, ""
    text, words = parse_data(argument)
    options = ",".join(_beside(folder, option) for option in words)
    size = parse_size(text)
    if size is not None:
        if guests.says_rw(options):
            raise UserError(f"--data {argument}: leave rw out: what the guest writes to random data is dropped")
        return dataset.image(size), False, options
    image = folder / text
    if not image.is_file():
        raise UserError(f"--data {text}: neither an image file nor a size like 320M")
    if ext4.label(image) != "trapless-data":
        raise UserError(f"--data {text}: not an ext4 image with the label trapless-data (e2label sets it)")
    if ext4.is_cut_short(image):
        raise UserError(f"--data {text}: cut short: the file is shorter than its file system")
    return image, True, options


def readahead_of(kind: str | None, readahead: int | None) -> int | None:
    """Return Linux's readahead in KB for this kind of paging, or None for Linux's default. `readahead` is what the user asked
    for, or None.

    Without a kind the guest behaves like an ordinary Linux. With a kind, readahead is off, as in the papers, because these runs
    look at misses.
    """
    if readahead is None:
        return None if kind is None else 0
    if readahead < 0 or readahead % 4:
        raise UserError(f"--readahead must be 0 (off) or a positive multiple of 4 KB, not {readahead}")
    if readahead > _MOST_READAHEAD:
        raise UserError(f"--readahead {readahead}: more than Linux takes; give at most {_MOST_READAHEAD} KB")
    return readahead


def faults_of(faults: tuple[str, ...], data: bool) -> tuple[str, ...]:
    """Return the faults in the machine's form. A fault that names no disk strikes the data disk; UserError if there is none."""
    found = []
    for fault in faults:
        if key := twice(part.partition("=")[0] for part in fault.split(",")[1:]):
            raise UserError(f"--fault {fault}: {key} is given twice; give it once")
        named = any(part.startswith("disk=") for part in fault.split(","))
        if not data and (not named or f"disk={guests.DATA_DISK}" in fault.split(",")):
            raise UserError(f"--fault {fault} strikes the data disk: give --data, or disk=1 (root disk) or disk=2 (job disk)")
        found.append(fault if named else f"{fault},disk={guests.DATA_DISK}")
    return tuple(found)


def run(request: Request) -> int:
    """Boot a guest, run the command, and copy its files back. Return its exit status."""
    if request.out:
        output_folder(request.out)
    if request.stats and request.simulator == "machine":
        output_file(request.stats)
    guest, job = prepare(request)
    behind = own.left_behind(request.argv, job.inputs)
    if "--gdb" in request.options:
        say_where(request.options[request.options.index("--gdb") + 1])
    if request.simulator == "machine":
        outcome = guests.run_on_machine(build.machine(), guest, job, request.out, show=True, interactive=request.interactive,
                                        keep_stats=request.stats)
    else:
        outcome = guests.run_on_qemu(guest, job, request.out, show=True, interactive=request.interactive)
    if request.kind and (found := served.line(request.kind, outcome)):
        say(found)
    for line in what_was(request, outcome):
        say(line)
    # The guest's init reports the readahead only if it mounted /data.
    unmounted = request.data is not None and outcome.readahead is None and not request.interactive
    if unmounted:
        say("--data: nothing was mounted at /data: Linux could not read that disk's ext4")
    if outcome.status and not request.interactive:
        say(ending.of(outcome, words=False).line)
        if request.data is None and any(word.startswith("/data") for word in request.argv):
            say("no disk is mounted at /data: give --data 320M, or an image (--data FILE)")
        if behind:
            say(behind)
    if outcome.status == NOT_FOUND and (line := own.not_found(job.inputs[len(request.inputs):], request.argv,
                                                              rootfs.files(guest.root))):
        say(line)
    return outcome.status or int(unmounted or atomic.reports(outcome.stats) > 0)


def what_was(request: Request, outcome: guests.Outcome) -> list[str]:
    """Return lines about the run: the data disk's readahead at the end, what the check of atomic context found, and how often
    each fault struck.

    The command may have changed the readahead for a while; this is not detected."""
    lines = []
    if outcome.readahead is not None and outcome.readahead >= 0:
        why = "as --readahead says" if request.readahead is not None else (
            f"off with --kind {request.kind} (--readahead KB)" if request.kind else "Linux's own")
        asked = readahead_of(request.kind, request.readahead)
        if asked is None and outcome.readahead != LINUX_READAHEAD:
            why = f"changed by the command: Linux's own is {LINUX_READAHEAD} KB"
        elif asked is not None and outcome.readahead != asked:
            # Linux gives a drive the default readahead again when it resets the drive.
            why = f"changed from {asked} KB, by the command or with a reset of the drive"
        lines.append(f"readahead of /data at the end: {outcome.readahead} KB, {why}")
    lines += [line for line in [atomic.line(outcome.stats)] if line]
    return lines + [f"--fault {fault['fault']}: struck {fault['struck']} command{'' if fault['struck'] == 1 else 's'}"
                    for fault in outcome.stats.get("faults", [])]


def check(request: Request, folder: Path = Path()) -> None:
    """Raise UserError for options that no run could have, before anything is built."""
    if request.interactive and request.argv:
        raise UserError(f"--interactive: takes no command after --: {request.argv[0]}")
    if request.interactive and request.kind:
        raise UserError(f"--kind {request.kind} does not work with --interactive: in the shell, begin each command "
                        f"with hwdp -k {request.kind} -f /data/ --")
    if request.share and not request.kind:
        raise UserError("--share works only with --kind: the launcher of a kind makes threads share a mapping")
    for path in request.inputs:
        if not (folder / path).exists():
            raise UserError(f"--in {path}: no such file")
    for name, given in (("harts", request.harts), ("max-seconds", request.max_seconds)):
        if given is not None and not 0 < given < math.inf:
            raise UserError(f"--{name} must be a positive number, not {given}")
    check_settings(request.settings, request.harts, request.memory)
    if "" in request.packages:
        raise UserError("--package: is empty; give the NAME of a Debian package")
    check_kernel(request, folder)
    if request.argv:
        own.refuse(request.argv[0], folder, request.inputs)
    if request.simulator == "machine" and build.ARCHS[request.arch] is not build.RISCV:
        raise UserError(f"--arch {request.arch}: only with --on qemu")
    if request.simulator != "machine" and (odd := _of_the_machine(request)):
        raise UserError(f"{odd} does not work with --on qemu: leave one of them out")
    if request.simulator != "machine" and request.kind in ("trap", "hwdp"):
        raise UserError(f"--kind {request.kind} does not work with --on {request.simulator}, which has no SMU: "
                        "use osdp, ideal or emulated")
    # QEMU takes 0 for its own default of 128 MiB, and a number without a unit for MiB.
    if request.simulator != "machine" and request.memory is not None and not parse_size(request.memory.upper()):
        raise UserError(f"--memory {request.memory}: not a size like 256M")
    if request.interactive and not sys.stdin.isatty():
        raise UserError("--interactive: standard input is not a terminal")
    readahead_of(request.kind, request.readahead)
    faults_of(request.faults, request.data is not None)


def prepare(request: Request, folder: Path = Path()) -> tuple[guests.Guest, Job]:
    """Return the guest and its job, after building what they need. The request's paths are relative to `folder`."""
    check(request, folder)
    arch = build.ARCHS[request.arch]
    data, kept, options = data_disk(request.data, folder)
    if request.simulator != "machine" and options:
        raise UserError(f"--data {request.data}: options of the drive work only with --on machine")
    command = own.resolve(request.argv, arch, folder, request.cflags, request.packages)
    root = rootfs.image(arch, tuple(dict.fromkeys((*request.packages, *command.packages))))
    guest = guests.Guest(
        kernel=folder / request.kernel if request.kernel else build.kernel(stock=request.stock, arch=arch, series=request.series),
        root=root, data=data, data_kept=kept, data_options=options, arch=arch,
        faults=faults_of(request.faults, data is not None), readahead=readahead_of(request.kind, request.readahead),
        populate=None, profile=request.profile, settings=request.settings, memory=request.memory, harts=request.harts,
        append=" ".join(part for part in (request.append, "trapless.shell" if request.interactive else "") if part),
        quiet=not request.verbose, max_seconds=request.max_seconds, detail=request.detail,
        options=(*request.options, *(request.attribute.options() if request.attribute else ())))
    if request.check_atomic:
        guest = replace(guest, options=(*guest.options, *atomic.options(guest.kernel)))
    if command.files and not command.packages:
        own.check_needs(command.files[0], request.argv[0], rootfs.files(root), arch)
    if request.kind and command.files and own.is_static(command.files[0]):
        say(f"{request.argv[0]} is statically linked, so --kind has no effect on it; in the guest, "
            f"`hwdp -k {request.kind} -- {command.argv[0]}` pages its mappings")
    given = {path.name for path in request.inputs}
    inputs = tuple(folder / path for path in request.inputs) + tuple(path for path in command.files if path.name not in given)
    if request.interactive:
        return guest, Job("exit 0", inputs)
    return guest, command_job(command.argv, request.kind, inputs, request.share)


def check_kernel(request: Request, folder: Path = Path()) -> None:
    """Raise UserError if the kernel does not exist, or if two options name a kernel."""
    if request.stock and request.series != build.SERIES:
        raise UserError(f"--series {','.join(request.series)} does not work with --stock, which has no series: give one of them")
    if not request.kernel:
        return
    if request.stock or request.series != build.SERIES:
        raise UserError(f"--kernel {request.kernel} does not work with {'--stock' if request.stock else '--series'}: "
                        "give one of them")
    if not (folder / request.kernel).is_file():
        raise UserError(f"--kernel {request.kernel}: no such file")


def _of_the_machine(request: Request) -> str | None:
    """Return an option that only the machine has, if the request has one."""
    given = [*request.options[:1], *(f"--fault {fault}" for fault in request.faults)]
    given += ["--check-atomic"] if request.check_atomic else []
    given += [*(["--detail"] if request.detail else []), *(["--stats"] if request.stats else [])]
    given += [f"--profile {request.profile}"] if request.profile != Request.profile else []
    given += [f"--ssd {setting[4:]}" if setting.startswith("ssd=") else f"--set {setting}" for setting in request.settings]
    return given[0] if given else None


def say_where(gdb: str) -> None:
    """Print how GDB attaches. The machine's own message is shown only at the end of the run."""
    place = gdb.removesuffix(",nowait")
    place = place.removeprefix("unix:") if place.startswith("unix:") else place if ":" in place else f":{place}"
    say(f"GDB can attach: target remote {place}")


def run_elf(elf: Path, profile: str, settings: tuple[str, ...], detail: str | None = None,
            options: tuple[str, ...] = ()) -> int:
    """Run a bare-metal ELF file that ends through `tohost`; return its exit status. `options` go to the machine."""
    if not elf.is_file():
        raise UserError(f"--elf {elf}: no such file")
    command = [str(build.machine()), "elf", str(elf), "--profile", profile]
    for setting in settings:
        command += ["--set", setting]
    if detail:
        command += ["--detail", detail]
    command += options
    return subprocess.run(command, check=False).returncode

