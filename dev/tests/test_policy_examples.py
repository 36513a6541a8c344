# SPDX-License-Identifier: Apache-2.0
"""Policies of the paging simulator in other projects: the guide's examples, and sweeps with them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from trapless.base import kept
from trapless.base.paths import CACHE, MACHINE, ROOT
from trapless.base.ui import UserError
from trapless.guest import build
from trapless.pagesim import runs, traces
from trapless.sweeps import command
from trapless.sweeps import simulated as sweep
from trapless.sweeps.engine import Engine

EXAMPLES = ROOT / "docs" / "examples"
FAKE = Path(__file__).with_name("fake_pagesim.py")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a separate cache; the fake program notes in `log` what it ran."""
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.delenv("TRAPLESS_PAGESIM", raising=False)
    monkeypatch.setattr(runs, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(kept, "PLACE", tmp_path / "cache" / "kept")
    monkeypatch.setattr(traces, "CACHE", tmp_path / "cache")
    (tmp_path / "a.trace").write_text("a")
    (tmp_path / "log").touch()
    return tmp_path


def sweep_of(place: Path, policies: str) -> Path:
    """A sweep of these policies over one trace."""
    file = place / "mine.toml"
    file.write_text(f'[base]\npolicy = "sync"\nmemory = {{ frames = 64 }}\n[[base.process]]\nname = "a"\ntrace = "a.trace"\n'
                    f"[vary]\npolicy = {policies}\n")
    return file


def test_the_guide_shows_the_examples() -> None:
    guide = (ROOT / "docs/how-to/add-a-policy-of-yours.md").read_text()
    shown = re.findall(r"<!-- example (\S+) -->\n```\w+\n(.*?)```\n<!-- end -->", guide, re.DOTALL)
    assert [name for name, _ in shown] == ["pagesim-policy.py", "pagesim-policy-rust/src/main.rs"]
    for name, text in shown:
        assert text in (EXAMPLES / name).read_text(), name


def test_another_program_simulates(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program runs instead of the project's simulator, which is not built. A changed program runs again."""
    def no_build(_: str) -> Path:
        raise AssertionError

    monkeypatch.setattr(build, "_program", no_build)
    other = place / "other"
    shutil.copy(FAKE, other)
    file = sweep_of(place, '["sync", "mine"]')
    assert command.run(file, place / "out", Engine(1, None, None), other) == 0
    assert (place / "log").read_text().split() == ["sync", "mine"]
    assert command.run(file, place / "out", Engine(1, None, None), other) == 0
    assert (place / "log").read_text().split() == ["sync", "mine"], "the same program"
    other.write_text(FAKE.read_text() + "\n")
    assert command.run(file, place / "out", Engine(1, None, None), other) == 0
    assert (place / "log").read_text().split() == ["sync", "mine"] * 2
    for wrong in (place / "a.trace", place / "none", place):
        with pytest.raises(UserError, match=f"{wrong}: is not a program"):
            command.run(file, place / "out", Engine(1, None, None), wrong)
    with pytest.raises(UserError, match="walk.toml: --simulator is for the paging simulator"):
        command.run(EXAMPLES / "walk.toml", place / "out", Engine(1, None, None), other)


def test_a_policy_in_python_is_its_content(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy's file is looked for beside the sweep's file. A policy with other content runs again; a copy does not."""
    monkeypatch.chdir("/")
    (place / "one.py").write_text("one")
    shutil.copy(place / "one.py", place / "two.py")
    file = sweep_of(place, '["python:one.py", "python:two.py"]')

    def ran() -> list[str]:
        assert sweep.run(file, place / "out", 1, FAKE) == 0
        return (place / "log").read_text().split()

    assert len(ran()) == 1, "the same content"
    (place / "two.py").write_text("two")
    assert ran()[1:] == [f"python:{place / 'two.py'}"]
    base = file.read_text().replace('"sync"', '"python:three.py"').partition("[vary]")[0]
    file.write_text(base)
    with pytest.raises(UserError, match=r"/three\.py: No such file or directory"):
        sweep.run(file, place / "out", 1, FAKE)
    (place / "three.py").write_text("three")
    assert ran()[2:] == [f"python:{place / 'three.py'}"]


@pytest.mark.long
def test_the_example_in_rust_is_a_project_of_its_own(tmp_path: Path) -> None:
    """It is built outside this repository, and does what `virt` does."""
    project = tmp_path / "project"
    shutil.copytree(EXAMPLES / "pagesim-policy-rust", project)
    shutil.copy(MACHINE / "Cargo.lock", project)
    manifest = project / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("../../../machine", str(MACHINE)))
    target = CACHE / "target" / "policy-example"
    cargo = ["cargo", "build", "-q", "--offline", "--manifest-path", manifest, "--target-dir", target]
    subprocess.run(cargo, check=True)
    # Only the crates that the simulator needs are built.
    names = {path.name.split("-")[0] for path in (target / "debug" / "deps").glob("*.rmeta")}
    assert "libtrapless_pagesim" in names and not names & {"libtrapless_machine", "libgdbstub", "libtrapless_riscv"}
    program = target / "debug" / "pagesim-policy"

    def said(*words: str) -> str:
        done = subprocess.run([program, *words], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout

    assert "foresight, following, python:FILE.py" in said("run", "--help").replace("\n", " ")
    said("record", "--out", "a.trace", "--", "echo", "hello")
    (tmp_path / "config.toml").write_text('policy = "sync"\nmemory = { frames = 64 }\n'
                                          '[[process]]\nname = "a"\ntrace = "a.trace"\n')
    results = {}
    for policy in ("virt", "following", "sync", f"python:{EXAMPLES / 'pagesim-policy.py'}"):
        said("run", "config.toml", "--set", f"policy={policy}", "--json", "result.json")
        results[policy] = (tmp_path / "result.json").read_text().replace(f'"{policy}"', "NAME")
    assert json.loads(results["virt"].replace("NAME", '"x"'))["prefetch"]["neighbour"]["issued"] > 0
    assert results.pop("sync") != results["virt"]
    assert len(set(results.values())) == 1
