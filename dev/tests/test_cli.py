# SPDX-License-Identifier: Apache-2.0
"""The command line: bad input gives one line that names the cause, and a status other than 0."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.base import signals
from trapless.base.paths import ROOT
from trapless.base.ui import UserError
from trapless.cli import __main__
from trapless.guest import build, run
from trapless.guest.images import dataset, rootfs


def trapless(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    return subprocess.run([ROOT / "trapless", *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=600)


def complaint(done: subprocess.CompletedProcess) -> str:
    """Return the one line of complaint, the last on stderr. There must be no traceback."""
    assert done.returncode not in (0, 101)
    assert "Traceback" not in done.stderr and "panicked" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_help_from_any_folder(tmp_path: Path) -> None:
    done = trapless("help", cwd=tmp_path)
    assert done.returncode == 0
    for command in ("demo", "run", "study", "dev"):
        assert command in done.stdout


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["run"], "no command"),
        (["run", "--in", "/no/such/file", "--", "true"], "/no/such/file"),
        (["run", "--kernel", "/no/such/Image", "--", "true"], "/no/such/Image"),
        (["run", "--data", "/no/such.img", "--", "true"], "/no/such.img"),
        (["run", "--data", str(ROOT / "trapless"), "--", "true"], "trapless-data"),
        (["run", "--elf", "/no/such.elf"], "/no/such.elf"),
        (["run", "--out", "/proc/no", "--", "true"], "/proc/no"),
        (["run", "--share", "--", "true"], "--share"),
        (["profile"], "no command"),
        (["profile", "--out", "/proc/no", "--", "true"], "/proc/no"),
        (["profile", "--symbols", "/no/such.elf@1000", "--", "true"], "/no/such.elf"),
        (["profile", "--categories", "/no/such.toml", "--", "true"], "/no/such.toml"),
        (["profile", "--compare", "osdp,nothing", "--", "true"], "nothing"),
        (["profile", "--on", "qemu", "--", "true"], "--on qemu"),
        (["demo", "--out", "/proc/no"], "/proc/no"),
        (["demo", "--kernel", "/no/such/Image"], "/no/such/Image"),
        (["demo", "--threads", "0"], "--threads must be at least 1, not 0"),
        (["demo", "extra"], "extra"),
        (["compare", "/no/such", "/no/other"], "/no/such: No such file"),
        (["dev", "goals", "--area", "nothing"], "nothing"),
        (["test", "nothing"], "nothing"),
        (["trace"], "nothing to do: give info FILE, dump FILE, import FILE"),
        (["trace", "info"], "give one FILE"),
        (["trace", "import"], "trace import: give one FILE"),
        (["trace", "--format", "csv", "--", "true"], "--format is for trace import FILE"),
        (["trace", "dump", "file", "--limit", "1"], "give one FILE"),
        (["trace", "--out", "/proc/no/trace", "--", "true"], "/proc/no/trace"),
        (["trace", "--", "/no/such/program"], "/no/such/program"),
        (["dev", "workloads", "nothing"], "nothing"),
        (["dev", "workloads", "--accesses", "0"], "--accesses must be at least 1, not 0"),
        (["dev", "workloads", "--jobs", "0"], "--jobs must be at least 1, not 0"),
        (["sweep", "/no/such.toml"], "/no/such.toml: No such file"),
        (["sweep", str(ROOT / "docs/examples/walk.toml"), "--workers", "0"], "--workers must be at least 1, not 0"),
        (["sweep", str(ROOT / "docs/examples/walk.toml"), "--out", "/proc/no"], "/proc/no"),
        (["sweep", str(ROOT / "machine/profiles/vc707.toml")], "should be in [fixed]"),
        (["sweep", "--worker", "tcp://localhost:1", "--jobs", "0"], "--jobs must be at least 1, not 0"),
        (["nothing"], "nothing"),
    ],
)
def test_bad_input(arguments: list[str], names: str) -> None:
    assert names in complaint(trapless(*arguments))


TOP = "demo, run, profile, sweep, study, report, compare, trace, python, dev, help"


@pytest.mark.parametrize(("arguments", "line"), [
    (["run", "--kind", "hwdp", "true"], "run: a command goes after --: ./trapless run --kind hwdp -- true"),
    (["run", "mapsum", "-t", "2", "a b"], "run: a command goes after --: ./trapless run -- mapsum -t 2 'a b'"),
    (["run", "--kind", "hwdp", "hwdp", "-k"], "run: a command goes after --: ./trapless run --kind hwdp -- hwdp -k"),
    (["profile", "--share", "ls"], "profile: a command goes after --: ./trapless profile --share -- ls"),
    (["trace", "ls", "-l"], "trace: a command goes after --: ./trapless trace -- ls -l (or trace info|dump|import FILE)"),
    (["demo", "extra"], "demo: takes no extra: demo --help says what it takes"),
    ([], f"no command; there are {TOP}, test, setup, doctor, bundle; --help explains them"),
    (["dmeo"], "no such command: dmeo; did you mean demo?"),
    (["setp"], "no such command: setp; did you mean setup?"),
    (["--hepl"], "no such option: --hepl; did you mean --help? (there are -h, --help, --version)"),
    (["help", "dmeo"], f"help: no such command: dmeo; did you mean demo? (there are {TOP})"),
    (["demo", "--qick"], "demo: no such option: --qick; did you mean --quick?"),
    (["run", "--prfile=server", "--", "true"], "run: no such option: --prfile; did you mean --profile?"),
    (["run", "-z", "--", "true"], "run: no such option: -z; run --help lists them"),
    (["run", "--kind", "hwpd", "--", "true"],
     "run: argument --kind: not hwpd; did you mean hwdp? (there are ideal, osdp, emulated, trap, hwdp)"),
    (["run", "--series", "hwdp,src", "--", "true"],
     "run: argument --series: no such series: src; did you mean stc? (there are hwdp, stc)"),
    (["run", "--profile", "sever", "--", "true"],
     "--profile: no such profile or file: sever; did you mean server? (there are cva6, server, vc707)"),
    (["study", "--ssd", "floppy", "miss_latency"],
     "--ssd: no such drive or file: floppy; there are cxl, optane-m2, optane-pmm, optane-ssd, rdma, tlc, ull, z-ssd"),
    (["profile", "--compare", "osdp,hwpd", "--", "true"],
     "--compare: no such kind: hwpd; did you mean hwdp? (there are ideal, osdp, emulated, trap, hwdp)"),
    (["study", "miss-latency"], "no such experiment: miss-latency; did you mean miss_latency?"),
    (["study", "nothing"], "no such experiment: nothing; ./trapless study lists them"),
    (["test", "lnit"], "no such test suite: lnit; did you mean lint?"),
    (["dev", "goals", "--area", "mis"], "--area: no such area: mis; did you mean miss?"),
    (["dev", "workloads", "blendr"], "no such workload: blendr; did you mean blender?"),
    (["dev", "soak", "--kernel", "debgu"],
     "--kernel: no such kernel: debgu; did you mean debug? (there are debug, kcsan, plain)"),
    (["dev", "soak", "--misses", "-5"], "--misses must be at least 1, not -5"),
    (["dev", "soak", "--seed", "-3"], "--seed must be at least 0, not -3"),
    (["dev", "soak", "--data", "-1"], "--data must be at least 256, not -1"),
    (["dev", "attack", "--seed", "-1"], "--seed must be at least 0, not -1"),
    (["dev", "stc", "--seed", "-1"], "--seed must be at least 0, not -1"),
    (["dev", "repeat", "--runs", "1"], "--runs must be at least 2, not 1"),
    (["run", "--harts", "two", "--", "true"], "run: argument --harts: invalid int value: 'two'"),
])
def test_what_was_meant(main: Callable[..., tuple[int, str]], arguments: list[str], line: str) -> None:
    """One line names the mistake, and says what to type."""
    assert main(*arguments) in [(1, f"trapless: {line}\n"), (2, f"trapless: {line}\n")]


def test_help_of_a_command(main: Callable[..., tuple[int, str]]) -> None:
    status, said = main("help", "run")
    assert status == 0 and said.startswith("usage: trapless run [OPTIONS] -- COMMAND")


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Return a function that runs the command line in this process, with a machine that only prints its arguments. The function
    returns the status and all output."""
    machine = tmp_path / "machine"
    machine.write_text('#!/bin/sh\necho told: "$@"\nexit 3\n')
    machine.chmod(0o755)
    (tmp_path / "t.elf").touch()
    monkeypatch.setenv("TRAPLESS_MACHINE", str(machine))
    monkeypatch.setattr(signals, "listen", lambda: None)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["trapless", *arguments])
        try:
            status = __main__.main()
        except SystemExit as ended:
            status = ended.code
        return status, "".join(capfd.readouterr())

    return call


def test_bare_metal_takes_what_the_machine_knows(main: Callable[..., tuple[int, str]]) -> None:
    options = ["--stats", "s.json", "--max-seconds", "2.5", "--harts", "2", "--memory", "64M", "--set", "ssd.read_us=3"]
    status, said = main("run", "--elf", "t.elf", *options)
    assert (status, said) == (3, "told: elf t.elf --profile vc707 --set ssd.read_us=3 --json s.json --memory 64M --harts 2 "
                                 "--max-seconds 2.5\n")
    status, said = main("profile", "--elf", "t.elf", "--memory", "64M")
    assert status == 3 and said.endswith("--json out/profile/stats.json --memory 64M\n")


@pytest.mark.parametrize("command", ["run", "profile"])
@pytest.mark.parametrize(("arguments", "line"), [
    (["--kind", "hwdp"], "--kind applies only to guests: leave it out with --elf"),
    (["--in", "x"], "--in applies only to guests: leave it out with --elf"),
    (["--data", "64M"], "--data applies only to guests: leave it out with --elf"),
    (["--series", "stc"], "--series applies only to guests: leave it out with --elf"),
    (["--on", "qemu"], "--on qemu applies only to guests: leave it out with --elf"),
    (["--harts", "0"], "--harts must be at least 1, not 0"),
    (["--", "true"], "--elf: takes no command after --: true"),
])
def test_bare_metal_refuses_what_is_for_guests(main: Callable[..., tuple[int, str]], command: str, arguments: list[str],
                                               line: str) -> None:
    assert main(command, "--elf", "t.elf", *arguments) == (1, f"trapless: {line}\n")


@pytest.mark.parametrize(("arguments", "line"), [(["--out", "o"], "--out"), (["--interactive"], "--interactive")])
def test_bare_metal_leaves_no_files(main: Callable[..., tuple[int, str]], arguments: list[str], line: str) -> None:
    assert main("run", "--elf", "t.elf", *arguments) == (1, f"trapless: {line} applies only to guests: leave it out with --elf\n")


@pytest.mark.parametrize(("arguments", "line"), [
    (["--on", "qemu", "--ssd", "tlc"], "--ssd tlc does not work with --on qemu: leave one of them out"),
    (["--on", "qemu", "--set", "ssd.read_us=3"], "--set ssd.read_us=3 does not work with --on qemu: leave one of them out"),
    (["--on", "qemu", "--profile", "server"], "--profile server does not work with --on qemu: leave one of them out"),
    (["--on", "qemu", "--stats", "s.json"], "--stats does not work with --on qemu: leave one of them out"),
    (["--kernel", "t.elf", "--stock"], "--kernel t.elf does not work with --stock: give one of them"),
    (["--kernel", "t.elf", "--series", "stc"], "--kernel t.elf does not work with --series: give one of them"),
    (["--harts", "0"], "--harts must be at least 1, not 0"),
    (["--max-seconds", "0"], "--max-seconds must be a positive number, not 0.0"),
])
def test_options_that_would_mean_nothing(main: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch,
                                         arguments: list[str], line: str) -> None:
    """Options that would have no effect are refused before anything is built."""
    monkeypatch.setattr(rootfs, "image", lambda *_: pytest.fail("goes on"))
    assert main("run", *arguments, "--", "true") == (1, f"trapless: {line}\n")


@pytest.mark.parametrize("command", ["run", "profile"])
@pytest.mark.parametrize(("arguments", "line"), [
    (["--package", ""], "--package: is empty; give NAME"),
    (["--kernel", ""], "--kernel: is empty; give IMAGE"),
    (["--in", ""], "--in: is empty; give FILE"),
    (["--out", ""], "--out: is empty; give DIR"),
    (["--ssd", ""], "--ssd: is empty; give NAME|FILE"),
    (["--memory="], "--memory: is empty; give SIZE"),
    (["--detail", ""], "--detail: is empty; give FROM"),
    (["--kind", ""], "--kind: is empty; give ideal or osdp or emulated or trap or hwdp"),
    (["--data", ""], "--data: is empty; give SIZE|IMAGE[,OPTION...]"),
    (["--harts", "2", "--harts", "1"], "--harts: is given twice; give it once"),
    (["--on", "qemu", "--simulator", "machine"], "--on/--simulator: is given twice; give it once"),
    (["--cflags", "-O3", "--cflags", "-g"], "--cflags: is given twice; give it once"),
    (["--append", "a", "--append", "a"], "--append: is given twice; give it once"),
    (["--series", "hwdp,hwdp"], "--series: hwdp is given twice in hwdp,hwdp; give it once"),
    (["--stock", "--series", "hwdp"], "--series: not allowed with argument --stock"),
    (["--data", "0M"], "--data: 0M: random.bin would be empty; give a size like 320M"),
    (["--data", "64M,block=4096,"], "--data: 64M,block=4096,: an option is empty; give its value, or leave it out"),
    (["--data", "64M,ssd="], "--data: 64M,ssd=: ssd= is empty; give its value, or leave it out"),
    (["--data", "64M,block=512,block=4096"],
     "--data: 64M,block=512,block=4096: block of namespace 1 is given twice; give it once"),
    (["--data", "64M,namespace=n.img,ro,snapshot"],
     "--data: 64M,namespace=n.img,ro,snapshot: ro or rw or snapshot of namespace 2 is given twice; give it once"),
    (["--data", "64M,ssd=tlc,namespace=n.img,ssd=ull"],
     "--data: 64M,ssd=tlc,namespace=n.img,ssd=ull: ssd is given twice; give it once"),
])
def test_settings_that_would_not_act(main: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, command: str,
                                     arguments: list[str], line: str) -> None:
    """Empty values, values that a later one would replace, and data disks without data are refused."""
    monkeypatch.setattr(rootfs, "image", lambda *_: pytest.fail("goes on"))
    assert main(command, *arguments, "--", "true") == (2, f"trapless: {command}: argument {line}\n")


@pytest.mark.parametrize(("arguments", "line"), [
    (["--set", "core.mmio=1", "--set", "core.mmio=2"],
     "--set core.mmio=2: core.mmio was already given by --set core.mmio=1; give it once"),
    (["--set", "ssd=ull", "--ssd", "tlc"], "--set ssd=ull: ssd was already given by --ssd tlc; give it once"),
    (["--set", "machine.harts=1", "--harts", "2"], "--harts 2: --set machine.harts=1 sets the same value; give only one of them"),
    (["--memory", "64M", "--set", "machine.memory_bytes=99"],
     "--memory 64M: --set machine.memory_bytes=99 sets the same value; give only one of them"),
])
def test_values_of_the_profile_are_given_once(main: Callable[..., tuple[int, str]], arguments: list[str], line: str) -> None:
    """A value that is given twice is refused for guests, for bare-metal programs, in sweeps and in Python."""
    for more in (["--", "true"], ["--elf", "t.elf"]):
        assert main("run", *arguments, *more) == (2, f"trapless: run: {line}\n")
    if "--ssd" not in arguments:
        given = dict(zip(arguments[::2], arguments[1::2], strict=True))
        settings = [value for name, value in zip(arguments[::2], arguments[1::2], strict=True) if name == "--set"]
        harts = int(given["--harts"]) if "--harts" in given else None
        with pytest.raises(UserError, match=f"^{re.escape(line)}$"):
            run.check(run.Request(["true"], settings=tuple(settings), harts=harts, memory=given.get("--memory")))


@pytest.mark.parametrize(("arguments", "line"), [
    (["--trace", "t,grain=page,grain=line"], "argument --trace: grain is given twice in t,grain=page,grain=line; give it once"),
    (["--gdb", ""], "argument --gdb: is empty; give PLACE[,nowait]"),
    (["--stats", ""], "argument --stats: is empty; give FILE"),
    (["--elf", ""], "argument --elf: is empty; give FILE"),
    (["--max-seconds", "nan"], "--max-seconds must be a positive number, not nan"),
    (["--max-seconds", "inf"], "--max-seconds must be a positive number, not inf"),
    (["--on", "qemu", "--memory", "0"], "--memory 0: not a size like 256M"),
    (["--on", "qemu", "--memory", "256"], "--memory 256: not a size like 256M"),
    (["--readahead", "4294967296"], "--readahead 4294967296: more than Linux takes; give at most 4294967292 KB"),
    (["--data", "64M", "--fault", "hang,op=read,op=write"], "--fault hang,op=read,op=write: op is given twice; give it once"),
])
def test_more_that_would_not_act(main: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, arguments: list[str],
                                 line: str) -> None:
    monkeypatch.setattr(rootfs, "image", lambda *_: pytest.fail("goes on"))
    assert main("run", *arguments, "--", "true") in [(1, f"trapless: {line}\n"), (2, f"trapless: run: {line}\n")]


def test_what_adds_words_may_add_none(main: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """--cflags and --append may be empty, because a script may take them from a variable. Options that add up may be repeated."""
    taken = []
    monkeypatch.setattr(run, "run", lambda request: taken.append(request) or 0)
    data = "64M,block=512,ssd=tlc,namespace=n.img,block=4096,ro"
    assert main("run", "--cflags", "", "--append", "", "--data", data, "--package", "a", "--package", "b", "--series", "stc,hwdp",
                "--set", "core.mmio=1", "--set", "core.csr=1", "--fault", "hang", "--fault", "hang", "--", "true") == (0, "")
    [request] = taken
    assert (request.data, request.packages, request.series) == (data, ("a", "b"), ("hwdp", "stc"))


def test_a_command_has_a_name(main: Callable[..., tuple[int, str]]) -> None:
    for command in ("run", "profile"):
        status, said = main(command, "--", "")
        assert status == 1 and said.startswith(f"trapless: {command}: no command (")


def test_kinds_are_said_once(main: Callable[..., tuple[int, str]]) -> None:
    assert main("profile", "--compare", "osdp,osdp", "--", "true") == (
        1, "trapless: --compare osdp,osdp: osdp is given twice; give it once\n")
    assert main("profile", "--compare", "osdp", "--kind", "hwdp", "--", "true") == (
        1, "trapless: --kind hwdp does not work with --compare, which names the kinds: leave --kind out\n")
    assert main("run", "--interactive", "--kind", "hwdp")[1].startswith("trapless: --kind hwdp does not work with --interactive")


def test_a_shell_takes_no_command(main: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rootfs, "image", lambda *_: pytest.fail("goes on"))
    assert main("run", "--interactive", "--", "ls", "/") == (
        1, "trapless: --interactive: takes no command after --: ls\n")
    assert main("run", "--interactive") == (1, "trapless: --interactive: standard input is not a terminal\n")
    for arch in ("riscv", "x86_64"):
        assert main("run", "--on", "qemu", "--arch", arch, "--kind", "hwdp", "--", "true") == (
            1, "trapless: --kind hwdp does not work with --on qemu, which has no SMU: use osdp, ideal or emulated\n")


def test_a_profile_of_a_kernel_that_is_told_twice(main: Callable[..., tuple[int, str]]) -> None:
    assert main("profile", "--kernel", "t.elf", "--stock", "--", "true") == (
        1, "trapless: --kernel t.elf does not work with --stock: give one of them\n")


@pytest.mark.guest
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--profile", "nothing"], "nothing"),
        (["--profile", "/no/such.toml"], "/no/such.toml"),
        (["--set", "ssd.read_us=-1"], "ssd.read_us"),
        (["--set", "ssd.nothing=1"], "nothing"),
        (["--ssd", "floppy"], "floppy"),
        (["--data", "16M,block=1024"], "block=1024"),
        (["--data", "16M,ssd=floppy"], "floppy"),
        (["--data", "16M,namespace=/no/such.img"], "/no/such.img"),
        (["--memory", "lots"], "lots"),
        (["--kernel", str(ROOT / "LICENSE")], "LICENSE"),
    ],
)
def test_bad_machine(arguments: list[str], names: str) -> None:
    assert names in complaint(trapless("run", *arguments, "--", "true"))


@pytest.mark.guest
def test_cut_short(tmp_path: Path) -> None:
    (tmp_path / "Image").write_bytes(build.kernel().read_bytes()[:1000000])
    assert "cut short" in complaint(trapless("run", "--kernel", str(tmp_path / "Image"), "--", "true"))
    (tmp_path / "data.img").write_bytes(dataset.image(64 << 20).read_bytes()[:5000000])
    assert "cut short" in complaint(trapless("run", "--data", str(tmp_path / "data.img"), "--", "true"))
    (tmp_path / "p.toml").write_text("[ssd]\nread_uss = 3\n")
    assert "p.toml: no such key: ssd.read_uss" in complaint(trapless("run", "--profile", str(tmp_path / "p.toml"), "--", "true"))


@pytest.mark.guest
def test_guest_trouble() -> None:
    assert "--max-seconds" in complaint(trapless("run", "--max-seconds", "1.5", "--", "sleep", "1000"))
    assert "should be start" in complaint(trapless("run", "--detail", "now", "--", "true"))
    assert "no section `detail`" in complaint(trapless("run", "--detail", "start", "--", "true"))
    assert "--detail" in complaint(trapless("run", "--on", "qemu", "--detail", "start", "--", "true"))
    assert "--trace" in complaint(trapless("run", "--on", "qemu", "--trace", "t", "--", "true"))
    assert "option 'all'" in complaint(trapless("run", "--trace", "t,all", "--", "true"))
    assert "--compare" in complaint(trapless("profile", "--compare", "osdp", "--elf", "x"))
    assert "--gdb" in complaint(trapless("run", "--on", "qemu", "--gdb", "1", "--", "true"))
    assert "--rounds must be at least 1, not 0" in complaint(trapless("dev", "speed", "--rounds", "0"))
    assert "crashed or rebooted" in complaint(trapless("run", "--append", "init=/nothing", "--", "true"))
    assert trapless("run", "--", "nosuchcommand").returncode == 127


@pytest.mark.parametrize("code", [0, 5])
def test_elf(tmp_path: Path, code: int) -> None:
    """An ELF file in the style of riscv-tests returns its exit status through tohost."""
    (tmp_path / "t.S").write_text(
        f".globl _start\n_start: li t0, {code << 1 | 1}\nla t1, tohost\nsd t0, 0(t1)\n1: j 1b\n"
        '.section .tohost,"aw",@progbits\n.align 6\n.globl tohost\ntohost: .dword 0\n.globl fromhost\nfromhost: .dword 0\n')
    subprocess.run(["riscv64-linux-gnu-gcc", "-nostdlib", "-static", "-march=rv64gc", "-w", "-Wl,-N,--build-id=none",
                    "-Wl,-Ttext=0x80000000", "-o", tmp_path / "t.elf", tmp_path / "t.S"], check=True, capture_output=True)
    assert trapless("run", "--elf", str(tmp_path / "t.elf")).returncode == code


@pytest.mark.guest
def test_run_passes_the_status_on(tmp_path: Path) -> None:
    (tmp_path / "name").write_text("world\n")
    done = trapless("run", "--in", "name", "--out", "o", "--", "sh", "-c", "echo hello $(cat name); echo x > /job/out/y; exit 3",
                    cwd=tmp_path)
    assert done.returncode == 3
    assert done.stdout == "hello world\n"
    assert (tmp_path / "o" / "y").read_text() == "x\n"


@pytest.mark.guest
def test_interrupt_ends_with_130(tmp_path: Path) -> None:
    process = subprocess.Popen([ROOT / "trapless", "run", "--", "sh", "-c", "echo up; sleep 100000"], cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1] == "trapless: interrupted"
    assert "Traceback" not in errors


@pytest.mark.guest
@pytest.mark.skipif(os.geteuid() != 0, reason="needs a separate file system")
def test_disk_full_names_the_folder(tmp_path: Path) -> None:
    script = (f'mount -t tmpfs -o size=64k none "{tmp_path}" && dd if=/dev/zero of="{tmp_path}/fill" 2>/dev/null; '
              f'exec "{ROOT}/trapless" run --out "{tmp_path}" -- true')
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if done.stderr.startswith(("mount:", "unshare:")):
        pytest.skip("cannot mount a tmpfs here")
    assert "disk full" in complaint(done)
