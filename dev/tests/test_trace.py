# SPDX-License-Identifier: Apache-2.0
"""Memory access traces of a guest: complete, without cost in simulated time, and about the pages that the program touched."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest import job as jobs
from trapless.guest.images import dataset, ext4

pytestmark = pytest.mark.guest

PAGE, LINE = 4096, 64
FILE = 2 * ext4.MIB
KINDS = ("fetch", "load", "store")


@dataclass
class Seen:
    """Sums over a trace."""

    loads: set[tuple[str, int]] = field(default_factory=set)
    """Address spaces and addresses of blocks."""
    accesses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    modes: set[str] = field(default_factory=set)
    harts: set[str] = field(default_factory=set)


def read(program: Path, trace: Path) -> Seen:
    """Sum the entries that the machine's program prints."""
    seen = Seen()
    with subprocess.Popen([program, "trace", "dump", trace], text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        next(process.stdout)
        for line in process.stdout:
            hart, what, mode, space, address, _, _, ended = line.split()
            seen.harts.add(hart)
            if what == "close":
                for kind, count in zip(KINDS, ended.split(","), strict=True):
                    seen.accesses[kind] += int(count)
                continue
            seen.modes.add(mode)
            seen.accesses[what] += int(ended)
            if what == "load":
                seen.loads.add((space, int(address, 16)))
    assert process.returncode == 0
    return seen


def test_a_trace_has_every_page_of_a_mapping(program: Path, patched: Path, root: Path, tmp_path: Path) -> None:
    disk, record, trace = tmp_path / "job.img", tmp_path / "record.json", tmp_path / "trace"

    def run(to: str | None) -> dict:
        jobs.write_disk(jobs.command_job(["mapsum", "-t", "4", "/data/random.bin"], "hwdp"), disk)
        guest = guests.Guest(patched, root, dataset.image(FILE), options=("--trace", to) if to else ())
        done = subprocess.run(guests.machine_command(program, guest, disk, record, "-"), text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        stats = json.loads(record.read_text())
        return {key: stats[key] for key in ("sim_cycles", "instructions_by_mode", "smu_counters", "watch")}

    plain = run(None)
    assert run(str(trace)) == plain
    pages = read(program, trace)
    assert run(f"{trace},grain=line,from=roi") == plain
    lines = read(program, trace)
    assert {(space, at & -PAGE) for space, at in lines.loads} == pages.loads
    # One program has the region of interest, and it reads every byte of its mapping.
    assert len({space for space, _ in pages.loads}) == 1
    [watch] = plain["watch"]
    assert watch["len"] == FILE
    for seen, grain in (pages, PAGE), (lines, LINE):
        assert {at for _, at in seen.loads} >= set(range(watch["va"], watch["va"] + watch["len"], grain))
        assert (seen.modes, seen.harts) == ({"user"}, {"0", "1", "2", "3"})
    # Instructions that cross into a second line rarely cross into a second page.
    assert all(pages.accesses[kind] == lines.accesses[kind] for kind in ("load", "store"))
    assert pages.accesses["fetch"] < lines.accesses["fetch"] < 1.1 * pages.accesses["fetch"]


def test_what_cannot_be_written_is_named(program: Path, patched: Path, tmp_path: Path) -> None:
    def complaint(command: list[str | Path]) -> str:
        done = subprocess.run(command, text=True, capture_output=True)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        return done.stderr

    machine = [program, "run", "--kernel", patched, "--max-seconds", "0.5"]
    assert "/nowhere/trace" in complaint([*machine, "--trace", "/nowhere/trace"])
    # A limited file size has the same effect as a full disk. No partial trace is left.
    limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 1000; exec "$@"', "-", *machine]
    assert "File too large" in complaint([*limited, "--trace", f"{tmp_path}/trace,kernel,grain=line", "--console", "/dev/null"])
    assert not list(tmp_path.iterdir())
