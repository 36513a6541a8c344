# SPDX-License-Identifier: Apache-2.0
"""`./trapless test`: runs every test runner of the project and adds up their results."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock

from trapless.base.paths import CACHE, DEV, MACHINE, ROOT
from trapless.base.ui import no_such, say
from trapless.guest import build

from dev import passed
from dev.checks import trust

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
    """Whether the command counts as one test: it passes if its exit status is 0."""
    long: bool = False
    """Whether it runs only with --all, or when it is named."""
    lane: str = ""
    """Name of its lane. Suites of a lane run one after another, different lanes at the same time. Suites without a lane use the
    whole machine and come last."""
    env: dict[str, str] = field(default_factory=dict)
    depends: tuple[str, ...] = ()
    """Files and folders of the checkout on which alone the verdict depends. After it passed, the suite runs again only when one
    of them changes (passed.py). Empty: it always runs."""


def closing_count(line: str) -> Count | None:
    """Return the count in a runner's closing line, or None for any other line."""
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


def _now(text: str) -> None:
    print(text, end="", flush=True)


def run_suite(suite: Suite, write: Callable[[str], None] = _now) -> Count:
    """Run one suite, pass its output on, and count. A runner that fails without a failed test counts as one failure."""
    key = passed.key(suite.command, suite.depends) if suite.depends else ""
    if key and (found := passed.known(key)):
        write(f"--- {suite.name}: {found[0]} passed before on the same files, in {found[1]:.0f} s (--again runs them)\n")
        return Count(passed=found[0])
    write(f"--- {suite.name}: {' '.join(suite.command)}\n")
    total, start = Count(), time.monotonic()
    try:
        process = subprocess.Popen(
            suite.command, cwd=suite.cwd, env=os.environ | suite.env, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
    except OSError as error:
        write(f"{suite.name}: cannot start {suite.command[0]}: {error.strerror}\n")
        return Count(failed=1)
    assert process.stdout is not None
    for line in process.stdout:
        write(line)
        count = closing_count(line)
        if count:
            total.add(count)
    status = process.wait()
    if suite.plain:
        total = Count(passed=int(status == 0), failed=int(status != 0))
    if status != 0 and total.failed == 0:
        write(f"{suite.name}: {suite.command[0]} ended with status {status}\n")
        total.failed += 1
    if total.passed + total.failed == 0:
        write(f"{suite.name}: no test ran\n")
        total.failed += 1
    seconds = time.monotonic() - start
    write(f"--- {suite.name}: {seconds:.0f} s\n")
    if key and not total.failed:
        passed.keep(key, total.passed, seconds)
    return total


def run_lane(lane: Sequence[Suite], turn: Lock, ended: Event) -> dict[str, Count]:
    """Run suites one after another, beside other lanes, until `ended` is set. The output of a suite is written as a whole, after
    it ended."""
    found: dict[str, Count] = {}
    for suite in lane:
        if ended.is_set():
            break
        said: list[str] = []
        found[suite.name] = run_suite(suite, said.append)
        with turn:
            _now("".join(said))
    return found


def run_lanes(lanes: Sequence[Sequence[Suite]]) -> dict[str, Count]:
    """Run lanes at the same time. Return the counts by suite."""
    turn, ended = Lock(), Event()
    with ThreadPoolExecutor(max_workers=max(1, len(lanes))) as pool:
        try:
            return {name: count for found in pool.map(lambda lane: run_lane(lane, turn, ended), lanes)
                    for name, count in found.items()}
        finally:
            ended.set()


def suites(everything: bool) -> list[Suite]:
    """Return every runner, in the order of running. `everything` adds the long ones."""
    dev = [sys.executable, "-m", "trapless.cli", "dev"]
    # Test files run in parallel. The tests of a file stay together, so that its fixtures run once. The files begin in the order
    # of conftest.py, the slowest first.
    pytest_args = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations", "30",
                   "-n", "auto", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder", str(DEV)]
    pytest_args += ["-o", "faulthandler_timeout=10800"] if everything else ["-m", "not long"]
    host = [
        Suite("spec-generated", ["spec/generate", "--check"], plain=True),
        Suite("spec-rules", ["spec/rules", "--strict"], plain=True),
        Suite("linux-series", ["linux/checks/check-series"]),
        Suite("protocol", ["spec/protocol/check", *(["--all"] if everything else [])], depends=("spec/protocol",)),
        Suite("stc-model", ["linux/series-stc/model/check", *(["--all"] if everything else [])],
              depends=("linux/series-stc/model", "spec/protocol")),
        Suite("lint", [sys.executable, "-m", "dev.lint"]),
        Suite("docs", [sys.executable, "-m", "trapless.cli", "dev", "docs"], plain=True),
        Suite("rust", ["cargo", "test", "--locked", "-q"], MACHINE, env=build.cargo_env()),
        # The configuration of hosts without a translator.
        Suite("interpreter", ["cargo", "check", "--locked", "-q", "-p", "trapless-riscv", "--no-default-features"],
              MACHINE, plain=True, env=build.cargo_env()),
        # The tests' profile: the crates are built already, and arithmetic overflows are caught.
        Suite("difftest", trust.command("difftest", "--instructions", "100000000" if everything else "5000000"), MACHINE,
              env=build.cargo_env()),
        Suite("nonsense", ["cargo", "run", "--locked", "-q", "-p", "trapless-difftest", "--bin", "nonsense",
                           "--", "--runs", "20000" if everything else "1000"], MACHINE, env=build.cargo_env()),
        Suite("fuzz", trust.command("fuzz", *(["--seconds", "60"] if everything else [])), MACHINE, env=build.cargo_env()),
    ]
    of_rtl = ("rtl", "spec", "python/trapless/base")
    rtl = [
        Suite("rtl-lint", ["rtl/run", "rtl/smu/lint/check"], depends=of_rtl),
        Suite("rtl-model", ["rtl/run", sys.executable, "rtl/smu/sim/check", *(["--all"] if everything else [])],
              plain=True, env=build.cargo_env(), depends=(*of_rtl, "machine")),
        Suite("rtl-benches", ["rtl/run", "pytest", "-q", "-p", "no:cacheprovider", "rtl/smu/dv",
                              *(["--long"] if everything else [])], depends=of_rtl),
        Suite("rtl-soc", ["rtl/run", "rtl/cva6/tests/soc/run", "--smu"], plain=True, env=build.cargo_env(),
              depends=(*of_rtl, "machine")),
        Suite("rtl-formal", ["rtl/run", "rtl/smu/formal/check", *(["--all"] if everything else [])], depends=of_rtl),
        Suite("rtl-formal-wide", ["rtl/run", "rtl/smu/formal/check", "--wide", *(["--all"] if everything else [])],
              depends=of_rtl, long=True),
        Suite("rtl-walker", ["rtl/run", "rtl/cva6/tests/walk/run", *(["--all"] if everything else [])],
              depends=(*of_rtl, "machine")),
        Suite("rtl-unchanged", ["rtl/run", "rtl/cva6/tests/walk/unchanged", "--seeded"], plain=True, long=True),
        Suite("rtl-linux", [*dev, "rtl-linux"], plain=True, long=True),
        Suite("rtl-predict", [*dev, "rtl-predict"], plain=True, long=True),
        Suite("rtl-mutants", ["rtl/run", "python", "-m", "rtl.smu.dv.mutants"], plain=True, long=True,
              env=build.cargo_env()),
        Suite("rtl-mutants-hand", ["rtl/run", "python", "-m", "rtl.smu.dv.mutants.hand"], plain=True, long=True,
              env=build.cargo_env()),
    ]
    whole = [
        Suite("python", pytest_args),
        Suite("soak", [*dev, "soak", "--kernel", "plain", "--misses", "40000",
                       "--data", "256", "--out", str(CACHE / "test-soak")]),
        Suite("mutations", [*dev, "kernel-mutants"], long=True),
        Suite("selftests", [*dev, "selftests", "--full"], long=True),
    ]
    return [*(replace(suite, lane="host") for suite in host), *(replace(suite, lane="rtl") for suite in rtl), *whole]


def run(everything: bool, only: list[str], again: bool = False) -> int:
    """Run the suites named in `only` (all if empty); with `again`, also those that passed before on the same files. Print the
    total and return the exit status."""
    chosen = [suite for suite in suites(everything)
              if suite.name in only or not only and (everything or not suite.long)]
    for name in only:
        if name not in {suite.name for suite in chosen}:
            raise no_such("test suite", name, [suite.name for suite in suites(everything)])
    CACHE.mkdir(parents=True, exist_ok=True)
    if again:
        chosen = [replace(suite, depends=()) for suite in chosen]
    lanes = [[suite for suite in chosen if suite.lane == lane] for lane in dict.fromkeys(suite.lane for suite in chosen) if lane]
    counts = run_lanes(lanes)
    counts |= {suite.name: run_suite(suite) for suite in chosen if not suite.lane}
    total, failing = Count(), [name for name, count in counts.items() if count.failed]
    for count in counts.values():
        total.add(count)
    if failing:
        say(f"failing: {', '.join(failing)}")
    print(f"{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0
