# SPDX-License-Identifier: Apache-2.0
"""`./trapless run`."""

from __future__ import annotations

import argparse
from pathlib import Path

from trapless.base.arguments import trace_file
from trapless.base.ui import UserError
from trapless.cli.options import count, elf_options, machine_options, request, run_options

HELP = "run any command in a guest, or a bare-metal ELF file"
USAGE = "trapless run [OPTIONS] -- COMMAND [ARGUMENT]... | --interactive | --elf FILE"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    run_options(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="host folder for what the command writes to /job/out")
    parser.add_argument("--interactive", action="store_true", help="start a shell on the console")
    parser.add_argument("--trace", type=trace_file, metavar="FILE[,...]",
                     help="write memory accesses to FILE. Options: grain=page (default) or line; from=roi, start, "
                          "milestone:N or instructions:N (default: roi, or start if there is none); kernel (also the kernel's)")
    parser.add_argument("--smu", choices=("model", "rtl"), default="model",
                     help="the SMU: model, the reference model (default), or rtl, its RTL under Verilator (built if it does not "
                          "exist yet)")
    parser.add_argument("--gdb", metavar="PLACE[,nowait]",
                     help="wait for GDB at PORT of this host, HOST:PORT or unix:PATH; with nowait, listen but begin at once")
    parser.add_argument("--check-atomic", action="store_true",
                     help="check every miss that the SMU serves; fail if the guest's Linux causes a miss in atomic context")
    parser.add_argument("--stats", type=Path, metavar="FILE", help="write the machine's record to this file (JSON)")


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Run one command; return its exit status."""
    from trapless.guest import run as guest

    count(args, "harts")
    if args.elf:
        options = elf_options(args, argv)
        return guest.run_elf(args.elf, args.profile, tuple(args.settings), args.detail, (*options, *machine_options(args)))
    if not any(argv[:1]) and not args.interactive:
        raise UserError("run: no command (trapless run [OPTIONS] -- COMMAND ...)")
    return guest.run(request(args, argv, out=args.out, stats=args.stats, interactive=args.interactive,
                             check_atomic=args.check_atomic))
