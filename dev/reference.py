# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev reference`: writes the generated pages of docs/reference. Commands come from the command line's own parser,
keys of profiles from their types (profile_keys.py), goals from their registers (goal_pages.py)."""

from __future__ import annotations

import argparse
import re

from trapless.base.arguments import Parser
from trapless.base.outputs import write_whole
from trapless.base.paths import ROOT
from trapless.base.ui import UserError, say
from trapless.cli.__main__ import SHORT, parser

from dev import goal_pages, profile_keys

FOLDER = ROOT / "docs" / "reference"
MADE = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by ./trapless dev reference from the command line's parser. -->
"""
USERS = MADE + """\
# Commands

[Run a program](../how-to/run-a-program.md) says how to start. [run.md](run.md) explains the options of `run`,
[sweeps.md](sweeps.md) explains the files of `sweep`, and [experiments.md](experiments.md) lists what `study` measures.
[commands-dev.md](commands-dev.md) has the commands for people who change the project.
"""
MAINTAINERS = MADE + """\
# Commands of `./trapless dev`

These commands are for people who change the project. [commands-checks.md](commands-checks.md) has the long checks, and
[commands.md](commands.md) has the commands for users.
"""
CHECKERS = MADE + """\
# Long checks of `./trapless dev`

[Check a change](../how-to/check-a-change.md) says which of them to use when. [commands-dev.md](commands-dev.md) has the other
commands for people who change the project.
"""
CHECKS = ("soak", "selftests", "attack", "torture", "stc", "kernel-mutants", "repeat", "difftest", "lockstep", "fuzz",
          "rtl-linux", "rtl-predict", "rtl-bench")
"""Commands of `dev` that have a separate page, so that no page is too long."""


def pages() -> dict[str, str]:
    """Return all pages by name."""
    top = parser()
    told = _told(top)
    users = USERS + "".join(_section("##", name, own, told[name]) for name, own in top.commands().items()
                            if name not in ("dev", "help"))
    dev = top.commands()["dev"]
    short = f"\n{', '.join(f'`{word}`' for word in SHORT)} work without `dev`, too.\n"
    told = _told(dev)
    sections = {name: _section("##", name, own, told[name]) for name, own in dev.commands().items()}
    return {"commands.md": users, "commands-checks.md": CHECKERS + "".join(sections.pop(name) for name in CHECKS),
            "commands-dev.md": MAINTAINERS + short + "".join(sections.values())} | profile_keys.pages()


def _told(parser: Parser) -> dict[str, str]:
    """Return the help text of each command."""
    return {action.dest: action.help for group in parser._subparsers._group_actions for action in group._choices_actions}


def _section(level: str, name: str, own: Parser, about: str) -> str:
    rows = [row for action in own._actions if (row := _row(action))]
    table = "\n| argument | meaning |\n| --- | --- |\n" + "".join(rows) if rows else ""
    return f"\n{level} {name}\n\n{_sentence(about)}\n{table}"


def _row(action: argparse.Action) -> str:
    """Return the table row of an argument; empty for --help."""
    if isinstance(action, argparse._HelpAction):
        return ""
    shown = action.metavar or ("|".join(action.choices) if action.choices else action.dest.upper())
    value = "" if action.nargs == 0 else f" {shown}"
    word = ", ".join(f"{option}{value}" for option in action.option_strings) or f"{shown}{' ...' if action.nargs == '*' else ''}"
    return f"| `{_cell(word)}` | {_cell(re.sub(r' +', ' ', action.help or ''))} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def run(check: bool) -> int:
    """Write the pages; with `check`, raise UserError if one is out of date."""
    for name, text in pages().items():
        path = FOLDER / name
        if not check:
            write_whole(path, text)
            say(f"docs/reference/{name} written")
        elif not path.is_file() or path.read_text() != text:
            raise UserError(f"docs/reference/{name} is out of date: run ./trapless dev reference")
    return goal_pages.run(check)
