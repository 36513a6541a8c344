# SPDX-License-Identifier: Apache-2.0
"""Linux detects drives of several models, namespaces and formats, and page misses are served from all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest.images import dataset, ext4

pytestmark = pytest.mark.guest
Boot = Callable[..., guests.Outcome]

# A file system is mounted at $1. namespaces() prints a line for each namespace of its drive: the namespace's number, its block
# size, and its size in units of 512 bytes. Linux probes namespaces in parallel, so the order of names may differ from that of
# numbers. $second is the name of namespace 2.
NAMESPACES = """
namespaces() {
    disk=$(grep " $1 " /proc/mounts | cut -d' ' -f1); disk=${disk#/dev/}
    for at in /sys/block/${disk%n*}n*; do
        number=$(cat $at/nsid)
        [ $number = 2 ] && second=${at##*/}
        echo "$number $(cat $at/queue/logical_block_size) $(cat $at/size)"
    done
}
"""
KINDS = ["osdp", pytest.param("hwdp", marks=pytest.mark.series)]


@pytest.fixture(scope="session")
def data() -> Path:
    return dataset.image(16 * ext4.MIB)


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Return another ext4 image with a file random.bin, without the label of the data disk."""
    tree = tmp_path / "second"
    tree.mkdir()
    dataset.write_random(tree / "random.bin", 8 * ext4.MIB, seed=7)
    image = tmp_path / "second.img"
    ext4.make(ext4.Volume("second", 24 * ext4.MIB, ext4.LEAN), tree, image)
    return image


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("kernel", [pytest.param("stock", marks=pytest.mark.long),
                                    pytest.param("patched", marks=pytest.mark.series)])
def test_linux_sees_models_namespaces_and_formats(request: pytest.FixtureRequest, boot: Boot, data: Path, second: Path,
                                                  tmp_path: Path, kernel: str) -> None:
    """The data drive has two namespaces of different formats. The job's drive has another model and format."""
    lines = [NAMESPACES, "namespaces /data > /job/out/data", "namespaces /job > /job/out/job",
             "grep -q ' / ' /proc/mounts && ls /sys/class/nvme | wc -l > /job/out/controllers",
             "namespaces /data > /dev/null; sha256sum /dev/$second | cut -d' ' -f1 > /job/out/sha",
             "head -c 100000 /dev/urandom > /job/one; sync; echo 3 > /proc/sys/vm/drop_caches; cp /job/one /job/out/copy",
             "cmp /job/one /job/out/copy"]
    outcome = boot(request.getfixturevalue(kernel), "\n".join(lines), data=data, job_options="ssd=tlc,block=4096",
                   data_options=f"block=4096,ssd=optane-pmm,namespace={second},ro,block=512", smu=kernel == "patched")
    assert outcome.status == 0, outcome.console
    out = tmp_path / "out"
    sectors = [image.stat().st_size // 512 for image in (data, second)]
    assert sorted((out / "data").read_text().splitlines()) == [f"1 4096 {sectors[0]}", f"2 512 {sectors[1]}"]
    assert (out / "job").read_text().split()[:2] == ["1", "4096"]
    assert (out / "controllers").read_text() == "3\n"
    assert (out / "sha").read_text().strip() == sha(second)
    assert (out / "copy").stat().st_size == 100000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [512, 4096])
def test_paging_from_both_formats(boot: Boot, patched: Path, data: Path, kind: str, block: int) -> None:
    """With both block sizes, the program reads the right bytes, and hardware serves the misses. REQ: SMU-9"""
    outcome = boot(patched, f"hwdp -k {kind} -f /data/ -- mapsum -t 4 -o shuffle /data/random.bin", data=data,
                   data_options=f"block={block}")
    plain = boot(patched, "mapsum -r /data/random.bin", data=data)
    assert outcome.console.splitlines()[-1] == plain.console.splitlines()[-1]
    counts = outcome.stats["rois"][0]["watch"][0]
    assert counts["pages_touched"] == 16 * ext4.MIB // 4096
    if kind == "hwdp":
        assert counts["hw_misses"] >= 0.99 * counts["pages_touched"]


@pytest.mark.parametrize("kind", KINDS)
def test_paging_from_two_namespaces(boot: Boot, patched: Path, data: Path, second: Path, kind: str) -> None:
    """Each file has its own bytes, and the unit reads both namespaces, which have different formats."""
    lines = [NAMESPACES, "namespaces /data > /dev/null", "mkdir -p /job/second",
             "mount -t ext4 -o ro /dev/$second /job/second || exit 3",
             "echo 0 > /sys/block/$second/queue/read_ahead_kb",
             *(f"hwdp -k {kind} -f {place}/ -- mapsum -t 2 {place}/random.bin" for place in ("/data", "/job/second")),
             *(f"mapsum -r {place}/random.bin" for place in ("/data", "/job/second")), "umount /job/second"]
    outcome = boot(patched, "\n".join(lines), data=data,
                   data_options=f"block=4096,namespace={second},snapshot,block=512")
    assert outcome.status == 0, outcome.console
    sums = outcome.console.splitlines()[-4:]
    assert sums[:2] == sums[2:] and sums[0] != sums[1]
    assert [watch["pages_touched"] for watch in outcome.stats["watch"]] == [4096, 2048], outcome.stats["watch"]
    if kind == "hwdp":
        first, other = outcome.stats["watch"]
        assert first["hw_misses"] >= 0.99 * 4096 and other["hw_misses"] >= 0.99 * 2048


@pytest.mark.series
def test_slower_drives_take_longer(boot: Boot, patched: Path, data: Path) -> None:
    """A miss waits for the drive's read time: 2.1 us and 10.9 us for drives of the papers, and about 70 us for `tlc`, whose read
    times are random."""
    means = {}
    for ssd in ("optane-pmm", "z-ssd", "tlc"):
        outcome = boot(patched, "hwdp -k hwdp -f /data/ -- mapsum -t 1 /data/random.bin", data=data, profile="server",
                       data_options=f"ssd={ssd}")
        means[ssd] = outcome.stats["rois"][0]["nvme_read"]["mean_us"]
    assert means["optane-pmm"] == pytest.approx(2.1, rel=0.05)
    assert means["z-ssd"] == pytest.approx(10.9, rel=0.05)
    assert means["tlc"] == pytest.approx(70, rel=0.2)


def test_writes_make_reads_wait(boot: Boot, patched: Path, data: Path, tmp_path: Path) -> None:
    """A read waits if the flash is busy with a write, which takes 700 us. Without writes, 99 % of the reads take less than
    200 us, which is three times the drive's read time of 66.7 us."""
    common = "--direct=1 --thread --eta=never --clocksource=clock_gettime --ioengine=psync --output-format=json"
    reads = "--name=r --filename=/data/random.bin --rw=randread --size=16M --io_size=4M --bs=4k"
    writes = "--name=w --filename=/data/w --rw=write --size=16M --bs=64k"
    outcome = boot(patched, f"fio {common} {reads} > /job/out/alone && fio {common} {reads} {writes} > /job/out/beside",
                   data=data, data_options="ssd=tlc", profile="server", smu=False)
    assert outcome.status == 0, outcome.console
    alone, beside = (json.loads((tmp_path / "out" / name).read_text())["jobs"][0]["read"]["clat_ns"]["percentile"]
                     for name in ("alone", "beside"))
    assert alone["99.000000"] < 200_000 < 500_000 < beside["99.000000"]
    assert beside["50.000000"] < 200_000, "most reads meet no write"
