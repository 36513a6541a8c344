# SPDX-License-Identifier: Apache-2.0
"""Files that commands write: complete or absent, even if another process writes the same file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from trapless.base.outputs import output_file, whole, write_whole
from trapless.base.ui import UserError


def test_two_write_the_same_file(tmp_path: Path) -> None:
    """Both write at the same time: the last one to end wins, and neither fails."""
    file = tmp_path / "results.json"
    with whole(file) as last:
        with whole(file) as first:
            last.write_text("last")
            first.write_text("first")
        assert file.read_text() == "first"
    assert file.read_text() == "last"
    assert list(tmp_path.iterdir()) == [file]


def test_many_write_the_same_file(tmp_path: Path) -> None:
    file, texts = tmp_path / "results.json", [str(n) * 100_000 for n in range(10)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda text: write_whole(file, text), texts * 10))
    assert file.read_text() in texts
    assert list(tmp_path.iterdir()) == [file]


def test_what_failed_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    with pytest.raises(ZeroDivisionError), whole(file) as partial:
        partial.write_text("half")
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="cannot write .*missing.*No such file"):
        write_whole(tmp_path / "missing" / "results.json", "{}")


def test_the_place_of_a_file_is_free(tmp_path: Path) -> None:
    """An older file at the place is removed, also behind a link; a device stays."""
    file, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to(file)
    for name in (file, link):
        file.write_text("old")
        assert output_file(name) == name
        assert list(tmp_path.iterdir()) == [link]
    assert output_file(Path("/dev/null")).exists()
    for wrong, why in ((tmp_path, "Is a directory"), (tmp_path / "missing" / "file", "No such file")):
        with pytest.raises(UserError, match=f"^cannot write {wrong}: {why}"):
            output_file(wrong)
