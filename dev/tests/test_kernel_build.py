# SPDX-License-Identifier: Apache-2.0
"""Messages of linux/build during a build, with a compiler and a make that only pretend."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from trapless.base.paths import LINUX

MAKE = """#!/bin/sh
for word; do case $word in
O=*) obj=${word#O=} ;;
kernelversion) echo 6.12; exit ;;
*config) touch "$obj/.config"; exit ;;
esac; done
for i in $(seq 100); do echo "  CC      file$i.o"; done
touch "$GO.asked"
while [ ! -e "$GO" ]; do sleep 0.05; done
echo "  LD      vmlinux"
mkdir -p "$obj/arch/riscv/boot"; touch "$obj/arch/riscv/boot/Image" "$obj/System.map"
"""
MERGE = """#!/bin/sh
shift 2; obj=$1; shift 2
cat "$@" > "$obj/.config"
"""


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("awk", ["mawk", "gawk"])
def test_progress_shows_while_it_compiles(tmp_path: Path, awk: str) -> None:
    """With every awk: Debian's mawk normally waits for 4 KiB of input before it reads the first line."""
    if shutil.which(awk) is None:
        pytest.skip(f"no {awk} here")
    tools, source = tmp_path / "bin", tmp_path / "source"
    (tools / "awk").parent.mkdir()
    (tools / "awk").symlink_to(shutil.which(awk))
    program(tools / "make", MAKE)
    for name in ("riscv64-linux-gnu-gcc", "flex", "bison", "bc"):
        program(tools / name, "#!/bin/sh\n")
    program(source / "scripts" / "kconfig" / "merge_config.sh", MERGE)
    (source / "Makefile").touch()
    env = os.environ | {"PATH": f"{tools}:/usr/bin:/bin", "GO": str(tmp_path / "go"), "CROSS_COMPILE": "riscv64-linux-gnu-"}
    command = [LINUX / "build", "--source", source, "--stock", "--out", tmp_path / "out"]
    lines = []
    with subprocess.Popen(["timeout", "60", *command], stderr=subprocess.PIPE, text=True, env=env) as build:
        assert build.stderr is not None
        for line in build.stderr:
            lines.append(line.strip())
            if "100 objects" in line:
                (tmp_path / "go").touch()
    assert build.returncode == 0, lines
    assert lines[-3:-1] == ["linux: 100 objects", "linux: linking"]
    assert (tmp_path / "out" / "Image").exists()
