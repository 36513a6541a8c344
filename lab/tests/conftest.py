# SPDX-License-Identifier: Apache-2.0
"""What tests share: built things, made once a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab import build
from lab.images import ext4, rootfs
from lab.paths import LINUX
from lab.runner import guest as guests
from lab.runner.job import Job


@pytest.fixture(scope="session")
def program() -> Path:
    return build.machine()


@pytest.fixture(scope="session")
def patched() -> Path:
    return build.kernel()


@pytest.fixture(scope="session")
def stock() -> Path:
    return build.kernel(stock=True)


@pytest.fixture(scope="session")
def root() -> Path:
    return rootfs.image()


@pytest.fixture(autouse=True)
def series(request: pytest.FixtureRequest) -> None:
    """Skips a test that needs hardware paging while the tree has no kernel series."""
    if request.node.get_closest_marker("series") and not (LINUX / "series" / "series").exists():
        pytest.skip("no kernel series in this tree")


@pytest.fixture
def boot(program: Path, root: Path, tmp_path: Path) -> Callable[..., guests.Outcome]:
    """Boots a guest with a job; files of /job/out appear in tmp_path/out."""

    def run(kernel: Path, script: str, **options: object) -> guests.Outcome:
        inputs = options.pop("inputs", ())
        guest = guests.Guest(kernel, root, **{"max_seconds": 300, **options})
        return guests.run_on_machine(program, guest, Job(script, inputs), tmp_path / "out")

    return run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small folder to make an image from."""
    folder = tmp_path / "tree"
    (folder / "sub").mkdir(parents=True)
    (folder / "a").write_text("alpha\n")
    (folder / "sub" / "with space").write_bytes(bytes(range(256)) * 64)
    (folder / "link").symlink_to("a")
    return folder


@pytest.fixture
def volume() -> ext4.Volume:
    return ext4.Volume("trapless-data", 32 * ext4.MIB)
