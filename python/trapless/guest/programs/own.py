# SPDX-License-Identifier: Apache-2.0
"""The user's own program: a file of this host, as it is or compiled on the way, or a command that the guest has."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from trapless.base.ui import UserError
from trapless.guest.build import RISCV, Arch
from trapless.guest.programs import cross, elf

_COMMANDS = ("usr/local/bin", "usr/bin", "usr/sbin")
"""Where the guest's commands are (PATH of trapless-init; /bin and /sbin are links to those below /usr)."""
_PACKAGES = {"python": "python-is-python3", "node": "nodejs", "tclsh": "tcl", "lua": "lua5.4", "php": "php-cli",
             "Rscript": "r-base-core", "java": "default-jre-headless", "pwsh": ""}
"""Debian packages of interpreters, where the name is another one; empty for those that Debian has not."""
_NOT_OURS = ("-o", "-c", "-S", "-E")
"""The compiler's options that would leave something else than a program, or elsewhere."""


@dataclass(frozen=True)
class Own:
    """What a command of the user's becomes."""

    argv: list[str]
    """For the guest."""
    files: tuple[Path, ...] = ()
    """Files that the guest needs in the command's folder; the program first."""
    packages: tuple[str, ...] = ()
    """Debian packages that the guest needs for it."""


def resolve(argv: list[str], arch: Arch = RISCV, folder: Path = Path(), cflags: str = "", packages: tuple[str, ...] = ()) -> Own:
    """Return the command line for the guest, with the files and packages that it needs there; paths begin at `folder`.

    A first word that ends in .c, .cc, .cpp or .cxx is compiled, with `cflags` and what the Debian `packages` have. A first word
    that ends in .py and is a file of this host is run by the guest's python3. A relative path with a slash that is a file of this
    host is copied into the guest. Any other first word is a command of the guest, and so are absolute paths.
    UserError if the file is for another processor.
    """
    word = argv[0] if argv else ""
    path = folder / word
    if path.suffix in cross.SOURCES:
        if not path.is_file():
            raise UserError(f"{word}: no such file")
        sources, flags = _flags(cflags, folder)
        program = cross.compile_program(path.stem, [path, *sources], (*flags, "-lm"), packages, arch, folder)
        return Own([f"./{path.stem}", *argv[1:]], (program,))
    if cflags:
        raise UserError(f"--cflags: {word or 'a shell'} is not compiled: no source file ({', '.join(cross.SOURCES)})")
    if path.suffix == ".py" and path.is_file():
        return Own(["python3", f"./{path.name}", *argv[1:]], (path,), ("python3",))
    if path.suffix == ".py" and not path.is_absolute():
        raise UserError(f"{word}: no such file")
    if "/" not in word or word.startswith("/") or not path.is_file():
        return Own(argv)
    check(path, word, arch)
    return Own([f"./{path.name}", *argv[1:]], (path,))


def _flags(cflags: str, folder: Path) -> tuple[list[Path], list[str]]:
    """The source files and the compiler options of --cflags."""
    try:
        words = shlex.split(cflags)
    except ValueError as error:
        raise UserError(f"--cflags {cflags}: {str(error).lower()}") from None
    if odd := next((word for word in words if word.startswith(_NOT_OURS)), None):
        raise UserError(f"--cflags {odd}: leave it out: trapless decides what the compiler makes, and where")
    sources = [word for word in words if not word.startswith("-") and Path(word).suffix in cross.SOURCES]
    if missing := next((word for word in sources if not (folder / word).is_file()), None):
        raise UserError(f"--cflags {missing}: no such file")
    return [folder / word for word in sources], [word for word in words if word not in sources]


def is_static(path: Path) -> bool:
    """Is it a program that no dynamic linker loads, so that no library can be loaded before it?"""
    found = elf.read(path)
    return found is not None and found.interpreter is None


def check(path: Path, program: str, arch: Arch) -> None:
    """UserError, which calls the file `program`, if a guest of this architecture cannot run it. Any script passes."""
    found = elf.read(path)
    if found is None:
        with open(path, "rb") as file:
            if file.read(2) != b"#!":
                raise UserError(f"{program}: neither a program (ELF) nor a script that begins with #!")
    elif found.machine != arch.machine:
        raise UserError(f"{program}: is for {found.machine}; the guest is {arch.machine} (a file of C or C++ is compiled for it "
                        f"on the way; {arch.compiler_prefix() or 'the host-'}gcc compiles anything else)")


def check_needs(path: Path, program: str, guest: frozenset[str], arch: Arch = RISCV) -> None:
    """UserError if the guest, whose root image has these files, lacks a loader or library of the program; names a remedy."""
    found = elf.read(path)
    if found is None:
        if lacks := _interpreter(path, program, guest):
            raise UserError(lacks)
        return
    if found.interpreter and _place(found.interpreter) not in guest:
        raise UserError(f"{program}: needs the loader {found.interpreter}, which the guest lacks: it has Debian's for "
                        f"{arch.machine} (link the program with -static, or compile it with Debian's compiler)")
    folders = [f"usr/lib/{arch.machine}-linux-gnu", "usr/lib", "usr/local/lib", *map(_place, found.run_paths)]
    for library in found.libraries if found.interpreter else ():
        if "/" not in library and not any(f"{folder}/{library}" in guest for folder in folders) and not found.own_folder:
            name = _package_of(library)
            raise UserError(f"{program}: needs the library {library}, which the guest lacks: --package NAME, perhaps {name}")


def _interpreter(path: Path, program: str, guest: frozenset[str]) -> str | None:
    """What to say of a script whose interpreter the guest lacks."""
    with open(path, "rb") as file:
        line = file.readline(256)[2:]
    if line.endswith(b"\r\n"):
        return f"{program}: its first line ends in a carriage return, so that no interpreter is found (dos2unix removes them)"
    words = line.decode(errors="replace").split()
    if not words or not words[0].startswith("/"):
        return None
    needed, name = words[0], Path(words[0]).name
    if _place(needed) in guest and name == "env":
        # Options, and values of variables, are env's own.
        name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), name)
        needed = name
        if "/" in name or any(f"{folder}/{name}" in guest for folder in _COMMANDS):
            return None
    elif _place(needed) in guest:
        return None
    package = _PACKAGES.get(name, name)
    return f"{program}: needs {needed}, which the guest lacks{f': --package {package}' if package else ''}"


def not_found(files: tuple[Path, ...], argv: list[str], guest: frozenset[str]) -> str | None:
    """What to say when a shell has not found the command, if it was not one of the `files` that went along: it may also be a
    script's own command that is missing."""
    word = argv[0] if argv else ""
    if not word or files:
        return None
    if re.search(r"[\s|;&<>]", word):
        return f"{word}: no shell reads this: sh -c '{word}'"
    if "/" in word:
        if _place(word) in guest:
            return None
        if Path(word).is_file():
            near = os.path.relpath(word)
            near = near if "/" in near else f"./{near}"
            return f"{word}: is not in the guest; a path from this folder copies it: {near}"
        return f"{word}: neither a file here nor a command of the guest"
    if any(f"{folder}/{word}" in guest for folder in _COMMANDS):
        return None
    return f"{word}: the guest has no such command (--package {_PACKAGES.get(word, word)}, if Debian has it)"


def _place(path: str) -> str:
    """A path of the guest as `rootfs.files` has it."""
    parts = [part for part in path.split("/") if part]
    return "/".join((["usr"] if parts and parts[0] in ("bin", "sbin", "lib", "lib64") else []) + parts)


def _package_of(library: str) -> str:
    """How Debian likely names the package of a library: libfoo.so.1 is libfoo1, libfoo2.so.1 is libfoo2-1."""
    name, _, version = library.partition(".so")
    version = version.lstrip(".").partition(".")[0]
    return f"{name}{'-' if version and name[-1:].isdigit() else ''}{version}".lower().replace("_", "-")
