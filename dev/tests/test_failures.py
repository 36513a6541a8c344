# SPDX-License-Identifier: Apache-2.0
"""Drives that fail under a mapped file: the program sees the same errors with every kind of paging, and the system continues to
work."""

from __future__ import annotations

import re
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from trapless.base.cache import CACHE, cached, content_key, run_tool
from trapless.base.paths import LINUX
from trapless.guest import boot as guests
from trapless.guest.boot import DATA_DISK
from trapless.guest.images import dataset, ext4
from trapless.guest.job import Job
from trapless.guest.programs import cross

pytestmark = pytest.mark.guest
Boot = Callable[..., guests.Outcome]

PAGE = 4096
PAGES = 1024
"""Number of pages of the file that the program maps."""
ELSEWHERE = 8192
"""A page of the file that is outside the mapping."""
SECTORS = PAGE // 512
OTHER = 64
"""Number of pages of the file on another disk."""
HUNG = 40
"""First page of the file that a test's drive never answers."""

KINDS = ["osdp", *(pytest.param(kind, marks=pytest.mark.series) for kind in ("emulated", "trap", "hwdp"))]

# Linux gives up a command after 1 s, aborts it, and resets the controller after one more second.
SHORT_TIMEOUT = "nvme_core.io_timeout=1"



@dataclass
class Data:
    """The data disk, with the places of its content."""

    image: Path
    blocks: list[int]
    """File system blocks (4 KiB) of random.bin, in order."""
    crcs: list[int]

    def lba(self, page: int, sector: int | None = None) -> str:
        """Return the namespace's blocks of a page of the file, or one of its sectors, in the form of a fault."""
        first = self.blocks[page] * SECTORS
        return f"lba={first}-{first + SECTORS - 1}" if sector is None else f"lba={first + sector}"

    def expected(self, failed: set[int]) -> str:
        """Return the sum that failure-check prints if these pages cannot be read."""
        good = (page for page in range(PAGES) if page not in failed)
        return f"{sum(self.crcs[page] * (2 * page + 1) for page in good) % (1 << 64):016x}"


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    image = dataset.image(64 * ext4.MIB)
    listed = subprocess.run(["debugfs", "-R", "blocks /random.bin", image], check=True, capture_output=True, text=True)
    # Blocks of the extent tree are not listed: every number is a block of data.
    blocks = [int(block) for block in listed.stdout.split()]
    assert len(blocks) == 16384
    with open(image, "rb") as disk:
        crcs = []
        for block in blocks[:PAGES]:
            disk.seek(block * PAGE)
            crcs.append(zlib.crc32(disk.read(PAGE)))
    return Data(image, blocks, crcs)


@pytest.fixture(scope="session")
def failure_check() -> Path:
    source = LINUX / "checks" / "check-failure.c"
    kinds = LINUX / "tools" / "kinds.h"
    folder = cached("failure-check", content_key(source, kinds), "building failure-check", lambda out: run_tool(
        ["riscv64-linux-gnu-gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-static", "-pthread", "-s",
         "-o", out / "failure-check", source], CACHE / "logs" / "failure-check.log", "building failure-check"))
    return folder / "failure-check"


@dataclass
class Seen:
    """Results of failure-check, and the counts of the kernel and the machine."""

    failed: set[int]
    lost: set[int]
    sum: str
    struck: int
    before: dict[str, int]
    stats: dict[str, int]
    console: str


def pages(text: str) -> set[int]:
    """Parse pages from ranges like "3 7-9"."""
    found = set()
    for part in text.split():
        if part != "none":
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


def counts(text: str) -> dict[str, int]:
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


@pytest.fixture
def check(boot: Boot, patched: Path, data: Data, failure_check: Path, tmp_path: Path) -> Callable[..., Seen]:
    """Return a function that runs failure-check in a guest whose data disk has these faults. `before` and `after` are commands of
    the guest. In them, $controller is the data disk's controller in /sys, and $pci its PCI function. Afterwards the system must
    still work: a file on another disk is written, and read through a mapping of the same kind."""

    def run(kind: str, *faults: str, before: str = "", after: str = "", options: str = "") -> Seen:
        show = "cat /sys/kernel/mm/hwdp/stats 2>/dev/null"
        script = "\n".join([
            "disk=$(grep ' /data ' /proc/mounts | cut -d' ' -f1)",
            "export controller=$(readlink -f /sys/block/${disk#/dev/}/device)",
            "export pci=$(readlink -f $controller/device)",
            f"{show} > /job/out/before", before,
            f"./failure-check -k {kind} -n {PAGES} {options} /data/random.bin > /job/out/text; echo $? > /job/out/status",
            "wait", after,
            f"head -c {OTHER * PAGE} /dev/urandom > /job/other && sync || exit 3", "echo 3 > /proc/sys/vm/drop_caches",
            f"./failure-check -k {kind} /job/other > /job/out/other || exit 4",
            f"sleep 2; {show} > /job/out/stats", "dmesg > /job/out/dmesg",
        ])
        outcome = boot(patched, script, data=data.image, inputs=(failure_check,), append=SHORT_TIMEOUT,
                       faults=tuple(f"{fault},disk={DATA_DISK}" for fault in faults), harts=4)
        out = tmp_path / "out"
        assert outcome.status == 0, outcome.console
        assert (out / "status").read_text() == "0\n", outcome.console + (out / "text").read_text()
        log = (out / "dmesg").read_text()
        assert not re.search(r"BUG:|WARNING:|Oops|blocked for more than", log), log
        assert (out / "other").read_text().startswith("failed: none\n")
        found = dict(line.split(":", 1) for line in (out / "text").read_text().splitlines())
        struck = sum(fault["struck"] for fault in outcome.stats["faults"])
        return Seen(pages(found["failed"]), pages(found["lost"]), found["sum"].strip(), struck,
                    counts((out / "before").read_text()), counts((out / "stats").read_text()), log)

    return run


def check_unit(kind: str, seen: Seen, **outcomes: int) -> None:
    """Check that the unit counted at least these outcomes (a hart that was interrupted during its wait asks again), and that each
    frame that it took is installed and settled, or came back. REQ: SMU-5, SMU-7, OS-5"""
    if kind == "osdp":
        return
    s = seen.stats
    for name, least in outcomes.items():
        assert s["smu_" + name] >= least, name
    assert s["smu_installed"] == s["pages_adopted"] + s["pages_discarded"]
    # The unit in software takes the frame before it finds that the queue is gone; then it sends no command.
    came_back = s["smu_returned"] - (s["smu_commands"] - s["smu_installed"])
    assert 0 <= came_back <= (s["smu_fail_descriptor"] if kind == "emulated" else 0)
    # The unit in software puts these frames back into its own free ring.
    assert kind == "emulated" or s["smu_returned"] == s["frames_returned"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 4])
def test_media_error(check: Callable[..., Seen], data: Data, kind: str, threads: int) -> None:
    """The program gets SIGBUS on exactly the bad pages (one bad sector is enough), and good data elsewhere."""
    bad = {5, 6, 700, PAGES - 1}
    seen = check(kind, f"media-error,{data.lba(5)}", f"media-error,{data.lba(6)}", f"media-error,{data.lba(700, sector=3)}",
                 f"media-error,{data.lba(PAGES - 1, sector=7)}", options=f"-t {threads}")
    assert (seen.failed, seen.lost, seen.sum) == (bad, set(), data.expected(bad))
    check_unit(kind, seen, fail_device=len(bad))


@pytest.mark.parametrize("kind", KINDS)
def test_aborted_commands(check: Callable[..., Seen], data: Data, kind: str) -> None:
    """The OS repeats a command that fails without a lasting cause; the program notices nothing."""
    seen = check(kind, f"abort,{data.lba(100)},count=2", f"abort,{data.lba(101)}", options="-t 4")
    assert seen.struck == 3
    assert (seen.failed, seen.lost, seen.sum) == (set(), set(), data.expected(set()))
    check_unit(kind, seen, fail_device=2)


@pytest.mark.parametrize("kind", KINDS)
def test_hung_command_of_the_os(check: Callable[..., Seen], data: Data, kind: str) -> None:
    """A command of another program hangs during the misses: Linux resets the controller, and both programs continue."""
    seen = check(kind, f"hang,{data.lba(ELSEWHERE)}", options="-t 4",
                 before=f"dd if=/data/random.bin of=/dev/null bs=4096 count=1 skip={ELSEWHERE} iflag=direct 2>/job/out/dd &")
    assert seen.struck == 1
    assert "timeout, reset controller" in seen.console or "resetting controller" in seen.console
    assert (seen.failed, seen.lost, seen.sum) == (set(), set(), data.expected(set()))
    check_unit(kind, seen)


@pytest.mark.parametrize("kind", KINDS)
def test_hung_command_of_the_mapping(check: Callable[..., Seen], data: Data, kind: str) -> None:
    """A miss's own command hangs. A reset ends a command of the OS. The SMU gives up its own command; the OS then reads the page,
    and the frame stays in quarantine until the controller is reset. REQ: SMU-7"""
    seen = check(kind, f"hang,{data.lba(300)}", options="-t 4", after="echo 1 > $controller/reset_controller")
    assert seen.struck == 1
    assert (seen.failed, seen.lost, seen.sum) == (set(), set(), data.expected(set()))
    check_unit(kind, seen, fail_timeout=1)


@pytest.mark.parametrize("kind", KINDS)
def test_fatal_controller(check: Callable[..., Seen], data: Data, kind: str) -> None:
    """The controller fails during I/O and loses its commands; Linux resets it."""
    seen = check(kind, f"fatal,{data.lba(ELSEWHERE)}", options="-t 4",
                 before=f"dd if=/data/random.bin of=/dev/null bs=4096 count=1 skip={ELSEWHERE} iflag=direct 2>/job/out/dd &")
    assert seen.struck == 1
    assert (seen.failed, seen.lost, seen.sum) == (set(), set(), data.expected(set()))
    check_unit(kind, seen)


@pytest.mark.parametrize("kind", KINDS)
def test_reset_in_the_middle(check: Callable[..., Seen], data: Data, kind: str) -> None:
    """The administrator resets the controller repeatedly during misses."""
    resets = "(for i in 1 2 3 4 5; do echo 1 > $controller/reset_controller; done) &"
    seen = check(kind, options="-t 4", before=resets)
    assert (seen.failed, seen.lost, seen.sum) == (set(), set(), data.expected(set()))
    check_unit(kind, seen)


@pytest.mark.parametrize("kind", KINDS)
def test_orderly_removal(check: Callable[..., Seen], data: Data, kind: str) -> None:
    """The disk is removed when half of the file is in memory. The rest cannot be read; pages in memory stay."""
    seen = check(kind, options="-x 'echo 1 > $pci/remove'")
    gone = set(range(PAGES // 2, PAGES))
    assert (seen.failed, seen.lost, seen.sum) == (gone, set(), data.expected(gone))
    check_unit(kind, seen)


@pytest.mark.parametrize("kind", KINDS)
def test_surprise_removal(check: Callable[..., Seen], data: Data, kind: str) -> None:
    """The disk disappears at the command for one page: that page and later ones cannot be read; pages in memory stay. Then the
    administrator (or a hot-plug driver) removes it from the system."""
    seen = check(kind, f"remove,{data.lba(400)}", after="echo 1 > $pci/remove")
    assert seen.struck == 1
    gone = set(range(400, PAGES))
    assert (seen.failed, seen.lost, seen.sum) == (gone, set(), data.expected(gone))
    check_unit(kind, seen)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hung_drive_hurts_its_own_users(program: Path, patched: Path, root: Path, data: Data, kind: str,
                                          tmp_path: Path) -> None:
    """munmap(), fork() and pagemap of a mapping on another drive take a limited time, and a killed process dies within seconds.
    REQ: OS-4, SMU-8, SMU-12"""
    isolation = cross.compile_program("isolation", [Path(__file__).with_name("isolation.c")], ("-pthread",))
    harts = 4
    faults = tuple(f"hang,{data.lba(HUNG + hart)},disk={DATA_DISK}" for hart in range(harts))
    guest = guests.Guest(patched, root, data.image, faults=faults, harts=harts, max_seconds=200)
    other = "head -c 262144 /dev/urandom > /job/other && sync && echo 3 > /proc/sys/vm/drop_caches"
    command = f"hwdp -k {kind} -- ./{isolation.name} /data/random.bin {HUNG} /job/other"
    job = Job(f"{other} && {command} > /job/out/times", (isolation,))
    outcome = guests.run_on_machine(program, guest, job, tmp_path / "out")
    assert outcome.status == 0, outcome.console
    lines = (tmp_path / "out" / "times").read_text().splitlines()
    worst = {name: int(value) for name, value in (line.split() for line in lines)}
    killed = worst.pop("killed")
    assert max(worst.values()) < 300_000, worst
    # With ordinary paging, the killed process waits for the drive's time-out in a read that cannot be killed, or does not wait at
    # all.
    assert kind == "osdp" or killed < 3_000_000


@pytest.mark.parametrize(("fault", "names"), [
    ("melt,disk=1", "melt"), ("hang", "disk=N"), ("hang,disk=9", "numbered from 1"), ("hang,disk=1,lba=99999999", "99999999"),
    ("hang,disk=1,queue=0", "queue=0"), ("hang,disk=1,lba=7-3", "lba=7-3"), ("abort,disk=1,after=-1", "after=-1"),
])
def test_a_bad_fault_is_refused_in_one_line(program: Path, patched: Path, data: Data, fault: str, names: str) -> None:
    command = [program, "run", "--kernel", patched, "--fault", fault, "--disk", f"{data.image},snapshot"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert names in done.stderr and fault in done.stderr
    assert len(done.stderr.splitlines()) == 1
