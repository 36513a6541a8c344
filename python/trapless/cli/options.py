# SPDX-License-Identifier: Apache-2.0
"""Adds options that several commands share, and makes requests from their values."""

from __future__ import annotations

import argparse
from pathlib import Path

from trapless.base.arguments import twice
from trapless.base.paths import MACHINE
from trapless.base.ui import UserError, nearest, no_such
from trapless.guest.build import ALL_SERIES, smu_rtl
from trapless.guest.job import KINDS
from trapless.guest.run import OPTIONS, Request, parse_data


def series(text: str) -> tuple[str, ...]:
    """Parse names of kernel series, separated by commas."""
    names = text.split(",")
    for name in names:
        if name not in ALL_SERIES:
            raise argparse.ArgumentTypeError(f"no such series: {name}; {nearest(name, ALL_SERIES)}")
    if name := twice(names):
        raise argparse.ArgumentTypeError(f"{name} is given twice in {text}; give it once")
    return tuple(name for name in ALL_SERIES if name in names)


def data_of(text: str) -> str:
    """Check the value of --data."""
    try:
        parse_data(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--data ")) from None
    return text


PARSERS = {"data": data_of, "series": series}
"""Parsers of options whose values need more than a check of their type."""


def add_option(command: argparse._ActionsContainer, word: str) -> None:
    """Add one option of a guest (trapless.guest.run.Request)."""
    option = OPTIONS[word]
    about, kind = option.metadata, option.metadata["kind"]
    names = ["--on", "--simulator"] if word == "on" else [f"--{word}"]
    given: dict[str, object] = {"help": about["about"], "dest": option.name}
    if kind is bool:
        given["action"] = "store_true"
    elif kind is list and word != "series":
        given |= {"action": "append", "default": [], "metavar": about["shown"], "type": Path if word == "in" else str}
    else:
        given |= {"default": option.default, "type": PARSERS.get(word, str if kind is list else kind)}
        given |= {"choices": about["choices"]} if about["choices"] else {"metavar": about["shown"]}
    command.add_argument(*names, **given)


def profile_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the machine and of its kernel."""
    add_option(command, "profile")
    command.add_argument("--ssd", metavar="NAME|FILE",
                         help="model of the drives, built in or a TOML file (default: the profile's; docs/reference/nvme.md)")
    for word in ("set", "kernel"):
        add_option(command, word)


def run_options(command: argparse.ArgumentParser) -> None:
    """Add the options of a guest."""
    which = command.add_mutually_exclusive_group()
    for word in OPTIONS:
        if word not in ("profile", "set", "kernel"):
            add_option(which if word in ("stock", "series") else command, word)
    command.add_argument("--elf", type=Path, metavar="FILE",
                         help="run this bare-metal program without a guest; it returns its exit status through tohost")
    profile_options(command)


def kinds_of(option: str, text: str | None) -> tuple[str, ...]:
    """Parse names of kinds, separated by commas."""
    kinds = tuple(text.split(",")) if text else ()
    if kind := twice(kinds):
        raise UserError(f"{option} {text}: {kind} is given twice; give it once")
    for kind in kinds:
        if kind not in KINDS:
            raise no_such("kind", kind, KINDS, option)
    return kinds


def count(args: argparse.Namespace, option: str, least: int = 1) -> int | None:
    """Return the value of an option that is a number. Raises UserError if it is less than `least`."""
    value = getattr(args, option)
    if value is not None and value < least:
        raise UserError(f"--{option} must be at least {least}, not {value}")
    return value


def check_built_in(args: argparse.Namespace) -> None:
    """Raise UserError if a profile or a drive is neither a file nor built into the machine. This is checked before anything is
    built."""
    for option, folder in (("profile", MACHINE / "profiles"), ("ssd", MACHINE / "profiles" / "ssd")):
        name = getattr(args, option, None)
        known = sorted(file.stem for file in folder.glob("*.toml"))
        if name and known and name not in known and not Path(name).is_file():
            raise no_such(f"{'profile' if option == 'profile' else 'drive'} or file", name, known, f"--{option}")


def request(args: argparse.Namespace, argv: list[str], **more: object) -> Request:
    """Make the request of `run` or `profile` for a guest."""
    given = {option.name: getattr(args, option.name) for option in OPTIONS.values()}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return Request(argv, **given, options=tuple(machine_options(args)), **more)


def elf_options(args: argparse.Namespace, argv: list[str]) -> list[str]:
    """Return the machine's options for a bare-metal program. Raises UserError for an option that applies only to guests."""
    others = {f"--{word}": getattr(args, option.name) not in (option.default, [])
              for word, option in OPTIONS.items() if not option.metadata["bare"]}
    others |= {f"--{name}": getattr(args, name.replace("-", "_"))
               for name in ("out", "interactive", "check-atomic") if args.command == "run"}
    if odd := [option for option, given in others.items() if given]:
        raise UserError(f"{odd[0]}{' qemu' if odd[0] == '--on' else ''} applies only to guests: leave it out with --elf")
    if argv:
        raise UserError(f"--elf: takes no command after --: {argv[0]}")
    own = {"--json": getattr(args, "stats", None), "--memory": args.memory, "--harts": args.harts,
           "--max-seconds": args.max_seconds}
    return [text for option, value in own.items() if value is not None for text in (option, str(value))]


def machine_options(args: argparse.Namespace) -> list[str]:
    """Return the options that are passed to the machine unchanged."""
    named = {"--trace": getattr(args, "trace", None), "--gdb": getattr(args, "gdb", None)}
    options = [text for name, value in named.items() if value for text in (name, value)]
    if getattr(args, "smu", "model") == "rtl":
        if args.simulator != "machine":
            raise UserError("--smu rtl does not work with --on qemu: leave one of them out")
        options.append(f"--smu-rtl={smu_rtl(args.profile, tuple(args.settings), args.harts)}")
    return options
