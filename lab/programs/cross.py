# SPDX-License-Identifier: Apache-2.0
"""Compiles C for the guest on the host, with libraries of Debian's packages for the guest's architecture."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.build import RISCV, Arch
from lab.cache import CACHE, cached, content_key, run_tool
from lab.images import debian
from lab.paths import LINUX
from lab.ui import UserError

MARKER = LINUX / "tools"
"""Where marker.h is, for programs that show the machine what of them to measure."""
WARNINGS = ("-Wall", "-Wextra")
LOG = CACHE / "logs" / "programs.log"


@dataclass(frozen=True)
class Library:
    """A library that a program is linked with."""

    name: str
    """As the linker has it: `m` for libm."""
    package: str = ""
    """Debian's, with the headers; empty for a part of the C library."""


MATH = Library("m")
ROCKSDB = Library("rocksdb", "librocksdb-dev")


def compiler(arch: Arch) -> str:
    """The C compiler for this architecture; UserError if there is none."""
    name = f"{arch.compiler_prefix()}gcc"
    found = shutil.which(name)
    if found is None:
        raise UserError(f"{name} not found (./trapless setup installs it)")
    return found


def compile_c(name: str, sources: Iterable[Path], libraries: tuple[Library, ...] = (), arch: Arch = RISCV,
              flags: tuple[str, ...] = ()) -> Path:
    """The program `name` of these files of C, for the guest; kept by content, with the headers of the project's and the user's.

    UserError has the compiler's first complaint.
    """
    sources = tuple(sources)
    gcc = compiler(arch)
    beside = {path for source in sources for path in source.parent.glob("*.h")} | {MARKER / "marker.h"}
    beside |= _included(gcc, sources, flags)
    version = subprocess.run([gcc, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    key = content_key(name, *sources, *sorted(beside), repr((libraries, flags)), arch.kernel, version, debian.LOCK,
                      Path(__file__))

    def builder(out: Path) -> None:
        command: list[str | Path] = [gcc, "-O2", *WARNINGS, "-pthread", "-I", MARKER, *flags, "-o", out / name, *sources]
        for library in libraries:
            command += _options(library, arch)
        run_tool(command, LOG, f"compiling {name}", {"LC_ALL": "C"})

    return cached("programs", key, f"compiling {name} for {arch.machine}", builder) / name


def _included(gcc: str, sources: tuple[Path, ...], flags: tuple[str, ...]) -> set[Path]:
    """Files that the sources include, but for the system's; none if the compiler has something to say: it will say it then."""
    asked = subprocess.run([gcc, "-MM", "-I", MARKER, *flags, *sources], capture_output=True, text=True, check=False)
    words = re.split(r"(?<!\\)\s+", asked.stdout.replace("\\\n", " ")) if asked.returncode == 0 else []
    return {Path(word.replace("\\ ", " ")) for word in words if word and not word.endswith(":")} - set(sources)


def _options(library: Library, arch: Arch) -> list[str | Path]:
    """How the compiler is told of a library: by its file, for beside it lies the guest's C library, which is another one than
    the compiler's. What the library wants of that one is there when the program runs.
    """
    if not library.package:
        return [f"-l{library.name}"]
    tree = cached("libraries", content_key(library.package, arch.debian, debian.LOCK, Path(debian.__file__)),
                  f"unpacking {library.package} for {arch.machine}",
                  lambda out: debian.unpack(arch.debian, [library.package], out / "tree")) / "tree"
    folder = tree / "usr" / "lib" / f"{arch.machine}-linux-gnu"
    return ["-idirafter", tree / "usr" / "include", folder / f"lib{library.name}.so", f"-Wl,-rpath-link,{folder}",
            "-Wl,--allow-shlib-undefined"]
