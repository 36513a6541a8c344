# SPDX-License-Identifier: Apache-2.0
"""A short run of the stale block attack. The full form is `./trapless dev attack`. REQ: OS-3"""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.checks import attack

pytestmark = [pytest.mark.guest, pytest.mark.series]


@pytest.mark.parametrize("seed", [1, 2])
def test_no_foreign_byte(patched: Path, seed: int) -> None:
    """In every round, blocks of the attacker become the victim's; the attacker never sees their new content."""
    outcome = attack.run_attack(60, "mixed", seed, patched)
    assert outcome.rounds >= 60
    assert outcome.reads > 10 * outcome.rounds
    assert outcome.fast_pages > 0
    assert outcome.foreign == 0
