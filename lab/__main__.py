# SPDX-License-Identifier: Apache-2.0
"""Command line of `./trapless`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lab import signals
from lab.arguments import TRACE_WORDS, Parser, parse, trace_file, twice
from lab.build import ALL_SERIES, SERIES
from lab.paths import MACHINE
from lab.runner.job import KINDS
from lab.ui import UserError, nearest, no_such, say

if TYPE_CHECKING:
    from lab import run


def _profile_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--profile", default="vc707", metavar="NAME|FILE", help="profile of the machine (default vc707)")
    command.add_argument("--ssd", metavar="NAME|FILE", help="what the drives are; the profile's if absent (docs/nvme.md)")
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
                         help="change one value of the profile")
    command.add_argument("--kernel", type=Path, metavar="IMAGE", help="another kernel than the patched one")


def _series(text: str) -> tuple[str, ...]:
    names = text.split(",")
    for name in names:
        if name not in ALL_SERIES:
            raise argparse.ArgumentTypeError(f"no such series: {name}; {nearest(name, ALL_SERIES)}")
    if name := twice(names):
        raise argparse.ArgumentTypeError(f"{name} is given twice in {text}; give it once")
    return tuple(name for name in ALL_SERIES if name in names)


def _data(text: str) -> str:
    from lab import run

    try:
        run.parse_data(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--data ")) from None
    return text


def _run_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--kind", choices=KINDS, help="how its mappings of files below /data are paged")
    command.add_argument("--share", action="store_true", help="threads that map the same file share one mapping")
    command.add_argument("--in", action="append", default=[], type=Path, metavar="FILE", dest="inputs",
                         help="file or folder that appears in the command's folder")
    command.add_argument("--package", action="append", default=[], metavar="NAME", dest="packages",
                         help="Debian package that the guest has, too")
    command.add_argument("--cflags", default="", metavar="TEXT",
                         help="for the compiler of a command that is a file of C or C++: '-O3 -llmdb', --package liblmdb-dev")
    command.add_argument("--data", type=_data, metavar="SIZE|IMAGE[,OPTION...]",
                         help="data disk at /data: random.bin of this size, or an ext4 image; then options of the machine's "
                              "drive: ,block=4096 ,ssd=NAME ,namespace=IMAGE")
    command.add_argument("--readahead", type=int, metavar="KB",
                         help="what Linux reads ahead on the disks of /data and /job, 0: nothing (default: Linux' own, 128; with "
                              "--kind 0)")
    command.add_argument("--fault", action="append", default=[], metavar="KIND[,KEY=VALUE...]", dest="faults",
                         help="make the data disk's drive fail: media-error,every=100 or hang,op=read,skip=100 (docs/nvme.md)")
    command.add_argument("--memory", metavar="SIZE", help="guest memory, for instance 256M")
    command.add_argument("--harts", type=int, metavar="N")
    command.add_argument("--append", default="", metavar="TEXT", help="more of the kernel's command line")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--stock", action="store_true", help="the unmodified kernel")
    which.add_argument("--series", type=_series, default=SERIES, metavar="NAME[,NAME]",
                       help="series that the kernel has: hwdp (the default), stc")
    command.add_argument("--on", "--simulator", choices=("machine", "qemu"), default="machine", dest="simulator",
                         help="what the guest runs on (default machine)")
    command.add_argument("--arch", choices=("riscv", "x86_64"), default="riscv", help="architecture of the guest (default riscv)")
    command.add_argument("--verbose", action="store_true", help="show the kernel's messages")
    command.add_argument("--max-seconds", type=float, metavar="S", help="give up after S simulated seconds")
    command.add_argument("--detail", metavar="FROM",
                         help="detailed timing: from `start`, in `roi`s, from `milestone:N` or `instructions:N` on")
    command.add_argument("--elf", type=Path, metavar="FILE", help="run this instead; exit status from tohost")
    _profile_options(command)


def parser() -> Parser:
    """The whole command line."""
    top = Parser(prog="trapless", description="Demand paging without page faults: machine, kernel, laboratory.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="fio with ideal, osdp and hwdp paging: table, results.json, report.html")
    demo.add_argument("--out", type=Path, default=Path("out/demo"), metavar="DIR", help="where results go (default out/demo)")
    demo.add_argument("--threads", type=int, default=1, metavar="N", help="fio threads on one mapping (default 1)")
    demo.add_argument("--serial", action="store_true", help="one kind at a time: true host speed")
    demo.add_argument("--quick", action="store_true", help="a quarter of the reads")
    _profile_options(demo)

    run = commands.add_parser("run", help="run any command in a guest, or a bare-metal ELF file",
                              usage="trapless run [OPTIONS] -- COMMAND [ARGUMENT]... | --interactive | --elf FILE")
    _run_options(run)
    run.add_argument("--out", type=Path, metavar="DIR", help="host folder for what the command writes to /job/out")
    run.add_argument("--interactive", action="store_true", help="a shell on the console")
    run.add_argument("--trace", type=trace_file, metavar="FILE[,...]",
                     help="trace memory accesses: grain=page|line, from=start|roi|milestone:N|instructions:N, kernel")
    run.add_argument("--smu", choices=("model", "rtl"), default="model",
                     help="the SMU: the reference model, or its RTL under Verilator (built when it is not there)")
    run.add_argument("--gdb", metavar="PLACE[,nowait]", help="wait for GDB at PORT, HOST:PORT or unix:PATH")
    run.add_argument("--check-atomic", action="store_true",
                     help="look at every miss that the SMU serves; fail if the guest's Linux asks for one in atomic context")
    run.add_argument("--stats", type=Path, metavar="FILE", help="keep the machine's record (JSON)")

    profile = commands.add_parser("profile", help="where every cycle of a command goes: tables, timeline, flame graph",
                                  usage="trapless profile [OPTIONS] -- COMMAND [ARGUMENT]... | --elf FILE")
    _run_options(profile)
    profile.add_argument("--out", type=Path, default=Path("out/profile"), metavar="DIR",
                         help="where results go (default out/profile; the command's own files to DIR/job)")
    profile.add_argument("--from", metavar="FROM", dest="since",
                         help="look from `start`, in `roi`s (with --kind), from `milestone:N` (1: else) or `instructions:N` on")
    profile.add_argument("--symbols", action="append", default=[], metavar="FILE[@BASE]",
                         help="an ELF file of the guest's (loaded at this hexadecimal address) whose functions have names")
    profile.add_argument("--compare", metavar="KIND,...",
                         help="once for each of these kinds, and a table of them all")
    profile.add_argument("--categories", type=Path, metavar="FILE", help="another table of categories (docs/seeing.md)")

    experiment = commands.add_parser("experiment", help="experiments: records, tables, plots in out/NAME; without a name, a list")
    experiment.add_argument("name", nargs="*", metavar="NAME", help="an experiment; all: every one")
    experiment.add_argument("--out", type=Path, metavar="DIR", help="where results go (default out/NAME; of several, DIR/NAME)")
    experiment.add_argument("--kinds", metavar="KIND,...", help="only these kinds")
    experiment.add_argument("--quick", action="store_true", help="smaller loads")
    experiment.add_argument("--serial", action="store_true", help="one run at a time")
    experiment.add_argument("--measured", action="store_true", help="show the records of the last run again, do not run")
    experiment.add_argument("--docs", action="store_true", help="write the tables into the documents that state them")
    experiment.add_argument("--traces", type=Path, metavar="DIR",
                            help="aspf-*: where the traces are (default: where `./trapless workloads` leaves them)")
    experiment.add_argument("--frames", type=int, metavar="N",
                            help="aspf-*: memory in pages of 4 KiB (default: by the paper's rule)")
    experiment.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: two, aspf-*: all cores)")
    _profile_options(experiment)

    report = commands.add_parser("report", help="a site of all that was measured, the papers' values beside ours")
    report.add_argument("--from", type=Path, default=Path("out"), metavar="DIR", dest="source",
                        help="where experiments left their results (default out)")
    report.add_argument("--out", type=Path, default=Path("out/report"), metavar="DIR", help="where pages go (default out/report)")

    compare = commands.add_parser("compare", help="two results of an experiment: differences with their intervals")
    compare.add_argument("a", type=Path, metavar="A", help="folder of an experiment's results, or its runs.jsonl")
    compare.add_argument("b", type=Path, metavar="B", help="another one: what changed from A to B?")
    compare.add_argument("--all", action="store_true", help="every figure of the runs, not only those of the tables")
    compare.add_argument("--json", type=Path, metavar="FILE", help="write the comparison here, too")

    sweep = commands.add_parser("sweep", help="guests, or the paging simulator, with every combination of the values in a file")
    sweep.add_argument("file", type=Path, metavar="FILE.toml", help="what is fixed and what to vary (docs/sweeps.md)")
    sweep.add_argument("--out", type=Path, metavar="DIR", help="where results go (default out/NAME of the file)")
    engine = sweep.add_mutually_exclusive_group()
    engine.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: all cores)")
    engine.add_argument("--workers", type=int, metavar="N", help="by so many worker processes")
    engine.add_argument("--scheduler", metavar="ADDRESS", help="by the workers of Dask's scheduler there, on many machines")
    worker = commands.add_parser("worker", help="run points of sweeps for the scheduler at this address, until it ends")
    worker.add_argument("address", metavar="ADDRESS", help="of Dask's scheduler, for instance tcp://head:8786")
    worker.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: all cores)")

    soak = commands.add_parser("soak", help="many misses under memory pressure, on a kernel that checks itself")
    soak.add_argument("--misses", type=int, default=2_000_000, metavar="N",
                      help="at least so many, in boots of 250000 (default 2000000)")
    soak.add_argument("--kernel", default="debug", metavar="debug|kcsan|plain|IMAGE",
                      help="with all checks (default), the ordinary patched one, or another")
    soak.add_argument("--kind", choices=KINDS[2:], default="hwdp")
    soak.add_argument("--seed", type=int, default=1, metavar="N", help="of the first boot; the next one has the next (default 1)")
    soak.add_argument("--data", type=int, default=1024, metavar="MIB",
                      help="size of the file in MiB, 256 at least; memory is a quarter of it, and some more (default 1024)")
    soak.add_argument("--out", type=Path, default=Path("out/soak"), metavar="DIR", help="where logs go (default out/soak)")

    selftests = commands.add_parser("selftests", help="the kernel's own mm selftests: unpatched kernel, feature off and on")
    selftests.add_argument("test", nargs="*", help="only these")
    selftests.add_argument("--kind", choices=KINDS[2:], default="hwdp")
    selftests.add_argument("--full", action="store_true", help="on kernels with all that the tests can test (builds two)")
    selftests.add_argument("--series", type=_series, default=SERIES, metavar="NAME", help="hwdp (the default) or stc")
    selftests.add_argument("--kernel", type=Path, metavar="IMAGE", help="another kernel than the patched one")
    selftests.add_argument("--out", type=Path, default=Path("out/selftests"), metavar="DIR",
                           help="where logs go (default out/selftests)")

    attack = commands.add_parser("attack", help="can an unprivileged program read another user's blocks?")
    attack.add_argument("--rounds", type=int, default=10_000, metavar="N", help="rounds that reuse a block (default 10000)")
    attack.add_argument("--way", choices=("truncate", "punch", "collapse", "unmap", "mixed"), default="mixed",
                        help="how blocks are given back (default mixed)")
    attack.add_argument("--kind", choices=KINDS[2:], default="hwdp")
    attack.add_argument("--seed", type=int, default=1, metavar="N")
    attack.add_argument("--kernel", type=Path, metavar="IMAGE", help="another kernel than the patched one")

    torture = commands.add_parser("torture", help="random sequences of all that changes an address space: kinds may not show")
    torture.add_argument("--sequences", type=int, default=10_000, metavar="N", help="how many (default 10000)")
    torture.add_argument("--kind", choices=KINDS, help="only this one (default: each)")
    torture.add_argument("--share", action="store_true", help="only with --share of run (default: with it and without)")
    torture.add_argument("--seed", type=int, default=1, metavar="N", help="of the first sequence (default 1)")
    torture.add_argument("--kernel", type=Path, metavar="IMAGE", help="another kernel than the patched one")

    stc = commands.add_parser("stc", help="no page fault is led to a wrong page table: races, on kernels that check themselves")
    stc.add_argument("test", nargs="*", help="only these tests of stc-check")
    stc.add_argument("--kernel", default="plain", metavar="plain|debug|kcsan|IMAGE",
                     help="with KASAN, lockdep and more, with KCSAN (x86_64), or an image (default plain)")
    stc.add_argument("--on", choices=("machine", "riscv64", "x86_64"), default="machine",
                     help="the machine, or QEMU with such a processor (default machine)")
    stc.add_argument("--design", action="append", metavar="WORDS", help="boot parameter stc=; can be repeated (default: many)")
    stc.add_argument("--factor", type=int, default=1, metavar="N", help="so many times the steps (default 1)")
    stc.add_argument("--seed", type=int, default=1, metavar="N")
    stc.add_argument("--append", default="", metavar="TEXT", help="more of the kernel's command line")
    stc.add_argument("--out", type=Path, default=Path("out/stc"), metavar="DIR", help="where logs go (default out/stc)")

    test = commands.add_parser("test", help="run all tests")
    test.add_argument("--all", action="store_true", help="the long ones, too")
    test.add_argument("suite", nargs="*", help="only these suites")

    claims = commands.add_parser("claims", help="measure again every number that README and docs state")
    claims.add_argument("--area", metavar="NAME", help="only this area")
    claims.add_argument("--quick", action="store_true", help="with smaller loads")
    claims.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")

    speed = commands.add_parser("speed", help="instructions a second of the machine and of QEMU, side by side")
    speed.add_argument("--out", type=Path, default=Path("out/speed"), metavar="DIR", help="where speed.json goes")
    speed.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each; the median counts (default 3)")

    repeat = commands.add_parser("repeat", help="the same run many times, on an idle and on a busy host: all must be identical")
    repeat.add_argument("--runs", type=int, default=20, metavar="N", help="how many (default 20)")

    trace = commands.add_parser("trace", help="what is in a memory access trace (run --trace), or record a program of this host",
                                usage="trapless trace info|dump FILE | [OPTIONS] -- COMMAND [ARGUMENT]...")
    trace.add_argument("what", nargs="?", metavar="|".join(TRACE_WORDS), help="sums, or every entry")
    trace.add_argument("file", nargs="?", type=Path, metavar="FILE")
    trace.add_argument("--out", metavar="FILE", help="where the command's trace goes (default COMMAND.trace)")
    trace.add_argument("--skip", metavar="N", help="leave out so many accesses at the beginning (k, M, G: thousands, ...)")
    trace.add_argument("--limit", metavar="N", help="end the command after so many accesses")

    workloads = commands.add_parser("workloads", help="install, prepare and record the paging simulator's programs")
    workloads.add_argument("name", nargs="*", metavar="NAME", help="only these")
    workloads.add_argument("--accesses", type=int, metavar="N", help="of each (default: those of the figures, 500 M)")
    workloads.add_argument("--out", type=Path, metavar="DIR", help="where the traces go (default traces/ in the cache)")
    workloads.add_argument("--jobs", default=2, type=int, metavar="N", help="recordings at a time (default 2)")
    for name, what in (
        ("difftest", "programs on the machine and on QEMU, compared and bisected (difftest --help says more)"),
        ("lockstep", "one guest on both engines, compared as they go; Linux if nothing else is named (lockstep --help)"),
        ("fuzz", "devices, firmware calls, page tables and input files under random use (fuzz --help)"),
    ):
        check = commands.add_parser(name, help=what, add_help=False, prefix_chars="\0")
        check.add_argument("arguments", nargs="*", metavar="ARGUMENT")

    python = commands.add_parser("python", help="Python with `import trapless` (docs/python.md)", add_help=False,
                                 prefix_chars="\0")
    python.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="as Python's")

    commands.add_parser("doctor", help="say what is there and what is missing")
    commands.add_parser("setup", help="install and build what is missing")
    commands.add_parser("help", help="show this help, or a command's").add_argument("about", nargs="?", metavar="COMMAND")
    return top


def dispatch(args: argparse.Namespace, guest_argv: list[str]) -> int:
    """Run one command; its exit status. `guest_argv` is what stands after `--`."""
    if args.command == "python":
        os.execv(sys.executable, [sys.executable, *args.arguments, *(["--", *guest_argv] if guest_argv else [])])
    if guest_argv and args.command not in ("run", "profile", "trace"):
        raise UserError(f"{args.command}: takes nothing after --")
    if args.command == "demo":
        from lab import demo

        _count(args, "threads")
        return demo.run(args.out, args.profile, tuple(args.settings), args.threads, args.kernel, args.serial, args.quick)
    if args.command == "experiment":
        return _experiment(args)
    if args.command == "report":
        from lab.report import site

        return site.run(args.source, args.out)
    if args.command == "compare":
        from lab import compare

        return compare.run(args.a, args.b, args.all, args.json)
    if args.command == "sweep":
        from lab.sweeps import command
        from lab.sweeps.engine import Engine

        engine = Engine(_count(args, "jobs"), _count(args, "workers"), args.scheduler)
        return command.run(args.file, args.out or Path("out") / args.file.stem, engine)
    if args.command == "worker":
        from lab.sweeps import engine

        engine.work(args.address, _count(args, "jobs"))
    if args.command == "selftests":
        from lab import selftests

        return selftests.run(selftests.Request(kind=args.kind, series=args.series, kernel=args.kernel, only=tuple(args.test),
                                               full=args.full, out=args.out))
    if args.command == "soak":
        from lab import soak

        for option, least in (("misses", 1), ("seed", 0), ("data", soak.LEAST_MIB)):
            _count(args, option, least)
        image = None if args.kernel in soak.KERNELS else Path(args.kernel)
        if image and not image.is_file():
            raise no_such("kernel", args.kernel, tuple(soak.KERNELS), "--kernel")
        return soak.run(soak.Request(misses=args.misses, checks="plain" if image else args.kernel, kind=args.kind, kernel=image,
                                     out=args.out, data_mib=args.data, seed=args.seed))
    if args.command == "attack":
        from lab.checks import attack

        _count(args, "seed", 0)
        return attack.run(args.rounds, args.way, args.seed, args.kernel, args.kind)
    if args.command == "torture":
        from lab.checks import torture

        return torture.run(args.sequences, args.seed, args.kind, args.share, args.kernel)
    if args.command == "stc":
        from lab.checks import stc

        _count(args, "factor")
        _count(args, "seed", 0)
        kernel = args.kernel if args.kernel in stc.KERNELS else Path(args.kernel)
        if isinstance(kernel, Path) and not kernel.is_file():
            raise no_such("kernel", args.kernel, stc.KERNELS, "--kernel")
        check = stc.Check(args.on, kernel, factor=args.factor, seed=args.seed, names=tuple(args.test), append=args.append)
        return stc.run(check, tuple(args.design or stc.DESIGNS), args.out)
    if args.command == "run":
        return _run(args, guest_argv)
    if args.command == "profile":
        return _profile(args, guest_argv)
    if args.command == "test":
        from lab import testing

        return testing.run(args.all, args.suite)
    if args.command == "claims":
        from lab import claims

        return claims.run(args.area, args.quick, args.json)
    if args.command == "speed":
        from lab import speed

        _count(args, "rounds")
        return speed.run(args.out, args.rounds)
    if args.command == "repeat":
        from lab.checks import repeat

        _count(args, "runs", 2)
        return repeat.run(args.runs)
    if args.command == "trace":
        return _trace(args, guest_argv)
    if args.command == "workloads":
        from lab.workloads import record

        for option in ("accesses", "jobs"):
            _count(args, option)
        return record.run(args.name, args.accesses or record.ACCESSES, args.out, args.jobs)
    if args.command in ("difftest", "lockstep", "fuzz"):
        from lab.checks import trust

        return trust.run(args.command, args.arguments)
    if args.command == "doctor":
        from lab import doctor

        return doctor.run()
    if args.command == "setup":
        from lab import doctor

        return doctor.setup()
    return _help(args.about)


def _help(command: str | None) -> int:
    top = parser()
    commands = top.commands()
    if command and command not in commands:
        raise no_such("command", command, commands, "help")
    (commands[command] if command else top).print_help()
    return 0


def _trace(args: argparse.Namespace, argv: list[str]) -> int:
    from lab import build

    options = [word for name in ("out", "skip", "limit") if getattr(args, name) for word in (f"--{name}", getattr(args, name))]
    if args.what:
        if argv or options or not args.file:
            raise UserError(f"trace {args.what}: takes one FILE and nothing else")
        return subprocess.run([build.machine(), "trace", args.what, args.file], check=False).returncode
    if not argv:
        raise UserError("trace: neither info|dump FILE nor a command (trapless trace [OPTIONS] -- COMMAND ...)")
    return subprocess.run([build.pagesim(), "record", *options, "--", *argv], check=False).returncode


def _check_built_in(args: argparse.Namespace) -> None:
    """UserError if a profile or a drive is neither a file nor one that the machine has, before anything is built for it."""
    for option, folder in (("profile", MACHINE / "profiles"), ("ssd", MACHINE / "profiles" / "ssd")):
        name = getattr(args, option, None)
        known = sorted(file.stem for file in folder.glob("*.toml"))
        if name and known and name not in known and not Path(name).is_file():
            raise no_such(f"{'profile' if option == 'profile' else 'drive'} or file", name, known, f"--{option}")


def _kinds(option: str, text: str | None) -> tuple[str, ...]:
    kinds = tuple(text.split(",")) if text else ()
    if kind := twice(kinds):
        raise UserError(f"{option} {text}: {kind} is given twice; give it once")
    for kind in kinds:
        if kind not in KINDS:
            raise no_such("kind", kind, KINDS, option)
    return kinds


def _count(args: argparse.Namespace, option: str, least: int = 1) -> int | None:
    count = getattr(args, option)
    if count is not None and count < least:
        raise UserError(f"--{option} {count}: at least {least}")
    return count


def _experiment(args: argparse.Namespace) -> int:
    from lab import experiment
    from lab.experiments.setup import Setup

    kinds = _kinds("--kinds", args.kinds)
    changed = (args.quick, kinds, args.settings, args.kernel, args.frames, args.traces, args.profile != Setup.profile)
    if args.docs and any(changed):
        raise UserError("--docs: only with the whole experiment, as it is")
    if args.kernel and not args.kernel.is_file():
        raise UserError(f"--kernel {args.kernel}: no such file")
    setup = Setup(args.out or Path(), args.profile, tuple(args.settings), args.kernel, args.quick, kinds)
    _count(args, "frames")
    jobs = 1 if args.serial else _count(args, "jobs")
    setup = replace(setup, traces=args.traces, frames=args.frames, jobs=jobs, at_once=jobs or setup.at_once)
    return experiment.run(args.name, setup, args.out, args.docs, args.measured)


def _run(args: argparse.Namespace, guest_argv: list[str]) -> int:
    from lab import run

    _count(args, "harts")
    if args.elf:
        options = _elf_options(args, guest_argv)
        return run.run_elf(args.elf, args.profile, tuple(args.settings), args.detail, (*options, *_machine_options(args)))
    if not any(guest_argv[:1]) and not args.interactive:
        raise UserError("run: no command (trapless run [OPTIONS] -- COMMAND ...)")
    return run.run(_request(args, guest_argv, args.out, args.stats))


def _request(args: argparse.Namespace, guest_argv: list[str], out: Path | None, stats: Path | None) -> run.Request:
    from lab import run

    return run.Request(
        argv=guest_argv, kind=args.kind, share=args.share, inputs=tuple(args.inputs), out=out, data=args.data,
        readahead=args.readahead, faults=tuple(args.faults), cflags=args.cflags,
        profile=args.profile, settings=tuple(args.settings), memory=args.memory, harts=args.harts, append=args.append,
        kernel=args.kernel, stock=args.stock, series=args.series, simulator=args.simulator, arch=args.arch,
        packages=tuple(args.packages), interactive=args.command == "run" and args.interactive, verbose=args.verbose,
        max_seconds=args.max_seconds, stats=stats, detail=args.detail, options=tuple(_machine_options(args)),
        check_atomic=getattr(args, "check_atomic", False))


def _elf_options(args: argparse.Namespace, guest_argv: list[str]) -> list[str]:
    """Those of a guest's options that a bare-metal program has, too, as the machine has them; UserError for the others."""
    run_alone = {"--out": args.out, "--interactive": args.interactive,
                 "--check-atomic": args.check_atomic} if args.command == "run" else {}
    others = {"--kind": args.kind, "--share": args.share, "--in": args.inputs, "--package": args.packages,
              "--cflags": args.cflags, "--data": args.data, "--readahead": args.readahead is not None, "--fault": args.faults,
              "--append": args.append, "--kernel": args.kernel, "--stock": args.stock, "--series": args.series != SERIES,
              "--on qemu": args.simulator != "machine", "--arch": args.arch != "riscv", "--verbose": args.verbose, **run_alone}
    if odd := [option for option, value in others.items() if value]:
        raise UserError(f"{odd[0]}: for guests, not for --elf")
    if guest_argv:
        raise UserError(f"--elf: takes no command after --: {guest_argv[0]}")
    own = {"--json": getattr(args, "stats", None), "--memory": args.memory, "--harts": args.harts,
           "--max-seconds": args.max_seconds}
    return [text for option, value in own.items() if value is not None for text in (option, str(value))]


def _machine_options(args: argparse.Namespace) -> list[str]:
    """What `run` only passes on."""
    from lab import build

    named = {"--trace": getattr(args, "trace", None), "--gdb": getattr(args, "gdb", None)}
    options = [text for name, value in named.items() if value for text in (name, value)]
    if getattr(args, "smu", "model") == "rtl":
        if args.simulator != "machine":
            raise UserError("--smu rtl: not with --on qemu")
        options.append(f"--smu-rtl={build.smu_rtl(args.profile, tuple(args.settings), args.harts)}")
    return options


def _profile(args: argparse.Namespace, guest_argv: list[str]) -> int:
    from lab import profiling

    _count(args, "harts")
    if args.elf:
        if args.compare:
            raise UserError("profile: --compare: kinds are for guests, not for --elf")
        return profiling.profile_elf(args.elf, args.profile, tuple(args.settings), args.detail, args.out, args.since,
                                     tuple(args.symbols), args.categories, tuple(_elf_options(args, guest_argv)))
    if not any(guest_argv[:1]):
        raise UserError("profile: no command (trapless profile [OPTIONS] -- COMMAND ...)")
    rest = args.out, args.since, tuple(args.symbols), args.categories
    if args.compare and args.kind:
        raise UserError(f"--kind {args.kind}: not with --compare, which names the kinds")
    if args.compare:
        return profiling.compare(_request(args, guest_argv, None, None), *rest, _kinds("--compare", args.compare))
    return profiling.profile(_request(args, guest_argv, None, None), *rest)


def joined(argv: list[str]) -> list[str]:
    """With each value of --cflags behind a `=`: argparse would take `-O3` for an option of ours."""
    at = argv.index("--cflags") if "--cflags" in argv[:-1] else None
    return argv if at is None else [*argv[:at], f"--cflags={argv[at + 1]}", *joined(argv[at + 2:])]


def main() -> int:
    """Entry: user errors become one line, Ctrl-C status 130."""
    argv, guest_argv = sys.argv[1:], []
    if "--" in argv:
        cut = argv.index("--")
        argv, guest_argv = argv[:cut], argv[cut + 1:]
    args = parse(parser(), joined(argv))
    signals.listen()
    try:
        _check_built_in(args)
        if getattr(args, "ssd", None):
            args.settings = [f"ssd={args.ssd}", *args.settings]
        return dispatch(args, guest_argv)
    except UserError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:
        return 1
    finally:
        signals.finish()


if __name__ == "__main__":
    sys.exit(main())
