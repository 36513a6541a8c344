# SPDX-License-Identifier: Apache-2.0
"""Files of the data disk by other paths than /data: a bind mount, an overlay, a file system in a file behind a loop device; and
perf's view of faults. Bytes and status are the same as without a kind."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.base.paths import ROOT
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import dataset, ext4, rootfs
from trapless.guest.job import Job, launcher

Boot = Callable[..., guests.Outcome]
WAYS = {
    "bind": "mkdir /run/it && mount --bind /data /run/it",
    "overlay": "mkdir /run/it /run/up /run/work && mount -t overlay it -o lowerdir=/data,upperdir=/run/up,workdir=/run/work "
               "/run/it",
    "loop": "cp inner.img /data && mkdir /run/it && losetup /dev/loop0 /data/inner.img && mount -t ext4 /dev/loop0 /run/it",
}


@pytest.fixture(scope="module")
def inner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file system with a random file. In the guest, it is a file on the data disk."""
    folder = tmp_path_factory.mktemp("inner")
    (folder / "tree").mkdir()
    dataset.write_random(folder / "tree" / dataset.FILE, 4 * ext4.MIB, 7)
    ext4.make(ext4.Volume("inner", 16 * ext4.MIB), folder / "tree", folder / "inner.img")
    return folder / "inner.img"


@pytest.mark.guest
@pytest.mark.series
@pytest.mark.parametrize("kind", ["osdp", "hwdp"])
@pytest.mark.parametrize("way", WAYS)
def test_other_ways_to_a_file(boot: Boot, patched: Path, inner: Path, way: str, kind: str) -> None:
    mapsum = ["mapsum", "-t", "2", "-o", "same", f"/run/it/{dataset.FILE}"]
    script = "\n".join([f"{WAYS[way]} || exit 9", f"mapsum -r /run/it/{dataset.FILE} || exit 8",
                        "echo 3 >/proc/sys/vm/drop_caches", " ".join([*launcher(kind), *mapsum])])
    outcome = boot(patched, script, data=dataset.image(16 * ext4.MIB), inputs=(inner,) if way == "loop" else ())
    assert outcome.status == 0, outcome.console
    read, mapped = outcome.console.splitlines()[-2:]
    assert read == mapped
    if way == "loop":
        host = subprocess.run([build.host_mapsum(), "-r", inner.parent / "tree" / dataset.FILE], capture_output=True, text=True,
                              check=True)
        assert mapped == host.stdout.strip()


@pytest.mark.guest
def test_perf_counts_faults(program: Path, patched: Path, tmp_path: Path) -> None:
    """perf reports a major fault for each of 4,096 pages, without readahead."""
    command = shlex.join([*launcher("osdp"), "mapsum", "/data/random.bin"])
    script = f"perf stat -x, -o /job/out/perf -e page-faults,major-faults -- {command}"
    guest = guests.Guest(patched, rootfs.image(more=("linux-perf",)), dataset.image(16 * ext4.MIB), max_seconds=300)
    outcome = guests.run_on_machine(program, guest, Job(script), tmp_path / "out")
    assert outcome.status == 0, outcome.console
    lines = [line.split(",") for line in (tmp_path / "out/perf").read_text().splitlines()]
    counted = {line[2].partition(":")[0]: int(line[0]) for line in lines if len(line) > 2}
    assert counted["page-faults"] > counted["major-faults"] >= 4096


@pytest.mark.guest
@pytest.mark.series
@pytest.mark.parametrize("kind", ["osdp", "emulated", "trap", "hwdp"])
def test_perf_traces_faults(program: Path, patched: Path, tmp_path: Path, kind: str) -> None:
    """`perf trace -F maj` has a line for each access that trapped and waited for the drive, and no other lines."""
    mapsum = shlex.join([*launcher(kind), "mapsum", "-t", "1", "/data/random.bin"])
    guest = guests.Guest(patched, rootfs.image(more=("linux-perf",)), dataset.image(4 * ext4.MIB), max_seconds=300)
    outcome = guests.run_on_machine(program, guest, Job(f"perf trace -F maj --no-syscalls -o /job/out/faults -- {mapsum}"),
                                    tmp_path / "out")
    assert outcome.status == 0, outcome.console
    faults = [line for line in (tmp_path / "out/faults").read_text().splitlines() if "majfault" in line]
    # Pages of the file, and a few of the program.
    assert len(faults) in (range(10) if kind == "hwdp" else range(1022, 1033)), faults[:20]


@pytest.mark.guest
@pytest.mark.series
@pytest.mark.parametrize("fault", ["media-error,op=read", "media-error,lba=9"], ids=["no label", "no group descriptors"])
def test_a_data_disk_that_linux_cannot_read_is_said(fault: str) -> None:
    """The command finds an empty folder."""
    done = subprocess.run([ROOT / "trapless", "run", "--data", "16M", "--fault", fault, "--", "ls", "/data"],
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1
    assert "trapless: --data: nothing was mounted at /data: Linux could not read that disk's ext4\n" in done.stderr


@pytest.mark.guest
@pytest.mark.series
@pytest.mark.parametrize("what", ["dd if=/dev/zero of=/job/out/x bs=1M 2>/dev/null", "mount -t tmpfs x /sys",
                                  "rm /job/* 2>/dev/null"],
                         ids=["full", "no sys", "no files"])
def test_what_the_command_does_to_the_guest_hides_no_status(program: Path, patched: Path, root: Path, tmp_path: Path,
                                                            what: str) -> None:
    """The job's disk may be full when init writes the status, and files that init reads may be gone."""
    guest = guests.Guest(patched, root, dataset.image(8 * ext4.MIB), max_seconds=300)
    outcome = guests.run_on_machine(program, guest, Job(f"{what}; exit 3"), tmp_path)
    assert outcome.status == 3
    assert outcome.readahead == (-1 if what.startswith("mount") else 0)
