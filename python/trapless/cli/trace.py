# SPDX-License-Identifier: Apache-2.0
"""`./trapless trace`."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from trapless.base.arguments import TRACE_WORDS
from trapless.base.ui import UserError

HELP = "show a memory access trace (of run --trace), or record a program of this host"
USAGE = "trapless trace info|dump FILE | [OPTIONS] -- COMMAND [ARGUMENT]..."


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("what", nargs="?", metavar="|".join(TRACE_WORDS), help="show sums, or every entry")
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the trace")
    parser.add_argument("--out", metavar="FILE", help="where the command's trace goes (default COMMAND.trace)")
    parser.add_argument("--skip", metavar="N", help="leave out the first N accesses (k: thousands, M: millions, G: billions)")
    parser.add_argument("--with", metavar="NAME", choices=("tracer", "lackey"),
                        help="what records: tracer (default where it can be compiled), or valgrind's lackey, which is slower")
    parser.add_argument("--limit", metavar="N", help="end the command after N accesses")


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Show a trace, or record one."""
    from trapless.guest import build

    names = [name for name in ("out", "skip", "limit", "with") if getattr(args, name)]
    options = [word for name in names for word in (f"--{name}", getattr(args, name))]
    if args.what:
        if argv or options or not args.file:
            raise UserError(f"trace {args.what}: give one FILE and nothing else")
        return subprocess.run([build.machine(), "trace", args.what, args.file], check=False).returncode
    if not argv:
        raise UserError("trace: nothing to do: give info FILE, dump FILE, or [OPTIONS] -- COMMAND ...")
    return subprocess.run([build.pagesim(), "record", *options, "--", *argv], check=False).returncode
