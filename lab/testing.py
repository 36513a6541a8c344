# SPDX-License-Identifier: Apache-2.0
"""`./trapless test`: runs every test runner of the project and adds up what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from lab import build
from lab.checks import trust
from lab.paths import CACHE, LAB, MACHINE, ROOT, RTL
from lab.ui import UserError, say

# Closing lines: cargo's "5 passed; 1 failed;", pytest's "2 failed, 30 passed in 0.1s" and our own "5 passed, 1 failed".
_COUNT = re.compile(r"(\d+) (passed|failed|errors?)\b")
_CLOSING = re.compile(r"^(test result: |=+ .*\d+ (passed|failed|error)|\d+ (passed|failed|error)"
                      r"|[\w-]+: \d+ passed, \d+ failed$)")


@dataclass
class Count:
    """Tests passed and failed."""

    passed: int = 0
    failed: int = 0

    def add(self, other: Count) -> None:
        """Add another count to this one."""
        self.passed += other.passed
        self.failed += other.failed


@dataclass(frozen=True)
class Suite:
    """One runner: a command whose closing lines say how many tests passed and failed."""

    name: str
    command: list[str]
    cwd: Path = ROOT
    plain: bool = False
    """The command has no tests of its own: its exit status is the one test."""
    long: bool = False
    """Runs with --all, or when named."""
    env: dict[str, str] = field(default_factory=dict)


def closing_count(line: str) -> Count | None:
    """The count in a runner's closing line, or None if the line is not one."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    if not _CLOSING.match(plain):
        return None
    count = Count()
    for number, word in _COUNT.findall(plain):
        if word == "passed":
            count.passed += int(number)
        else:
            count.failed += int(number)
    return count


def run_suite(suite: Suite) -> Count:
    """Run one suite, pass its output on, and count. A runner that fails without a failed test counts as one failure."""
    print(f"--- {suite.name}: {' '.join(suite.command)}", flush=True)
    total, start = Count(), time.monotonic()
    try:
        process = subprocess.Popen(
            suite.command, cwd=suite.cwd, env=os.environ | suite.env, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
    except OSError as error:
        print(f"{suite.name}: cannot start {suite.command[0]}: {error.strerror}")
        return Count(failed=1)
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        count = closing_count(line)
        if count:
            total.add(count)
    status = process.wait()
    if suite.plain:
        total = Count(passed=int(status == 0), failed=int(status != 0))
    if status != 0 and total.failed == 0:
        print(f"{suite.name}: {suite.command[0]} ended with status {status}")
        total.failed += 1
    if total.passed + total.failed == 0:
        print(f"{suite.name}: no test ran")
        total.failed += 1
    print(f"--- {suite.name}: {time.monotonic() - start:.0f} s", flush=True)
    return total


def suites(everything: bool) -> list[Suite]:
    """Every runner, in the order of running. `everything` adds the long ones."""
    ruff = [sys.executable, "-m", "ruff", "check", "-q", "--no-cache", "--config", str(LAB / "pyproject.toml")]
    ruff += [str(LAB), str(ROOT / "python"), str(RTL)]
    # Files beside each other, each as a whole: what its fixtures make is made once. By name: short files come last.
    pytest_args = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations", "30",
                   "-n", "auto", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder", str(LAB)]
    if not everything:
        pytest_args += ["-m", "not long"]
    found = [
        Suite("spec-generated", ["spec/generate", "--check"], plain=True),
        Suite("spec-rules", ["spec/rules", "--strict"], plain=True),
        Suite("linux-series", ["linux/checks/check-series"]),
        Suite("protocol", ["spec/protocol/check", *(["--all"] if everything else [])]),
        Suite("stc-model", ["linux/series-stc/model/check", *(["--all"] if everything else [])]),
        Suite("lint", ruff, plain=True),
        Suite("rust", ["cargo", "test", "--locked", "-q"], MACHINE, env=build.cargo_env()),
        # What hosts without a translator have.
        Suite("interpreter", ["cargo", "check", "--locked", "-q", "-p", "trapless-riscv", "--no-default-features"],
              MACHINE, plain=True, env=build.cargo_env()),
        # The profile of the tests: the crates are built already, and arithmetic overflows are caught.
        Suite("difftest", trust.command("difftest", "--instructions", "100000000" if everything else "5000000"), MACHINE,
              env=build.cargo_env()),
        Suite("nonsense", ["cargo", "run", "--locked", "-q", "-p", "trapless-difftest", "--bin", "nonsense",
                           "--", "--runs", "20000" if everything else "1000"], MACHINE, env=build.cargo_env()),
        Suite("fuzz", trust.command("fuzz", *(["--seconds", "60"] if everything else [])), MACHINE, env=build.cargo_env()),
        Suite("rtl-lint", ["rtl/run", "rtl/smu/lint/check"]),
        Suite("rtl-model", ["rtl/run", sys.executable, "rtl/smu/sim/check", *(["--all"] if everything else [])],
              plain=True, env=build.cargo_env()),
        Suite("rtl-benches", ["rtl/run", "pytest", "-q", "-p", "no:cacheprovider", "rtl/smu/dv",
                              *(["--long"] if everything else [])]),
        Suite("rtl-soc", ["rtl/run", "rtl/cva6/tests/soc/run", "--smu"], plain=True, env=build.cargo_env()),
        Suite("rtl-formal", ["rtl/run", "rtl/smu/formal/check", *(["--all"] if everything else [])]),
        Suite("rtl-walker", ["rtl/run", "rtl/cva6/tests/walk/run", *(["--all"] if everything else [])]),
        Suite("rtl-unchanged", ["rtl/run", "rtl/cva6/tests/walk/unchanged", "--seeded"], plain=True, long=True),
        Suite("rtl-linux", [sys.executable, "rtl/cva6/linux/run"], plain=True, long=True),
        Suite("rtl-predict", [sys.executable, "rtl/cva6/linux/predict"], plain=True, long=True),
        Suite("rtl-mutants", ["rtl/run", sys.executable, "-m", "rtl.smu.dv.mutants"], plain=True, long=True,
              env=build.cargo_env()),
        Suite("lab", pytest_args),
        Suite("soak", [sys.executable, "-m", "lab", "soak", "--kernel", "plain", "--misses", "40000", "--data", "256",
                       "--out", str(CACHE / "test-soak")]),
        Suite("mutations", [sys.executable, "linux/checks/mutations"], long=True),
        Suite("selftests", [sys.executable, "-m", "lab", "selftests", "--full"], long=True),
    ]
    return found


def run(everything: bool, only: list[str]) -> int:
    """Run the suites named in `only` (all if empty); print the total; the exit status."""
    chosen = [suite for suite in suites(everything)
              if suite.name in only or not only and (everything or not suite.long)]
    unknown = set(only) - {suite.name for suite in chosen}
    if unknown:
        raise UserError(f"no such test suite: {', '.join(sorted(unknown))}")
    total, failing = Count(), []
    CACHE.mkdir(parents=True, exist_ok=True)
    for suite in chosen:
        count = run_suite(suite)
        total.add(count)
        if count.failed:
            failing.append(suite.name)
    if failing:
        say(f"failing: {', '.join(failing)}")
    print(f"{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0
