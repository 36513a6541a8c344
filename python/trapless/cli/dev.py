# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev NAME`: commands for people who change the project. They are in dev/ of the checkout."""

from __future__ import annotations

import argparse
import importlib
import sys
from types import ModuleType

from trapless.base.paths import DEV, ROOT
from trapless.base.ui import UserError

HELP = "commands for people who change the project: tests, goals, soak, and more (dev --help)"


def _commands() -> ModuleType:
    """Import the commands of `./trapless dev`. Only a checkout has them; the library does not need them."""
    if not (DEV / "commands.py").is_file():
        raise UserError(f"dev: needs a checkout; there is none in {ROOT}")
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module("dev.commands")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the commands of dev."""
    if (DEV / "commands.py").is_file():
        _commands().add(parser)


def run(args: argparse.Namespace, argv: list[str]) -> int:
    """Run one command of dev."""
    return _commands().run(args)
