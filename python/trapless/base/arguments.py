# SPDX-License-Identifier: Apache-2.0
"""Checks of the command line. Each complaint is one line that says what the user may have meant, or what to do."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable
from typing import NoReturn

from trapless.base.ui import UserError, nearest, say

IN_THE_GUEST = ("run", "profile", "trace")
"""Commands that take another command after `--`."""
TRACE_WORDS = ("info", "dump", "import")


class _Once(argparse._StoreAction):
    """Stores the value of an option. Refuses a second value, which would silently replace the first."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object,
                 option_string: str | None = None) -> None:
        given = namespace.__dict__.setdefault("given", set())
        if option_string and self.dest in given:
            raise argparse.ArgumentError(self, "is given twice; give it once")
        given.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Argument parser whose errors are one line and suggest the right word for a misspelt one."""

    def __init__(self, **options: object) -> None:
        """Like argparse's parser, but an option with one value must not be given twice."""
        super().__init__(**options)
        self.also: tuple[str, ...] = ()
        """Words that stand for commands of a subcommand."""
        for name in (None, "store"):
            self.register("action", name, _Once)

    def error(self, message: str) -> NoReturn:
        """Print the message and end the program with the usual status for a wrong command line (2)."""
        name = self.prog.removeprefix("trapless").strip()
        say(f"{name}: {message}" if name else message)
        sys.exit(2)

    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        # An option whose default is the empty text adds words to a command line. Its value may be empty.
        if not arg_string and action.option_strings and action.default != "":
            raise argparse.ArgumentError(action, f"is empty; give {action.metavar or ' or '.join(action.choices or ())}")
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"not {value}; {nearest(str(value), action.choices)}")

    def options(self) -> list[str]:
        """Return all options: words that begin with a dash."""
        return [name for action in self._actions for name in action.option_strings]

    def commands(self) -> dict[str, Parser]:
        """Return the parsers of the subcommands."""
        found = [action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return found[0] if found else {}


def parse(parser: Parser, argv: list[str]) -> argparse.Namespace:
    """Parse a command line up to its `--`. Ends the program if the command line is wrong."""
    commands = parser.commands()
    if not argv:
        parser.error(f"no command; there are {', '.join([*commands, *parser.also])}; --help explains them")
    for kind, known in (("option", parser.options()), ("command", [*commands, *parser.also])):
        if argv and argv[0].startswith("-") == (kind == "option") and argv[0] not in known:
            parser.error(f"no such {kind}: {argv[0]}; {nearest(argv[0], known)}")
    args, left = parser.parse_known_args(argv)
    if args.command == "trace" and args.what not in (None, *TRACE_WORDS):
        left = [args.what, *left]
    command, own = args.command, commands[args.command]
    if command == "dev":
        command, own = args.dev, own.commands()[args.dev]
    if left:
        _refuse(own, command, left[0], argv)
    ssd = [f"ssd={args.ssd}"] if getattr(args, "ssd", None) else []
    try:
        check_settings((*ssd, *getattr(args, "settings", ())), getattr(args, "harts", None), getattr(args, "memory", None))
    except UserError as error:
        own.error(str(error))
    return args


def twice(words: Iterable[str]) -> str | None:
    """Return the first word that occurs for the second time, or None."""
    seen: set[str] = set()
    return next((word for word in words if word in seen or seen.add(word)), None)


def check_settings(settings: tuple[str, ...], harts: int | None = None, memory: str | None = None) -> None:
    """Raise UserError if a value of the machine's profile is given twice, because only the last value would count."""
    keys = [setting.partition("=")[0] for setting in settings]
    if key := twice(keys):
        first, second, *_ = [f"--set {setting}" for setting in settings if setting.partition("=")[0] == key]
        raise UserError(f"{second}: {key} was already given by {first.replace('--set ssd=', '--ssd ')}; give it once")
    for option, value, key in (("harts", harts, "machine.harts"), ("memory", memory, "machine.memory_bytes")):
        if value is not None and key in keys:
            raise UserError(f"--{option} {value}: --set {settings[keys.index(key)]} sets the same value; give only one of them")


def trace_file(text: str) -> str:
    """Check the argument of --trace: a file and its options. ArgumentTypeError if an option is given twice."""
    if key := twice(option.partition("=")[0] for option in text.split(",")[1:]):
        raise argparse.ArgumentTypeError(f"{key} is given twice in {text}; give it once")
    return text


def _refuse(parser: Parser, command: str, word: str, argv: list[str]) -> NoReturn:
    """Report the first word that the command does not know."""
    if word.startswith("-") and word != "-":
        name = word.partition("=")[0]
        parser.error(f"no such option: {name}; {nearest(name, parser.options(), rest=False) or f'{command} --help lists them'}")
    if command not in IN_THE_GUEST:
        parser.error(f"takes no {word}: {command} --help says what it takes")
    places = [place for place, other in enumerate(argv) if other == word]
    # The same word may also occur as the value of an option: skip such a place.
    cut = next((place for place in places if not argv[place - 1].startswith("-")), places[-1])
    words = shlex.join(["./trapless", *argv[:cut], "--", *argv[cut:]])
    also = f" (or trace {'|'.join(TRACE_WORDS)} FILE)" if command == "trace" else ""
    parser.error(f"a command goes after --: {words}{also}")
