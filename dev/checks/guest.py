# SPDX-License-Identifier: Apache-2.0
"""Boots a kernel on the machine with the init of linux/checks and one of its programs. A boot takes half a second."""

from __future__ import annotations

import functools
import gzip
import re
import stat
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trapless.base.cache import CACHE, cached, content_key, own_log, run_tool
from trapless.guest import build
from trapless.guest.boot import workspace
from trapless.guest.images.ext4 import EPOCH, MIB

# MiB of the disk's partitions. The first file system leaves a tenth of its partition free, so that it can grow. The last one is a
# single block group, so that its allocator has little to search.
_LARGE, _SMALL, _TINY = 288, 32, 16


@dataclass(frozen=True)
class Boot:
    """One boot of the guest."""

    kernel: Path
    program: str = "hwdp-check"
    options: tuple[str, ...] = ()
    """Words before the folder on the program's command line."""
    names: tuple[str, ...] = ()
    """Words after the folder: the tests to run; empty for all."""
    settings: tuple[str, ...] = ()
    """Single profile values, `key=value`."""
    memory: str = "256M"
    append: str = ""
    """Text to add to the kernel's command line."""
    populate: str = "sync"
    """When entries are armed. Arming in mmap() is the default here: most can go wrong there, and everything that a test maps is
    armed."""
    smu: bool = True
    max_seconds: float = 600
    """Simulated seconds after which the run is stopped."""


@dataclass(frozen=True)
class Result:
    """Result of a boot."""

    console: str
    finished: bool
    """Whether the program ended and the guest powered off."""
    status: int
    """The program's wait status; -1 if it did not finish."""

    @property
    def passed(self) -> bool:
        """Whether the program ran to its end with status 0."""
        return self.finished and self.status == 0

    def lines(self, pattern: str) -> list[str]:
        """Return the console's lines that match."""
        return [line for line in self.console.splitlines() if re.match(pattern, line)]

    def counter(self, name: str) -> int | None:
        """Return the value of a line `name value` in the statistics at the end."""
        found = re.findall(rf"^{name} (-?\d+)$", self.console, re.MULTILINE)
        return int(found[-1]) if found else None


def run(boot: Boot, show: Callable[[str], None] | None = None) -> Result:
    """Boot and wait. `show` is called with every line of the console as it comes."""
    words = ["console=ttyS0 quiet rdinit=/init", f"run=/{boot.program}", f"hwdp.populate={boot.populate}",
             boot.append]
    if boot.options:
        words.append(f"check={','.join(boot.options)}")
    if boot.names:
        words.append(f"only={','.join(boot.names)}")
    command = [str(machine()), "run", "--kernel", str(boot.kernel), "--initrd", str(initrd()),
               "--memory", boot.memory, "--disk", f"{disk()},snapshot", "--max-seconds", str(boot.max_seconds),
               "--append", " ".join(word for word in words if word)]
    for setting in boot.settings:
        command += ["--set", setting]
    if not boot.smu:
        command.append("--no-smu")
    lines = []
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip("\r\n")
            lines.append(line)
            if show:
                show(line)
    console = "\n".join(lines)
    said = re.findall(r"^status (\d+)$", console, re.MULTILINE)
    finished = process.returncode == 0 and bool(said)
    return Result(console, finished, int(said[-1]) if finished else -1)


@functools.cache
def machine() -> Path:
    """Return the machine's program, brought up to date once."""
    return build.machine()


def prepare() -> None:
    """Build what every boot needs, before several boots begin at the same time."""
    machine()
    initrd()
    disk()


RECIPE = "guest checks 1"
"""Part of the cache key of the disk and the RAM disk. Raise it when they change."""


@functools.cache
def initrd() -> Path:
    """Return the initial RAM disk: check-init as /init, and the programs."""
    folder = build.guest_checks()
    return cached("guest-initrd", content_key(folder, RECIPE), "packing the guest checks",
                  lambda out: _pack(folder, out / "initrd.gz")) / "initrd.gz"


def _pack(folder: Path, archive: Path) -> None:
    entries = [("dev", stat.S_IFDIR | 0o755, (0, 0), b""), ("dev/console", stat.S_IFCHR | 0o600, (5, 1), b"")]
    for path in sorted(folder.iterdir()):
        name = "init" if path.name == "check-init" else path.name
        entries.append((name, stat.S_IFREG | 0o755, (0, 0), path.read_bytes()))
    data = b"".join(_member(number + 1, *entry) for number, entry in enumerate(entries))
    archive.write_bytes(gzip.compress(data + _member(0, "TRAILER!!!", 0, (0, 0), b""), 1, mtime=0))


def _member(inode: int, name: str, mode: int, device: tuple[int, int], content: bytes) -> bytes:
    """Return one member of a cpio archive in the "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    encoded = name.encode() + b"\0"
    fields = [inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    return head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4)


@functools.cache
def disk() -> Path:
    """Return a disk with three file systems: ext4 with Debian's options, a small one with 1 KiB blocks and inline data, and a
    tiny one."""
    return cached("check-disk", content_key(RECIPE), "making the checks' disk", _make_disk) / "disk.img"


def _make_disk(out: Path) -> None:
    large = _file_system(out / "large", _LARGE, ["-b", "4096", "-J", "size=4"], _LARGE * 9 // 10)
    small = _file_system(out / "small", _SMALL, ["-b", "1024", "-J", "size=4", "-O", "inline_data", "-I", "256"], _SMALL)
    tiny = _file_system(out / "tiny", _TINY, ["-b", "4096", "-J", "size=4"], _TINY)
    table = bytearray(512)
    table[510:512] = b"\x55\xaa"
    start = 1
    with workspace() as folder, open(folder / "disk", "wb") as image:
        for number, (volume, mib) in enumerate(((large, _LARGE), (small, _SMALL), (tiny, _TINY))):
            entry = 446 + 16 * number
            table[entry + 4] = 0x83  # Linux
            table[entry + 8:entry + 16] = b"".join(
                (n * MIB // 512).to_bytes(4, "little") for n in (start, mib))
            image.seek(start * MIB)
            image.write(volume.read_bytes())
            volume.unlink()
            start += mib
        image.seek(0)
        image.write(table)
        image.flush()
        run_tool(["cp", "--sparse=always", folder / "disk", out / "disk.img"], CACHE / "logs" / "check-disk.log",
                 "making the checks' disk")


def _file_system(path: Path, mib: int, options: list[str], used_mib: int) -> Path:
    with open(path, "wb") as image:
        image.truncate(mib * MIB)
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"trapless:check-{path.name}"))
    with own_log("mke2fs-check") as log:
        run_tool(["mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-U", identity, "-L", f"check-{path.name}",
                  "-E", f"hash_seed={identity},root_owner=0:0,lazy_itable_init=0,lazy_journal_init=0,nodiscard", *options,
                  path, f"{used_mib}m"], log, "making the checks' disk",
                 {"E2FSPROGS_FAKE_TIME": str(EPOCH), "SOURCE_DATE_EPOCH": str(EPOCH)})
    return path
