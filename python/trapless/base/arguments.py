# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a command line, in one line that says what was meant or what to do."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable
from typing import NoReturn

from trapless.base.ui import UserError, nearest, say

IN_THE_GUEST = ("run", "profile", "trace")
"""Commands that take another one, which goes behind `--`."""
TRACE_WORDS = ("info", "dump")


class _Once(argparse._StoreAction):
    """Stores the value of an option that has one value: a second one would replace the first in silence."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object,
                 option_string: str | None = None) -> None:
        given = namespace.__dict__.setdefault("given", set())
        if option_string and self.dest in given:
            raise argparse.ArgumentError(self, "is given twice; give it once")
        given.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Complains in one line, and knows what a misspelt word may have meant."""

    def __init__(self, **options: object) -> None:
        """Like argparse's parser, but an option with one value must not be given twice."""
        super().__init__(**options)
        for name in (None, "store"):
            self.register("action", name, _Once)

    def error(self, message: str) -> NoReturn:
        """End the program with the usual status of a wrong command line."""
        name = self.prog.removeprefix("trapless").strip()
        say(f"{name}: {message}" if name else message)
        sys.exit(2)

    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        # An option whose default is the empty text adds words to others, and may add none.
        if not arg_string and action.option_strings and action.default != "":
            raise argparse.ArgumentError(action, f"is empty; give {action.metavar or ' or '.join(action.choices or ())}")
        return super()._get_value(action, arg_string)

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
    """Parse a command line up to its `--`. If it is wrong, the program ends."""
    commands = parser.commands()
    for kind, known in (("option", parser.options()), ("command", commands)):
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
    """The first word that was there before; None if there is none."""
    seen: set[str] = set()
    return next((word for word in words if word in seen or seen.add(word)), None)


def check_settings(settings: tuple[str, ...], harts: int | None = None, memory: str | None = None) -> None:
    """UserError if a value of the machine's profile is given twice: only the last one would count."""
    keys = [setting.partition("=")[0] for setting in settings]
    if key := twice(keys):
        first, second, *_ = [f"--set {setting}" for setting in settings if setting.partition("=")[0] == key]
        raise UserError(f"{second}: {key} is given before, by {first.replace('--set ssd=', '--ssd ')}; give it once")
    for option, value, key in (("harts", harts, "machine.harts"), ("memory", memory, "machine.memory_bytes")):
        if value is not None and key in keys:
            raise UserError(f"--{option} {value}: --set {settings[keys.index(key)]} says it, too; give one of them")


def trace_file(text: str) -> str:
    """A trace's file with its options, as the machine takes it. ArgumentTypeError if an option is given twice."""
    if key := twice(option.partition("=")[0] for option in text.split(",")[1:]):
        raise argparse.ArgumentTypeError(f"{key} is given twice in {text}; give it once")
    return text


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
