# SPDX-License-Identifier: Apache-2.0
"""fio beside a CPU-bound program on the two hardware threads of one core (ISCA20 figure 16).

fio reads 4 KiB blocks at random through a mapping on hart 0; the other program computes on hart 1 as long as fio runs. Caches,
TLBs and predictor are on. The machine counts instructions by hart, so nothing in the guest is touched.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

from lab.experiments.miss_latency import Load, small_load
from lab.experiments.setup import Experiment, Setup, Table
from lab.images import dataset, ext4
from lab.runner.guest import Outcome
from lab.runner.job import Job
from lab.ui import UserError

PROFILE = "server"
HARTS = 4
"""Two cores: the second is there for the kernel's threads, as the other cores of the paper's processor are."""
KINDS = ("osdp", "hwdp")
BESIDE = {
    "nothing": "",
    "shell": "while :; do i=$((i + 1)); done",
    "sha256sum": "dd if=/dev/zero bs=1M count=8 of=/tmp/zero; while :; do sha256sum /tmp/zero; done",
    "awk": "awk 'BEGIN { while (1) { i = (i * 69069 + 1) % 262144; a[i] += i } }'",
}
"""What runs on hart 1. (The paper takes programs of SPEC CPU 2017.) awk walks through more memory than the caches of a core."""
LOAD = Load(read_bytes=192 * ext4.MIB)
_STATS = "/sys/kernel/mm/hwdp/stats"


def job(load: Load, kind: str, beside: str) -> Job:
    """fio on hart 0, the other program on hart 1."""
    other = f"taskset 2 sh -c {_quoted(BESIDE[beside])} > /dev/null 2>&1 &\nsleep 0.05" if BESIDE[beside] else ""
    return Job(f"{other}\ntaskset 1 {load.command(kind)} || exit $?\n[ ! -e {_STATS} ] || cp {_STATS} /job/out/hwdp-stats")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def measure(setup: Setup) -> list[dict]:
    """One record for each kind and each program beside fio, with ratios to osdp."""
    load = small_load(LOAD) if setup.quick else LOAD
    runner, data = setup.runner(), dataset.image(load.file_bytes)
    guest = replace(load.guest(setup.guest(data)), profile=PROFILE, harts=HARTS, memory="1G", detail="milestone:1")

    def one(case: tuple[str, str]) -> dict:
        kind, beside = case
        folder = setup.out / f"{beside}-{kind}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        outcome = runner(guest, job(load, kind, beside), folder)
        if outcome.status:
            raise UserError(f"{kind} beside {beside}: fio ended with status {outcome.status}: {outcome.console.strip()[-300:]}")
        (folder / "stats.json").write_text(json.dumps(outcome.stats, indent=1))
        return {"kind": kind, "beside": beside, **_record(outcome, folder)}

    cases = [(kind, beside) for beside in BESIDE for kind in setup.kinds or KINDS]
    return compare(setup.each(f"running fio {len(cases)} times", cases, one))


def _record(outcome: Outcome, folder: Path) -> dict:
    """What one run did: fio's reads a second (arming is mmap's, once, and taken off), instructions by hart."""
    read = json.loads((folder / "fio.json").read_text())["jobs"][0]["read"]
    region, stats = outcome.stats["rois"][0], folder / "hwdp-stats"
    arming = 0
    if stats.exists():
        arming = int(dict(line.split() for line in stats.read_text().splitlines()).get("arming_ns", 0))
    seconds = region["sim_seconds"]
    here, there, *_ = region["instructions_by_hart"]
    ops = read["total_ios"]
    total = sum(here.values())
    return {
        "ops": ops,
        "seconds": seconds,
        "arming_seconds": arming / 1e9,
        "mean_us": read["clat_ns"]["mean"] / 1000,
        "ops_per_second": ops / (read["runtime"] / 1000 - arming / 1e9),
        "fio_user_per_op": here["user"] / ops,
        "fio_kernel_per_op": (total - here["user"]) / ops,
        "fio_mips": total / seconds / 1e6,
        "beside_mips": there["user"] / seconds / 1e6,
        "host_seconds": outcome.host_seconds,
    }


def compare(records: list[dict]) -> list[dict]:
    """Add ratios to osdp beside the same program: speed of fio, speed of the other program, fio's instructions."""
    base = {entry["beside"]: entry for entry in records if entry["kind"] == "osdp"}
    for entry in records:
        osdp = base.get(entry["beside"])
        if osdp is None or entry is osdp:
            continue
        entry["fio_ratio"] = entry["ops_per_second"] / osdp["ops_per_second"]
        if osdp["beside_mips"] and BESIDE[entry["beside"]]:
            entry["beside_ratio"] = entry["beside_mips"] / osdp["beside_mips"]
        entry["fio_instructions_change"] = 100 * (entry["fio_mips"] / osdp["fio_mips"] - 1)
        each, before = (e["fio_user_per_op"] + e["fio_kernel_per_op"] for e in (entry, osdp))
        entry["fio_per_op_change"] = 100 * (each / before - 1)
    return records


EXPERIMENT = Experiment(
    title="fio beside a CPU-bound program on one core (ISCA20 figure 16)",
    measure=measure,
    tables={"smt": Table(keys=2, columns=(
        ("beside", "beside", "s"),
        ("kind", "kind", "s"),
        ("mean us", "mean_us", ".2f"),
        ("fio ops/s", "ops_per_second", ",.0f"),
        ("fio it : osdp", "fio_ratio", ".2f"),
        ("beside MIPS", "beside_mips", ",.0f"),
        ("beside it : osdp", "beside_ratio", ".3f"),
        ("fio instr/op user", "fio_user_per_op", ",.0f"),
        ("kernel", "fio_kernel_per_op", ",.0f"),
        ("fio instr/op %", "fio_per_op_change", "+.1f"),
        ("fio instr/s %", "fio_instructions_change", "+.1f"),
    ))},
)
