# SPDX-License-Identifier: Apache-2.0
"""The kernel's guest checks under conditions that expose errors: slow devices, small rings, few levels of page tables, disks that
disappear. REQ: OS-2, OS-3, OS-4, OS-5, OS-6, OS-7, OS-9, OS-14"""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.checks import guest

pytestmark = [pytest.mark.guest, pytest.mark.series]

# Tests in which something happens during misses.
RACES = ("munmap_busy", "munmap_waits", "exit_middle", "aba", "exchange", "kill_busy", "fork_busy", "two_processes",
         "write_busy", "punch_busy", "defrag_busy", "reclaim_busy", "remount", "frames")
# Tests that see every type of entry and every level of the tables.
BROAD = ("read_shared_4", "eof", "hole", "write_private", "write_shared", "truncate", "unwritten", "munmap_middle", "split",
         "protect_middle", "mremap_move", "smaps", "frames")

# Tests of the accounts in which reads and faults are counted.
ACCOUNTS = ("account", "account_threads", "account_exit", "account_perf")


def check(kernel: Path, names: tuple[str, ...], **conditions: object) -> None:
    """Check that all of these tests pass."""
    result = guest.run(guest.Boot(kernel, names=names, **conditions))
    assert result.passed, result.console


@pytest.mark.parametrize(("settings", "append"), [
    (("ssd.read_us=1000",), ""), ((), "hwdp.ring=64"), (("smu.pmshr_entries=1",), ""),
], ids=["slow", "small-ring", "one-request"])
def test_races(patched: Path, settings: tuple[str, ...], append: str) -> None:
    """Misses that last long, that find no frame, or that wait for a free entry of the unit."""
    check(patched, RACES, settings=settings, append=append)


@pytest.mark.parametrize("populate", ["miss", "async"])
def test_populate(patched: Path, populate: str) -> None:
    """Page tables are armed at the first miss in them, or soon after mmap()."""
    check(patched, (*RACES, *BROAD, *ACCOUNTS, "rearm"), populate=populate)


@pytest.mark.parametrize("kind", ["emulated", "trap"])
def test_kinds(patched: Path, kind: str) -> None:
    """Misses served by the unit in software, and by the unit in hardware at the kernel's request."""
    check(patched, (*BROAD, *ACCOUNTS, "overlay", "rearm", "write_busy", "frames"), append=f"hwdp.kind={kind}")


@pytest.mark.parametrize("kind", ["hwdp", "emulated"])
@pytest.mark.parametrize("populate", ["miss", "sync"])
def test_any_user(patched: Path, kind: str, populate: str) -> None:
    """Checks for what every user may do: entries stay below their mapping, a killed process dies, a long mapping costs little."""
    check(patched, ("advice_merges", "kill_kernel_read", "long_mapping"), populate=populate, append=f"hwdp.kind={kind}")


def test_accounts_and_mounts(patched: Path) -> None:
    """A miss that hardware serves is counted as a read and as a major fault. A loop device is refused, other mounts are not."""
    check(patched, (*ACCOUNTS, "bind_mount", "overlay", "loop"))


@pytest.mark.parametrize("levels", ["no4lvl", "no5lvl"])
def test_page_table_levels(patched: Path, levels: str) -> None:
    """Sv39, in which the upper mark is in the root table, and Sv48."""
    check(patched, BROAD, append=levels)


@pytest.mark.parametrize("name", ["reset", "removal"])
def test_device_goes(patched: Path, name: str) -> None:
    """The controller is reset or removed while threads miss: later accesses are ordinary, or get SIGBUS."""
    check(patched, (name,))


def test_unknown_name(patched: Path) -> None:
    """A misspelt name fails."""
    assert not guest.run(guest.Boot(patched, names=("no_such_test",))).passed
