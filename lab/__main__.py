# SPDX-License-Identifier: Apache-2.0
"""Command line of `./trapless`."""

from __future__ import annotations

import argparse
import sys

from lab.ui import UserError, say


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(prog="trapless", description="Demand paging without page faults: machine, kernel, laboratory.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    test = commands.add_parser("test", help="run all tests")
    test.add_argument("--all", action="store_true", help="the long ones, too")
    test.add_argument("suite", nargs="*", help="only these suites")

    commands.add_parser("setup", help="install and build what is missing")
    commands.add_parser("help", help="show this help")
    return top


def dispatch(args: argparse.Namespace) -> int:
    """Run one command; its exit status."""
    if args.command == "test":
        from lab import testing

        return testing.run(args.all, args.suite)
    if args.command == "help":
        parser().print_help()
    return 0


def main() -> int:
    """Entry: user errors become one line, Ctrl-C status 130."""
    args = parser().parse_args()
    try:
        return dispatch(args)
    except UserError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    sys.exit(main())
