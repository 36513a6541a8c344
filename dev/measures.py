# SPDX-License-Identifier: Apache-2.0
"""Measures of the goals. Each takes the session, which runs every experiment at most once."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from trapless.base.cache import CACHE
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import dataset, rootfs
from trapless.guest.job import Job
from trapless.loads import fio as miss_latency
from trapless.loads.setup import Setup
from trapless.pagesim import traces
from trapless.study import demo
from trapless.study.catalogue import EXPERIMENTS

from dev import speed
from dev.rtl import measured
from studies.aspf import capacity
from studies.aspf import figures as aspf
from studies.stc import figures as stc


class Session:
    """Experiments of one `./trapless dev goals`."""

    def __init__(self, quick: bool) -> None:
        """Begin a session. `quick` takes smaller loads."""
        self.quick = quick
        self.demo_seconds = 0.0
        self.seconds: dict[str, float] = {}
        self._records: dict[str, list[dict]] = {}

    def experiment(self, name: str) -> list[dict]:
        """Return the records of an experiment."""
        if name not in self._records:
            CACHE.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                # Recording traces takes minutes and installs packages, so the user must start it.
                kept = None if EXPERIMENTS[name].guest else traces.FOLDER
                setup = Setup(Path(folder), quick=self.quick, traces=kept)
                if EXPERIMENTS[name].guest:
                    self._build(setup)
                start = time.monotonic()
                self._records[name] = EXPERIMENTS[name].measure(setup)
                self.seconds[name] = time.monotonic() - start
        return self._records[name]

    def _build(self, setup: Setup) -> None:
        """Build everything that the demo's load needs, because the measured time must not include it."""
        build.machine()
        setup.guest(dataset.image(miss_latency.Load().file_bytes))

    @cached_property
    def demo(self) -> dict[str, dict]:
        """Return the demo's records by kind."""
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            build.machine()
            demo.guest_for("vc707", (), miss_latency.Load(), None)
            start = time.monotonic()
            records = demo.measure(Path(folder), quick=self.quick)
            self.demo_seconds = time.monotonic() - start
        return {record["kind"]: record for record in records}

    @cached_property
    def boots(self) -> list[dict]:
        """Return the machine's records of several boots without a job, one at a time."""
        program = build.machine()
        guest = guests.Guest(build.kernel(), rootfs.image())
        return [guests.run_on_machine(program, guest, Job("exit 0")).stats for _ in range(2 if self.quick else 5)]

    @cached_property
    def mips(self) -> dict[str, dict[str, float]]:
        """Return million instructions per host second, by simulator and part of the guest's work."""
        return speed.measure(1 if self.quick else 3)["mips"]

    @cached_property
    def smu_cycles(self) -> dict[str, float]:
        """Return cycles of the SMU's RTL."""
        return measured.smu_cycles()

    @cached_property
    def rtl_linux(self) -> tuple[float, dict[str, float]]:
        """Return results of Linux on the core in RTL: hwdp's share outside the device, and the machine's error by kind."""
        return measured.linux()


def hardware_share(session: Session) -> float:
    """Percent of first touches that hardware served."""
    hwdp = session.demo["hwdp"]
    return 100 * hwdp["hw_misses"] / hwdp["distinct_pages"]


def touches_uncounted(session: Session) -> float:
    """Distinct pages minus hardware misses and page faults, in pages."""
    hwdp = session.demo["hwdp"]
    return abs(hwdp["distinct_pages"] - hwdp["hw_misses"] - hwdp["os_faults"])


def hwdp_nondevice(session: Session) -> float:
    """Time of a hardware miss outside the device, in us."""
    return session.demo["hwdp"]["nondevice_us"]


def kernel_instructions_share(session: Session) -> float:
    """Kernel instructions per operation with hwdp, in percent of those with osdp."""
    return 100 * session.demo["hwdp"]["kernel_instructions_share_of_osdp"]


def arming_per_page(session: Session) -> float:
    """Time that mmap() takes for each page that it arms, in us."""
    return session.demo["hwdp"]["arming_us_per_page"]


def latency_ratio(session: Session) -> float:
    """Mean latency of osdp divided by that of hwdp."""
    return session.demo["hwdp"]["latency_ratio_to_osdp"]


def demo_host_seconds(session: Session) -> float:
    """Host seconds of the demo when everything is built."""
    return session.demo and session.demo_seconds


def all_kinds_host_seconds(session: Session) -> float:
    """Host seconds of the demo's load with all kinds, when kernel and images exist."""
    return session.experiment("miss_latency") and session.seconds["miss_latency"]


def restore_seconds(session: Session) -> float:
    """Host seconds of a whole run that begins at a checkpoint after the boot (median)."""
    return statistics.median(speed.measure_restore(2 if session.quick else 5))


def boot_seconds(session: Session) -> float:
    """Host seconds until the first command (median)."""
    return statistics.median(guests.first_command(stats)["host_seconds"] for stats in session.boots)


def boot_mips(session: Session) -> float:
    """Million instructions per host second until the first command (median)."""
    points = [guests.first_command(stats) for stats in session.boots]
    return statistics.median(point["instructions"] / point["host_seconds"] / 1e6 for point in points)


def cycles_between_equal_runs(session: Session) -> float:
    """Largest difference between equal runs, in cycles and instructions."""
    ends = [(stats["sim_cycles"], stats["instructions"]) for stats in session.boots]
    return max(abs(a - b) for pair in zip(ends, ends[1:], strict=False) for a, b in zip(*pair, strict=True))


def off_cost(session: Session) -> float:
    """Largest change, in percent, of the kernel instructions per page fault that the series causes where it is off."""
    return max(abs(entry["over_stock_percent"]) for entry in session.experiment("off_cost"))


def mapping_cost(session: Session) -> float:
    """Percent by which hwdp lengthens mapping, reading or storing, and unmapping, in the worst case."""
    return max(100 * (entry["hwdp_to_osdp"] - 1) for entry in session.experiment("mapping_cost"))


def _small(session: Session, kind: str, kpoold: str | None, key: str) -> list[float]:
    """Return one figure of the setting `small`, for each number of threads that has it."""
    return [entry[key] for entry in session.experiment("small_no_refill")
            if (entry["setting"], entry["kind"], entry["kpoold"]) == ("small", kind, kpoold) and entry.get(key) is not None]


def small_latency_ratio(session: Session) -> float:
    """Mean latency of osdp divided by that of hwdp, kpoold on: the lowest of all numbers of threads."""
    return min(_small(session, "hwdp", "on", "latency_ratio_to_osdp"))


def small_latency_ratio_to_emulated(session: Session) -> float:
    """Mean latency of emulated divided by that of hwdp, kpoold off: the lowest of all numbers of threads."""
    return min(_small(session, "hwdp", "off", "latency_ratio_to_emulated"))


def small_bandwidth_ratio(session: Session) -> float:
    """Bandwidth of hwdp divided by that of osdp, kpoold off: the lowest of all numbers of threads."""
    return min(_small(session, "hwdp", "off", "bandwidth_ratio_to_osdp"))


def refill_faults_removed(session: Session) -> float:
    """Percent of hwdp's faults without a free frame that kpoold removes: the lowest of all numbers of threads."""
    return min(_small(session, "hwdp", "on", "refill_faults_removed"))


def refill_overlap(session: Session) -> float:
    """Percent of the device's time in which a fault refills the free ring, kpoold off, 1 thread."""
    return _small(session, "hwdp", "off", "refill_overlap_percent")[0]


def several_harts_ratio(session: Session) -> float:
    """Speed of several harts together, divided by that of one."""
    one, several = speed.measure_harts(1 if session.quick else 3).values()
    return several / one


def _smt(session: Session, key: str) -> list[float]:
    """Return a figure of every hwdp run beside another program."""
    return [entry[key] for entry in session.experiment("isca20-16") if entry["kind"] == "hwdp" and "beside_ratio" in entry]


def smt_fio_ratio(session: Session) -> float:
    """Lowest speed of fio beside another program with hwdp, divided by that with osdp."""
    return min(_smt(session, "fio_ratio"))


def smt_beside_ratio(session: Session) -> float:
    """Lowest speed of the program beside fio with hwdp, divided by that with osdp."""
    return min(_smt(session, "beside_ratio"))


def smt_instructions_change(session: Session) -> float:
    """Change of the instructions that fio's thread executes in the same time, in percent: the value closest to 0."""
    return max(_smt(session, "fio_instructions_change"))


def _large(session: Session, key: str) -> float:
    """Return the largest value of a figure of the setting `large`."""
    return max(entry[key] for entry in session.experiment("large"))


def large_host_seconds(session: Session) -> float:
    """Host seconds of the slowest kind."""
    return _large(session, "host_seconds")


def large_host_memory(session: Session) -> float:
    """Host memory in addition to the guest's, in MiB."""
    return _large(session, "host_mib_over_guest")


def large_disk(session: Session) -> float:
    """Space that the disk image takes on the host's disk, in MiB."""
    return _large(session, "disk_mib")


def functional_boot_ratio(session: Session) -> float:
    """Speed in the boot with functional timing, divided by that of QEMU."""
    return session.mips["functional"]["boot"] / session.mips["qemu"]["boot"]


def functional_user_ratio(session: Session) -> float:
    """Speed in a loop of the shell with functional timing, divided by that of QEMU."""
    return session.mips["functional"]["user"] / session.mips["qemu"]["user"]


def detailed_least_ratio(session: Session) -> float:
    """Lowest speed of all parts with detailed timing, divided by that of QEMU with -icount."""
    return min(session.mips["detailed"][part] / session.mips["qemu-icount"][part] for part in speed.PARTS)


def detailed_least_mips(session: Session) -> float:
    """Million instructions per host second with detailed timing, in the slowest part."""
    return min(session.mips["detailed"].values())


def rtl_request_to_doorbell(session: Session) -> float:
    """Cycles of an idle miss in RTL from request to doorbell, without those of memory."""
    return session.smu_cycles["request_to_doorbell"]


def rtl_completion_to_answer(session: Session) -> float:
    """Cycles of an idle miss in RTL from completion queue entry to answer, without those of memory."""
    return session.smu_cycles["completion_to_answer"]


def rtl_cycles_per_miss(session: Session) -> float:
    """Cycles between misses in RTL, with as many misses at the same time as there are entries."""
    return session.smu_cycles["cycles_per_miss"]


def rtl_outside(session: Session) -> float:
    """Cycles of a miss that hwdp takes outside the device, in percent of osdp's cycles, on the core in RTL."""
    return 100 * session.rtl_linux[0]


def rtl_error_osdp(session: Session) -> float:
    """The machine's error against the core in RTL for osdp, in percent."""
    return session.rtl_linux[1]["osdp"]


def rtl_error_others(session: Session) -> float:
    """The machine's largest error against the core in RTL for the other kinds, in percent."""
    return max(error for kind, error in session.rtl_linux[1].items() if kind not in ("osdp", "SMU"))


def rtl_error_smu(session: Session) -> float:
    """The machine's error against the RTL for the SMU's part of a miss, in percent."""
    return session.rtl_linux[1]["SMU"]


def aspf_least_lead(session: Session) -> float:
    """Lowest lead of A-SPF* over sync, Virt_prefetch and Agg_virtual, in points of sync's time."""
    return _least_lead(session.experiment("aspf-6a"), "time_s_less")


def aspf_least_lead_accesses(session: Session) -> float:
    """Lowest lead of A-SPF*, in points of sync's accesses of the ULL device."""
    return _least_lead(session.experiment("aspf-6c"), "faults_less")


def _least_lead(records: list[dict], key: str) -> float:
    star = {record["mix"]: record[key] for record in records if record["policy"] == aspf.STAR}
    return min(star[record["mix"]] - record.get(key, 0.0) for record in records
               if record["policy"] in (aspf.BASELINE, aspf.VIRT, aspf.AGG))


def aspf_ours_points(session: Session) -> float:
    """Lead of our policy over A-SPF*, in points of time, on the third best of the four mixes."""
    points = [record["points_over_star"] for record in session.experiment("aspf-beyond") if record["policy"] == aspf.OURS]
    return sorted(points)[1]


def aspf_ours_jain(session: Session) -> float:
    """Lowest of the Jain's indices of our policy. Each is the mean over the programs' orders."""
    return min(record["jain"] for record in session.experiment("aspf-beyond") if record["policy"] == aspf.OURS)


def aspf_ours_over_rivals(session: Session) -> float:
    """Lowest lead of our policy over the best other policy, in points of time."""
    return min(saved[aspf.OURS] - max(saved[policy] for policy in saved if policy not in (aspf.OURS, aspf.BOUND))
               for saved in _saved(session))


def aspf_ours_to_bound(session: Session) -> float:
    """Lowest share of the time that our policy saves in the time that the offline bound saves, in percent."""
    return min(100 * saved[aspf.OURS] / saved[aspf.BOUND] for saved in _saved(session))


def _saved(session: Session) -> list[dict[str, float]]:
    """Return the time that each policy saves, in percent of sync's time, for each mix."""
    found: dict[str, dict[str, float]] = {}
    for record in session.experiment("aspf-beyond"):
        found.setdefault(record["mix"], {})[record["policy"]] = record.get("time_s_less", 0.0)
    return list(found.values())


def aspf_chains_accesses(session: Session) -> float:
    """Largest difference from the paper in fewer accesses of the ULL device, on chains, in points."""
    return _farthest(session, "faults_less", "paper_faults_less")


def aspf_chains_switches(session: Session) -> float:
    """Largest difference from the paper in fewer context switches, on chains, in points."""
    return _farthest(session, "context_switches_less", "paper_context_switches_less")


def aspf_chains_useful(session: Session) -> float:
    """Difference from the paper in useful prefetches from sets, on chains, in points."""
    return _farthest(session, "set_useful_share", "paper_useful")


def _farthest(session: Session, ours: str, papers: str) -> float:
    return max(abs(record[ours] - record[papers]) for record in session.experiment("aspf-chains")
               if record[papers] is not None and record.get(ours) is not None)


def aspf_chains_order(session: Session) -> float:
    """Lowest lead in the order sync, agg, virt, aspf, aspf-star by time on chains, in points, without the lead of aspf-star."""
    found: dict[str, dict[str, float]] = {}
    for record in session.experiment("aspf-chains"):
        found.setdefault(record["mix"], {})[record["policy"]] = record.get("time_s_less", 0.0)
    order = (aspf.BASELINE, aspf.AGG, aspf.VIRT, "aspf")
    return min(saved[after] - saved[before] for saved in found.values() for before, after in pairwise(order))


def aspf_sync_loss(session: Session) -> float:
    """Largest percentage by which waiting is slower than switching, with slow devices."""
    return max(-record["time_s_less"] for record in session.experiment("aspf-slow-device") if record["policy"] == aspf.BASELINE)


def aspf_adaptive_loss(session: Session) -> float:
    """Largest distance between the adaptive wait and the better of waiting and switching, in percent of async's time."""
    found: dict[tuple, dict[str, float]] = {}
    for record in session.experiment("aspf-slow-device"):
        found.setdefault((record["mix"], record["latency_us"]), {})[record["policy"]] = record.get("time_s_less", 0.0)
    return max(max(case["async"], case[aspf.BASELINE]) - case[aspf.ADAPTIVE] for case in found.values())


def aspf_sync_gain(session: Session) -> float:
    """Percentage by which waiting is faster than switching, in the runs of figure 1b."""
    return next(record["time_s_less"] for record in session.experiment("aspf-1b") if record["policy"] == aspf.BASELINE)


def aspf_switches_less(session: Session) -> float:
    """Percent of waiting's context switches that A-SPF* saves, on the mix where it saves least."""
    return min(record["context_switches_less"] for record in session.experiment("aspf-6b") if record["policy"] == aspf.STAR)


def aspf_replayed(_session: Session) -> float:
    """Million accesses of Mix3 that the simulator replays per second of CPU time, with the slowest order of replacement."""
    return min(capacity.replayed().values())


def aspf_memory_growth(session: Session) -> float:
    """Additional memory in MiB for a trace that is eight times as long, with the order of replacement that needs most."""
    return max(capacity.growth(16 if session.quick else 128).values())


def _stc_figures(session: Session) -> list[dict]:
    """Return the records of our default design in the paper's cases and in those between them."""
    return [record for name in ("stc-6", "stc-7") for record in session.experiment(name) if record["variant"] == stc.OURS]


def stc_least_lead(session: Session) -> float:
    """Lowest lead of the cache's saving over the paper's value, in points."""
    return min(record["saved"] - record["paper"] for record in _stc_figures(session) if record["paper"] is not None)


def stc_worst_fault(session: Session) -> float:
    """Largest percentage by which a page fault takes longer than on the unpatched kernel. Only cases with several boots count,
    because single boots differ more than kernels do."""
    return max(record["over_stock"] for record in _stc_figures(session) if record["boots"] > 1)


def stc_worst_cost(session: Session) -> float:
    """Largest percentage by which a microbenchmark takes longer than on the unpatched kernel."""
    return max(record["cycles_over_stock"] for record in session.experiment("stc-cost") if record["variant"] == stc.OURS)


FULL_ONLY = frozenset({stc_worst_fault.__name__, stc_worst_cost.__name__})
"""Measures that need the full form."""
MEASURES: dict[str, Callable[[Session], float]] = {
    measure.__name__: measure
    for measure in (hardware_share, touches_uncounted, hwdp_nondevice, kernel_instructions_share, arming_per_page,
                    latency_ratio, demo_host_seconds, all_kinds_host_seconds, restore_seconds, boot_seconds, boot_mips,
                    cycles_between_equal_runs, off_cost, mapping_cost,
                    small_latency_ratio, small_latency_ratio_to_emulated, small_bandwidth_ratio, refill_faults_removed,
                    refill_overlap, functional_boot_ratio, functional_user_ratio, detailed_least_ratio, detailed_least_mips,
                    several_harts_ratio, smt_fio_ratio, smt_beside_ratio, smt_instructions_change,
                    large_host_seconds, large_host_memory, large_disk,
                    rtl_request_to_doorbell, rtl_completion_to_answer, rtl_cycles_per_miss, rtl_outside, rtl_error_osdp,
                    rtl_error_others, rtl_error_smu, aspf_least_lead, aspf_least_lead_accesses, aspf_ours_points,
                    aspf_ours_over_rivals, aspf_ours_to_bound, aspf_ours_jain, aspf_chains_order, aspf_chains_accesses,
                    aspf_chains_switches, aspf_chains_useful, aspf_sync_loss, aspf_adaptive_loss, aspf_sync_gain,
                    aspf_switches_less, aspf_replayed, aspf_memory_growth,
                    stc_least_lead, stc_worst_fault, stc_worst_cost)
}
