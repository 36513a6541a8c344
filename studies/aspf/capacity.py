# SPDX-License-Identifier: Apache-2.0
"""Speed and memory of the paging simulator with each order of replacement: accesses per second of one core, and whether memory
grows with the traces."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

import tomli_w
from trapless.base.ui import UserError
from trapless.guest import build
from trapless.pagesim import runs, traces

from studies.aspf import paper

ORDERS = ("lru", "fifo", "clock", "two-lists", "mglru", "clock-pro", "arc", "s3-fifo", "virtual-time")
"""All orders of replacement (machine/crates/pagesim/src/replacement)."""
PAGES = 4096
"""Footprint of the traces of `growth` in pages. It is twice the memory, so with most orders each access misses."""
_POLL_SECONDS = 0.02


def replayed(folder: Path | None = None) -> dict[str, float]:
    """Return the accesses of Mix3 that are simulated per second of CPU time, in millions, for each order of replacement. The
    policy is `sync`, and memory has the size by the paper's rule."""
    found = traces.find(paper.mixes()["mix6"], folder)
    used = [found[name] for name in paper.mixes()["mix3"]]
    values = {"policy": "sync", "memory.frames": paper.frames(found),
              "process": [{"name": trace.name, "trace": str(trace.path)} for trace in used]}
    accesses = sum(trace.accesses for trace in used) / 1e6
    return {order: accesses / _run(values | {"memory.replacement": order})[0] for order in ORDERS}


def growth(rounds: int) -> dict[str, float]:
    """Return the additional memory in MiB for a trace that is eight times as long as one of `rounds` rounds over the same pages,
    for each order of replacement."""
    with tempfile.TemporaryDirectory() as folder:
        peaks = []
        for times in (rounds, 8 * rounds):
            text, trace = Path(folder, "text"), Path(folder, f"{times}.trace")
            lines = "".join(f"I  {page << 12:08x},4\n" for page in range(16, 16 + PAGES))
            with open(text, "w") as file:
                for _ in range(times):
                    file.write(lines)
            subprocess.run([build.pagesim(), "import", text, "--out", trace], check=True, capture_output=True)
            values = {"policy": "sync", "memory.frames": PAGES // 2, "process": [{"name": "loop", "trace": str(trace)}]}
            peaks.append({order: _run(values | {"memory.replacement": order})[1] for order in ORDERS})
    return {order: peaks[1][order] - peaks[0][order] for order in ORDERS}


def _run(values: dict[str, object]) -> tuple[float, float]:
    """CPU time, s, and memory at most, MiB, of one simulation in the paper's setting."""
    program = build.pagesim()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "run.toml")
        config.write_text(tomli_w.dumps(runs.changed(paper.setting(), values)))
        process = subprocess.Popen([program, "run", config], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        peak, ended = 0, 0
        # The kernel's sums over an ended process know what it was before exec, too: this program.
        while not ended:
            peak = max(peak, _peak(process.pid))
            time.sleep(_POLL_SECONDS)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        with process.stderr as said:
            text = said.read().decode(errors="replace")
        if process.returncode:
            raise UserError(text.strip().splitlines()[-1])
    return usage.ru_utime + usage.ru_stime, peak / 1024


def _peak(pid: int) -> int:
    """Memory at most of a process so far, KiB; 0 of one that has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)
