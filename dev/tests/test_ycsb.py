# SPDX-License-Identifier: Apache-2.0
"""YCSB's driver draws what YCSB's definitions say, its records detect every damage, and it runs on RocksDB in the guest."""

from __future__ import annotations

import json
import shlex
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import rootfs
from trapless.guest.job import Job, launcher
from trapless.loads import ycsb

SOURCES = Path(ycsb.__file__).with_name("ycsb_src")
THETA = 0.99


@pytest.fixture(scope="module")
def draw(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int, int], list[int]]:
    """Return a function with the driver's random numbers: (kind, items, count) -> numbers."""
    program = tmp_path_factory.mktemp("draw") / "draw"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-I", SOURCES, "-o", program,
                    Path(__file__).with_name("ycsb_draw.c"), SOURCES / "draw.c", SOURCES / "records.c", "-lm"], check=True)

    def drawn(kind: str, items: int, count: int) -> list[int]:
        said = subprocess.run([program, kind, str(items), str(count)], capture_output=True, text=True, check=True).stdout
        return [int(line) for line in said.split()]

    return drawn


def fnv(value: int) -> int:
    """Return YCSB's Utils.fnvhash64 by its definition: FNV-1a of eight bytes in 64 bits, then the absolute value of a Java
    long."""
    found = 0xCBF29CE484222325
    for byte in value.to_bytes(8, "little"):
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return 2**64 - found if found >= 2**63 else found


def shares(items: int) -> list[float]:
    """Return the probability of each item of YCSB's ZipfianGenerator: exact for the first two, the approximation of Gray et al.
    (SIGMOD 1994) for the others."""
    zeta = sum(n**-THETA for n in range(1, items + 1))
    eta = (1 - (2 / items) ** (1 - THETA)) / (1 - (1 + 0.5**THETA) / zeta)
    # From this u on, items * (eta * u - eta + 1) ** (1 / (1 - theta)) is n or more.
    first_two = (1 + 0.5**THETA) / zeta
    edges = [0, 1 / zeta] + [max(first_two, ((n / items) ** (1 - THETA) - 1 + eta) / eta) for n in range(2, items)] + [1]
    return [high - low for low, high in zip(edges, edges[1:], strict=False)]


def fits(found: Counter[int], expected: list[float], count: int) -> bool:
    """Whether every item is drawn about as often as expected: within five standard deviations (and a draw or two)."""
    return all(abs(found[item] - share * count) <= 5 * (share * count) ** 0.5 + 2 for item, share in enumerate(expected))


def test_hash(draw: Callable[[str, int, int], list[int]]) -> None:
    assert draw("hash", 0, 1000) == [fnv(n) for n in range(1000)]


def test_zipfian(draw: Callable[[str, int, int], list[int]]) -> None:
    found = Counter(draw("zipfian", 500, 400_000))
    assert fits(found, shares(500), 400_000)
    assert not fits(found, shares(400) + [0] * 100, 400_000)


def test_latest(draw: Callable[[str, int, int], list[int]]) -> None:
    """The newest item is the most popular. The sum grows with the items, and must always be the sum over all of them."""
    found = Counter(500 - number for number in draw("latest", 500, 400_000))
    assert fits(found, shares(500), 400_000)


def test_scrambled(draw: Callable[[str, int, int], list[int]]) -> None:
    """The most popular records are where YCSB has them, and equally often: items of 10^10, with the sum that YCSB states."""
    count, found = 400_000, Counter(draw("scrambled", 1000, 400_000))
    zeta = 26.46902820178302
    first, second = 1 / zeta, 0.5**THETA / zeta
    for item, share in ((0, first), (1, second)):
        assert abs(found[fnv(item) % 1000] - share * count) < 0.1 * share * count
    assert min(found) >= 0
    assert max(found) < 1000


def test_every_flipped_bit_is_noticed(draw: Callable[[str, int, int], list[int]]) -> None:
    bits = 8 * (16 + 3 * 17)
    assert draw("record", 5, 20) == [bits] * 20


SMALL = ycsb.Database(records=4096, field_bytes=100)


def run_load(load: ycsb.Load, disk: Path, kind: str, folder: Path) -> guests.Outcome:
    """Run the load in a guest; its output is `ycsb.json` in the folder."""
    guest = guests.Guest(kernel=build.kernel(), root=rootfs.image(more=ycsb.PACKAGES), data=disk, max_seconds=300)
    command = shlex.join([*launcher(kind), *load.argv()])
    return guests.run_on_machine(build.machine(), guest, Job(f"{command} >/job/out/ycsb.json", (ycsb.program(),)), folder)


@pytest.mark.guest
@pytest.mark.series
@pytest.mark.parametrize("workload", ycsb.WORKLOADS)
def test_workloads(workload: str, tmp_path: Path) -> None:
    """With hardware paging and threads: every record that is read is right, and operations have YCSB's shares."""
    load = ycsb.Load(SMALL, workload, operations=2000, warm=100, threads=3)
    outcome = run_load(load, SMALL.image(), "hwdp", tmp_path)
    assert outcome.status == 0, outcome.console
    said = json.loads((tmp_path / "ycsb.json").read_text())
    assert (said["wrong"], said["all"]["ops"], said["threads"]) == (0, 2000, 3)
    found = {name: value["ops"] / 2000 for name, value in said.items() if isinstance(value, dict) and name != "all"}
    shares = {"A": {"read": 0.5, "update": 0.5}, "B": {"read": 0.95, "update": 0.05}, "C": {"read": 1},
              "D": {"read": 0.95, "insert": 0.05}, "E": {"scan": 0.95, "insert": 0.05},
              "F": {"read": 0.5, "read_modify_write": 0.5}}[workload]
    assert found.keys() == shares.keys()
    assert all(abs(found[name] - share) < 0.05 for name, share in shares.items())


@pytest.mark.guest
def test_a_damaged_record_is_noticed(tmp_path: Path) -> None:
    """One bit of one record is wrong on the disk: a scan of all records finds it."""
    disk = tmp_path / "disk.img"
    shutil.copy(SMALL.image(), disk)
    disk.chmod(0o644)
    data = bytearray(disk.read_bytes())
    found = data.rindex(struct.pack("<QI", 1234, 0))
    data[found + 500] ^= 1
    disk.write_bytes(data)
    outcome = run_load(ycsb.Load(SMALL, "E", operations=400), disk, "osdp", tmp_path / "out")
    assert outcome.status == 3, outcome.console
    assert "WRONG: record" in outcome.console
