# SPDX-License-Identifier: Apache-2.0
"""`./trapless compare`."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "compare two results of an experiment: differences with their intervals"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("a", type=Path, metavar="A", help="folder of an experiment's results, or the runs.jsonl in it")
    parser.add_argument("b", type=Path, metavar="B", help="the results to compare with A; a difference is B minus A")
    parser.add_argument("--all", action="store_true", help="compare every figure in the runs, not only the figures of the tables")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the comparison to this file")


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Compare two results."""
    from trapless.study import compare

    return compare.run(args.a, args.b, args.all, args.json)
