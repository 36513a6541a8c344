# SPDX-License-Identifier: Apache-2.0
"""The pinned Python packages can be installed with the Pythons of Debian 12 and 13, whatever Python this host has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from trapless.base.paths import ROOT

FILES = ("dev/requirements.txt", "dev/requirements-docs.txt", "dev/requirements-mrc.txt", "python/requirements.txt",
         "python/requirements-parquet.txt", "python/requirements-workers.txt",
         "python/trapless/pagesim/workloads/requirements.txt", "rtl/requirements.txt", "spec/requirements.txt")


def lines(path: Path) -> list[str]:
    """The packages that a file names, each with its version."""
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def rounds(requirements: Iterable[str]) -> list[list[str]]:
    """Split requirements into as few lists as possible, none of which names a package twice."""
    found: list[dict[str, str]] = []
    for line in sorted(set(requirements)):
        name = line.partition("==")[0].lower()
        free = next((names for names in found if name not in names), None)
        if free is None:
            found.append(free := {})
        free[name] = line
    return [list(names.values()) for names in found]


def refused(requirements: Iterable[str], python: str) -> str:
    """What pip says if not all of them can be installed with this Python."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--no-deps", "--ignore-installed", "--target", "unused",
           "--disable-pip-version-check", "--only-binary=:all:", "--python-version", python]
    tried = [subprocess.run([*pip, *names], capture_output=True, text=True, check=False) for names in rounds(requirements)]
    return "".join(found.stderr for found in tried if found.returncode)


def test_every_file_is_looked_at() -> None:
    listed = subprocess.run(["git", "ls-files", "*requirements*.txt"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert sorted(listed.stdout.split()) == sorted(FILES)


@pytest.mark.skipif("PIP_NO_INDEX" in os.environ, reason="a bundle has the packages for this host's Python alone")
@pytest.mark.parametrize("python", [pytest.param("3.11.2", id="Debian 12"),
                                    pytest.param("3.13.5", id="Debian 13", marks=pytest.mark.long)])
def test_pinned_packages_exist_for_debians_python(python: str) -> None:
    """A package that needs Python 3.11.5 installs on most hosts and not on Debian 12."""
    assert refused([line for name in FILES for line in lines(ROOT / name)], python) == ""


@pytest.mark.skipif("PIP_NO_INDEX" in os.environ, reason="there is no index to ask")
def test_a_package_that_is_not_for_a_python_is_named() -> None:
    assert "pymdown-extensions" in refused(["pymdown-extensions==13.1.2"], "3.11.2")
