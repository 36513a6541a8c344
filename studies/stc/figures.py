# SPDX-License-Identifier: Apache-2.0
"""The figures of STC, and experiments beyond them: cycles of page faults' walks, from the machine's attribution
(studies/stc/results.md).

Each figure is a list of cases: a program that causes page faults, and a variant of the kernel. Runs are kept in the cache, so
figures share their common runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import sqrt
from statistics import stdev

from trapless.loads.setup import Setup
from trapless.results import figures, plots
from trapless.results.columns import HIGHER, LOWER, Column, word
from trapless.study import repeated
from trapless.study.compared import Compared
from trapless.study.experiment import Experiment, Table, View
from trapless.study.paper import Paper

from studies.stc import compared as stc_compared
from studies.stc import runs
from studies.stc.runs import Case

OFF, PAPER, OURS = "off", "paper", "ours"
VARIANTS = {
    runs.STOCK: runs.STOCK,
    OFF: "stc=off",
    PAPER: "stc=vma,lines=16,ways=1,entry,folded,from-top",
    OURS: "",
}
"""Words for the kernel's command line, by the variant's name in tables."""
MORE_VARIANTS = {words: f"stc={words}" for words in (
    "lines=1", "lines=2", "lines=16", "lines=16,ways=2", "lines=16,entry", "upper", "folded", "vma", "vma,entry,lines=16", "cpu")}
"""Variants that the paper leaves open. Each differs from our default only in what its words say."""
ORDERS = ("seq", "semi", "random")
THREADS = (1, 2, 4, 8)
DIMENSIONS = tuple(range(100, 1001, 100))
"""Rows of matrices."""
PAGES_AT_ONCE = (1, 4, 8, 16, 32)
"""Values of the multi-alloc parameter; Linux has no 2."""
LEVELS = ("sv39", "sv48", "sv57")
FOUR_LEVELS = "sv48"
"""Paging of the paper's figures: its processor has four levels of page tables."""
PLACES = "-c 0,2,4,6,1,3,5,7"
"""Places threads on processors: each on a separate core if there are enough (two harts of `server` are one core)."""
MIB_PAGES = 256
BOOTS, SHORT_BOOTS, MORE_MIB = 3, 12, 16
"""Number of boots of a run that is compared with another kernel or with the paper, and of a short run of this sort; and the MiB
of memory that each further boot has in addition, because the result depends on which pages are free. Figures are means over the
boots."""
LONG_BOOTS, BOOTED_ROWS = 2, 500
"""Number of boots of the longest runs of figures 6 and 7; and the most rows of a matrix that is always booted BOOTS times. Larger
matrices are booted LONG_BOOTS times if the paper has a value for them, otherwise once."""
LONG = ("pagefault, 8 threads", "stress-ng --fault")
"""Microbenchmarks whose runs take long."""
paper = Paper(__file__)


def touch(order: str, threads: int, pages: int, mib: int = 1024, at_once: int = 1, **more: object) -> Case:
    """Return a case in which each thread touches `pages` pages of a region of `mib` MiB."""
    # Memory of a touched page: the page, the pages that are allocated with it, and at worst two separate tables. The upper bound
    # is the region with its tables.
    each = min(pages * (at_once + 2), mib * MIB_PAGES * 33 // 32)
    return Case(f"faultwork {order} -t {threads} {PLACES} -b {mib}M -n {pages}",
                memory_mib=_rounded(threads * each // MIB_PAGES), pages=at_once, **{"paging": FOUR_LEVELS, **more})


def multiply(rows: int, **more: object) -> Case:
    """Return a case with a matrix multiplication."""
    return Case(f"faultwork matmul {PLACES} {rows}", **{"paging": FOUR_LEVELS, **more})


def _rounded(mib: int) -> int:
    """Round up to gigabytes, so that runs with similar needs run together."""
    return -(-mib // 1024) * 1024


def measure(setup: Setup, cases: Sequence[tuple[dict, Case]], boots: Callable[[dict], int] = lambda names: 1) -> list[dict]:
    """Return a row for each case: the means of its figures over its boots, which are its runs. `boots` gives their number; the
    quick form has one."""
    again = [[replace(case, memory_mib=case.memory_mib + boot * MORE_MIB) for boot in range(1 if setup.quick else boots(names))]
             for names, case in cases]
    found = iter(runs.records(setup, [one for each in again for one in each]))
    return [repeated.row(names, [{**_figures(next(found), case), "seed": boot} for boot in range(1, len(each) + 1)])
            for (names, case), each in zip(cases, again, strict=True)]


def measure_again(setup: Setup, cases: Sequence[tuple[dict, Case]], error: str,
                  boots: Callable[[dict], int] = lambda names: BOOTS) -> list[dict]:
    """Return the records of `measure` with the number of boots. `error` names the figure whose standard error is shown."""
    return [told(row, error) for row in measure(setup, cases, boots)]


def told(row: dict, error: str) -> dict:
    """Return the row with its number of boots and the standard error of the figure's mean, in percent (None for one boot)."""
    values = [run[error] for run in row[repeated.RUNS]]
    wide = 100 * stdev(values) / sqrt(len(values)) / row[error] if len(values) > 1 else None
    return {**row, "boots": len(values), "error": wide}


def _figures(record: dict, case: Case) -> dict:
    spent = {key: record[key] for key in ("cycles", "instructions", "host_seconds", "configuration")}
    if not case.attributed:
        return spent
    return {**runs.figures(record), **spent, **({"hits": None} if case.words == VARIANTS[OFF] else {})}


def compare(records: list[dict], names: Sequence[str]) -> list[dict]:
    """Add percentages against runs of the same work: of the walk against no cache, and of the whole fault against no cache and
    against the unpatched kernel. `names` are the keys that identify the work."""
    def work(record: dict) -> tuple:
        return tuple(record[name] for name in names)

    by_variant = {(work(record), record["variant"]): record for record in records}
    for record in records:
        off, stock = (by_variant.get((work(record), variant)) for variant in (OFF, runs.STOCK))
        if off and record["variant"] not in (OFF, runs.STOCK):
            _against(record, off, "walk", "saved", percent_less)
        for key, base in (("over_off", off), ("over_stock", stock)):
            if base and record is not base:
                _against(record, base, "fault", key)
    return records


def percent_less(figure: float, base: float) -> float:
    """Return by how many percent the figure is less than the base."""
    return 100 * (1 - figure / base)


def _against(row: dict, base: dict, key: str, name: str, change: Callable[[float, float], float] = repeated.percent_more) -> None:
    """Add under `name` the result of `change`, in percent, for the means of `key`, and its interval; add it also to each run. The
    row's value is not the mean of the runs' values, because boots of the same number need not be alike."""
    pairs = list(zip(row[repeated.RUNS], base[repeated.RUNS], strict=True))
    wide = repeated.half_width_of_ratio([run[key] for run, _ in pairs], [before[key] for _, before in pairs])
    row[name], row[name + repeated.INTERVAL] = change(row[key], base[key]), None if wide is None else 100 * wide
    for run, before in pairs:
        run[name] = change(run[key], before[key])


def usual(setup: Setup) -> list[str]:
    """Return the variants of the figures. The quick form leaves out the unpatched kernel: the quick form's kernel has huge pages
    and the unpatched one does not, so they cannot be compared."""
    return [name for name in VARIANTS if not (setup.quick and name == runs.STOCK)]


def variants(cases: Iterable[tuple[dict, Case]], names: Iterable[str]) -> list[tuple[dict, Case]]:
    """Return each case with each variant."""
    known = VARIANTS | MORE_VARIANTS
    names = list(names)
    return [({**values, "variant": name}, replace(case, words=known[name])) for values, case in cases for name in names]


def figures_2_3(setup: Setup) -> list[dict]:
    """Measure without a cache: the share of the program's time in faults and in their walks, by the number of pages that a fault
    allocates."""
    # Touch only a few of the region's pages. Otherwise, a page that a fault allocates in addition is often touched later.
    mib, pages = (1024, 4096) if setup.quick else (4096, 16384)
    return measure_again(setup, [({"order": order, "pages": at_once}, touch(order, 1, pages, mib, at_once))
                                 for order in ORDERS for at_once in PAGES_AT_ONCE], "fault")


def figure_4(setup: Setup) -> list[dict]:
    """Measure without a cache: the walk's share of a fault, in matrix multiplication."""
    records = measure_again(setup, [({"rows": rows}, multiply(rows)) for rows in dimensions(setup)], "fault", boots_of_matrix)
    return [{**record, "paper_least": paper("4", "least"), "paper_most": paper("4", "most")} for record in records]


def dimensions(setup: Setup) -> tuple[int, ...]:
    """Return the numbers of rows of the matrices."""
    return DIMENSIONS[:2] if setup.quick else DIMENSIONS


def boots_of_matrix(names: dict) -> int:
    """Return how often a matrix is multiplied."""
    if names["rows"] <= BOOTED_ROWS:
        return BOOTS
    return LONG_BOOTS if paper("7", names["rows"]) else 1


def figure_6(setup: Setup) -> list[dict]:
    """Measure the walk cycles that the caches save, by order and threads."""
    pages = 4096 if setup.quick else 1024 * MIB_PAGES // 5 * 5
    work = [({"order": order, "threads": threads}, touch(order, threads, pages)) for threads in THREADS for order in ORDERS]
    records = measure_again(setup, variants(work, usual(setup)), "fault",
                            lambda names: LONG_BOOTS if names["threads"] == max(THREADS) else BOOTS)
    return _beside_paper(compare(records, ("order", "threads")), "6", "order", "threads")


def figure_7(setup: Setup) -> list[dict]:
    """Measure the walk cycles that the caches save in matrix multiplication."""
    work = [({"rows": rows}, multiply(rows)) for rows in dimensions(setup)]
    records = measure_again(setup, variants(work, usual(setup)), "fault", boots_of_matrix)
    return _beside_paper(compare(records, ("rows",)), "7", "rows")


def _beside_paper(records: list[dict], figure: str, *names: str) -> list[dict]:
    """Add the paper's saving to the records that are compared with it."""
    for record in records:
        if "saved" in record:
            record["paper"] = paper(figure, *(record[name] for name in names))
    return records


def beyond(setup: Setup) -> list[dict]:
    """Measure what the paper leaves open: variants, levels of page tables, threads, regions far larger than memory."""
    pages = 4096 if setup.quick else 65536
    far = {"sv39": 128 << 10, "sv48": 1 << 20, "sv57": 1 << 20}
    names = list(VARIANTS)[1:] + ([] if setup.quick else list(MORE_VARIANTS))
    work = [({"paging": paging, "work": title}, replace(case, paging=paging))
            for paging in LEVELS for title, case in (
                ("seq", touch("seq", 1, pages)),
                ("random", touch("random", 1, pages)),
                ("random, 8 threads", touch("random", 8, pages // 8)),
                (f"random, {far[paging] >> 10} GiB", touch("random", 1, pages // 4, far[paging])),
            )]
    return compare(measure(setup, variants(work, names)), ("paging", "work"))


def costs(setup: Setup) -> list[dict]:
    """Measure the whole time of microbenchmarks like will-it-scale's, and of stress-ng's page faults; means over several
    boots."""
    many = 1 if setup.quick else 8
    work = [({"work": title}, Case(f"faultwork {command}", attributed=False, paging=FOUR_LEVELS, packages=("stress-ng",)))
            for title, command in (
                ("pagefault", f"pagefault {PLACES} -b 32M -n {many}"),
                ("pagefault, 8 threads", f"pagefault -t 8 {PLACES} -b 32M -n {many}"),
                ("filefault", f"filefault {PLACES} -b 32M -n {many}"),
                ("munmap", f"munmap {PLACES} -b 1G -n {10 * many}"),
                ("fork", f"fork {PLACES} -n {50 * many}"),
                ("exec", f"exec {PLACES} -n {25 * many}"),
                ("exec, 8 threads", f"exec -t 8 {PLACES} -n {10 * many}"),
                ("stress-ng --fault", f"run stress-ng --quiet --seed 1 --temp-path /tmp --fault 1 --fault-ops {1000 * many}"),
            )]
    records = measure_again(setup, variants(work, usual(setup)), "cycles",
                            lambda names: BOOTS if names["work"] in LONG else SHORT_BOOTS)
    by_variant = {(record["work"], record["variant"]): record for record in records}
    for record in records:
        for key, base in (("off", OFF), ("stock", runs.STOCK)):
            other = by_variant.get((record["work"], base))
            if other and record is not other:
                for counted in ("cycles", "instructions"):
                    _against(record, other, counted, f"{counted}_over_{key}")
    return records


ORDER = word("order", "order", "In which order pages are touched: one after the other, in stretches, or at random.")
ROWS = Column("rows", "rows", "Rows of the matrices.", "rows", None, "d")
AT_ONCE = Column("pages", "pages per fault", "Pages of 4 KiB that a page fault allocates.", "pages", None, "d")
VARIANT = word("variant", "variant", "The unpatched kernel (stock), the series with stc=off, or a design of the cache.")
WORK = word("work", "work", "What the program does.")
PAGING = word("paging", "paging", "Levels of page tables: Sv39 has three, Sv48 four, Sv57 five.")
BOOTED = (Column("boots", "boots", "Boots over which figures are means.", "boots", None, "d"),
          Column("error", "standard error %", "Standard error of the mean in percent of it.", "%", LOWER, ".2f"))
PAPER_SAVED = Column("paper", "paper %", "The share of walk cycles that the paper's cache saves.", "%", None, ".0f")
PAPER_RANGE = (Column("paper_least", "paper from %", "The least share that the paper prints.", "%", None, ".0f"),
               Column("paper_most", "paper to %", "The greatest share that the paper prints.", "%", None, ".0f"))
SAVED_SHARE = Column("saved", "walk cycles saved %", "By how many percent walk cycles are less than with stc=off.", "%", HIGHER,
                     ".1f")
OVER_OFF = Column("over_off", "fault over off %", "By how many percent fault cycles are more than with stc=off.", "%", LOWER,
                  "+.2f")
OVER_STOCK = Column("over_stock", "fault over stock %",
                    "By how many percent fault cycles are more than on the unpatched kernel.", "%", LOWER, "+.2f")
CYCLES_OVER = {base: Column(f"cycles_over_{base}", f"over {base} %", f"By how many percent cycles are more than with {base}.",
                            "%", LOWER, "+.2f") for base in ("off", "stock")}
INSTRUCTIONS_OVER = {base: Column(f"instructions_over_{base}", f"instructions over {base} %",
                                  f"By how many percent instructions are more than with {base}.", "%", LOWER, "+.2f")
                     for base in ("off", "stock")}
COMPARED = (VARIANT, runs.FAULTS, runs.WALK_CYCLES, SAVED_SHARE, PAPER_SAVED, runs.HANDLER, runs.FAULT_CYCLES, OVER_OFF,
            OVER_STOCK)
ABOUT = ("The machine counts each function's cycles; nothing in the guest measures (studies/stc/results.md). A run repeats to "
         "the cycle, so results of one boot have no interval.")
SAVED = "cycles of walks saved, %"


def with_walk(row: dict) -> bool:
    """Whether the row's kernel has a separate walk. The unpatched kernel has none."""
    return row["variant"] != runs.STOCK


def user_gains(row: dict) -> bool:
    """Whether the row shows what a user gains: the series against the unpatched kernel."""
    return row["variant"] in (runs.STOCK, OURS)


def compared(records: list[dict]) -> list[dict]:
    """Return the records that have a saving to draw."""
    return [record for record in records if "saved" in record]


def by_work(records: list[dict]) -> list[dict]:
    """Return the same records, with order and threads joined in one key."""
    return [{**record, "work": f"{record['order']} {record['threads']}"} for record in compared(records)]


EXPERIMENTS: dict[str, Experiment] = {}


def _add(name: str, title: str, measured: Callable[[Setup], list[dict]], columns: tuple[Column, ...], keys: int = 1,
         beside: Callable[[list[dict]], list[Compared]] = lambda rows: [], views: dict[str, View] | None = None,
         more: tuple[Column, ...] = runs.COLUMNS, **drawn: plots.Plot) -> None:
    """Add an experiment with one table of the same name; `beside` returns the paper's values beside ours."""
    EXPERIMENTS[name] = Experiment(title, measured, {name: Table(columns, keys, views=views or {})}, drawn, more,
                                   about=f"{inspect.getdoc(measured)} {ABOUT}", compared=beside)


_add("stc-2", "share of execution time in page faults, by pages per fault (STC 2)", figures_2_3, (
    ORDER, AT_ONCE, runs.FAULTS, runs.FAULT_CYCLES, runs.FAULT_SHARE, *BOOTED,
), keys=2, beside=stc_compared.shares("fault_share", "time in page faults"),
     share=plots.Lines("pages", "order", "fault_share", "pages per fault", "time in page faults, %"))
_add("stc-3", "share of execution time in page walks, by pages per fault (STC 3)", figures_2_3, (
    ORDER, AT_ONCE, runs.FAULTS, runs.WALK_CYCLES, runs.WALK_SHARE, *BOOTED,
), keys=2, beside=stc_compared.shares("walk_share", "time in page walks"),
     share=plots.Lines("pages", "order", "walk_share", "pages per fault", "time in page walks, %"))
_add("stc-4", "walk : fault, matrix multiplication (STC 4)", figure_4, (
    ROWS, runs.FAULTS, runs.WALK_CYCLES, runs.FAULT_CYCLES, runs.WALK_OF_FAULT, runs.WALK_OF_HANDLER, *PAPER_RANGE, *BOOTED,
), beside=stc_compared.walks, views={"": View((
    ROWS, runs.WALK_CYCLES, runs.FAULT_CYCLES, runs.WALK_OF_FAULT, runs.WALK_OF_HANDLER, *PAPER_RANGE))})
_add("stc-6", "cycles of walks saved, by order and threads (STC 6)", figure_6, (ORDER, figures.THREADS, *COMPARED, *BOOTED),
     keys=3, beside=stc_compared.savings("order", "threads"), views={
         "": View((ORDER, figures.THREADS, VARIANT, runs.WALK_CYCLES, SAVED_SHARE, PAPER_SAVED, OVER_OFF), with_walk),
         "fault": View((ORDER, figures.THREADS, VARIANT, runs.HANDLER, runs.FAULT_CYCLES, OVER_STOCK, BOOTED[1]), user_gains)},
     saved=plots.Bars("work", "variant", "saved", SAVED, "paper", by_work))
_add("stc-7", "cycles of walks saved, matrix multiplication (STC 7)", figure_7, (ROWS, *COMPARED, *BOOTED), keys=2,
     beside=stc_compared.savings("rows"), views={
         "": View((ROWS, VARIANT, runs.WALK_CYCLES, SAVED_SHARE, PAPER_SAVED, OVER_OFF, BOOTED[0]), with_walk),
         "fault": View((ROWS, VARIANT, runs.HANDLER, runs.FAULT_CYCLES, OVER_STOCK, *BOOTED), user_gains)},
     saved=plots.Bars("rows", "variant", "saved", SAVED, "paper", compared))
_add("stc-variants", "variants of the cache, levels of page tables, regions far larger than memory", beyond, (
    PAGING, WORK, VARIANT, runs.FAULTS, runs.HITS, runs.WALK_CYCLES, SAVED_SHARE, runs.WALK_INSTRUCTIONS, runs.TABLES_MADE,
    runs.FAULT_CYCLES, OVER_OFF,
), keys=3, views={"": View((WORK, VARIANT, runs.HITS, runs.WALK_CYCLES, SAVED_SHARE, runs.WALK_INSTRUCTIONS, OVER_OFF),
                           lambda row: row["paging"] == FOUR_LEVELS)})
_add("stc-cost", "microbenchmarks of the kernel, whole time", costs, (
    WORK, VARIANT, runs.CYCLES, *BOOTED, CYCLES_OVER["off"], CYCLES_OVER["stock"], INSTRUCTIONS_OVER["stock"],
), keys=2, more=(*runs.SPENT, INSTRUCTIONS_OVER["off"]), views={"": View((
    WORK, VARIANT, runs.CYCLES, BOOTED[1], CYCLES_OVER["off"], CYCLES_OVER["stock"], INSTRUCTIONS_OVER["stock"]))})
