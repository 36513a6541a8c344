# SPDX-License-Identifier: Apache-2.0
"""FPGA table II without its setting `large`: the settings `no refill` and `small`, all kinds, kpoold on and off (THESIS figures
5.2 to 5.8, FPGA figure 9; for kpoold: ISCA20 section IV-D).

`no refill` reads 64 MiB of a file of 320 MiB with a free ring that has frames for all pages. In `small`, each thread reads 64 MiB
of a file of 4 GiB with a free ring of 4 MiB, which must be refilled all the time: by kpoold, or by page faults alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from trapless.guest import boot as guests
from trapless.guest import build, kept
from trapless.guest.images import dataset, ext4
from trapless.guest.job import KINDS
from trapless.loads import fio as miss_latency
from trapless.loads.setup import Setup
from trapless.results import figures
from trapless.results.columns import HIGHER, LOWER, Column, word
from trapless.study import repeated
from trapless.study.experiment import Experiment, Table, View

NO_REFILL = miss_latency.Load(ring=32768, log_ms=0)
"""Frames of 128 MiB, twice what is read: such a ring is never refilled. (The papers have 320 MiB; here it must be a power of
two.)"""
SMALL = miss_latency.Load(file_bytes=4096 * ext4.MIB, ring=1024, log_ms=0)
QUICK_FILE_BYTES = 1024 * ext4.MIB
"""Maximum size of the file in bytes in the quick form, because making a disk of random bytes takes long."""
THREADS = (1, 2, 4)
SEEDS = (8, 9, 10)
"""Seeds of fio; the quick form has two."""
NAMES = ("setting", "threads", "kind", "kpoold")
"""Keys that identify a row."""
FORM = "small 3"
SLOW_READ_US = 1000.0
"""A second read time of the device, in us. Comparing it with the usual one shows how much of the device's time refilling fills,
so it must be shorter than a refill."""
POOLED = ("emulated", "trap", "hwdp")
"""Kinds that take frames from the free ring."""


@dataclass(frozen=True)
class Case:
    """One run."""

    setting: str
    load: miss_latency.Load
    kind: str
    device: str = ""
    """`usual` or `slow`: the two runs of the pair that shows how much refilling overlaps with the device."""

    @property
    def name(self) -> str:
        """Return the name of the run's folder."""
        kpoold = "" if self.load.kpoold else "-nokpoold"
        device = f"-{self.device}" if self.device else ""
        return f"{self.setting.replace(' ', '-')}-{self.load.threads}-{self.kind}{kpoold}{device}"


def cases(kinds: tuple[str, ...], quick: bool) -> list[Case]:
    """Return all runs. `ideal` reads the small file in both settings, because 4 GiB do not fit into memory."""
    found = []
    for setting, base, threads in [("no refill", NO_REFILL, 1), *(("small", SMALL, threads) for threads in THREADS)]:
        load = replace(load_of(base, quick), threads=threads)
        for kind in kinds:
            if kind == "ideal":
                found.append(Case(setting, replace(load, file_bytes=NO_REFILL.file_bytes), kind))
            elif setting == "small" and kind in POOLED:
                found += [Case(setting, replace(load, kpoold=kpoold), kind) for kpoold in (False, True)]
            else:
                found.append(Case(setting, load, kind))
    # Without kpted: in a longer run, it would leave less work to the faults.
    return found + [replace(case, device=device, load=replace(case.load, kpted=False)) for case in found
                    if (case.setting, case.load.threads, case.kind, case.load.kpoold) == ("small", 1, "hwdp", False)
                    for device in ("usual", "slow")]


def load_of(base: miss_latency.Load, quick: bool) -> miss_latency.Load:
    """Return a setting's load in this form. The quick form has fewer reads, of at most QUICK_FILE_BYTES."""
    return replace(miss_latency.small_load(base), file_bytes=min(base.file_bytes, QUICK_FILE_BYTES)) if quick else base


def measure(setup: Setup) -> list[dict]:
    """Return the rows of all runs, with ratios."""
    todo = cases(setup.kinds or KINDS, setup.quick)
    return rows(setup, todo, lambda case: setup.guest(dataset.image(case.load.file_bytes)))


def rows(setup: Setup, todo: list[Case], guest: Callable[[Case], guests.Guest]) -> list[dict]:
    """Return a row for each case, over the seeds. Ratios are computed from runs with the same seed."""
    seeds = SEEDS[:2] if setup.quick else SEEDS
    runs = [run_of(case, seed, guest(case)) for seed in seeds for case in todo]
    found = iter([{**record, "configuration": kept.configuration(run)}
                  for run, record in zip(runs, kept.records(build.machine(), runs, setup.at_once), strict=True)])
    by_seed = [_compared(todo, [{**next(found), "seed": seed} for _ in todo]) for seed in seeds]
    return [repeated.row({key: same[0][key] for key in NAMES}, list(same)) for same in zip(*by_seed, strict=True)]


def run_of(case: Case, seed: int, guest: guests.Guest) -> kept.Run:
    """Return the run of a case."""
    load = replace(case.load, seed=seed)
    if case.device == "slow":
        guest = replace(guest, settings=(*guest.settings, f"ssd.read_us={SLOW_READ_US}"))
    booted = load.guest(guest)
    return kept.Run(f"{case.name}, seed {seed}", booted, load.job(case.kind), partial(take, case, load, booted), FORM)


def take(case: Case, load: miss_latency.Load, guest: guests.Guest, outcome: guests.Outcome, folder: Path) -> dict:
    """Make the record of one run."""
    entry = miss_latency.read_back(case.kind, outcome, load, guest, folder / "out")
    entry["setting"] = case.setting
    entry["kpoold"] = ("on" if case.load.kpoold else "off") if case.kind in POOLED else None
    add_faults(entry, folder / "out")
    return entry


def _compared(todo: list[Case], records: list[dict]) -> list[dict]:
    """Return the records of one seed, with comparisons. The pair with different devices has no separate row."""
    pair = {case.device: entry for case, entry in zip(todo, records, strict=True) if case.device}
    found = compare([entry for case, entry in zip(todo, records, strict=True) if not case.device])
    for entry in found:
        if pair and tuple(entry[key] for key in NAMES) == ("small", 1, "hwdp", "off"):
            entry["refill_overlap_percent"] = overlap(**pair)
    return found


def overlap(usual: dict, slow: dict) -> float | None:
    """Return how many percent of the device's time a fault spends refilling the free ring. If the device takes longer, such a
    fault takes longer only by the remaining time."""
    if "refill_fault_us" not in usual or "refill_fault_us" not in slow:
        return None
    longer = slow["refill_fault_us"] - usual["refill_fault_us"]
    return 100 * (1 - longer / (slow["device_us"] - usual["device_us"]))


def add_faults(entry: dict, folder: Path) -> None:
    """Add the cost of refilling in faults: the number of such faults, and the time of their reads from fio's log."""
    stats = entry.get("kernel_stats", {})
    if entry["kind"] not in POOLED:
        return
    entry["refill_faults"] = stats.get("faults_for_want_of_frame")
    entry["frames_refilled_by_fault"] = stats.get("frames_refilled_by_fault")
    slow = sorted(latencies(folder))[-entry["refill_faults"]:] if entry["refill_faults"] else []
    if slow:
        entry["refill_fault_us"] = sum(slow) / len(slow) / 1000


def latencies(folder: Path) -> list[int]:
    """Return the latency of each read in ns."""
    return [ns for log in miss_latency.logs(folder) for _, ns in log]


def compare(records: list[dict]) -> list[dict]:
    """Add ratios to osdp and to emulated for the same setting, threads and kpoold, and of kpoold on to kpoold off. Bandwidth is
    fio's own, which includes mmap(); reading_mb_s begins at the first read.
    """
    for entry in records:
        entry["reading_mb_s"] = entry["read_bytes"] / (entry["runtime_seconds"] - entry["waited_seconds"]) / 1e6
    runs = {(entry["setting"], entry["threads"], entry["kind"], entry["kpoold"]): entry for entry in records}
    for entry in records:
        place = entry["setting"], entry["threads"]
        ideal = runs.get((*place, "ideal", None))
        if ideal and entry["kind"] != "ideal":
            entry["miss_by_difference_us"] = entry["mean_us"] - ideal["mean_us"]
        for other, kpoold in (("osdp", None), ("emulated", entry["kpoold"])):
            base = runs.get((*place, other, kpoold))
            if base and entry["kind"] not in ("ideal", other):
                entry[f"latency_ratio_to_{other}"] = base["mean_us"] / entry["mean_us"]
                entry[f"bandwidth_ratio_to_{other}"] = entry["bandwidth_mb_s"] / base["bandwidth_mb_s"]
                entry[f"reading_ratio_to_{other}"] = entry["reading_mb_s"] / base["reading_mb_s"]
        off = runs.get((*place, entry["kind"], "off"))
        if entry["kpoold"] == "on" and off:
            entry["latency_change_by_kpoold"] = 100 * (entry["mean_us"] / off["mean_us"] - 1)
            entry["bandwidth_change_by_kpoold"] = 100 * (entry["bandwidth_mb_s"] / off["bandwidth_mb_s"] - 1)
            if off.get("refill_faults"):
                entry["refill_faults_removed"] = 100 * (1 - entry["refill_faults"] / off["refill_faults"])
    return records


# The papers' values, in the order of their figures: (figure, record's key, setting, kind, kpoold, lowest, highest).
PAPER = (
    ("THESIS 5.3: miss of osdp, us", "miss_by_difference_us", "no refill", "osdp", None, 823.9, 823.9),
    ("THESIS 5.3: miss of emulated, us", "miss_by_difference_us", "no refill", "emulated", "on", 69.1, 69.1),
    ("THESIS 5.3: miss of trap, us", "miss_by_difference_us", "no refill", "trap", "on", 45.8, 45.8),
    ("THESIS 5.3: miss of hwdp, us", "miss_by_difference_us", "no refill", "hwdp", "on", 27.9, 27.9),
    ("THESIS 5.5: latency, osdp : hwdp, kpoold off", "latency_ratio_to_osdp", "small", "hwdp", "off", 5.35, 6.33),
    ("THESIS 5.5: latency, emulated : hwdp, kpoold off", "latency_ratio_to_emulated", "small", "hwdp", "off", 1.24, 1.29),
    ("THESIS 5.6: latency, osdp : hwdp, kpoold on", "latency_ratio_to_osdp", "small", "hwdp", "on", 5.55, 6.78),
    ("THESIS 5.7: bandwidth, hwdp : osdp, kpoold off", "bandwidth_ratio_to_osdp", "small", "hwdp", "off", 2.37, 3.05),
    ("THESIS 5.7: bandwidth, hwdp : emulated, kpoold off", "bandwidth_ratio_to_emulated", "small", "hwdp", "off", 1.07, 1.12),
    ("THESIS 5.7: the same without arming, hwdp : osdp", "reading_ratio_to_osdp", "small", "hwdp", "off", 2.37, 3.05),
    ("THESIS 5.7: the same without arming, hwdp : emulated", "reading_ratio_to_emulated", "small", "hwdp", "off", 1.07, 1.12),
    ("THESIS 5.6: kpoold's change of hwdp's latency, %", "latency_change_by_kpoold", "small", "hwdp", "on", -7.16, -3.92),
    ("THESIS 5.8: kpoold's change of hwdp's bandwidth, %", "bandwidth_change_by_kpoold", "small", "hwdp", "on", 1.83, 3.45),
    ("ISCA20: refill faults that kpoold removes, %", "refill_faults_removed", "small", "hwdp", "on", 44.3, 78.4),
)


def against_papers(records: list[dict]) -> list[dict]:
    """Return the papers' ranges (over the numbers of threads) beside ours."""
    rows = []
    for figure, key, setting, kind, kpoold, low, high in PAPER:
        ours = [entry[key] for entry in records
                if (entry["setting"], entry["kind"], entry["kpoold"]) == (setting, kind, kpoold) and key in entry]
        if ours:
            rows.append({"figure": figure, "paper_low": low, "paper_high": high, "low": min(ours), "high": max(ours)})
    return rows


SETTING = word("setting", "setting",
               "`no refill`: the pool holds all pages; `small`: a pool of 4 MiB; `large`: memory is full, too.")
KPOOLD = word("kpoold", "kpoold", "Is the pool refilled in the background (on), or by page faults alone (off)?")
READING = Column("reading_mb_s", "MB/s without mmap()", "Bandwidth from the first read on.", "MB/s", HIGHER, ".1f")
VS_OSDP = miss_latency.VS_OSDP
VS_EMULATED = Column("latency_ratio_to_emulated", "latency vs emulation",
                     "How many times faster a read is than with emulated: emulated's mean latency divided by this one.", "x",
                     HIGHER, ".2f")
BANDWIDTH_VS_OSDP = Column("bandwidth_ratio_to_osdp", "MB/s vs OS paging", "MB/s divided by that of osdp.", "x", HIGHER, ".2f")
READING_VS_OSDP = Column("reading_ratio_to_osdp", "MB/s without mmap() vs OS paging",
                         "MB/s without mmap() divided by that of osdp.", "x", HIGHER, ".2f")
READING_VS_EMULATED = Column("reading_ratio_to_emulated", "MB/s without mmap() vs emulation",
                             "MB/s without mmap() divided by that of emulated.", "x", HIGHER, ".2f")
REFILL_FAULTS = Column("refill_faults", "refill faults", "Page faults that met an empty pool.", "faults", LOWER, ",.0f")
REMOVED = Column("refill_faults_removed", "removed by kpoold %", "Share of the refill faults that kpoold removes.", "%", HIGHER,
                 ".1f")
REFILL_US = Column("refill_fault_us", "refill fault us", "Mean time of the reads that met an empty pool.", "us", LOWER, ".1f")
OVERLAP = Column("refill_overlap_percent", "overlap %", "Share of the device's time in which such a fault refills the pool.", "%",
                 HIGHER, ".0f")
LATENCY_BY_KPOOLD = Column("latency_change_by_kpoold", "latency by kpoold %", "What kpoold changes of the mean latency.", "%",
                           LOWER, "+.1f")
BANDWIDTH_BY_KPOOLD = Column("bandwidth_change_by_kpoold", "bandwidth by kpoold %", "What kpoold changes of MB/s.", "%", HIGHER,
                             "+.1f")
OF_ROWS = (
    SETTING, KPOOLD, READING, VS_EMULATED, BANDWIDTH_VS_OSDP, READING_VS_OSDP, READING_VS_EMULATED, REFILL_FAULTS, REMOVED,
    REFILL_US, OVERLAP, LATENCY_BY_KPOOLD, BANDWIDTH_BY_KPOOLD, *miss_latency.COLUMNS, *miss_latency.MORE,
    Column("bandwidth_ratio_to_emulated", "MB/s vs emulation", "MB/s divided by that of emulated.", "x", HIGHER, ".2f"),
    Column("frames_refilled_by_fault", "frames refilled by faults", "Frames that page faults brought into the pool.", "frames",
           None, ",.0f"),
)
"""Columns of the records that `rows` returns."""
_RUN = (figures.THREADS, figures.KIND, KPOOLD)


def _small(row: dict) -> bool:
    return row["setting"] == "small"


EXPERIMENT = Experiment(
    title="settings `no refill` and `small` of the papers: all kinds, 1, 2 and 4 threads, kpoold on and off",
    measure=measure,
    kinds=True,
    profile=True,
    about="`no refill` reads 64 MiB of a file of 320 MiB with a pool of free frames that holds them all. In `small`, each thread "
          "reads 64 MiB of a file of 4 GiB with a pool of 4 MiB, which is refilled by kpoold or by page faults alone.",
    tables={
        "small_no_refill": Table(
            (SETTING, *_RUN, figures.MEAN_US, miss_latency.MISS_US, figures.BANDWIDTH, READING, VS_OSDP, VS_EMULATED,
             BANDWIDTH_VS_OSDP, READING_VS_OSDP, REFILL_FAULTS, REMOVED, REFILL_US, OVERLAP, miss_latency.KERNEL_PER_READ),
            keys=4, views={
                "": View((SETTING, *_RUN, figures.MEAN_US, VS_OSDP, VS_EMULATED)),
                "bandwidth": View((*_RUN, figures.BANDWIDTH, READING, BANDWIDTH_VS_OSDP, READING_VS_OSDP),
                                  lambda row: _small(row) and row["kind"] in ("osdp", "emulated", "hwdp")),
                "refill": View((*_RUN, REFILL_FAULTS, REMOVED, REFILL_US, OVERLAP),
                               lambda row: _small(row) and row["kind"] in POOLED)}),
        "papers": Table(rows=against_papers, columns=(
            word("figure", "figure", "What the papers print."),
            Column("paper_low", "paper from", "Lowest value that the paper prints.", "1", None, ".2f"),
            Column("paper_high", "paper to", "Highest value that the paper prints.", "1", None, ".2f"),
            Column("low", "ours from", "Lowest value over the numbers of threads.", "1", None, ".2f"),
            Column("high", "ours to", "Highest value over the numbers of threads.", "1", None, ".2f"),
        )),
    },
    more=OF_ROWS,
)
