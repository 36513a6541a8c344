# SPDX-License-Identifier: Apache-2.0
"""Builds the SMU's RTL as a shared library that the machine and the SMU's tests load, one for each set of parameters.

Usage: python3 -m rtl.smu.sim.build [--trace] [--define NAME] [NAME=VALUE ...]; prints the library's path.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trapless.base.cache import cached, content_key
from trapless.base.paths import CACHE, ROOT
from trapless.base.ui import UserError

HERE = ROOT / "rtl" / "smu" / "sim"
RTL = ROOT / "rtl" / "smu" / "rtl"
COMPILERS = ("clang++-16", "clang++", "g++-12", "g++")
# Packages: they come before the files that use them.
FIRST = ("trapless_spec_pkg.sv", "trapless_smu_pkg.sv", "trapless_smu_regs_pkg.sv")


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Parameters of trapless_smu; names as in rtl/smu/sim/pins.h."""

    pmshr: int = 32
    harts: int = 4
    ports: int = 4
    devices: int = 8
    prefetch: int = 16
    updaters: int = 2
    data_width: int = 64
    axi_id_width: int = 4
    poll_interval: int = 4
    socket: int = 0

    def generics(self) -> list[str]:
        """The parameters as options of Verilator."""
        names = {"pmshr": "PmshrEntries", "prefetch": "PrefetchDepth"}
        camel = {f: names.get(f, "".join(w.title() for w in f.split("_"))) for f in dataclasses.asdict(self)}
        return [f"-G{camel[f]}={v}" for f, v in dataclasses.asdict(self).items()]

    def defines(self) -> list[str]:
        """The parameters as macros of the C interface."""
        return [f"-DSMU_{f.upper()}={v}" for f, v in dataclasses.asdict(self).items()]

    def name(self) -> str:
        """A short, readable name of the parameters. machine/crates/smu-rtl finds the library by it."""
        p = self
        return (
            f"p{p.pmshr}-h{p.harts}-q{p.ports}-d{p.devices}-f{p.prefetch}-u{p.updaters}-w{p.data_width}"
            f"-i{p.axi_id_width}-t{p.poll_interval}-s{p.socket}"
        )


def library(parameters: Parameters, trace: bool = False, define: str | None = None) -> Path:
    """The path of the library with these parameters. It is built first if it does not exist."""
    verilator, compiler = _tool("verilator", "verilator-cli"), _tool(*COMPILERS)
    options = ["trace"] * trace + ([define] if define else [])
    key = content_key(RTL, HERE, repr(parameters), repr(options), _version(verilator), _version(compiler))
    title = f"Verilate the SMU ({', '.join([parameters.name(), *options])})"
    folder = cached("rtl", f"smu-{key}", title, lambda out: _build(parameters, trace, define, verilator, compiler, out))
    link = CACHE / "rtl" / ("-".join(["smu", parameters.name(), *options]) + ".so")
    built = folder / "smu.so"
    if not link.is_symlink() or link.resolve() != built.resolve():
        fresh = link.with_suffix(f".{os.getpid()}")
        fresh.symlink_to(built.relative_to(link.parent))
        fresh.rename(link)
    return link


def sources() -> list[Path]:
    """The unit's files, packages first."""
    files = sorted(RTL.rglob("*.sv"), key=lambda f: (FIRST.index(f.name) if f.name in FIRST else len(FIRST), f.name))
    return files


def _build(
    parameters: Parameters, trace: bool, define: str | None, verilator: str, compiler: str, out: Path
) -> None:
    objects = out / "verilated"
    command = [verilator, "--cc", "--top-module", "trapless_smu", "--Mdir", str(objects), "-O3", "--x-initial", "unique"]
    command += ["--x-assign", "fast", "--assert", "-Wno-fatal", "-Wno-lint", f"-I{RTL}"]
    command += ["--trace-vcd"] * trace + ([f"-D{define}"] if define else [])
    command += [*parameters.generics(), str(HERE / "smu.vlt"), *map(str, sources())]
    _run(command, out)
    root = Path(_output([verilator, "--getenv", "VERILATOR_ROOT"]).strip()) / "include"
    runtime = ["verilated.cpp", "verilated_threads.cpp"] + ["verilated_vcd_c.cpp"] * trace
    flags = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-w", "-pthread", "-DVM_COVERAGE=0", "-DVM_SC=0"]
    flags += ["-DVM_TIMING=0", f"-DVM_TRACE={int(trace)}", f"-DVM_TRACE_VCD={int(trace)}", "-DVM_TRACE_FST=0"]
    flags += ["-DVM_TRACE_SAIF=0", f"-I{objects}", f"-I{root}", f"-I{root / 'vltstd'}", f"-I{HERE}"]
    # Code in files named Slow runs once, so it is not optimized.
    slow = [f for f in objects.glob("*.cpp") if "Slow" in f.name]
    fast = [f for f in objects.glob("*.cpp") if f not in slow]
    jobs = [(f, ["-O0"]) for f in slow] + [(f, []) for f in fast] + [(root / f, []) for f in runtime]
    jobs.append((HERE / "smu.cpp", parameters.defines()))

    def compile_one(job: tuple[Path, list[str]]) -> None:
        _run([compiler, *flags, *job[1], "-c", str(job[0]), "-o", f"{objects / job[0].stem}.o"], out)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, jobs))
    _run([compiler, "-shared", "-pthread", *map(str, objects.glob("*.o")), "-latomic", "-o", str(out / "smu.so")], out)
    shutil.rmtree(objects)


def _tool(*names: str) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise UserError(f"the SMU's RTL needs {names[0]}, which is not installed: ./trapless doctor says how to get it")
    return found


def _version(tool: str) -> str:
    return _output([tool, "--version"]).splitlines()[0]


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _run(command: list[str], out: Path) -> None:
    log = out / "build.log"
    with open(log, "a") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        lines = re.findall(r"^.*(?:%Error|error:).*$", log.read_text(), re.MULTILINE)
        raise UserError(f"{Path(command[0]).name} failed: {lines[0] if lines else log.read_text()[-300:]}")


def main() -> None:
    """Build the library that the command line asks for, and print its path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parameters", nargs="*", metavar="NAME=VALUE", help="a parameter that differs from its default")
    parser.add_argument("--trace", action="store_true", help="build the library so that it can write waveforms")
    parser.add_argument("--define", help="a macro that is defined for the RTL, such as the macro of a seeded bug")
    args = parser.parse_args()
    known = {f.name for f in dataclasses.fields(Parameters)}
    given = dict(p.partition("=")[::2] for p in args.parameters)
    if wrong := [n for n, v in given.items() if n not in known or not v.isdigit()]:
        sys.exit(f"{wrong[0]}: give NAME=NUMBER, where NAME is one of {', '.join(sorted(known))}")
    try:
        print(library(Parameters(**{n: int(v) for n, v in given.items()}), args.trace, args.define))
    except UserError as wrong:
        sys.exit(str(wrong))


if __name__ == "__main__":
    main()
