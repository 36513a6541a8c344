# SPDX-License-Identifier: Apache-2.0
"""Builds what a run needs: the machine (cargo), the kernels (linux/build) and the guest's tools."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from lab.cache import CACHE, cached, content_key, locked, run_tool
from lab.paths import LINUX, MACHINE
from lab.ui import UserError, step

# Guest program -> its place in the root image.
GUEST_TOOLS = {
    "trapless-init": "usr/sbin/trapless-init",
    "hwdp": "usr/bin/hwdp",
    "libhwdp.so": "usr/lib/libhwdp.so",
    "mapsum": "usr/bin/mapsum",
}


def cargo_env() -> dict[str, str]:
    """Environment for cargo: its output goes to the cache unless the user says otherwise."""
    return {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(CACHE / "target"))}


def machine() -> Path:
    """The machine's program, brought up to date by cargo (or the one that TRAPLESS_MACHINE names)."""
    named = os.environ.get("TRAPLESS_MACHINE")
    if named:
        if not os.access(named, os.X_OK):
            raise UserError(f"TRAPLESS_MACHINE: no program at {named}")
        return Path(named)
    program = Path(cargo_env()["CARGO_TARGET_DIR"]) / "release" / "trapless-machine"
    with locked("machine"):
        title = "bringing the machine up to date" if program.exists() else "building the machine (release)"
        with step(title):
            run_tool(["cargo", "build", "--release", "--locked", "-p", "trapless-cli"], CACHE / "logs" / "cargo.log",
                     "building the machine", cargo_env(), MACHINE, show=r"^ *Compiling trapless-")
    return program


def kernel(stock: bool = False, source: str | None = None) -> Path:
    """The kernel's Image: Linux 6.12 with the series, or as it is if `stock`. `source` names another 6.12 tree.

    TRAPLESS_KERNEL and TRAPLESS_STOCK_KERNEL name Images to take instead.
    """
    arguments = (["--stock"] if stock else []) + (["--source", source] if source else [])
    script = LINUX / "build"
    named = os.environ.get("TRAPLESS_STOCK_KERNEL" if stock else "TRAPLESS_KERNEL")
    if named and not source:
        if not Path(named).is_file():
            raise UserError(f"{'TRAPLESS_STOCK_KERNEL' if stock else 'TRAPLESS_KERNEL'}: no kernel at {named}")
        return Path(named)
    if not script.exists():
        raise UserError(f"no kernel build script at {script}")

    def ask_key() -> str:
        asked = subprocess.run([str(script), *arguments, "--key"], capture_output=True, text=True, check=False)
        if asked.returncode:
            raise UserError((asked.stderr.strip().splitlines() or [f"{script} --key failed"])[-1])
        return asked.stdout.strip()

    key = ask_key()
    title = f"building the {'stock' if stock else 'patched'} kernel (about 4 minutes)"

    def builder(out: Path) -> None:
        run_tool([str(script), *arguments, "--out", str(out)], CACHE / "logs" / "kernel.log", "building the kernel",
                 show=r"^linux: ")
        if not (out / "Image").exists():
            raise UserError(f"linux/build left no Image (whole log: {CACHE / 'logs' / 'kernel.log'})")
        if ask_key() != key:
            raise UserError("linux/ was changed while the kernel was being built: run again")

    return cached("kernel", key, title, builder) / "Image"


def guest_tools() -> Path:
    """Folder with our programs for the guest, cross-compiled."""
    sources = LINUX / "tools"
    compiler = shutil.which("riscv64-linux-gnu-gcc")
    if compiler is None:
        raise UserError("riscv64-linux-gnu-gcc not found (./trapless setup installs it)")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    key = content_key(sources, version.splitlines()[0])
    return cached("tools", key, "building the guest's tools", lambda out: run_tool(
        ["make", "-C", sources, f"OUT={out}"], CACHE / "logs" / "tools.log", "building the guest's tools"))


def host_mapsum() -> Path:
    """mapsum for the host: what the guest's sums are compared with."""
    source = LINUX / "tools" / "mapsum.c"
    return cached("host-mapsum", content_key(source), "building mapsum for the host", lambda out: run_tool(
        ["cc", "-O2", "-pthread", "-o", out / "mapsum", source], CACHE / "logs" / "mapsum.log",
        "building mapsum")) / "mapsum"
