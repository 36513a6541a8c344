# SPDX-License-Identifier: Apache-2.0
"""Columns of results: every figure is declared, and every declared column is made. Pages show parts of the CSV files beside
them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import pytest
from trapless.base.paths import ROOT, STUDIES
from trapless.base.ui import UserError
from trapless.loads import fio
from trapless.loads.setup import Setup
from trapless.pagesim import output
from trapless.profile import profiling
from trapless.results import columns, figures, table
from trapless.results.columns import HIGHER, LOWER, Column
from trapless.study import measure, repeated
from trapless.study.catalogue import EXPERIMENTS
from trapless.study.experiment import MOST_COLUMNS, NOT_COLUMNS, Experiment, Table, View
from trapless.sweeps import record

from dev.tests import fake_runs

MOST_LINES = 200
TABLES = {name: shown for entry in EXPERIMENTS.values() for name, shown in entry.tables.items()}
ELSEWHERE = (*record.COLUMNS.values(), *fio.SHORT, *output.COLUMNS, *profiling.OF_KINDS)
"""Columns that do not belong to an experiment."""


def every_column() -> Iterator[tuple[str, Column]]:
    for name, entry in EXPERIMENTS.items():
        yield from ((name, column) for column in entry.columns.values())
    yield from (("", column) for column in ELSEWHERE)


def test_columns_say_what_they_are() -> None:
    for name, column in every_column():
        where = f"{name}: {column.key}"
        assert column.meaning.endswith((".", "?")) and "\n" not in column.meaning, where
        assert column.word or column.unit, f"{where}: a number without a unit (1: a bare one)"
        assert column.direction in (HIGHER, LOWER, None) and not (column.word and column.direction), where
        assert column.word or column.printed(1), where


def test_a_key_has_one_unit_in_an_experiment() -> None:
    for name, entry in EXPERIMENTS.items():
        for column in (*(column for shown in entry.tables.values() for column in shown.columns), *entry.more):
            assert (column.unit, column.direction) == (entry.columns[column.key].unit, entry.columns[column.key].direction), name


def test_views_are_narrow_parts_of_their_tables() -> None:
    for name, shown in TABLES.items():
        keys = [column.key for column in shown.columns]
        assert len({column.heading for column in shown.columns}) == len(keys) == len(set(keys)), name
        for view in shown.views or ("",):
            seen = shown.view(view).columns
            assert len(seen) <= MOST_COLUMNS, f"{name}/{view}: {len(seen)} columns"
            assert set(seen) <= set(shown.columns), f"{name}/{view}: a column that the table does not have"


@cache
def made(name: str, folder: Path) -> tuple[list[dict], list[dict]]:
    """Return what an experiment makes of made-up runs: rows of results with their runs, and rows of its tables."""
    rows = EXPERIMENTS[name].measure(Setup(folder))
    shown = [row for entry in EXPERIMENTS[name].tables.values() for row in entry.rows(rows)]
    return [*rows, *(run for row in rows for run in row.get(repeated.RUNS, ()))], shown


def of_all(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[tuple[str, list[dict], list[dict]]]:
    fake_runs.install(monkeypatch, folder)
    for name in EXPERIMENTS:
        if name != "isca20-area":
            yield name, *made(name, folder)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[dict], list[dict]]]:
    """Return the result of `made` for each experiment."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = {name: (rows, shown) for name, rows, shown in of_all(monkeypatch, tmp_path_factory.mktemp("runs"))}
    return found | {"isca20-area": (rows := EXPERIMENTS["isca20-area"].measure(Setup(Path(), quick=True)), rows)}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_figure_of_a_row_is_declared(name: str, everything: dict) -> None:
    assert not EXPERIMENTS[name].undeclared(everything[name][0]) - {"sum"}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_column_of_a_table_is_made(name: str, everything: dict) -> None:
    has = {key for rows in everything[name] for row in rows for key, value in row.items() if value is not None}
    for shown in EXPERIMENTS[name].tables.values():
        assert not {column.key for column in shown.columns} - has


def test_every_declared_column_is_made(everything: dict) -> None:
    """One of the experiments that declare a column makes it."""
    made_ones, declared = set(), set()
    for name, parts in everything.items():
        has = {key for rows in parts for row in rows for key in row}
        for key, column in EXPERIMENTS[name].columns.items():
            declared.add((key, column.unit))
            if key in has:
                made_ones.add((key, column.unit))
    # Only the demo makes this one.
    assert declared - made_ones == {("runs_at_once", "runs")}


def test_undeclared_figures_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up = Experiment("title", lambda setup: [], {"t": Table((figures.KIND, figures.MEAN_US))})
    row = {"kind": "osdp", "mean_us": 3.0, "mean_us_ci": 0.1, "hits": 4, "words": "x", "git": "v1", "details": {}, "none": None}
    assert made_up.undeclared([row]) == {"hits", "words"} and "git" in NOT_COLUMNS
    measure.keep("x", made_up, Setup(tmp_path), [row], {})
    assert "x: no column is declared for hits, words" in capsys.readouterr().err
    figure = json.loads((tmp_path / "runs.jsonl").read_text())["figures"]
    assert figure["hits"] == {"value": 4, "unit": "1", "direction": None}
    assert figure["mean_us"] == {"value": 3.0, "unit": "us", "direction": LOWER}
    assert columns.read(tmp_path) == made_up.columns


def test_columns_in_files(tmp_path: Path) -> None:
    assert columns.read(tmp_path) == {}
    columns.write(tmp_path, [figures.MEAN_US])
    known = columns.read(tmp_path)
    assert known == {"mean_us": figures.MEAN_US}
    assert columns.of(known, "mean_us_ci") == figures.MEAN_US.interval() and columns.of(known, "x").unit == "1"
    assert columns.from_json(["mean us", "mean_us", ".2f"]) == Column("mean_us", "mean us", "", "1", None, ".2f")
    for damaged in ("{", "[1]", json.dumps([asdict(figures.KIND) | {"more": 1}])):
        (tmp_path / columns.FILE).write_text(damaged)
        with pytest.raises(UserError, match="columns.json: not the columns of results"):
            columns.read(tmp_path)


def test_values_are_printed() -> None:
    column = Column("a", "a", "A.", "%", HIGHER, "+,.1f")
    assert (column.printed(1234.56), column.plain(1234.56), column.printed(None), column.plain(None)) == ("+1,234.6", "1234.6",
                                                                                                          "-", "")
    assert column.interval().printed(0.25) == "0.2" and column.plain(-3) == "-3.0"


def test_a_page_shows_a_part_of_the_csv(tmp_path: Path) -> None:
    change = Column("change", "change %", "Change.", "%", LOWER, "+.1f")
    shown = Table((figures.KIND, figures.MEAN_US, figures.MEAN_US.interval(), change), views={
        "": View((figures.KIND, figures.MEAN_US)), "hwdp": View((change,), lambda row: row["kind"] == "hwdp")})
    rows = [{"kind": "osdp", "mean_us": 1234.5, "mean_us_ci": 2.0}, {"kind": "hwdp", "mean_us": 3.0, "mean_us_ci": None,
                                                                     "change": 4.0}]
    assert shown.on_page("t", rows) == ("| kind | mean us |\n| --- | ---: |\n| osdp | 1234.50 ± 2.00 |\n| hwdp | 3.00 |\n\n"
                                        "[All 4 columns](data/t.csv) ([meaning](data/columns.csv))\n")
    assert "| change % |\n| ---: |\n| +4.0 |\n" in shown.on_page("t", rows, "hwdp")
    for _ in range(2):
        measure.write_data(tmp_path / "data", "t", shown, rows)
        measure.write_data(tmp_path / "data", "a", shown, rows)
    assert (tmp_path / "data" / "t.csv").read_text() == (
        "kind,mean_us,mean_us_ci,change\nosdp,1234.50,2.00,\nhwdp,3.00,,4.0\n")
    said = table.csv_rows((tmp_path / "data" / "columns.csv").read_text())
    assert [(row["table"], row["column"]) for row in said] == [(name, column.key) for name in ("a",
                                                                                               "t") for column in shown.columns]


def test_tables_are_written_into_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, text in (("README.md", "no table"), ("docs/toy/a.md", "<!-- table t -->\nold\n<!-- end -->\nkept\n"),
                       ("studies/toy/b.md", "b")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(measure, "ROOT", tmp_path)
    monkeypatch.setattr(measure, "STUDIES", tmp_path / "studies")
    measure.write_to_documents({"t": (Table((figures.KIND,)), [{"kind": "osdp"}])})
    page = (tmp_path / "docs" / "toy" / "a.md").read_text()
    assert "| osdp |" in page and "old" not in page and page.endswith("<!-- end -->\nkept\n")
    assert (tmp_path / "docs" / "toy" / "data" / "t.csv").read_text() == "kind\nosdp\n"


def pages() -> dict[Path, list[str]]:
    """Return the pages that show tables of experiments, with the names of these blocks."""
    found = {path: [name for name in table.blocks(path.read_text()) if name.partition("/")[0] in TABLES]
             for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(STUDIES.rglob("*.md")))}
    return {path: names for path, names in found.items() if names}


def value(column: Column, text: str) -> object:
    """Return the value of a cell of a CSV file."""
    if not text or column.word:
        return text or None
    return int(text) if column.form.endswith("d") else float(text)


def test_every_view_is_on_a_page() -> None:
    shown = {name for names in pages().values() for name in names}
    assert shown == {f"{name}/{view}" if view else name for name, entry in TABLES.items() for view in entry.views or ("",)}


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_pages_are_short_and_show_what_their_data_says(path: Path) -> None:
    text, data = path.read_text(), path.parent / table.DATA
    assert text.count("\n") <= MOST_LINES, "split it by question"
    said = table.csv_rows((data / table.MEANINGS).read_text())
    for block in pages()[path]:
        name, _, view = block.partition("/")
        shown = TABLES[name]
        rows = table.csv_rows((data / f"{name}.csv").read_text())
        assert rows and list(rows[0]) == [column.key for column in shown.columns], name
        values = [{column.key: value(column, row[column.key]) for column in shown.columns} for row in rows]
        assert table.csv_text(values, shown.columns) == (data / f"{name}.csv").read_text(), f"{name}: written by hand?"
        assert text == table.replace(text, block, shown.on_page(name, values, view)), f"{block}: the page differs from its CSV"
        mine = [row for row in said if row["table"] == name]
        assert table.meanings("", name, shown.columns) == table.csv_lines([
            list(table.MEANINGS_HEADS), *(list(row.values()) for row in mine)]), f"{name}: columns.csv has another declaration"


def test_data_has_nothing_else() -> None:
    for data in {path.parent / table.DATA for path in pages()}:
        names = {name.partition("/")[0] for path, names in pages().items() if path.parent == data.parent for name in names}
        assert {path.name for path in data.iterdir()} == {table.MEANINGS, *(f"{name}.csv" for name in names)}
        assert {row["table"] for row in table.csv_rows((data / table.MEANINGS).read_text())} == names


def test_wide_views_would_be_found() -> None:
    wide = replace(TABLES["miss_latency"], views={})
    assert len(wide.view().columns) > MOST_COLUMNS
