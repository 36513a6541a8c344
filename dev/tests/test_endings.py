# SPDX-License-Identifier: Apache-2.0
"""How runs end: the word and the line for it, and the figures of the run. No test boots a guest."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from trapless.base import cache, process
from trapless.base.paths import ROOT
from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest import ending, run
from trapless.guest.job import Job
from trapless.profile import profiling
from trapless.results import figures
from trapless.sweeps import record

FAKE = Path(__file__).with_name("fake_machine.py")


@pytest.mark.parametrize("script", ["exec sleep 100", "echo on; exec sleep 100", "while :; do echo on; done"])
def test_a_simulator_that_takes_too_long_is_killed(script: str) -> None:
    start = time.monotonic()
    with pytest.raises(process.TooLong, match=r"^sh did not end within 0.3 host seconds$"):
        process.run(["sh", "-c", script], limit=0.3)
    assert time.monotonic() - start < 5


def test_simulators_end_with_the_laboratory(tmp_path: Path) -> None:
    """A simulator ends with the process that started it, even if that process is killed."""
    script = f"from trapless.base import process; process.run(['sh', '-c', 'echo $$ >{tmp_path}/pid; sleep 100; true'])"
    lab = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert lab.poll() is None
        time.sleep(0.01)
    status = Path("/proc", (tmp_path / "pid").read_text().strip(), "status")
    assert status.exists()
    lab.kill()
    lab.wait()
    for _ in range(500):
        if not status.exists() or "zombie" in status.read_text():
            return
        time.sleep(0.01)
    pytest.fail("the simulator goes on")


@pytest.mark.parametrize("where", ["tell()", "Last()"], ids=["anywhere", "in a finalizer"])
def test_sigterm_ends_the_laboratory(where: str) -> None:
    """SIGTERM ends the process even in a finalizer, where Python ignores an exception of a handler."""
    script = f"""
import os, signal, threading, time
from trapless.base import signals
from trapless.base import process

def tell():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

class Last:
    def __del__(self):
        tell()

signals.listen()
threading.Thread(target=lambda: process.run(["sleep", "60"])).start()
while not process._running:
    time.sleep(0.01)
{where}
time.sleep(60)
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, text=True, capture_output=True, timeout=50, check=False)
    assert (ended.stderr, ended.returncode) == ("", 143)


def test_a_closed_laboratory_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_closed", threading.Event())
    process.close()
    with pytest.raises(UserError, match="ending"):
        process.run(["true"])


def test_a_character_that_comes_in_two_parts_is_whole() -> None:
    """An incomplete character at the end is replaced."""
    script = r"printf 'a\303'; sleep 0.2; printf '\244b \342\202'; sleep 0.2; printf '\254\n\303'"
    assert process.run(["sh", "-c", script]).console == "aäb €\n\ufffd"


def test_bytes_are_shown_as_they_are() -> None:
    """All bytes are shown unchanged, also where standard output does not block."""
    script = r"""
import os, sys
from trapless.base import process
os.set_blocking(1, False)
process.run(["sh", "-c", "printf 'a\\377\\000\\303('; head -c 3000000 /dev/zero; printf end"], show=True)
"""
    lab = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    time.sleep(1)
    shown, _ = lab.communicate(timeout=50)
    assert (lab.returncode, shown) == (0, b"a\xff\x00\xc3(" + bytes(3_000_000) + b"end")


def test_an_interrupt_loses_nothing_that_was_said() -> None:
    """The simulator's answer to the interrupt comes after all of its other output."""
    script = r"""
import os, signal, threading
from trapless.base import process
said = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
said.start()
try:
    process.run(["sh", "-c", "trap 'seq 20000; exit' TERM; echo on; while :; do sleep 0.05; done"], show=True)
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, text=True, capture_output=True, timeout=50, check=False)
    assert ended.stdout == "on\n" + "".join(f"{n}\n" for n in range(1, 20001)) + "interrupted\n"


@pytest.mark.parametrize(("last", "words"), [("for n in 1 2 3 4 5 6; do sleep 0.5; echo $n; done; exit", "1 2 3 4 5 6"),
                                              ("while :; do sleep 0.1; done", "")])
def test_last_words_may_take_long_and_silence_may_not(last: str, words: str) -> None:
    script = rf"""
import os, signal, threading
from trapless.base import process
process._LAST_BYTES_SECONDS = 1.5
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    process.run(["sh", "-c", "trap '{last}' TERM; echo on; while :; do sleep 0.05; done"], show=True)
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, text=True, capture_output=True, timeout=50, check=False)
    assert ended.stdout.split() == ["on", *words.split(), "interrupted"]


def test_a_reader_that_goes_away_ends_the_simulator() -> None:
    script = 'from trapless.base import process; process.run(["sh", "-c", "while :; do echo on; done"], show=True)'
    lab = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert lab.stdout is not None and lab.stderr is not None
    lab.stdout.readline()
    lab.stdout.close()
    assert lab.wait(timeout=50) == 1 and "BrokenPipeError" in lab.stderr.read()
    lab.stderr.close()


def test_a_console_without_end_is_kept_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_MOST_CONSOLE", 100_000)
    ended = process.run(["sh", "-c", "seq 300000"])
    assert len(ended.console) <= 100_000 and ended.console.endswith("\n299999\n300000\n")


@pytest.mark.parametrize(("status", "console", "expected"), [
    (0, "x", ("ok", "")),
    (3, "no way\n\n", ("failed", "exit status 3; its last words: no way")),
    (127, "", ("failed", "exit status 127")),
    (139, "", ("killed", "killed by SIGSEGV (exit status 139)")),
    (137, "", ("killed", "killed by SIGKILL (exit status 137)")),
    (255, "", ("failed", "exit status 255")),
    (137, "Out of memory: Killed process 88 (a b) total-vm:1kB, anon-rss:1kB\nKilled\n",
     ("out of memory", "out of memory: the guest's kernel killed a b (exit status 137)")),
    (0, "Out of memory: Killed process 88 (child) total-vm:1kB\n", ("ok", "")),
])
def test_endings(status: int, console: str, expected: tuple[str, str]) -> None:
    found = ending.of(guests.Outcome(status, console=console))
    assert (found.status, found.line, found.exit_status) == (*expected, status)


@pytest.mark.parametrize(("status", "console", "paging", "said"), [
    (1, "mmap: Cannot allocate memory\n", "sv39",
     "exit status 1; the guest had 1,024 MiB of memory (--memory), and a process 256 GiB of addresses (sv39), "
     "170 of them contiguous (--set machine.paging=sv48 gives 128 TiB)"),
    (134, "terminate called after throwing an instance of 'std::bad_alloc'\n", "sv48",
     "killed by SIGABRT (exit status 134); the guest had 1,024 MiB of memory (--memory), and a process 131,072 GiB "
     "of addresses (sv48), 87,381 of them contiguous"),
    (1, "no such key\n", "sv39", "exit status 1"),
])
def test_limits_are_named_to_who_met_them(status: int, console: str, paging: str, said: str) -> None:
    """A mapping that is larger than an Sv39 address space fails with the same error as one for which there is no memory."""
    stats = {"profile": {"machine": {"memory_bytes": 1 << 30, "paging": paging}}}
    assert ending.of(guests.Outcome(status, stats, console), words=False).line == said
    assert ending.of(guests.Outcome(status, {}, console), words=False).line == said.partition(";")[0]


@pytest.mark.parametrize(("status", "how", "text"), [
    (3, guests.CRASHED, "crashed or rebooted; its last words: [ 1.0] Kernel panic - not syncing: Oops"),
    (4, guests.TIME_LIMIT, "longer than --max-seconds"),
])
def test_guests_that_do_not_end_in_order(status: int, how: str, text: str, tmp_path: Path) -> None:
    script = f"echo '[ 1.0] Kernel panic - not syncing: Oops'; echo '---[ end Kernel panic ]---'; exit {status}"
    with pytest.raises(guests.GuestError) as caught:
        guests.run_machine(["sh", "-c", script], tmp_path / "none.json")
    assert caught.value.how == how and text in str(caught.value)
    assert "end Kernel panic" in caught.value.outcome.console


@pytest.mark.parametrize("script", ["exit 2", "exit 101", "kill -9 $$"])
def test_trouble_of_the_host_is_not_the_guests(script: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        guests.run_machine(["sh", "-c", script], tmp_path / "none.json")
    assert not isinstance(caught.value, guests.GuestError)


def fio(side: str, ops: int, mean_ns: float, **more: object) -> dict:
    idle = {"total_ios": 0, "clat_ns": {"mean": 0}, "bw_bytes": 0, "runtime": 0}
    busy = {"total_ios": ops, "clat_ns": {"mean": mean_ns, **more}, "bw_bytes": 2_000_000, "runtime": 500}
    return {"error": 0, "read": idle, "write": idle, side: busy}


def test_figures_of_fio() -> None:
    percentiles = {"50.000000": 900, "99.000000": 2500}
    one = figures.of_fio({"jobs": [fio("read", 10, 1000.0, percentile=percentiles)]})
    assert (one["ops"], one["mean_us"], one["p50_us"], one["p99_us"], one["bandwidth_mb_s"]) == (10, 1, 0.9, 2.5, 2)
    two = figures.of_fio({"jobs": [fio("write", 10, 1000.0), fio("write", 30, 2000.0)]})
    assert (two["ops"], two["mean_us"], two["bandwidth_mb_s"], two["runtime_seconds"]) == (40, 1.75, 4, 0.5)
    assert "p50_us" not in two and "p999_us" not in one, "what fio does not report is not 0"
    with pytest.raises(UserError, match="error 5"):
        figures.of_fio({"jobs": [{**fio("read", 1, 1.0), "error": 5}]})


@pytest.mark.parametrize(("starts", "beside"), [((1000, 1000), True), ((1000, 1499), True), ((1000, 1500), False),
                                                ((None, None), False)])
def test_groups_of_fio(starts: tuple, beside: bool) -> None:
    """Bandwidths of groups that ran one after another are not added. Those of a group's threads are, because they run
    together."""
    groups = [{**fio("read", 10, 1000.0), "groupid": number, **({"job_start": start} if start else {})}
              for number, start in enumerate(starts)]
    found = figures.of_fio({"jobs": groups})
    assert (found["bandwidth_mb_s"], found["runtime_seconds"]) == ((4, 0.5) if beside else (None, None))
    assert (found["ops"], found["mean_us"]) == (20, 1)
    threads = figures.of_fio({"jobs": [{**group, "groupid": 0} for group in groups]})
    assert threads["bandwidth_mb_s"] == 4
    written = {**fio("write", 10, 1000.0), "groupid": 5, "job_start": 10}
    assert figures.of_fio({"jobs": [written, groups[0]]})["bandwidth_mb_s"] == 2, "one that only wrote is not of the reads"


def region(hw: int, reads: int) -> dict:
    miss = {"count": hw, "device_mean_us": 10.0 * hw, "nondevice_mean_us": 1.0}
    watch = {"hw_misses": hw, "os_faults": 1, "resident": 2, "pages_touched": hw + 3}
    return {"watch": [watch], "sim_seconds": 0.5, "instructions": {"user": 5, "supervisor": 7}, "hw_miss": miss,
            "os_faults": 4, "nvme_read": {"count": reads, "mean_us": 20.0}}


def test_figures_of_regions() -> None:
    """The mean over several regions is that of all their misses. First touches are counted across all regions."""
    found = figures.of_regions("hwdp", [region(1, 0), region(3, 0)])
    assert (found["hw_misses"], found["os_faults"], found["distinct_pages"]) == (3, 1, 6)
    assert (found["region_hw_misses"], found["region_os_faults"]) == (4, 8)
    assert (found["region_seconds"], found["kernel_instructions"], found["device_us"]) == (1, 14, (10 + 3 * 30) / 4)
    assert figures.of_regions("osdp", [region(0, 4)])["device_us"] == 20
    assert figures.of_regions("osdp", [region(0, 0), region(0, 0)])["device_us"] is None
    assert figures.of_regions("ideal", [region(0, 0)])["device_us"] == 0
    for kind, count in (("hwdp", 1), ("hwdp", 2), ("osdp", 1)):
        found = figures.of_regions(kind, [region(0, 0)] * count)
        assert (found["device_us"], found["nondevice_us"]) == (None, None), "no miss has no mean"


def test_what_the_machine_has_not_kept_is_told(tmp_path: Path) -> None:
    """No sums are given if some regions are missing: they would look like sums over all regions."""
    stats = {"rois": [region(1, 0)], "marks_ignored": 7}
    with pytest.raises(UserError, match=r"^no figures: the machine ignored 7 markers, because "):
        figures.regions(stats)
    assert figures.regions({**stats, "marks_ignored": 0}) == stats["rois"] and figures.regions({}) == []
    own, automatic = region(1, 0), region(2, 0) | {"automatic": True}
    assert figures.regions({"rois": [automatic, own, automatic]}) == [own]
    assert figures.regions({"rois": [automatic, automatic]}) == [automatic, automatic]
    (tmp_path / "figures.json").write_text('{"n": 3}')
    taken = record.of_run("hwdp", guests.Outcome(0, stats), tmp_path)
    assert taken["status"] == "failed" and "ignored 7 markers" in taken["line"]
    assert taken["figures"]["n"] == 3 and "hw_misses" not in taken["figures"]
    profile = {"windows": [{}], "faults": {"count": 0}}
    for name, text in (("profile.json", profile), ("stats.json", stats)):
        (tmp_path / name).write_text(json.dumps(text))
    (tmp_path / "stacks.folded").write_text("")
    with pytest.raises(UserError, match="ignored 7 markers"):
        profiling.finish(tmp_path, "test")


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> guests.Guest:
    """Return a guest whose files the fake machine does not read."""
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log.txt"))
    monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")
    return guests.Guest(tmp_path / "Image", tmp_path / "root.img")


@pytest.mark.parametrize(("script", "error"), [
    ("ok 5", None), ("exit 5", None), ("stop 3", "the guest crashed"), ("stop 4", "longer than --max-seconds"),
])
def test_the_record_of_a_run_is_there_however_it_ended(guest: guests.Guest, script: str, error: str | None,
                                                       tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    with pytest.raises(UserError, match=error) if error else nullcontext():
        guests.run_on_machine(FAKE, guest, Job(f"exec fake {script}"), tmp_path / "out", keep_stats=record)
    assert json.loads(record.read_text())["instructions"] == 5
    assert (tmp_path / "out" / "figures.json").exists() == (error is None)


def test_a_record_that_cannot_be_kept_takes_no_files_along(guest: guests.Guest, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write .*missing/record.json"):
        guests.run_on_machine(FAKE, guest, Job("exec fake ok 5"), tmp_path / "out",
                              keep_stats=tmp_path / "missing" / "record.json")
    assert json.loads((tmp_path / "out" / "figures.json").read_text()) == {"n": 5}


def test_the_place_of_a_record_is_looked_at_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place is checked before the run begins, and an older record is removed."""
    class Begun(Exception):
        """Raised when all checks before the run have passed."""

    def prepare(request: run.Request) -> None:
        raise Begun

    monkeypatch.setattr(run, "prepare", prepare)
    with pytest.raises(UserError, match="cannot write .*missing/record.json: No such file"):
        run.run(run.Request(["true"], stats=tmp_path / "missing" / "record.json"))
    (tmp_path / "record.json").write_text("old")
    with pytest.raises(Begun):
        run.run(run.Request(["true"], stats=tmp_path / "record.json"))
    assert not (tmp_path / "record.json").exists()
