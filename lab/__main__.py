# SPDX-License-Identifier: Apache-2.0
"""Command line of `./trapless`."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from lab.ui import UserError, say


def _profile_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--profile", default="vc707", metavar="NAME|FILE", help="profile of the machine (default vc707)")
    command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
                         help="change one value of the profile")
    command.add_argument("--kernel", type=Path, metavar="IMAGE", help="another kernel than the patched one")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(prog="trapless", description="Demand paging without page faults: machine, kernel, laboratory.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="fio with ideal, osdp and hwdp paging: table, results.json, report.html")
    demo.add_argument("--out", type=Path, default=Path("out/demo"), metavar="DIR", help="where results go (default out/demo)")
    demo.add_argument("--threads", type=int, default=1, metavar="N", help="fio threads on one mapping (default 1)")
    demo.add_argument("--serial", action="store_true", help="one kind at a time: true host speed")
    demo.add_argument("--quick", action="store_true", help="a quarter of the reads")
    _profile_options(demo)

    run = commands.add_parser("run", help="run any command in a guest, or a bare-metal ELF file",
                              usage="trapless run [OPTIONS] -- COMMAND [ARGUMENT]... | --interactive | --elf FILE")
    run.add_argument("--kind", choices=("ideal", "osdp", "hwdp"), help="how its mappings of files below /data are paged")
    run.add_argument("--share", action="store_true", help="threads that map the same file share one mapping")
    run.add_argument("--in", action="append", default=[], type=Path, metavar="FILE", dest="inputs",
                     help="file or folder that appears in the command's folder")
    run.add_argument("--out", type=Path, metavar="DIR", help="host folder for what the command writes to /job/out")
    run.add_argument("--data", metavar="SIZE|IMAGE", help="data disk at /data: random.bin of this size, or an ext4 image")
    run.add_argument("--memory", metavar="SIZE", help="guest memory, for instance 256M")
    run.add_argument("--harts", type=int, metavar="N")
    run.add_argument("--append", default="", metavar="TEXT", help="more of the kernel's command line")
    run.add_argument("--stock", action="store_true", help="the unmodified kernel")
    run.add_argument("--on", choices=("machine", "qemu"), default="machine", dest="simulator")
    run.add_argument("--interactive", action="store_true", help="a shell on the console")
    run.add_argument("--verbose", action="store_true", help="show the kernel's messages")
    run.add_argument("--max-seconds", type=float, metavar="S", help="give up after S simulated seconds")
    run.add_argument("--stats", type=Path, metavar="FILE", help="keep the machine's record (JSON)")
    run.add_argument("--elf", type=Path, metavar="FILE", help="run this instead; exit status from tohost")
    _profile_options(run)

    test = commands.add_parser("test", help="run all tests")
    test.add_argument("--all", action="store_true", help="the long ones, too")
    test.add_argument("suite", nargs="*", help="only these suites")

    claims = commands.add_parser("claims", help="measure again every number that README and docs state")
    claims.add_argument("--area", metavar="NAME", help="only this area")
    claims.add_argument("--quick", action="store_true", help="with smaller loads")
    claims.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")

    commands.add_parser("doctor", help="say what is there and what is missing")
    commands.add_parser("setup", help="install and build what is missing")
    commands.add_parser("help", help="show this help")
    return top


def dispatch(args: argparse.Namespace, guest_argv: list[str]) -> int:
    """Run one command; its exit status. `guest_argv` is what stands after `--`."""
    if guest_argv and args.command != "run":
        raise UserError(f"{args.command}: takes nothing after --")
    if args.command == "demo":
        from lab import demo

        if args.threads < 1:
            raise UserError(f"--threads {args.threads}: at least 1")
        return demo.run(args.out, args.profile, tuple(args.settings), args.threads, args.kernel, args.serial, args.quick)
    if args.command == "run":
        return _run(args, guest_argv)
    if args.command == "test":
        from lab import testing

        return testing.run(args.all, args.suite)
    if args.command == "claims":
        from lab import claims

        return claims.run(args.area, args.quick, args.json)
    if args.command == "doctor":
        from lab import doctor

        return doctor.run()
    if args.command == "setup":
        from lab import doctor

        return doctor.setup()
    parser().print_help()
    return 0


def _run(args: argparse.Namespace, guest_argv: list[str]) -> int:
    from lab import run

    if args.elf:
        return run.run_elf(args.elf, args.profile, tuple(args.settings))
    if not guest_argv and not args.interactive:
        raise UserError("run: no command (trapless run [OPTIONS] -- COMMAND ...)")
    return run.run(run.Request(
        argv=guest_argv, kind=args.kind, share=args.share, inputs=tuple(args.inputs), out=args.out, data=args.data,
        profile=args.profile, settings=tuple(args.settings), memory=args.memory, harts=args.harts, append=args.append,
        kernel=args.kernel, stock=args.stock, simulator=args.simulator, interactive=args.interactive,
        verbose=args.verbose, max_seconds=args.max_seconds, stats=args.stats))


def main() -> int:
    """Entry: user errors become one line, Ctrl-C status 130."""
    argv, guest_argv = sys.argv[1:], []
    if "--" in argv:
        cut = argv.index("--")
        argv, guest_argv = argv[:cut], argv[cut + 1:]
    args = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return dispatch(args, guest_argv)
    except UserError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
