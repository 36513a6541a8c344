# SPDX-License-Identifier: Apache-2.0
"""The user's own program: a file of this host, as it is or compiled on the way, or a command that the guest has."""

from __future__ import annotations

import struct
from pathlib import Path

from lab.build import RISCV, Arch
from lab.programs import cross
from lab.ui import UserError

# Of an ELF file's header (System V ABI, "ELF Header").
_MAGIC = b"\x7fELF"
_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_PT_INTERP = 3
_LIBRARIES = (cross.MATH,)


def resolve(argv: list[str], arch: Arch = RISCV, folder: Path = Path()) -> tuple[list[str], tuple[Path, ...]]:
    """The command line for the guest, and the files that it needs there; paths begin at `folder`.

    A first word that ends in .c is compiled; a relative path with a slash that is a file of this host is taken along; any other
    is a command of the guest, as are absolute paths. UserError if the file is for another processor.
    """
    if not argv:
        return argv, ()
    word, path = argv[0], folder / argv[0]
    if word.endswith(".c"):
        if not path.is_file():
            raise UserError(f"{word}: no such file")
        return [f"./{path.stem}", *argv[1:]], (cross.compile_c(path.stem, [path], _LIBRARIES, arch),)
    if "/" not in word or word.startswith("/") or not path.is_file():
        return argv, ()
    check(path, word, arch)
    return [f"./{path.name}", *argv[1:]], (path,)


def is_static(path: Path) -> bool:
    """Is it a program that no dynamic linker loads, so that no library can be loaded before it?"""
    with open(path, "rb") as file:
        header = file.read(64)
        if not header.startswith(_MAGIC) or len(header) < 64:
            return False
        (start,), (size, count) = struct.unpack_from("<Q", header, 32), struct.unpack_from("<HH", header, 54)
        file.seek(start)
        parts = file.read(size * count)
    return all(struct.unpack_from("<I", parts, at)[0] != _PT_INTERP for at in range(0, len(parts) - 3, size or 1))


def check(path: Path, program: str, arch: Arch) -> None:
    """Can the guest run this file, which the user calls `program`? A script is taken for good."""
    with open(path, "rb") as file:
        header = file.read(20)
    if not header.startswith(_MAGIC):
        if not header.startswith(b"#!"):
            raise UserError(f"{program}: neither a program (ELF) nor a script that begins with #!")
        return
    number = struct.unpack_from("<H", header.ljust(20, b"\0"), 18)[0]
    if (machine := _MACHINES.get(number)) != arch.machine:
        raise UserError(f"{program}: is for {machine or f'machine {number}'}; the guest is {arch.machine} (a file of C is "
                        f"compiled for it on the way; {arch.compiler_prefix() or 'the host-'}gcc compiles anything else)")
