# SPDX-License-Identifier: Apache-2.0
"""A signal ends the command, or the set-up, with all processes that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trapless.base import cache
from trapless.base.paths import PYTHONPATH

# Kinds of work, each with a program of many processes: `sh tree` writes the file `ready` and never ends.
WORK = {
    "a build": "cache.cached('k', 'key', 'building', lambda out: cache.run_tool(TREE, out / 'log', 'building'))",
    "a build in a thread": """
with ThreadPoolExecutor(2) as pool:
    for _ in range(4):
        pool.submit(cache.cached, 'k', 'key', 'building', lambda out: cache.run_tool(TREE, out / 'log', 'building'))""",
    "a simulator": "process.run(TREE)",
    "a command": "subprocess.run(TREE)",
    "a pipe that nobody ends": "subprocess.Popen(TREE, stdout=subprocess.PIPE).stdout.read()",
    "an orphan": "subprocess.run(['sh', '-c', 'setsid sh tree & sleep 1000'])",
    "one that does not listen": "subprocess.run(['sh', '-c', 'trap : TERM INT HUP; sh tree & while :; do sleep 1; done'])",
}
SCRIPT = """
import subprocess, sys
from concurrent.futures import ThreadPoolExecutor
from trapless.base import cache, signals
from trapless.cli import __main__
from trapless.base import process

TREE = ['sh', 'tree']

def work(*_):
    {work}
    return 0

signals._PATIENCE_SECONDS = 2.0
__main__.dispatch = work
sys.argv = ['trapless', 'help']
sys.exit(__main__.main())
"""
TREE = "sleep 1000 & (sleep 1000; true) & sh -c 'sleep 1000; true' & touch ready; wait"


def marked(mark: str) -> dict[int, str]:
    """Return the living processes with this value of a variable: those that a test started, wherever they are now."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"TEST_OF={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            pass  # the process has ended
    return found


def wait_for(file: Path) -> None:
    for _ in range(600):
        if file.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{file.name} does not exist after 30 s")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("work", WORK)
def test_nothing_goes_on(tmp_path: Path, work: str, number: signal.Signals) -> None:
    """The signal goes only to this process, as from a service manager."""
    (tmp_path / "tree").write_text(TREE)
    env = os.environ | {"TRAPLESS_CACHE": str(tmp_path / "cache"), "PYTHONPATH": PYTHONPATH, "TEST_OF": str(tmp_path)}
    script = SCRIPT.format(work=WORK[work].replace("\n", "\n    "))
    lab = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, env=env, text=True, stderr=subprocess.PIPE,
                           start_new_session=True)
    wait_for(tmp_path / "ready")
    time.sleep(0.2)
    lab.send_signal(number)
    try:
        _, said = lab.communicate(timeout=30)
        assert marked(str(tmp_path)) == {}
    finally:
        for left in marked(str(tmp_path)):
            os.kill(left, signal.SIGKILL)
    assert lab.returncode == 128 + number, said
    assert "Traceback" not in said
    if (tmp_path / "cache").exists():
        assert list((tmp_path / "cache").glob("k/*")) + list((tmp_path / "cache").glob("k/.*")) == []
        with open(tmp_path / "cache/locks/k-key", "w") as lock:
            assert cache.hold(lock, wait=False)


def test_putting_in_order_may_take_long(tmp_path: Path) -> None:
    """A second signal ends it."""
    script = SCRIPT.format(work="""
    try:
        process.run(TREE)
    finally:
        signals._GIVE_UP_SECONDS = 1.0
        time.sleep(SECONDS)
        open('ordered', 'w')""").replace("import subprocess, sys", "import subprocess, sys, time")
    (tmp_path / "tree").write_text(TREE)
    env = os.environ | {"PYTHONPATH": PYTHONPATH}
    for signals, took in ((1, 6), (2, 1)):
        lab = subprocess.Popen([sys.executable, "-c", script.replace("SECONDS", "6" if signals == 1 else "60")],
                               cwd=tmp_path, env=env, text=True, stderr=subprocess.PIPE)
        wait_for(tmp_path / "ready")
        for _ in range(signals):
            time.sleep(0.5)
            lab.send_signal(signal.SIGTERM)
        start = time.monotonic()
        _, said = lab.communicate(timeout=40)
        assert lab.returncode == 143 and took <= time.monotonic() - start + 0.5 < 30
        assert (tmp_path / "ordered").exists() == (signals == 1)
        assert signals == 2 or "a second signal" in said
        for name in ("ready", "ordered"):
            (tmp_path / name).unlink(missing_ok=True)


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    """nohup sets this, and so does a shell for programs in the background."""
    script = SCRIPT.format(work="open('ready', 'w'); import time; time.sleep(1)")
    env = os.environ | {"TRAPLESS_CACHE": str(tmp_path / "cache"), "PYTHONPATH": PYTHONPATH}
    lab = subprocess.Popen(["env", "--ignore-signal=HUP", "--ignore-signal=INT", sys.executable, "-c", script], cwd=tmp_path,
                           env=env)
    wait_for(tmp_path / "ready")
    lab.send_signal(signal.SIGHUP)
    lab.send_signal(signal.SIGINT)
    assert lab.wait(30) == 0
