# SPDX-License-Identifier: Apache-2.0
"""ISCA20's figures of programs on a data set that is larger than memory: 1, 4, 13, 14, 15."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from statistics import mean

from trapless.loads import rocksdb
from trapless.loads.rocksdb import HW_SHARE, MISSES_PER_OP, PER_OP, PROGRAM_COLUMN, Case
from trapless.loads.setup import Setup
from trapless.profile import profiling
from trapless.results import figures, plots
from trapless.results.columns import HIGHER, LOWER, Column
from trapless.study import repeated
from trapless.study.compared import Compared, one, spread
from trapless.study.experiment import Experiment, Table, View
from trapless.study.paper import Paper
from trapless.study.repeated import Point, widest

THREADS = (1, 2, 4, 8)
SEVERAL = 4
"""Threads of figures 14 and 15. Figures 1 and 4 do not give a number; we use the same."""
RATIOS = (1, 2, 3, 4)
"""Size of the data set divided by that of memory (figure 1)."""
SEEDS, SEEDS_OF_QUICK = 3, 2
READ_ONLY = "YCSB-C"
EVENTS = ("l1i", "l1d", "l2", "last", "dtlb", "branches")
"""Miss events of user code, per 1000 of its instructions."""
BACKGROUND = {"kpted": ("kpted",), "kpoold": ("kpoold", "kadoptd")}
"""The kernel's threads by their work. kadoptd does what kpoold asks for, in the time of the program's control group."""
paper = Paper(__file__)


def points(setup: Setup, cases: Iterable[tuple[dict, Case]]) -> list[Point]:
    """Return each case with all seeds, in the setup's scale."""
    seeds = range(1, (SEEDS_OF_QUICK if setup.quick else SEEDS) + 1)
    return [Point(names, {seed: rocksdb.run_of(setup, replace(case, seed=seed)) for seed in seeds}) for names, case in cases]


def scale(setup: Setup) -> rocksdb.Scale:
    """Return the setup's scale."""
    return rocksdb.SCALE_OF_QUICK if setup.quick else rocksdb.SCALE


def figure_13(setup: Setup) -> list[dict]:
    """Measure the throughput of every program, by threads and kind, and its gain over osdp and over emulated."""
    threads = (1, SEVERAL) if setup.quick else THREADS
    rows = repeated.measure(setup, points(setup, (
        ({"program": program, "threads": count, "kind": kind}, Case(program, kind, count, scale(setup)))
        for program in rocksdb.PROGRAMS for count in threads for kind in setup.kinds or rocksdb.KINDS)))
    for kind, name in (("osdp", "gain"), ("emulated", "gain_over_emulated")):
        repeated.against(rows, ("program", "threads"), {"kind": kind}, "ops_per_second", name)
    return rows


def gains(rows: list[dict], programs: Iterable[str]) -> list[dict]:
    """Return the rows of hwdp that have a gain."""
    return [row for row in rows if row["kind"] == "hwdp" and "gain" in row and row["program"] in set(programs)]


def compared_13(rows: list[dict]) -> list[Compared]:
    """Compare the paper's two ranges, and its best workload."""
    found = []
    uniform = (rocksdb.FIO, rocksdb.DBBENCH)
    for quantity, programs, key in (
        ("gain of FIO and DBBench, 1 to 8 threads", uniform, "uniform"),
        ("gain of YCSB A to F, 1 to 8 threads", set(rocksdb.PROGRAMS) - set(uniform), "ycsb"),
    ):
        mine = gains(rows, programs)
        if mine:
            found.append(Compared(quantity, "%", tuple(paper("13", key)), spread([row["gain"] for row in mine]),
                                  widest(mine, "gain"), _why_13(rows, mine)))
    best = gains(rows, [READ_ONLY])
    if best:
        top = max(best, key=lambda row: row["gain"])
        found.append(Compared("best gain of YCSB-C", "%", one(paper("13", "ycsb_c")), one(top["gain"]), top["gain_ci"],
                              _why_13(rows, [top])))
    return found


def _why_13(rows: list[dict], mine: list[dict]) -> str:
    """Explain the gain: misses per operation, and the instructions of the kernel and of the program per operation."""
    before = [row for row in rows if row["kind"] == "osdp" and (row["program"], row["threads"]) in {
        (other["program"], other["threads"]) for other in mine}]
    misses, kernel, user = ([row[key] for row in before] for key in (
        "misses_per_op", "kernel_instructions_per_op", "user_instructions_per_op"))
    after = mean(row["kernel_instructions_per_op"] for row in mine)
    return (f"An operation misses {min(misses):.2f} to {max(misses):.2f} pages here (each of RocksDB's records lies on two). On "
            f"average the kernel executes {mean(kernel):,.0f} instructions for it with osdp and {after:,.0f} with hwdp; the "
            f"program executes {mean(user):,.0f}. The paper does not say how many pages its operations miss."
            + _least(rows, mine))


def _least(rows: list[dict], mine: list[dict]) -> str:
    """Name the smallest gain, and its operations' times with hwdp and with osdp, also with fewer threads."""
    least = min(mine, key=lambda row: row["gain"])
    program, threads = least["program"], least["threads"]
    fewer = max((row["threads"] for row in mine if row["program"] == program and row["threads"] < threads), default=None)
    if fewer is None:
        return ""
    at = {(row["kind"], row["threads"]): _latencies(row) for row in rows if row["program"] == program}
    parts = [f"{operation.replace('_', ' ')} {us:.0f} us instead of {at['osdp', threads][operation]:.0f} (with {fewer} "
             f"{at['hwdp', fewer][operation]:.0f} instead of {at['osdp', fewer][operation]:.0f})"
             for operation, us in at["hwdp", threads].items()]
    return (f" The smallest gain is that of {program} with {threads} threads" + (f": {', '.join(parts)}" if parts else "")
            + ("; then each core has a thread: a thread that is woken waits for a core, and a load that waits in hardware "
               "keeps its core."
               if threads == max(THREADS) else "."))


def _latencies(row: dict) -> dict[str, float]:
    """Return the mean time in us of each of YCSB's operations, without that of all operations together."""
    runs = [run.get("latency", {}) for run in row[repeated.RUNS]]
    return {operation: mean(run[operation]["mean_us"] for run in runs) for operation in runs[0] if operation != "all"}


def figure_1(setup: Setup) -> list[dict]:
    """Return the time of an operation of YCSB-C with osdp, and its part in page faults, by size of the data set relative to
    memory."""
    base = scale(setup)
    ratios = RATIOS[:3] if setup.quick else RATIOS
    rows = repeated.measure(setup, points(setup, (
        ({"ratio": ratio}, Case(READ_ONLY, "osdp", SEVERAL, replace(base, memory_mib=base.data_mib // ratio), attributed=True))
        for ratio in ratios)))
    return [_split(row) for row in rows]


def _split(row: dict) -> dict:
    """Add the time of an operation in page faults, and the rest."""
    for run in row[repeated.RUNS]:
        profile = run["profile"]
        inside = sum(profile[name]["count"] * profile[name]["mean_us"] for name in ("faults", "minor_faults") if
                     profile[name]["count"])
        run["fault_us"] = inside / run["ops"]
        # From the threads' own times, like throughput. In the region's time, some threads wait for the slowest.
        run["compute_us"] = SEVERAL * 1e6 / run["ops_per_second"] - run["fault_us"]
        run["fault_share"] = 100 * run["fault_us"] / (run["fault_us"] + run["compute_us"])
    return repeated.row(row[repeated.RUNS][0]["names"], row[repeated.RUNS])


def parts_1(rows: list[dict]) -> list[dict]:
    """Return one row for each part of a bar."""
    return [{"ratio": f"{row['ratio']}:1", "part": part, "us": row[key]} for row in rows
            for part, key in (("compute", "compute_us"), ("page faults", "fault_us"))]


def compared_1(rows: list[dict]) -> list[Compared]:
    """Return our shares. The paper prints no values. In its figure, the share grows, and the time of computing stays the same."""
    return [Compared(f"time in page faults, data set {row['ratio']} times the memory", "%", None, one(row["fault_share"]),
                     row["fault_share_ci"]) for row in rows]


def figure_4(setup: Setup) -> list[dict]:
    """Measure YCSB-C with enough memory, of which all or nothing is mapped beforehand: throughput and events of user code."""
    base = scale(setup)
    # Enough for the records, RocksDB and the kernel.
    large = replace(base, memory_mib=2 * base.data_mib)
    rows = repeated.measure(setup, points(setup, (
        ({"kind": kind}, Case(READ_ONLY, kind, SEVERAL, large, filled=False, attributed=True)) for kind in ("ideal", "osdp"))))
    return relative(rows, "ideal")


def figure_14(setup: Setup) -> list[dict]:
    """Measure YCSB-C on 4 threads: throughput and events of user code, relative to those of osdp."""
    return relative(_four_threads(setup), "osdp")


def _four_threads(setup: Setup) -> list[dict]:
    return repeated.measure(setup, points(setup, (
        ({"kind": kind}, Case(READ_ONLY, kind, SEVERAL, scale(setup), attributed=True)) for kind in ("osdp", "hwdp"))))


def relative(rows: list[dict], base: str) -> list[dict]:
    """Add IPC and miss events of user code, and the change of each, in percent, against the base kind."""
    found = []
    for row in rows:
        for run in row[repeated.RUNS]:
            user = profiling.mode_rows(run["profile"])[0]
            run |= {"user_ipc": user["ipc"], **{f"user_{event}": user[event] for event in EVENTS}}
        found.append(repeated.row(row[repeated.RUNS][0]["names"], row[repeated.RUNS]))
    for key in ("ops_per_second", "user_ipc", *(f"user_{event}" for event in EVENTS)):
        repeated.against(found, (), {"kind": base}, key, f"{key}_change")
    return found


def events(base: str) -> Callable[[list[dict]], list[dict]]:
    """Return throughput, IPC and events of each kind in percent of the base kind's."""
    def rows(records: list[dict]) -> list[dict]:
        shown = {"ops_per_second": "throughput", "user_ipc": "IPC", **{f"user_{event}": event for event in EVENTS}}
        return [{"event": name, "kind": record["kind"], "of_base": 100 + record.get(f"{key}_change", 0.0),
                 "of_base_ci": record.get(f"{key}_change_ci", 0.0)}
                for key, name in shown.items() for record in records if record["kind"] == base or f"{key}_change" in record]
    return rows


def compared_4(rows: list[dict]) -> list[Compared]:
    """Compare the throughput of osdp, as a share of ideal's."""
    osdp = next(row for row in rows if row["kind"] == "osdp")
    share = 100 + osdp["ops_per_second_change"]
    return [Compared("throughput of osdp, of ideal (the paper: less than half)", "%", (0.0, paper("4", "throughput")), one(share),
                     osdp["ops_per_second_change_ci"],
                     f"An operation misses {osdp['misses_per_op']:.2f} pages while the data set comes into memory, "
                     f"and computes {osdp['user_instructions_per_op']:,.0f} instructions."),
            Compared("user IPC of osdp over ideal (no value in the paper; lower)", "%", None, one(osdp["user_ipc_change"]),
                     osdp["user_ipc_change_ci"])]


def compared_14(rows: list[dict]) -> list[Compared]:
    """Compare user IPC, and the share of misses that hardware serves."""
    osdp, hwdp = rows
    return [
        Compared("user IPC, hwdp over osdp", "%", one(paper("14", "ipc")), one(hwdp["user_ipc_change"]),
                 hwdp["user_ipc_change_ci"],
                 f"Per 1000 instructions of user code, the first data cache misses {osdp['user_l1d']:.1f} times with osdp and "
                 f"{hwdp['user_l1d']:.1f} with hwdp, the second level {osdp['user_l2']:.1f} and {hwdp['user_l2']:.1f}, branches "
                 f"{osdp['user_branches']:.1f} and {hwdp['user_branches']:.1f}; a core executes one instruction per cycle here; "
                 "such misses affect a wide core differently."),
        Compared("misses that hardware serves", "%", one(paper("14", "hardware")), one(hwdp["hw_share"]), hwdp["hw_share_ci"]),
    ]


def figure_15(setup: Setup) -> list[dict]:
    """Measure kernel instructions and cycles per operation of YCSB-C on 4 threads, by the thread that executes them."""
    rows = []
    for row in _four_threads(setup):
        for run in row[repeated.RUNS]:
            run |= kernel_parts(run["profile"], run["ops"])
        rows.append(repeated.row(row[repeated.RUNS][0]["names"], row[repeated.RUNS]))
    for key in ("kernel_instructions_per_op", "all_instructions", "all_cycles"):
        repeated.against(rows, (), {"kind": "osdp"}, key, f"{key}_change")
    return rows


def kernel_parts(profile: dict, ops: int) -> dict:
    """Return instructions and cycles of the kernel per operation: of kpted, of kpoold, and the rest, which is the program's
    system calls, faults and interrupts."""
    found = {}
    for counted in ("instructions", "cycles"):
        whole = sum(spent[counted] for name, spent in profile["categories"].items() if name not in (*profiling.USER, "idle"))
        tasks = {task: sum(spent[counted] for name, spent in profile["tasks"].items() if name.startswith(threads))
                 for task, threads in BACKGROUND.items()}
        found |= {f"all_{counted}": whole / ops, f"kernel_{counted}": (whole - sum(tasks.values())) / ops,
                  **{f"{task}_{counted}": spent / ops for task, spent in tasks.items()}}
    return found


def parts_15(rows: list[dict]) -> list[dict]:
    """Return one row for each part of a bar."""
    return [{"bar": f"{row['kind']}, {counted}", "part": part, "value": row[f"{part}_{counted}"]}
            for counted in ("instructions", "cycles") for row in rows for part in ("kernel", *BACKGROUND)]


def compared_15(rows: list[dict]) -> list[Compared]:
    """Compare the kernel's instructions, including those of kpted and kpoold."""
    osdp, hwdp = rows
    return [Compared(
        "kernel instructions, hwdp over osdp", "%", one(paper("15", "instructions")), one(hwdp["all_instructions_change"]),
        hwdp["all_instructions_change_ci"],
        f"Of {osdp['all_instructions']:,.0f} instructions per operation, {hwdp['all_instructions']:,.0f} are left; kpted "
        f"executes {hwdp['kpted_instructions']:,.0f} of them and kpoold {hwdp['kpoold_instructions']:,.0f}. They adopt pages and "
        "find frames; with osdp, that is part of the fault.")]


PAPER = Column("paper", "paper %", "The paper's value.", "%", None, "+.1f")
NAMES = (PROGRAM_COLUMN, figures.THREADS, figures.KIND)
THROUGHPUT = (figures.OPS_PER_SECOND, figures.OPS_PER_SECOND.interval("± operations/s"))
GAIN = Column("gain", "gain over OS paging %", "How much more operations per second than with osdp.", "%", HIGHER, "+.1f")
GAIN_OVER_EMULATED = Column("gain_over_emulated", "gain over emulation %",
                            "How much more operations per second than with emulated.", "%", HIGHER, "+.1f")
USER_IPC = Column("user_ipc", "user IPC", "Instructions of user code per cycle that it executes.", "instructions/cycle", HIGHER,
                  ".3f")
IPC_CHANGE = Column("user_ipc_change", "IPC change %", "Change of the user IPC against the other kind.", "%", HIGHER, "+.1f")
OF_EVENTS = tuple(profiling.EVENTS[event].but(key=f"user_{event}", meaning=profiling.EVENTS[event].meaning.replace(
    "1000 instructions", "1000 instructions of user code")) for event in EVENTS)
USER = (USER_IPC, IPC_CHANGE, IPC_CHANGE.interval("± IPC %"), *OF_EVENTS)
EVENT_CHANGES = tuple(Column(f"{event.key}_change", f"{event.heading} change %",
                             f"Change against the other kind: {event.meaning[0].lower()}{event.meaning[1:]}", "%", LOWER, "+.1f")
                      for event in OF_EVENTS)


def throughput_change(base: str) -> Column:
    """Return the column for the change of the throughput against a kind."""
    return Column("ops_per_second_change", f"throughput over {'OS paging' if base == 'osdp' else base} %",
                  f"How much more operations per second than with {base}.", "%", HIGHER, "+.1f")


FAULT_US = Column("fault_us", "in page faults us/operation",
                  "Time per operation from the trap of a page fault until user code goes on.", "us", LOWER, ".1f")
COMPUTE_US = Column("compute_us", "computing us/operation", "The rest of an operation's time.", "us", LOWER, ".1f")
FAULT_SHARE = Column("fault_share", "in page faults %", "Share of an operation's time in page faults.", "%", LOWER, ".1f")
RATIO = Column("ratio", "data set vs memory", "Size of the data set divided by that of memory.", "x", None, "d")
ALL_INSTRUCTIONS = Column("all_instructions", "kernel instructions/operation", "Instructions of the kernel per operation.",
                          "instructions/operation", LOWER, ",.0f")
ALL_CHANGE = Column("all_instructions_change", "instructions over OS paging %",
                    "Change of the kernel's instructions against osdp.", "%", LOWER, "+.1f")
ALL_CYCLES = Column("all_cycles", "kernel cycles/operation", "Cycles of the kernel per operation.", "cycles/operation", LOWER,
                    ",.0f")
CYCLES_CHANGE = Column("all_cycles_change", "cycles over OS paging %", "Change of the kernel's cycles against osdp.", "%", LOWER,
                       "+.1f")
BY_WHOM = {
    who: tuple(Column(f"{who}_{counted}", f"{heading}{'' if counted == 'instructions' else ' cycles'}",
                      f"{counted.capitalize()} per operation that {meaning}.", f"{counted}/operation", LOWER, ",.0f")
               for counted in ("instructions", "cycles"))
    for who, heading, meaning in (
        ("kernel", "by the program", "the kernel executes for the program: system calls, faults and interrupts"),
        ("kpted", "by kpted", "kpted executes"), ("kpoold", "by kpoold", "kpoold and kadoptd execute"))}
KERNEL_CHANGE = Column("kernel_instructions_per_op_change", "kernel instructions over OS paging %",
                       "Change of the instructions of supervisor mode per operation against osdp.", "%", LOWER, "+.1f")

EXPERIMENTS = {
    "isca20-1": Experiment(
        "YCSB-C: time in page faults by data set : memory (ISCA20 figure 1)", figure_1, {"isca20-1": Table(
            (RATIO, *THROUGHPUT, COMPUTE_US, FAULT_US, FAULT_SHARE, FAULT_SHARE.interval("± %"), *PER_OP),
            views={"": View((RATIO, figures.OPS_PER_SECOND, COMPUTE_US, FAULT_US, FAULT_SHARE, MISSES_PER_OP,
                             figures.KERNEL_PER_OP))})},
        {"time": plots.Bars("ratio", "part", "us", "us per operation", rows=parts_1, stacked=True)}, rocksdb.COLUMNS,
        about="YCSB-C on RocksDB, osdp, 4 threads, with memory of the size of the data set, and a half, a third and a quarter of "
              "it. Time in page faults is from the trap until user code goes on, by the machine's attribution.",
        compared=compared_1),
    "isca20-4": Experiment(
        "YCSB-C with and without page faults: throughput, user IPC (ISCA20 figure 4)", figure_4, {"isca20-4": Table(
            (figures.KIND, *THROUGHPUT, throughput_change("ideal"), *USER, *PER_OP),
            views={"": View((figures.KIND, figures.OPS_PER_SECOND, throughput_change("ideal"), USER_IPC, IPC_CHANGE,
                             MISSES_PER_OP, figures.KERNEL_PER_OP)),
                   "events": View((figures.KIND, *OF_EVENTS))})},
        {"events": plots.Bars("event", "kind", "of_base", "% of ideal", rows=events("ideal"))}, (*rocksdb.COLUMNS,
                                                                                                 *EVENT_CHANGES),
        about="YCSB-C on RocksDB, 4 threads; memory is twice the data set. With ideal, the whole data set is mapped "
              "beforehand; with osdp, it is on disk.",
        compared=compared_4),
    "isca20-13": Experiment(
        "FIO, DBBench readrandom and YCSB: throughput by threads and kind (ISCA20 figure 13)", figure_13, {"isca20-13": Table(
            (*NAMES, *THROUGHPUT, GAIN, GAIN.interval("± %"), GAIN_OVER_EMULATED, figures.MEAN_US.but(form=".1f"), HW_SHARE,
             *PER_OP, figures.WRONG, figures.HOST_SECONDS.but(form=".0f")), keys=3,
            views={"": View((PROGRAM_COLUMN, figures.THREADS, figures.OPS_PER_SECOND, GAIN, GAIN_OVER_EMULATED, HW_SHARE,
                             MISSES_PER_OP), lambda row: row["kind"] == "hwdp")})},
        {"gain": plots.Bars("program", "threads", "gain", "hwdp over osdp, %", rows=lambda rows: gains(rows, rocksdb.PROGRAMS))},
        rocksdb.COLUMNS,
        about="A data set of twice the memory, records of 4 KiB, a core for each thread. FIO reads blocks of one "
              "mapping at random, DBBench is RocksDB's readrandom, YCSB its core workloads; each record that YCSB reads "
              "and each block that DBBench reads is checked.",
        kinds=True, compared=compared_13),
    "isca20-14": Experiment(
        "YCSB-C: user IPC and miss events (ISCA20 figure 14)", figure_14, {"isca20-14": Table(
            (figures.KIND, *THROUGHPUT, throughput_change("osdp"), *USER, HW_SHARE.but(form=".2f")),
            views={"": View((figures.KIND, figures.OPS_PER_SECOND, throughput_change("osdp"), USER_IPC, IPC_CHANGE,
                             HW_SHARE.but(form=".2f"))),
                   "events": View((figures.KIND, *OF_EVENTS))})},
        {"events": plots.Bars("event", "kind", "of_base", "% of osdp", rows=events("osdp"))}, (*rocksdb.COLUMNS, *EVENT_CHANGES),
        about="YCSB-C on RocksDB, 4 threads, a data set of twice the memory. Events are those of user code, per 1000 of "
              "its instructions.",
        compared=compared_14),
    "isca20-15": Experiment(
        "YCSB-C: instructions and cycles of the kernel (ISCA20 figure 15)", figure_15, {"isca20-15": Table(
            (figures.KIND, ALL_INSTRUCTIONS, ALL_CHANGE, ALL_CHANGE.interval("± %"), *(counted for counted,
                                                                                       _ in BY_WHOM.values()),
             ALL_CYCLES, CYCLES_CHANGE),
            views={"": View((figures.KIND, ALL_INSTRUCTIONS, ALL_CHANGE, *(counted for counted, _ in BY_WHOM.values()),
                             CYCLES_CHANGE))})},
        {"kernel": plots.Bars("bar", "part", "value", "an operation", rows=parts_15, stacked=True)},
        (*rocksdb.COLUMNS, KERNEL_CHANGE, *(cycles for _, cycles in BY_WHOM.values())),
        about="YCSB-C on RocksDB, 4 threads, a data set of twice the memory: all instructions and cycles of the kernel, by "
              "the thread that causes them.",
        compared=compared_15),
}
