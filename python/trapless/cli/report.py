# SPDX-License-Identifier: Apache-2.0
"""`./trapless report`."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "make a site of all results, with the papers' values beside ours"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--from", type=Path, default=Path("out"), metavar="DIR", dest="source",
                        help="folder in which experiments left their results (default out)")
    parser.add_argument("--out", type=Path, default=Path("out/report"), metavar="DIR", help="where pages go (default out/report)")


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Write the pages."""
    from trapless.study import site

    return site.run(args.source, args.out)
