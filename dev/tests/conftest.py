# SPDX-License-Identifier: Apache-2.0
"""Fixtures that tests share: things that are built once per session."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trapless.base import cache
from trapless.base import kept as base_kept
from trapless.base.paths import LINUX
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import dataset, ext4, rootfs
from trapless.guest.job import Job, launcher

from dev.tests.fake_lab import Fake

LONGEST = ("test_qemu.py", "test_stc.py", "test_guest.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order tests so that the slowest files begin first: a slow file that began last would run alone at the end."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


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
    """Skip a test that needs hardware paging if the tree has no kernel series."""
    if request.node.get_closest_marker("series") and not (LINUX / "series" / "series").exists():
        pytest.skip("no kernel series in this tree")


@pytest.fixture
def boot(program: Path, root: Path, tmp_path: Path) -> Callable[..., guests.Outcome]:
    """Return a function that boots a guest with a job; files of /job/out appear in tmp_path/out."""

    def run(kernel: Path, script: str, **options: object) -> guests.Outcome:
        inputs = options.pop("inputs", ())
        guest = guests.Guest(kernel, root, **{"max_seconds": 300, **options})
        return guests.run_on_machine(program, guest, Job(script, inputs), tmp_path / "out")

    return run


@pytest.fixture(scope="module")
def paged(request: pytest.FixtureRequest, program: Path, patched: Path, root: Path,
          tmp_path_factory: pytest.TempPathFactory) -> Callable[..., guests.Outcome]:
    """Return a function that boots a guest and runs the module's PROGRAM (C), which pages a random file of PAGES pages. The lines
    `before` run first."""
    folder = tmp_path_factory.mktemp("paged")
    (folder / "program.c").write_text(request.module.PROGRAM)
    subprocess.run(["riscv64-linux-gnu-gcc", "-O1", "-o", folder / "program", folder / "program.c"], check=True)

    def run(kind: str | None, *arguments: str, before: str = "") -> guests.Outcome:
        guest = guests.Guest(patched, root, dataset.image(request.module.PAGES * ext4.BLOCK), max_seconds=300)
        script = f"{before}\n{' '.join([*launcher(kind), './program', *arguments])}"
        outcome = guests.run_on_machine(program, guest, Job(script, (folder / "program",)))
        assert outcome.status == 0, outcome.console
        return outcome

    return run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a small folder to make an image from."""
    folder = tmp_path / "tree"
    (folder / "sub").mkdir(parents=True)
    (folder / "a").write_text("alpha\n")
    (folder / "sub" / "with space").write_bytes(bytes(range(256)) * 64)
    (folder / "link").symlink_to("a")
    return folder


@pytest.fixture
def volume() -> ext4.Volume:
    return ext4.Volume("trapless-data", 32 * ext4.MIB)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """Yield a checkout whose machine boots nothing."""
    made = Fake(tmp_path)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rootfs, "image", lambda *_: tmp_path / "root.img")
    monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(base_kept, "PLACE", tmp_path / "cache" / "kept")
    yield made
    made.release()
