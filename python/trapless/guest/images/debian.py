# SPDX-License-Identifier: Apache-2.0
"""Debian packages for the guest, unpacked on the host and never run.

`packages.lock` names each package file with its SHA-256. So a guest has the same files wherever and whenever it is built, and
the mirror's index is not needed. (While a mirror is being updated, its index may not fit the index's signature for hours.) If
the mirror no longer has a file (a point release replaced it), or the lock does not know a package, the index gives today's
versions instead.

    .trapless/venv/bin/python -m trapless.guest.images.debian [PACKAGE...]

writes the lock again from the mirror's signed index, with these packages added to those it has.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from trapless.base.cache import CACHE, run_tool
from trapless.base.outputs import write_whole
from trapless.base.ui import UserError, nearest, say
from trapless.guest.images import alternatives

SUITE = "trixie"
LOCK = Path(__file__).with_name("packages.lock")
RECIPE = "packages 1"
"""Part of the cache key of unpacked packages. Raise it when they change."""
PARTS = (RECIPE, LOCK)
"""Everything that an unpacked package depends on, besides its name."""
LOG = CACHE / "logs" / "debian-packages.log"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
APT_HELPER = "/usr/lib/apt/apt-helper"
# dpkg-deb's own --extract would replace the link /lib with a folder.
UNPACK = ("dpkg-deb --fsys-tarfile \"$1\" | "
          "tar --extract --preserve-permissions --no-same-owner --keep-directory-symlink --directory \"$2\"")


@dataclass(frozen=True)
class Deb:
    """A line of the lock: a package file of one architecture."""

    arch: str
    sha256: str
    path: str
    """Path below the mirror's address."""
    wanted_by: frozenset[str]
    """The requested packages that need this one, or are this one."""

    def line(self) -> str:
        """Return this line as it is in the lock."""
        return f"{self.arch} {self.sha256} {self.path} {','.join(sorted(self.wanted_by))}\n"


def read_lock(lock: Path) -> list[Deb]:
    """Return all lines of the lock. UserError if it is damaged."""
    debs = []
    for number, line in enumerate(lock.read_text().splitlines(), 1):
        if line.startswith("#"):
            continue
        words = line.split()
        if len(words) != 4 or len(words[1]) != 64:
            raise UserError(f"{lock.name}, line {number}: not ARCHITECTURE SHA256 PATH PACKAGES")
        debs.append(Deb(words[0], words[1], words[2], frozenset(words[3].split(","))))
    return debs


def locked_debs(arch: str, packages: Iterable[str]) -> list[Deb]:
    """Return the package files that the lock lists for these packages; none if the lock lacks one of the packages."""
    wanted = set(packages)
    debs = [deb for deb in read_lock(LOCK) if deb.arch == arch and deb.wanted_by & wanted]
    known = set().union(*(deb.wanted_by for deb in debs))
    return debs if wanted <= known else []


def mirror() -> str:
    """Return the address of the Debian mirror that this host uses."""
    try:
        listing = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)",
             "Created-By: Packages"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError("cannot ask apt-get for the Debian mirror of this host (apt-get indextargets shows why)") from error
    for line in listing.splitlines():
        origin, label, component, uri = line.split("|", 3)
        if (origin, label, component) == ("Debian", "Debian", "main"):
            return uri.removesuffix("/") + "/"
    raise UserError("apt's configuration names no Debian mirror, or its lists are missing (apt-get update may help)")


def unpack(arch: str, packages: Iterable[str], tree: Path) -> None:
    """Unpack packages and their dependencies into the new folder `tree`, owned by this user, and make the links of their
    alternatives. UserError names a package that is not available.
    """
    packages = tuple(packages)
    debs = locked_debs(arch, packages)
    files = _fetch(debs, CACHE / "debs") if debs else []
    if not files:
        known = set() if debs else {name for deb in read_lock(LOCK) if deb.arch == arch for name in deb.wanted_by}
        say(f"{', '.join(name for name in packages if name not in known)} ({arch}): "
            f"{'the mirror no longer has all of' if debs else 'not in'} {LOCK.name}; taking the versions that Debian has today")
        with tempfile.TemporaryDirectory() as folder:
            debs = _resolve(arch, list(packages), Path(folder))
        files = _fetch(debs, CACHE / "debs")
    if not files:
        raise UserError(f"{', '.join(packages)} ({arch}): the mirror lacks a file that its index names; try again later")
    tree.mkdir()
    for name in ("bin", "sbin", "lib"):
        # Some packages still have files in /lib.
        (tree / "usr" / name).mkdir(parents=True)
        (tree / name).symlink_to(f"usr/{name}")
    offered = []
    for deb, file in zip(debs, files, strict=True):
        run_tool(["sh", "-c", UNPACK, "sh", file, tree], LOG, f"unpacking {file.name}")
        found, odd = alternatives.read(_maintainer_script(file))
        offered += found
        for line in odd:
            say(f"{Path(deb.path).name}: its links are missing, because this command of its maintainer script is not understood: "
                f"{line[:100]}")
    alternatives.install(tree, offered)


def all_locked() -> list[Path]:
    """Return the files of all packages in the lock, and fetch missing ones. UserError if the mirror lacks one."""
    files = _fetch(list({deb.sha256: deb for deb in read_lock(LOCK)}.values()), CACHE / "debs")
    if not files:
        raise UserError(f"the mirror no longer has all of {LOCK.name}: write it again (docs/reference/run.md), or name another "
                        "mirror")
    return files


def _maintainer_script(deb: Path) -> str:
    """Return the script that a package would run when it is configured; empty if there is none."""
    control = subprocess.run(["dpkg-deb", "--ctrl-tarfile", deb], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(control)) as archive:
        member = next((entry for entry in archive if entry.name.removeprefix("./") == "postinst"), None)
        file = archive.extractfile(member) if member else None
        return file.read().decode(errors="replace") if file else ""


def _fetch(debs: list[Deb], folder: Path) -> list[Path]:
    """Fetch packages into `folder`, where files are named by their hashes. Return the files; none if one cannot be fetched."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{deb.sha256}.deb" for deb in debs]
    missing = [(deb, file) for deb, file in zip(debs, files, strict=True) if not _is_whole(deb, file)]
    if not missing:
        return files
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        os.chmod(fresh, 0o755)
        # With "file:", apt would make a link instead of a copy.
        address = re.sub("^file:", "copy:", mirror())
        request: list[str | Path] = []
        for deb, file in missing:
            request += [f"{address}{quote(deb.path)}", Path(fresh) / file.name, f"SHA256:{deb.sha256}"]
        try:
            run_tool([APT_HELPER, "-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root", "download-file", *request], LOG,
                     "fetching Debian packages for the guest")
        except UserError as error:
            say(str(error))
        for deb, file in missing:
            # Under this name, apt leaves only files with the right hash. We check it again, because the check is cheap.
            if not _is_whole(deb, Path(fresh) / file.name):
                return []
            (Path(fresh) / file.name).rename(file)
    return files


def _is_whole(deb: Deb, file: Path) -> bool:
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == deb.sha256


def relock(more: Iterable[str] = ()) -> int:
    """Write the lock from the mirror's signed index, for its present packages and `more`. Return the number of its lines."""
    wanted: dict[str, set[str]] = {}
    for deb in read_lock(LOCK):
        wanted.setdefault(deb.arch, set()).update(deb.wanted_by)
    lines = [line for line in LOCK.read_text().splitlines(keepends=True) if line.startswith("#")]
    for arch in sorted(wanted):
        with tempfile.TemporaryDirectory() as folder:
            lines += [deb.line() for deb in _resolve(arch, sorted(wanted[arch] | set(more)), Path(folder))]
    write_whole(LOCK, "".join(lines))
    return len(lines)


def _resolve(arch: str, packages: list[str], folder: Path) -> list[Deb]:
    """Return the package files that the mirror's index gives for these packages. Uses a separate apt in `folder`."""
    address = mirror()
    for name in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/apt/lists/partial", "var/lib/dpkg",
                 "var/cache/apt/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "var/lib/dpkg/status").touch()
    (folder / "etc/apt/sources.list").write_text(f"deb [arch={arch} signed-by={KEYRING}] {address} {SUITE} main\n")
    options = {"Dir": folder, "Dir::State::status": folder / "var/lib/dpkg/status", "APT::Architecture": arch,
               "APT::Architectures": arch, "APT::Install-Recommends": "false", "APT::Sandbox::User": "root",
               "Acquire::ForceHash": "SHA256"}
    settings = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    apt = ["apt-get", "-q", "-y", *settings]
    run_tool([*apt, "update", "--error-on=any"], LOG, f"reading the mirror's index for {arch}")
    wanted_by: dict[tuple[str, str], set[str]] = {}
    for package in packages:
        printed = subprocess.run([*apt, "--print-uris", "install", package], capture_output=True, text=True, check=False)
        if "Unable to locate package" in printed.stderr:
            names = subprocess.run(["apt-cache", *settings, "pkgnames"], capture_output=True, text=True, check=True).stdout
            raise UserError("; ".join(filter(None, (f"{package} ({arch}): Debian {SUITE} has no such package",
                                                    nearest(package, names.split(), rest=False)))))
        if printed.returncode:
            raise UserError(f"{package} ({arch}): {printed.stderr.strip().splitlines()[-1]}")
        for line in printed.stdout.splitlines():
            if line.startswith("'"):
                uri, _, _, sha256 = line.rsplit(" ", 3)
                wanted_by.setdefault((unquote(uri.strip("'")).removeprefix(address), sha256.removeprefix("SHA256:")),
                                     set()).add(package)
    return [Deb(arch, sha256, path, frozenset(names)) for (path, sha256), names in sorted(wanted_by.items())]


if __name__ == "__main__":
    try:
        say(f"{LOCK.name}: {relock(sys.argv[1:])} lines")
    except UserError as error:
        sys.exit(f"trapless: {error}")
