# SPDX-License-Identifier: Apache-2.0
"""Every goal is measured, every measure claimed, and documents state no result outside the register."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from trapless.base.paths import ROOT
from trapless.base.ui import UserError
from trapless.results import table
from trapless.study import demo

from dev import goal_pages, goals, measures

# A measured figure in a text: a number with one of these units. Facts from elsewhere stand on a line marked `<!-- given -->`.
RESULT = re.compile(r"\d[\d.,]* ?(us|µs|MIPS|host s|x faster|times faster)\b")


def test_register_is_sound() -> None:
    found, tables = goals.load()
    assert found
    for stated in tables:
        rows = goals.stated_rows(stated)
        assert rows, stated.id
        assert stated.file == "README.md" or set(stated.host) <= set(rows[0]), f"{stated.id}: no such column"
    stated_ids = {(stated.file, stated.id) for stated in tables}
    for path in goal_pages.documents():
        for name in {block.partition("/")[0] for block in table.blocks(path.read_text())}:
            file = path if path.name == "README.md" else path.parent / table.DATA / f"{name}.csv"
            assert (str(file.relative_to(ROOT)), name) in stated_ids, "a table that nothing measures"


def test_stated_tables_are_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each cell of the CSV against a row of a fresh measurement, by the row's names; what depends on the host is only printed."""
    (tmp_path / "large.csv").write_text("kind,mean_us,host_seconds,hw_misses\nosdp,100.00,5,\n")
    monkeypatch.setattr(goals, "ROOT", tmp_path)
    stated = goals.StatedTable("large", "large", "large.csv", 10.0, ("host_seconds",))
    session = measures.Session(quick=True)
    session._records["large"] = [{"kind": "osdp", "mean_us": 115.0, "host_seconds": 9.0, "hw_misses": 3}]
    found = {figure.id: (figure.holds, figure.unit) for figure in goals.check_table(stated, session)}
    assert found == {"large-osdp-mean_us": (False, "us"), "large-osdp-host_seconds": (None, "s")}
    (tmp_path / "large.csv").write_text("kind,mean_us\nhwdp,100.00\n")
    with pytest.raises(UserError, match="large.csv: table large: nothing measures the row hwdp"):
        goals.check_table(stated, session)


def test_every_measure_is_claimed() -> None:
    found, _ = goals.load()
    assert set(measures.MEASURES) == {goal.measure for goal in found}
    assert set(measures.MEASURES) > measures.FULL_ONLY


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ('measure = "nothing"\ndirection = "at most"', "nothing measures"),
        ('measure = "boot_mips"\ndirection = "about"', "direction"),
        ('measure = "boot_mips"\n', "direction"),
        ('measure = "boot_mips"\ndirection = "at most"', "its sentence has no {figure}"),
    ],
)
def test_faulty_register(tmp_path: Path, fault: str, message: str) -> None:
    path = tmp_path / "goals.toml"
    path.write_text(f'[[goal]]\nid = "x"\narea = "a"\nsentence = "s"\naim = 1\nunit = "s"\n{fault}\n')
    with pytest.raises(UserError, match=message):
        goals.load(path)


def sentences(text: str) -> Iterator[str]:
    """Sentences of paragraphs and list items, and lines of tables; a mark belongs to the sentence before it."""
    for part in re.split(r"\n(?=\s*\n|[*|-] ?)|(?<=\|)\n", text):
        whole = re.sub(r"([.,;:)]*) (<!-- (?:goal \S+|given) -->)", r" \2\1", " ".join(part.split()))
        yield from re.split(r"(?<=[.;:])\s+", whole)


def unregistered(text: str) -> list[str]:
    """Sentences that state a result and stand neither in a measured table nor before a goal's mark nor as given facts."""
    text = re.sub(r"\s*\([^()]*\)<!-- /goal -->", "", text)
    text = re.sub(r"<!-- table .*?<!-- end -->", "", text, flags=re.DOTALL)
    ids = {goal.id for goal in goals.load()[0]}
    bad = []
    for sentence in sentences(text):
        named = re.findall(r"<!-- goal (\S+) -->", sentence)
        if set(named) - ids or (RESULT.search(sentence) and not named and "<!-- given -->" not in sentence):
            bad.append(sentence)
    return bad


def test_documents_state_only_what_is_measured() -> None:
    for path in goal_pages.documents():
        if path.exists():
            assert unregistered(path.read_text()) == [], path


def test_readme_says_what_its_table_shows() -> None:
    text = (ROOT / "README.md").read_text()
    records = [{"kind": row["kind"], "mean_us": float(row["mean us per read"]),
                "kernel_instructions_per_op": float(row["kernel instructions per read"].replace(",", ""))}
               for row in goals.table_cells(text, "demo")]
    assert f"<!-- table demo/gain -->\n{demo.gain(records)}<!-- end -->" in text


def test_no_mark_begins_a_line() -> None:
    """There a comment would end the paragraph."""
    assert [path for path in goal_pages.documents() if re.search(r"^\s*<!-- /?goal", path.read_text(), re.MULTILINE)] == []


def test_claims_are_marked_where_the_figures_stand() -> None:
    """What is claimed of a document's tables is stated in a document."""
    found, tables = goals.load()
    marked = {name for path in goal_pages.documents() for name in re.findall(r"<!-- goal (\S+) -->", path.read_text())}
    assert {goal.id for goal in found if goal.area in {stated.area for stated in tables}} <= marked


def test_unregistered_numbers_are_found() -> None:
    assert unregistered("A miss takes 29.1 us.")
    assert unregistered("It runs at 200 MIPS. <!-- goal no-such -->")
    assert not unregistered("It runs at 80 MIPS or more. <!-- goal boot-mips -->")
    assert not unregistered("The paper has 27.9 us. <!-- given -->")


def test_marks_take_the_measured_figure() -> None:
    """Once and again: what stands behind a mark is replaced, also where it goes over lines."""
    register = {"a": goals.Goal("a", "x", "{figure}", "m", 5.35, "x", "at least")}
    once = goal_pages.marked("Fast. <!-- goal a --> So.", register, {"a": goals.Measured(4.634, "2026-01-02")})
    assert once == ("Fast. <!-- goal a --> (measured 2026-01-02: 4.63 times; aim: at least 5.35 times, not reached)<!-- /goal -->"
                    " So.")
    again = goal_pages.marked(once.replace("times; aim", "times;\naim"), register, {"a": goals.Measured(6, "2026-01-03")})
    assert again == "Fast. <!-- goal a --> (measured 2026-01-03: 6 times; aim: at least 5.35 times)<!-- /goal --> So."
    with pytest.raises(UserError, match="no such goal: b"):
        goal_pages.marked("<!-- goal b -->", register, {})


def test_what_falls_short_comes_first() -> None:
    register = [goals.Goal(name, "x", name + " is {figure}", "m", 1.0, "us", "at most") for name in ("good", "bad")]
    text = goal_pages.page(register, {"good": goals.Measured(0.5, "2026-01-02"), "bad": goals.Measured(2.0, "2026-01-02")})
    assert text.index("| bad is 2 | at most 1 us | 2026-01-02 | x |") < text.index("## What holds") < text.index("good is 0.5")


def test_what_held_and_does_not_ends_with_an_error() -> None:
    register = [goals.Goal(name, "x", "{figure}", "m", 1.0, "us", "at most") for name in ("held", "short", "new")]

    def figure(name: str, holds: bool | None) -> goals.Figure:
        return goals.Figure(name, "x", "", "", 2.0, 1.0, "us", "at most", holds)

    before = {"held": goals.Measured(0.5, ""), "short": goals.Measured(1.5, "")}
    figures = [figure(name, False) for name in ("held", "short", "new", "table-row")]
    assert goals.lost([*figures, figure("host", None)], before, register) == ["held", "table-row"]
    assert goals.lost([figure("held", True)], before, register) == []


def test_a_record_keeps_what_was_not_measured(tmp_path: Path) -> None:
    path = tmp_path / "goals.csv"
    path.write_text("goal,figure,date\ndemo-arming,0.5,2026-01-01\ngone,1,2026-01-01\n")
    goals.record([goals.Figure("boot-mips", "boot", "", "", 101.23456789, 80, "MIPS", "at least", True)], "2026-01-02", path)
    assert path.read_text() == "goal,figure,date\nboot-mips,101.235,2026-01-02\ndemo-arming,0.5,2026-01-01\n"


def throughputs(stated: goals.StatedTable) -> Iterator[tuple[dict[str, str], float, float]]:
    """Rows of a table that say throughput and latency: the row, reads a second, and the most that its threads can do."""
    for row in goals.stated_rows(stated):
        latency, threads = row.get("mean_us"), float(row.get("threads", "4" if stated.id in ("large", "scale") else "1"))
        rates = {"reading_mb_s": 1e6 / 4096, "bandwidth_mb_s": 1e6 / 4096, "ops_per_second": 1.0}
        for column, scale in rates.items():
            if row.get(column) and latency:
                yield row, float(row[column]) * scale, threads * 1e6 / float(latency)


def test_no_throughput_is_more_than_its_latency_allows() -> None:
    """Each thread reads one block after the other."""
    found = []
    for stated in goals.load()[1]:
        if stated.id.startswith(("thesis-5", "small", "large", "isca20-1", "scale", "miss")):
            found += [(stated.id, row, rate, most) for row, rate, most in throughputs(stated)]
    assert len(found) > 100
    # Both are rounded, fio's time is in milliseconds, and the sum of the threads' own rates is a little above that of their mean.
    assert [each for each in found if each[2] > each[3] * 1.02] == []


def test_verdicts() -> None:
    goal = goals.Goal("i", "a", "s", "m", 10.0, "u", "at most")
    assert goal.holds(10.0)
    assert not goal.holds(10.1)


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
