# SPDX-License-Identifier: Apache-2.0
"""`./trapless profile`."""

from __future__ import annotations

import argparse
from pathlib import Path

from trapless.base.ui import UserError
from trapless.cli.options import count, elf_options, kinds_of, request, run_options

HELP = "show where every cycle of a command goes: tables, timeline, flame graph"
USAGE = "trapless profile [OPTIONS] -- COMMAND [ARGUMENT]... | --elf FILE"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    run_options(parser)
    parser.add_argument("--out", type=Path, default=Path("out/profile"), metavar="DIR",
                         help="where results go (default out/profile); the command's own files go to DIR/job")
    parser.add_argument("--from", metavar="FROM", dest="since",
                         help="what to measure: everything (`start`), the regions of interest (`roi`), or everything from "
                              "`milestone:N` or `instructions:N` on (default: `roi` with --kind, `start` with --elf, otherwise "
                              "`milestone:1`, which comes just before the command)")
    parser.add_argument("--symbols", action="append", default=[], metavar="FILE[@BASE]",
                         help="ELF file with names for the functions of a guest program, which is loaded at the hexadecimal "
                              "address BASE; may be repeated")
    parser.add_argument("--compare", metavar="KIND,...",
                         help="run once for each of these kinds, and make one table of all runs")
    parser.add_argument("--categories", type=Path, metavar="FILE",
                        help="table of categories (default: the table for this repository's kernel; see "
                             "docs/explanation/attribution.md)")


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Profile one run; return its exit status."""
    from trapless.profile import profiling

    count(args, "harts")
    if args.elf:
        if args.compare:
            raise UserError("profile: --compare applies only to guests: leave it out with --elf")
        return profiling.profile_elf(args.elf, args.profile, tuple(args.settings), args.detail, args.out, args.since,
                                     tuple(args.symbols), args.categories, tuple(elf_options(args, argv)))
    if not any(argv[:1]):
        raise UserError("profile: no command (trapless profile [OPTIONS] -- COMMAND ...)")
    rest = args.out, args.since, tuple(args.symbols), args.categories
    if args.compare and args.kind:
        raise UserError(f"--kind {args.kind} does not work with --compare, which names the kinds: leave --kind out")
    if args.compare:
        return profiling.compare(request(args, argv), *rest, kinds_of("--compare", args.compare))
    return profiling.profile(request(args, argv), *rest)
