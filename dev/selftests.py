# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev selftests`: runs the kernel's own tools/testing/selftests/mm on the unpatched kernel, on the patched kernel
with the feature off, and on the patched kernel with the feature on (every test under `hwdp -k KIND`). The results must be the
same, line by line.

The tests are built for the guest from the same kernel source. Tests that the kernel's runner (run_vmtests.sh) starts with plain
arguments run here one by one. The runner itself does not start without hugetlbfs.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from trapless.base.cache import CACHE, GIB, cached, content_key, remove_tree, run_tool
from trapless.base.outputs import output_folder, write_whole
from trapless.base.ui import UserError, no_such, say, step
from trapless.guest import atomic, build
from trapless.guest import boot as guests
from trapless.guest.images import dataset, debian, ext4, rootfs
from trapless.guest.job import Job

SOURCE = Path("/usr/src/linux-source-6.12.tar.xz")
LIBRARIES = ("libcap", "libnuma", "liburing")
DEVELOPMENT = tuple(f"{name}-dev" for name in LIBRARIES)
RUNTIME = ("libcap2", "libnuma1", "liburing2", "bash")
SECONDS = 120
"""Simulated seconds that a test may take (kselftest's own limit of 45 s is for common machines)."""
FULL = ("full.config", "selftests.config")
SKIPPED = {
    "on-fault-limit": "runs as another user; the guest has only one",
    "transhuge-stress": "runs for a fixed time, no result to compare",
}
# Numbers that differ from run to run: addresses, sizes of free memory, times, process ids.
VARIABLE = re.compile(r"0x[0-9a-f]+|\b\d+(\.\d+)?\b")


@dataclass(frozen=True)
class Request:
    """Options that the user gave."""

    kind: str = "hwdp"
    series: tuple[str, ...] = build.SERIES
    kernel: Path | None = None
    stock: Path | None = None
    only: tuple[str, ...] = ()
    full: bool = False
    """Whether the kernels have every feature that the tests can test."""
    out: Path = Path("out/selftests")


def run(request: Request) -> int:
    """Run the tests in all three ways and compare the results. Return 0 if they agree."""
    output_folder(request.out)
    folder, commands, missing = programs()
    names = {command: command.split()[0].removeprefix("./") for command in commands}
    for name in request.only:
        if name not in names.values():
            raise no_such("test", name, sorted(set(names.values())), "selftests")
    commands = [command for command in commands if not request.only or names[command] in request.only]
    program = build.machine()
    root = rootfs.image(more=RUNTIME)
    configs = FULL if request.full else ()
    patched = request.kernel or build.kernel(configs=configs, series=request.series)
    stock = request.stock or build.kernel(stock=True, configs=configs)
    launcher = f"hwdp -k {request.kind} -- " if "hwdp" in request.series else ""
    off = " ".join(f"{name}=off" for name in request.series)
    looked: dict[str, dict] = {}
    ways = {"stock": (stock, "", ""), "off": (patched, off, ""), "on": (patched, "", launcher)}

    def one(way: str) -> dict[str, list[str]]:
        kernel, append, launcher = ways[way]
        place = request.out / way
        shutil.rmtree(place, ignore_errors=True)
        job = Job(script(commands, launcher), (folder,))
        guest = guests.Guest(kernel, root, dataset.image(64 * ext4.MIB), memory="1G", append=append,
                             options=atomic.options(kernel))
        outcome = guests.run_on_machine(program, guest, job, place)
        (place / "console.txt").write_text(outcome.console)
        looked[way] = outcome.stats
        return {command: result(place / f"{number}.txt") for number, command in enumerate(commands)}

    with step(f"{len(commands)} tests, three ways"), ThreadPoolExecutor(max_workers=2) as pool:
        results = dict(zip(ways, pool.map(one, ways), strict=True))
    status = verdict(request.out, commands, results, missing)
    for way, stats in looked.items():
        if line := atomic.line(stats):
            say(f"{way}: {line}")
    return status or int(any(map(atomic.reports, looked.values())))


def script(commands: list[str], launcher: str) -> str:
    """Return a script that runs each test in its folder with a time limit. A test's output and status go to a separate file."""
    lines = ["cd selftests-mm", "export TMPDIR=/data", "mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null"]
    for number, command in enumerate(commands):
        log = f"/job/out/{number}.txt"
        lines.append(f"timeout {SECONDS} {launcher}{command} >{log} 2>&1; echo status $? >>{log}")
    return "\n".join([*lines, "dmesg >/job/out/dmesg", "exit 0"])


def result(path: Path) -> list[str]:
    """Return the lines of a test that must be the same in all ways: its TAP lines and its status."""
    lines = path.read_text(errors="replace").splitlines() if path.exists() else ["never run"]
    kept = [line for line in lines if re.match(r"(# )*(ok|not ok|1\.\.|Bail out|status |never)", line)]
    return [VARIABLE.sub("N", line) if not line.startswith("status") else line for line in kept]


def verdict(out: Path, commands: list[str], results: dict[str, dict[str, list[str]]], missing: dict[str, str]) -> int:
    """Print for each test its result, and where the ways differ. Return the exit status."""
    base, same = results["stock"], 0
    for command in commands:
        differ = [way for way in ("off", "on") if results[way][command] != base[command]]
        same += not differ
        state = f"DIFFERS with the feature {' and '.join(differ)}" if differ else "same"
        print(f"{command:44} {base[command][-1] if base[command] else '-':12} {len(base[command]) - 1:4} lines  {state}")
        for way in differ:
            ours, theirs = results[way][command], base[command]
            for line in [f"  only stock: {line}" for line in theirs if line not in ours][:5]:
                print(line)
            for line in [f"  only {way}: {line}" for line in ours if line not in theirs][:5]:
                print(line)
    for name, reason in missing.items():
        print(f"{name:44} skipped: {reason}")
    write_whole(out / "results.json", json.dumps({"results": results, "skipped": missing}, indent=1) + "\n")
    print(f"{same} passed, {len(commands) - same} failed")
    return 0 if same == len(commands) else 1


def programs() -> tuple[Path, list[str], dict[str, str]]:
    """Return the folder of built tests, the commands of the kernel's runner that can use them, and the reasons for those left
    out."""
    if not SOURCE.exists():
        raise UserError(f"no kernel source at {SOURCE} (./trapless setup installs it)")
    key = content_key(inspect.getsource(_build), debian.LOCK, str(SOURCE.stat().st_size))
    folder = cached("selftests", key, "building the kernel's selftests", _build, 3 * GIB) / "selftests-mm"
    runner = (folder / "run_vmtests.sh").read_text()
    commands, missing = [], dict(SKIPPED)
    for command in dict.fromkeys(re.findall(r'run_test ((?:bash )?\./.*?)\s*$', runner, re.MULTILINE)):
        name = command.removeprefix("bash ").split()[0].removeprefix("./")
        if name in SKIPPED:
            continue
        if "$" in command or command.endswith("\\"):
            missing[command] = "its arguments are made by run_vmtests.sh"
        elif not (folder / name).exists():
            missing[name] = "does not build for the guest"
        else:
            commands.append(command)
    return folder, commands, missing


def _build(out: Path) -> None:
    """Build headers and tests from the kernel source, with libraries of the guest's distribution."""
    log = CACHE / "logs" / "selftests.log"
    tree, sysroot = out / "linux", out / "sysroot"
    tree.mkdir()
    run_tool(["tar", "-xf", SOURCE, "-C", tree, "--strip-components=1"], log, "extracting the kernel source")
    debian.unpack("riscv64", DEVELOPMENT, sysroot)
    # Only the named libraries: the distribution's C library is not the compiler's.
    headers, libraries = out / "include", out / "lib"
    headers.mkdir()
    libraries.mkdir()
    for name in ("numa.h", "numacompat1.h", "numaif.h", "liburing.h", "liburing", "sys/capability.h"):
        source, target = sysroot / "usr/include" / name, headers / name
        target.parent.mkdir(exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    for name in LIBRARIES:
        for path in (sysroot / "usr/lib/riscv64-linux-gnu").glob(f"{name}.so*"):
            shutil.copy(path, libraries / path.name, follow_symlinks=False)
    common = ["CROSS_COMPILE=riscv64-linux-gnu-", "-s"]
    run_tool(["make", "-C", tree, "ARCH=riscv", *common, "headers"], log, "kernel headers")
    # Some tests do not build here: -k continues, and only what was built is used.
    flags = f"-I{headers} -L{libraries} -Wl,--allow-shlib-undefined"
    subprocess.run(["make", "-k", "-C", tree / "tools/testing/selftests", "TARGETS=mm", "ARCH=riscv64", *common,
                    f"KHDR_INCLUDES=-isystem {tree}/usr/include", f"EXTRA_CFLAGS={flags}", "all"],
                   capture_output=True, check=False)
    built, target = tree / "tools/testing/selftests/mm", out / "selftests-mm"
    target.mkdir()
    for path in built.iterdir():
        if path.is_file() and (path.suffix == ".sh" or (path.stat().st_mode & 0o111 and path.read_bytes()[:4] == b"\x7fELF")):
            shutil.copy(path, target)
            (target / path.name).chmod(0o755)
    for folder in (tree, sysroot, headers, libraries):
        remove_tree(folder)
