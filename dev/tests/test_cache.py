# SPDX-License-Identifier: Apache-2.0
"""Incomplete builds never count; every failure is one line."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.base import cache, outputs
from trapless.base.paths import PYTHONPATH
from trapless.base.ui import UserError
from trapless.guest import build, job
from trapless.guest.images import dataset, loaded, rootfs, sparse
from trapless.guest.job import Job
from trapless.loads import dbbench, ycsb
from trapless.loads import fio as miss_latency
from trapless.study import demo

from dev import selftests


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")


def test_built_once() -> None:
    calls = []

    def builder(folder: Path) -> None:
        calls.append(folder)
        (folder / "x").write_text("1")

    first = cache.cached("k", "key", "building", builder)
    assert cache.cached("k", "key", "building", builder) == first
    assert (first / "x").read_text() == "1"
    assert len(calls) == 1


@pytest.mark.parametrize("failure", [UserError("no"), KeyboardInterrupt(), OSError(errno.ENOSPC, "No space", "f")])
def test_failure_leaves_nothing(failure: BaseException) -> None:
    def builder(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise failure

    with pytest.raises((UserError, KeyboardInterrupt)):
        cache.cached("k", "key", "building", builder)
    assert list((cache.CACHE / "k").iterdir()) == []


def test_leftover_of_a_killed_build_is_dropped() -> None:
    partial = cache.CACHE / "k" / ".partial-key"
    partial.mkdir(parents=True)
    (partial / "half").write_text("half")
    built = cache.cached("k", "key", "building", lambda folder: (folder / "whole").touch())
    assert [path.name for path in built.iterdir()] == ["whole"]


def test_work_of_killed_runs_is_removed() -> None:
    """The folder of a live run stays, however old it is. A new folder that has no lock yet stays, too."""
    with cache.workspace() as going_on:
        left, new = (going_on.with_name(f"{going_on.name}-{word}") for word in ("left", "new"))
        for folder in (left, new):
            folder.mkdir()
        for folder in (left, going_on):
            os.utime(folder, (0, 0))
        with cache.workspace() as another:
            assert sorted(going_on.parent.iterdir()) == sorted([going_on, new, another])
    assert list(going_on.parent.iterdir()) == [new]


def test_one_holds_a_lock(tmp_path: Path) -> None:
    with open(tmp_path / "lock", "w") as one, open(tmp_path / "lock", "w") as other:
        assert cache.hold(one)
        assert not cache.hold(other, wait=False)
        one.close()
        assert cache.hold(other, wait=False)


def test_key_of_a_changed_file(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("1")
    first = cache.file_key(file)
    assert first == cache.content_key(file) == cache.file_key(file)
    file.write_text("2")
    os.utime(file, (1, 1))
    assert cache.file_key(file) != first
    file.write_bytes(bytes(3 << 20))
    assert cache.content_key(file) == cache.content_key(b"f", bytes(3 << 20)), "large files are read in parts"


def test_key_follows_content(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("1")
    one = cache.content_key("t", tmp_path / "d")
    (tmp_path / "d" / "f").write_text("2")
    two = cache.content_key("t", tmp_path / "d")
    (tmp_path / "d" / "f").rename(tmp_path / "d" / "g")
    assert len({one, two, cache.content_key("t", tmp_path / "d")}) == 3
    assert cache.content_key("ab", "c") != cache.content_key("a", "bc")


def test_tool_failure_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="making x failed: error: broken"):
        cache.run_tool(["sh", "-c", "echo fine; echo error: broken; exit 3"], tmp_path / "log", "making x")
    with pytest.raises(UserError, match="disk full"):
        cache.run_tool(["sh", "-c", "echo write: No space left on device; exit 1"], tmp_path / "log", "making x")
    with pytest.raises(UserError, match="nonexistent-tool not found"):
        cache.run_tool(["nonexistent-tool"], tmp_path / "log", "making x")


def test_only_a_failed_tool_leaves_its_own_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "CACHE", tmp_path)
    with cache.own_log("tool") as log:
        cache.run_tool(["echo", "fine"], log, "making x")
    assert not list((tmp_path / "logs").iterdir())
    with pytest.raises(UserError, match=r"making x failed: .*logs/tool-\d+-\d+\.log"), cache.own_log("tool") as log:
        cache.run_tool(["false"], log, "making x")
    assert log.exists()


def test_a_log_is_written_line_by_line(tmp_path: Path) -> None:
    """A user sees how far the build of a kernel is while it runs: here, the tool itself waits for its line to appear in the
    log."""
    log = tmp_path / "log"
    script = f"echo one; for turn in $(seq 100); do grep -q one {log} && exit 0; sleep 0.1; done; exit 1"
    cache.run_tool(["sh", "-c", script], log, "making x")


def test_what_is_built_has_its_final_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool prints the temporary folder name, but the user sees the final name."""
    said: list[str] = []
    monkeypatch.setattr(cache, "say", said.append)
    folder = cache.cached("k", "key", "building", lambda out: cache.run_tool(
        ["sh", "-c", f"echo built {out}/x"], cache.CACHE / "log", "making x", show="^built "))
    assert said == [f"built {folder}/x"]


@pytest.mark.parametrize(("said", "reason"), [
    (["cc -Werror x.c", "x.c:3:5: error: no y", "make: *** [x] Error 1", "error: it failed"], "x.c:3:5: error: no y"),
    (["   Compiling a", "error[E0425]: no z", "error: could not compile `a`"], "error[E0425]: no z"),
    (["W: old", "E: no such package", "E: apt-get failed"], "E: no such package"),
    (["WARNING: Retrying after error", "ERROR: No matching distribution"], "ERROR: No matching distribution"),
    (["fine", "gone"], "gone"),
    (["write: No space left on device", "error: x"], "disk full"),
    ([], ""),
])
def test_the_first_complaint_is_the_reason(said: list[str], reason: str) -> None:
    """Later errors follow from the first one: make's line must not hide the compiler's."""
    assert cache.why(said) == reason


def test_neither_root_nor_sudo_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(cache.shutil, "which", lambda _: None)
    with pytest.raises(UserError, match="^installing xz-utils: needs root, and there is no sudo$"):
        cache.as_root("installing xz-utils")


def test_sudo_keeps_apts_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """sudo drops variables, but APT_CONFIG lets apt take its packages from a bundle."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(cache.shutil, "which", lambda _: "/usr/bin/sudo")
    monkeypatch.setenv("APT_CONFIG", "/a bundle/apt.conf")
    assert cache.as_root("installing") == ["sudo", "env", "APT_CONFIG=/a bundle/apt.conf"]
    monkeypatch.delenv("APT_CONFIG")
    assert cache.as_root("installing") == ["sudo"]


def test_disk_full_names_the_place(tmp_path: Path) -> None:
    assert str(cache.disk_error(OSError(errno.ENOSPC, "x"), tmp_path)) == f"disk full while writing {tmp_path}"
    assert "Read-only" in str(cache.disk_error(OSError(errno.EROFS, "Read-only file system"), tmp_path))


def test_interrupted_tool_ends_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a build script waits for its compiler: no process continues."""

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cache, "say", interrupt)
    script = f"sh -c 'echo $$ > {tmp_path}/pid; echo now; sleep 100; true'; true"
    with pytest.raises(KeyboardInterrupt):
        cache.run_tool(["sh", "-c", script], tmp_path / "log", "making x", show="now")
    pid = int((tmp_path / "pid").read_text())
    for _ in range(50):
        if not Path(f"/proc/{pid}").exists() or "zombie" in Path(f"/proc/{pid}/status").read_text():
            return
        time.sleep(0.1)
    pytest.fail("a child of the tool is still there")


def test_a_relative_path_means_the_same_from_everywhere(tmp_path: Path) -> None:
    """Relative paths of the cache, and of programs in variables, do not depend on the folder in which a tool runs."""
    (tmp_path / "program").write_text("")
    (tmp_path / "program").chmod(0o755)
    asked = ("from trapless.base import paths; from trapless.guest import build; "
             "print(paths.CACHE, build.machine(), build.pagesim(), build.kernel(), sep='\\n')")
    environment = os.environ | {"TRAPLESS_CACHE": "c", "TRAPLESS_MACHINE": "program", "TRAPLESS_PAGESIM": "program",
                                "TRAPLESS_KERNEL": "program", "PYTHONPATH": PYTHONPATH}
    told = subprocess.check_output([sys.executable, "-c", asked], cwd=tmp_path, env=environment, text=True)
    assert told.split() == [str(tmp_path / name) for name in ("c", "program", "program", "program")]


def full(free: int) -> object:
    """Return a replacement for shutil.disk_usage that reports `free` free bytes."""
    return lambda _: type("Usage", (), {"free": free})


def test_what_does_not_fit_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.shutil, "disk_usage", full(77 << 30))
    with pytest.raises(UserError) as caught:
        cache.cached("k", "key", "making a data disk of 102400 MiB", lambda _: pytest.fail("begun"), 203 << 30)
    assert str(caught.value) == (f"making a data disk of 102400 MiB: needs 203.0 GiB in {cache.CACHE}, where only 77.0 GiB are "
                                 "free (set TRAPLESS_CACHE=FOLDER to use another disk)")
    assert not list(cache.CACHE.glob("k/*"))
    monkeypatch.setattr(cache.shutil, "disk_usage", full(10 << 20))
    with pytest.raises(UserError, match=r"building: needs 64 MiB in .*, where only 10 MiB are free"):
        cache.cached("k", "key", "building", lambda _: pytest.fail("begun"))


def test_what_is_there_needs_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.cached("k", "key", "building", lambda _: None)
    monkeypatch.setattr(cache.shutil, "disk_usage", full(0))
    assert cache.cached("k", "key", "building", lambda _: pytest.fail("again"), 1 << 40).is_dir()
    assert cache.room_for("k", "key", 5) == 0 and cache.room_for("k", "other", 5) == 5


@pytest.mark.parametrize("make", [
    lambda: dataset.image(100 << 30), lambda: build.kernel(), lambda: build.kernel(configs=("debug.config",)),
    lambda: rootfs.image(), lambda: demo.check_demo_room(miss_latency.Load()), lambda: job.write_disk(Job("true"), Path("j.img")),
    lambda: outputs.output_folder(Path(".")), lambda: checked_machine(), lambda: selftests.programs(),
    lambda: dbbench.Database(1 << 20).image(), lambda: ycsb.Database(1 << 20).image(),
])
def test_each_says_what_it_needs(make: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these builds writes something; on a full disk, none begins."""
    for module in (build, rootfs, dataset, loaded, demo, selftests):
        if hasattr(module, "CACHE"):
            monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    for variable in ("TRAPLESS_KERNEL", "CARGO_TARGET_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("machine", "guest_tools"):
        monkeypatch.setattr(build, name, lambda *_: tmp_path)
    monkeypatch.setattr(loaded, "file_key", lambda _: "x")
    monkeypatch.setattr(ycsb, "program", lambda: tmp_path)
    monkeypatch.setattr(cache.shutil, "disk_usage", full(0))
    with pytest.raises(UserError, match=r": needs [\d.,]+ .iB in .*, where only 0 MiB are free \("):
        make()


def checked_machine() -> None:
    """Let the machine be built, although these tests were given one."""
    build._program("pagesim")


def test_a_sparse_disk_counts_by_what_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.shutil, "disk_usage", full(100 << 20))
    assert sparse.image(16 << 30).stat().st_blocks * 512 < 64 << 20


def test_a_data_disk_needs_what_it_was_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk usage is checked during the build, when the file exists twice."""
    most = 0
    remove = dataset.shutil.rmtree

    def look(tree: Path) -> None:
        nonlocal most
        most = sum(path.stat().st_blocks * 512 for path in tree.parent.rglob("*"))
        remove(tree)

    monkeypatch.setattr(dataset.shutil, "rmtree", look)
    said = dataset.room(64 << 20)
    dataset.image(64 << 20)
    assert 0.7 * said < most <= said
