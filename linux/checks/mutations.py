#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Does every rule have a test that fails without the code for it?

mutations.toml (for the series stc: stc-mutations.toml) lists pieces of the series' code, and how to take each out. All mutants
are built into one kernel; the boot parameter mutant=N switches one on. Mutants that need more than the ordinary configuration
are built into a second kernel with full.config. Mutant 0 is the unchanged series: every test must pass. Every other mutant must
fail its test. `./trapless dev kernel-mutants` builds, boots and judges (dev/checks/mutants.py). This program changes a kernel
tree:

    linux/checks/mutations.py [--series stc] --apply TREE    change a patched tree in place
    linux/checks/mutations.py [--series stc] --check TREE    only check whether the table fits the tree
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Declarations that the changed files need. `mutant(n)` is false, and cheap, unless the kernel was booted as mutant n.
HEADER = """/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _LINUX_MUTANT_H
#define _LINUX_MUTANT_H
#ifndef __ASSEMBLY__
extern int mutant_nr;
#define mutant(n) __builtin_expect(mutant_nr == (n), 0)
void mutant_wait(void);	/* as long as some misses take */
#endif
#endif
"""
SWITCH = """// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cache.h>
#include <linux/delay.h>
#include <linux/mutant.h>
#include <linux/init.h>
#include <linux/kernel.h>

int mutant_nr __read_mostly;

static int __init mutant_setup(char *arg)
{
	return kstrtoint(arg, 0, &mutant_nr);
}
early_param("mutant", mutant_setup);

void mutant_wait(void)
{
	udelay(200);
}
"""
INCLUDE = "#include <linux/mutant.h>\n"
RECIPE = "mutants 1"
"""Part of the cache key of kernels with mutants, for all that changes a tree except the table. Raise it whenever HEADER, SWITCH
or Edit changes."""


@dataclass(frozen=True)
class Series:
    """A series of patches, its mutants, and what finds them."""

    folder: str
    table: str
    program: str
    configs: tuple[str, ...]
    seconds: int
    """Limit of a boot in simulated seconds. A mutant can loop in a page fault of the kernel, which nothing else ends."""


SERIES = {
    "hwdp": Series("series", "mutations.toml", "hwdp-check", ("hwdp.config",), 300),
    "stc": Series("series-stc", "stc-mutations.toml", "stc-check", ("stc.config", "stc-check.config", "huge.config"), 40),
}


class TableError(Exception):
    """An entry of the table does not fit the tree."""


@dataclass(frozen=True)
class Edit:
    """One changed place. Either the statement `drop` is not run, or `old` is replaced by `new`, in which MUTANT means "this
    mutant is on". `drop` or `old` must occur exactly once in the function `within`, or in the file if there is none."""

    file: str
    drop: str = ""
    old: str = ""
    new: str = ""
    within: str = ""

    def place(self, text: str) -> tuple[int, int]:
        """Where the text to change begins and ends."""
        start, end = function(text, self.within) if self.within else (0, len(text))
        wanted = self.drop or self.old
        found = [m.start() for m in re.finditer(re.escape(wanted), text[start:end])]
        if len(found) != 1:
            where = f"{self.file}{f', {self.within}()' if self.within else ''}"
            raise TableError(f"{wanted!r} is {len(found)} times in {where}; it must be there once")
        return start + found[0], start + found[0] + len(wanted)

    def result(self, numbers: list[int]) -> str:
        """The new text of the place. The mutants with these numbers switch the change on."""
        switch = " || ".join(f"mutant({number})" for number in numbers)
        if self.drop:
            return f"if ({switch}) {{ }} else {self.drop}"
        return self.new.replace("MUTANT", f"({switch})" if len(numbers) > 1 else switch)


@dataclass(frozen=True)
class Mutation:
    """Code that is taken out, and the test that must then fail."""

    name: str
    rule: str
    test: str
    program: str
    edits: tuple[Edit, ...]
    set: tuple[str, ...] = ()
    """Settings of the machine's profile, key=value, that make a race likely."""
    boot: str = ""
    """Text to add to the kernel's command line."""
    full: bool = False
    """Needs the kernel with full.config."""

    @property
    def conditions(self) -> tuple:
        """What the mutant's boot needs. Mutants with the same conditions share a boot of the unchanged series."""
        return self.full, self.program, self.test, self.set, self.boot


def function(text: str, name: str) -> tuple[int, int]:
    """Where the definition of a function begins and ends."""
    for match in re.finditer(rf"^[^\s#/*].*\b{re.escape(name)}\(", text, re.MULTILINE):
        brace, semicolon = text.find("\n{", match.start()), text.find(";", match.start())
        if 0 <= brace < semicolon:
            return match.start(), text.index("\n}", brace)
    raise TableError(f"there is no function {name}")


def table(series: Series) -> list[Mutation]:
    """The mutations; number n of the kernel is the n-th here."""
    rows = tomllib.loads((HERE / series.table).read_text())["mutation"]
    found = []
    for row in rows:
        edits = tuple(Edit(**edit) for edit in row.pop("edit"))
        found.append(Mutation(**{"program": series.program, **row, "edits": edits, "set": tuple(row.get("set", ()))}))
        for edit in edits:
            if bool(edit.drop) == bool(edit.old) or edit.old and "MUTANT" not in edit.new:
                raise TableError(f"{row['name']}: an edit needs either drop, or old and new with MUTANT in it")
    names = [mutation.name for mutation in found]
    for name in names:
        if names.count(name) > 1:
            raise TableError(f"two mutations are called {name!r}")
    return found


def changed(tree: Path, series: Series) -> dict[str, str]:
    """The text of each changed file with all mutations in it, by file name."""
    texts: dict[str, str] = {}
    # Several mutants may share an edit: each of these mutants switches the edit on.
    users: dict[Edit, list[int]] = {}
    places: dict[str, list[tuple[int, int, Edit, str]]] = {}
    problems = []
    for number, mutation in enumerate(table(series), 1):
        for edit in mutation.edits:
            try:
                if edit.file not in texts:
                    texts[edit.file] = (tree / edit.file).read_text()
                if edit not in users:
                    places.setdefault(edit.file, []).append((*edit.place(texts[edit.file]), edit, mutation.name))
                users.setdefault(edit, []).append(number)
            except OSError as error:
                problems.append(f"{mutation.name}: cannot read {edit.file}: {error.strerror}")
            except TableError as error:
                problems.append(f"{mutation.name}: {error}")
    files = {}
    for name, found in places.items():
        text, last = texts[name], len(texts[name])
        for start, end, edit, what in sorted(found, key=lambda place: place[0], reverse=True):
            if end > last:
                problems.append(f"{what}: overlaps with another mutation of {name}")
            text, last = text[:start] + edit.result(users[edit]) + text[end:], start
        files[name] = INCLUDE + text
    if problems:
        raise TableError("\n".join(problems))
    return files


def apply(tree: Path, series: Series) -> None:
    """Put all mutations and their switch into a tree."""
    for name, text in changed(tree, series).items():
        (tree / name).write_text(text)
    (tree / "include/linux/mutant.h").write_text(HEADER)
    (tree / "mm/mutant.c").write_text(SWITCH)
    makefile = tree / "mm/Makefile"
    makefile.write_text(makefile.read_text() + "obj-y += mutant.o\n")


def main() -> int:
    """Run the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", choices=SERIES, default="hwdp")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--apply", metavar="TREE", type=Path)
    what.add_argument("--check", metavar="TREE", type=Path)
    options = parser.parse_args()
    series = SERIES[options.series]
    try:
        if options.apply:
            apply(options.apply, series)
        else:
            print(f"{len(changed(options.check, series))} files, {len(table(series))} mutations")
    except TableError as error:
        print(f"mutations: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
