# SPDX-License-Identifier: Apache-2.0
"""The user's own program gets into the guest, as it is or compiled; a program that cannot run there is refused with the
reason."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from trapless.base.ui import UserError
from trapless.cli import __main__ as cli
from trapless.guest import run
from trapless.guest.build import ARCHS
from trapless.guest.programs import cross, elf, own

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
        assert own.resolve(argv) == own.Own(argv)


def test_a_file_of_this_host_is_taken_along(here: Path) -> None:
    (here / "bin").mkdir()
    (here / "bin" / "script").write_text("#!/bin/sh\necho x\n")
    assert own.resolve(["bin/script", "a"]) == own.Own(["./script", "a"], (Path("bin/script"),))


@pytest.mark.parametrize("text", ["import sys\n", "#!/usr/bin/env python3\n"])
def test_a_file_of_python_needs_no_first_line(here: Path, text: str) -> None:
    (here / "it.py").write_text(text)
    for word in ("it.py", "./it.py", str(here / "it.py")):
        assert own.resolve([word, "a"]) == own.Own(["python3", "./it.py", "a"], (Path(word),), ("python3",))
    assert own.resolve(["/guest/it.py"]) == own.Own(["/guest/it.py"])
    # It may be a file that --in copies.
    assert own.resolve(["./no.py"]) == own.Own(["./no.py"])


def test_a_file_of_this_host_that_was_not_copied_is_named(here: Path) -> None:
    (here / "script").write_text("#!/bin/sh\n")
    assert own.not_found((), [str(here / "script")], GUEST) == (
        f"{here}/script: is not in the guest; trapless copies files with a relative path: give ./script")


def test_static_programs_are_known(here: Path) -> None:
    (here / "prog.c").write_text("int main(void) { return 0; }\n")
    for name, options, static in (("dynamic", [], False), ("static", ["-static"], True)):
        subprocess.run(["riscv64-linux-gnu-gcc", *options, "-o", name, "prog.c"], check=True)
        assert own.is_static(here / name) == static
    assert not own.is_static(here / "prog.c")


def test_another_processors_program_is_named(here: Path) -> None:
    shutil.copy("/bin/true", here / "prog")
    with pytest.raises(UserError, match=r"\./prog: a program for x86_64, but the guest is riscv64"):
        own.resolve(["./prog"])
    assert own.resolve(["./prog"], ARCHS["x86_64"]) == own.Own(["./prog"], (Path("prog"),))
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
    before = cross.compile_program("uses", [here / "uses.c"])
    assert cross.compile_program("uses", [here / "uses.c"]) == before
    (here / "lib" / "with space.h").write_text("#define STATUS 2\n")
    assert cross.compile_program("uses", [here / "uses.c"]) != before


GUEST = frozenset(["usr/bin/sh", "usr/bin/env", "usr/bin/fio", "usr/lib/ld-linux-riscv64-lp64d.so.1",
                   "usr/lib/riscv64-linux-gnu/libc.so.6", "usr/lib/riscv64-linux-gnu/libm.so.6"])


@pytest.mark.parametrize(("line", "complaint"), [
    ("#!/bin/sh", None), ("#! /usr/bin/env sh", None), ("#!/usr/bin/env -S A=1 fio job", None),
    ("#!/bin/bash -e", "./it: needs /bin/bash, which the guest lacks: give --package bash"),
    ("#!/usr/bin/env python3", "./it: needs python3, which the guest lacks: give --package python3"),
    ("#!/usr/bin/env -S node --x", "./it: needs node, which the guest lacks: give --package nodejs"),
    ("#!/bin/sh\r", "./it: its first line ends in a carriage return, so that no interpreter is found (dos2unix removes them)"),
])
def test_a_scripts_interpreter_that_the_guest_lacks_is_named(here: Path, line: str, complaint: str | None) -> None:
    (here / "it").write_text(f"{line}\necho x\n", newline="")
    with pytest.raises(UserError) if complaint else nullcontext() as found:
        own.check_needs(here / "it", "./it", GUEST)
    assert complaint is None or str(found.value) == complaint


@pytest.mark.parametrize(("argv", "line"), [
    (["sh", "-c", "nothing"], None), (["/bin/sh"], None), ([], None),
    (["node"], "node: the guest has no such command (give --package nodejs, if Debian has it)"),
    (["./none"], "./none: neither a file here nor a command of the guest"),
    (["mapsum /data/x | wc"], "mapsum /data/x | wc: this needs a shell: sh -c 'mapsum /data/x | wc'"),
])
def test_a_command_that_was_not_found(argv: list[str], line: str | None) -> None:
    assert own.not_found((), argv, GUEST) == line
    assert own.not_found((Path("program"),), argv, GUEST) is None


def test_an_argument_that_was_not_copied(here: Path) -> None:
    (here / "data.txt").write_text("1\n")
    line = "data.txt: is not in the guest: --in data.txt copies it into the command's folder"
    assert own.left_behind(["cat", "-n", "data.txt"], ()) == line
    assert own.left_behind(["cat", "./data.txt"], (Path("/elsewhere/data.txt"),)) is None
    assert own.left_behind(["./data.txt", "/etc/passwd", "none"], ()) is None
    (here / "sub").mkdir()
    (here / "sub" / "more.txt").touch()
    (here / "word").touch()
    as_more = "sub/more.txt: is not in the guest: --in sub/more.txt copies it into the command's folder, as more.txt"
    assert own.left_behind(["grep", "word", "sub/more.txt"], ()) == as_more
    assert own.left_behind(["cat", "sub/more.txt"], (Path("sub/more.txt"),)) == "sub/more.txt: is more.txt in the guest"
    assert own.left_behind(["cat", "sub/more.txt"], (Path("sub"),)) is None


@pytest.mark.parametrize(("word", "line"), [
    ("./none", "./none: no such file"), ("none.py", "none.py: no such file"),
    ("./folder", "./folder: is a folder, not a program"),
    ("./plain", "./plain: is not executable (chmod +x ./plain)"), ("./copied", None), ("./script", None), ("sh", None),
    ("./plain.py", None), ("../none", None),
])
def test_a_file_that_cannot_be_run_is_refused_before_anything_is_built(here: Path, word: str, line: str | None) -> None:
    (here / "folder").mkdir()
    for name in ("plain", "plain.py", "script"):
        (here / name).write_text("#!/bin/sh\n")
    (here / "script").chmod(0o755)
    (here / "folder" / "copied").write_text("")
    with pytest.raises(UserError) if line else nullcontext() as found:
        run.check(run.Request([word], inputs=(Path("folder/copied"),) if word == "./copied" else ()))
    assert line is None or str(found.value) == line


def test_libraries_that_the_guest_lacks_are_named(here: Path) -> None:
    gcc = "riscv64-linux-gnu-gcc"
    (here / "own.c").write_text("int own(void) { return 0; }\n")
    (here / "it.c").write_text("int own(void); int main(void) { return own(); }\n")
    subprocess.run([gcc, "-shared", "-fPIC", "-Wl,-soname,libown2.so.1", "-o", "libown.so", "own.c"], check=True)
    subprocess.run([gcc, "-o", "it", "it.c", "libown.so"], check=True)
    with pytest.raises(UserError, match=r"\./it: needs the library libown2\.so\.1, which the guest lacks: .* perhaps libown2-1$"):
        own.check_needs(here / "it", "./it", GUEST)
    own.check_needs(here / "it", "./it", GUEST | {"usr/lib/riscv64-linux-gnu/libown2.so.1"})
    with pytest.raises(UserError, match=r"\./it: needs the loader /lib/ld-linux-riscv64-lp64d\.so\.1, which the guest lacks"):
        own.check_needs(here / "it", "./it", frozenset())
    subprocess.run([gcc, "-o", "it", "it.c", "libown.so", "-Wl,-rpath,$ORIGIN"], check=True)
    own.check_needs(here / "it", "./it", GUEST)
    subprocess.run([gcc, "-static", "-o", "it", "it.c", "own.c"], check=True)
    own.check_needs(here / "it", "./it", frozenset())


def test_cplusplus_is_compiled_with_flags_and_more_sources(here: Path) -> None:
    (here / "headers").mkdir()
    (here / "headers" / "more.h").write_text("int more();\n")
    (here / "more.cpp").write_text('#include <more.h>\nint more() { return N; }\n')
    (here / "it.cc").write_text('#include <vector>\n#include <more.h>\nint main() { return std::vector<int>(more()).size(); }\n')
    made = own.resolve(["./it.cc", "x"], cflags="-O1 -D N=3 -I headers more.cpp")
    assert made.argv == ["./it", "x"] and elf.read(made.files[0]).machine == "riscv64"
    assert any("libstdc++" in name for name in elf.read(made.files[0]).libraries)
    for cflags, complaint in (("-o x", "--cflags -o: leave it out"), ("none.c", "--cflags none.c: no such file"),
                              ("-lnothing", "-lnothing: the compiler has no such library"), ("'", "no closing quotation")):
        with pytest.raises(UserError, match=complaint):
            own.resolve(["./it.cc"], cflags=cflags)
    with pytest.raises(UserError, match="--cflags: fio is not compiled"):
        own.resolve(["fio"], cflags="-O3")


def test_the_first_complaint_of_the_linker(here: Path) -> None:
    (here / "it.cxx").write_text("int missing(); int main() { return missing(); }\n")
    with pytest.raises(UserError, match=r"compiling it failed: .*undefined reference to .missing\(\)"):
        own.resolve(["it.cxx"])


LMDB = """
#include <lmdb.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	MDB_env *env; MDB_txn *txn; MDB_dbi dbi;
	MDB_val key = { 3, "key" }, value = { 6, "value" };
	mdb_env_create(&env);
	int bad = mdb_env_set_mapsize(env, 1 << 20) || mdb_env_open(env, "/tmp", 0, 0644) || mdb_txn_begin(env, NULL, 0, &txn);
	bad = bad || mdb_dbi_open(txn, NULL, 0, &dbi) || mdb_put(txn, dbi, &key, &value, 0) || mdb_txn_commit(txn);
	bad = bad || mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) || mdb_get(txn, dbi, &key, &value);
	printf("%s\\n", bad ? "bad" : (char *)value.mv_data);
	return bad;
}
"""
ROCKSDB = """
#include <rocksdb/db.h>
#include <iostream>
int main()
{
	rocksdb::DB *db;
	rocksdb::Options options;
	std::string value;
	options.create_if_missing = true;
	auto status = rocksdb::DB::Open(options, "/tmp/db", &db);
	if (status.ok()) status = db->Put(rocksdb::WriteOptions(), "key", "value");
	if (status.ok()) status = db->Get(rocksdb::ReadOptions(), "key", &value);
	std::cout << (status.ok() ? value : status.ToString()) << std::endl;
	return !status.ok();
}
"""


@pytest.mark.guest
@pytest.mark.parametrize(("source", "text", "library", "package"), [
    ("it.c", LMDB, "lmdb", "liblmdb-dev"), ("it.cc", ROCKSDB, "rocksdb", "librocksdb-dev")])
def test_libraries_of_debians_packages(here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
                                       source: str, text: str, library: str, package: str) -> None:
    (here / source).write_text(text)
    monkeypatch.setattr("sys.argv", ["trapless", "run", "--package", package, "--cflags", f"-l{library}", "--", f"./{source}"])
    assert cli.main() == 0
    assert "value\n" in capfd.readouterr().out


@pytest.mark.guest
def test_numpy_finds_its_blas(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import numpy; print(int((numpy.ones((4, 4)) @ numpy.ones((4, 4))).sum()))"
    monkeypatch.setattr("sys.argv", ["trapless", "run", "--package", "python3-numpy", "--", "python3", "-c", script])
    assert cli.main() == 0
    assert "64\n" in capfd.readouterr().out


@pytest.mark.guest
def test_c_is_compiled_on_the_way(here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "count.c").write_text(C)
    monkeypatch.setattr("sys.argv", ["trapless", "run", "--", "./count.c", "a", "b c"])
    assert cli.main() == 3
    assert "2 arguments, last b c\n" in capfd.readouterr().out


@pytest.mark.guest
def test_python_runs(here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "count.py").write_text("import sys\nprint(len(sys.argv), sys.argv[-1])\nsys.exit(3)\n")
    monkeypatch.setattr("sys.argv", ["trapless", "run", "--", "./count.py", "a", "b c"])
    assert cli.main() == 3
    assert "3 b c\n" in capfd.readouterr().out
