# SPDX-License-Identifier: Apache-2.0
"""`./trapless doctor` lists what is installed. `./trapless setup` builds what is missing, so that later runs need no network.

The doctor runs before anything is installed, so it imports only modules of Python itself."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys

from trapless.base.cache import CACHE, why
from trapless.base.paths import LINUX, ROOT
from trapless.guest import build
from trapless.guest.images import dataset, rootfs

# Tools that only tests use.
TESTS_ONLY = ("qemu-system-riscv64", "qemu-system-x86_64", "riscv64-unknown-elf-gcc", "rustfmt", "cargo-clippy", "shellcheck")
TOOLS = ("git", "cargo", "gcc", "make", "riscv64-linux-gnu-gcc", "flex", "bison", "bc", "mke2fs", "debugfs", "valgrind",
         *TESTS_ONLY)


def run() -> int:
    """Print one line for each item. Return 1 if something that the demo needs is missing."""
    missing = 0
    for tool in TOOLS:
        place = shutil.which(tool)
        needed = tool not in TESTS_ONLY
        missing += place is None and needed
        state = "ok" if place else "missing" if needed else "absent"
        print(f"{state:7} {tool}{'' if place or needed else ' (tests only)'}")
    print(f"ok      python {sys.version.split()[0]}")
    packages = _python_packages()
    missing += packages.startswith("missing")
    print(packages)
    print(f"        rust: {_word(['rustc', '--version'])}")
    print(f"        checkout: {ROOT}, {_word(['git', '-C', str(ROOT), 'describe', '--always', '--dirty'])}")
    free = shutil.disk_usage(CACHE).free / 2**30
    print(f"        cache: {CACHE}, {free:.0f} GiB free, {os.cpu_count()} cores")
    for kind in ("kernel", "rootfs", "data", "tools"):
        count = sum(1 for path in (CACHE / kind).glob("[!.]*")) if (CACHE / kind).is_dir() else 0
        print(f"        cached {kind}: {count}")
    clang = next((name for name in (f"clang++-{version}" for version in range(25, 15, -1)) if shutil.which(name)), "absent")
    print(f"        for RTL models: {clang} (else g++)")
    print(f"        RTL tools: {'installed' if (CACHE / 'venv-rtl').is_dir() else 'not installed yet (rtl/run installs them)'}")
    print(f"        kernel build script: {'there' if (LINUX / 'build').exists() else 'missing'}")
    return 1 if missing else 0


def _python_packages() -> str:
    """Return one line about the Python packages that the launcher installs."""
    if (CACHE / "venv" / "stamp").exists() and importlib.util.find_spec("rich"):
        return "ok      Python packages"
    log = CACHE / "pip.log"
    failure = why(log.read_text(errors="replace").splitlines()) if log.exists() else ""
    said = f": pip failed: {failure} (whole log: {log})" if failure else ""
    return f"missing Python packages in {CACHE / 'venv'} (./trapless setup installs them){said}"


def _word(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "not found"


def setup() -> int:
    """Build everything that the demo needs."""
    from trapless.loads import fio as miss_latency
    from trapless.study import demo

    demo.check_demo_room(miss_latency.Load())
    build.machine()
    build.kernel()
    rootfs.image()
    dataset.image(miss_latency.Load().file_bytes)
    return 0
