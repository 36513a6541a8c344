# SPDX-License-Identifier: Apache-2.0
"""Builds what a run needs: the machine (cargo), the kernels (linux/build) and the guest's tools."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from trapless.base.cache import CACHE, GIB, cached, check_room, content_key, locked, run_tool
from trapless.base.paths import LINUX, MACHINE, PYTHONPATH, ROOT
from trapless.base.ui import UserError, step


@dataclass(frozen=True)
class Arch:
    """An architecture of guests."""

    kernel: str
    """Value of --arch of linux/build."""
    debian: str
    machine: str
    """Name as in `uname -m`, in names of compilers and of QEMU."""
    image: str

    def compiler_prefix(self) -> str:
        """Value of CROSS_COMPILE on this host."""
        return "" if os.uname().machine == self.machine else f"{self.machine}-linux-gnu-"


ARCHS = {arch.kernel: arch for arch in (
    Arch("riscv", "riscv64", "riscv64", "Image"),
    Arch("x86_64", "amd64", "x86_64", "bzImage"),
)}
RISCV = ARCHS["riscv"]

ALL_SERIES = ("hwdp", "stc")
"""Series that linux/build can apply."""
KERNEL_ROOM = 2 * GIB
"""Bytes of disk that building a kernel takes, for its sources and objects. Kernels with self-checks have many more objects."""
MACHINE_ROOM = GIB
"""Bytes of cargo's target folder when everything is built."""
SERIES = ("hwdp",)
"""Series of the default kernel."""

# Guest program -> its place in the root image.
GUEST_TOOLS = {
    "trapless-init": "usr/sbin/trapless-init",
    "hwdp": "usr/bin/hwdp",
    "libhwdp.so": "usr/lib/libhwdp.so",
    "mapsum": "usr/bin/mapsum",
    "faultwork": "usr/bin/faultwork",
}


def room() -> int:
    """Return how many bytes the first build of the machine and a kernel takes. Parts that exist already count as 0."""
    program = Path(cargo_env()["CARGO_TARGET_DIR"]) / "release" / "trapless-machine"
    no_machine = not program.exists() and not os.environ.get(_variable("machine"))
    no_kernel = not os.environ.get("TRAPLESS_KERNEL") and not any((CACHE / "kernel").glob("[!.]*"))
    return no_machine * MACHINE_ROOM + no_kernel * KERNEL_ROOM


def cargo_env() -> dict[str, str]:
    """Return the environment for cargo. Its output goes to the cache unless the user sets another folder."""
    return {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(CACHE / "target"))}


def machine() -> Path:
    """Build the machine's program with cargo if it is not up to date, and return its path. TRAPLESS_MACHINE names another
    program."""
    return _program("machine")


def beside_machine(find: Callable[[], Path]) -> Path:
    """Run `find` while cargo builds the machine's program in another thread: cargo waits for the network and links on one core.
    That thread's errors are dropped, so the caller builds the machine again and sees them."""
    if os.environ.get(_variable("machine")):
        return find()
    try:
        ahead = subprocess.Popen(_cargo("machine"), env=os.environ | cargo_env(), cwd=MACHINE, process_group=0,
                                 **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL))
    except OSError:
        return find()
    try:
        found = find()
        machine()
    except BaseException:
        os.killpg(ahead.pid, signal.SIGTERM)
        raise
    finally:
        ahead.wait()
    return found


def pagesim(program: Path | None = None) -> Path:
    """Build the paging simulator with cargo if it is not up to date, and return its path. TRAPLESS_PAGESIM names another
    program, and so does `program`, for example the program of another project that adds policies."""
    if program is None:
        return _program("pagesim")
    if not program.is_file() or not os.access(program, os.X_OK):
        raise UserError(f"{program}: is not a program; give the path of one like trapless-pagesim")
    return program.absolute()


def seeded_machine() -> Path:
    """Build the machine's program for tests. TRAPLESS_SEED_SERVES_KERNEL makes its walkers serve misses of every mode.
    TRAPLESS_SEED_EXCHANGE_ERRORS=N makes one of N exchanges of page table entries by the SMU fail with a bus error.
    TRAPLESS_SEEDED_MACHINE names another program."""
    named = os.environ.get(_variable("seeded_machine"))
    if named:
        return Path(named).absolute()
    # A separate folder, because in the usual one it would replace the program that other commands run.
    target = Path(cargo_env()["CARGO_TARGET_DIR"]) / "seeded"
    command = [*_cargo("machine"), "--features", "seeded-bugs"]
    with locked("seeded-machine"), step("building the machine with seeded bugs"):
        run_tool(command, CACHE / "logs" / "cargo.log", "building the machine", {"CARGO_TARGET_DIR": str(target)}, MACHINE)
    return target / "release" / "trapless-machine"


def _program(name: str) -> Path:
    binary, variable = f"trapless-{name}", _variable(name)
    named = os.environ.get(variable)
    if named:
        if not os.access(named, os.X_OK):
            raise UserError(f"{variable}: no program at {named}")
        return Path(named).absolute()
    program = Path(cargo_env()["CARGO_TARGET_DIR"]) / "release" / binary
    with locked(name):
        shown: AbstractContextManager = nullcontext()
        # If the program exists, cargo usually has nothing to do; otherwise it says what it compiles.
        if not program.exists():
            title = f"building the {name} (release)"
            check_room(MACHINE_ROOM, Path(cargo_env()["CARGO_TARGET_DIR"]), title)
            shown = step(title)
        with shown:
            run_tool(_cargo(name), CACHE / "logs" / "cargo.log", f"building the {name}", cargo_env(), MACHINE,
                     show=r"^ *(Compiling trapless-|Blocking waiting)")
    return program


def _variable(name: str) -> str:
    return f"TRAPLESS_{name.upper()}"


def _cargo(name: str) -> list[str]:
    return ["cargo", "build", "--release", "--locked", "-p", "trapless-cli", "--bin", f"trapless-{name}"]


def kernel(stock: bool = False, source: str | None = None, arch: Arch = RISCV, configs: tuple[str, ...] = (),
           series: tuple[str, ...] = SERIES) -> Path:
    """Return the kernel's image: Linux 6.12 with these series (linux/build --series), or unmodified if `stock`. `source` names
    another tree of Linux 6.12, `configs` additional fragments of linux/configs.

    TRAPLESS_KERNEL and TRAPLESS_STOCK_KERNEL (for x86_64 with the suffix _X86_64) name images to use instead.
    """
    arguments = ["--arch", arch.kernel, *(["--source", source] if source else [])]
    arguments += ["--stock"] if stock else ["--series", ",".join(series)]
    for fragment in configs:
        arguments += ["--config", str(LINUX / "configs" / fragment)]
    script = LINUX / "build"
    variable = f"TRAPLESS_{'STOCK_' if stock else ''}KERNEL{'' if arch is RISCV else f'_{arch.kernel.upper()}'}"
    named = os.environ.get(variable)
    if named and not source and not configs and (stock or series == SERIES):
        if not Path(named).is_file():
            raise UserError(f"{variable}: no kernel at {named}")
        return Path(named).absolute()
    if not script.exists():
        raise UserError(f"no kernel build script at {script}")

    def ask_key() -> str:
        asked = subprocess.run([str(script), *arguments, "--key"], capture_output=True, text=True, check=False)
        if asked.returncode:
            raise UserError((asked.stderr.strip().splitlines() or [f"{script} --key failed"])[-1])
        return asked.stdout.strip()

    key = ask_key()
    title = (f"building the {'stock' if stock else ' and '.join(series)} kernel for {arch.machine}"
             f"{' with ' if configs else ''}{', '.join(configs)} ({'about 4' if not configs else 'many'} minutes)")

    def builder(out: Path) -> None:
        run_tool([str(script), *arguments, "--out", str(out)], CACHE / "logs" / "kernel.log", "building the kernel",
                 show=r"^linux: ")
        if not (out / arch.image).exists():
            raise UserError(f"linux/build made no {arch.image} (whole log: {CACHE / 'logs' / 'kernel.log'})")
        if ask_key() != key:
            raise UserError("linux/ was changed while the kernel was being built: run again")

    return cached("kernel", key, title, builder, KERNEL_ROOM * (3 if configs else 1)) / arch.image


def guest_tools(arch: Arch = RISCV) -> Path:
    """Return the folder with our programs for the guest, compiled for its architecture."""
    return _guest_programs(LINUX / "tools", "tools", "building the guest's tools", arch)


def guest_checks(arch: Arch = RISCV) -> Path:
    """Return the folder with the series' own tests for the guest (hwdp-check, attack, check-init)."""
    return _guest_programs(LINUX / "checks", "checks", "building the kernel's guest checks", arch)


def _guest_programs(sources: Path, kind: str, title: str, arch: Arch) -> Path:
    prefix = arch.compiler_prefix()
    compiler = shutil.which(f"{prefix}gcc")
    if compiler is None:
        raise UserError(f"{prefix}gcc not found (./trapless setup installs it)")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    files = [path for path in sorted(sources.iterdir()) if path.suffix in (".c", ".h") or path.name == "Makefile"]
    key = content_key(*files, LINUX / "tools" / "marker.h", arch.kernel, version.splitlines()[0])
    return cached(kind, key, title, lambda out: run_tool(
        ["make", "-C", sources, f"OUT={out}", f"CROSS_COMPILE={prefix}"], CACHE / "logs" / f"{kind}.log", title))


def host_mapsum() -> Path:
    """Return mapsum for the host. Tests compare the guest's sums with its sums."""
    source = LINUX / "tools" / "mapsum.c"
    return cached("host-mapsum", content_key(source), "building mapsum for the host", lambda out: run_tool(
        ["cc", "-O2", "-pthread", "-o", out / "mapsum", source], CACHE / "logs" / "mapsum.log",
        "building mapsum")) / "mapsum"


def smu_rtl(profile: str, settings: tuple[str, ...], harts: int | None) -> Path:
    """Build the SMU's RTL as a library with the sizes of this profile, and return its path."""
    ask = [str(machine()), "run", "--kernel", os.devnull, "--smu-rtl", "--profile", profile]
    ask += [text for setting in settings for text in ("--set", setting)]
    ask += ["--harts", str(harts)] if harts else []
    wanted = subprocess.run(ask, capture_output=True, text=True, check=False)
    if wanted.returncode:
        raise UserError(wanted.stderr.strip().removeprefix("trapless-machine: "))
    command = [str(ROOT / "rtl" / "run"), sys.executable, "-m", "rtl.smu.sim.build", *wanted.stdout.split()]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT,
                           env=os.environ | {"PYTHONPATH": PYTHONPATH})
    if built.returncode:
        raise UserError("the SMU's RTL could not be built: it needs Verilator (rtl/run installs it) and a C++ compiler")
    return Path(built.stdout.splitlines()[-1])
