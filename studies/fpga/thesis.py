# SPDX-License-Identifier: Apache-2.0
"""The figures of THESIS, by number: 2.3, 5.2 to 5.12 (FPGA's figures 8 to 10 are the same). fio reads 4 KiB blocks at random on
profile vc707. The runs are those of small_no_refill, and `large` at a quarter of its size.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from trapless.guest import boot as guests
from trapless.guest import build, kept
from trapless.guest.images import dataset, ext4, sparse
from trapless.guest.job import KINDS
from trapless.loads import fio as miss_latency
from trapless.loads.fio import KERNEL_PER_READ, MISS_US
from trapless.loads.setup import Setup
from trapless.profile import profiling
from trapless.results import figures, plots
from trapless.results.columns import LOWER, Column, word
from trapless.study import repeated
from trapless.study.compared import Compared, one, spread
from trapless.study.experiment import Experiment, Table, View
from trapless.study.paper import Paper

from studies.costs import small_no_refill
from studies.costs.small_no_refill import (
    BANDWIDTH_BY_KPOOLD,
    LATENCY_BY_KPOOLD,
    NO_REFILL,
    POOLED,
    READING,
    READING_VS_EMULATED,
    READING_VS_OSDP,
    REFILL_FAULTS,
    SEEDS,
    SMALL,
    THREADS,
    Case,
    load_of,
)

LARGE = miss_latency.Load(file_bytes=4096 * ext4.MIB, read_bytes=512 * ext4.MIB, ring=1024, log_ms=10)
"""A quarter of the papers' 16 GB and 2 GB; the free ring keeps its 4 MiB."""
LARGE_MEMORY_MIB = 256
"""A quarter of the papers' 1 GB."""
QUICK_SHARE = 8
"""The quick form divides all sizes by this number."""
LARGE_KINDS = tuple(kind for kind in KINDS if kind != "ideal")
"""`ideal` is impossible, because the file does not fit into memory."""
_ATTRIBUTE = "attribute"
_FORM = "thesis 1"
paper = Paper(__file__)


def no_refill(setup: Setup) -> list[dict]:
    """Measure the setting `no refill`: one thread, a free ring that is never refilled."""
    load = load_of(NO_REFILL, setup.quick)
    todo = [Case("no refill", load, kind) for kind in KINDS]
    return small_no_refill.rows(setup, todo, lambda case: setup.guest(dataset.image(case.load.file_bytes)))


def small(kpoold: bool) -> Callable[[Setup], list[dict]]:
    """Return a function that measures the setting `small`, with or without kpoold. With kpoold, rows also have what kpoold
    changes."""
    def measure(setup: Setup) -> list[dict]:
        load = load_of(SMALL, setup.quick)
        todo = [Case("small", replace(load, threads=threads, kpoold=on), kind) for threads in THREADS for kind in LARGE_KINDS
                for on in ((False, True) if kpoold and kind in POOLED else (kpoold or kind not in POOLED,))]
        rows = small_no_refill.rows(setup, todo, lambda case: setup.guest(dataset.image(case.load.file_bytes)))
        return [row for row in rows if row["kpoold"] != ("off" if kpoold else "on")]
    return measure


def large(kpoold: bool) -> Callable[[Setup], list[dict]]:
    """Return a function that measures the setting `large`, with or without kpoold: memory is full, and each page that is read
    evicts another one."""
    def measure(setup: Setup) -> list[dict]:
        share = QUICK_SHARE if setup.quick else 1
        load = replace(LARGE, file_bytes=LARGE.file_bytes // share, read_bytes=LARGE.read_bytes // share)
        disk = sparse.image(load.file_bytes)
        # The kernel itself needs this much, however small memory is.
        memory = max(LARGE_MEMORY_MIB // share, 96)
        guest = replace(setup.guest(disk), memory=f"{memory}M", max_seconds=3600)
        threads = (1, 4) if setup.quick else THREADS
        todo = [Case("large", replace(load, threads=count, kpoold=kpoold or kind not in POOLED), kind)
                for count in threads for kind in LARGE_KINDS]
        return small_no_refill.rows(setup, todo, lambda case: guest)
    return measure


def figure_2_3(setup: Setup) -> list[dict]:
    """Return the parts of a read with osdp: the program's (ideal), the device's, and the rest."""
    rows = {row["kind"]: row for row in no_refill(replace(setup, kinds=())) if row["kind"] in ("ideal", "osdp")}
    ideal, osdp = rows["ideal"], rows["osdp"]
    miss, device = osdp["miss_by_difference_us"], osdp["device_us"]
    others = [run["miss_by_difference_us"] - run["device_us"] for run in osdp[repeated.RUNS]]
    shown = (("whole read", osdp["mean_us"], osdp["mean_us_ci"], paper("2.3", "osdp")),
             ("ideal", ideal["mean_us"], ideal["mean_us_ci"], paper("2.3", "ideal")),
             ("page fault", miss, osdp["miss_by_difference_us_ci"], paper("2.3", "osdp") - paper("2.3", "ideal")),
             ("device", device, osdp["device_us_ci"], paper("2.3", "device")),
             ("others", miss - device, repeated.half_width(others),
              paper("2.3", "osdp") - paper("2.3", "ideal") - paper("2.3", "device")))
    return [{"part": part, "us": us, "us_ci": wide, "paper": printed_us,
             "kernel_instructions_per_op": (ideal if part == "ideal" else osdp)["kernel_instructions_per_op"],
             repeated.RUNS: [*osdp[repeated.RUNS], *ideal[repeated.RUNS]] if part == "whole read" else []}
            for part, us, wide, printed_us in shown]


def compared_2_3(rows: list[dict]) -> list[Compared]:
    """Compare each part with the thesis."""
    others = next(row["us"] for row in rows if row["part"] == "others")

    def why(row: dict) -> str:
        kernel = row["kernel_instructions_per_op"]
        if row["part"] == "ideal":
            return (f"With every page in memory the kernel executes {kernel:,.0f} instructions per read here; the rest is "
                    "fio's own code. Profile vc707 has no caches, so each instruction takes one cycle or a few. The "
                    "prototype's caches have 16 KiB.")
        return (f"The kernel executes {kernel:,.0f} instructions per read here, in {others:.0f} us. Profile vc707 has no "
                "caches, so each instruction takes one cycle or a few. In a cold path, the prototype's 16 KiB caches miss at "
                "nearly every line. Its kernel is Linux 4.15.")

    return [Compared(f"{row['part']} of a read with osdp", "us", one(row["paper"]), one(row["us"]), row["us_ci"], why(row))
            for row in rows]


def figure_5_4(setup: Setup) -> list[dict]:
    """Return the parts of a miss by kind, from attributed runs: software before and after the device, the device, the SMU, the
    rest."""
    load = load_of(NO_REFILL, setup.quick)
    seeds = SEEDS[:2] if setup.quick else SEEDS
    runs = [_attributed(setup, load, kind, seed) for seed in seeds for kind in KINDS]
    found = iter(zip(runs, kept.records(build.machine(), runs, setup.at_once), strict=True))
    by_kind: dict[str, list[dict]] = {kind: [] for kind in KINDS}
    for seed in seeds:
        ran = [(kind, *next(found)) for kind in KINDS]
        rows = profiling.kind_rows([(kind, record["profile"], record["stats"]) for kind, _, record in ran])
        parts = {row["kind"]: {**row, "software": row["before"] + row["after"]} for row in rows}
        for kind, run, record in ran:
            by_kind[kind].append({**parts.get(kind, {}), "user_us": profiling.user_us(record["profile"]), "seed": seed,
                                  "git": record["git"], "configuration": kept.configuration(run)})
    ideal, *rows = (repeated.row({"kind": kind}, same) for kind, same in by_kind.items())
    # `ideal`, with which the user code of the other kinds is compared, has no row, but its runs are recorded.
    rows[0][repeated.RUNS] += ideal[repeated.RUNS]
    return rows


def _attributed(setup: Setup, load: miss_latency.Load, kind: str, seed: int) -> kept.Run:
    load = replace(load, seed=seed)
    guest = load.guest(setup.guest(dataset.image(load.file_bytes)))
    symbols = profiling.symbols_of(guest.kernel)
    attribute = profiling.Attribute(Path(kept.FOLDER, _ATTRIBUTE), "roi", (str(symbols),))
    guest = replace(guest, options=(*attribute.options(), "--attribute-limit", "0"))
    return kept.Run(f"no refill, {kind}, attributed, seed {seed}", guest, load.job(kind), _take, _FORM, (symbols,))


def _take(outcome: guests.Outcome, folder: Path) -> dict:
    profile = json.loads((folder / _ATTRIBUTE / "profile.json").read_text())
    rois = [{key: region[key] for key in ("hw_miss", "port_miss")} for region in outcome.stats["rois"]]
    return {"profile": {key: profile[key] for key in ("clock_hz", "categories", "faults")}, "stats": {"rois": rois},
            "git": outcome.stats.get("git")}


PARTS_5_4 = {"before": "before (software)", "device": "device", "smu": "SMU", "after": "after (software)", "pollution": "others"}


def parts_5_4(rows: list[dict]) -> list[dict]:
    """Return one row for each part of a bar."""
    return [{"kind": row["kind"], "part": part, "us": row[key]} for row in rows for key, part in PARTS_5_4.items()
            if row.get(key) is not None]


def _by(rows: list[dict], **values: object) -> list[dict]:
    return [row for row in rows if values.items() <= row.items()]


def compared_5_2(rows: list[dict]) -> list[Compared]:
    """Compare osdp, whose bar exceeds the figure; the figure has its value beside it."""
    (osdp,) = _by(rows, kind="osdp")
    return [Compared("latency of a read with osdp", "us", one(paper("5.2", "osdp")), one(osdp["mean_us"]), osdp["mean_us_ci"],
                     _why(rows))]


def compared_5_3(rows: list[dict]) -> list[Compared]:
    """Compare a miss of each kind."""
    return [Compared(f"a miss with {row['kind']}", "us", one(paper("5.3", row["kind"])), one(row["miss_by_difference_us"]),
                     row["miss_by_difference_us_ci"], _why(rows)) for row in rows if row["kind"] != "ideal"]


def compared_5_4(rows: list[dict]) -> list[Compared]:
    """Compare the values that the thesis prints in its text."""
    (emulated,), (trap,) = _by(rows, kind="emulated"), _by(rows, kind="trap")
    why = (f"trap: {trap['before']:.1f} us before and {trap['after']:.1f} us after the hardware. They belong to a page "
           "fault that only asks the hardware. Profile vc707 has no caches.")
    return [Compared("device's part of a miss with emulated", "us", one(paper("5.4", "emulated_device")),
                     one(emulated["device"]), emulated["device_ci"]),
            Compared("software's part of a miss with trap", "us", one(paper("5.4", "trap_software")),
                     one(trap["software"]), trap["software_ci"], why)]


def _why(rows: list[dict]) -> str:
    """Explain differences by the number of instructions and the time of one. They cause most of the difference to a prototype
    with small caches."""
    parts = [f"{row['kind']} {row['kernel_instructions_per_op']:,.0f}" for row in rows
             if row["threads"] == rows[0]["threads"] and row["kind"] != "ideal"]
    return (f"Kernel instructions per read here: {', '.join(dict.fromkeys(parts))}. Profile vc707 has no caches, so each takes "
            "one cycle or a few, while the prototype's caches of 16 KiB miss in cold paths.")


def ratios(figure: str, key: str) -> Callable[[list[dict]], list[Compared]]:
    """Return a function that compares hwdp with osdp and emulated, by `latency` or by `reading` (bandwidth from the first read
    on)."""
    words = {"latency": "latency, {} : hwdp", "reading": "bandwidth without mmap(), hwdp : {}"}

    def compared(rows: list[dict]) -> list[Compared]:
        found = []
        for other in ("osdp", "emulated"):
            name = f"{key}_ratio_to_{other}"
            mine = [row for row in _by(rows, kind="hwdp") if row.get(name) is not None]
            values = paper(figure, other)
            if mine:
                wide = max((row[name + repeated.INTERVAL] or 0 for row in mine), default=None)
                found.append(Compared(words[key].format(other), "x", values and tuple(values),
                                      spread([row[name] for row in mine]), wide,
                                      _why(rows) + (_between(mine) if key == "reading" else "") + _refills(mine)))
        return found
    return compared


def _between(mine: list[dict]) -> str:
    """Explain what a thread does between reads, for the number of threads where this time is longest."""
    most = max(mine, key=lambda row: row["threads"])
    whole = most["threads"] * miss_latency.BLOCK / most["reading_mb_s"]
    return (f" With {most['threads']} threads, each thread needs {whole:.0f} us from read to read, but a read takes only "
            f"{most['mean_us']:.0f} us. The rest is fio's own code, and the kernel's threads that run on the same cores (kpted, "
            "reclaim, and kpoold if it is on).")


def _refills(mine: list[dict]) -> str:
    """Explain what refilling in faults costs, where it matters."""
    slow = [row for row in mine if row.get("refill_fault_us")]
    if not slow:
        return ""
    worst = max(slow, key=lambda row: row["refill_faults"] * row["refill_fault_us"])
    return (f" With {worst['threads']} threads {worst['refill_faults']:,.0f} of {worst['ops']:,.0f} reads found the pool empty "
            f"and took {worst['refill_fault_us']:,.0f} us on average: such a fault adopts pages before it takes frames (OS-9).")


def with_kpoold(figure: str, key: str, word: str) -> Callable[[list[dict]], list[Compared]]:
    """Return a function that compares the ratios, and what kpoold changes."""
    def compared(rows: list[dict]) -> list[Compared]:
        name = f"{word}_change_by_kpoold"
        mine = [row for row in _by(rows, kind="hwdp") if row.get(name) is not None]
        found = ratios(figure, key)(rows)
        if mine:
            removed = [row["refill_faults_removed"] for row in mine if row.get("refill_faults_removed") is not None]
            found.append(Compared(
                f"kpoold's change of hwdp's {word}", "%", tuple(paper(figure, "kpoold")), spread([row[name] for row in mine]),
                max(row[name + repeated.INTERVAL] or 0 for row in mine),
                f"kpoold removes {min(removed, default=0):.0f} to {max(removed, default=0):.0f} % of the faults that find "
                "no free frame. These faults cost far more here: see figures 5.5 and 5.7."))
        return found
    return compared


READ_US = figures.MEAN_US
NO_REFILL_COLUMNS = (
    figures.KIND, READ_US, READ_US.interval("± us"), MISS_US, MISS_US.interval("± miss us"), figures.DEVICE_US, KERNEL_PER_READ)
THREADS_AND_KIND = (figures.THREADS, figures.KIND)
BY_THREADS = (
    *THREADS_AND_KIND, READ_US, READ_US.interval("± us"), small_no_refill.VS_OSDP, small_no_refill.VS_EMULATED, figures.BANDWIDTH,
    READING, READING.interval("± MB/s"), READING_VS_OSDP, READING_VS_EMULATED, REFILL_FAULTS, KERNEL_PER_READ)
KPOOLD = (LATENCY_BY_KPOOLD, BANDWIDTH_BY_KPOOLD)
LATENCY_VIEW = (*THREADS_AND_KIND, READ_US, small_no_refill.VS_OSDP, small_no_refill.VS_EMULATED)
BANDWIDTH_VIEW = (*THREADS_AND_KIND, figures.BANDWIDTH, READING, READING_VS_OSDP, READING_VS_EMULATED)
LATENCY = plots.Bars("threads", "kind", "mean_us", "us per read")
BANDWIDTH = plots.Bars("threads", "kind", "reading_mb_s", "MB/s without mmap()")
ABOUT = {
    "no refill": "fio reads 64 MiB of a file of 320 MiB with one thread; the pool holds more than it reads.",
    "small": "fio's threads read 64 MiB each of a file of 4 GiB; the pool of 4 MiB is refilled all the time.",
    "large": "fio's threads read 512 MiB each of a file of 4 GiB, with 256 MiB of memory and a pool of 4 MiB: a quarter of the "
             "thesis's 2 GB, 16 GB and 1 GB. `./trapless study large` uses the thesis's sizes, with 4 threads.",
}

EXPERIMENTS: dict[str, Experiment] = {}


def _add(figure: str, title: str, measure: Callable[[Setup], list[dict]], columns: tuple[Column, ...], about: str, keys: int = 1,
         compared: Callable[[list[dict]], list[Compared]] = lambda rows: [], view: tuple[Column, ...] = (),
         more: tuple[Column, ...] = small_no_refill.OF_ROWS, **drawn: plots.Plot) -> None:
    """Add an experiment with one table. Its page shows the columns of `view`, or all columns."""
    name = f"thesis-{figure}"
    shown = Table(columns, keys, views={"": View(view)} if view else {})
    EXPERIMENTS[name] = Experiment(f"{title} (THESIS figure {figure})", measure, {name: shown}, drawn, more=more,
                                   about=ABOUT[about], compared=compared, profile=True)


US = Column("us", "us", "Mean time of the part.", "us", LOWER, ".2f")
_add("2.3", "parts of a read with osdp", figure_2_3, (
    word("part", "part", "A part of a read."), US, US.interval("± us"), Column("paper", "paper us", "The thesis's value.", "us",
                                                                               None, ".2f")),
    "no refill", compared=compared_2_3,
    parts=plots.Bars("part", "kind", "us", "us", "paper", lambda rows: [{**row, "kind": "osdp"} for row in rows]))
_add("5.2", "latency of a read by kind, no refill", no_refill, NO_REFILL_COLUMNS, "no refill", compared=compared_5_2,
     latency=plots.Bars("setting", "kind", "mean_us", "us per read"))
_add("5.3", "time of a miss by kind, no refill", no_refill, NO_REFILL_COLUMNS, "no refill", compared=compared_5_3,
     miss=plots.Bars("setting", "kind", "miss_by_difference_us", "us per miss"))
_add("5.4", "parts of a miss by kind", figure_5_4, (
    figures.KIND, *(part.but(form=".2f") for part in (
        profiling.BEFORE_US, profiling.DEVICE_PART, profiling.SMU_US, profiling.AFTER_US, profiling.WHOLE_US)),
    profiling.WHOLE_US.interval("± us", ".2f"), profiling.POLLUTION.but(form=".2f")), "no refill", compared=compared_5_4,
    more=(*profiling.OF_KINDS,
          Column("software", "software us", "Mean time of software before and after the device.", "us", LOWER, ".2f"),
          Column("user_us", "user us", "Time of user code, all harts together.", "us", LOWER, ".0f")),
    parts=plots.Bars("kind", "part", "us", "us per miss", rows=parts_5_4, stacked=True))
_add("5.5", "latency of a read, small, no kpoold", small(False), BY_THREADS, "small", 2, ratios("5.5", "latency"),
     (*LATENCY_VIEW, REFILL_FAULTS, KERNEL_PER_READ), latency=LATENCY)
_add("5.6", "latency of a read, small, kpoold", small(True), (*BY_THREADS, *KPOOLD), "small", 2,
     with_kpoold("5.6", "latency", "latency"), (*LATENCY_VIEW, LATENCY_BY_KPOOLD, KERNEL_PER_READ), latency=LATENCY)
_add("5.7", "bandwidth, small, no kpoold", small(False), BY_THREADS, "small", 2, ratios("5.7", "reading"), BANDWIDTH_VIEW,
     bandwidth=BANDWIDTH)
_add("5.8", "bandwidth, small, kpoold", small(True), (*BY_THREADS, *KPOOLD), "small", 2,
     with_kpoold("5.8", "reading", "bandwidth"), (*BANDWIDTH_VIEW, BANDWIDTH_BY_KPOOLD), bandwidth=BANDWIDTH)
_add("5.9", "latency of a read, large, no kpoold", large(False), BY_THREADS, "large", 2, ratios("5.9", "latency"),
     (*LATENCY_VIEW, REFILL_FAULTS, KERNEL_PER_READ), latency=LATENCY)
_add("5.10", "latency of a read, large, kpoold", large(True), BY_THREADS, "large", 2, ratios("5.9", "latency"),
     (*LATENCY_VIEW, REFILL_FAULTS, KERNEL_PER_READ), latency=LATENCY)
_add("5.11", "bandwidth, large, no kpoold", large(False), BY_THREADS, "large", 2, ratios("5.11", "reading"), BANDWIDTH_VIEW,
     bandwidth=BANDWIDTH)
_add("5.12", "bandwidth, large, kpoold", large(True), BY_THREADS, "large", 2, ratios("5.11", "reading"), BANDWIDTH_VIEW,
     bandwidth=BANDWIDTH)
