# SPDX-License-Identifier: Apache-2.0
"""`./trapless trace`."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from trapless.base.arguments import TRACE_WORDS
from trapless.base.ui import UserError

HELP = "show a memory access trace of run --trace, record a program on this host, or import another tool's trace"
USAGE = "trapless trace info|dump FILE | import [OPTIONS] FILE | [OPTIONS] -- COMMAND [ARGUMENT]..."


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("what", nargs="?", metavar="|".join(TRACE_WORDS),
                        help="info: show totals; dump: show every entry; import: convert another tool's trace")
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE",
                        help="the trace; with import, the other tool's trace (docs/reference/pagesim-import.md)")
    parser.add_argument("--out", metavar="FILE",
                        help="file for the new trace (default: COMMAND.trace, or with import FILE.trace, in the current folder)")
    parser.add_argument("--skip", metavar="N", help="leave out the first N accesses; N may end in k, M or G (10^3, 10^6, 10^9)")
    parser.add_argument("--with", metavar="NAME", choices=("tracer", "lackey"),
                        help="the recorder: tracer (default if it can be compiled), or valgrind's lackey, which is slower")
    parser.add_argument("--limit", metavar="N", help="store at most N accesses; a recorded command is ended then")
    parser.add_argument("--format", metavar="NAME",
                        help="with import: the other tool's format (default: found from the file's content)")


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Show, record or import a trace."""
    from trapless.guest import build

    names = [name for name in ("out", "skip", "limit", "with", "format") if getattr(args, name)]
    options = [word for name in names for word in (f"--{name}", getattr(args, name))]
    if args.what == "import":
        if not args.file:
            raise UserError("trace import: give one FILE, or the folder of a trace")
        out = [] if args.out else ["--out", f"{args.file.absolute().name}.trace"]
        return subprocess.run([build.pagesim(), "import", args.file, *out, *options, *argv], check=False).returncode
    if args.what:
        if argv or options or not args.file:
            raise UserError(f"trace {args.what}: give one FILE and nothing else")
        return subprocess.run([build.machine(), "trace", args.what, args.file], check=False).returncode
    if not argv:
        raise UserError("trace: nothing to do: give info FILE, dump FILE, import FILE, or [OPTIONS] -- COMMAND ...")
    if args.format:
        raise UserError("trace: --format is for trace import FILE")
    return subprocess.run([build.pagesim(), "record", *options, "--", *argv], check=False).returncode
