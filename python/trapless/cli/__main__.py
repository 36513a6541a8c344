# SPDX-License-Identifier: Apache-2.0
"""Command line of `./trapless`. Each command is a module of this package with HELP, add() and run()."""

from __future__ import annotations

import argparse
import sys
from types import ModuleType
from typing import NoReturn

from trapless.base import signals
from trapless.base.arguments import IN_THE_GUEST, Parser, parse
from trapless.base.ui import UserError, no_such, say
from trapless.base.version import VERSION
from trapless.cli import compare, demo, dev, profile, python, report, run, study, sweep, trace
from trapless.cli.options import check_built_in

COMMANDS: dict[str, ModuleType] = {module.__name__.rpartition(".")[2]: module for module in (
    demo, run, profile, sweep, study, report, compare, trace, python, dev)}
SHORT = ("test", "setup", "doctor", "bundle")
"""Commands of `./trapless dev` that also work without `dev`: README and the launcher name them."""
OLD = {"experiment": "study", "worker": "sweep --worker", "claims": "dev goals", **{name: f"dev {name}" for name in (
    "soak", "selftests", "attack", "torture", "stc", "speed", "repeat", "workloads", "difftest", "lockstep", "fuzz")}}
"""Former names of commands."""


def parser() -> Parser:
    """Make the parser of the whole command line."""
    top = Parser(prog="trapless", description="Demand paging without page faults.",
                 epilog=f"{', '.join(SHORT[:-1])} and {SHORT[-1]}, commands of dev, also work without that word.")
    top.also = SHORT
    top.add_argument("--version", action="version", version=f"trapless {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        plain = {"add_help": False, "prefix_chars": "\0"} if getattr(module, "PLAIN", False) else {}
        usage = {"usage": module.USAGE} if hasattr(module, "USAGE") else {}
        module.add(commands.add_parser(name, help=module.HELP, **plain, **usage))
    commands.add_parser("help", help="show this help, or a command's").add_argument("about", nargs="*", metavar="COMMAND")
    return top


def dispatch(args: argparse.Namespace, argv: list[str]) -> int:
    """Run one command, and return its exit status. `argv` is what follows `--`."""
    if argv and args.command not in (*IN_THE_GUEST, "python"):
        raise UserError(f"{args.command}: takes nothing after --")
    return _help(args.about) if args.command == "help" else COMMANDS[args.command].run(args, argv)


def _help(about: list[str]) -> int:
    known = parser()
    for name in (["dev", *about] if about and about[0] in SHORT else about):
        commands = known.commands()
        if name not in commands:
            raise no_such("command", name, commands, "help")
        known = commands[name]
    known.print_help()
    return 0


def joined(argv: list[str]) -> list[str]:
    """Join each --cflags and its value with `=`. Otherwise argparse would take the value `-O3` for an option of this program."""
    at = argv.index("--cflags") if "--cflags" in argv[:-1] else None
    return argv if at is None else [*argv[:at], f"--cflags={argv[at + 1]}", *joined(argv[at + 2:])]


def main() -> int:
    """Run the command line. User errors become one line, Ctrl-C becomes status 130."""
    argv, guest_argv = sys.argv[1:], []
    if "--" in argv:
        cut = argv.index("--")
        argv, guest_argv = argv[:cut], argv[cut + 1:]
    if argv and argv[0] in OLD:
        say(f"{argv[0]}: this command is now ./trapless {OLD[argv[0]]}")
        return 2
    if argv and argv[0] in SHORT:
        argv = ["dev", *argv]
    args = parse(parser(), joined(argv))
    signals.listen()
    try:
        check_built_in(args)
        if getattr(args, "ssd", None):
            args.settings = [f"ssd={args.ssd}", *args.settings]
        return dispatch(args, guest_argv)
    except UserError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:
        return 1
    finally:
        signals.finish()


def entry() -> NoReturn:
    """Run the command `trapless` of an environment with the installed wheel."""
    sys.exit(main())


if __name__ == "__main__":
    entry()
