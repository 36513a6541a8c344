# SPDX-License-Identifier: Apache-2.0
"""The figures of ASPF and what goes beyond them, by the paging simulator on recorded traces.

Each figure is a list of cases (mix, policy, values that differ from the paper's setting). Runs are kept in the cache, so
figures share what they have in common.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from trapless.base.ui import UserError, say
from trapless.loads.setup import Setup
from trapless.pagesim import output, runs, traces
from trapless.pagesim.plots import TIMELINES, WINDOWS, thirds
from trapless.pagesim.workloads import record as recording
from trapless.results import plots
from trapless.results.columns import HIGHER, LOWER, Column, word
from trapless.study import repeated
from trapless.study.compared import Compared
from trapless.study.experiment import Experiment, Table, View

from studies.aspf import compared as aspf_compared
from studies.aspf import paper
from studies.aspf.orders import in_all_orders, in_order

MIXES = ("mix3", "mix4", "mix5", "mix6")
BASELINE, VIRT, AGG, STAR = "sync", "virt", "agg", "aspf-star"
POLICIES = (BASELINE, VIRT, AGG, "aspf", STAR)
"""The paper's."""
OURS, ADAPTIVE, BOUND = "foresight", "adaptive", "optimum"
RIVALS = ("async", "readahead-cluster", "readahead-vma", "leap", ADAPTIVE, OURS, BOUND)
LATENCIES = (3.0, 4.0, 5.0, 6.0, 7.0)
"""Figure 7, us."""
PAGES = (2, 4, 6, 8, 10)
"""Figure 8."""
SLOW_LATENCIES = (3.0, 10.0, 100.0)
"""From the paper's device to an ordinary SSD, us."""
CAPACITIES = (16, 64, 256)
"""Pages that a set of A-SPF holds."""
ENDS = ("mix3", "mix6")
"""The smallest mix and the largest."""
ACCESSES_OF_QUICK = 10_000_000
SHARES_OF_MEMORY = (0.25, 0.5, 1, 2)
"""Memory as a share of what the paper's rule gives."""


@dataclass(frozen=True)
class Case:
    """One run of a figure."""

    mix: str
    policy: str
    values: dict[str, object] = field(default_factory=dict)
    """Keys of the configuration that differ from the paper's setting."""
    scattered: int = 0
    """Rows of so many pages lie at random addresses; 0: all lie where they are."""
    chains: bool = False
    """Whether chains (docs/decisions/103-chains.md) take the programs' places, with the paper's 200 MB of memory."""

    def trace(self, program: str) -> str:
        """Name of the trace of one of the paper's programs."""
        return f"chains-{program}" if self.chains else program


def product(mixes: Iterable[str], policies: Sequence[str], values: Sequence[dict[str, object]] = ({},),
            chains: bool = False) -> list[Case]:
    """Every policy for every mix and all of the values. With `chains`, the paper's text is read literally."""
    literal = {"preset": "paper"} if chains else {}
    return [Case(mix, policy, literal | value, chains=chains) for mix in mixes for value in values for policy in policies]


def traces_of(setup: Setup, names: Iterable[str]) -> dict[str, traces.Trace]:
    """These programs' traces. Those that the laboratory itself would keep are recorded if they are not there; for the quick form
    short ones, which begin where the programs do."""
    if setup.traces:
        return traces.find(names, setup.traces)
    names, folder = list(dict.fromkeys(names)), traces.FOLDER_OF_QUICK if setup.quick else traces.FOLDER
    accesses = ACCESSES_OF_QUICK if setup.quick else None
    if missing := traces.absent(names, folder):
        recording.run(missing, accesses, folder, setup.at_once, start=setup.quick)
    if not setup.order and (old := recording.outdated(names, accesses, folder, setup.quick)):
        # It may be one of fewer accesses, recorded on purpose.
        say(f"not as the workload is now: trace of {', '.join(old)} in {folder}; without it, it is recorded anew")
    return traces.find(names, folder)


def simulate(setup: Setup, cases: Sequence[Case], *parts: Callable[[dict], dict]) -> list[dict]:
    """Run all cases: a record each, with these parts of the simulator's record (trapless.pagesim.output)."""
    if setup.kernel:
        raise UserError("--kernel is for guests: the paging simulator takes --traces, --frames and --set")
    for case in cases:
        setup.leaves(("policy", "process", "memory.frames", *case.values))
    names = [case.trace(name) for case in cases for name in paper.mixes()[case.mix]]
    by_rule = not setup.frames and not all(case.chains for case in cases)
    found = traces_of(setup, sorted({*names, *(paper.mixes()["mix6"] if by_rule else ())}))
    frames = setup.frames or (paper.frames(found) if by_rule else paper.FRAMES)

    given = {key: value for key, _, value in (setting.partition("=") for setting in setup.settings)}

    def run(case: Case) -> runs.Run:
        processes = [{
            "name": name,
            "trace": str(found[case.trace(name)].path),
            "intense": paper.intense(name),
            **({"scattered": case.scattered} if case.scattered else {}),
        } for name in in_order(paper.mixes()[case.mix], setup.order)]
        values = {"policy": case.policy, "memory.frames": frames, "process": processes, **case.values}
        title = " ".join([case.mix, case.policy, *(f"{key}={value}" for key, value in case.values.items()),
                          *([f"scattered by {case.scattered}"] if case.scattered else []), *(["chains"] if case.chains else []),
                          *([f"order {setup.order}"] if setup.order else [])])
        return runs.Run(title, runs.changed(paper.setting(), values), setup.settings)

    todo = [run(case) for case in cases]
    return [{
        "mix": case.mix,
        "policy": case.policy,
        "processes": len(one.config["process"]),
        "frames": frames,
        "latency_us": float(given.get("device.latency_us", one.config["device"]["latency_us"])),
        "prefetch_pages": int(given.get("prefetch.pages", one.config["prefetch"]["pages"])),
        "shortest_trace_m": min(found[case.trace(name)].accesses for name in paper.mixes()[case.mix]) / 1e6,
        "seed": setup.order,
        "configuration": {"programs": [case.trace(name) for name in in_order(paper.mixes()[case.mix], setup.order)],
                          "values": case.values, "settings": list(setup.settings)},
        **output.take(result, *parts),
    } for case, one, result in zip(cases, todo, runs.records(todo, setup.jobs), strict=True)]


def compare(records: list[dict], base: str = BASELINE) -> list[dict]:
    """Add percentages against the run of `base` with the same mix and device: time saved, and fewer of what is counted."""
    bases = {(record["mix"], record["latency_us"]): record for record in records if record["policy"] == base}
    for record in records:
        other = bases[record["mix"], record["latency_us"]]
        for key in ("time_s", "context_switches", "faults", "pages_moved"):
            if record is not other and other[key]:
                record[f"{key}_less"] = 100 * (1 - record[key] / other[key])
    return records


def note(records: list[dict], key: str, figure: str, *path: str) -> list[dict]:
    """Add the paper's value as `key`; the path to it may name values of the record (`{mix}`)."""
    for record in records:
        record[key] = paper.value(figure, *(name.format_map(record) for name in path))
    return records


def by_process(records: list[dict]) -> list[dict]:
    """A row for each process of each run."""
    return [{**record, **process} for record in records for process in record["each"]]


TRACE = Column("shortest_trace_m", "trace, million accesses", "Accesses of the mix's shortest trace.", "million accesses", None,
               ",.0f")
MIX = word("mix", "mix", "Which programs run together.")
POLICY = word("policy", "policy", "How page faults are handled.")
TIME, FAULTS = output.TIME, output.FAULTS.but(heading="ULL accesses")
TIMES = (TIME, output.WAITING)
"""Each table that has a time also has the share of waiting."""
PERCENT_PAPER = Column("paper", "paper %", "The paper's value.", "%", None, ".2f")
PAGES_LIE = word("pages", "pages lie", "Do pages lie in the address space as in the program, or at random addresses?")


def less(figure: Column, heading: str, base: str = BASELINE) -> Column:
    """By how many percent a figure is less than that of the base's run."""
    return Column(f"{figure.key}_less", heading, f"By how many percent {figure.key} is less than with {base}.", "%", HIGHER,
                  ".2f")


def with_interval(column: Column, heading: str) -> tuple[Column, Column]:
    """A column, and that of its intervals."""
    return column, column.interval(heading)


TIME_LESS = less(TIME, "time saved %")
SAVED_OVER_ASYNC = less(TIME, "time saved %", "async")
SAVED = with_interval(TIME_LESS, "± points")
FAULTS_LESS = less(FAULTS, "fewer accesses %")
ACCESSES = (FAULTS, *with_interval(FAULTS_LESS, "± fewer accesses"))
SWITCHES_LESS = less(output.SWITCHES, "fewer switches %")
MOVED_LESS = Column("moved_less_than_virt", "fewer moved than virt %",
                    "By how many percent fewer pages are moved than with virt.", "%", HIGHER, ".1f")
WINDOW_MEAN = Column("window_mean", "faults/window", "Mean number of faults in a window of time.", "faults", LOWER, ",.1f")
WINDOW_PEAK = Column("window_peak", "faults in the worst window", "Most faults in a window of time.", "faults", LOWER, ",.0f")
VARIATION = Column("window_variation", "deviation : mean",
                   "Standard deviation of the faults in windows of time divided by their mean.", "x", LOWER, ".2f")
PAPER_S = Column("paper_s", "paper s", "The paper's time.", "s", None, ".1f")
THIRDS = tuple(Column(f"{part}_share", f"in the {part} %",
                      f"Share of the process's faults in the {part} third of its time slices.", "%",
                      None, ".1f") for part in output.PARTS)
LATENCY = Column("latency_us", "device us", "Latency of the device.", "us", None, "g")
PREFETCH = Column("prefetch_pages", "pages", "Pages read with a fault.", "pages", None, "d")
PAPER_SHARES = {part: Column(f"paper_{part}", f"paper {part} %", "The paper's value.", "%", None, ".2f") for part in (5, 10)}
OVER_STAR = Column("points_over_star", "points over aspf-star", "Time saved over sync less that of A-SPF*.", "points", HIGHER,
                   "+.2f")
PAPER_USEFUL = Column("paper_useful", "paper %", "The paper's share of prefetches from sets that were of use.", "%", None, ".2f")
PAPER_ENERGY = Column("paper_energy", "paper's energy %", "By how many percent less energy the paper's policy takes than virt.",
                      "%", None, ".1f")
BOOK_SHARE = Column("bookkeeping_share", "of memory %", "Bookkeeping bytes in percent of memory.", "%", LOWER, ".3f")
PROCESSES = Column("processes", "processes", "Processes that run together.", "processes", None, "d")
FRAMES = Column("frames", "memory, pages", "Memory in pages of 4 KiB.", "pages", None, ",d")
MEMORY = Column("memory_mib", "memory MiB", "Memory of the simulated machine.", "MiB", None, ".1f")
CAPACITY = Column("capacity", "pages per set", "Pages that a set of A-SPF* holds.", "pages", None, "d")
SPAN = word("span", "span turns", "Do sets span turns of the processor?")
OF_RECORD = (MIX, POLICY, PROCESSES, FRAMES, LATENCY, PREFETCH, TRACE, *output.COLUMNS)
"""Columns of each record that `simulate` returns."""
LESS = (TIME_LESS, SWITCHES_LESS, FAULTS_LESS, less(output.MOVED, "fewer moved %"))
"""Columns that `compare` adds."""


def figure_1b(setup: Setup, chains: bool = False) -> list[dict]:
    """Asynchronous and synchronous handling: the whole run, and faults by windows."""
    records = compare(simulate(setup, product(["figure1"], ["async", BASELINE], chains=chains), output.over_time), "async")
    for record in records:
        counts = record["window_faults"]
        mean = sum(counts) / max(len(counts), 1)
        record["window_mean"], record["window_peak"] = mean, max(counts, default=0)
        # How much the windows differ: the paper's "fluctuates severely" as a number.
        record["window_variation"] = (sum((count - mean) ** 2 for count in counts) / len(counts)) ** 0.5 / mean if mean else None
    note(records, "paper_s", "1b", "seconds", "{policy}")
    return note(records, "paper", "1b", "saved", "{policy}")


def figure_1c(setup: Setup, chains: bool = False) -> list[dict]:
    """Faults of each process by thirds of its time slices."""
    records = simulate(setup, product(["figure1"], [BASELINE], chains=chains), output.processes)
    for process in records[0]["each"]:
        for part in output.PARTS:
            process[f"{part}_share"] = 100 * process[part] / max(process["process_faults"], 1)
    return records


def figure_6(figure: str, path: tuple[str, ...] = ("{mix}", "{policy}")) -> Callable[[Setup], list[dict]]:
    """What measures figure 6's parts."""
    def measure(setup: Setup) -> list[dict]:
        """The paper's policies on Mix3 to Mix6."""
        return note(compare(simulate(setup, product(MIXES, POLICIES), output.prefetches)), "paper", figure, *path)

    return measure


def figure_7(setup: Setup, chains: bool = False) -> list[dict]:
    """Mix6 with slower devices."""
    slower = [{"device.latency_us": latency} for latency in LATENCIES]
    records = simulate(setup, product(["mix6"], [BASELINE, VIRT, STAR], slower, chains), output.prefetches)
    return note(compare(records), "paper", "7", "{latency_us:g}", "{policy}")


def figure_8(setup: Setup, chains: bool = False) -> list[dict]:
    """Mix6 with fewer and more pages read with a fault."""
    # Agg_virtual reads as many as the device takes, whatever this number is.
    cases = product(["mix6"], [VIRT, STAR], [{"prefetch.pages": pages} for pages in PAGES], chains)
    records = compare(simulate(setup, [*product(["mix6"], [BASELINE], chains=chains), *cases], output.prefetches))
    virt = {record["prefetch_pages"]: record["pages_moved"] for record in records if record["policy"] == VIRT}
    for record in records:
        if record["policy"] not in (BASELINE, VIRT):
            record["moved_less_than_virt"] = 100 * (1 - record["pages_moved"] / virt[record["prefetch_pages"]])
    return note(records, "paper", "8", "{prefetch_pages}", "{policy}")


def figure_9(setup: Setup, chains: bool = False) -> list[dict]:
    """Shares of the processor early in the run, by process."""
    records = simulate(setup, product(["figure9"], [BASELINE, STAR], chains=chains), output.processes)
    for record in records:
        for row in record["each"]:
            row |= {"paper_5": paper.value("9a", record["policy"], row["process"]),
                    "paper_10": paper.value("9b", record["policy"], row["process"])}
    return records


def beyond(setup: Setup) -> list[dict]:
    """All policies on Mix3 to Mix6, with points of time against A-SPF*."""
    records = compare(simulate(setup, product(MIXES, [*POLICIES, *RIVALS])))
    star = {record["mix"]: record for record in records if record["policy"] == STAR}
    for record in records:
        if record["policy"] != STAR:
            record["points_over_star"] = record.get("time_s_less", 0.0) - star[record["mix"]]["time_s_less"]
    return records


def costs(setup: Setup) -> list[dict]:
    """What the policies do and take for themselves on Mix6: prefetches of use, pages moved, bookkeeping."""
    records = simulate(setup, product(["mix6"], [*POLICIES, OURS]), output.prefetches, output.costs)
    moved = next(record["pages_moved"] for record in records if record["policy"] == VIRT)
    for record in records:
        record["bookkeeping_share"] = 100 * record["bookkeeping_bytes"] / (4096 * record["frames"])
        if record["policy"] not in (BASELINE, VIRT):
            record["moved_less_than_virt"] = 100 * (1 - record["pages_moved"] / moved)
    note(records, "paper_energy", "8", "energy_saved", "{policy}")
    return note(records, "paper_useful", "6c", "useful_set_prefetches", "{policy}")


def timeline(setup: Setup) -> list[dict]:
    """Faults of each process of Mix6 over time."""
    return simulate(setup, product(["mix6"], [BASELINE, STAR, OURS]), output.processes, output.timelines)


def slow_device(setup: Setup) -> list[dict]:
    """Waiting, switching and deciding by the fault, for slower devices and more processes that could run."""
    values = [{"device.latency_us": latency} for latency in SLOW_LATENCIES]
    return compare(simulate(setup, product(ENDS, ("async", BASELINE, ADAPTIVE, OURS), values)), "async")


def as_they_lie_and_at_random(setup: Setup, cases: Sequence[Case]) -> list[dict]:
    """Compared runs of programs as they are, and of the same with pages at random addresses."""
    records = []
    for away in (False, True):
        found = compare(simulate(setup, [replace(case, scattered=int(away)) for case in cases], output.prefetches))
        records += [{**record, "pages": "at random" if away else "as they are"} for record in found]
    return records


def scattered(setup: Setup) -> list[dict]:
    """What neighbours in address space are worth."""
    return as_they_lie_and_at_random(setup, product(ENDS, (*POLICIES, OURS)))


def sets(setup: Setup) -> list[dict]:
    """A-SPF* with larger sets, and with sets that span turns: what the paper leaves open (studies/aspf/choices.md)."""
    values = [{"aspf.set_capacity": capacity, "aspf.sets_span_turns": span} for span in (False, True) for capacity in CAPACITIES]
    cases = [Case(mix, BASELINE) for mix in ENDS] + product(ENDS, [STAR], values)
    records = compare(simulate(setup, cases, output.prefetches))
    for case, record in zip(cases, records, strict=True):
        if case.values:
            record["capacity"] = case.values["aspf.set_capacity"]
            record["span"] = "yes" if case.values["aspf.sets_span_turns"] else "no"
    return [record for record in records if record["policy"] == STAR]


def free_drive(setup: Setup) -> list[dict]:
    """A drive that answers any number of reads at once, in 3 us each: nothing that is read ahead is in anybody's way."""
    # Agg_virtual reads as many as the drive takes: here without end.
    cases = product(ENDS, [BASELINE, VIRT, "aspf", STAR, OURS], [{"device.channels": 1024, "device.mb_per_s": 1e6}])
    return as_they_lie_and_at_random(setup, cases)


def memory(setup: Setup) -> list[dict]:
    """Mix3 with less and more memory than the paper's rule gives it."""
    frames = setup.frames or paper.frames(traces_of(setup, paper.mixes()["mix6"]))
    return [{**record, "memory_mib": record["frames"] / 256}
            for share in SHARES_OF_MEMORY
            for record in compare(simulate(replace(setup, frames=round(frames * share)), product(["mix3"], (*POLICIES, OURS))))]


def recorded(setup: Setup) -> list[dict]:
    """The traces, and the memory that the paper's rule gives their mixes."""
    names = {name: None for mix in paper.mixes().values() for name in mix}
    found = traces_of(setup, names)
    frames = setup.frames or paper.frames(found)
    return [{
        "process": trace.name,
        "accesses_m": trace.accesses / 1e6,
        "footprint_mib": trace.pages / 256,
        "working_set_mib": trace.working_set / 256,
        "lru_mib": trace.working_set_lru / 256,
        "memory_mib": frames / 256,
    } for trace in found.values()]


EXPERIMENTS: dict[str, Experiment] = {}


def _add(name: str, title: str, measure: Callable[[Setup], list[dict]], columns: tuple[Column, ...], keys: int = 1,
         rows: Callable[[list[dict]], list[dict]] = list,
         beside: Callable[[list[dict]], list[Compared]] = lambda rows: [], orders: bool = True, more: tuple[Column, ...] = (),
         views: dict[str, View] | None = None, **drawn: plots.Plot) -> None:
    """An experiment with one table, which has its name; `beside` has the paper's values beside ours. In all `orders` of the
    programs, or in the paper's alone, without intervals. Without `views` pages show all columns but the trace's length."""
    columns = tuple(column for column in columns if orders or not column.key.endswith(repeated.INTERVAL))
    views = views or {"": View(tuple(column for column in columns if not column.key.endswith(repeated.INTERVAL)))}
    shown = Table(columns if name == "aspf-traces" else (*columns, TRACE), keys, rows, views)
    EXPERIMENTS[name] = Experiment(title, in_all_orders(measure) if orders else measure, {name: shown}, drawn, guest=False,
                                   more=() if name == "aspf-traces" else (*more, *OF_RECORD),
                                   about=f"{inspect.getdoc(measure)} {ABOUT} {IN_ORDERS if orders else IN_ONE_ORDER}",
                                   compared=beside)


LESS_TIME = "time saved over sync, %"
ABOUT = ("By the paging simulator (docs/reference/pagesim.md) on recorded traces of the paper's programs, in the paper's setting "
         "but for what is named. A run repeats to the nanosecond.")
IN_ORDERS = "Means and intervals are of the programs in several orders."
IN_ONE_ORDER = "The programs are in the paper's order."
PROCESS = output.PROCESS
WITH_PREFETCHES = (*LESS, *output.OF_PREFETCHES)

_add("aspf-traces", "the recorded traces, and memory by ASPF's rule", recorded, (
    PROCESS,
    Column("accesses_m", "accesses, millions", "Accesses of the trace.", "million accesses", None, ",.0f"),
    Column("footprint_mib", "footprint MiB", "Different pages that the trace accesses.", "MiB", None, ",.1f"),
    Column("working_set_mib", "working set MiB", "The fewest pages that get 99 % of the accesses behind the processor's cache.",
           "MiB", None, ",.1f"),
    Column("lru_mib", "LRU MiB", "Memory with which LRU replacement hits in 99 % of these accesses.", "MiB", None, ",.1f"),
    MEMORY.but(form=",.1f"),
), orders=False)
_add("aspf-1b", "faults over time, asynchronous and synchronous (ASPF 1b, II-B)", figure_1b, (
    POLICY, *TIMES, PAPER_S, *with_interval(SAVED_OVER_ASYNC, "± points"), PERCENT_PAPER, output.FAULTS,
    output.WINDOW, WINDOW_MEAN, WINDOW_PEAK, VARIATION,
), beside=aspf_compared.waiting, more=LESS,
     views={"": View((POLICY, *TIMES, PAPER_S, SAVED_OVER_ASYNC, PERCENT_PAPER, VARIATION))}, faults=WINDOWS)
_add("aspf-1c", "faults by thirds of a time slice (ASPF 1c)", figure_1c, (PROCESS, output.PROCESS_FAULTS, *THIRDS),
     beside=aspf_compared.heads, rows=by_process, more=output.OF_PROCESSES, thirds=thirds(output.PARTS))
_add("aspf-6a", "time by mix and policy (ASPF 6a)", figure_6("6a"), (MIX, POLICY, *TIMES, *SAVED, PERCENT_PAPER), keys=2,
     beside=aspf_compared.times_by_mix, more=WITH_PREFETCHES,
     time=plots.Bars("mix", "policy", "time_s_less", LESS_TIME, "paper"))
_add("aspf-6b", "context switches by mix and policy (ASPF 6b)", figure_6("6b"), (
    MIX, POLICY, output.SWITCHES, *with_interval(SWITCHES_LESS, "± points"), PERCENT_PAPER,
), beside=aspf_compared.switches, keys=2, more=WITH_PREFETCHES,
     switches=plots.Bars("mix", "policy", "context_switches_less", "fewer context switches than sync, %", "paper"))
_add("aspf-6c", "accesses of the ULL device by mix and policy (ASPF 6c)", figure_6("6c"), (
    MIX, POLICY, *ACCESSES, PERCENT_PAPER, output.READS, output.WRITES,
), beside=aspf_compared.accesses, keys=2, more=WITH_PREFETCHES,
     accesses=plots.Bars("mix", "policy", "faults_less", "fewer ULL accesses than sync, %", "paper"))
_add("aspf-7", "time by the device's latency (ASPF 7)", figure_7, (LATENCY, POLICY, *TIMES, *SAVED, PERCENT_PAPER), keys=2,
     beside=aspf_compared.times_by_latency, more=WITH_PREFETCHES,
     time=plots.Lines("latency_us", "policy", "time_s_less", "ULL latency, us", LESS_TIME, "paper"))
_add("aspf-8", "time and pages moved by pages prefetched (ASPF 8)", figure_8, (
    PREFETCH, POLICY, *TIMES, *SAVED, PERCENT_PAPER, output.MOVED, *with_interval(MOVED_LESS, "± fewer moved"),
), beside=aspf_compared.times_by_pages, keys=2, more=WITH_PREFETCHES,
     views={"": View((PREFETCH, POLICY, *TIMES, TIME_LESS, PERCENT_PAPER, MOVED_LESS))},
     time=plots.Lines("prefetch_pages", "policy", "time_s_less", "pages prefetched", LESS_TIME, "paper"))
_add("aspf-9", "shares of the processor (ASPF 9)", figure_9, (
    POLICY, PROCESS,
    *(column for name, part in (("share_5", 5), ("share_10", 10)) for column in (
        *with_interval(output.SHARE[name], f"± first {part} %"), PAPER_SHARES[part])),
    output.JAIN,
), beside=aspf_compared.processors, keys=2, rows=by_process, more=output.OF_PROCESSES, **{f"share-{part}": plots.Bars(
    "process", "policy", f"share_{part}", f"CPU time over the first {part} % of the run, %", f"paper_{part}", by_process)
    for part in (5, 10)})
_add("aspf-beyond", "all policies on Mix3 to Mix6: the paper's, rivals, ours, a bound", beyond, (
    MIX, POLICY, *TIMES, *SAVED, *with_interval(OVER_STAR, "± over aspf-star"), *ACCESSES, output.SWITCHES, SWITCHES_LESS,
    output.MOVED, output.JAIN,
), keys=2, more=LESS, views={"": View((MIX, POLICY, *TIMES, TIME_LESS, OVER_STAR, output.JAIN))},
     time=plots.Bars("mix", "policy", "time_s_less", LESS_TIME))
_add("aspf-prefetches", "prefetches of use on Mix6 (ASPF IV-B1)", costs, (
    POLICY,
    *(column for origin in output.ORIGINS for column in (
        output.ISSUED[origin], output.USEFUL[origin],
        *((output.USEFUL[origin].interval("± set"), PAPER_USEFUL) if origin == "set" else ()))),
), beside=aspf_compared.useful, more=(*output.OF_COSTS, BOOK_SHARE, MOVED_LESS, PAPER_ENERGY), views={
    "": View((POLICY, output.USEFUL["neighbour"], output.USEFUL["set"], PAPER_USEFUL, output.USEFUL["successor"],
              output.USEFUL["reconstruct"])),
    "pages": View((POLICY, *output.ISSUED.values()))})
_add("aspf-costs", "pages moved and bookkeeping on Mix6 (ASPF IV-B3, IV-C)", costs, (
    POLICY, output.MOVED, *with_interval(MOVED_LESS, "± fewer moved"), PAPER_ENERGY, output.BOOK_BYTES, BOOK_SHARE,
    output.BOOK_OPERATIONS,
), beside=aspf_compared.moved, more=(*output.OF_PREFETCHES, PAPER_USEFUL))
_add("aspf-timeline", "faults of each process of Mix6 over time", timeline, (
    POLICY, PROCESS, output.PROCESS_FAULTS, output.CPU, output.FINISHED,
), keys=2, rows=by_process, orders=False, more=output.OF_PROCESSES, faults=TIMELINES)
_add("aspf-slow-device", "where waiting loses: slower devices, more processes", slow_device, (
    PROCESSES, LATENCY, POLICY, *TIMES, *with_interval(less(TIME, "less than async %", "async"), "± points"), output.SWITCHES,
    output.FAULTS, output.JAIN,
), keys=3, orders=False, more=LESS, views={"": View((
    PROCESSES, LATENCY, POLICY, *TIMES, less(TIME, "less than async %", "async"), output.SWITCHES))},
     time=plots.Lines("latency_us", "policy", "time_s_less", "device latency, us", "time saved over async, %", panel="processes",
                      log=True))
_add("aspf-scattered", "what neighbours in address space are worth: pages as they lie, and at random", scattered, (
    PAGES_LIE, MIX, POLICY, *TIMES, *SAVED, *ACCESSES, *(output.USEFUL[origin] for origin in ("neighbour", "set", "reconstruct")),
), keys=3, orders=False, more=WITH_PREFETCHES, views={"": View((
    PAGES_LIE, MIX, POLICY, TIME_LESS, *(output.USEFUL[origin] for origin in ("neighbour", "set", "reconstruct"))))})
_add("aspf-sets", "A-SPF* by the size of its sets and what they span", sets, (
    MIX, CAPACITY, SPAN, *TIMES, *SAVED, *ACCESSES, output.ISSUED["set"], output.USEFUL["set"],
), keys=3, orders=False, more=WITH_PREFETCHES, views={"": View((
    MIX, CAPACITY, SPAN, TIME_LESS, FAULTS_LESS, output.ISSUED["set"], output.USEFUL["set"]))})
_add("aspf-free-drive", "reading ahead that costs no time of the drive", free_drive, (
    PAGES_LIE, MIX, POLICY, *TIMES, *SAVED, *ACCESSES), keys=3, orders=False, more=WITH_PREFETCHES,
     views={"": View((PAGES_LIE, MIX, POLICY, *TIMES, TIME_LESS, FAULTS_LESS))})
_add("aspf-memory", "Mix3 with less and more memory", memory, (
    MEMORY, POLICY, *TIMES, *SAVED, *ACCESSES,
), keys=2, orders=False, more=LESS, time=plots.Lines("memory_mib", "policy", "time_s_less", "memory, MiB", LESS_TIME))
