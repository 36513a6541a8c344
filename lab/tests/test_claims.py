# SPDX-License-Identifier: Apache-2.0
"""Every claim is measured, every measure claimed, and documents state no result outside the register."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import claims, measures
from lab.paths import ROOT
from lab.ui import UserError

# A measured figure in a text: a number with one of these units. Facts from elsewhere stand on a line marked `<!-- given -->`.
RESULT = re.compile(r"\d[\d.,]* ?(us|µs|MIPS|host s|x faster|times faster)\b")


NOT_YET = "A table without rows has not been measured in full yet."


def test_register_is_sound() -> None:
    found, tables = claims.load()
    assert found
    for stated in tables:
        text = (ROOT / stated.file).read_text()
        assert claims.table_cells(text, stated.id) or NOT_YET in " ".join(text.split())
    stated_ids = {(stated.file, stated.id) for stated in tables}
    for path in documents():
        for name in re.findall(r"<!-- table (\S+) -->", path.read_text()):
            assert (str(path.relative_to(ROOT)), name) in stated_ids, "a table that nothing measures"


def test_every_measure_is_claimed() -> None:
    found, _ = claims.load()
    assert set(measures.MEASURES) == {claim.measure for claim in found}
    assert set(measures.MEASURES) > measures.FULL_ONLY


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ('measure = "nothing"\ndirection = "at most"', "nothing measures"),
        ('measure = "boot_mips"\ndirection = "about"', "direction"),
        ('measure = "boot_mips"\n', "direction"),
    ],
)
def test_faulty_register(tmp_path: Path, fault: str, message: str) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(f'[[claim]]\nid = "x"\narea = "a"\nsentence = "s"\naim = 1\nunit = "s"\n{fault}\n')
    with pytest.raises(UserError, match=message):
        claims.load(path)


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("results*.md")), *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def unregistered(text: str) -> list[str]:
    """Lines that state a result and stand neither in a measured table nor under a claim's id nor as given facts."""
    text = re.sub(r"<!-- table .*?<!-- end -->", "", text, flags=re.DOTALL)
    ids = {claim.id for claim in claims.load()[0]}
    bad = []
    for line in text.splitlines():
        named = re.findall(r"<!-- claim (\S+) -->", line)
        if set(named) - ids or (RESULT.search(line) and not named and "<!-- given -->" not in line):
            bad.append(line)
    return bad


def test_documents_state_only_what_is_measured() -> None:
    for path in documents():
        if path.exists():
            assert unregistered(path.read_text()) == [], path


def test_claims_are_marked_where_the_figures_stand() -> None:
    """What is claimed of a document's tables is stated in a document."""
    found, tables = claims.load()
    marked = {name for path in documents() for name in re.findall(r"<!-- claim (\S+) -->", path.read_text())}
    assert {claim.id for claim in found if claim.area in {stated.area for stated in tables}} <= marked


def test_unregistered_numbers_are_found() -> None:
    assert unregistered("A miss takes 29.1 us.")
    assert unregistered("It runs at 200 MIPS. <!-- claim no-such -->")
    assert not unregistered("It runs at 80 MIPS or more. <!-- claim boot-mips -->")
    assert not unregistered("The paper has 27.9 us. <!-- given -->")


def throughputs(text: str, name: str) -> Iterator[tuple[dict[str, str], float, float]]:
    """Rows of a table that say throughput and latency: the row, reads a second, and the most that its threads can do."""
    for row in claims.table_cells(text, name):
        latency, threads = row.get("mean us", "-"), float(row.get("threads", "4" if name in ("large", "scale") else "1"))
        rates = {"MB/s but arming": 1e6 / 4096, "MB/s": 1e6 / 4096, "ops/s": 1.0}
        for column, scale in rates.items():
            if row.get(column, "-") != "-" and latency != "-":
                yield row, float(row[column].replace(",", "")) * scale, threads * 1e6 / float(latency.replace(",", ""))


def test_no_throughput_is_more_than_its_latency_allows() -> None:
    """Each thread reads one block after the other."""
    found = []
    for stated in claims.load()[1]:
        if stated.id.startswith(("thesis-5", "small", "large", "isca20-1", "scale", "miss")):
            found += [(stated.id, row, rate, most)
                      for row, rate, most in throughputs((ROOT / stated.file).read_text(), stated.id)]
    assert len(found) > 100
    # Both are rounded, fio's time is in milliseconds, and the sum of the threads' own rates is a little above that of their mean.
    assert [each for each in found if each[2] > each[3] * 1.02] == []


def test_verdicts() -> None:
    claim = claims.Claim("i", "a", "s", "m", 10.0, "u", "at most")
    assert claim.holds(10.0)
    assert not claim.holds(10.1)


def test_small_measures() -> None:
    """Each takes its worst or only figure from records of 1, 2 and 4 threads; only the first has the overlap."""
    session = measures.Session(quick=True)
    session._records["small_no_refill"] = [
        {"setting": "small", "threads": threads, "kind": "hwdp", "kpoold": kpoold, "latency_ratio_to_osdp": 5 - threads,
         "latency_ratio_to_emulated": 1.5, "bandwidth_ratio_to_osdp": 2.5,
         **({"refill_faults_removed": 99.0 + threads / 10} if kpoold == "on" else {}),
         **({"refill_overlap_percent": 95.0} if (threads, kpoold) == (1, "off") else {})}
        for threads in (1, 2, 4) for kpoold in ("on", "off")]
    found = {name: measures.MEASURES[name](session) for name in (
        "small_latency_ratio", "small_latency_ratio_to_emulated", "small_bandwidth_ratio", "refill_faults_removed",
        "refill_overlap")}
    assert found == {"small_latency_ratio": 1, "small_latency_ratio_to_emulated": 1.5, "small_bandwidth_ratio": 2.5,
                     "refill_faults_removed": 99.1, "refill_overlap": 95.0}
