# SPDX-License-Identifier: Apache-2.0
"""The line at the end of a run: who read the data disk, and why hardware did not read all of it."""

from __future__ import annotations

import re

from trapless.base.paths import LINUX
from trapless.guest import served
from trapless.guest.boot import Outcome

SYSFS, = (LINUX / "series").glob("*-mm-hwdp-settings-*.patch")


def reads(unit: int, software: int) -> list[dict]:
    """Return the reads of each disk, in the form of a milestone."""
    return [{"unit": {"commands": 1}, "software": {"commands": 1000}}] * 2 + [
        {"unit": {"commands": unit}, "software": {"commands": software}}]


def disks(unit: int, software: int) -> list[dict]:
    """Return the reads of each disk, in the form of the end of a record."""
    return [{"reads": each} for each in reads(unit, software)]


def outcome(unit: int, software: int, **counters: int) -> Outcome:
    stats = {"milestones": [{"number": 1, "reads": reads(2, 100)}], "disks": disks(2 + unit, 100 + software)}
    return Outcome(0, stats, counters=counters)


def test_reads_are_those_since_the_command_began() -> None:
    assert served.reads("hwdp", outcome(30, 10)) == (30, 40)
    assert served.figures("hwdp", outcome(30, 10)) == {"data_reads": 40, "data_reads_by_hardware": 30}
    stats = {"milestones": [{"number": 1, "reads": []}], "disks": disks(1, 1)[:2]}
    assert served.line("hwdp", Outcome(0, stats)) is None, "no data disk"
    assert served.figures("hwdp", Outcome(1)) == {}, "the guest did not reach its first command"


def test_a_line_says_why() -> None:
    said = served.line("hwdp", outcome(957, 43, refused_second_mapping=1, faults_for_want_of_frame=13, areas_withdrawn_munmap=5))
    assert said == ("hwdp: hardware made 957 of 1,000 reads of the data disk (95.7 %), Linux 43: 1 mapping refused: another "
                    "mapping of the file is served; 13 pages: no free frame; 30 reads, each for one of these reasons: these "
                    "mappings, the first miss of a mapping, mappings that the kind does not reach, the last page of a file, "
                    "read(), directories or the file system's own data")
    assert served.line("hwdp", outcome(7, 0)) == "hwdp: hardware made 7 of 7 reads of the data disk (100.0 %)"
    assert served.line("trap", outcome(3, 1)).endswith(
        "Linux 1: 1 read, for one of these reasons: the first miss of a mapping, mappings that the kind does not reach, "
        "the last page of a file, read(), directories or the file system's own data")


def test_every_page_that_linux_served_has_a_reason() -> None:
    """Linux serves stores and the kernel's accesses even while there are free frames. Faults without a free frame, and failures,
    are counted separately."""
    def why(**counters: int) -> str:
        return served.line("hwdp", outcome(900, 100, **counters)).partition("Linux 100: ")[2]
    assert why(armed_faults_served_by_os=100) == "100 pages: stores, or accesses of the kernel"
    assert why(armed_faults_served_by_os=120, faults_for_want_of_frame=90, smu_fail_device=9, smu_fail_timeout=1) == (
        "90 pages: no free frame; 9 pages: device error; 1 page: the device did not answer; "
        "20 pages: stores, or accesses of the kernel")
    assert why(areas_disarmed_fork=1, areas_disarmed_direct_write=2, armed_faults_served_by_os=99).startswith(
        "1 mapping copied by fork(): the child's copy is not served; disarmed 2 times: direct writes; 99 pages: stores")


def test_a_hundred_percent_are_all() -> None:
    assert "(99.9 %)" in served.line("hwdp", outcome(9999, 1))
    assert "(100.0 %)" in served.line("hwdp", outcome(9999, 0))


def test_all_reasons_of_the_kernel_are_known() -> None:
    """Each counter of a refusal, of a withdrawal or of a temporary stop is in the tables, unless it counts normal ends of
    mappings."""
    names = re.findall(r'^\+\s*\[HWDP_[SR]_\w+\]\s*= "(refused_\w+|areas_(?:withdrawn|disarmed)_\w+)"', SYSFS.read_text(),
                       re.MULTILINE)
    assert len(names) > 20
    assert set(names) - set(served._REASONS) - set(served._FOR_A_WHILE) == {"areas_withdrawn_munmap", "areas_withdrawn_exit"}


def test_kinds_without_hardware() -> None:
    assert served.line("osdp", outcome(0, 1234)) == "osdp: Linux made all 1,234 reads of the data disk"
    assert served.line("osdp", outcome(0, 1)) == "osdp: Linux made the only read of the data disk"
    assert served.line("ideal", outcome(0, 0)) == "ideal: Linux made no reads of the data disk"
    said = served.line("emulated", outcome(0, 50, smu_installed=40))
    assert said.startswith("emulated: the unit in software made 40 of 50 reads of the data disk (80.0 %), Linux 10: ")


def test_on_qemu_linux_has_counted() -> None:
    assert served.reads("emulated", Outcome(0, counters={"data_reads": 50, "smu_installed": 40})) == (40, 50)
    assert served.line("emulated", Outcome(0, counters={"nr_free_pages": 3})) is None
