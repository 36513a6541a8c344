# SPDX-License-Identifier: Apache-2.0
"""Sweeps: every point runs once, whatever is killed meanwhile; a program that fails gives a result like the others."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from trapless.base import kept as base_kept
from trapless.base.ui import UserError
from trapless.sweeps import command, engine, grid
from trapless.sweeps.engine import Engine
from trapless.sweeps.grid import Grid

from dev.tests.fake_lab import Fake, gone, statuses, until
from dev.tests.test_sweep_points import EXAMPLES


def test_results_of_every_point(fake: Fake) -> None:
    out, made = fake.folder / "out", fake.grid("fake ok 7", "fake exit 3", "fake exit 139", "fake ok 7", "./bad.c")
    (fake.folder / "bad.c").write_text("int main(void) { return missing; }\n")
    results = command.sweep(made, out)
    assert statuses(results) == ["ok", "failed", "killed", "ok", "not run"]
    assert [result["exit_status"] for result in results] == [0, 3, 139, 0, None]
    assert (results[0]["values"], results[0]["figures"]["n"]) == ({"command": "fake ok 7"}, 7)
    assert results[0]["output"] == "last words\n"
    assert results[1]["line"] == "exit status 3; its last words: last words"
    assert results[2]["line"] == "killed by SIGSEGV (exit status 139)"
    assert "'missing' undeclared" in results[4]["line"]
    assert fake.runs() == {"fake_ok_7": 1, "fake_exit_3": 1, "fake_exit_139": 1}, "equal points run once"
    assert json.loads((out / "results.json").read_text()) == results
    assert [row["n"] for row in csv.DictReader((out / "results.csv").read_text().splitlines())] == ["7", "3", "139", "7", ""]
    lines = [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]
    assert lines[0]["figures"]["sim_seconds"] == {"value": 1.0, "unit": "s", "direction": "lower is better"}
    assert (lines[0]["configuration"]["memory"], lines[0]["sweep"], len(lines)) == ("64M", "sweep", 5)
    assert command.sweep(made) == results
    assert sum(fake.runs().values()) == 3, "failures of a program are known, too"


def test_trouble_of_the_host_is_no_result(fake: Fake) -> None:
    """A killed machine says nothing about the program: the point is run again the next time."""
    fake.log.with_suffix(".die").touch()
    results = command.sweep(fake.grid("fake die", "fake ok"))
    assert statuses(results) == ["not run", "ok"]
    assert "the machine ended with status -9" in results[0]["line"]
    fake.log.with_suffix(".die").unlink()
    assert statuses(command.sweep(fake.grid("fake die", "fake ok"))) == ["ok", "ok"]
    assert fake.runs() == {"fake_die": 2, "fake_ok": 1}


def test_a_silent_run_ends_by_the_hosts_clock(fake: Fake) -> None:
    fake.hold()
    results = command.sweep(fake.grid("fake wait", "fake ok", limits=grid.Limits(host_seconds=8)))
    assert statuses(results) == ["not run", "ok"]
    assert "did not end within 8 host seconds" in results[0]["line"]
    assert gone(int(fake.starts()[0][2]))


@pytest.mark.parametrize("how", ["--jobs", "--workers"])
def test_a_killed_sweep_goes_on_where_it_was(fake: Fake, how: str) -> None:
    """The sweep is killed with some runs finished and two unfinished: these two end at once, and only they begin again."""
    names = ["fake ok 0", "fake wait 1", "fake ok 2", "fake wait 3", "fake ok 4", "fake ok 5"]
    fake.file(*names)
    fake.hold()
    swept = fake.sweep(how, "2")
    until(lambda: len(fake.waiting()) == 2)
    swept.kill()
    swept.wait()
    under_way, before = fake.waiting(), fake.runs()
    until(lambda: all(gone(int(process)) for _, *processes in under_way for process in processes))
    assert not (fake.folder / "out" / "results.json").exists()
    fake.release()
    assert fake.sweep(how, "2").wait() == 0
    assert statuses(fake.results()) == ["ok"] * 6
    assert [result["figures"]["n"] for result in fake.results()] == list(range(6))
    again = fake.runs() - before
    assert {name: again[name] for name in before} == {name: int("wait" in name) for name in before}
    assert set(fake.runs().values()) == {1, 2}


def test_a_terminated_sweep_ends_at_once(fake: Fake) -> None:
    """The unfinished runs end, too, and no others begin."""
    fake.file(*(f"fake wait {n}" for n in range(4)))
    fake.hold()
    swept = fake.sweep("--jobs", "2")
    until(lambda: len(fake.waiting()) == 2)
    swept.terminate()
    assert swept.wait(30) == 143
    assert len(fake.starts()) == 2 and all(gone(int(machine)) for _, _, machine in fake.starts())


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Let SIGINT interrupt, even if it is ignored by inheritance, as for programs in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupted_boot_is_not_begun_again(fake: Fake) -> None:
    """A thread that waits for the boot must not begin it again."""
    fake.file(*(f"fake ok {n}" for n in range(4)))
    fake.hold("boot")
    swept = fake.sweep("--jobs", "2")
    until(lambda: bool(fake.boots()))
    swept.send_signal(signal.SIGINT)
    try:
        assert swept.wait(30) == 130
    finally:
        swept.kill()
    [boot] = fake.boots()
    assert gone(boot)


def pools_end() -> None:
    until(lambda: not any(thread.name.startswith("ThreadPool") for thread in threading.enumerate()), 30)


@pytest.mark.usefixtures("interrupts")
def test_one_may_sweep_again_after_an_interrupt(fake: Fake) -> None:
    """In a notebook, the process continues after an interrupt."""
    made = fake.grid(*(f"fake ok {n}" for n in range(4)))
    fake.hold("boot")

    def interrupt() -> None:
        until(lambda: bool(fake.boots()))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        command.sweep(made, engine=Engine(jobs=2))
    pools_end()
    assert len(fake.boots()) == 1
    fake.release()
    assert statuses(command.sweep(made)) == ["ok"] * 4


@pytest.mark.usefixtures("interrupts")
def test_nothing_goes_on_behind_what_was_raised(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook keeps the exception with all its frames; here, the interrupt comes between two results."""
    fake.hold()
    monkeypatch.setattr(command.Progress, "show", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt) as kept_by_the_notebook:
        command.sweep(fake.grid("fake ok", *(f"fake wait {n}" for n in range(6))), engine=Engine(jobs=2))
    pools_end()
    assert len(fake.starts()) <= 3 and all(gone(int(machine)) for _, _, machine in fake.starts())
    assert kept_by_the_notebook


def test_killed_at_any_moment(fake: Fake) -> None:
    """Killed during the boot, during each run, and between runs: in the end there is a record of every run, each finished
    once."""
    fake.file(*(f"fake ok {n}" for n in range(6)))

    def kill_at(lines: int) -> None:
        swept = fake.sweep("--jobs", "1")
        until(lambda: fake.log.exists() and fake.log.read_text().count("\n") >= lines or swept.poll() is not None)
        swept.kill()
        swept.wait()

    for lines in (1, 2, 4, 5, 7):
        kill_at(lines)
    assert fake.sweep("--jobs", "1").wait() == 0
    assert [(result["status"], result["figures"]["n"]) for result in fake.results()] == [("ok", n) for n in range(6)]
    logs = [log.read_text() for log in (fake.folder / "cache" / "kept").glob("*.log")]
    assert [log.count(" kept: ") for log in logs] == [1] * 6
    assert sum(fake.runs().values()) <= 6 + 5, "each kill costs one run at most"


def test_two_sweeps_share_the_work(fake: Fake) -> None:
    names = [f"fake wait {n}" for n in range(4)]
    fake.file(*names)
    fake.hold()
    swept = [fake.sweep("--jobs", "2") for _ in range(2)]
    until(lambda: len(fake.starts()) == 4)
    fake.release()
    assert [one.wait() for one in swept] == [0, 0]
    assert set(fake.runs().values()) == {1}
    assert len({starter for _, starter, _ in fake.starts()}) == 2


def test_a_lost_worker_loses_nothing(fake: Fake) -> None:
    """Three workers. One that has finished a run is killed during the next one: only that run is run again, by another worker."""
    names = ["fake ok 0", "fake ok 1", "fake ok 2", *(f"fake wait {n}" for n in range(3, 8))]
    fake.file(*names)
    fake.hold()
    swept = fake.sweep("--workers", "3")
    until(lambda: len(fake.waiting()) == 3)
    lost, worker, machine = fake.waiting()[0]
    assert len({starter for _, starter, _ in fake.waiting()}) == 3
    os.kill(int(worker), signal.SIGKILL)
    until(lambda: gone(int(machine)), 5)
    fake.release()
    said = swept.communicate()[0]
    assert swept.returncode == 0, said
    assert [(result["status"], result["figures"]["n"]) for result in fake.results()] == [("ok", n) for n in range(8)]
    assert fake.runs() == {name.replace(" ", "_"): 2 if name.replace(" ", "_") == lost else 1 for name in names}
    logs = [log.read_text() for log in (fake.folder / "cache" / "kept").glob("*.log")]
    assert (len(logs), sum(log.count(" begins: ") for log in logs), sum(log.count(" kept: ") for log in logs)) == (8, 9, 8)


def test_workers_of_a_scheduler(fake: Fake) -> None:
    """As on many machines: the scheduler, the workers and the sweep share only an address."""
    fake.file("fake ok 1", "fake exit 2")
    address = fake.folder / "scheduler.json"
    scheduler = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
                                  "--no-dashboard", "--scheduler-file", str(address)], stderr=subprocess.DEVNULL)
    worker = None
    try:
        # Dask writes the file in place: it may exist before its text is complete.
        until(lambda: address.exists() and address.read_text().rstrip().endswith("}"))
        where = json.loads(address.read_text())["address"]
        worker = fake.trapless("sweep", "--worker", where, "--jobs", "1")
        swept = fake.sweep("--scheduler", where)
        said = swept.communicate()[0]
        assert swept.returncode == 1, said
        assert "command=fake exit 2: exit status 2" in said and "1 of 2 points failed" in said
        assert statuses(fake.results()) == ["ok", "failed"]
    finally:
        for process in filter(None, (worker, scheduler)):
            process.terminate()
            process.wait()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "no/address"])
def test_a_scheduler_that_does_not_answer(fake: Fake, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_PATIENCE_SECONDS", 0.5)
    with pytest.raises(UserError, match=f"--scheduler {address}: "):
        command.sweep(fake.grid("fake ok"), engine=Engine(scheduler=address))


@pytest.mark.guest
@pytest.mark.series
def test_the_guides_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(base_kept, "PLACE", tmp_path / "kept")
    assert command.run(EXAMPLES / "walk.toml", tmp_path / "out", Engine()) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    found = {tuple(result["values"].values()): result["figures"] for result in results}
    assert len(found) == 8 and len(capsys.readouterr().out.splitlines()) == 9
    for (kind, _, ring), figures in found.items():
        assert figures["hw_misses"] + figures["os_faults"] == 2048
        assert (figures["hw_misses"] > 1900) == (kind == "hwdp")
        assert figures["page_us"] > figures["device_us"] > 28
        # Linux serves a mapping's first miss. The first miss in each page table takes a fault. In the first table, the second
        # miss takes a fault, too, and has the rest of the table armed. The mapping is in five tables, because it does not begin
        # at the start of a table.
        assert figures["os_faults"] <= 7 or (kind, ring) != ("hwdp", 4096)
    assert found["hwdp", 1, 4096]["page_us"] < found["osdp", 1, 4096]["page_us"] / 2


PROGRAMS = {
    "good": '#include <stdio.h>\nint main(void) { FILE *f = fopen("/job/out/figures.json", "w");\n'
            'fputs("{\\"answer\\": 42}", f); return fclose(f); }',
    "three": '#include <stdio.h>\nint main(void) { puts("three it is"); return 3; }',
    "crash": '#include <stdio.h>\nint main(void) { puts("before"); fflush(stdout); *(volatile int *)8 = 1; return 0; }',
    "eat": "#include <stdlib.h>\n#include <string.h>\nint main(void) { for (;;) memset(malloc(1 << 20), 1, 1 << 20); }",
    "endless": "int main(void) { for (volatile long n = 0;; n++); }",
}


@pytest.mark.guest
def test_wrong_programs_do_not_spoil_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_kept, "PLACE", tmp_path / "kept")
    for name, text in PROGRAMS.items():
        (tmp_path / f"{name}.c").write_text(text + "\n")
    made = Grid({"memory": "128M"}, {"command": [*(f"./{name}.c" for name in PROGRAMS), "reboot -f"]},
                grid.Limits(simulated_seconds=5), tmp_path)
    good, three, crash, eat, endless, reboot = command.sweep(made)
    assert (good["status"], good["exit_status"], good["figures"]["answer"], good["line"]) == ("ok", 0, 42, "")
    assert (three["status"], three["exit_status"], three["output"]) == ("failed", 3, "three it is\n")
    assert (crash["status"], crash["exit_status"], crash["output"]) == ("killed", 139, "before\n")
    assert crash["line"] == "killed by SIGSEGV (exit status 139)"
    assert (eat["status"], eat["exit_status"]) == ("out of memory", 137)
    assert eat["line"] == "out of memory: the guest's kernel killed eat (exit status 137)"
    assert (endless["status"], endless["exit_status"]) == ("time limit", None)
    assert endless["line"] == "did not end in 5 simulated seconds"
    assert reboot["status"] == "crashed" and "crashed or rebooted" in reboot["line"]
