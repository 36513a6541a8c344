# SPDX-License-Identifier: Apache-2.0
"""A checkout for tests that boots nothing: its machine (fake_machine.py) only pretends to run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from trapless.base.paths import PYTHONPATH
from trapless.sweeps.grid import Grid

FAKE = Path(__file__).with_name("fake_machine.py")


class Fake:
    """A separate checkout in a folder, with a fake machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log.txt"
        for name in ("Image", "root.img"):
            (folder / name).write_text(name)
        self.env = {"TRAPLESS_CACHE": str(folder / "cache"), "TRAPLESS_KERNEL": str(folder / "Image"),
                    "TRAPLESS_MACHINE": str(FAKE), "FAKE_LOG": str(self.log), "PYTHONPATH": PYTHONPATH}

    def starts(self) -> list[list[str]]:
        """Return the command, the starting process and the process of each run so far, without boots."""
        lines = [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return [line for line in lines if line[0] != "boot"]

    def waiting(self) -> list[list[str]]:
        """Return the starts of the runs that wait."""
        return [start for start in self.starts() if "wait" in start[0]]

    def runs(self) -> Counter[str]:
        """Return how often each command was started."""
        return Counter(name for name, _, _ in self.starts())

    def grid(self, *commands: str, **more: object) -> Grid:
        return Grid({"memory": "64M"}, {"command": list(commands)}, folder=self.folder, **more)

    def trapless(self, *arguments: str) -> subprocess.Popen:
        """Start `./trapless ...` with this checkout."""
        script = ("import sys; from pathlib import Path; from trapless.cli import __main__; "
                  "from trapless.guest.images import rootfs; "
                  f"rootfs.image = lambda *_: Path({str(self.folder / 'root.img')!r}); sys.exit(__main__.main())")
        return subprocess.Popen([sys.executable, "-c", script, *arguments], env=os.environ | self.env, cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def sweep(self, *options: str) -> subprocess.Popen:
        return self.trapless("sweep", "sweep.toml", "--out", "out", *options)

    def file(self, *commands: str) -> None:
        """Write the file that `sweep` runs."""
        (self.folder / "sweep.toml").write_text(f"[fixed]\nmemory = '64M'\n[vary]\ncommand = {json.dumps(commands)}\n")

    def results(self) -> list[dict]:
        return json.loads((self.folder / "out" / "results.json").read_text())

    def hold(self, what: str = "wait") -> None:
        """Let runs named `wait` (or boots) wait from now on."""
        self.log.with_suffix(f".{what}").touch()

    def release(self) -> None:
        for what in ("wait", "boot"):
            self.log.with_suffix(f".{what}").unlink(missing_ok=True)

    def boots(self) -> list[int]:
        """Return the processes of the boots so far; none if a run has begun."""
        lines = [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []
        assert {line[0] for line in lines} <= {"boot"}
        return [int(line[2]) for line in lines]


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"the condition is not true after {seconds} s"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def statuses(results: list[dict]) -> list[str]:
    return [result["status"] for result in results]
