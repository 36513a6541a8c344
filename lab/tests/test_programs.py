# SPDX-License-Identifier: Apache-2.0
"""The user's own program gets into the guest, as it is or compiled, and what cannot run there is named."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lab import __main__ as cli
from lab.build import ARCHS
from lab.programs import cross, own
from lab.ui import UserError

C = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) { printf("%d arguments, last %s\\n", argc - 1, argv[argc - 1]); return argc; }
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_of_the_guest_stay(here: Path) -> None:
    (here / "fio").write_text("#!/bin/sh\n")
    for argv in (["fio", "job"], ["/bin/true"], ["./not-here"], []):
        assert own.resolve(argv) == (argv, ())


def test_a_file_of_this_host_is_taken_along(here: Path) -> None:
    (here / "bin").mkdir()
    (here / "bin" / "script").write_text("#!/bin/sh\necho x\n")
    assert own.resolve(["bin/script", "a"]) == (["./script", "a"], (Path("bin/script"),))


def test_static_programs_are_known(here: Path) -> None:
    (here / "prog.c").write_text("int main(void) { return 0; }\n")
    for name, options, static in (("dynamic", [], False), ("static", ["-static"], True)):
        subprocess.run(["riscv64-linux-gnu-gcc", *options, "-o", name, "prog.c"], check=True)
        assert own.is_static(here / name) == static
    assert not own.is_static(here / "prog.c")


def test_another_processors_program_is_named(here: Path) -> None:
    shutil.copy("/bin/true", here / "prog")
    with pytest.raises(UserError, match=r"\./prog: is for x86_64; the guest is riscv64"):
        own.resolve(["./prog"])
    assert own.resolve(["./prog"], ARCHS["x86_64"]) == (["./prog"], (Path("prog"),))
    (here / "text").write_text("hello\n")
    with pytest.raises(UserError, match=r"\./text: neither a program"):
        own.resolve(["./text"])
    with pytest.raises(UserError, match=r"no\.c: no such file"):
        own.resolve(["no.c"])


def test_the_compilers_complaint(here: Path) -> None:
    (here / "bad.c").write_text("int main(void) { return missing; }\n")
    with pytest.raises(UserError, match=r"compiling bad failed: .*'missing' undeclared"):
        own.resolve(["bad.c"])


def test_a_header_counts_wherever_it_lies(here: Path) -> None:
    (here / "lib").mkdir()
    (here / "lib" / "with space.h").write_text("#define STATUS 1\n")
    (here / "uses.c").write_text('#include <stdlib.h>\n#include "lib/with space.h"\nint main(void) { return STATUS; }\n')
    before = cross.compile_c("uses", [here / "uses.c"])
    assert cross.compile_c("uses", [here / "uses.c"]) == before
    (here / "lib" / "with space.h").write_text("#define STATUS 2\n")
    assert cross.compile_c("uses", [here / "uses.c"]) != before


@pytest.mark.guest
def test_c_is_compiled_on_the_way(here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "count.c").write_text(C)
    monkeypatch.setattr("sys.argv", ["trapless", "run", "--", "./count.c", "a", "b c"])
    assert cli.main() == 3
    assert "2 arguments, last b c\n" in capfd.readouterr().out
