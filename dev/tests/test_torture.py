# SPDX-License-Identifier: Apache-2.0
"""A short run of the torture test of address spaces. The full form is `./trapless dev torture`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.checks import torture

pytestmark = [pytest.mark.guest, pytest.mark.series]

SEQUENCES = 40


@pytest.fixture(scope="module")
def reference(patched: Path) -> torture.Said:
    return torture.run_part(torture.Part(torture.Way(), 1, SEQUENCES), patched)


def test_the_model_is_right(reference: torture.Said) -> None:
    """Without a kind, Linux does what the program's model says."""
    assert torture.contradictions(reference) == []


@pytest.mark.parametrize("way", torture.ways(), ids=str)
def test_kinds_do_not_show(reference: torture.Said, patched: Path, way: torture.Way) -> None:
    """Every system call, every access and every process ends as it does without a kind."""
    said = torture.run_part(torture.Part(way, 1, SEQUENCES), patched)
    assert torture.differences(reference, said) == []
    assert said.unaccounted == ""
