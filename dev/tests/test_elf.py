# SPDX-License-Identifier: Apache-2.0
"""Bare-metal ELF files in the convention of riscv-tests: `tohost` gives the exit status."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from trapless.base.paths import MACHINE
from trapless.profile import profiling

SOURCES = MACHINE / "tests-bare"
TIME_LIMIT, BAD_INPUT = 4, 2


def assemble(name: str, folder: Path, *defines: str) -> Path:
    out = folder / name
    subprocess.run(
        ["riscv64-linux-gnu-gcc", "-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany", "-nostdlib", "-static", "-no-pie",
         "-Wl,--build-id=none", "-Wl,--no-warn-rwx-segments", "-T", str(SOURCES / "link.ld"), *defines,
         str(SOURCES / f"{name}.S"), "-o", str(out)],
        check=True, capture_output=True, text=True,
    )
    return out


def run(program: Path, elf: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), "elf", *options, str(elf)], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(("name", "status"), [("pass", 0), ("fail", 7), ("armed", 0), ("entries", 0)])
def test_status_comes_from_tohost(program: Path, tmp_path: Path, name: str, status: int) -> None:
    assert run(program, assemble(name, tmp_path)).returncode == status


def test_a_profile_that_was_refused_shows_nothing_of_an_earlier_one(program: Path, tmp_path: Path) -> None:
    elf, out = assemble("pass", tmp_path), tmp_path / "out"
    assert profiling.profile_elf(elf, "vc707", (), None, out, None, (), None) == 0
    assert (out / "flame.svg").exists() and "hardware served no miss" in (out / "index.html").read_text()
    assert profiling.profile_elf(elf, "nosuch", (), None, out, None, (), None) == BAD_INPUT
    assert not (out / "profile.json").exists() and not (out / "index.html").exists()


@pytest.mark.parametrize("quantum", [10, 37, 1000])
def test_harts_lose_no_count(program: Path, tmp_path: Path, quantum: int) -> None:
    elf = assemble("harts", tmp_path)
    assert run(program, elf, "--harts", "4", "--set", f"machine.quantum_cycles={quantum}").returncode == 0


def test_armed_entries_fault_where_there_is_no_smu(program: Path, tmp_path: Path) -> None:
    """REQ: ISA-1."""
    assert run(program, assemble("armed", tmp_path, "-DABSENT"), "--no-smu").returncode == 0


def test_a_program_without_a_verdict_ends_at_the_time_limit(program: Path, tmp_path: Path) -> None:
    outcome = run(program, assemble("endless", tmp_path), "--max-seconds", "0.01")
    assert (outcome.returncode, len(outcome.stderr.splitlines())) == (TIME_LIMIT, 1)


def test_signature(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "signature.txt"
    assert run(program, assemble("signature", tmp_path), "--signature", str(out)).returncode == 0
    assert out.read_text().split() == ["12345678", "600dcafe"]


@pytest.mark.parametrize("content", [None, b"", b"no ELF at all", b"\x7fELF" + bytes(60)])
def test_what_is_no_program_is_named(program: Path, tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "thing.elf"
    if content is not None:
        file.write_bytes(content)
    outcome = run(program, file)
    assert outcome.returncode == BAD_INPUT
    assert "thing.elf" in outcome.stderr and len(outcome.stderr.splitlines()) == 1


def test_a_cut_short_program_is_named(program: Path, tmp_path: Path) -> None:
    elf = assemble("pass", tmp_path)
    elf.write_bytes(elf.read_bytes()[:0x1010])
    outcome = run(program, elf)
    assert outcome.returncode == BAD_INPUT
    assert "pass" in outcome.stderr and len(outcome.stderr.splitlines()) == 1


def test_an_elf_for_another_machine_is_named(program: Path) -> None:
    outcome = run(program, Path("/bin/true"))
    assert outcome.returncode == BAD_INPUT
    assert "/bin/true" in outcome.stderr and len(outcome.stderr.splitlines()) == 1
