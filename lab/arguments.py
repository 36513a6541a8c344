# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a command line, in one line that says what was meant or what to do."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import NoReturn

from lab.ui import nearest, say

IN_THE_GUEST = ("run", "profile", "trace")
"""Commands that take another one, which goes behind `--`."""
TRACE_WORDS = ("info", "dump")


class Parser(argparse.ArgumentParser):
    """Complains in one line, and knows what a misspelt word may have meant."""

    def error(self, message: str) -> NoReturn:
        """End the program with the usual status of a wrong command line."""
        name = self.prog.removeprefix("trapless").strip()
        say(f"{name}: {message}" if name else message)
        sys.exit(2)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"not {value}; {nearest(str(value), action.choices)}")

    def options(self) -> list[str]:
        """All that begin with a dash."""
        return [name for action in self._actions for name in action.option_strings]

    def commands(self) -> dict[str, Parser]:
        """Parsers of the subcommands."""
        found = [action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return found[0] if found else {}


def parse(parser: Parser, argv: list[str]) -> argparse.Namespace:
    """Parse a command line without what stands behind `--`; the program ends if it is wrong."""
    commands = parser.commands()
    for kind, known in (("option", parser.options()), ("command", commands)):
        if argv and argv[0].startswith("-") == (kind == "option") and argv[0] not in known:
            parser.error(f"no such {kind}: {argv[0]}; {nearest(argv[0], known)}")
    args, left = parser.parse_known_args(argv)
    if args.command == "trace" and args.what not in (None, *TRACE_WORDS):
        left = [args.what, *left]
    if left:
        _refuse(commands[args.command], args.command, left[0], argv)
    return args


def _refuse(parser: Parser, command: str, word: str, argv: list[str]) -> NoReturn:
    """Complain of the first word that means nothing."""
    if word.startswith("-") and word != "-":
        name = word.partition("=")[0]
        parser.error(f"no such option: {name}; {nearest(name, parser.options(), rest=False) or f'{command} --help lists them'}")
    if command not in IN_THE_GUEST:
        parser.error(f"takes no {word}: {command} --help says what it takes")
    places = [place for place, other in enumerate(argv) if other == word]
    # An option may have the same word as its value.
    cut = next((place for place in places if not argv[place - 1].startswith("-")), places[-1])
    words = shlex.join(["./trapless", *argv[:cut], "--", *argv[cut:]])
    also = f" (or trace {'|'.join(TRACE_WORDS)} FILE)" if command == "trace" else ""
    parser.error(f"a command goes behind --: {words}{also}")
