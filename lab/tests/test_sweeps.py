# SPDX-License-Identifier: Apache-2.0
"""Sweeps: every point is run once, whoever is killed on the way; a program that fails is a result like the others."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import cache
from lab.images import dataset, ext4, rootfs
from lab.paths import MACHINE, ROOT
from lab.runner import guest as guests
from lab.runner import kept
from lab.sweeps import command, engine, grid, point, record, workloads
from lab.sweeps.engine import Engine
from lab.sweeps.grid import Grid
from lab.ui import UserError

FAKE = Path(__file__).with_name("fake_machine.py")


class Fake:
    """A laboratory of its own in a folder, with a machine that only pretends."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log.txt"
        for name in ("Image", "root.img"):
            (folder / name).write_text(name)
        self.env = {"TRAPLESS_CACHE": str(folder / "cache"), "TRAPLESS_KERNEL": str(folder / "Image"),
                    "TRAPLESS_MACHINE": str(FAKE), "FAKE_LOG": str(self.log), "PYTHONPATH": str(ROOT)}

    def starts(self) -> list[list[str]]:
        """Command, starter and process of each run so far, without boots."""
        lines = [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return [line for line in lines if line[0] != "boot"]

    def waiting(self) -> list[list[str]]:
        """Starts of those that wait."""
        return [start for start in self.starts() if "wait" in start[0]]

    def runs(self) -> Counter[str]:
        """How often each command was started."""
        return Counter(name for name, _, _ in self.starts())

    def grid(self, *commands: str, **more: object) -> Grid:
        return Grid({"memory": "64M"}, {"command": list(commands)}, folder=self.folder, **more)

    def trapless(self, *arguments: str) -> subprocess.Popen:
        """`./trapless ...` with this laboratory."""
        script = ("import sys; from pathlib import Path; from lab import __main__; from lab.images import rootfs; "
                  f"rootfs.image = lambda *_: Path({str(self.folder / 'root.img')!r}); sys.exit(__main__.main())")
        return subprocess.Popen([sys.executable, "-c", script, *arguments], env=os.environ | self.env, cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def sweep(self, *options: str) -> subprocess.Popen:
        return self.trapless("sweep", "sweep.toml", "--out", "out", *options)

    def file(self, *commands: str) -> None:
        """The file that `sweep` runs."""
        (self.folder / "sweep.toml").write_text(f"[fixed]\nmemory = '64M'\n[vary]\ncommand = {json.dumps(commands)}\n")

    def results(self) -> list[dict]:
        return json.loads((self.folder / "out" / "results.json").read_text())

    def hold(self, what: str = "wait") -> None:
        """Runs that wait (or boots) do so from now on."""
        self.log.with_suffix(f".{what}").touch()

    def release(self) -> None:
        for what in ("wait", "boot"):
            self.log.with_suffix(f".{what}").unlink(missing_ok=True)

    def boots(self) -> list[int]:
        """Processes of the boots so far, if nothing else has begun."""
        lines = [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []
        assert {line[0] for line in lines} <= {"boot"}
        return [int(line[2]) for line in lines]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    made = Fake(tmp_path)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rootfs, "image", lambda *_: tmp_path / "root.img")
    monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(kept, "_PLACE", tmp_path / "cache" / "kept")
    yield made
    made.release()


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "did not come true"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def statuses(results: list[dict]) -> list[str]:
    return [result["status"] for result in results]


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
    """The machine was killed: that says nothing of the program, and the next time it is run."""
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
    assert "did not end in 8 s of the host" in results[0]["line"]
    assert gone(int(fake.starts()[0][2]))


@pytest.mark.parametrize("how", ["--jobs", "--workers"])
def test_a_killed_sweep_goes_on_where_it_was(fake: Fake, how: str) -> None:
    """Killed with some runs finished and two under way: those two end at once, and they alone begin again."""
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
    """With what was under way; and nothing else begins."""
    fake.file(*(f"fake wait {n}" for n in range(4)))
    fake.hold()
    swept = fake.sweep("--jobs", "2")
    until(lambda: len(fake.waiting()) == 2)
    swept.terminate()
    assert swept.wait(30) == 143
    assert len(fake.starts()) == 2 and all(gone(int(machine)) for _, _, machine in fake.starts())


@pytest.fixture
def interrupts() -> Iterator[None]:
    """SIGINT interrupts, also where it is ignored by inheritance, as in what a shell runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupted_boot_is_not_begun_again(fake: Fake) -> None:
    """By the next of those who wait for it."""
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
    """As in a notebook, where the process goes on."""
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
    """A notebook keeps it, with all its frames: here an interrupt between two results."""
    fake.hold()
    monkeypatch.setattr(command.Progress, "show", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt) as kept_by_the_notebook:
        command.sweep(fake.grid("fake ok", *(f"fake wait {n}" for n in range(6))), engine=Engine(jobs=2))
    pools_end()
    assert len(fake.starts()) <= 3 and all(gone(int(machine)) for _, _, machine in fake.starts())
    assert kept_by_the_notebook


def test_killed_at_any_moment(fake: Fake) -> None:
    """During the boot, during each run, and between: in the end every run is there, finished once."""
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
    """Three workers. One that has finished a run is killed during the next: that run, and no other, is run again by another."""
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
    """As on many machines: the scheduler, the workers and the sweep are told of each other by an address alone."""
    fake.file("fake ok 1", "fake exit 2")
    address = fake.folder / "scheduler.json"
    scheduler = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
                                  "--no-dashboard", "--scheduler-file", str(address)], stderr=subprocess.DEVNULL)
    worker = None
    try:
        # Dask writes it in place: the file is there before its text is.
        until(lambda: address.exists() and address.read_text().rstrip().endswith("}"))
        where = json.loads(address.read_text())["address"]
        worker = fake.trapless("worker", where, "--jobs", "1")
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


@pytest.mark.parametrize(("text", "message"), [
    ("[fixed]\ncommand = 'true'\n[grid]\nx = 1", r"mine.toml: grid: should be in \[fixed\]"),
    ("[fixed]\ncommand = 'true'\n[vary]\nkind = 'osdp'", "vary.kind: not a list of values"),
    ("[fixed]\ncommand = 'true'\n[vary]\nkind = ['hwpd']", "no such kind: hwpd; did you mean hwdp"),
    ("[fixed]\ncommand = 'true'\n[vary]\nharts = ['4']", "harts: '4' is not a whole number"),
    ("[fixed]\ncommand = 'x {n}'\n[vary]\nn = [[1]]", r"n: \[1\] is not a text or number"),
    ("[fixed]\ncommand = 'x {n}'", r"command: \{n\} has no value"),
    ("[fixed]\ncommand = 'x'\n[vary]\nthreads = [1]", r"threads: neither an option nor \{threads\} in the command; there are"),
    ("[fixed]\ncommand = 'x {n}'\nn = 1\n[vary]\nn = [1]", r"n: both in \[fixed\] and in \[vary\]"),
    ("[vary]\nkind = ['osdp']", "needs either a `command` or a `workload`"),
    ("[fixed]\nworkload = 'fio'\ncommand = 'x'", "needs either a `command` or a `workload`"),
    ("[vary]\nworkload = ['fio', 'foi']", "no such workload: foi; did you mean fio"),
    ("[fixed]\nworkload = 'fio'\n[vary]\nrecords = [1]", "no such parameter of fio: records"),
    ("[fixed]\nworkload = 'fio'\n[vary]\nthreads = ['2']", "threads: '2' is not a whole number"),
    ("[fixed]\ncommand = 'x'\n[limits]\nhost_seconds = 0", "limits.host_seconds: not a positive number"),
    ("[fixed]\ncommand = 'x'\n[limits]\nminutes = 1", "limits.minutes: not a positive number of host_seconds or simulated_sec"),
    ("[fixed", "mine.toml: "),
    ("limits = 60", "mine.toml: limits: not a table of names and values"),
    ("[fixed]\ncommand = \"x 'y\"", "command: x 'y: no closing quotation"),
    ("[fixed]\ncommand = ''", "command: is empty"),
    ("[fixed]\ncommand = 'x'\nharts = 0", "harts: 0: at least 1"),
    ("[fixed]\ncommand = 'x'\nin = [1]", r"in: \[1\] is not a list of texts"),
    ("[fixed]\nworkload = 'fio'\n[vary]\nthreads = [1, 0]", "threads: 0: at least 1"),
    ("[fixed]\nworkload = 'fio'\n[vary]\nshare = [false, true]", "share: needs a `kind`"),
    ("[fixed]\ncommand = 'x'\nkernel = 'Image'\n[vary]\nstock = [false, true]", "kernel: not with `stock`"),
    ("[fixed]\ncommand = 'x'\nseries = ['stc']\n[vary]\nkernel = ['Image']", "kernel: not with `series`"),
])
def test_faulty_files(fake: Fake, text: str, message: str) -> None:
    (fake.folder / "mine.toml").write_text(text)
    with pytest.raises(UserError, match=message):
        command.run(fake.folder / "mine.toml", fake.folder / "out", Engine())
    assert not fake.starts()


def test_values_reach_the_guest(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "image", lambda size: fake.folder / "root.img")
    (fake.folder / "own.toml").write_text("")
    (fake.folder / "sweep.toml").write_text("""
        [fixed]
        command = "prog '{n} {word}' {{n}}"
        word = "a b"
        data = "64M,block=4096"
        profile = "own.toml"
        memory = "1G"
        append = "quiet"
        smu.cam_cycles = 7
        "hwdp.on" = true
        [vary]
        n = [1, 2]
        hwdp.ring = [64]
        ssd = ["tlc"]
        machine.harts = [2]
        kind = ["hwdp"]
        [limits]
        simulated_seconds = 9
    """)
    made = grid.load(fake.folder / "sweep.toml")
    point.check(made)
    one, two = (point.run_of(made, values) for values in grid.combinations(made.vary))
    assert one.title == "n=1, hwdp.ring=64, ssd=tlc, machine.harts=2, kind=hwdp"
    assert one.job.script == "exec hwdp -k hwdp -f /data/ -- prog '1 a b' '{n}'"
    guest = one.guest
    assert guest.settings == ("ssd=tlc", "machine.harts=2", "smu.cam_cycles=7")
    assert (guest.append, guest.data_options, guest.max_seconds) == ("quiet hwdp.on=1 hwdp.ring=64", "block=4096", 9)
    assert (guest.profile, one.host_mib, guest.data_kept) == (str(fake.folder / "own.toml"), 1024, False)
    assert kept.key(FAKE, one) != kept.key(FAKE, two)
    (fake.folder / "own.toml").write_text("name = 'other'")
    before = kept.key(FAKE, one)
    (fake.folder / "own.toml").write_text("name = 'other one'")
    assert kept.key(FAKE, one) != before, "a profile is known by its content"
    (fake.folder / "drive.toml").write_text("read_us = 1")
    (fake.folder / "own.toml").write_text(f"ssd = '{fake.folder / 'drive.toml'}'")
    before = kept.key(FAKE, one)
    (fake.folder / "drive.toml").write_text("read_us = 20")
    assert kept.key(FAKE, one) != before, "and so is its drive"


def test_a_drive_of_the_data_is_sought_beside_the_file(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "image", lambda size: fake.folder / "root.img")
    (fake.folder / "there").mkdir()
    monkeypatch.chdir(fake.folder / "there")
    (fake.folder / "tlc").mkdir()
    (fake.folder / "drive.toml").write_text("read_us = 1")
    (fake.folder / "sweep.toml").write_text(
        "[fixed]\ncommand = 'x'\n[vary]\ndata = ['64M,block=4096,ssd=drive.toml,ro', '64M,ssd=tlc']")
    made = grid.load(Path("..") / "sweep.toml")
    own, known = (point.run_of(made, values) for values in grid.combinations(made.vary))
    block, drive, mode = own.guest.data_options.split(",")
    assert (block, mode, known.guest.data_options) == ("block=4096", "ro", "ssd=tlc")
    path = Path(drive.removeprefix("ssd="))
    assert path.is_absolute() and path.samefile(fake.folder / "drive.toml")
    before = kept.key(FAKE, own)
    (fake.folder / "drive.toml").write_text("read_us = 20")
    assert kept.key(FAKE, own) != before, "a drive is known by its content"


def test_data_of_many_points_is_not_written_to(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    (fake.folder / "tree").mkdir()
    ext4.make(ext4.Volume("trapless-data", 32 * ext4.MIB), fake.folder / "tree", fake.folder / "disk.img")
    monkeypatch.setattr(dataset, "image", lambda size: fake.folder / "disk.img")
    made = Grid({"command": "fake ok", "memory": "64M"}, {"data": ["disk.img,rw", "64M,rw", "disk.img"]}, folder=fake.folder)
    results = command.sweep(made)
    assert statuses(results) == ["not run", "not run", "ok"]
    assert [result["line"] for result in results[:2]] == [
        "data: disk.img,rw: what is written to a sweep's data is dropped: it cannot be rw",
        "--data 64M,rw: what is written to random data is dropped: it cannot be rw"]


def test_a_script_that_may_run_is_another_one(fake: Fake) -> None:
    script = fake.folder / "script"
    script.write_text("#!/bin/sh\n")
    made = grid.Grid({"command": "sh script", "in": [str(script)], "memory": "64M"})
    before = kept.key(FAKE, point.run_of(made, {}))
    script.chmod(0o755)
    assert kept.key(FAKE, point.run_of(made, {})) != before


def test_a_folder_is_known_by_all_that_the_guest_finds_in_it(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it lies."""
    given = fake.folder / "given"
    (given / "sub").mkdir(parents=True)
    (given / "script").write_text("#!/bin/sh\n")
    (given / "link").symlink_to("script")

    def key(folder: Path = given) -> str:
        return kept.key(FAKE, point.run_of(Grid({"command": "sh */script", "in": [str(folder)], "memory": "64M"}), {}))

    def relink(target: str) -> None:
        (given / "link").unlink()
        (given / "link").symlink_to(target)

    changes: list[Callable[[], object]] = [
        lambda: (given / "script").chmod(0o755), lambda: relink("sub"), lambda: relink("nowhere"),
        lambda: (given / "sub" / "empty").mkdir(), lambda: (given / "sub" / "empty").rename(given / "empty"),
        lambda: ((given / "empty").rmdir(), (given / "empty").touch()), lambda: (given / "script").write_text("exit 1"),
    ]
    keys = [key()]
    for change in changes:
        change()
        keys.append(key())
    keys.append(key(given.rename(fake.folder / "renamed")))
    assert len(set(keys)) == len(changes) + 2
    (fake.folder / "elsewhere").mkdir()
    assert key((fake.folder / "renamed").rename(fake.folder / "elsewhere" / "renamed")) == keys[-1]
    monkeypatch.chdir(fake.folder / "elsewhere" / "renamed")
    assert cache.tree_key(Path()) == cache.tree_key(Path.cwd()), "a folder has a name, however it is told"


def test_values_come_before_figures_of_their_names(fake: Fake) -> None:
    """A program's own figure of a varied name, or `status`, does not stand in the way of what a point is."""
    result = {"values": {"n": 1}, "status": "ok", "exit_status": 0, "figures": {"n": 7, "status": 3, "reads": 2}}
    row = record.row(result)
    assert row == {"n": "1", "status": "ok", "exit_status": 0, "reads": 2}
    assert [name for name, *_ in record.columns(["n"], [row])] == ["n", "status", "reads"]


def test_units_of_a_programs_own_figures() -> None:
    """Its name's end says it, whatever the laboratory means by that name elsewhere; the machine's own have their names."""
    result = {"figures": {"hits": 3, "after": 2.0, "saved": 1, "saved_bytes": 7, "hw_misses": 5, "ops_per_second": 2.0},
              "git": None, "status": "ok", "exit_status": 0, "line": "", "details": {}}
    figures = record.line("sweep", {}, None, None, result)["figures"]
    assert {name: figure["unit"] for name, figure in figures.items()} == {
        "hits": "1", "after": "1", "saved": "1", "saved_bytes": "bytes", "hw_misses": "misses", "ops_per_second": "1/s"}
    assert figures["hits"]["direction"] is None


def test_sections_are_those_of_profiles() -> None:
    profile = tomllib.loads((MACHINE / "profiles" / "server.toml").read_text())
    assert set(profile) - {"name"} == set(point.SECTIONS)


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("figures.json", '{"a": 1, "b": 2.5}', {"a": 1, "b": 2.5}),
    ("figures.json", '{"a": "x"}', None), ("figures.json", "[1]", None), ("figures.json", "", None),
    ("fio.json", '{"jobs": [1]}', None),
    ("fio.json", "{", None), ("fio.json", '{"jobs": 1}', None), ("ycsb.json", "[]", None), ("dbbench.txt", "x", None),
])
def test_figures_of_a_program(name: str, text: str, expected: dict | None, tmp_path: Path) -> None:
    """What is no table of figures makes a point fail, and says so."""
    assert record.of_program(tmp_path) == {}
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text(text)
    taken = record.take(None, guests.Outcome(0, {"sim_seconds": 1.0}), tmp_path)
    if expected is None:
        assert taken["status"] == "failed" and f"/job/out/{name}: " in taken["line"]
    else:
        assert "status" not in taken and expected.items() <= taken["figures"].items()


def test_workloads_by_name(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads.dataset, "image", lambda size: fake.folder / f"{size}.img")
    monkeypatch.setattr(workloads.ycsb, "program", lambda: fake.folder / "root.img")
    for program in (workloads.ycsb, workloads.dbbench):
        monkeypatch.setattr(program.Database, "image", lambda self: fake.folder / f"{self.records}.img")
    made = Grid({"kind": "osdp", "threads": 4}, {"workload": ["fio", "ycsb-C", "db_bench"]}, folder=fake.folder)
    point.check(made)
    fio, ycsb, dbbench = (point.run_of(made, values) for values in grid.combinations(made.vary))
    assert "--numjobs=4" in fio.job.script and fio.guest.append == "norandmaps" and fio.guest.data.name == f"{320 << 20}.img"
    assert "-w C" in ycsb.job.script and "-t 4" in ycsb.job.script and ycsb.job.inputs == (fake.folder / "root.img",)
    assert "--threads=4" in dbbench.job.script and dbbench.job.script.endswith(" >/job/out/dbbench.txt 2>&1")
    with pytest.raises(UserError, match="workload fio has its own"):
        point.run_of(Grid({"data": "64M", "workload": "fio"}), {})


@pytest.mark.parametrize("workload", ["fio", "ycsb-C", "db_bench"])
def test_workloads_share_their_mappings(fake: Fake, workload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As told; otherwise threads of fio do, and RocksDB's have one for each file anyway."""
    monkeypatch.setattr(workloads.dataset, "image", lambda size: fake.folder / "root.img")
    monkeypatch.setattr(workloads.ycsb, "program", lambda: fake.folder / "root.img")
    for program in (workloads.ycsb, workloads.dbbench):
        monkeypatch.setattr(program.Database, "image", lambda self: fake.folder / "root.img")

    def shares(**more: object) -> bool:
        made = Grid({"kind": "osdp", "workload": workload, **more}, folder=fake.folder)
        point.check(made)
        return "hwdp -k osdp -f /data/ -s -- " in point.run_of(made, {}).job.script

    assert shares(share=True) and shares(share=True, threads=4)
    assert not shares(share=False, threads=4) and not shares()
    assert shares(threads=4) == (workload == "fio")


EXAMPLES = ROOT / "docs" / "examples"


def test_examples_are_those_of_the_guide() -> None:
    """And all of them can be loaded."""
    guide = (ROOT / "docs" / "sweeps.md").read_text()
    shown = dict(re.findall(r"<!-- example (\S+) -->\n(.*?)<!-- end -->", guide, re.DOTALL))
    assert "walk.toml" in shown
    for name, text in shown.items():
        assert textwrap.dedent(text) == (EXAMPLES / name).read_text()
        assert f"./trapless sweep docs/examples/{name}\n" in guide
    for file in EXAMPLES.glob("*.toml"):
        point.check(grid.load(file))
    for name, workload in workloads.WORKLOADS.items():
        family = "`ycsb-A` to `ycsb-F`" if name.startswith("ycsb") else f"`{name}`"
        line = next(line for line in guide.splitlines() if line.startswith(f"| {family} |"))
        for parameter, default in workload.parameters.items():
            assert f'`{parameter}` {json.dumps(default)}' in line
    for name in point.OPTIONS:
        assert f"`{name}`" in guide


@pytest.mark.guest
@pytest.mark.series
def test_the_guides_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kept, "_PLACE", tmp_path / "kept")
    assert command.run(EXAMPLES / "walk.toml", tmp_path / "out", Engine()) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    found = {tuple(result["values"].values()): result["figures"] for result in results}
    assert len(found) == 8 and len(capsys.readouterr().out.splitlines()) == 9
    for (kind, _, ring), figures in found.items():
        assert figures["hw_misses"] + figures["os_faults"] == 2048
        assert (figures["hw_misses"] > 1900) == (kind == "hwdp")
        assert figures["page_us"] > figures["device_us"] > 28
        assert figures["os_faults"] == 0 or (kind, ring) != ("hwdp", 4096)
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
    monkeypatch.setattr(kept, "_PLACE", tmp_path / "kept")
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
