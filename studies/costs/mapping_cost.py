# SPDX-License-Identifier: Apache-2.0
"""Cost of a mapping that is hardly used: map, read one page, unmap, by size of the mapping; and of a mapping that is only
written."""

from __future__ import annotations

from pathlib import Path

from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest import build, kept, run
from trapless.guest.programs import cross
from trapless.loads.setup import Setup
from trapless.results.columns import LOWER, Column, word
from trapless.study.experiment import Experiment, Table, View
from trapless.sweeps import record

PROFILES = ("server", "vc707")
KINDS = ("osdp", "hwdp")
READS = ("cold", "cached", "unused")
STORES = ("stored", "private")
STORED_KIB = 16384
SIZES_KIB = (4, 64, 2048, 16384, 131072, 524288, 1048576)
QUICK_SIZES_KIB = (4, 131072)
DATA, QUICK_DATA = "1G", "128M"
_FORM = "mapping_cost 2"


def run_of(setup: Setup, profile: str, reads: str, kib: int, kind: str) -> kept.Run:
    """Return one run, prepared in the same way as by `./trapless run`."""
    request = run.Request(["./mappings", reads, str(kib), "/data/random.bin"], kind=kind, inputs=(program(),),
                          data=QUICK_DATA if setup.quick else DATA, profile=profile, settings=setup.settings,
                          kernel=setup.kernel_of(False), harts=2, max_seconds=600)
    guest, job = run.prepare(request)
    return kept.Run(f"{profile}, {reads}, {kib} KiB, {kind}", guest, job, take, _FORM)


def program() -> Path:
    """Return the program that maps."""
    return cross.compile_program("mappings", [Path(__file__).with_name("mappings") / "mappings.c"])


def take(outcome: guests.Outcome, folder: Path) -> dict:
    """Make the record of a run: the program's own figures, and how many entries were armed."""
    found = record.of_program(folder / "out")
    return {**found, "us": sum(found[part] for part in ("map_us", "read_us", "unmap_us")),
            "pages_armed": outcome.counters.get("pages_armed", 0)}


def measure(setup: Setup) -> list[dict]:
    """Return one record for each profile, way of reading and size. It has both kinds and their ratio."""
    sizes = QUICK_SIZES_KIB if setup.quick else SIZES_KIB
    cases = [(profile, reads, kib) for profile in PROFILES for reads in READS for kib in sizes]
    cases += [(profile, stores, STORED_KIB) for profile in PROFILES for stores in STORES]
    runs = [run_of(setup, *case, kind) for case in cases for kind in KINDS]
    found = iter(zip(runs, kept.records(build.machine(), runs, setup.at_once), strict=True))
    rows = []
    for profile, reads, kib in cases:
        (_, osdp), (its_run, hwdp) = next(found), next(found)
        if osdp["sum"] != hwdp["sum"]:
            raise UserError(f"mapping_cost: {profile}, {reads}, {kib} KiB: the kinds read different bytes")
        rows.append({"profile": profile, "reads": reads, "kib": kib, "osdp_us": osdp["us"], "hwdp_us": hwdp["us"],
                     "hwdp_to_osdp": hwdp["us"] / osdp["us"], **{part: hwdp[part] for part in ("map_us", "read_us", "unmap_us")},
                     "configuration": kept.configuration(its_run)})
    return rows


PROFILE = word("profile", "profile", "The machine's profile.")
PAGES = word("reads", "pages", "Which pages are read or stored to, and where they are.")
MAPPING = Column("kib", "mapping KiB", "Size of the mapping.", "KiB", None, ",d")
OSDP = Column("osdp_us", "OS paging us", "Time to map, access and unmap with ordinary paging.", "us", LOWER, ",.2f")
HWDP = Column("hwdp_us", "hwdp us", "The same with hwdp.", "us", LOWER, ",.2f")
RATIO = Column("hwdp_to_osdp", "time vs OS paging", "hwdp's time divided by that of ordinary paging.", "x", LOWER, ".2f")
PARTS = (Column("map_us", "hwdp's mmap us", "hwdp's time in mmap().", "us", LOWER, ",.2f"),
         Column("read_us", "hwdp's access us", "hwdp's time to access the pages.", "us", LOWER, ",.2f"),
         Column("unmap_us", "hwdp's munmap us", "hwdp's time in munmap().", "us", LOWER, ",.2f"))
SIZES_OF_PARTS = (4, 2048, 1048576)
"""Sizes of the mappings whose parts a page shows."""
NAMES = (PROFILE, PAGES, MAPPING)

EXPERIMENT = Experiment(
    "map, read one page, unmap: by size of the mapping", measure,
    {"mapping_cost": Table((*NAMES, OSDP, HWDP, RATIO, *PARTS), keys=3, views={
        "": View((*NAMES, OSDP, HWDP, RATIO)),
        "parts": View((*NAMES, *PARTS), lambda row: row["reads"] in STORES or row["kib"] in SIZES_OF_PARTS)})},
    about="One thread maps a part of a file 40 times, each time another part, reads one page of it, and unmaps it. "
          "The page is on the drive or in the page cache, or no page is read. `stored` and `private`: the thread writes "
          "all pages of a shared or a private mapping.")
