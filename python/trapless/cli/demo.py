# SPDX-License-Identifier: Apache-2.0
"""`./trapless demo`."""

from __future__ import annotations

import argparse
from pathlib import Path

from trapless.cli.options import count, profile_options

HELP = "run fio with ideal, osdp and hwdp paging; write a table, results.json and report.html"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--out", type=Path, default=Path("out/demo"), metavar="DIR", help="where results go (default out/demo)")
    parser.add_argument("--threads", type=int, default=1, metavar="N",
                        help="number of fio threads, which share one mapping (default 1)")
    parser.add_argument("--serial", action="store_true", help="run one kind at a time, so that host times are not disturbed")
    parser.add_argument("--quick", action="store_true", help="make only a quarter of the reads")
    parser.add_argument("--docs", action="store_true", help="write the new table and figure into README.md")
    profile_options(parser)


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Measure the demo and show its results."""
    from trapless.study import demo

    count(args, "threads")
    return demo.run(args.out, args.profile, tuple(args.settings), args.threads, args.kernel, args.serial, args.quick,
                    args.docs)
