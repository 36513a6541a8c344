# SPDX-License-Identifier: Apache-2.0
"""A guest's console output arrives completely, however the programs end. The full form has 4,096 lengths for each way and
profile: `pytest -m long -s dev/tests/test_console.py`."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.base.paths import LINUX, ROOT
from trapless.guest import boot as guests
from trapless.guest.job import Job

pytestmark = pytest.mark.guest
Boot = Callable[..., guests.Outcome]

WAYS = ("exit", "_exit", "kill", "exec")
# Lengths around the amount that Linux sends per interrupt, the amount that a terminal takes at once, the queue of the serial
# port; and some others.
SOME = ("1-34", "63-65", "127-129", "255-257", "511-513", "800", "1023-1025", "1500", "2047-2049", "2900", "3583-3585",
        "4079-4097", "6000", "8191-8193", "20000")


def text(length: int) -> str:
    """Return the output of console_check."""
    return "".join(chr(ord("a") + (length + at) % 26) for at in range(length))


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("check") / "console_check"
    subprocess.run(["riscv64-linux-gnu-gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-static", "-s",
                    "-I", LINUX / "tools", "-o", program, Path(__file__).with_name("console_check.c")], check=True)
    return program


def lost(console: str, lengths: tuple[str, ...]) -> tuple[int, list[str]]:
    """Return how many commands there were, and those with missing bytes."""
    bounds = [[int(bound) for bound in part.split("-")] for part in lengths]
    parts = re.split(r"\n# (\w+) (\d+) (\d+)\n", console)
    found = [(parts[at + 1], int(parts[at + 2]), int(parts[at + 3]), parts[at]) for at in range(0, len(parts) - 1, 4)]
    assert [(way, length) for way, length, _, _ in found] == [
        (way, length) for first, *last in bounds for length in range(first, (last or [first])[0] + 1) for way in WAYS]
    assert all(status == (137 if way == "kill" else 0) for way, _, status, _ in found)
    return len(found), [f"{way} {length}: {len(said)} bytes" for way, length, _, said in found if said != text(length)]


@pytest.mark.parametrize("guest", [
    {"profile": "vc707"},
    {"profile": "vc707", "harts": 1},
    {"profile": "server"},
    {"profile": "server", "settings": ("machine.paging=sv48",)},
], ids=["vc707", "one hart", "server", "sv48"])
def test_lengths(boot: Boot, patched: Path, check: Path, guest: dict) -> None:
    outcome = boot(patched, f"exec ./console_check {' '.join(SOME)}", inputs=(check,), **guest)
    assert lost(outcome.console, SOME)[1] == []


@pytest.mark.long
@pytest.mark.parametrize("profile", ["vc707", "server"])
def test_all_lengths(boot: Boot, patched: Path, check: Path, profile: str) -> None:
    outcome = boot(patched, "exec ./console_check 1-4096", inputs=(check,), profile=profile, max_seconds=3000)
    count, cut = lost(outcome.console, ("1-4096",))
    print(f"{profile}: {count} commands, {len(cut)} of them with bytes lost")
    assert cut == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("profile", ["vc707", "server"])
def test_the_last_bytes_of_a_run(program: Path, patched: Path, root: Path, check: Path, profile: str, way: str) -> None:
    """The command ran once before, so its pages are in memory. Therefore it ends before the serial port has sent everything."""
    guest = guests.Guest(patched, root, profile=profile, max_seconds=300)
    job = Job(f"./console_check command exit 4090 >/dev/null; exec ./console_check command {way} 4090", (check,))
    outcome = guests.run_on_machine(program, guest, job, from_checkpoint=True)
    assert (outcome.console, outcome.status) == (text(4090), 137 if way == "kill" else 0)


@pytest.mark.parametrize(("script", "shown"), [
    ("printf no; printf end >&2", "noend"),
    ("echo one; echo two >&2; echo three >/dev/tty; echo four >/dev/console; echo five >/dev/ttyS0; sh -c 'echo six'",
     "one\ntwo\nthree\nfour\nfive\nsix\n"),
    (r"printf '10 %%\r20 %%\r\n'; printf '\nreboot: Power down\n'", "10 %\r20 %\r\n\nreboot: Power down\n"),
    ("seq 3000 | cat | tail -n 2", "2999\n3000\n"),
    # Processes that the command leaves behind print until power-off.
    ("(trap '' TERM HUP; echo behind; exec sleep 1000) & while ! read line </proc/$!/comm || [ $line != sleep ]; do :; done; "
     "echo command", "behind\ncommand\n"),
    ("(while :; do ./console_check command exit 4090; done) >/dev/null & ./console_check command exit 4090 & "
     "while [ -d /proc/$! ]; do :; done", text(4090)),
    ("setsid ./console_check command exit 4090 & wait $!; sleep 0.01", text(4090)),
    ("./console_check command stopped 2000", text(2000)),
], ids=["no end", "ways to the console", "what the kernel says", "pipeline", "behind", "busy", "session", "stopped"])
def test_what_a_job_prints(boot: Boot, patched: Path, check: Path, script: str, shown: str) -> None:
    outcome = boot(patched, script, inputs=(check,))
    assert (outcome.console, outcome.status) == (shown, 0)


def test_power_off_by_the_command(boot: Boot, patched: Path, check: Path) -> None:
    """Linux takes longer to stop its devices than the serial port takes to send."""
    with pytest.raises(guests.GuestError) as caught:
        boot(patched, "./console_check command exit 4090; poweroff -f", inputs=(check,))
    assert caught.value.outcome.console == text(4090)


@pytest.mark.parametrize("arch", ["riscv", pytest.param("x86_64", marks=pytest.mark.long)])
def test_qemu(arch: str) -> None:
    """On QEMU, the firmware prints first."""
    script = r"yes $(seq 900) | head -c 4090; printf '\r\nend'"
    done = subprocess.run([ROOT / "trapless", "run", "--on", "qemu", "--arch", arch, "--", "sh", "-c", script],
                          capture_output=True, timeout=3600, check=True)
    assert done.stdout.endswith(subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout)


class Terminal:
    """A user of `./trapless run --interactive`."""

    def __init__(self) -> None:
        pid, self.fd = pty.fork()
        if not pid:
            os.execv(ROOT / "trapless", ["trapless", "run", "--interactive"])
        self.pid, self.said = pid, ""

    def until(self, pattern: str, seconds: float = 120) -> str:
        """Return the output until this pattern appears."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.said)):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                pytest.fail(f"no {pattern!r} in {self.said!r}")
            try:
                self.said += os.read(self.fd, 65536).decode(errors="replace").replace("\r", "")
            except OSError:
                pytest.fail(f"ended without {pattern!r}: {self.said!r}")
        said, self.said = self.said[:found.end()], self.said[found.end():]
        return said

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())


def test_a_shell() -> None:
    """Ctrl-C ends the program and not the shell; Ctrl-Z, bg and fg work; the last output of the shell arrives."""
    terminal = Terminal()
    terminal.until("# ")
    terminal.type("tty; echo $((6*7))\r")
    assert "/dev/ttyS0\n" in terminal.until("\n42\n")
    # The test uses no program that sleeps: while all harts are idle, simulated time passes quickly.
    terminal.type("sh -c 'echo st''arts; exec cat'\r")
    terminal.until("\nstarts\n")
    terminal.type("\x03")
    terminal.until(r"\^C\n")
    terminal.type("sh -c 'echo st''arts; exec yes >/dev/null'\r")
    terminal.until("\nstarts\n")
    terminal.type("\x1a")
    terminal.until(r"\^Z[\s\S]*Stopped")
    # Not in one line: ash installs its SIGCHLD handler without SA_RESTART, so the continuing `yes` interrupts fg's output
    # (EINTR).
    terminal.type("bg\r")
    terminal.until("\n\\[1] sh -c.*\n")
    terminal.until("# ")
    terminal.type("fg\r")
    terminal.until("\nsh -c.*\n")
    terminal.type("\x03")
    terminal.until(r"\^C\n")
    terminal.type("exec sh -c 'seq 1000; echo the e''nd'\r")
    assert terminal.until("the end\n").split("\n")[-1002:-2] == [str(number) for number in range(1, 1001)]
    assert os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]) == 0
