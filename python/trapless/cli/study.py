# SPDX-License-Identifier: Apache-2.0
"""`./trapless study`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from trapless.base.ui import UserError
from trapless.cli.options import count, kinds_of, profile_options

HELP = "run experiments, and write records, tables and plots to out/NAME; without a name, list all experiments"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("name", nargs="*", metavar="NAME", help="an experiment, or `all`")
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="where results go (default out/NAME); with several experiments, DIR/NAME")
    parser.add_argument("--kinds", metavar="KIND,...",
                        help="measure only these kinds of paging, for example osdp,hwdp (default: all kinds of the experiment)")
    parser.add_argument("--quick", action="store_true", help="use smaller loads")
    parser.add_argument("--serial", action="store_true", help="make one run at a time")
    parser.add_argument("--measured", action="store_true", help="show the results of the last run without a new run")
    parser.add_argument("--parquet", action="store_true", help="also write results.parquet, with typed columns (needs pyarrow)")
    parser.add_argument("--docs", action="store_true", help="write the tables into the documents that show them")
    parser.add_argument("--traces", type=Path, metavar="DIR",
                            help="for aspf-*: folder of the traces (default: where `./trapless dev workloads` writes them)")
    parser.add_argument("--frames", type=int, metavar="N",
                            help="for aspf-*: size of memory in pages of 4 KiB (default: by the paper's rule)")
    parser.add_argument("--jobs", type=int, metavar="N",
                        help="number of runs at a time (default: 2; for aspf-*: the number of cores)")
    profile_options(parser)


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Measure experiments, or list them."""
    from trapless.loads.setup import Setup
    from trapless.study import measure

    kinds = kinds_of("--kinds", args.kinds)
    changed = (args.quick, kinds, args.settings, args.kernel, args.frames, args.traces, args.profile != Setup.profile)
    if args.docs and any(changed):
        raise UserError("--docs writes only results of the full experiment on the default machine: leave out "
                        "--quick, --kinds, --set, --kernel, --frames, --traces and --profile")
    if args.kernel and not args.kernel.is_file():
        raise UserError(f"--kernel {args.kernel}: no such file")
    setup = Setup(args.out or Path(), args.profile, tuple(args.settings), args.kernel, args.quick, kinds)
    count(args, "frames")
    jobs = 1 if args.serial else count(args, "jobs")
    setup = replace(setup, traces=args.traces, frames=args.frames, jobs=jobs, at_once=jobs or setup.at_once)
    return measure.run(args.name, setup, args.out, args.docs, args.measured, args.parquet)
