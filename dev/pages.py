# SPDX-License-Identifier: Apache-2.0
"""Checks of every page (.md) of the project: links and anchors exist, pages and tables are small enough to read, code parses, and
the command line knows the commands that are shown. `./trapless dev docs` and dev/tests/test_docs.py run them."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from trapless.base.paths import ROOT
from trapless.cli.__main__ import SHORT, parser
from trapless.study.catalogue import EXPERIMENTS

from dev import testing

LINES, COLUMNS = 200, 7
"""Maximum number of lines of a page, and of columns of its tables."""
LONG = {
    "rtl/smu/doc/registers.md": "generated: one description of all registers, which readers search",
}
"""Pages that may be longer, and why."""
WIDE: dict[str, str] = {}
"""Pages whose tables may be wider, and why."""

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_ATTRIBUTE = re.compile(r"""\b(?:href|src|srcset)="([^"]+)\"""")
_OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:")
_MENTION = re.compile(r"(?<![\w/.-])(?!\w+/(?:NAME|toy)/)(?:docs|studies|spec|rtl|linux|machine|python)/[\w/.-]*\w\.md\b")
_NAME = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+){4,})`")
_COMMAND = re.compile(r"(?<![\w/])\./trapless(?= )((?:[^\n`|;&<>()#\\]|\\\n|<(?=[A-Z]))*)")
_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|\[|\]|[^\s'\"\[\]]+")


@cache
def tracked(root: Path = ROOT) -> tuple[str, ...]:
    """Return all files that git tracks or would add."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, check=True, capture_output=True,
                            text=True).stdout.split("\0")
    return tuple(sorted({name for name in listed if name and (root / name).is_file()}))


def pages(root: Path = ROOT) -> list[Path]:
    """Return all pages."""
    return [root / name for name in tracked(root) if name.endswith(".md")]


@cache
def tokens(path: Path) -> tuple[Token, ...]:
    """Parse a page as GitHub does, into blocks and inline tokens."""
    def flat(found: list[Token]) -> Iterator[Token]:
        for token in found:
            yield token
            yield from flat(token.children or [])

    return tuple(flat(_MARKDOWN.parse(path.read_text())))


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the names of a page's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    found, at = set(), tokens(path)
    for number, token in enumerate(at):
        if token.type == "heading_open":
            text = "".join(part.content for part in at[number + 1].children or [] if part.type in ("text", "code_inline"))
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return frozenset(found)


def links(path: Path) -> Iterator[str]:
    """Yield the targets of a page's links and pictures."""
    for token in tokens(path):
        if token.type == "link_open":
            yield str(token.attrs["href"])
        elif token.type == "image":
            yield str(token.attrs["src"])
        elif token.type in ("html_block", "html_inline"):
            yield from _ATTRIBUTE.findall(token.content)


def notebook_links(path: Path) -> Iterator[str]:
    """Yield the targets of links in a notebook's text."""
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "markdown":
            yield from re.findall(r"\]\(([^)\s]+)\)", "".join(cell["source"]))


def broken_links(path: Path, root: Path = ROOT) -> Iterator[str]:
    """Yield the links of a page or a notebook that lead nowhere in the checkout."""
    for target in notebook_links(path) if path.suffix == ".ipynb" else links(path):
        if _OUTSIDE.match(target):
            continue
        place, _, anchor = target.partition("#")
        to = (path.parent / place).resolve() if place else path
        if not to.exists() or not to.is_relative_to(root):
            yield f"link to {target}: no such file"
        elif anchor and (to.suffix != ".md" or anchor not in anchors(to)):
            yield f"link to {target}: no such heading"


def lost_mentions(name: str, root: Path = ROOT) -> Iterator[str]:
    """Yield pages that a file names by their path in the checkout, but that do not exist."""
    try:
        text = (root / name).read_text()
    except UnicodeDecodeError:
        return
    for found in sorted(set(_MENTION.findall(text))):
        if not (root / found).is_file():
            yield f"names {found}, which does not exist"


def lost_names(path: Path, root: Path = ROOT) -> Iterator[str]:
    """Yield names of five words and more, such as those of tests, that a page gives but that are nowhere else in the checkout."""
    for name in sorted(set(_NAME.findall(path.read_text())) - _words(root)):
        yield f"names {name}, which does not exist"


@cache
def _words(root: Path) -> frozenset[str]:
    """Return all words of files that are not pages."""
    found: set[str] = set()
    for name in tracked(root):
        if not name.endswith(".md"):
            try:
                found.update(re.findall(r"\w+", (root / name).read_text()))
            except UnicodeDecodeError:
                continue
    return frozenset(found)


def too_large(path: Path, root: Path = ROOT) -> Iterator[str]:
    """Yield a line for a page that is too long, for tables that are too wide, and for exceptions that are no longer needed."""
    name, lines = str(path.relative_to(root)), len(path.read_text().splitlines())
    if lines > LINES and name not in LONG:
        yield f"{lines} lines, more than {LINES}: split it"
    if lines <= LINES and name in LONG:
        yield f"{lines} lines: dev/pages.py need not list it in LONG"
    widest = max(columns(path), default=0)
    if widest > COLUMNS and name not in WIDE:
        yield f"a table of {widest} columns, more than {COLUMNS}: put some into a file beside it"
    if widest <= COLUMNS and name in WIDE:
        yield f"tables of at most {widest} columns: dev/pages.py need not list it in WIDE"


def columns(path: Path) -> list[int]:
    """Return the number of columns of each table of a page."""
    found: list[int] = []
    for token in tokens(path):
        if token.type == "table_open":
            found.append(0)
        elif token.type == "th_open":
            found[-1] += 1
    return found


def bad_code(path: Path) -> Iterator[str]:
    """Yield blocks of TOML, JSON and Python that do not parse."""
    readers = {"toml": tomllib.loads, "json": json.loads, "python": ast.parse}
    for token in tokens(path):
        if token.type == "fence" and token.info in readers:
            try:
                readers[token.info](token.content)
            except (ValueError, SyntaxError) as error:
                yield f"line {token.map[0] + 1}: not {token.info}: {error}"


def commands(path: Path) -> Iterator[str]:
    """Yield each command after `./trapless` that a page shows, without words for the shell or the guest."""
    for token in tokens(path):
        if token.type in ("fence", "code_block", "code_inline"):
            for words in _COMMAND.findall(token.content):
                yield words.replace("\\\n", " ")


def bad_commands(path: Path) -> Iterator[str]:
    """Yield commands and options that the command line does not know."""
    for words in commands(path):
        if wrong := unknown(_WORD.findall(words)):
            yield f"./trapless{words.rstrip()}: {wrong}"


@cache
def _parser() -> object:
    return parser()


def unknown(words: list[str]) -> str:
    """Return the words of a command that the command line does not know, or an empty text. Words in capitals are placeholders."""
    if "--" in words:
        words = words[:words.index("--")]
    words = [word for word in words if word not in ("[", "]", "...")]
    known, path = _parser(), []
    while words and known.commands() and not words[0].startswith("-"):
        word = words.pop(0)
        if word.isupper():
            return ""
        if word == "help" and not path:
            continue
        if word in SHORT and not path:
            known = known.commands()["dev"]
        if word not in known.commands():
            return f"no command {word}"
        known = known.commands()[word]
        path.append(word)
    if known.prefix_chars == "\0":
        return ""
    options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    if strange := options - set(known.options()):
        return f"no option {', '.join(sorted(strange))}"
    names = {"study": {*EXPERIMENTS, "all"}, "test": {suite.name for suite in testing.suites(True)}}.get(path[-1] if path else "")
    if names and words and not words[0].startswith("-") and not words[0].isupper() and words[0] not in names:
        return f"no {path[-1]} {words[0]}"
    return ""


def faults(root: Path = ROOT) -> list[str]:
    """Return all errors, one line each."""
    found: list[str] = []
    for name in tracked(root):
        path = root / name
        if name.endswith((".md", ".ipynb")):
            found += (f"{name}: {fault}" for fault in broken_links(path, root))
        if name.endswith(".md"):
            found += (f"{name}: {fault}" for fault in (
                *too_large(path, root), *lost_names(path, root), *bad_code(path), *bad_commands(path)))
        found += (f"{name}: {fault}" for fault in lost_mentions(name, root))
    return found
