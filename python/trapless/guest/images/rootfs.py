# SPDX-License-Identifier: Apache-2.0
"""The guest's root file system: Debian trixie packages for its architecture, unpacked (never run) on the host, and our tools."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from trapless.base.cache import CACHE, cached, check_room, content_key
from trapless.base.ui import UserError
from trapless.guest import build
from trapless.guest.images import debian, ext4

RECIPE = "root image 1"
"""Part of the cache key of root images. Raise it when the images change."""
PACKAGES = ("busybox-static", "fio")
ROOM = 512 * ext4.MIB
"""Bytes of disk that making an image takes: the packages, their content, and the image twice."""

# Linux names drives in the order in which their probes end, so the kernel finds its root partition by this signature.
SIGNATURE = 0x54504C31
PARTUUID = f"{SIGNATURE:08x}-01"

# Commands of busybox that get a link in /usr/bin, unless Debian has its own binary.
APPLETS = (
    "[ ash awk base64 basename cat chmod chown clear cmp cp cut date dd df dirname dmesg du echo env expr false find free "
    "grep gunzip gzip head hexdump hostname id kill less ln losetup ls md5sum mkdir mkfifo mknod mktemp more mount mv nproc od "
    "paste pgrep pidof poweroff printenv printf ps pwd readlink realpath reboot renice reset rm rmdir sed seq sh sha256sum "
    "sha512sum sleep sort split stat stty sum swapoff swapon sync tail tar taskset tee test time timeout top touch tr true "
    "truncate tty umount uname uniq uptime vi watch wc which xargs xxd yes zcat"
).split()

# The files of /etc that a guest without network and users needs.
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "group": "root:x:0:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hosts": "127.0.0.1 localhost\n",
    "hostname": "trapless\n",
    "profile": "export PS1='trapless# '\n",
}
_FILES = "files"
EMPTY = ("dev", "proc", "sys", "tmp", "run", "root", "job", "data", "mnt")
DROPPED = (
    "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian", "usr/share/info", "usr/share/bug",
    "usr/share/doc-base", "usr/share/fio", "var/lib/apt", "var/cache", "var/log", "var/lib/dpkg", "etc/apt",
    "dev", "run", "tmp",
    # Init mounts the disks, and there is no network.
    "etc/fstab", "etc/resolv.conf",
    # Libraries for graphics, which only stress-ng's tests of graphics would use.
    "usr/lib/*/libLLVM*", "usr/lib/*/libgallium*", "usr/lib/*/dri", "usr/lib/*/libz3*",
)


def image(arch: build.Arch = build.RISCV, more: tuple[str, ...] = ()) -> Path:
    """Return the root image, built if it does not exist; `more` names packages that only some runs need."""
    tools = build.guest_tools(arch)
    packages = PACKAGES + more
    key = content_key(repr((packages, APPLETS, ETC, EMPTY, DROPPED)), arch.debian, tools, *debian.PARTS, ext4.RECIPE, RECIPE)
    title = f"making the guest's root image for {arch.machine}{' with ' if more else ''}{', '.join(more)}"
    return cached("rootfs", key, title, lambda out: _build(out, tools, arch, packages), ROOM) / "root.img"


def files(image: Path) -> frozenset[str]:
    """Return the paths of all files in a root image, without the first slash. Those of /bin, /sbin and /lib begin with usr."""
    return frozenset(image.with_name(_FILES).read_text().splitlines())


def _build(out: Path, tools: Path, arch: build.Arch, packages: tuple[str, ...]) -> None:
    tree = out / "tree"
    debian.unpack(arch.debian, packages, tree)
    populate(tree, tools)
    paths = sorted(str(path.relative_to(tree)) for path in tree.rglob("*"))
    (out / _FILES).write_text("".join(f"{path}\n" for path in paths))
    files = len(paths)
    used = sum(path.lstat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    size = (used * 5 // 4 // ext4.MIB + 16) * ext4.MIB
    check_room(2 * size, CACHE, f"making an image of {', '.join(packages)}")
    volume = out / "volume.img"
    ext4.make(ext4.Volume("trapless-root", size, ext4.LEAN, files + 256), tree, volume)
    ext4.partition(volume, out / "root.img", SIGNATURE)
    volume.unlink()
    shutil.rmtree(tree)


def populate(tree: Path, tools: Path) -> None:
    """Turn unpacked packages into a root: make links, empty folders, /etc and our tools, and delete what no run reads."""
    for name in DROPPED:
        for path in list(tree.glob(name)):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
    for name in EMPTY:
        (tree / name).mkdir(exist_ok=True)
    for name in ("bin", "sbin", "lib"):
        (tree / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (tree / name).exists():
            (tree / name).symlink_to(f"usr/{name}")
    if (tree / "usr/lib64").exists() and not (tree / "lib64").exists():
        (tree / "lib64").symlink_to("usr/lib64")  # programs of amd64 look for their loader there
    for name, text in ETC.items():
        (tree / "etc" / name).write_text(text)
        (tree / "etc" / name).chmod(0o644)
    busybox = next((path for path in (tree / "usr/bin/busybox", tree / "bin/busybox") if path.exists()), None)
    if busybox is None:
        raise UserError("the package busybox-static has no busybox")
    for name in APPLETS:
        link = tree / "usr/bin" / name
        if not os.path.lexists(link):
            link.symlink_to("busybox")
    for name, place in build.GUEST_TOOLS.items():
        target = tree / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tools / name, target)
        target.chmod(0o755)
