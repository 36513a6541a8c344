# SPDX-License-Identifier: Apache-2.0
"""Cost of the series where it is not used: kernel instructions per page fault of the unpatched kernel, of the patched kernel
without an SMU, and of the patched kernel with an SMU and `hwdp=off`. REQ: OS-15

One thread of mapsum reads every page of a cold file in scattered order on one hart. So nothing else runs, and the count does not
depend on which hart wakes which. The machine counts from mmap() to munmap(), both included. The same run gives the same count.
"""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace

from trapless.base.ui import UserError
from trapless.guest.images import dataset, ext4
from trapless.guest.job import Job, launcher
from trapless.loads.setup import Setup
from trapless.results.columns import LOWER, Column, word
from trapless.study.experiment import Experiment, Table

CASES = (
    # name, unpatched kernel, SMU, kernel command line
    ("stock", True, False, ""),
    ("no SMU", False, False, ""),
    ("hwdp=off", False, True, "hwdp=off"),
)
FILE_BYTES = 64 * ext4.MIB


def measure(setup: Setup) -> list[dict]:
    """Return one record for each case."""
    data = dataset.image(FILE_BYTES)
    booted = {name: replace(setup.guest(data, stock), smu=smu, append=f"norandmaps {append}".strip(), harts=1)
              for name, stock, smu, append in CASES}
    runner = setup.runner()
    job = Job(shlex.join([*launcher("osdp"), "mapsum", "-t", "1", "-o", "shuffle", "/data/random.bin"]))

    def one(name: str) -> dict:
        folder = setup.out / name.replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        outcome = runner(booted[name], job, folder)
        if outcome.status:
            raise UserError(f"{name}: mapsum ended with status {outcome.status}: {outcome.console.strip()[-300:]}")
        (folder / "stats.json").write_text(json.dumps(outcome.stats, indent=1))
        region = outcome.stats["rois"][0]
        faults = region["watch"][0]["os_faults"]
        return {"case": name, "faults": faults, "sum": outcome.console.split()[-1],
                "kernel_instructions_per_fault": region["instructions"]["supervisor"] / faults,
                "us_per_fault": region["sim_seconds"] * 1e6 / faults}

    records = setup.each("counting instructions", booted, one)
    base = records[0]["kernel_instructions_per_fault"]
    for entry in records:
        entry["over_stock_percent"] = 100 * (entry["kernel_instructions_per_fault"] / base - 1)
    return records


EXPERIMENT = Experiment("cost of the series where it is off", measure, {"off_cost": Table((
    word("case", "kernel", "The unpatched kernel (stock), or the patched one without an SMU or with hwdp=off."),
    Column("faults", "page faults", "Page faults of the mapping.", "faults", None, ",d"),
    Column("kernel_instructions_per_fault", "kernel instructions/fault", "Instructions of supervisor mode per page fault.",
           "instructions/fault", LOWER, ",.1f"),
    Column("over_stock_percent", "over stock %", "Kernel instructions per fault over those of the unpatched kernel.", "%", LOWER,
           ".3f"),
))}, profile=True, more=(Column("us_per_fault", "us/fault", "Simulated time per page fault.", "us", LOWER, ".2f"),),
    about="One thread reads every page of a cold file in scattered order on one hart. The machine counts the kernel's "
          "instructions from mmap() to munmap(). The same run gives the same count.")
