# SPDX-License-Identifier: Apache-2.0
"""The torture test of linux/checks/torture.c: random sequences of everything that changes an address space. They run without a
kind of paging and with each kind, with and without --share. All must give the same result: a program may see no difference but
its speed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from trapless.base.cache import CACHE
from trapless.base.paths import LINUX
from trapless.base.ui import UserError, say
from trapless.guest import boot as guests
from trapless.guest import build, served
from trapless.guest.images import dataset, ext4, rootfs
from trapless.guest.job import KINDS, Job, launcher
from trapless.guest.programs import cross
from trapless.results import figures

SEQUENCES = 10_000
# Number of sequences of one boot. A run is divided into boots with different seeds, so that a long run can use every core.
_BATCH = 250
_SHOWN = 10
"""Maximum number of differences that are shown for one way; all are counted."""


@dataclass(frozen=True)
class Way:
    """A way to page the program's mappings."""

    kind: str | None = None
    share: bool = False

    def __str__(self) -> str:
        """Return the options of `run` for this way."""
        return f"--kind {self.kind}{' --share' if self.share else ''}" if self.kind else "no kind"


@dataclass(frozen=True)
class Part:
    """Sequences of one boot."""

    way: Way
    seed: int
    """Seed of the first sequence."""
    count: int
    steps: bool = False
    """Whether each step is printed on the console."""


@dataclass(frozen=True)
class Said:
    """Results of a part."""

    lines: list[str]
    """One line for each sequence: seed, hash of all results, how it ended."""
    console: str
    simulated: float
    host: float
    hardware: int
    reads: int
    """Reads of the data disk: by the unit (`hardware`), and all (`reads`)."""
    unaccounted: str
    """Mismatch between the drive's counts and the kernel's or the record's; empty if there is none."""


def ways(kind: str | None = None, share: bool = False) -> list[Way]:
    """Return all ways with a kind, or only those with this kind or with --share."""
    return [Way(each, shared) for each in ([kind] if kind else KINDS) for shared in ((True,) if share else (False, True))]


def program() -> Path:
    """Return the torture program for the guest. Its library is in the same folder."""
    sources = LINUX / "checks"
    names = ("torture", "torture-model", "torture-map", "torture-thread", "torture-process")
    return cross.compile_program("torture", [sources / f"{name}.c" for name in names])


def library() -> Path:
    """Return the library that the program loads and unloads."""
    return cross.compile_program("torture-library.so", [LINUX / "checks" / "torture-library.c"], flags=("-shared", "-fPIC"))


def run_part(part: Part, kernel: Path | None = None) -> Said:
    """Run one boot."""
    words = [*launcher(part.way.kind, part.way.share), "./torture", "-n", str(part.count), "-s", str(part.seed)]
    # In memory, so that reading the program does not count as reads of the measured disk.
    script = (f"cp torture-library.so /data/; cp torture /tmp/; cd /tmp; {' '.join(words)} {'-v' if part.steps else ''} /data "
              f"> /tmp/lines; status=$?; cp /tmp/lines /job/out/; exit $status")
    guest = guests.Guest(kernel or build.kernel(), rootfs.image(), dataset.image(16 * ext4.MIB), harts=2, populate=None,
                         max_seconds=60 + 2 * part.count)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        outcome = guests.run_on_machine(build.machine(), guest, Job(script, (program(), library())), Path(folder))
        try:
            said = (Path(folder) / "lines").read_text().splitlines()
        except OSError:
            said = []
    lines = [line for line in said if line.startswith("seed ")]
    if len(lines) != part.count:
        raise UserError(f"{part.way}, seed {part.seed + len(lines)}: the program did not end; the last line of the guest: "
                        f"{guests.last_line(outcome.console)}")
    hardware, reads = served.reads(part.way.kind, outcome) or (0, 0)
    return Said(lines, outcome.console, outcome.stats["sim_seconds"], outcome.host_seconds, hardware, reads,
                _unaccounted(part.way, hardware, outcome))


def _unaccounted(way: Way, hardware: int, outcome: guests.Outcome) -> str:
    """Compare three counts of the unit's reads: the drive's count for the unit's queue, the kernel's counts of reads that the
    unit has requested and completed, and the record's samples, one for each miss completed for a walker. Misses through a port,
    for the kernel's own accesses, have no sample."""
    asked, brought, ports = (outcome.counters.get(f"smu_{name}", 0) for name in ("commands", "installed", "port_requests"))
    wanted = {"emulated": brought, "trap": asked, "hwdp": asked}.get(way.kind or "", 0)
    if hardware != wanted:
        return f"the drive counted {hardware} reads of the unit, but the kernel {wanted}"
    regions = [*figures.regions(outcome.stats), outcome.stats["outside"]]
    samples = sum(region["hw_miss"]["count"] for region in regions)
    if way.kind == "hwdp" and not brought - ports <= samples <= brought:
        return f"the record has {samples} misses, but the kernel counted {brought}, at most {ports} of them its own"
    return ""


def contradictions(said: Said) -> list[str]:
    """Return the lines of sequences that contradict the program's own model, or that hang."""
    return [line for line in said.lines if " bad 0 " not in line or line.endswith(" hangs")]


def differences(reference: Said, said: Said) -> list[str]:
    """Return the sequences that did not end alike, with both lines of each."""
    return [f"{theirs} (without a kind: {ours.partition(' hash ')[2]})"
            for ours, theirs in zip(reference.lines, said.lines, strict=True) if ours != theirs]


def first_step(way: Way, seed: int, kernel: Path | None = None) -> str:
    """Return the first step of this sequence whose result differs from that without a kind, or contradicts the model."""
    ours, theirs = (_steps(run_part(Part(each, seed, 1, steps=True), kernel)) for each in (Way(), way))
    for level, steps in reversed(list(enumerate(theirs))):  # a child's step first: its result is part of a step of its parent
        for number, step in enumerate(steps):
            wanted = ours[level][number] if number < len(ours[level]) else "nothing"
            if step != wanted:
                process = "" if level == 0 else f" of a {'grand' * (level - 1)}child"
                return f"step {number + 1}{process}: {step} (without a kind: {wanted})"
    return "no step differs"


def _steps(said: Said) -> list[list[str]]:
    """Return the steps of a sequence's first process, then of its children, and so on. Two leading spaces stand for one level."""
    levels: list[list[str]] = [[], [], [], []]
    for line in said.console.splitlines():
        levels[min((len(line) - len(line.lstrip())) // 2, 3)].append(line.strip())
    return levels


def _parts(sequences: int, seed: int) -> Iterator[tuple[int, int]]:
    for first in range(0, sequences, _BATCH):
        yield seed + first, min(_BATCH, sequences - first)


def run(sequences: int, seed: int, kind: str | None, share: bool, kernel: Path | None) -> int:
    """Run all sequences and print the result. Return the exit status."""
    if sequences < 1:
        raise UserError(f"--sequences must be at least 1, not {sequences}")
    if seed < 0 or seed + sequences > 1 << 32:
        raise UserError(f"--seed {seed}: seeds are 0 to {(1 << 32) - 1}")
    if kernel and not kernel.is_file():
        raise UserError(f"--kernel {kernel}: no such file")
    image, chosen, failed = kernel or build.kernel(), ways(kind, share), 0
    build.machine(), rootfs.image(), dataset.image(16 * ext4.MIB), program(), library()
    simulated = host = 0.0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        boots = [(way, pool.submit(run_part, Part(way, first, count), image))
                 for first, count in _parts(sequences, seed) for way in (Way(), *chosen)]
        wrong: dict[Way, list[str]] = {way: [] for way in (Way(), *chosen)}
        unaccounted: dict[Way, list[str]] = {way: [] for way in (Way(), *chosen)}
        reads: dict[Way, tuple[int, int]] = {way: (0, 0) for way in (Way(), *chosen)}
        for number, (way, boot) in enumerate(boots):
            said = boot.result()
            simulated, host = simulated + said.simulated, host + said.host
            reads[way] = reads[way][0] + said.hardware, reads[way][1] + said.reads
            if said.unaccounted:
                unaccounted[way].append(said.unaccounted)
            if way == Way():
                reference = said
                wrong[way] += contradictions(said)
            else:
                wrong[way] += differences(reference, said)
            if sys.stderr.isatty() or (number + 1) % 4 == 0:
                say(f"{number + 1} of {len(boots)} boots, {sum(map(len, wrong.values()))} sequences that differ")
    for way, lines in wrong.items():
        failed += len(lines)
        result = f"{len(lines)} {'contradict the model' if way == Way() else 'different'}"
        print(f"{way}: {sequences} sequences, {result}; {reads[way][1]} reads, {reads[way][0]} by the unit")
        for line in lines[:_SHOWN]:
            print(f"  {line}")
        if lines and way != Way():
            first = int(lines[0].split()[1])
            print(f"  seed {first}, {first_step(way, first, image)}")
        failed += len(unaccounted[way])
        for text in unaccounted[way]:
            print(f"  {text}")
    print(f"torture: {sequences} sequences without a kind and in {len(chosen)} ways with one, {failed} wrong; "
          f"{simulated:.0f} s of simulated time, {host:.0f} s of the host's processors")
    return 1 if failed else 0
