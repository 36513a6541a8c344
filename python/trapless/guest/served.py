# SPDX-License-Identifier: Apache-2.0
"""Makes the line that says how many of the data disk's reads hardware made in a run, and why not all."""

from __future__ import annotations

from trapless.guest import boot as guests

# Reasons why Linux had to read, by counter of /sys/kernel/mm/hwdp/stats (docs/explanation/linux.md). These count mappings.
_REASONS = {
    "refused_off": "{} refused: the kind is switched off",
    "refused_mapping_flags": "{} refused: executable, locked, huge or unreadable",
    "refused_file_system": "{} refused: the file system has no block lookup",
    "refused_inode": "{} refused: encrypted, verity, a swap file or no regular file",
    "refused_second_mapping": "{} refused: another mapping of the file is served",
    "refused_device": "{} refused: the unit has no queue at the disk",
    "refused_memory": "{} refused: no memory",
    "refused_memory_policy": "{} refused: a memory policy, or a cpuset, names nodes",
    "refused_io_limit": "{} refused: a cgroup limits reads of the disk",
    "areas_withdrawn_split": "{} given up: split",
    "areas_withdrawn_mprotect": "{} given up after mprotect()",
    "areas_withdrawn_mremap": "{} given up after mremap()",
    "areas_withdrawn_mlock": "{} given up after mlock()",
    "areas_withdrawn_madvise": "{} given up after madvise()",
    "areas_withdrawn_userfaultfd": "{} given up: watched by userfaultfd",
    "areas_withdrawn_disabled": "{} given up: the feature was switched off",
    "areas_withdrawn_yielded": "{} given up for another mapping of the file",
    "areas_disarmed_fork": "{} copied by fork(): the child's copy is not served",
}
# Reasons for which the entries of a mapping were disarmed for a while. These count how often that happened.
_FOR_A_WHILE = {
    "areas_disarmed_layout_change": "the file's blocks changed",
    "areas_disarmed_direct_write": "direct writes",
    "areas_disarmed_blocks_moved": "blocks were moved",
    "areas_disarmed_device": "the drive was reset or taken away",
    "areas_disarmed_shutdown": "the file system was shut down",
    "areas_disarmed_io_limit": "a cgroup limits reads of the disk",
    "areas_disarmed_power": "the machine slept",
}
# Reasons why Linux read single pages that hardware could have read.
_PAGES = {
    "faults_for_want_of_frame": "no free frame",
    "smu_fail_device": "device error",
    "smu_fail_timeout": "the device did not answer",
    "stores": "stores, or accesses of the kernel",
    "pages_disarmed_by_cache_insertion": "Linux had begun to read them, for read(), another mapping or readahead",
}
_REST = ("the first miss of a mapping, mappings that the kind does not reach, the last page of a file, read(), directories or "
         "the file system's own data")


def reads(kind: str | None, outcome: guests.Outcome) -> tuple[int, int] | None:
    """Count reads of the data disk from the first command to the end: reads by hardware (for `emulated`, by the unit in
    software), and all reads. The drive counts them; on QEMU, Linux does. None without a data disk."""
    counted = outcome.counters
    software_unit = counted.get("smu_installed", 0) if kind == "emulated" else 0
    if outcome.stats.get("disks"):
        if len(outcome.stats["disks"]) < guests.DATA_DISK:
            return None
        before = guests.first_command(outcome.stats)["reads"][guests.DATA_DISK - 1]
        after = outcome.stats["disks"][guests.DATA_DISK - 1]["reads"]
        unit, software = (after[owner]["commands"] - before[owner]["commands"] for owner in ("unit", "software"))
        return unit + software_unit, unit + software
    if "data_reads" not in counted:
        return None
    return software_unit, counted["data_reads"]


def figures(kind: str | None, outcome: guests.Outcome) -> dict[str, int]:
    """Return the same counts for a record; empty without a data disk."""
    found = reads(kind, outcome)
    return {} if found is None else {"data_reads": found[1], "data_reads_by_hardware": found[0]}


def line(kind: str, outcome: guests.Outcome) -> str | None:
    """Say what share of the data disk's reads hardware made, and why it did not make the rest. None without a data disk."""
    found = reads(kind, outcome)
    if found is None:
        return None
    hardware, total = found
    if kind in ("osdp", "ideal") or not total:
        return f"{kind}: Linux made {_all(total)} of the data disk"
    who = "the unit in software" if kind == "emulated" else "hardware"
    # Rounded down, so that 100 % means all reads.
    share = 1000 * hardware // total / 10
    text = f"{kind}: {who} made {hardware:,} of {total:,} reads of the data disk ({share:.1f} %)"
    rest = total - hardware
    return f"{text}, Linux {rest:,}: {'; '.join(_why(outcome.counters, rest))}" if rest else text


def _all(total: int) -> str:
    return "no reads" if not total else "the only read" if total == 1 else f"all {total:,} reads"


def _why(counters: dict[str, int], rest: int) -> list[str]:
    """Return the reasons that the kernel counted, in the order of the tables above, and then the reads without a counted reason.
    One read by Linux may bring several pages."""
    counted = {name: counters.get(name, 0) for name in (*_REASONS, *_FOR_A_WHILE, *_PAGES)}
    failed = sum(counted[name] for name in ("faults_for_want_of_frame", "smu_fail_device", "smu_fail_timeout"))
    counted["stores"] = max(0, counters.get("armed_faults_served_by_os", 0) - failed)
    mappings = [text.format(_number(counted[name], "mapping")) for name, text in _REASONS.items() if counted[name]]
    mappings += [f"disarmed {_number(counted[name], 'time')}: {text}" for name, text in _FOR_A_WHILE.items() if counted[name]]
    pages = [f"{_number(counted[name], 'page')}: {text}" for name, text in _PAGES.items() if counted[name]]
    left = rest - sum(counted[name] for name in _PAGES)
    also = "these mappings, " if mappings else ""
    others = f"{_number(left, 'read')}, {'each ' if left > 1 else ''}for one of these reasons: {also}{_REST}"
    return mappings + pages + ([others] if left > 0 else [])


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
