# SPDX-License-Identifier: Apache-2.0
"""The kind `emulated` needs no special hardware: the same series runs on unmodified QEMU, for riscv64 and x86_64."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from trapless.base.paths import LINUX
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import dataset, ext4, rootfs
from trapless.guest.job import Job
from trapless.guest.programs import cross

from dev.checks import stc
from dev.tests.test_guest import host_sum

pytestmark = [pytest.mark.guest, pytest.mark.series]


@dataclass(frozen=True)
class Board:
    """A guest's processor."""

    arch: str
    cpu: str | None = None
    append: str = ""
    configs: tuple[str, ...] = ()
    """Additional configuration fragments for its kernel."""
    series: tuple[str, ...] = build.SERIES


BOARDS = {
    "riscv64": Board("riscv"),
    "x86_64": Board("x86_64"),
    # The kernel of test_stc.py: both series, large folios.
    "x86_64-both": Board("x86_64", configs=stc.Check("x86_64", series=stc.BOTH).configs(), series=stc.BOTH),
    # Five levels of page tables, and page table isolation.
    "x86_64-la57-pti": Board("x86_64", "max", "pti=on"),
    # Kernel features that walk page tables or move pages. RISC-V has no memory failure handling.
    "x86_64-full": Board("x86_64", configs=("full.config",)),
}
IN_SHORT = ("riscv64", "x86_64-both")
Qemu = Callable[..., guests.Outcome]


@pytest.fixture(params=[name if name in IN_SHORT else pytest.param(name, marks=pytest.mark.long) for name in BOARDS])
def qemu(request: pytest.FixtureRequest, tmp_path: Path) -> Qemu:
    """Return a function that boots a guest with a job on QEMU; files of /job/out appear in tmp_path/out."""
    if not (LINUX / "series" / "series").exists() or "mm/hwdp/soft.c" not in "".join(
            path.read_text() for path in (LINUX / "series").glob("*.patch")):
        pytest.skip("the series has no software unit")
    board = BOARDS[request.param]
    arch = build.ARCHS[board.arch]
    if shutil.which(f"qemu-system-{arch.machine}") is None:
        pytest.fail(f"qemu-system-{arch.machine} is not installed")

    def run(script: str, append: str = "", inputs: tuple[Path, ...] = (), **options: object) -> guests.Outcome:
        kernel = build.kernel(arch=arch, configs=board.configs, series=board.series)
        guest = guests.Guest(kernel, rootfs.image(arch), arch=arch, cpu=board.cpu,
                             append=f"{board.append} {append}".strip(), **{"max_seconds": 600, **options})
        outcome = guests.run_on_qemu(guest, Job(script, inputs), tmp_path / "out")
        assert outcome.status == 0, outcome.console
        return outcome

    return run


def counts(folder: Path) -> dict[str, int]:
    """Return the statistics that a script copied to /job/out/stats."""
    pairs = (line.split() for line in (folder / "out" / "stats").read_text().splitlines())
    return {name: int(value) for name, value in pairs}


def read_emulated(reading: str) -> str:
    """Return a script that reads the whole file through a mapping whose misses the kind `emulated` serves."""
    return (f"hwdp -k emulated -f /data/ -- mapsum {reading} /data/random.bin > /job/out/sum && "
            "cat /sys/kernel/mm/hwdp/stats > /job/out/stats")


@pytest.mark.parametrize("reading", [pytest.param("-t 1", marks=pytest.mark.long), "-t 4", "-t 4 -o same -p"])
def test_contents(qemu: Qemu, tmp_path: Path, reading: str) -> None:
    """The software unit serves every page, and the bytes are those of the file. REQ: OS-2"""
    data = dataset.image(64 * ext4.MIB)
    qemu(read_emulated(reading), data=data)
    assert (tmp_path / "out" / "sum").read_text().strip() == host_sum(data, tmp_path)
    stats = counts(tmp_path)
    pages = 64 * ext4.MIB // 4096
    assert stats["pages_armed"] >= pages
    assert stats["pages_adopted"] >= 0.99 * pages


# On RISC-V, this takes five times as long as on x86.
@pytest.mark.parametrize(("qemu", "threads"), [
    pytest.param(name, threads, marks=[] if (name, threads) == ("x86_64-both", 4) else pytest.mark.long)
    for name in BOARDS for threads in (1, 4)], indirect=["qemu"])
def test_file_larger_than_memory(qemu: Qemu, tmp_path: Path, threads: int) -> None:
    """The file is read twice: the second pass evicts pages of the first one. REQ: OS-9"""
    data = dataset.image(256 * ext4.MIB)
    qemu(f"{read_emulated(f'-t {threads}')} && {read_emulated(f'-t {threads}')}", data=data, memory="160M",
         append="hwdp.ring=1024")
    assert (tmp_path / "out" / "sum").read_text().strip() == host_sum(data, tmp_path)
    assert counts(tmp_path)["pages_adopted"] > 256 * ext4.MIB // 4096


# On RISC-V, the machine has the short form (test_guest.py).
@pytest.mark.parametrize("qemu", [name if name == "x86_64-both" else pytest.param(name, marks=pytest.mark.long)
                                  for name in BOARDS], indirect=True)
def test_kernel_checks(qemu: Qemu, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The kernel's own guest checks, with all hwdp mappings served by the software unit."""
    arch = build.ARCHS[BOARDS[request.node.callspec.params["qemu"]].arch]
    check = build.guest_checks(arch) / "hwdp-check"
    # The output goes to a file: QEMU's serial port can lose the last bytes.
    qemu(f"rm /data/random.bin; ./{check.name} /data > /job/out/checks || {{ cat /job/out/checks; exit 1; }}",
         append="hwdp.kind=emulated", inputs=(check,), data=dataset.image(320 * ext4.MIB), memory="512M", max_seconds=1200,
         threads=True)
    said = (tmp_path / "out" / "checks").read_text()
    closing = said.strip().splitlines()[-1]
    assert closing.endswith(" passed, 0 failed"), said
    assert int(closing.split()[0]) >= 20


@pytest.mark.parametrize("qemu", ["x86_64-both"], indirect=True)
def test_kunit(qemu: Qemu, tmp_path: Path) -> None:
    """The series' unit tests, which run at boot: entries and the policy."""
    qemu("dmesg > /job/out/dmesg")
    lines = (tmp_path / "out" / "dmesg").read_text().splitlines()
    results = [found for line in lines if (found := re.search(r"(not ok|ok) \d+ (hwdp\w+)", line))]
    assert len(results) >= 15
    assert not [found[2] for found in results if found[1] == "not ok"]


@pytest.mark.parametrize("qemu", ["riscv64"], indirect=True)
def test_a_disk_is_formatted(qemu: Qemu, tmp_path: Path) -> None:
    """The unit's descriptor was made for the blocks before the disk was formatted. Afterwards the unit reads nothing with it.
    REQ: OS-14"""
    binary = cross.compile_program("reformat", [Path(__file__).with_name("reformat.c")])
    qemu(f"disk=$(awk '$2 == \"/data\" {{ print $1 }}' /proc/mounts) && "
         f"hwdp -k emulated -f /data/ -- ./{binary.name} /data/random.bin $disk > /job/out/said",
         inputs=(binary,), data=dataset.image(64 * ext4.MIB))
    said = dict(line.split() for line in (tmp_path / "out" / "said").read_text().splitlines())
    assert int(said["before"]) >= 1000
    assert said["block"] == "4096"
    assert said["after"] == "0"


@pytest.mark.parametrize("qemu", ["x86_64-both"], indirect=True)
def test_dax(qemu: Qemu, tmp_path: Path) -> None:
    """Pages of a file on persistent memory are in memory already. The series refuses such a mapping, and its bytes are right."""
    disk = dataset.image(16 * ext4.MIB)
    mib = disk.stat().st_size // ext4.MIB
    qemu(f"dd if={disk.name} of=/dev/pmem0 bs=1M && mkdir /tmp/dax && mount -o dax=always /dev/pmem0 /tmp/dax && "
         "hwdp -k emulated -f /tmp/dax/ -- mapsum -t 1 /tmp/dax/random.bin > /job/out/sum && "
         "cat /sys/kernel/mm/hwdp/stats > /job/out/stats && grep -q dax=always /proc/mounts",
         append=f"memmap={mib}M!256M", inputs=(disk,), memory="512M")
    assert (tmp_path / "out" / "sum").read_text().strip() == host_sum(disk, tmp_path)
    stats = counts(tmp_path)
    assert stats["refused_file_system"] == 1
    assert stats["areas_made"] == 0
