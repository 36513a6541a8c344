# SPDX-License-Identifier: Apache-2.0
"""Reads from an ELF file how it runs: its processor, its loader, its libraries (System V ABI)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"\x7fELF"
_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29


@dataclass(frozen=True)
class Elf:
    """A program or a library."""

    machine: str
    interpreter: str | None = None
    """The dynamic linker that loads it; None for a static file."""
    libraries: tuple[str, ...] = ()
    """Names of the libraries in its dynamic section."""
    run_paths: tuple[str, ...] = ()
    """Folders that are searched first for its libraries."""

    @property
    def own_folder(self) -> bool:
        """Whether libraries are also searched beside the program, in a folder whose content is not known beforehand."""
        return any("$ORIGIN" in path or "${ORIGIN}" in path for path in self.run_paths)


def read(path: Path) -> Elf | None:
    """Read an ELF file; None if the file is not ELF. If it is not 64-bit little-endian, or is cut short, only the machine is
    read."""
    data = path.read_bytes()
    if not data.startswith(_MAGIC):
        return None
    number = int.from_bytes(data[18:20], "little")
    machine = _MACHINES.get(number, f"machine {number}")
    if data[4:6] != b"\x02\x01":
        return Elf(machine)
    try:
        return _read(data, machine)
    except (struct.error, ValueError):
        return Elf(machine)


def _read(data: bytes, machine: str) -> Elf:
    (start,), (size, count) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<HH", data, 54)
    interpreter, loads, dynamic = None, [], b""
    for at in range(start, start + size * count, size or 1):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at)
        if kind == _PT_INTERP:
            interpreter = data[offset:offset + length].rstrip(b"\0").decode()
        elif kind == _PT_LOAD:
            loads.append((address, offset, length))
        elif kind == _PT_DYNAMIC:
            dynamic = data[offset:offset + length]
    entries = [struct.unpack_from("<QQ", dynamic, at) for at in range(0, len(dynamic) - 15, 16)]
    table = next((value for tag, value in entries if tag == _DT_STRTAB), 0)
    strings = next((offset + table - address for address, offset, length in loads if address <= table < address + length), None)

    def text(value: int) -> str:
        begin = strings + value
        return data[begin:data.index(b"\0", begin)].decode()

    if strings is None:
        return Elf(machine, interpreter)
    libraries = tuple(text(value) for tag, value in entries if tag == _DT_NEEDED)
    paths = tuple(path for tag, value in entries if tag in (_DT_RPATH, _DT_RUNPATH) for path in text(value).split(":") if path)
    return Elf(machine, interpreter, libraries, paths)
