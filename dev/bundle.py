# SPDX-License-Identifier: Apache-2.0
"""`./trapless bundle FILE.tar`: archives the checkout with everything that the demo and the short tests download.

The archive is for machines with the same Debian release and architecture as this one. On such a machine the launcher finds the
folder `bundle` in the checkout and lets apt, pip and cargo install from it. Fetched files stay in the cache: a second bundle, or
one after an interruption, fetches only what is missing."""

from __future__ import annotations

import email.utils
import hashlib
import os
import platform
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from trapless.base import process
from trapless.base.cache import CACHE, GIB, MIB, cached, check_room, content_key, run_tool, workspace
from trapless.base.outputs import output_folder, whole, write_whole
from trapless.base.paths import MACHINE, ROOT
from trapless.base.ui import UserError, say, step
from trapless.base.version import git_describe
from trapless.guest.images import debian

TOP = "trapless"
"""The only top-level folder of the archive."""
PLACE = f"{TOP}/bundle"
"""Folder in which the launcher finds the downloads."""
FOLDER = CACHE / "bundle"
LOGS = CACHE / "logs"
ALONE = (ROOT / "python/trapless/pagesim/workloads/requirements.txt", ROOT / "dev/requirements-mrc.txt")
"""Packages of separate environments, installed without their dependencies."""
REQUIREMENTS = tuple(
    tuple(ROOT / name for name in names) for names in (
        ("python/requirements.txt", "python/requirements-workers.txt", "dev/requirements.txt"),
        ("rtl/requirements.txt",), ("spec/requirements.txt",)))
"""Groups of files; the packages of a group go into one environment."""
CARGO = """\
[source.crates-io]
replace-with = "bundle"

[source.bundle]
directory = "crates"
"""
"""Cargo resolves a relative path from the parent of the folder that has this file."""
WHEELS, CRATES, GUEST, CHECKOUT = 450 * MIB, 300 * MIB, 250 * MIB, 60 * MIB
"""Upper bounds in bytes for these downloads. The sizes of Debian's packages are known before they are fetched."""


@dataclass(frozen=True)
class Package:
    """A file of a Debian package, as apt names it."""

    address: str
    name: str
    size: int
    sha256: str

    @property
    def file(self) -> Path:
        """Return the path of the file in the cache."""
        return FOLDER / "debs" / self.name

    def is_there(self) -> bool:
        """Whether the file exists. It is then complete, because it gets this name only after its hash was checked."""
        return self.file.is_file() and self.file.stat().st_size == self.size


def run(file: Path) -> int:
    """Fetch what is missing, then write the archive."""
    if file.suffix != ".tar":
        raise UserError(f"bundle: {file}: the name must end in .tar (its content is compressed already)")
    if file.is_dir():
        raise UserError(f"bundle: {file} is a folder: name a file in it")
    state = git_describe()
    if state is None or not (ROOT / ".git").exists():
        raise UserError(f"bundle: {ROOT} is no git checkout; clone the project with git")
    if state.endswith("-dirty"):
        raise UserError("bundle: the checkout has changes that are not committed; commit or stash them (git status shows them)")
    output_folder(file.absolute().parent)
    release = _release()
    apt = _apt()
    python = _python(apt)
    packages = _packages(apt)
    _say_room(packages, file)
    _fetch(packages)
    parts = [*_repository(packages), *_wheels(python), *_crates()]
    with step("fetching the guest's Debian packages"):
        parts += [(path, f"{PLACE}/cache/debs/{path.name}") for path in debian.all_locked()]
    checker = _model_checker()
    parts.append((checker, f"{PLACE}/cache/{checker.relative_to(CACHE)}"))
    manifest = {"for": release, "python": python, "commit": state, "date": email.utils.formatdate(usegmt=True)}
    with workspace() as folder, step(f"writing {file}"):
        # Written last: without it, a partly unpacked archive is not used as a bundle.
        write_whole(folder / "manifest", "".join(f"{key}={value}\n" for key, value in manifest.items()))
        parts.append((folder / "manifest", f"{PLACE}/manifest"))
        _archive(file, [*_checkout(folder / TOP), *parts])
    say(f"bundle: {file}: {file.stat().st_size / GIB:.1f} GiB, for {release}: tar -xf {file.name} && cd {TOP} && ./trapless demo")
    return 0


def _release() -> str:
    """Return the distribution, its release and the architecture, in the form that the launcher uses."""
    known = platform.freedesktop_os_release()
    arch = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{known['ID']} {known.get('VERSION_ID', '')} {arch}"


def _apt() -> dict[str, str]:
    """Return the environment of a separate apt, whose lists are up to date and for which no package is installed."""
    folder = FOLDER / "apt"
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    # Packages of other archives that this machine uses are ignored: a machine with Debian alone must be able to install from the
    # bundle.
    write_whole(folder / "preferences", "Package: *\nPin: release o=Debian\nPin-Priority: 990\n")
    settings = {"Dir::State::status": folder / "status", "Dir::State::lists": folder / "lists", "Dir::Cache::pkgcache": "",
                "Dir::Cache::srcpkgcache": "", "Dir::Cache::archives": folder / "archives",
                "Dir::Etc::preferences": folder / "preferences", "APT::Sandbox::User": "root", "Acquire::ForceHash": "SHA256"}
    write_whole(folder / "apt.conf", "".join(f'{name} "{value}";\n' for name, value in settings.items()))
    env = {"APT_CONFIG": str(folder / "apt.conf")}
    with step("reading package lists"):
        run_tool(["apt-get", "-q", "update", "--error-on=any"], LOGS / "bundle-apt.log", "apt-get update", env)
    return env


def _python(apt: dict[str, str]) -> str:
    """Return the version of Debian's Python. UserError if this program runs on another version, because it fetches the wheels."""
    said = _asked(["apt-cache", "depends", "python3"], apt)
    found = re.search(r"^ *Depends: python(3\.\d+)$", said, re.MULTILINE)
    theirs, mine = found[1] if found else "unknown", "{}.{}".format(*sys.version_info)
    if theirs != mine:
        raise UserError(f"bundle: runs on Python {mine}, Debian's is {theirs}: "
                        f"delete {CACHE / 'venv'} and put Debian's first on PATH")
    return mine


def _asked(command: list[str], apt: dict[str, str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | apt)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise UserError(f"bundle: {' '.join(command[:2])} failed: {said[-1]}")
    return done.stdout


def _packages(apt: dict[str, str]) -> list[Package]:
    """Return all packages that a bare machine installs for the demo and the tests."""
    wanted = _asked([str(ROOT / "trapless"), "--packages"], apt).split()
    printed = _asked(["apt-get", "-qq", "--no-install-recommends", "--print-uris", "install", *wanted], apt)
    found = []
    for line in printed.splitlines():
        if line.startswith("'"):
            address, name, size, sha256 = line.rsplit(" ", 3)
            found.append(Package(address.strip("'"), unquote(name), int(size), sha256.removeprefix("SHA256:")))
    if not found:
        raise UserError(f"bundle: apt-get names no files for {', '.join(wanted)} (apt-get --print-uris install NAME shows why)")
    return sorted(found, key=lambda package: package.name)


def _say_room(packages: list[Package], file: Path) -> None:
    """Print how much disk the bundle takes, before anything is fetched. UserError if the disk has less."""
    debs = sum(package.size for package in packages)
    fetched = sum(package.size for package in packages if package.is_there())
    others = sum(size for size, folder in (
        (WHEELS, _wheels_folder()), (CRATES, _crates_folder()), (GUEST, CACHE / "debs")) if not folder.is_dir())
    kept, archive = debs - fetched + others, debs + WHEELS + CRATES + GUEST + CHECKOUT
    say(f"bundle: at most {kept / GIB:.1f} GiB to fetch into {CACHE}, then {archive / GIB:.1f} GiB for {file}; "
        f"{len(packages)} Debian packages")
    same = os.stat(CACHE).st_dev == os.stat(file.absolute().parent).st_dev
    check_room(kept + (archive if same else 0) + CHECKOUT, CACHE, "bundle")
    check_room(archive, file.absolute().parent, "bundle")


def _fetch(packages: list[Package]) -> None:
    """Fetch Debian's packages by their hashes, several at a time, so that an interruption loses little."""
    fresh = FOLDER / "debs" / "partial"
    fresh.mkdir(parents=True, exist_ok=True)
    missing = [package for package in packages if not package.is_there()]
    if not missing:
        return
    with step(f"fetching {len(missing)} Debian packages"):
        for start in range(0, len(missing), 25):
            some = missing[start:start + 25]
            request: list[str | Path] = []
            for package in some:
                request += [re.sub("^file:", "copy:", package.address), fresh / package.name, f"SHA256:{package.sha256}"]
            run_tool([debian.APT_HELPER, "-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root", "download-file", *request],
                     LOGS / "bundle-debs.log", "fetching Debian packages")
            for package in some:
                _check(fresh / package.name, package.sha256)
                (fresh / package.name).rename(package.file)


def _check(path: Path, sha256: str) -> None:
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            path.unlink()
            raise UserError(f"bundle: {path.name} does not match apt's lists; run the command again")


def _repository(packages: list[Package]) -> list[tuple[Path, str]]:
    """Return the files of a flat repository that apt can read: the packages, their index, and a Release file with its hash."""
    key = content_key(*(f"{package.name} {package.sha256}" for package in packages), "index 1")

    def make(folder: Path) -> None:
        stanzas = []
        for package in packages:
            process.go_on()
            control = subprocess.run(["dpkg-deb", "--field", package.file], capture_output=True, check=True).stdout
            own = f"Filename: ./{package.name}\nSize: {package.size}\nSHA256: {package.sha256}\n"
            stanzas.append(control.strip() + b"\n" + own.encode() + b"\n")
        index = b"".join(stanzas)
        (folder / "Packages").write_bytes(index)
        (folder / "Release").write_text(
            f"Origin: Trapless\nLabel: Trapless\nSuite: bundle\nDate: {email.utils.formatdate(usegmt=True)}\n"
            f"SHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n")

    index = cached("bundle-index", key, "indexing the Debian packages", make)
    parts = [(package.file, f"{PLACE}/debs/{package.name}") for package in packages]
    return [*parts, *((index / name, f"{PLACE}/debs/{name}") for name in ("Packages", "Release"))]


def _wheels_key() -> str:
    files = [file for files in REQUIREMENTS for file in files]
    return content_key(*files, *ALONE, "{}.{}".format(*sys.version_info), "wheels 1")


def _wheels_folder() -> Path:
    return CACHE / "bundle-wheels" / _wheels_key()


def _wheels(python: str) -> list[tuple[Path, str]]:
    """Return every Python package as a wheel. Packages that PyPI has only as source are built here, so that the target need not
    build them."""
    def make(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--wheel-dir", folder]
        for files in (*REQUIREMENTS, *(("--no-deps", file) for file in ALONE)):
            words = [word for file in files for word in (("-r", file) if isinstance(file, Path) else (file,))]
            run_tool([*pip, *words], LOGS / "bundle-pip.log", "fetching Python packages")

    folder = cached("bundle-wheels", _wheels_key(), f"fetching Python {python} packages", make, WHEELS)
    return [(path, f"{PLACE}/wheels/{path.name}") for path in sorted(folder.iterdir())]


def _crates_key() -> str:
    return content_key(MACHINE / "Cargo.lock", "crates 1")


def _crates_folder() -> Path:
    return CACHE / "bundle-crates" / _crates_key()


def _crates() -> list[tuple[Path, str]]:
    """Return Rust's crates, and the configuration that lets cargo use them."""
    def make(folder: Path) -> None:
        run_tool(["cargo", "vendor", "-q", "--locked", "--versioned-dirs", "--manifest-path", MACHINE / "Cargo.toml",
                  folder / "crates"], LOGS / "bundle-cargo.log", "fetching Rust crates")
        (folder / "cargo").mkdir()
        (folder / "cargo" / "config.toml").write_text(CARGO)

    folder = cached("bundle-crates", _crates_key(), "fetching Rust crates", make, CRATES)
    return _below(folder, PLACE)


def _model_checker() -> Path:
    """Return the file of TLC, fetched by the script that pins its version."""
    asked = subprocess.run([ROOT / "spec/protocol/check", "--fetch"], capture_output=True, text=True, check=False,
                           env=os.environ | {"TRAPLESS_CACHE": str(CACHE)})
    if asked.returncode:
        raise UserError((asked.stderr.strip().splitlines() or ["bundle: spec/protocol/check --fetch failed"])[-1])
    return Path(asked.stdout.strip())


def _checkout(folder: Path) -> list[tuple[Path, str]]:
    """Return the files of a clone that has the history of the checkout, but no paths of this machine."""
    log = LOGS / "bundle-git.log"
    run_tool(["git", "clone", "-q", "--no-hardlinks", "--single-branch", ROOT, folder], log, "git clone")
    run_tool(["git", "-C", folder, "remote", "remove", "origin"], log, "git remote")
    for left in ("logs", "hooks", "FETCH_HEAD", "ORIG_HEAD"):
        run_tool(["rm", "-rf", folder / ".git" / left], log, "rm")
    return _below(folder, TOP)


def _below(folder: Path, name: str) -> list[tuple[Path, str]]:
    """Return all files and links below a folder, with their names in the archive."""
    def walk() -> Iterator[Path]:
        for place, folders, files in os.walk(folder):
            folders.sort()
            files += [each for each in folders if Path(place, each).is_symlink()]
            yield from (Path(place, file) for file in sorted(files))

    return [(path, f"{name}/{path.relative_to(folder)}") for path in walk()]


def _archive(file: Path, parts: Iterable[tuple[Path, str]]) -> None:
    """Write the archive; it is complete or absent. Unpacked by root, its files belong to root; otherwise to the user."""
    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mode = 0o755 if entry.mode & 0o100 else 0o644
        return entry

    with whole(file.absolute()) as partial, tarfile.open(partial, "w", format=tarfile.GNU_FORMAT) as archive:
        for path, name in parts:
            process.go_on()
            # A package in the cache may be a link to the folder where it is stored.
            real = path.resolve() if name.startswith(f"{PLACE}/") and path.is_symlink() else path
            archive.add(real, name, recursive=False, filter=plain)
