# SPDX-License-Identifier: Apache-2.0
"""The test runner counts what other runners say, and never takes silence for success."""

import pytest

from lab.testing import Count, Suite, closing_count, run_suite


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


def test_missing_runner_is_a_failure() -> None:
    assert run_suite(Suite("x", ["/nonexistent/runner"])) == Count(0, 1)
