# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev speed`: measures how fast the machine and Debian's QEMU execute instructions, on this host and in one run.

Both run the same kernel and guest program on one hart. Lines on the console mark the beginning of each part. The machine counts
the instructions of each part with functional timing; the same counts are used for QEMU, which does not count its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from trapless.base.outputs import output_folder, write_whole
from trapless.base.ui import UserError, say, step
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest import job as jobs
from trapless.guest.images import rootfs

PARTS = {
    "boot": "",
    "user": "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done",
    "kernel": "dd if=/dev/zero of=/dev/null bs=512 count=400000 2> /dev/null",
}
"""Work of the guest: the boot until its first command, a CPU-bound loop of the shell, system calls."""
_MARK = "speed: "
PROFILE = "server"


@dataclass(frozen=True)
class Simulator:
    """A way to run the guest."""

    name: str
    qemu: bool = False
    arguments: tuple[str, ...] = ()


SIMULATORS = (
    Simulator("functional"),
    Simulator("detailed", arguments=("--detail", "start")),
    Simulator("qemu", qemu=True),
    Simulator("qemu-icount", qemu=True, arguments=("-icount", "shift=0,sleep=off")),
)


HARTS = 4
"""Number of harts for measuring their common speed; each is a separate core."""


def script(parts: list[str]) -> str:
    """Return the guest's program: it prints a line before each part and at the end."""
    lines = [f"echo '{_MARK}{part}'\n{PARTS[part]}" for part in parts if part != "boot"]
    return "\n".join([*lines, f"echo '{_MARK}end'"])


def measure(rounds: int) -> dict:
    """Return million instructions per host second by simulator and part, as medians of `rounds`, and the values behind them."""
    program, kernel, root = build.machine(), build.kernel(), rootfs.image()
    guest = guests.Guest(kernel, root, profile=PROFILE, harts=1, memory="1G", smu=False)
    names = list(PARTS)
    seconds: dict[str, dict[str, list[float]]] = {s.name: {part: [] for part in names} for s in SIMULATORS}
    with guests.workspace() as folder:
        with step("counting instructions"):
            records = [_record(program, guest, folder, names[:n + 1]) for n in range(len(names))]
        disk = folder / "job.img"
        for number in range(rounds):
            for simulator in SIMULATORS:
                with step(f"round {number + 1} of {rounds}: {simulator.name}"):
                    jobs.write_disk(jobs.Job(script(names)), disk)
                    for part, took in _time(_command(program, guest, disk, simulator, folder)).items():
                        seconds[simulator.name][part].append(took)
    totals = [record["instructions"] for record in records]
    counts = {"boot": guests.first_command(records[0])["instructions"]}
    counts |= {name: later - before for name, before, later in zip(names[1:], totals, totals[1:], strict=False)}
    mips = {name: {part: counts[part] / 1e6 / statistics.median(took) for part, took in parts.items()}
            for name, parts in seconds.items()}
    return {"profile": PROFILE, "rounds": rounds, "instructions": counts, "seconds": seconds, "mips": mips}


def measure_harts(rounds: int) -> dict[int, float]:
    """Return million instructions per host second of one hart and of several. Each runs a loop of the shell, with detailed
    timing."""
    program, kernel, root = build.machine(), build.kernel(), rootfs.image()
    found: dict[int, list[float]] = {1: [], HARTS: []}
    for number in range(rounds):
        for harts, speeds in found.items():
            guest = guests.Guest(kernel, root, profile=PROFILE, harts=harts, memory="1G", smu=False, detail="start",
                                 settings=("machine.threads_per_core=1",))
            loops = "\n".join([f"( {PARTS['user']} ) &"] * harts)
            with step(f"round {number + 1} of {rounds}: harts {harts}"):
                stats = guests.run_on_machine(program, guest, jobs.Job(f"{loops}\nwait")).stats
            first = guests.first_command(stats)
            instructions = stats["instructions"] - first["instructions"]
            speeds.append(instructions / 1e6 / (stats["host_seconds"] - first["host_seconds"]))
    return {harts: statistics.median(speeds) for harts, speeds in found.items()}


def measure_restore(rounds: int) -> list[float]:
    """Return the host seconds from the start of a machine that continues from a checkpoint until its guest has powered off."""
    program = build.machine()
    guest = guests.Guest(build.kernel(), rootfs.image())
    with guests.workspace() as folder:
        disk, place, stats = folder / "job.img", folder / "checkpoint", folder / "stats.json"
        jobs.write_disk(jobs.Job("echo done"), disk)
        disks = ["--disk", f"{guest.root},snapshot", "--disk", f"{disk},snapshot"]
        first = [program, "run", "--profile", guest.profile, "--kernel", guest.kernel, "--append", guest.command_line(), *disks,
                 "--console", folder / "console", "--json", stats]
        _finish([*first, "--checkpoint", place, "--checkpoint-at", f"milestone:{guests.FIRST_COMMAND}"])
        return [_finish([program, "resume", place, *disks, "--console", folder / "console"]) for _ in range(rounds)]


def _finish(command: list[str | Path]) -> float:
    """Run a machine to its end; return the host seconds."""
    start = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"the machine ended with status {done.returncode}: {done.stderr.strip()}")
    return time.monotonic() - start


def run(out: Path, rounds: int) -> int:
    """Measure, print the table, and write speed.json."""
    output_folder(out)
    record = measure(rounds)
    _table(record["mips"], record["instructions"])
    record["harts"] = measure_harts(rounds)
    one, several = record["harts"].values()
    record["restore"] = measure_restore(rounds)
    print(f"from a checkpoint after the boot to the end of a small job: {statistics.median(record['restore']):.2f} s")
    print(f"detailed, harts together: {one:.0f} with one, {several:.0f} with {HARTS}: {several / one:.2f}")
    write_whole(out / "speed.json", json.dumps(record, indent=1) + "\n")
    return 0


def _command(program: Path, guest: guests.Guest, disk: Path, simulator: Simulator, folder: Path) -> list[str]:
    if simulator.qemu:
        return [*guests.qemu_command(guest, disk), *simulator.arguments]
    return [*guests.machine_command(program, guest, disk, folder / "stats.json", "-"), *simulator.arguments]


def _record(program: Path, guest: guests.Guest, folder: Path, parts: list[str]) -> dict:
    """Return the machine's record of a run that ends after these parts."""
    disk, stats = folder / "count.img", folder / "count.json"
    jobs.write_disk(jobs.Job(script(parts)), disk)
    _time(guests.machine_command(program, guest, disk, stats, "-"))
    return json.loads(stats.read_text())


def _time(command: list[str]) -> dict[str, float]:
    """Run a simulator; return the host seconds of each part."""
    marks = [("boot", time.monotonic())]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        # Under QEMU, the firmware and the kernel write to the same console.
        text = line.decode(errors="replace").strip()
        if text.startswith(_MARK):
            marks.append((text.removeprefix(_MARK), time.monotonic()))
    complaint = process.stderr.read().decode(errors="replace").strip()
    if process.wait() != 0 or marks[-1][0] != "end":
        said = complaint.splitlines()[-1] if complaint else "it printed nothing"
        raise UserError(f"{Path(command[0]).name} did not finish: {said}")
    return {part: later - began for (part, began), (_, later) in zip(marks, marks[1:], strict=False)}


def _table(mips: dict[str, dict[str, float]], counts: dict[str, int]) -> None:
    say(f"million instructions per host second, profile {PROFILE}, one hart")
    print(f"{'':24}" + "".join(f"{part:>10}" for part in counts))
    print(f"{'instructions, millions':24}" + "".join(f"{n / 1e6:10.0f}" for n in counts.values()))
    for name, parts in mips.items():
        print(f"{name:24}" + "".join(f"{value:10.0f}" for value in parts.values()))
    for name, base in (("functional", "qemu"), ("detailed", "qemu-icount")):
        print(f"{f'{name} : {base}':24}" + "".join(f"{mips[name][part] / mips[base][part]:10.2f}" for part in counts))
