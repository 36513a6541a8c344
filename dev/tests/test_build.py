# SPDX-License-Identifier: Apache-2.0
"""Builds that run at the same time (python/trapless/guest/build.py)."""

import time
from pathlib import Path

import pytest
from trapless.base.ui import UserError
from trapless.guest import build

KERNEL = Path("Image")


@pytest.fixture
def cargo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a slow fake cargo, which writes its progress there and ends when the file `go` exists."""
    program = tmp_path / "bin" / "cargo"
    program.parent.mkdir()
    program.write_text(f"""#!/bin/sh
cd {tmp_path}
trap 'touch ended; exit 1' TERM
touch began
for i in $(seq 300); do [ -e go ] && touch built && exit 0; sleep 0.1; done
""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.delenv("TRAPLESS_MACHINE", raising=False)
    return tmp_path


def wait_for(file: Path) -> None:
    """Wait until the file exists, or fail."""
    for _ in range(300):
        if file.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{file.name} does not exist after 30 s")


def test_the_machine_is_built_beside_a_kernel(cargo: Path) -> None:
    def find() -> Path:
        wait_for(cargo / "began")
        assert not (cargo / "built").exists()
        (cargo / "go").touch()
        return KERNEL

    assert build.beside_machine(find) == KERNEL
    assert (cargo / "built").exists()


@pytest.mark.parametrize("failure", [UserError("no kernel"), KeyboardInterrupt()])
def test_a_kernel_that_fails_ends_it(cargo: Path, failure: BaseException) -> None:
    def find() -> Path:
        wait_for(cargo / "began")
        raise failure

    with pytest.raises(type(failure)):
        build.beside_machine(find)
    assert (cargo / "ended").exists()


def test_a_machine_that_fails_is_told(cargo: Path) -> None:
    (cargo / "bin" / "cargo").write_text("#!/bin/sh\necho error: a bad crate; exit 101\n")
    with pytest.raises(UserError, match="a bad crate"):
        build.beside_machine(lambda: KERNEL)


def test_a_machine_that_is_there_is_not_built(cargo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAPLESS_MACHINE", "/bin/true")
    assert build.beside_machine(lambda: KERNEL) == KERNEL
    assert not (cargo / "began").exists()
