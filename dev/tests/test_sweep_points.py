# SPDX-License-Identifier: Apache-2.0
"""Points of sweeps: what a file's values mean to the guest, by what a point is identified, and which figures it has."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.base import cache
from trapless.base.paths import MACHINE, ROOT
from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest import kept
from trapless.guest.images import dataset, ext4
from trapless.loads import named as workloads
from trapless.results.columns import LOWER
from trapless.sweeps import command, grid, point, record
from trapless.sweeps.engine import Engine
from trapless.sweeps.grid import Grid

from dev.tests.fake_lab import FAKE, Fake, statuses


@pytest.mark.parametrize(("text", "message"), [
    ("[fixed]\ncommand = 'true'\n[grid]\nx = 1", r"mine.toml: grid: should be in \[fixed\]"),
    ("[fixed]\ncommand = 'true'\n[vary]\nkind = 'osdp'", "vary.kind: not a list of values"),
    ("[fixed]\ncommand = 'true'\n[vary]\nkind = ['hwpd']", "no such kind: hwpd; did you mean hwdp"),
    ("[fixed]\ncommand = 'true'\n[vary]\nharts = ['4']", "harts: '4' is not a whole number"),
    ("[fixed]\ncommand = 'x {n}'\n[vary]\nn = [[1]]", r"n: \[1\] is not a text or number"),
    ("[fixed]\ncommand = 'x {n}'", r"command: \{n\} has no value"),
    ("[fixed]\ncommand = 'x'\n[vary]\nthreads = [1]", r"threads: neither an option nor \{threads\} in the command; there are"),
    ("[fixed]\ncommand = 'x {n}'\nn = 1\n[vary]\nn = [1]", r"n is in \[fixed\] and in \[vary\]"),
    ("[vary]\nkind = ['osdp']", "needs either a `command` or a `workload`"),
    ("[fixed]\nworkload = 'fio'\ncommand = 'x'", "needs either a `command` or a `workload`"),
    ("[vary]\nworkload = ['fio', 'foi']", "no such workload: foi; did you mean fio"),
    ("[fixed]\nworkload = 'fio'\n[vary]\nrecords = [1]", "no such parameter of fio: records"),
    ("[fixed]\nworkload = 'fio'\n[vary]\nthreads = ['2']", "threads: '2' is not a whole number"),
    ("[fixed]\ncommand = 'x'\n[limits]\nhost_seconds = 0", "limits.host_seconds: must be a positive number, not 0"),
    ("[fixed]\ncommand = 'x'\n[limits]\nminutes = 1", "limits.minutes: no such limit; the limits are host_seconds"),
    ("[fixed", "mine.toml: "),
    ("limits = 60", "mine.toml: limits: not a table of names and values"),
    ("[fixed]\ncommand = \"x 'y\"", "command: x 'y: no closing quotation"),
    ("[fixed]\ncommand = ''", "command: is empty"),
    ("[fixed]\ncommand = 'x'\nharts = 0", "harts must be at least 1, not 0"),
    ("[fixed]\ncommand = 'x'\n[vary]\ndata = ['64M', '0M']", "--data 0M: random.bin would be empty"),
    ("[fixed]\ncommand = 'x'\ndata = '64M,ssd=tlc,ssd=ull'", "ssd is given twice; give it once"),
    ("[fixed]\ncommand = 'x'\nin = [1]", r"in: \[1\] is not a list of texts"),
    ("[fixed]\nworkload = 'fio'\n[vary]\nthreads = [1, 0]", "threads must be at least 1, not 0"),
    ("[fixed]\nworkload = 'fio'\n[vary]\nshare = [false, true]", "share works only with a `kind`"),
    ("[fixed]\ncommand = 'x'\nkernel = 'Image'\n[vary]\nstock = [false, true]", "kernel does not work with `stock`"),
    ("[fixed]\ncommand = 'x'\nseries = ['stc']\n[vary]\nkernel = ['Image']", "kernel does not work with `series`"),
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
    assert kept.key(FAKE, one) != before, "the drive's file is part of the key"


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
        "data: disk.img,rw: leave rw out: what the guest writes to a sweep's data is dropped",
        "--data 64M,rw: leave rw out: what the guest writes to random data is dropped"]


def test_a_script_that_may_run_is_another_one(fake: Fake) -> None:
    script = fake.folder / "script"
    script.write_text("#!/bin/sh\n")
    made = grid.Grid({"command": "sh script", "in": [str(script)], "memory": "64M"})
    before = kept.key(FAKE, point.run_of(made, {}))
    script.chmod(0o755)
    assert kept.key(FAKE, point.run_of(made, {})) != before


def test_a_folder_is_known_by_all_that_the_guest_finds_in_it(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key does not depend on the folder's place."""
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
    assert cache.tree_key(Path()) == cache.tree_key(Path.cwd()), "a folder has one key, however it is named"


def test_values_come_before_figures_of_their_names(fake: Fake) -> None:
    """If a program's figure has the name of a varied value, or is called `status`, the row has the point's own value."""
    result = {"values": {"n": 1}, "status": "ok", "exit_status": 0, "figures": {"n": 7, "status": 3, "reads": 2}}
    row = record.row(result)
    assert row == {"n": "1", "status": "ok", "exit_status": 0, "reads": 2}
    assert [column.key for column in record.columns(["n"], [row])] == ["n", "status", "reads"]


def test_units_of_a_programs_own_figures() -> None:
    """A program gives the units of its figures itself, whatever their names mean elsewhere. The units of the machine's figures
    are known."""
    result = {"figures": {"hits": 3, "after_us": 2.0, "hw_misses": 5, "ops_per_second": 2.0},
              "columns": {"after_us": {"unit": "us", "direction": LOWER, "meaning": "Time after."}},
              "git": None, "status": "ok", "exit_status": 0, "line": "", "details": {}}
    figures = record.line("sweep", {}, None, None, result)["figures"]
    assert {name: figure["unit"] for name, figure in figures.items()} == {
        "hits": "1", "after_us": "us", "hw_misses": "misses", "ops_per_second": "1/s"}
    assert (figures["hits"]["direction"], figures["after_us"]["direction"]) == (None, LOWER)


def test_a_program_says_what_its_figures_are(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures.json").write_text(
        '{"a": 1, "b": {"value": 2.5, "unit": "us", "direction": "lower", "meaning": "Time."}, "c": {"value": 3}}')
    taken = record.take(None, guests.Outcome(0, {"sim_seconds": 1.0}), tmp_path)
    assert {"a": 1, "b": 2.5, "c": 3}.items() <= taken["figures"].items()
    assert taken["columns"] == {"b": {"unit": "us", "direction": LOWER, "meaning": "Time."},
                                "c": {"unit": "1", "direction": None, "meaning": ""}}


@pytest.mark.parametrize(("text", "line"), [
    ("[1]", "must be a JSON object of names and numbers"),
    ('{"a": 1, "b": "x"}', 'b: must be a number, or a table with a number `value`, not "x"'),
    ('{"b": {"unit": "us"}}', 'b: must be a number, or a table with a number `value`, not {"unit": "us"}'),
])
def test_figures_that_are_none(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "figures.json").write_text(text)
    with pytest.raises(UserError) as found:
        record.of_program(tmp_path)
    assert str(found.value) == f"/job/out/figures.json: {line}"
    (tmp_path / "out").mkdir()
    (tmp_path / "figures.json").rename(tmp_path / "out" / "figures.json")
    taken = record.take(None, guests.Outcome(0, {"sim_seconds": 1.0}), tmp_path)
    assert taken["line"] == f"/job/out/figures.json: {line}", "another complaint about the same file does not replace it"


def test_sections_are_those_of_profiles() -> None:
    profile = tomllib.loads((MACHINE / "profiles" / "server.toml").read_text())
    assert set(profile) - {"name"} == set(point.SECTIONS)


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("figures.json", '{"a": 1, "b": 2.5}', {"a": 1, "b": 2.5}),
    ("figures.json", '{"a": {"value": 1, "unti": "us"}}', None), ("figures.json", '{"a": {"unit": "us"}}', None),
    ("figures.json", '{"a": {"value": 1, "direction": "up"}}', None), ("figures.json", '{"a": {"value": 1, "unit": 3}}', None),
    ("figures.json", '{"a": "x"}', None), ("figures.json", "[1]", None), ("figures.json", "", None),
    ("fio.json", '{"jobs": [1]}', None),
    ("fio.json", "{", None), ("fio.json", '{"jobs": 1}', None), ("ycsb.json", "[]", None), ("dbbench.txt", "x", None),
])
def test_figures_of_a_program(name: str, text: str, expected: dict | None, tmp_path: Path) -> None:
    """A file that is not a table of figures makes the point fail with a message."""
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
    """`share` decides whether threads share a mapping. By default, fio's threads do; RocksDB maps each file only once anyway."""
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
    """The guide shows the examples as they are, and all of them can be loaded."""
    guide = (ROOT / "docs" / "reference" / "sweeps.md").read_text()
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
