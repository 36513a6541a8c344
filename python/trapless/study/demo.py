# SPDX-License-Identifier: Apache-2.0
"""`./trapless demo`: goes from an empty checkout to a table and a report."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rich.console import Console

from trapless.base.cache import CACHE, check_room
from trapless.base.outputs import output_folder, whole, write_whole
from trapless.base.paths import ROOT
from trapless.base.ui import UserError, say, step
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import dataset, rootfs
from trapless.guest.job import Job
from trapless.loads import fio as miss_latency
from trapless.results import columns, html, picture, table


def guest_for(profile: str, settings: tuple[str, ...], load: miss_latency.Load, kernel: Path | None) -> guests.Guest:
    """Return the demo's guest: patched kernel, root image, a data disk for the load."""
    return guests.Guest(kernel=kernel or build.beside_machine(build.kernel), root=rootfs.image(),
                        data=dataset.image(load.file_bytes), profile=profile, settings=settings, max_seconds=600)


def check_demo_room(load: miss_latency.Load) -> None:
    """Raise UserError if the cache's disk has no room for everything that must still be built, before the first build takes
    minutes."""
    no_root = not any((CACHE / "rootfs").glob("[!.]*"))
    check_room(build.room() + no_root * rootfs.ROOM + dataset.room(load.file_bytes), CACHE, "what the demo builds")


def run(out: Path, profile: str, settings: tuple[str, ...], threads: int, kernel: Path | None, serial: bool,
        quick: bool = False, docs: bool = False) -> int:
    """Measure the three kinds, print the table, and write results.json, results.md and report.html to `out`. With `docs`, also
    write README's table and figure."""
    output_folder(out)
    load = miss_latency.Load(threads=threads)
    check_demo_room(miss_latency.small_load(load) if quick else load)
    records = measure(out, profile, settings, threads, kernel, serial, quick)
    write_whole(out / "results.json", json.dumps(records, indent=1) + "\n")
    write_whole(out / "results.md", table.markdown(records, miss_latency.COLUMNS))
    columns.write(out, (*miss_latency.COLUMNS, *miss_latency.MORE))
    with whole(out / "report.html") as partial:
        html.write(records, partial, miss_latency.COLUMNS)
    table.show(records, Console(highlight=False), miss_latency.COLUMNS)
    for record in records:
        if record.get("boot_mips"):
            say(f"{record['kind']}: boot to the first command {record['boot_host_seconds']:.2f} s of host time, "
                f"{record['boot_mips']:.0f} MIPS")
    if docs:
        write_docs(records)
    say(f"results: {out / 'results.json'}, report: {out / 'report.html'}")
    return 0


def write_docs(records: list[dict]) -> None:
    """Write the demo's results into README."""
    readme = ROOT / "README.md"
    text = table.replace(readme.read_text(), "demo", table.markdown(records, miss_latency.SHORT))
    write_whole(readme, table.replace(text, "demo/gain", gain(records)))
    picture.draw(records, ROOT / "docs" / "figures")


def gain(records: list[dict]) -> str:
    """Return README's sentences about its table."""
    by_kind = {record["kind"]: record for record in records}
    old, new = by_kind["osdp"], by_kind["hwdp"]
    return (f"**Gain.** A cold random read takes {new['mean_us']:.2f} us instead of {old['mean_us']:.2f} us: it is "
            f"{old['mean_us'] / new['mean_us']:.1f} times faster. The kernel executes {new['kernel_instructions_per_op']:,.0f} "
            f"instructions per\nread instead of {old['kernel_instructions_per_op']:,.0f}.\n")


def measure(out: Path, profile: str = "vc707", settings: tuple[str, ...] = (), threads: int = 1,
            kernel: Path | None = None, serial: bool = False, quick: bool = False) -> list[dict]:
    """Return the records of the three kinds. Each kind's raw files go to `out`/KIND."""
    load = miss_latency.Load(threads=threads)
    if quick:
        load = miss_latency.small_load(load)
    guest = guest_for(profile, settings, load, kernel)
    program = build.machine()

    def runner(guest: guests.Guest, job: Job, folder: Path) -> guests.Outcome:
        return guests.run_on_machine(program, guest, job, folder)

    at_once = 1 if serial else min(2, os.cpu_count() or 1)
    with step(f"running fio for {', '.join(miss_latency.KINDS)} on profile {profile} ({at_once} at a time)"):
        records = miss_latency.measure(runner, guest, load, out, at_once=at_once)
    for record in records:
        record["runs_at_once"] = at_once
        if record["instructions"] is None and not record.get("mips"):
            raise UserError(f"{record['kind']}: the machine left no figures")
    return records
