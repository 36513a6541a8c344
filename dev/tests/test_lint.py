# SPDX-License-Identifier: Apache-2.0
"""The suite `lint` finds an error of each kind, and says what to install if a checker is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dev import lint

LOCK = 'version = 4\n\n[[package]]\nname = "toy"\nversion = "0.1.0"\n'
GOOD = "/// Adds one.\npub fn next(number: u32) -> u32 {\n    number + 1\n}\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return an empty checkout."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a workspace of one crate without an error."""
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "target"))
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "toy"\nversion = "0.1.0"\nedition = "2024"\n\n[workspace]\n')
    (tmp_path / "Cargo.lock").write_text(LOCK)
    (tmp_path / "src/lib.rs").write_text(GOOD)
    return tmp_path


def test_words_of_pages_and_code_are_looked_at(checkout: Path) -> None:
    for name in ("page.md", "code.rs", "dev/tests/test_x.py", "other.txt"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("teh\n")
    assert lint.codespell(checkout)[1][-2:] == ["code.rs", "page.md"]
    assert not lint.passes(lint.codespell(checkout))


def test_rust_that_is_laid_out_otherwise_fails(toy: Path) -> None:
    assert lint.passes(lint.rustfmt(toy))
    (toy / "src/lib.rs").write_text(GOOD.replace("    number", "  number"))
    assert not lint.passes(lint.rustfmt(toy))


@pytest.mark.parametrize("fault", [
    "pub fn same(number: u32) -> u32 {\n    return number;\n}\n",
    "fn nobody_calls() {}\n",
    "#[test]\nfn faulty() {\n    assert!(true);\n}\n",
])
def test_a_warning_of_clippy_fails(toy: Path, fault: str) -> None:
    """A warning of the compiler fails, too, and so does one in a test."""
    assert lint.passes(lint.clippy(toy))
    (toy / "src/lib.rs").write_text(GOOD + fault)
    assert not lint.passes(lint.clippy(toy))


@pytest.mark.parametrize("name", ["run", "run.sh"])
def test_a_faulty_shell_script_fails(checkout: Path, name: str) -> None:
    """A shell script is recognized by its first line or its name."""
    (checkout / "page.md").write_text("#!/bin/sh\n" if name == "run.sh" else "rm $1\n")
    (checkout / name).write_text('#!/usr/bin/env bash\nrm "$1"\n')
    assert name in lint.shellcheck(checkout)[1]
    assert lint.passes(lint.shellcheck(checkout))
    (checkout / name).write_text("#!/usr/bin/env bash\nrm $1\n")
    assert not lint.passes(lint.shellcheck(checkout))


def test_all_shell_scripts_are_found() -> None:
    found = lint.shellcheck()[1]
    assert {"trapless", ".ci/run", "linux/build", "linux/checks/check-series", "dev/soak.sh"} <= {*found}
    assert not {"linux/checks/mutations.py", "rtl/run", "spec/rules"} & {*found}


@pytest.mark.parametrize(("check", "install"), [
    (lint.rustfmt, "rustup component add rustfmt"), (lint.clippy, "rustup component add clippy"),
    (lint.shellcheck, "apt-get install shellcheck")])
@pytest.mark.parametrize("there", [False, True])
def test_a_checker_that_is_missing_fails(checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
                                         check: object, install: str, there: bool) -> None:
    """The program does not exist, or is only rustup's placeholder. One line says what to do."""
    name, *rest = check(checkout)
    for program in ("cargo-fmt", "cargo-clippy", "shellcheck") if there else ():
        (checkout / program).write_text("#!/bin/sh\necho no such command >&2\nexit 1\n")
        (checkout / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(checkout))
    assert not lint.passes((name, *rest))
    assert capfd.readouterr().out.splitlines() == [f"lint: {name} is not installed: {install}"]
