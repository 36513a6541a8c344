# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev mrc-check`: compares `trapless-pagesim mrc` with libCacheSim, request by request."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trapless.base.cache import CACHE, GIB, cached, content_key, run_tool
from trapless.base.paths import DEV
from trapless.base.ui import UserError, say
from trapless.guest import build

REQUIREMENTS = DEV / "requirements-mrc.txt"
REFERENCE = DEV / "mrc_reference.py"
LOGS = CACHE / "logs"
POLICIES = ("lru", "fifo", "clock", "arc", "s3-fifo")
SIZES = (20, 57, 100, 1000)
"""Smallest size of a policy: below 20, libCacheSim's S3-FIFO admits no object of size 1."""
SMALLEST = {"s3-fifo": 20}


def python() -> Path:
    """Return a Python interpreter that has libCacheSim."""
    def make(folder: Path) -> None:
        run_tool([sys.executable, "-m", "venv", folder], LOGS / "mrc-venv.log", "making a Python environment")
        run_tool([folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                  "-r", REQUIREMENTS], LOGS / "mrc-pip.log", "pip install")

    return cached("venv-mrc", content_key(REQUIREMENTS, sys.version), "installing libCacheSim", make, GIB // 2) / "bin" / "python"


def write_objects(path: Path, objects: Sequence[int]) -> Path:
    """Write an oracleGeneral file with these requests."""
    pack = struct.Struct("<IQIq").pack
    path.write_bytes(b"".join(pack(min(time, 2**32 - 1), page, 1, -2) for time, page in enumerate(objects)))
    return path


def zipf(draw: random.Random, count: int, pages: int) -> list[int]:
    """Requests to pages. The n-th page is drawn with a probability proportional to 1/n."""
    return draw.choices(range(pages), [1 / rank for rank in range(1, pages + 1)], k=count)


def made(seed: int, count: int = 20_000) -> dict[str, list[int]]:
    """Made-up sequences of requests, by name."""
    draw = random.Random(seed)
    loop = [page for start in range(0, count, 700) for page in range(3000, 3700)][:count]
    popular = zipf(draw, count, 2500)
    mixed = [page if draw.random() < 0.6 else (loop[at] if draw.random() < 0.5 else 10_000 + at)
             for at, page in enumerate(popular)]
    # Large object numbers, and phases in which different pages are popular.
    phases = [(2**63 + page + 5000 * (at * 5 // count)) for at, page in enumerate(zipf(draw, count, 1500))]
    return {"zipf": popular, "scan": list(range(count)), "loop": loop, "mixed": mixed, "phases": phases}


def policies(text: str) -> list[str]:
    """Parse `--policy`."""
    found = text.split(",")
    if wrong := [name for name in found if name not in POLICIES]:
        raise UserError(f"--policy: {wrong[0] or text!r} is not one of {', '.join(POLICIES)}")
    return found


def sizes(text: str) -> list[int]:
    """Parse `--sizes`."""
    try:
        found = [int(size) for size in text.split(",")]
    except ValueError:
        raise UserError(f"--sizes: {text} is not a list of numbers such as 20,100") from None
    if min(found) < 1:
        raise UserError(f"--sizes: {min(found)} is not 1 or more")
    return found


def differences(file: Path, policies: Sequence[str] = POLICIES, sizes: Sequence[int] = SIZES, *,
                options: Sequence[str] = (), program: Path | None = None) -> Iterator[tuple[str, int, int, int | None]]:
    """Yield policy, size, number of requests, and the first request (from 0) that differs or None, for each policy and size."""
    program = program or build.pagesim()
    with tempfile.TemporaryDirectory() as folder:
        objects = Path(folder) / "objects.oracleGeneral"
        _run([program, "mrc", file, "--objects", objects, *options])
        pairs = [(policy, size) for policy in policies for size in sizes if size >= SMALLEST.get(policy, 1)]
        _run([python(), REFERENCE, objects, Path(folder) / "theirs", *(f"{policy}:{size}" for policy, size in pairs)])
        for policy, size in pairs:
            ours = Path(folder) / "ours"
            _run([program, "mrc", file, "--policy", policy, "--sizes", str(size), "--requests", ours, *options])
            found = bytes(byte - ord("0") for byte in ours.read_bytes()[::2])
            known = (Path(folder) / f"theirs-{policy}-{size}").read_bytes()
            first = next((at for at, pair in enumerate(zip(found, known, strict=False)) if pair[0] != pair[1]), None)
            yield policy, size, len(known), first if len(found) == len(known) else min(len(found), len(known))


def _run(command: Sequence[object]) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        *_, reason = ["failed", *done.stderr.strip().splitlines()]
        raise UserError(f"{Path(str(command[0])).name}: {reason}")


def run(files: Sequence[Path], policies: Sequence[str], sizes: Sequence[int], out: Callable[[str], None] = print) -> int:
    """Compare files, or made-up requests if there are no files. Return the exit status."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        named = [(str(file), file) for file in files] or [
            (name, write_objects(Path(folder) / f"{name}.oracleGeneral", objects)) for name, objects in made(1).items()]
        for name, file in named:
            for policy, size, requests, first in differences(file, policies, sizes):
                same = "equal" if first is None else f"request {first} differs"
                wrong += first is not None
                out(f"{name}: {policy}, {size} pages: {requests} requests, {same}")
    if wrong:
        raise UserError(f"{wrong} comparisons with libCacheSim differ (listed above)")
    say("all requests hit or miss as in libCacheSim")
    return 0
