# SPDX-License-Identifier: Apache-2.0
"""Compiles C and C++ for the guest on the host, with libraries of Debian's packages for the guest's architecture."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from trapless.base.cache import CACHE, as_root, cached, content_key, run_tool
from trapless.base.paths import LINUX
from trapless.base.ui import UserError, say
from trapless.guest.build import RISCV, Arch
from trapless.guest.images import debian

MARKER = LINUX / "tools"
"""Folder of marker.h, with which programs tell the machine which part of them to measure."""
WARNINGS = ("-Wall", "-Wextra")
LOG = CACHE / "logs" / "programs.log"
RECIPE = "programs 1"
"""Part of the cache key of compiled programs. Raise it when the way of compiling changes."""


SOURCES = {".c": "gcc", ".cc": "g++", ".cpp": "g++", ".cxx": "g++"}
"""Compilers by the suffix of a source file."""
_FOLDERS = ("-I", "-isystem", "-idirafter", "-iquote", "-L")
"""Options that name a folder: a folder of the host, or the package's folder if the path is absolute and a package has it."""
_CAUSE = r"\berror:|undefined reference|cannot find"


def compiler(arch: Arch, which: str = "gcc") -> str:
    """Return the compiler for this architecture. The C++ compiler is installed when it is first needed. UserError if there is
    none."""
    name = f"{arch.compiler_prefix()}{which}"
    if (found := shutil.which(name)) is None and which == "g++":
        package = f"g++-{arch.machine.replace('_', '-')}-linux-gnu" if arch.compiler_prefix() else "g++"
        say(f"{name} not found: installing {package} (once)")
        apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "--no-install-recommends", "install", package]
        what = f"installing {package}"
        run_tool([*as_root(what), *apt], CACHE / "logs" / "apt.log", what)
        found = shutil.which(name)
    if found is None:
        raise UserError(f"{name} not found (./trapless setup installs it)")
    return found


def compile_program(name: str, sources: Iterable[Path], flags: tuple[str, ...] = (), packages: tuple[str, ...] = (),
                    arch: Arch = RISCV, folder: Path = Path()) -> Path:
    """Compile these C or C++ files to the program `name` for the guest, and return its path. Programs are cached by the content
    of the files and of the headers that belong to the project or the user. `flags` are options of the compiler; relative paths
    in them begin at `folder`. Headers and libraries (`-lNAME`) of Debian's `packages` are found, too.

    If the compiler fails, UserError has its first complaint.
    """
    sources = tuple(sources)
    program = compiler(arch, max((SOURCES.get(source.suffix, "gcc") for source in sources), key="gcc g++".index))
    tree = _tree(packages, arch) if packages else None
    options, libraries = _options(program, flags, packages, tree, arch, folder)
    beside = {path for source in sources for path in source.parent.glob("*.h")} | {MARKER / "marker.h"}
    beside |= {path for path in _included(program, sources, options) if not tree or not path.is_relative_to(tree)}
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    key = content_key(name, *sources, *sorted(beside), repr((flags, packages)), arch.kernel, version, *debian.PARTS, RECIPE)

    def builder(out: Path) -> None:
        command = [program, "-O2", *WARNINGS, "-pthread", "-I", MARKER, *options, "-o", out / name, *sources, *libraries]
        run_tool(command, LOG, f"compiling {name}", {"LC_ALL": "C"}, cause=_CAUSE)

    return cached("programs", key, f"compiling {name} for {arch.machine}", builder) / name


def _tree(packages: tuple[str, ...], arch: Arch) -> Path:
    """Return the folder with these packages, unpacked."""
    names = ", ".join(packages)
    return cached("libraries", content_key(repr(packages), arch.debian, *debian.PARTS), f"unpacking {names} for {arch.machine}",
                  lambda out: debian.unpack(arch.debian, packages, out / "tree")) / "tree"


def _included(program: str, sources: tuple[Path, ...], options: list[str]) -> set[Path]:
    """Return the files that the sources include, except the system's; none if the compiler reports an error, which the
    compilation will then show."""
    asked = subprocess.run([program, "-MM", "-I", MARKER, *options, *sources], capture_output=True, text=True, check=False)
    words = re.split(r"(?<!\\)\s+", asked.stdout.replace("\\\n", " ")) if asked.returncode == 0 else []
    return {Path(word.replace("\\ ", " ")) for word in words if word and not word.endswith(":")} - set(sources)


def _options(program: str, flags: tuple[str, ...], packages: tuple[str, ...], tree: Path | None, arch: Arch,
             folder: Path) -> tuple[list[str], list[str]]:
    """Return the compiler's options, and the libraries, which come behind the sources.

    A package's library is named by its file and not searched for: the guest's C library is in the same folder, and must not take
    the place of the compiler's. Symbols that the package's library needs from the guest's C library exist when the program runs.
    """
    options, libraries, places = [], [], []
    if tree:
        multiarch = f"{arch.machine}-linux-gnu"
        places = [tree / "usr" / "lib" / multiarch, tree / "usr" / "lib"]
        headers = tree / "usr" / "include"
        options += ["-idirafter", str(headers / multiarch), "-idirafter", str(headers)]
        libraries += [f"-Wl,-rpath-link,{places[0]}", "-Wl,--allow-shlib-undefined"]
    words = iter(flags)
    wanted = []
    for word in words:
        option = next((option for option in _FOLDERS if word.startswith(option)), None)
        if word.startswith("-l"):
            wanted.append(word[2:] or next(words, ""))
        elif option:
            named = word[len(option):] or next(words, "")
            inside = tree / named.lstrip("/") if tree and named.startswith("/") else None
            place = inside if inside and inside.is_dir() else (folder / named).absolute()
            if option == "-L":
                places.insert(0, place)
            options += [option, str(place)]
        else:
            options.append(word)
    for name in wanted:
        files = [place / f"lib{name}{end}" for place in places for end in (".so", ".a")]
        if file := next((file for file in files if file.exists()), None):
            libraries.append(str(file))
        elif any(Path(_asked(program, f"lib{name}{end}")).is_absolute() for end in (".so", ".a")):
            libraries.append(f"-l{name}")
        else:
            of = f"and {', '.join(packages)} lack it" if packages else "(--package NAME adds a Debian package, like liblmdb-dev)"
            raise UserError(f"-l{name}: the compiler has no such library {of}")
    return options, libraries


def _asked(program: str, name: str) -> str:
    """Return where the compiler has this file; the bare name if it does not have it."""
    return subprocess.run([program, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
