# SPDX-License-Identifier: Apache-2.0
"""The values of ASPF and STC beside ours, from records in the form that the experiments make."""

from __future__ import annotations

import pytest
from trapless.study import repeated
from trapless.study.compared import Compared

from studies.aspf import compared as aspf_compared
from studies.aspf import figures as aspf
from studies.stc import compared as stc_compared
from studies.stc import figures as stc


def record(policy: str, time_s: float, faults: int, moved: int, **more: object) -> dict:
    wanted = {f"{origin}_{key}": value for origin in ("neighbour", "set", "reconstruct")
              for key, value in (("issued", 400), ("useful_share", 71.2 if origin == "neighbour" else None))}
    return {"mix": "mix6", "policy": policy, "latency_us": 3.0, "prefetch_pages": 4, "time_s": time_s, "faults": faults,
            "context_switches": 100 + faults, "device_reads": moved // 2, "pages_moved": moved, **wanted, **more}


def one_of(found: list[Compared], word: str) -> Compared:
    (named,) = [one for one in found if word in one.quantity]
    return named


@pytest.mark.parametrize(("figure", "beside", "virt", "differs"), [
    ("6a", aspf_compared.times_by_mix, (7.16, 18.5), True), ("6c", aspf_compared.accesses, (8.62, 57.0), True)])
def test_less_than_waiting(figure: str, beside: object, virt: tuple[float, float], differs: bool) -> None:
    records = aspf.compare([record("sync", 4.0, 1000, 900), record("virt", 3.26, 430, 1200), record("aspf-star", 3.5, 860, 1300)])
    found = beside(aspf.note(records, "paper", figure, "{mix}", "{policy}"))
    assert len(found) == 2, "sync is beside itself"
    neighbours, sets = one_of(found, "virt, mix6"), one_of(found, "aspf-star, mix6")
    assert (neighbours.paper[0], neighbours.ours[0]) == (virt[0], pytest.approx(virt[1]))
    assert neighbours.differs is differs
    assert "71 % of 400 pages (neighbour)" in neighbours.reason and "1,000 faults" in neighbours.reason
    assert "none of 400 pages (set)" in sets.reason, "of a short run nothing is known"


def test_slower_devices_and_more_pages_name_their_case() -> None:
    records = aspf.compare([record("sync", 4.0, 1000, 900), record("virt", 3.0, 400, 1200)])
    assert "virt, 3 us" in aspf_compared.times_by_latency(aspf.note(records, "paper", "7", "3", "{policy}"))[0].quantity
    assert "virt, 4 pages" in aspf_compared.times_by_pages(aspf.note(records, "paper", "8", "4", "{policy}"))[0].quantity


def test_waiting_and_switching() -> None:
    records = aspf.compare([record("async", 5.0, 900, 900, shortest_trace_m=500.0), record("sync", 4.0, 1000, 900,
                                                                                          shortest_trace_m=500.0)], "async")
    aspf.note(records, "paper_s", "1b", "seconds", "{policy}")
    found = aspf_compared.waiting(aspf.note(records, "paper", "1b", "saved", "{policy}"))
    saved, switching, waiting = found
    assert (saved.paper[0], saved.ours[0], saved.differs) == (24.3, pytest.approx(20), True)
    assert (switching.paper[0], waiting.paper[0]) == (82.3, 62.3)


def test_shares_and_costs() -> None:
    each = [{"process": "wrf", "head_share": 34.0, "middle_share": 33.0, "end_share": 33.0, "share_5": 33.0, "share_10": 33.5,
             "paper_5": 33.42, "paper_10": None}]
    assert [one.paper for one in aspf_compared.heads([{"each": each}])] == [None] * 3
    (share,) = aspf_compared.processors([{"policy": "sync", "jain": 0.9, "each": each}])
    assert not share.differs
    star = record("aspf-star", 3.5, 860, 1300, paper_energy=47.6, moved_less_than_virt=-14.8, paper_useful=54.54)
    (energy,) = aspf_compared.moved([record("virt", 3.0, 400, 1200, paper_energy=None), star])
    assert energy.differs and "1,300 pages, virt 1,200" in energy.reason
    assert aspf_compared.useful([star]) == [], "nothing is known of sets"
    (sets,) = aspf_compared.useful([{**star, "set_useful_share": 54.0}])
    assert not sets.differs


def walk(variant: str, cycles: float, threads: int = 1) -> dict:
    return repeated.row({"variant": variant, "order": "seq", "threads": threads}, [{
        "walk": cycles + more, "fault": 4400.0, "walk_instructions": cycles - 5, "hits": None if variant == "off" else 99.6}
        for more in (-1, 1)])


def test_walks_saved() -> None:
    records = stc.compare([walk("off", 120.0), walk("paper", 240.0), walk("ours", 30.0),
                           walk("off", 120.0, threads=2), walk("ours", 30.0, threads=2)], ("order", "threads"))
    papers, ours = stc_compared.savings("order", "threads")(stc._beside_paper(records, "6", "order", "threads"))
    assert (papers.ours[0], ours.ours[0], ours.paper[0]) == (pytest.approx(-100), pytest.approx(75), 20)
    assert papers.differs and ours.differs
    assert ours.interval > 0
    assert "115 instructions and 120 cycles" in ours.reason and "100 % of walks" in ours.reason


def test_walks_of_matrices() -> None:
    rows = [{"rows": 100 * number, "walk": 280.0, "fault": 7200.0, "walk_instructions": 110.0, "walk_of_fault": 3.0 + number,
             "walk_of_handler": 5.5, "paper_least": 8.0, "paper_most": 10.0} for number in (1, 2)]
    (found,) = stc_compared.walks(rows)
    assert (found.paper, found.ours, found.differs) == ((8.0, 10.0), (4.0, 5.0), True)
    assert "280 of 7,200 cycles: 110 for instructions and 170 for misses" in found.reason


def test_shares_without_the_papers_values() -> None:
    records = [{"order": order, "pages": pages, "fault_share": 90.0 + pages} for order in ("seq", "random") for pages in (1, 4)]
    seq, random = stc_compared.shares("fault_share", "time in page faults")(records)
    assert (seq.paper, seq.ours, random.quantity) == (None, (91.0, 94.0), "time in page faults, random")
