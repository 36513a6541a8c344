# SPDX-License-Identifier: Apache-2.0
"""Guests boot, do their jobs, and read the right bytes of their files, with every kind of paging."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from trapless.base.cache import CACHE, cached, content_key, run_tool
from trapless.base.paths import LINUX
from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import dataset, ext4, sparse
from trapless.guest.job import Job
from trapless.loads import fio as miss_latency

pytestmark = pytest.mark.guest
Boot = Callable[..., guests.Outcome]

OSDP = "hwdp -k osdp -f /data/ --"
CLI_FIO = "fio --filename=/data/random.bin --readonly --rw=randread --bs=4k --ioengine=mmap --thread --invalidate=0 --eta=never"


@pytest.fixture(scope="session")
def small_data() -> Path:
    return dataset.image(64 * ext4.MIB)


@pytest.fixture(scope="session")
def kernel_check() -> Path:
    sources = LINUX / "checks"
    folder = cached("kernel-check", content_key(sources), "building the kernel's guest checks", lambda out: run_tool(
        ["make", "-C", sources, f"OUT={out}"], CACHE / "logs" / "check.log", "building hwdp-check"))
    return folder / "hwdp-check"


def host_sum(image: Path, folder: Path) -> str:
    """Return mapsum of the image's random.bin, computed with the host's read()."""
    copy = folder / "random.bin"
    subprocess.run(["debugfs", "-R", f"dump /random.bin {copy}", image], check=True, capture_output=True)
    done = subprocess.run([build.host_mapsum(), "-r", copy], check=True, capture_output=True, text=True)
    copy.unlink()
    return done.stdout.strip()


@pytest.fixture(scope="session")
def small_sum(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return host_sum(small_data, tmp_path_factory.mktemp("sum"))


@pytest.mark.long
def test_unmodified_linux_boots(boot: Boot, stock: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("from the host\n")
    outcome = boot(stock, "cat text; uname -m > /job/out/machine; mkdir /job/out/d; echo x > /job/out/d/x; exit 7",
                   inputs=(tmp_path / "text",), smu=False)
    assert outcome.status == 7
    assert "from the host" in outcome.console
    assert (tmp_path / "out" / "machine").read_text() == "riscv64\n"
    assert (tmp_path / "out" / "d" / "x").read_text() == "x\n"
    assert [milestone["number"] for milestone in outcome.stats["milestones"]] == [guests.BOOTED, guests.FIRST_COMMAND]


@pytest.mark.parametrize("kernel", [pytest.param("stock", marks=pytest.mark.long), "patched"])
def test_what_programs_expect_of_a_kernel(boot: Boot, request: pytest.FixtureRequest, kernel: str) -> None:
    """Programs can use loop devices, overlayfs, counts of I/O, and perf's events."""
    outcome = boot(request.getfixturevalue(kernel), """
        cd /tmp && mkdir lower upper work merged && echo text > lower/file &&
        mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged && cat merged/file &&
        dd if=/dev/zero of=image bs=64k count=1 2> /dev/null && losetup /dev/loop0 image && cat /sys/block/loop0/size &&
        grep -c read_bytes /proc/self/io && cat /proc/sys/kernel/perf_event_paranoid""", smu=False)
    assert outcome.console.split() == ["text", "128", "1", "2"]


def test_killed_command(boot: Boot, patched: Path) -> None:
    assert boot(patched, "kill -9 $$").status == 137


def test_crash_is_no_success(boot: Boot, patched: Path) -> None:
    with pytest.raises(UserError, match="the guest crashed or rebooted"):
        boot(patched, "reboot -f; sleep 10")


@pytest.mark.parametrize("kernel", [pytest.param("stock", marks=pytest.mark.long), "patched"])
def test_same_kernel_and_userland_boot_on_qemu(request: pytest.FixtureRequest, kernel: str, root: Path, small_data: Path,
                                               small_sum: str, tmp_path: Path) -> None:
    if shutil.which("qemu-system-riscv64") is None:
        pytest.fail("qemu-system-riscv64 is not installed")
    guest = guests.Guest(request.getfixturevalue(kernel), root, small_data, max_seconds=240)
    script = (f"{OSDP} mapsum -t 2 /data/random.bin > /job/out/sum || exit 1; "
              f"{OSDP} {CLI_FIO} --name=x --size=64M --io_size=4M --clocksource=clock_gettime > /job/out/fio.txt")
    outcome = guests.run_on_qemu(guest, Job(script), tmp_path / "out")
    assert outcome.status == 0, outcome.console
    assert (tmp_path / "out" / "sum").read_text().strip() == small_sum
    assert "err= 0" in (tmp_path / "out" / "fio.txt").read_text()


def test_same_run_same_cycle(boot: Boot, patched: Path, small_data: Path, tmp_path: Path) -> None:
    script = f"{OSDP} {CLI_FIO} --name=x --size=64M --io_size=2M --output-format=json --output=/job/out/fio.json"
    ends = []
    for _ in range(2):
        outcome = boot(patched, script, data=small_data)
        assert outcome.status == 0, outcome.console
        stats = outcome.stats
        rois = [{key: value for key, value in roi.items() if key != "host_seconds"} for roi in stats["rois"]]
        ends.append((stats["sim_cycles"], stats["instructions"], rois, outcome.console,
                     (tmp_path / "out" / "fio.json").read_text()))
        shutil.rmtree(tmp_path / "out")
    assert ends[0] == ends[1]


@pytest.mark.parametrize("kind", ["ideal", "osdp"])
@pytest.mark.parametrize("reading", ["-t 1", "-t 4", "-t 4 -o same -p"])
def test_contents(boot: Boot, patched: Path, small_data: Path, small_sum: str, kind: str, reading: str) -> None:
    outcome = boot(patched, f"hwdp -k {kind} -f /data/ -- mapsum {reading} /data/random.bin", data=small_data)
    assert outcome.console.splitlines()[-1:] == [small_sum]


@pytest.mark.series
@pytest.mark.parametrize("ring", [1024, 64])
@pytest.mark.parametrize("reading", ["-t 1", "-t 4", "-t 4 -o same", "-t 4 -o shuffle -p", "-t 1 -p"])
def test_contents_by_hardware(boot: Boot, patched: Path, small_data: Path, small_sum: str, ring: int, reading: str) -> None:
    """The free ring has 1,024 frames or only 64. REQ: OS-2 REQ: SMU-5"""
    outcome = boot(patched, f"hwdp -k hwdp -f /data/ -- mapsum {reading} /data/random.bin", data=small_data,
                   append=f"hwdp.ring={ring}")
    assert outcome.console.splitlines()[-1:] == [small_sum]
    counts = outcome.stats["rois"][0]["watch"][0]
    assert counts["pages_touched"] == 16384
    assert counts["hw_misses"] > 0
    if ring >= 1024:
        assert counts["hw_misses"] >= 0.99 * counts["pages_touched"]


@pytest.mark.series
@pytest.mark.parametrize(("mode", "largest"), [("sv39", "37"), ("sv48", "46"), ("sv57", "54 55")])
def test_modes_of_paging(boot: Boot, patched: Path, small_data: Path, small_sum: str, tmp_path: Path, mode: str,
                         largest: str) -> None:
    """Linux uses the deepest mode that the machine has. Programs get its address space, and hardware serves misses in it."""
    program = tmp_path / "sparse_map"
    subprocess.run(["riscv64-linux-gnu-gcc", "-O1", "-static", "-o", program, Path(__file__).with_name("sparse_map.c")],
                   check=True)
    script = (f"grep -m1 mmu /proc/cpuinfo; ./sparse_map {largest} && ./sparse_map 40; echo $?; "
              "hwdp -k hwdp -f /data/ -- mapsum -t 4 -o shuffle /data/random.bin")
    outcome = boot(patched, script, data=small_data, settings=(f"machine.paging={mode}",), inputs=(program,))
    lines = outcome.console.splitlines()
    assert lines[0].split() == ["mmu", ":", mode], outcome.console
    assert lines[-2:] == ["2" if mode == "sv39" else "0", small_sum], outcome.console
    assert outcome.stats["rois"][0]["watch"][0]["hw_misses"] >= 0.99 * 16384


@pytest.mark.parametrize(("file_mib", "memory"), [(256, "64M"), pytest.param(1024, "256M", marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["osdp", pytest.param("hwdp", marks=pytest.mark.series)])
@pytest.mark.parametrize("threads", [1, 4])
def test_file_larger_than_memory(boot: Boot, patched: Path, tmp_path: Path, file_mib: int, memory: str, kind: str,
                                 threads: int) -> None:
    data = dataset.image(file_mib * ext4.MIB)
    passes = 2 if file_mib <= 256 else 1
    script = " && ".join([f"hwdp -k {kind} -f /data/ -- mapsum -t {threads} /data/random.bin"] * passes)
    outcome = boot(patched, script, data=data, memory=memory, append="hwdp.ring=1024", max_seconds=3000)
    assert outcome.console.splitlines()[-passes:] == [host_sum(data, tmp_path)] * passes


@pytest.mark.parametrize("kind", ["ideal", "osdp", pytest.param("hwdp", marks=pytest.mark.series)])
@pytest.mark.parametrize("threads", [1, 4])
def test_fio_verify(boot: Boot, patched: Path, small_data: Path, kind: str, threads: int) -> None:
    """fio writes blocks with checksums, and finds them again through the mapping."""
    common = "--name=v --filename=/data/verified --bs=4k --size=16M --verify=crc32c --thread --eta=never"
    outcome = boot(patched, "\n".join([
        f"fio {common} --rw=write --do_verify=0 --ioengine=psync --end_fsync=1 > /job/out/write.txt || exit 1",
        "echo 3 > /proc/sys/vm/drop_caches",
        f"hwdp -k {kind} -s -- fio {common} --rw=randread --numjobs={threads} --ioengine=mmap --invalidate=0 "
        "--verify_fatal=1 > /job/out/read.txt || { cat /job/out/read.txt; exit 2; }",
    ]), data=small_data)
    assert outcome.status == 0, outcome.console


@pytest.mark.series
def test_demo_load_by_hardware(program: Path, patched: Path, root: Path, tmp_path: Path) -> None:
    """The demo with a quarter of the reads: every figure exists, and hardware serves the misses."""
    load = miss_latency.small_load(replace(miss_latency.Load(), log_ms=0))
    guest = guests.Guest(patched, root, dataset.image(load.file_bytes), max_seconds=300)

    def runner(guest: guests.Guest, job: Job, folder: Path) -> guests.Outcome:
        return guests.run_on_machine(program, guest, job, folder)

    ideal, osdp, hwdp = miss_latency.measure(runner, guest, load, tmp_path)
    for record in (ideal, osdp, hwdp):
        assert record["ops"] == record["distinct_pages"] == load.read_bytes // 4096
        assert record["hw_misses"] + record["os_faults"] + record["resident"] == record["distinct_pages"]
    assert osdp["os_faults"] == osdp["distinct_pages"]
    assert ideal["resident"] == ideal["distinct_pages"]
    assert hwdp["hw_misses"] >= 0.99 * hwdp["distinct_pages"]
    assert hwdp["nondevice_us"] <= 1.5
    # Nothing is re-armed here. So fio's first read begins later than with osdp, by the time for the page tables and the arming
    # time that the kernel reports.
    arming = hwdp["kernel_stats"]["arming_ns"] / 1e9
    assert hwdp["kernel_stats"]["pages_rearmed"] == 0
    assert arming <= hwdp["waited_seconds"] - osdp["waited_seconds"] <= 2 * arming
    assert osdp["waited_seconds"] < 0.01
    for record in (ideal, osdp, hwdp):
        assert record["ops"] / (record["runtime_seconds"] - record["waited_seconds"]) <= 1e6 / record["mean_us"]


@pytest.mark.series
@pytest.mark.parametrize(("options", "smu"), [("", True), ("-p", True), ("", False)])
def test_kernel_checks(boot: Boot, patched: Path, kernel_check: Path, options: str, smu: bool) -> None:
    """The kernel's own guest checks. With -p, the file is larger than memory; without an SMU, the mappings are ordinary."""
    outcome = boot(patched, f"rm /data/random.bin; ./{kernel_check.name} {options} /data", data=dataset.image(320 * ext4.MIB),
                   inputs=(kernel_check,), memory="64M" if options else "256M", smu=smu)
    closing = outcome.console.strip().splitlines()[-1]
    assert closing.endswith(" passed, 0 failed"), outcome.console
    assert int(closing.split()[0]) >= 20


def test_a_sparse_file_takes_the_room_of_what_is_written(boot: Boot, patched: Path, tmp_path: Path) -> None:
    disk = tmp_path / "data.img"
    subprocess.run(["cp", "--sparse=always", sparse.image(16 << 30), disk], check=True)
    before = disk.stat().st_blocks * 512
    write = "dd if=/dev/urandom of=/data/random.bin bs=1M count=8 seek=9000 conv=notrunc 2> /dev/null"
    outcome = boot(patched, f"{write} && hwdp -k hwdp -f /data/ -- {CLI_FIO} --name=r --size=16g --io_size=4m",
                   data=disk, data_kept=True)
    assert outcome.status == 0, outcome.console
    os.sync()
    grown = disk.stat().st_blocks * 512 - before
    assert 8 * ext4.MIB <= grown <= 24 * ext4.MIB
    assert outcome.stats["host_peak_bytes"] <= outcome.stats["profile"]["machine"]["memory_bytes"] + 300_000_000
