# SPDX-License-Identifier: Apache-2.0
"""`./trapless soak`: many misses of fast mappings under memory pressure, on a kernel that checks itself.

Four harts, memory a quarter of the data. Programs of all sorts map, unmap and advise while others read; every byte is
compared. At the end the kernel must have said nothing, and every frame that it gave to the unit must be accounted for.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab import build
from lab.cache import CACHE, check_room
from lab.images import dataset, ext4, rootfs
from lab.outputs import output_folder
from lab.runner import atomic
from lab.runner import guest as guests
from lab.runner.job import Job
from lab.ui import UserError, say, step

MISSES = 2_000_000
SCRIPT = Path(__file__).with_suffix(".sh")
DEBUG = ("debug.config", "hwdp-kunit.config")
DEBUG_MIB = 128
"""What that kernel takes of the memory for itself, more than the ordinary one: KASAN's shadow, page owners, lock tables."""
# What the kernel says when one of its checks fails.
REPORT = re.compile(
    r"BUG[: ]|WARNING: |KASAN|UBSAN|KFENCE|Oops|general protection|[Cc]all [Tt]race|INFO: (task|rcu|trying|possible)"
    r"|possible (circular|recursive|irq)|inconsistent lock|suspicious RCU|sleeping function|Bad (page|rss)|bad pte|nonzero"
    r"|not ok \d|list_(add|del) corruption|refcount_t|unreferenced object|stack-out-of-bounds|hung_task|Kernel panic")
# Fills the free ring, once for each way out of it.
FRAMES_OUT = ("pages_adopted", "pages_discarded", "frames_returned")


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    misses: int = MISSES
    debug: bool = True
    kind: str = "hwdp"
    kernel: Path | None = None
    out: Path = Path("out/soak")
    data_mib: int = 1024


def run(request: Request) -> int:
    """Run it, print the verdict; 0 if nothing was found."""
    output_folder(request.out)
    program = build.machine()
    kernel = request.kernel or build.kernel(configs=DEBUG if request.debug else ())
    data = dataset.image(request.data_mib * ext4.MIB)
    memory = request.data_mib // 4 + (DEBUG_MIB if request.debug else 0)
    guest = guests.Guest(kernel, rootfs.image(more=("stress-ng",)), data, memory=f"{memory}M",
                         append="page_owner=on hwdp.ring=1024", populate=None, options=atomic.options(kernel))
    script = f"sh {SCRIPT.name} {request.kind} {request.misses} {_sum(data)}"
    for old in request.out.glob("*"):
        if old.is_file():
            old.unlink()
    with step(f"{request.misses:,} misses, kind {request.kind}"):
        outcome = guests.run_on_machine(program, guest, Job(script, (SCRIPT,)), request.out, show=True)
    (request.out / "console.txt").write_text(outcome.console)
    found = [*([f"the guest's script ended with status {outcome.status}"] if outcome.status else []), *faults(request.out)]
    looked = atomic.line(outcome.stats)
    if atomic.reports(outcome.stats):
        found.append(looked)
    elif looked:
        say(looked)
    for line in found:
        print(line)
    pages = counters(request.out).get("pages_adopted", 0)
    say(f"{pages:,} pages served and adopted with {usable(request.out)} MiB of memory for {request.data_mib} MiB of data, "
        f"{outcome.stats['sim_seconds']:.0f} s of simulated time, {outcome.host_seconds:.0f} s here; files in {request.out}")
    print("1 passed, 0 failed" if not found else "0 passed, 1 failed")
    return 1 if found else 0


def _sum(data: Path) -> str:
    """mapsum of the data disk's file, by the host's own read()."""
    check_room(data.stat().st_size, CACHE, f"a copy of the file in {data.name}")
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        copy = Path(folder) / dataset.FILE
        subprocess.run(["debugfs", "-R", f"dump /{dataset.FILE} {copy}", data], check=True, capture_output=True)
        return subprocess.run([build.host_mapsum(), "-r", copy], check=True, capture_output=True, text=True).stdout.strip()


def counters(folder: Path) -> dict[str, int]:
    """The kernel's counters at the end."""
    try:
        text = (folder / "stats").read_text()
    except OSError:
        raise UserError("the guest left no counters: see console.txt") from None
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def usable(folder: Path) -> int:
    """MiB of memory that the kernel had to give."""
    found = re.search(r"MemTotal: +(\d+) kB", (folder / "meminfo.before").read_text())
    return int(found[1]) >> 10 if found else 0


def faults(folder: Path) -> list[str]:
    """Everything that is wrong, one line each."""
    found = [line for line in _lines(folder / "failures")]
    found += [f"kernel: {line}" for line in _lines(folder / "dmesg") if REPORT.search(line)]
    found += [f"kmemleak: {line}" for line in _lines(folder / "kmemleak") if line.startswith("unreferenced")]
    before, after = (sum(line.startswith("Page allocated") for line in _lines(folder / name))
                     for name in ("page_owner.before", "page_owner"))
    if after:
        found.append(f"{after} frames of the ring are still allocated (page_owner)")
    if (folder / "page_owner").exists() and not before:
        found.append("page_owner knew no frame of the full ring: its word at the end means nothing")
    stats = counters(folder)
    lost = stats["frames_refilled"] - sum(stats[name] for name in FRAMES_OUT)
    if lost:
        found.append(f"{lost} frames lost: {stats['frames_refilled']} refilled, "
                     + ", ".join(f"{stats[name]} {name}" for name in FRAMES_OUT))
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []
