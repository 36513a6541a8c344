# SPDX-License-Identifier: Apache-2.0
"""Cache of passed suites. It has suites that depend only on files of the checkout and always give the same verdict: a suite that
passed on the same files need not run again. Failures are not kept."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from trapless.base.cache import CACHE, content_key
from trapless.base.outputs import write_whole
from trapless.base.paths import ROOT

FOLDER = CACHE / "passed"
RECIPE = "passed 1"
"""Part of every key. Raise it when the suites' runner treats a suite differently."""


def key(command: Sequence[str], depends: Sequence[str], root: Path = ROOT) -> str:
    """Return the key of a suite, from its command, the files (tracked or new) below `depends`, and the host's release and
    compiler."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *depends], cwd=root, check=True,
                            capture_output=True, text=True).stdout.split("\0")
    files = sorted(name for name in set(listed) if name and (root / name).is_file())
    words = [word.replace(str(root), "") for word in command if not Path(word).is_absolute()]
    parts: list[str | Path] = [RECIPE, *words, platform.platform(), platform.python_version(), _compiler()]
    for name in files:
        parts += [name, root / name]
    return content_key(*parts)


def _compiler() -> str:
    try:
        return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=False).stdout.partition("\n")[0]
    except OSError:
        return ""


def known(name: str) -> tuple[int, float] | None:
    """Return how many tests passed, and in how many seconds; None if the suite has no entry."""
    try:
        found = json.loads((FOLDER / f"{name}.json").read_text())
        return int(found["passed"]), float(found["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(name: str, passed: int, seconds: float) -> None:
    """Store how many tests of the suite with this key passed, and in how many seconds."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_whole(FOLDER / f"{name}.json", json.dumps({"passed": passed, "seconds": round(seconds, 1)}) + "\n")
