# SPDX-License-Identifier: Apache-2.0
"""Runs Yosys with a list of passes. Each run is a separate process, so that its memory is freed at the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from rtl.tools import sources
from rtl.tools.env import BUILDS, ROOT, package

BUILD = BUILDS / "synth"

# A pass that fails ends the process; its message is in the log.
SCRIPT = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for line in sys.stdin.read().splitlines():
    libyosys.run_pass(line, design)
"""


class SynthesisError(Exception):
    """A tool failed."""


def run(name: str, passes: list[str]) -> str:
    """Run passes in the folder of builds, and return the log. Raises SynthesisError if a pass fails."""
    BUILD.mkdir(parents=True, exist_ok=True)
    log = BUILD / f"{name}.log"
    with log.open("w") as out:
        status = subprocess.run(
            [sys.executable, "-c", SCRIPT], input="\n".join(passes), text=True, stdout=out, stderr=out, cwd=BUILD, check=False
        ).returncode
    text = log.read_text(errors="replace")
    if status != 0:
        errors = [line for line in text.splitlines() if "ERROR" in line] or [f"status {status}"]
        raise SynthesisError(f"{name}: {errors[-1]} (log: {relative(log)})")
    return text


def relative(path: Path) -> str:
    """A path relative to the repository, for messages."""
    return os.path.relpath(path, ROOT)


def read(parameters: Mapping[str, int], hierarchy: bool = True, extra: tuple[Path, ...] = (), top: str = sources.TOP) -> str:
    """The pass that reads the SMU, with synchronous reset, since the library's asynchronous one is nearly twice as large."""
    settings = " ".join(f"-G {name}={value}" for name, value in parameters.items())
    files = " ".join(map(str, [*sources.smu(), *extra]))
    keep = "--keep-hierarchy" if hierarchy else ""
    include = " ".join(sources.includes())
    return f"read_slang --threads 1 --ignore-assertions -D TRAPLESS_SYNC_RESET {include} --top {top} {settings} {keep} {files}"


def statistics(path: Path) -> dict[str, dict]:
    """The modules in a file of `stat -json`: each with its own cells, without those of its submodules."""
    text = path.read_text()
    return json.loads(text[text.index("{") :])["modules"]


def version() -> str:
    """The version of Yosys."""
    return next(package("pyosys").parent.glob("pyosys-*.dist-info")).name.split("-")[1].removesuffix(".dist")
