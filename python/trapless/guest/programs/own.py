# SPDX-License-Identifier: Apache-2.0
"""The user's own program: a host file (as it is, or compiled first), or a command of the guest."""

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
"""Folders of the guest's commands (PATH of trapless-init). /bin and /sbin are links to those below /usr."""
_PACKAGES = {"python": "python-is-python3", "node": "nodejs", "tclsh": "tcl", "lua": "lua5.4", "php": "php-cli",
             "Rscript": "r-base-core", "java": "default-jre-headless", "pwsh": ""}
"""Debian packages of interpreters whose package has another name; empty if Debian has no package."""
_NOT_OURS = ("-o", "-c", "-S", "-E")
"""Compiler options that are refused, because the result would not be a program or would be elsewhere."""


@dataclass(frozen=True)
class Own:
    """The user's command, prepared for the guest."""

    argv: list[str]
    """The command line for the guest."""
    files: tuple[Path, ...] = ()
    """Files that are copied into the command's folder; the program is first."""
    packages: tuple[str, ...] = ()
    """Debian packages that the guest needs for it."""


def resolve(argv: list[str], arch: Arch = RISCV, folder: Path = Path(), cflags: str = "", packages: tuple[str, ...] = ()) -> Own:
    """Return the command line for the guest, with the files and packages that it needs there; paths begin at `folder`.

    A first word that ends in .c, .cc, .cpp or .cxx is compiled with `cflags`, and with the headers and libraries of the Debian
    `packages`. A first word that ends in .py and is a file of this host is run by the guest's python3. A relative path with a
    slash that is a file of this host is copied into the guest. Any other first word is a command of the guest, and so are
    absolute paths.
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
        raise UserError(f"--cflags: {word or 'a shell'} is not compiled, because it is not a source file "
                        f"({', '.join(cross.SOURCES)})")
    if path.suffix == ".py" and path.is_file():
        return Own(["python3", f"./{path.name}", *argv[1:]], (path,), ("python3",))
    if "/" not in word or word.startswith("/") or not path.is_file():
        return Own(argv)
    check(path, word, arch)
    return Own([f"./{path.name}", *argv[1:]], (path,))


def refuse(word: str, folder: Path, inputs: tuple[Path, ...]) -> None:
    """Raise UserError if the first word of a command means a file of this host that is missing or cannot be run. Files among
    `inputs` are copied into the command's folder."""
    path = folder / word
    if not (word.startswith("./") or path.suffix == ".py" and "/" not in word) or path.name in {given.name for given in inputs}:
        return
    if path.is_dir():
        raise UserError(f"{word}: is a folder, not a program")
    if not path.exists():
        raise UserError(f"{word}: no such file")
    if path.suffix not in (*cross.SOURCES, ".py") and not os.access(path, os.X_OK):
        raise UserError(f"{word}: is not executable (chmod +x {word})")


def _flags(cflags: str, folder: Path) -> tuple[list[Path], list[str]]:
    """Split --cflags into source files and compiler options."""
    try:
        words = shlex.split(cflags)
    except ValueError as error:
        raise UserError(f"--cflags {cflags}: {str(error).lower()}") from None
    if odd := next((word for word in words if word.startswith(_NOT_OURS)), None):
        raise UserError(f"--cflags {odd}: leave it out: trapless sets the kind and the name of the output")
    sources = [word for word in words if not word.startswith("-") and Path(word).suffix in cross.SOURCES]
    if missing := next((word for word in sources if not (folder / word).is_file()), None):
        raise UserError(f"--cflags {missing}: no such file")
    return [folder / word for word in sources], [word for word in words if word not in sources]


def is_static(path: Path) -> bool:
    """Whether this program is statically linked, so that no library can be preloaded."""
    found = elf.read(path)
    return found is not None and found.interpreter is None


def check(path: Path, program: str, arch: Arch) -> None:
    """Raise UserError if a guest of this architecture cannot run the file. The message calls the file `program`. Every script is
    accepted."""
    found = elf.read(path)
    if found is None:
        with open(path, "rb") as file:
            if file.read(2) != b"#!":
                raise UserError(f"{program}: neither a program (ELF) nor a script that begins with #!")
    elif found.machine != arch.machine:
        prefix = arch.compiler_prefix()
        compiler = f"{prefix}gcc" if prefix else "the host's gcc"
        raise UserError(f"{program}: a program for {found.machine}, but the guest is {arch.machine} (give a C or C++ file, which "
                        f"trapless compiles, or compile the program with {compiler})")


def check_needs(path: Path, program: str, guest: frozenset[str], arch: Arch = RISCV) -> None:
    """Raise UserError if the guest lacks a loader or library of the program. `guest` has the files of its root image. The message
    names a remedy."""
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
            raise UserError(f"{program}: needs the library {library}, which the guest lacks: give --package NAME, perhaps {name}")


def _interpreter(path: Path, program: str, guest: frozenset[str]) -> str | None:
    """Return the message for a script whose interpreter the guest lacks; None if the guest has it."""
    with open(path, "rb") as file:
        line = file.readline(256)[2:]
    if line.endswith(b"\r\n"):
        return f"{program}: its first line ends in a carriage return, so that no interpreter is found (dos2unix removes them)"
    words = line.decode(errors="replace").split()
    if not words or not words[0].startswith("/"):
        return None
    needed, name = words[0], Path(words[0]).name
    if _place(needed) in guest and name == "env":
        # Options and values of variables are arguments of env itself.
        name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), name)
        needed = name
        if "/" in name or any(f"{folder}/{name}" in guest for folder in _COMMANDS):
            return None
    elif _place(needed) in guest:
        return None
    package = _PACKAGES.get(name, name)
    return f"{program}: needs {needed}, which the guest lacks{f': give --package {package}' if package else ''}"


def not_found(files: tuple[Path, ...], argv: list[str], guest: frozenset[str]) -> str | None:
    """Return the message for a command that a shell did not find. None if `files` went along with the command: then the missing
    command may be one that a script calls."""
    word = argv[0] if argv else ""
    if not word or files:
        return None
    if re.search(r"[\s|;&<>]", word):
        return f"{word}: this needs a shell: sh -c '{word}'"
    if "/" in word:
        if _place(word) in guest:
            return None
        if Path(word).is_file():
            near = os.path.relpath(word)
            near = near if "/" in near else f"./{near}"
            return f"{word}: is not in the guest; trapless copies files with a relative path: give {near}"
        return f"{word}: neither a file here nor a command of the guest"
    if any(f"{folder}/{word}" in guest for folder in _COMMANDS):
        return None
    return f"{word}: the guest has no such command (give --package {_PACKAGES.get(word, word)}, if Debian has it)"


def left_behind(argv: list[str], copied: tuple[Path, ...]) -> str | None:
    """Return the message for an argument that is a file here by a relative path, but has no such path in the guest. The command's
    folder there has what was `copied`: the inputs, and what the first word names. A word without slash and dot may be no file."""
    names = {path.name for path in copied}
    for word in argv[1:]:
        path = Path(os.path.normpath(word))
        if path.is_absolute() or path.parts[0] in names or not ("/" in word or "." in word) or not path.is_file():
            continue
        if path.name in names:
            return f"{word}: is {path.name} in the guest"
        placed = "" if path.name == str(path) else f", as {path.name}"
        return f"{word}: is not in the guest: --in {word} copies it into the command's folder{placed}"
    return None


def _place(path: str) -> str:
    """Convert a path of the guest to the form of `rootfs.files`."""
    parts = [part for part in path.split("/") if part]
    return "/".join((["usr"] if parts and parts[0] in ("bin", "sbin", "lib", "lib64") else []) + parts)


def _package_of(library: str) -> str:
    """Guess the name of the Debian package of a library: libfoo.so.1 is in libfoo1, libfoo2.so.1 in libfoo2-1."""
    name, _, version = library.partition(".so")
    version = version.lstrip(".").partition(".")[0]
    return f"{name}{'-' if version and name[-1:].isdigit() else ''}{version}".lower().replace("_", "-")
