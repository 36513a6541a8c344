# SPDX-License-Identifier: Apache-2.0
"""Tutorials and how-to pages can be followed word for word: their commands run, in order, in a copy of the checkout.

The line before a block of commands (```sh) says when it runs: `<!-- run -->`: always; `<!-- run long -->`: only with the long
tests; `<!-- example -->`: never, because the commands need something that not everybody has.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from trapless.base.paths import CACHE, ROOT

GUIDES = [page for kind in ("tutorials", "how-to") for page in sorted((ROOT / "docs" / kind).glob("*.md"))
          if "```sh\n" in page.read_text()]
RUST = {"RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo"}
"""Variables of Rust's tools, and the folders at home that the tools use if the variables are not set."""
RUN, LONG, EXAMPLE = "run", "run long", "example"
_BLOCK = re.compile(r"(?:^<!-- ([\w ]+) -->\n)?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Commands of a guide."""

    line: int
    mark: str | None
    text: str


def blocks(text: str) -> list[Block]:
    """Return all blocks of commands."""
    return [Block(text.count("\n", 0, found.start(2)), found[1], found[2]) for found in _BLOCK.finditer(text)]


def copy_of_checkout(folder: Path) -> Path:
    """Return a clone of this checkout, with its uncommitted changes."""
    copy = folder / "trapless"
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", ROOT, copy], check=True)
    changed = subprocess.run(["git", "ls-files", "-mo", "-z", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True,
                             text=True).stdout.split("\0")
    for name in filter(None, changed):
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
        else:
            (copy / name).unlink()
    return copy


def follow(guide: str, text: str, marks: tuple[str, ...], folder: Path, env: dict[str, str], seconds: float) -> str:
    """Run a guide's blocks in one shell, as a reader would, and return their output. AssertionError names the block that
    failed."""
    script = "".join(f"echo '--- {guide}:{block.line}'\n{block.text}" for block in blocks(text) if block.mark in marks)
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds,
                          check=False)
    place = re.findall(r"^--- (\S+)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, f"{place[-1] if place else guide}: status {done.returncode}\n{done.stdout[-3000:]}"
    return done.stdout


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment variables of a reader. The cache is shared, so that nothing is built twice. All other variables of
    the tests are removed. Some of them name a machine, a simulator or a kernel, which would be used instead of the one that the
    guide changes. Rust's folders stay the same: guides call cargo, and rustup's cargo looks for its toolchains in the home
    folder."""
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "CARGO_TARGET_DIR")
    rust = {name: os.environ.get(name, str(Path.home() / place)) for name, place in RUST.items()}
    return {**{name: value for name, value in os.environ.items() if name not in ours and not name.startswith("TRAPLESS_")},
            **rust, "TRAPLESS_CACHE": str(CACHE), "HOME": str(folder), **more}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_every_command_is_marked(guide: Path) -> None:
    found = blocks(guide.read_text())
    assert any(block.mark in (RUN, LONG) for block in found)
    assert [block.line for block in found if block.mark not in (RUN, LONG, EXAMPLE)] == []
    assert len(found) == guide.read_text().count("```sh\n")


def test_tutorials_can_be_followed() -> None:
    assert {page for page in (ROOT / "docs" / "tutorials").glob("*.md")} <= {*GUIDES}


@pytest.mark.guest
@pytest.mark.series
def test_quick_commands_run(tmp_path: Path, program: Path) -> None:
    """Runs the quick blocks of all guides, each guide in a separate copy."""
    for guide in GUIDES:
        copy = copy_of_checkout(tmp_path / guide.stem)
        follow(guide.name, guide.read_text(), (RUN,), copy, environment(tmp_path, TRAPLESS_MACHINE=str(program)), 300)
        if guide.stem == "measure-your-program":
            assert (copy / "figure.pdf").read_bytes().startswith(b"%PDF") and (copy / "out/where/index.html").exists()


@pytest.mark.long
@pytest.mark.guest
@pytest.mark.series
@pytest.mark.parametrize("guide", [guide for guide in GUIDES if LONG in {block.mark for block in blocks(guide.read_text())}],
                         ids=lambda guide: guide.stem)
def test_all_commands_run(guide: Path, tmp_path: Path) -> None:
    """Also runs the long blocks; they build the machine in the copy."""
    copy = copy_of_checkout(tmp_path)
    follow(guide.name, guide.read_text(), (RUN, LONG), copy, environment(tmp_path, CARGO_TARGET_DIR=str(tmp_path / "target")),
           3600)


def test_the_readers_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MACHINE", "PAGESIM", "KERNEL", "KERNEL_X86_64", "STOCK_KERNEL", "ROOT", "CACHE"):
        monkeypatch.setenv(f"TRAPLESS_{name}", "/of/the/tests")
    monkeypatch.setenv("LANG", "of the reader")
    monkeypatch.setenv("CARGO_HOME", "/elsewhere")
    monkeypatch.delenv("RUSTUP_HOME", raising=False)
    found = environment(tmp_path, TRAPLESS_MACHINE="given")
    assert {name: value for name, value in found.items() if name.startswith("TRAPLESS_")} == {
        "TRAPLESS_CACHE": str(CACHE), "TRAPLESS_MACHINE": "given"}
    assert found["LANG"] == "of the reader"
    assert (found["RUSTUP_HOME"], found["CARGO_HOME"]) == (str(Path.home() / ".rustup"), "/elsewhere")


def test_a_failing_command_is_named(tmp_path: Path) -> None:
    text = ("<!-- run -->\n```sh\ntouch here; cd ..\n```\n\n<!-- run long -->\n```sh\nfalse\n```\n"
            "<!-- example -->\n```sh\nfalse\n```\n<!-- run -->\n```sh\npwd\nfalse | cat\ntouch never\n```\n"
            "```sh\nnot marked\n```\n")
    assert [block.mark for block in blocks(text)] == ["run", "run long", "example", "run", None]
    with pytest.raises(AssertionError, match=r"^x.md:15: status 1") as failed:
        follow("x.md", text, (RUN,), tmp_path, dict(os.environ), 60)
    assert f"{tmp_path.parent}\n" in str(failed.value)
    assert (tmp_path / "here").exists() and not (tmp_path.parent / "never").exists()
