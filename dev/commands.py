# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev NAME`: commands for people who change the project."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from trapless.base.ui import no_such
from trapless.cli.options import count, series
from trapless.guest.build import SERIES
from trapless.guest.job import KINDS


def add(parser: argparse.ArgumentParser) -> None:
    """Add all commands."""
    commands = parser.add_subparsers(dest="dev", required=True, metavar="NAME")

    soak = commands.add_parser("soak", help="cause many misses under memory pressure, on a kernel that checks itself")
    soak.add_argument("--misses", type=int, default=2_000_000, metavar="N",
                      help="minimum number of misses, in boots of 250000 each (default 2000000)")
    soak.add_argument("--kernel", default="debug", metavar="debug|kcsan|plain|IMAGE",
                      help="debug: a kernel with KASAN, lockdep and more checks (default); kcsan: one with KCSAN, on QEMU; "
                           "plain: the ordinary patched kernel; or a kernel image")
    soak.add_argument("--kind", choices=KINDS[2:], default="hwdp", help="kind of paging (default hwdp)")
    soak.add_argument("--seed", type=int, default=1, metavar="N",
                      help="seed of the first boot; each further boot adds 1 (default 1)")
    soak.add_argument("--data", type=int, default=1024, metavar="MIB",
                      help="size of the file in MiB, at least 256; memory is a little more than a quarter of it (default 1024)")
    soak.add_argument("--out", type=Path, default=Path("out/soak"), metavar="DIR", help="where logs go (default out/soak)")

    selftests = commands.add_parser("selftests",
                                    help="run Linux's own mm selftests on the unpatched kernel, and on the patched one with the "
                                         "series off and on")
    selftests.add_argument("test", nargs="*", help="run only these tests")
    selftests.add_argument("--kind", choices=KINDS[2:], default="hwdp", help="kind of paging (default hwdp)")
    selftests.add_argument("--full", action="store_true",
                           help="run on kernels with every feature that the tests can test (builds two kernels)")
    selftests.add_argument("--series", type=series, default=SERIES, metavar="NAME",
                           help="series of the patched kernel: hwdp (default) or stc")
    selftests.add_argument("--kernel", type=Path, metavar="IMAGE", help="run this kernel instead of the patched one")
    selftests.add_argument("--out", type=Path, default=Path("out/selftests"), metavar="DIR",
                           help="where logs go (default out/selftests)")

    attack = commands.add_parser("attack", help="check that no unprivileged program can read another user's blocks")
    attack.add_argument("--rounds", type=int, default=10_000, metavar="N",
                        help="number of rounds, each of which reuses a block (default 10000)")
    attack.add_argument("--way", choices=("truncate", "punch", "collapse", "unmap", "mixed"), default="mixed",
                        help="how blocks are given back; mixed: a way drawn for each round (default mixed)")
    attack.add_argument("--kind", choices=KINDS[2:], default="hwdp", help="kind of paging (default hwdp)")
    attack.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the random choices (default 1)")
    attack.add_argument("--kernel", type=Path, metavar="IMAGE", help="run this kernel instead of the patched one")

    torture = commands.add_parser("torture", help="change address spaces at random; a program must see the same contents with "
                                                    "every kind of paging")
    torture.add_argument("--sequences", type=int, default=10_000, metavar="N",
                         help="number of random sequences of operations (default 10000)")
    torture.add_argument("--kind", choices=KINDS, help="test only this kind (default: every kind)")
    torture.add_argument("--share", action="store_true",
                         help="test only with the option --share of run (default: with it and without it)")
    torture.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the first sequence (default 1)")
    torture.add_argument("--kernel", type=Path, metavar="IMAGE", help="run this kernel instead of the patched one")

    stc = commands.add_parser("stc", help="check on self-checking kernels that no race leads a page fault to a wrong page table")
    stc.add_argument("test", nargs="*", help="run only these tests of stc-check")
    stc.add_argument("--kernel", default="plain", metavar="plain|debug|kcsan|IMAGE",
                     help="plain: the patched kernel (default); debug: one with KASAN, lockdep and more checks; kcsan: one with "
                          "KCSAN, on x86_64; or a kernel image")
    stc.add_argument("--on", choices=("machine", "riscv64", "x86_64"), default="machine",
                     help="run on the machine (default), or on QEMU with a processor of this architecture")
    stc.add_argument("--design", action="append", metavar="WORDS",
                     help="value of the boot parameter stc=; may be repeated (default: each of a list of designs)")
    stc.add_argument("--factor", type=int, default=1, metavar="N", help="multiply the number of steps by N (default 1)")
    stc.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the random choices (default 1)")
    stc.add_argument("--append", default="", metavar="TEXT", help="text to add to the kernel's command line")
    stc.add_argument("--out", type=Path, default=Path("out/stc"), metavar="DIR", help="where logs go (default out/stc)")

    test = commands.add_parser("test", help="run the tests; long ones only with --all or if they are named")
    test.add_argument("--all", action="store_true", help="also run the long tests")
    test.add_argument("--again", action="store_true", help="also run tests that passed before on the same files")
    test.add_argument("suite", nargs="*", help="run only these suites")

    goals = commands.add_parser("goals", help="measure again every goal and table that README.md and the results pages state")
    goals.add_argument("--area", metavar="NAME", help="measure only this area")
    goals.add_argument("--quick", action="store_true", help="use smaller loads")
    goals.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    goals.add_argument("--docs", action="store_true",
                       help="write the figures of goals into the documents; do not compare the tables in the documents")

    speed = commands.add_parser("speed", help="compare the speed of the machine and of QEMU, in instructions per second")
    speed.add_argument("--out", type=Path, default=Path("out/speed"), metavar="DIR",
                       help="where speed.json goes (default out/speed)")
    speed.add_argument("--rounds", type=int, default=3, metavar="N",
                       help="number of runs of each part; the median counts (default 3)")

    mutants = commands.add_parser("kernel-mutants",
                                  help="take the code of each rule out of the kernel; the rule's test must then fail")
    mutants.add_argument("name", nargs="*", metavar="NAME", help="only mutants whose names contain this")
    mutants.add_argument("--series", type=series, default=SERIES, metavar="NAME",
                         help="series of the patched kernel: hwdp (default) or stc")
    mutants.add_argument("--image", type=Path, help="a kernel that has the mutants (default: it is built)")
    mutants.add_argument("--full-image", type=Path, metavar="IMAGE",
                         help="a kernel that has the mutants and linux/configs/full.config (default: it is built)")
    mutants.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N",
                         help="number of boots at a time (default: number of cores)")

    linux = commands.add_parser("rtl-linux", help="boot Linux on the core in RTL, and measure the cycles of a page miss by kind")
    linux.add_argument("--count", type=int, default=1000, metavar="N", help="number of misses with each kind (default 1000)")
    linux.add_argument("--kind", action="append", choices=[kind for kind in KINDS if kind != "ideal"],
                       help="measure only this kind; may be repeated (default: osdp, emulated, trap and hwdp)")
    linux.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    linux.add_argument("--root", type=Path, metavar="IMAGE", help="use this root image (default: it is built)")
    linux.add_argument("--shell", metavar="COMMAND", help="only type this into the guest's shell, without measuring")

    predict = commands.add_parser("rtl-predict", help="predict the results of rtl-linux with the machine, and print the errors")
    predict.add_argument("record", type=Path, nargs="?", help="record that rtl-linux wrote (default: that of its last run)")

    bench = commands.add_parser("rtl-bench",
                                help="run bare-metal programs on the core in RTL and on the machine")
    bench.add_argument("program", nargs="*", metavar="fit|held_out|smu", help="run only these sets (default: all)")

    repeat = commands.add_parser("repeat", help="repeat a run on an idle and on a busy host; all results must be identical")
    repeat.add_argument("--runs", type=int, default=20, metavar="N", help="number of runs (default 20)")

    workloads = commands.add_parser("workloads", help="install, prepare and record the paging simulator's programs")
    workloads.add_argument("name", nargs="*", metavar="NAME", help="only these programs")
    workloads.add_argument("--accesses", type=int, metavar="N",
                           help="number of accesses to record of each program (default: 500 million, of chains 200 million)")
    workloads.add_argument("--out", type=Path, metavar="DIR", help="where the traces go (default traces/ in the cache)")
    workloads.add_argument("--jobs", default=2, type=int, metavar="N", help="number of recordings at a time (default 2)")
    for name, what in (
        ("difftest", "run programs on the machine and on QEMU, compare and bisect them (see difftest --help)"),
        ("lockstep", "run one guest, by default Linux, on both engines, and compare their states (see lockstep --help)"),
        ("fuzz", "use devices, firmware calls, page tables and input files at random (see fuzz --help)"),
    ):
        check = commands.add_parser(name, help=what, add_help=False, prefix_chars="\0")
        check.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="arguments of the program; its --help lists them")

    curves = commands.add_parser("mrc-check",
                                 help="compare trapless-pagesim's miss-ratio curves with libCacheSim's, request by request")
    curves.add_argument("file", type=Path, nargs="*", metavar="FILE",
                        help="traces, or files in oracleGeneral format whose names contain this word (default: made-up requests)")
    curves.add_argument("--policy", default="lru,fifo,clock,arc,s3-fifo", metavar="LIST",
                        help="only these of lru,fifo,clock,arc,s3-fifo (default: all)")
    curves.add_argument("--sizes", default="20,57,100,1000", metavar="LIST",
                        help="sizes of memory in pages (default 20,57,100,1000)")

    reference = commands.add_parser("reference", help="write the generated pages: commands, keys of profiles, goals")
    reference.add_argument("--check", action="store_true", help="only check whether the pages are up to date")

    docs = commands.add_parser("docs", help="check all pages, and build the documentation site into .trapless/site-docs")
    docs.add_argument("--check", action="store_true", help="only check the pages: links, sizes, code, commands")

    bundle = commands.add_parser("bundle",
                                 help="write one archive with all downloads, so that demo and tests run without network")
    bundle.add_argument("file", type=Path, metavar="FILE.tar", help="archive to write; the file appears when it is complete")

    commands.add_parser("doctor", help="list what is installed and what is missing")
    commands.add_parser("setup", help="install and build what is missing")


def _selftests(args: argparse.Namespace) -> int:
    from dev import selftests

    return selftests.run(selftests.Request(kind=args.kind, series=args.series, kernel=args.kernel, only=tuple(args.test),
                                           full=args.full, out=args.out))


def _soak(args: argparse.Namespace) -> int:
    from dev import soak

    for option, least in (("misses", 1), ("seed", 0), ("data", soak.LEAST_MIB)):
        count(args, option, least)
    image = None if args.kernel in soak.KERNELS else Path(args.kernel)
    if image and not image.is_file():
        raise no_such("kernel", args.kernel, tuple(soak.KERNELS), "--kernel")
    return soak.run(soak.Request(misses=args.misses, checks="plain" if image else args.kernel, kind=args.kind, kernel=image,
                                 out=args.out, data_mib=args.data, seed=args.seed))


def _attack(args: argparse.Namespace) -> int:
    from dev.checks import attack

    count(args, "seed", 0)
    return attack.run(args.rounds, args.way, args.seed, args.kernel, args.kind)


def _torture(args: argparse.Namespace) -> int:
    from dev.checks import torture

    return torture.run(args.sequences, args.seed, args.kind, args.share, args.kernel)


def _stc(args: argparse.Namespace) -> int:
    from dev.checks import stc

    count(args, "factor")
    count(args, "seed", 0)
    kernel = args.kernel if args.kernel in stc.KERNELS else Path(args.kernel)
    if isinstance(kernel, Path) and not kernel.is_file():
        raise no_such("kernel", args.kernel, stc.KERNELS, "--kernel")
    check = stc.Check(args.on, kernel, factor=args.factor, seed=args.seed, names=tuple(args.test), append=args.append)
    return stc.run(check, tuple(args.design or stc.DESIGNS), args.out)


def _test(args: argparse.Namespace) -> int:
    from dev import testing

    return testing.run(args.all, args.suite, args.again)


def _goals(args: argparse.Namespace) -> int:
    from dev import goals

    return goals.run(args.area, args.quick, args.json, args.docs)


def _speed(args: argparse.Namespace) -> int:
    from dev import speed

    count(args, "rounds")
    return speed.run(args.out, args.rounds)


def _kernel_mutants(args: argparse.Namespace) -> int:
    from dev.checks import mutants

    count(args, "jobs")
    return mutants.run(args.series, {False: args.image, True: args.full_image}, args.name, args.jobs)


def _rtl_linux(args: argparse.Namespace) -> int:
    from dev.rtl import linux

    return linux.run(linux.Request(args.count, tuple(args.kind or linux.KINDS), args.json, args.root, args.shell))


def _rtl_predict(args: argparse.Namespace) -> int:
    from dev.rtl import predict

    return predict.run(args.record) if args.record else predict.run()


def _rtl_bench(args: argparse.Namespace) -> int:
    from dev.rtl import bench

    for name in args.program:
        if name not in bench.PROGRAMS:
            raise no_such("program", name, bench.PROGRAMS, "rtl-bench")
    return bench.run(tuple(args.program) or bench.PROGRAMS)


def _repeat(args: argparse.Namespace) -> int:
    from dev.checks import repeat

    count(args, "runs", 2)
    return repeat.run(args.runs)


def _workloads(args: argparse.Namespace) -> int:
    from trapless.pagesim.workloads import record

    for option in ("accesses", "jobs"):
        count(args, option)
    return record.run(args.name, args.accesses, args.out, args.jobs)


def _mrc_check(args: argparse.Namespace) -> int:
    from dev import mrc

    return mrc.run(args.file, mrc.policies(args.policy), mrc.sizes(args.sizes))


def _trust(args: argparse.Namespace) -> int:
    from dev.checks import trust

    return trust.run(args.dev, args.arguments)


def _reference(args: argparse.Namespace) -> int:
    from dev import reference

    return reference.run(args.check)


def _docs(args: argparse.Namespace) -> int:
    from dev import site

    return site.run(args.check)


def _bundle(args: argparse.Namespace) -> int:
    from dev import bundle

    return bundle.run(args.file)


def _doctor(args: argparse.Namespace) -> int:
    from dev import doctor

    return doctor.run()


def _setup(args: argparse.Namespace) -> int:
    from dev import doctor

    return doctor.setup()


_RUN = {
    "selftests": _selftests, "soak": _soak, "attack": _attack, "torture": _torture, "stc": _stc, "test": _test, "goals": _goals,
    "speed": _speed, "repeat": _repeat, "kernel-mutants": _kernel_mutants, "rtl-linux": _rtl_linux, "rtl-predict": _rtl_predict,
    "rtl-bench": _rtl_bench, "workloads": _workloads, "mrc-check": _mrc_check, "reference": _reference, "docs": _docs,
    "bundle": _bundle, "doctor": _doctor, "setup": _setup,
    **dict.fromkeys(("difftest", "lockstep", "fuzz"), _trust),
}


def run(args: argparse.Namespace) -> int:
    """Run one command; return its exit status."""
    return _RUN[args.dev](args)
