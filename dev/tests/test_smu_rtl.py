# SPDX-License-Identifier: Apache-2.0
"""With the SMU's RTL, a booted Linux gives the same results as with the reference model; only times differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest import build
from trapless.guest.images import dataset, ext4
from trapless.guest.job import command_job

pytestmark = pytest.mark.guest

SIZE = 8 * ext4.MIB
OF_TIMES = ("requests", "coalesced")
"""Counters of how often harts ask for a page, and whether another hart has asked already."""


@pytest.mark.parametrize("threads", [1, 4])
def test_same_pages_in_the_same_order(program: Path, patched: Path, root: Path, tmp_path: Path, threads: int) -> None:
    outputs, orders, counts = [], [], []
    for name in ("model", "rtl"):
        out = tmp_path / name
        options = ["--attribute", str(out), "--attribute-from", "milestone:1"]
        if name == "rtl":
            options.append(f"--smu-rtl={build.smu_rtl('vc707', (), None)}")
        guest = guests.Guest(patched, root, dataset.image(SIZE), append="norandmaps", options=tuple(options), max_seconds=300)
        argv = ["mapsum", "-t", str(threads), "-o", "shuffle", "/data/random.bin"]
        outcome = guests.run_on_machine(program, guest, command_job(argv, "hwdp"))
        assert outcome.status == 0
        misses = [json.loads(line) for line in (out / "misses.jsonl").read_text().splitlines()]
        outputs.append(outcome.console)
        orders.append([miss["va"] for miss in misses])
        counts.append({key: count for key, count in outcome.stats["smu_counters"].items() if key not in OF_TIMES})
    assert outputs[0] == outputs[1]
    assert counts[0] == counts[1]
    assert counts[0]["installed"] == SIZE // 4096
    if threads == 1:
        # Neither log has the waits that an interrupt ended.
        model, rtl = ([va for va in order if va in set(other)] for order, other in (orders, orders[::-1]))
        assert model == rtl and len(model) > 0.9 * SIZE // 4096
