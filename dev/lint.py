# SPDX-License-Identifier: Apache-2.0
"""The suite `lint`: ruff for all Python, rustfmt and clippy for all Rust, shellcheck for all shell scripts, codespell for pages,
comments and messages. dev/spelling.txt lists words that are correct here although codespell reports them: names, and instructions
and registers of RISC-V."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from trapless.base.paths import DEV, MACHINE, ROOT, RTL, STUDIES
from trapless.guest import build

Check = tuple[str, list[str], Path]
"""A name, a command that fails if it finds something, and the folder to run it in."""

SPELT = ("*.md", "*.ipynb", "*.py", "*.rs", "*.sv", "*.toml", "*.cff", ":!dev/tests")
"""Files whose words are checked. Tests are not: they have misspelt words on purpose."""
SHELL = re.compile(rb"#!.*\b(ba|da|k)?sh\b")
"""First line of a shell script."""
INSTALLED = {
    "rustfmt": (["cargo-fmt", "--version"], "rustup component add rustfmt"),
    "clippy": (["cargo-clippy", "--version"], "rustup component add clippy"),
    "shellcheck": (["shellcheck", "--version"], "apt-get install shellcheck"),
}
"""Command that shows whether a checker is installed, and the command that installs it. With Debian's Rust, the launcher installs
all three.

The command is not `cargo fmt`: cargo searches ~/.cargo/bin first, which may belong to another Rust than the one that the launcher
uses."""


def ruff() -> Check:
    """Return the check of all Python."""
    return "ruff", [sys.executable, "-m", "ruff", "check", "-q", "--no-cache", "--config", str(DEV / "pyproject.toml"),
                    *map(str, (DEV, ROOT / "python", STUDIES, RTL))], ROOT


def rustfmt(workspace: Path = MACHINE) -> Check:
    """Return the check of the layout of Rust."""
    return "rustfmt", ["cargo-fmt", "--all", "--check"], workspace


def clippy(workspace: Path = MACHINE) -> Check:
    """Return the check of all Rust, including tests. The compiler's warnings count as errors."""
    command = ["cargo-clippy", "clippy", "--locked", "-q", "--workspace", "--all-targets", "--", "-D", "warnings"]
    return "clippy", command, workspace


def shellcheck(root: Path = ROOT) -> Check:
    """Return the check of all shell scripts."""
    return "shellcheck", ["shellcheck", "--format=gcc", *filter(lambda name: _is_shell(root / name), _files(root))], root


def codespell(root: Path = ROOT) -> Check:
    """Return the check of all words."""
    ignored = ["--ignore-words", str(DEV / "spelling.txt")]
    return "codespell", [sys.executable, "-m", "codespell_lib", *ignored, *_files(root, *SPELT)], root


def _files(root: Path, *patterns: str) -> list[str]:
    """Return the files of a checkout, including those that are not added to git yet."""
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *patterns], cwd=root, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    return sorted({name for name in files if name and (root / name).is_file()})


def _is_shell(path: Path) -> bool:
    if path.is_symlink():
        return False
    with path.open("rb") as file:
        return path.suffix == ".sh" or SHELL.match(file.readline(100)) is not None


def _is_there(name: str) -> bool:
    if name not in INSTALLED:
        return True
    try:
        return subprocess.run(INSTALLED[name][0], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def passes(check: Check) -> bool:
    """Run one check, and print its name if it fails."""
    name, command, folder = check
    if not _is_there(name):
        print(f"lint: {name} is not installed: {INSTALLED[name][1]}", flush=True)
        return False
    found = subprocess.run(command, cwd=folder, env=os.environ | build.cargo_env(), check=False).returncode != 0
    if found:
        print(f"lint: {name} failed", flush=True)
    return not found


def main() -> int:
    """Run all checks. Return 1 if one found something."""
    passed = [passes(check) for check in (ruff(), rustfmt(), shellcheck(), codespell(), clippy())]
    print(f"{passed.count(True)} passed, {passed.count(False)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
