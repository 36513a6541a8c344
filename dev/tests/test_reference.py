# SPDX-License-Identifier: Apache-2.0
"""The reference of commands agrees with the command line, that of keys with the types of profiles."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from trapless.base.paths import MACHINE
from trapless.base.ui import UserError

from dev import profile_keys, reference


def test_the_reference_is_fresh() -> None:
    assert reference.run(check=True) == 0


def test_every_option_has_a_meaning() -> None:
    for name, text in reference.pages().items():
        without = [line for line in text.splitlines() if line.startswith("| `") and line.endswith("|  |")]
        assert not without, f"{name}: {without}"


def test_every_key_is_there_with_a_range_and_a_meaning() -> None:
    page, drives = (profile_keys.pages()[name] for name in ("profile-keys.md", "drive-keys.md"))
    for text in (page, drives):
        rows = [line.split(" | ") for line in text.split("## The built-in drives")[0].splitlines() if line.startswith("| `")]
        assert len(rows) > 20 and all(row[2] and row[3] for row in rows)
    for file in MACHINE.glob("profiles/*.toml"):
        for section, keys in tomllib.loads(file.read_text()).items():
            for key in keys if isinstance(keys, dict) else ():
                assert f"| `{key}` |" in page or f"## {section}.{key}\n" in page, key
    for row in ("| `harts` |  | 1 to 64 | Number of harts, 1 to 64. | 4 [FPGA] | 8 [choice] | 1 [config] |",
                " with fewer levels. | (sv39) | (sv39) | (sv39) |", "| `history_bits` |  | 1 to 16 |",
                "| `row_kib` | KiB | a power of two, 1 to 65,536 | Size of a row. | - | 8 [JEDEC] |"):
        assert row in page
    assert "| `program_us` | us | 0 to 10,000,000 | Time of a program. |" in drives


def test_a_bound_that_nobody_explains_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in profile_keys.SOURCES.glob("*.rs"):
        text = file.read_text()
        (tmp_path / file.name).write_text(text.replace('"harts", Rule::Whole(1, 64)', '"harts", Rule::Whole(1, most_harts())'))
    monkeypatch.setattr(profile_keys, "SOURCES", tmp_path)
    with pytest.raises(UserError, match=r"unknown bound most_harts\(\): add it"):
        profile_keys.pages()
