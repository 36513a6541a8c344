# SPDX-License-Identifier: Apache-2.0
"""`./trapless python`."""

from __future__ import annotations

import argparse
import os
import sys

HELP = "start a Python that has `import trapless` (docs/reference/python.md)"
PLAIN = True
"""All arguments after the command's name go to Python unchanged."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="arguments of Python")


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Replace this process with Python."""
    os.execv(sys.executable, [sys.executable, *args.arguments, *(["--", *argv] if argv else [])])
