# SPDX-License-Identifier: Apache-2.0
"""The test runner counts the results of other runners, and never takes missing output for success."""

import subprocess
from pathlib import Path

import pytest

from dev import passed, testing
from dev.testing import Count, Suite, closing_count, run_suite


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s", Count(12, 0)),
        ("test result: FAILED. 3 passed; 2 failed; 0 ignored;", Count(3, 2)),
        ("30 passed in 0.10s", Count(30, 0)),
        ("2 failed, 30 passed in 0.10s", Count(30, 2)),
        ("=== 1 failed, 4 passed, 1 error in 2.00s ===", Count(4, 2)),
        ("7 passed, 1 failed", Count(7, 1)),
        ("difftest: 9 passed, 2 failed", Count(9, 2)),
        ("running 12 tests", None),
        ("note: 5 passed through here", None),
    ],
)
def test_closing_lines(line: str, count: Count | None) -> None:
    assert closing_count(line) == count


@pytest.mark.parametrize(
    ("script", "count"),
    [
        ("echo 5 passed, 0 failed", Count(5, 0)),
        ("echo 5 passed, 0 failed; exit 3", Count(5, 1)),
        ("echo nothing", Count(0, 1)),
        ("echo 1 passed, 2 failed; exit 1", Count(1, 2)),
    ],
)
def test_run_suite(script: str, count: Count) -> None:
    assert run_suite(Suite("x", ["sh", "-c", script])) == count


def test_lanes_are_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Two suites wait for each other behind another suite of a lane; then comes one without a lane. The output of each stays
    together."""
    meet = "touch {0}; for i in $(seq 99); do [ -e {1} ] && break; sleep 0.1; done; cat {1} && echo {0} met {1} && echo 2 passed"
    shell = [Suite("first", ["sh", "-c", "echo 1 passed"], lane="x"),
             Suite("a", ["sh", "-c", meet.format("a", "b")], tmp_path, lane="x"),
             Suite("b", ["sh", "-c", meet.format("b", "a")], tmp_path, lane="y"),
             Suite("last", ["sh", "-c", "echo 1 failed"], tmp_path)]
    monkeypatch.setattr(testing, "suites", lambda everything: shell)
    monkeypatch.setattr(testing, "CACHE", tmp_path / "cache")
    assert testing.run(False, []) == 1
    said = capfd.readouterr().out.splitlines()
    assert said[-1] == "5 passed, 1 failed"
    for one, other in ("ab", "ba"):
        at = said.index(f"{one} met {other}")
        assert said[at - 1].startswith(f"--- {one}: sh") and said[at + 1] == "2 passed"
        assert at < said.index("1 failed")


def test_missing_runner_is_a_failure() -> None:
    assert run_suite(Suite("x", ["/nonexistent/runner"])) == Count(0, 1)


def test_what_passed_on_the_same_files_does_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                          capfd: pytest.CaptureFixture[str]) -> None:
    """A changed file, another command, `again` and a failure make a suite run again. A file beside its files does not."""
    monkeypatch.setattr(passed, "FOLDER", tmp_path / "passed")
    monkeypatch.setattr(passed, "ROOT", tmp_path)
    monkeypatch.setattr(passed.key, "__defaults__", (tmp_path,))
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in ("rtl/a.sv", "docs/b.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1")
    runs = tmp_path / "runs"

    def suite(says: str = "3 passed") -> Suite:
        return Suite("x", ["sh", "-c", f"echo >> {runs}; echo {says}"], depends=("rtl",))

    def ran(*again: str) -> int:
        before = len(runs.read_text()) if runs.exists() else 0
        run_suite(suite(*again))
        return len(runs.read_text()) - before

    assert (ran(), ran()) == (1, 0)
    assert run_suite(suite()) == Count(3, 0) and "--again" in capfd.readouterr().out
    (tmp_path / "docs/b.txt").write_text("2")
    assert ran() == 0
    (tmp_path / "rtl/a.sv").write_text("2")
    assert (ran(), ran()) == (1, 0)
    (tmp_path / "rtl/new.sv").write_text("")
    assert (ran(), ran()) == (1, 0)
    assert (ran("4 passed"), ran("1 failed"), ran("1 failed")) == (1, 1, 1)
    monkeypatch.setattr(testing, "suites", lambda everything: [suite()])
    monkeypatch.setattr(testing, "CACHE", tmp_path / "cache")
    before = len(runs.read_text())
    assert testing.run(False, [], again=True) == 0
    assert len(runs.read_text()) == before + 1
