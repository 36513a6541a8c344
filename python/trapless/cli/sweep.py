# SPDX-License-Identifier: Apache-2.0
"""`./trapless sweep`."""

from __future__ import annotations

import argparse
from pathlib import Path

from trapless.base.ui import UserError
from trapless.cli.options import count

HELP = "run guests, or the paging simulator, with every combination of the values in a file"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE.toml",
                        help="file with the fixed and the varied values (docs/reference/sweeps.md, docs/reference/pagesim.md)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where results go (default out/NAME, with the file's name)")
    parser.add_argument("--simulator", type=Path, metavar="PROGRAM",
                        help="for the paging simulator: a program that has more policies (docs/how-to/add-a-policy-of-yours.md)")
    parser.add_argument("--parquet", action="store_true", help="also write results.parquet, with typed columns (needs pyarrow)")
    engine = parser.add_mutually_exclusive_group()
    parser.add_argument("--jobs", type=int, metavar="N", help="number of runs at a time (default: number of cores)")
    engine.add_argument("--workers", type=int, metavar="N",
                        help="run in N worker processes, each with one run at a time (default: in threads of one process)")
    engine.add_argument("--scheduler", metavar="ADDRESS",
                        help="run on the workers of the Dask scheduler at this address, which may be on many machines")
    engine.add_argument("--worker", metavar="ADDRESS", 
                        help="become a worker of the Dask scheduler at this address until the scheduler ends; takes no FILE")


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Run all points, or become a worker."""
    from trapless.sweeps import command
    from trapless.sweeps.engine import Engine, work

    jobs, workers = count(args, "jobs"), count(args, "workers")
    if args.worker:
        if args.file:
            raise UserError(f"sweep: {args.file}: leave it out; --worker takes its points from the scheduler")
        work(args.worker, jobs)
    if not args.file:
        raise UserError("sweep: no FILE.toml is given (docs/reference/sweeps.md describes it)")
    if jobs and (workers or args.scheduler):
        raise UserError("sweep: --jobs does not work with --workers or --scheduler: leave it out")
    return command.run(args.file, args.out or Path("out") / args.file.stem, Engine(jobs, workers, args.scheduler), args.simulator,
                       args.parquet)
