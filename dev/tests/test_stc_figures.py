# SPDX-License-Identifier: Apache-2.0
"""Software translation caches: programs that cause faults, records of runs, and how figures are computed."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from statistics import mean

import pytest
from trapless.base import kept as base_kept
from trapless.base import took
from trapless.base.cache import run_tool
from trapless.base.paths import LINUX
from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest import build, kept
from trapless.loads.setup import Setup
from trapless.profile import profiling
from trapless.study import measure, repeated

from studies.stc import figures as stc
from studies.stc import runs


@pytest.fixture(scope="session")
def faultwork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build faultwork for this host."""
    program = tmp_path_factory.mktemp("faultwork") / "faultwork"
    run_tool(["cc", "-O2", "-std=gnu11", "-pthread", "-o", program, LINUX / "tools" / "faultwork.c"],
             program.with_suffix(".log"), "building faultwork")
    return program


def counts(line: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}


@pytest.mark.parametrize(("command", "done"), [
    ("seq -b 1M", 256), ("seq -b 1G -n 100 -s", 100), ("random -b 1M -t 3", 768), ("random -b 64G -n 100 -g", 100),
    ("semi -b 1M -r 7", 255), ("matmul 33", 33), ("pagefault -t 2 -b 1M -n 3", 6), ("filefault -b 1M -n 2", 2),
    ("munmap -b 8M -n 2", 2), ("fork -n 3", 3), ("exec -n 3 -t 2", 6),
])
def test_workloads_do_and_check_what_they_say(faultwork: Path, command: str, done: int) -> None:
    ended = subprocess.run([faultwork, *command.split()], capture_output=True, text=True, check=True)
    found = counts(ended.stdout)
    assert (list(found.values())[1], found["wrong"], ended.stderr) == (done, 0, "")


def test_another_program_keeps_its_status(faultwork: Path) -> None:
    assert subprocess.run([faultwork, "run", "sh", "-c", "exit 7"], check=False).returncode == 7


@pytest.mark.parametrize(("command", "named"), [
    ("", "no workload"), ("walk", "walk"), ("seq -t 0", "-t 0"), ("seq -t 65", "-t 65"), ("seq -b 4097", "-b 4097"),
    ("seq -b 4K", "-b 4096"), ("seq -b 1M -n 257", "-n 257"), ("random -s", "-s"), ("fork -b 1M", "-b"), ("seq -c 0,", "-c 0,"),
    ("seq -c 1000", "-c 1000"), ("matmul", "none"), ("matmul 9000", "9000"), ("matmul 1 2", "2"),
    ("seq -b 99999999999999999999", "-b"), ("seq 1", "1"), ("run", "no command"),
])
def test_complaints_are_one_line(faultwork: Path, command: str, named: str) -> None:
    ended = subprocess.run([faultwork, *command.split()], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert named in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.guest
@pytest.mark.long
def test_every_touch_is_a_fault(tmp_path: Path, stock: Path) -> None:
    """The program counts as many faults as it touched pages, and the machine counts as many as the program."""
    assert "# CONFIG_TRANSPARENT_HUGEPAGE is not set" in (stock.parent / "config").read_text()
    cases = [runs.Case(f"faultwork {command} -b 16M", runs.STOCK) for command in ("seq", "semi", "random -t 2")]
    for case, pages in zip(cases, (4096, 4095, 8192), strict=True):
        # Not from the cache, which may have the record of an older program.
        record = kept.fresh(build.machine(), runs.run_of(Setup(tmp_path), case))
        assert counts(record["console"])["faults"] == counts(record["console"])["pages"] == pages
        figures = runs.figures(record)
        # Threads that wait at barriers may cause additional faults.
        assert pages <= figures["faults"] <= pages + 16
        assert figures["walk"] is None
        assert 500 < figures["fault"] < 50_000


def test_categories_name_functions_of_the_kernel(patched: Path) -> None:
    names = {line.split()[2] for line in profiling.symbols_of(patched).read_text().splitlines() if line.split()[1] in "tTwW"}
    found = {entry["name"]: entry["functions"] for entry in tomllib.loads(runs.CATEGORIES.read_text())["category"]}
    for name, functions in found.items():
        for function in functions if name != runs.WALK else ():
            beginning = function.removesuffix("*")
            assert function.startswith("[") or any(
                known == function or (beginning != function and known.startswith(beginning)) for known in names), function
    assert {runs.WALK, runs.TABLES, runs.INTERRUPT} <= found.keys()


def spent(**cycles: int) -> dict:
    return {name.replace("_", " "): {"cycles": n, "instructions": n // 2} for name, n in cycles.items()}


def profile(walk: bool = True) -> dict:
    lines = [("fault_walk", 10, 300, 900), ("stc_fill", 4, 600, 600)] if walk else []
    return {
        "faults": {"count": 0}, "minor_faults": {"count": 10}, "tasks": {"faultwork": {"cycles": 20_000}},
        "in_faults": spent(page_table_walk=900 if walk else 0, page_tables_made=100, fault=7000, exception=2000, interrupt=500),
        "functions": [{"name": name, "calls": calls, "cycles": own, "inclusive_cycles": whole} for name, calls, own, whole
                      in (*lines, ("__handle_mm_fault", 10, 4000, 6000), ("memset", 10, 1, 1))],
    }


STATS = {"rois": [{"begin_cycle": 100, "end_cycle": 25_100, "instructions": {"user": 10, "supervisor": 20}, "host_seconds": 1.0}]}


def test_figures_of_a_run() -> None:
    record = runs.take(STATS, profile(), "", "faultwork")
    assert (record["cycles"], record["instructions"]) == (25_000, 30)
    found = runs.figures(record)
    assert found == {"faults": 10, "walk": 90, "tables": 10, "fault": 1000, "walk_instructions": 45, "hits": pytest.approx(60),
                     "fault_share": 50, "walk_share": 4.5, "walk_of_fault": 9, "walk_of_handler": 15, "handler": 490}


def test_the_unpatched_kernel_has_no_walk_to_see() -> None:
    found = runs.figures(runs.take(STATS, profile(walk=False), "", "faultwork"))
    assert (found["walk"], found["hits"], found["walk_share"], found["handler"]) == (None, None, None, 400)


def run_of(variant: str, walk: float | None, fault: float, threads: int = 1) -> dict:
    return repeated.row({"variant": variant, "order": "seq", "threads": threads}, [{"walk": walk, "fault": fault, "seed": 1}])


def test_savings_are_against_the_same_work() -> None:
    records = stc.compare([run_of("stock", None, 1000), run_of("off", 100, 1100), run_of("ours", 75, 1045),
                           run_of("off", 50, 100, threads=8), run_of("ours", 60, 110, threads=8)], ("order", "threads"))
    stock, off, ours, off8, ours8 = stc._beside_paper(records, "6", "order", "threads")
    assert "saved" not in stock and "saved" not in off and "paper" not in off
    assert (ours["saved"], ours["paper"]) == (25, 20)
    assert (ours["over_off"], ours["over_stock"], off["over_stock"]) == (pytest.approx(-5), pytest.approx(4.5), pytest.approx(10))
    assert (ours8["saved"], ours8["paper"]) == (pytest.approx(-20), 28)
    assert "over_stock" not in ours8 and "over_stock" not in off8


def test_the_mean_of_some_boots() -> None:
    boots = [{"cycles": cycles, "instructions": cycles // 2, "walk": None} for cycles in (110, 100, 102)]
    found = stc.told(repeated.row({}, boots), "cycles")
    assert (found["cycles"], found["instructions"], found["walk"], found["boots"]) == (104, 52, None, 3)
    assert found["error"] == pytest.approx(100 * (28 / 3) ** 0.5 / 104)
    assert stc.told(repeated.row({}, boots[:1]), "cycles")["error"] is None


def test_savings_of_some_boots_are_those_of_the_means() -> None:
    def of(variant: str, *walks: float) -> dict:
        return repeated.row({"variant": variant, "rows": 100}, [{"walk": walk, "fault": 10 * walk} for walk in walks])

    _, ours, even = stc.compare([of("off", 100, 200, 300), of("ours", 50, 60, 40), of("paper", 50, 100, 150)], ("rows",))
    assert ours["saved"] == 75 and ours["over_off"] == -75
    assert [run["saved"] for run in ours["runs"]] == [50, 70, pytest.approx(100 * 26 / 30)]
    beyond = [50 - 25, 60 - 50, 40 - 75]  # a quarter of its base
    wide = repeated.half_width([100 * cycles / 200 for cycles in beyond])
    assert ours["saved_ci"] == ours["over_off_ci"] == pytest.approx(wide)
    assert (even["saved"], even["saved_ci"]) == (50, 0), "each boot saves the same"


def keep(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[dict], dict, list[dict]]:
    """Return an experiment's rows, its entry in the report, and its records, for runs whose cycles depend on the boot's
    memory."""
    def record(case: runs.Case) -> dict:
        taken = runs.take(STATS, profile(case.words != runs.STOCK), "", "faultwork")
        more = case.memory_mib % 64 + 100 * (case.words == "stc=off")
        taken["fault"] = {part: cycles + more for part, cycles in taken["fault"].items()}
        return {**taken, "cycles": 25_000 + more, "configuration": {"title": case.title, "memory": case.memory_mib}}

    monkeypatch.setattr(stc.runs, "records", lambda setup, cases: [record(case) for case in cases])
    found = stc.EXPERIMENTS[name].measure(Setup(folder))
    measure.keep(name, stc.EXPERIMENTS[name], Setup(folder), found, {"host_seconds": 1.0})
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    return found, json.loads((folder / "experiment.json").read_text()), lines


@pytest.mark.parametrize("name", stc.EXPERIMENTS)
def test_each_boot_is_a_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, whole, lines = keep(name, tmp_path, monkeypatch)
    assert whole["runs"] == len(lines) == sum(row.get("boots", 1) for row in rows)
    assert len({(*line["names"].items(), line["seed"]) for line in lines}) == len(lines)
    assert all(line["configuration"]["title"] for line in lines)
    found = iter(lines)
    for row in rows:
        mine = [next(found) for _ in range(row.get("boots", 1))]
        assert [line["seed"] for line in mine] == list(range(1, len(mine) + 1))
        assert row.items() >= mine[0]["names"].items()
        assert len({line["configuration"]["memory"] for line in mine}) == len(mine)
        assert mean(line["figures"]["cycles"]["value"] for line in mine) == row["cycles"]


def test_the_overview_has_intervals_of_boots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, quantities in (("stc-2", 3), ("stc-3", 3), ("stc-4", 1), ("stc-6", 12), ("stc-7", 4)):
        (folder := tmp_path / name).mkdir()
        rows, whole, _ = keep(name, folder, monkeypatch)
        wide = {one["quantity"]: one["interval"] for one in whole["compared"]}
        assert len(wide) == quantities and all(interval > 0 for interval in wide.values()), name
    for row in rows:
        if row.get("paper") is not None:
            assert wide[f"cycles of walks saved, {row['variant']}: rows {row['rows']}"] == row["saved_ci"]


def test_the_papers_values() -> None:
    assert [stc.paper("6", order, threads) for order in stc.ORDERS for threads in stc.THREADS] == [
        20, None, None, 28, 20, None, None, 28, 15, None, None, 22]
    assert [stc.paper("7", rows) for rows in (100, 500, 1000)] == [30, None, 37]


def test_cases_have_the_memory_they_touch() -> None:
    whole = stc.touch("random", 8, 1024 * stc.MIB_PAGES)
    assert 8 * 1024 < whole.memory_mib <= 9 * 1024
    assert stc.touch("seq", 1, 4096, 1024).memory_mib == 1024
    # 32 pages for each touch, and one or two tables.
    assert stc.touch("random", 1, 16384, 4096, 32).memory_mib >= 16384 * 33 // 256
    assert stc.touch("random", 1, 16384, 1 << 20).memory_mib == 1024


def test_multi_alloc_is_asked_of_the_kernel() -> None:
    script = runs.Case("faultwork seq", pages=8).script()
    assert "echo always > /sys/kernel/mm/transparent_hugepage/hugepages-32kB/enabled" in script
    assert script.index("echo never") < script.index("echo always") < script.index("faultwork")
    assert "hugepage" not in runs.Case("faultwork seq").script()


@pytest.mark.parametrize(("quick", "kernels"), [(True, {("huge.config",)}), (False, {(), ("huge.config",), "stock"})])
def test_the_quick_form_has_one_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: bool, kernels: set) -> None:
    """Building a kernel takes minutes; and a kernel with huge pages cannot be compared with the unpatched one, which has none."""
    built = []
    monkeypatch.setattr(build, "beside_machine", lambda find: find())
    monkeypatch.setattr(build, "kernel", lambda stock=False, series=(), configs=(): built.append("stock" if stock else configs))

    def records(setup: Setup, cases: list[runs.Case]) -> list[dict]:
        for case in cases:
            runs.kernel(setup, case)
        return [{**runs.take(STATS, profile(), "", "faultwork"), "configuration": {}} for _ in cases]

    monkeypatch.setattr(runs, "records", records)
    setup = Setup(tmp_path, quick=quick)
    rows = [row for figure in (stc.figures_2_3, stc.figure_4, stc.figure_6, stc.figure_7, stc.beyond, stc.costs)
            for row in figure(setup)]
    assert set(built) == kernels and len(built) == len(kernels)
    assert any({"over_stock", "cycles_over_stock"} & set(row) for row in rows) is not quick


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """Return a kernel that runs depend on, but that is not run."""
    (tmp_path / "Image").write_text("kernel")
    (tmp_path / "System.map").write_text("map")
    return tmp_path / "Image"


def test_a_run_is_done_once(tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def run(_program: Path, wanted: kept.Run) -> dict:
        done.append(wanted.title)
        return {"title": wanted.title}

    monkeypatch.setattr(kept, "fresh", run)
    monkeypatch.setattr(base_kept, "PLACE", tmp_path / "cache")
    monkeypatch.setattr(runs.build, "machine", lambda: kernel)
    monkeypatch.setattr(runs.rootfs, "image", lambda more=(): kernel)
    setup = Setup(tmp_path, kernel=kernel)
    off, ours = (runs.Case("faultwork seq", words) for words in ("stc=off", ""))
    assert [record["title"] for record in runs.records(setup, [off, ours, off])] == [off.title, ours.title, off.title]
    assert sorted(done) == sorted([off.title, ours.title])
    assert [record["configuration"]["kernel_command_line"] for record in runs.records(setup, [off, ours])] == ["stc=off", ""]
    with took.account() as account:
        runs.records(setup, [ours, runs.Case("faultwork seq", "", "sv48")])
        runs.records(setup, [runs.Case("faultwork seq", "", "sv48")])
    assert len(done) == 3
    assert len(account.before) == 1, "not the run that this made itself"


def test_words_that_the_kernel_does_not_know(tmp_path: Path, kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = guests.Outcome(0, STATS, "seq\n[    0.000000] stc: stc=lines=3: not understood, no cache\n")
    monkeypatch.setattr(kept.guests, "run_on_machine", lambda *_, **__: outcome)
    monkeypatch.setattr(runs.rootfs, "image", lambda more=(): kernel)
    run = runs.run_of(Setup(tmp_path, kernel=kernel), runs.Case("faultwork seq", "stc=lines=3", attributed=False))
    with pytest.raises(UserError, match=r"the kernel does not know stc=lines=3"):
        kept.fresh(kernel, run)
    outcome.status = 1
    with pytest.raises(UserError, match="status 1"):
        kept.fresh(kernel, run)
