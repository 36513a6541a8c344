# SPDX-License-Identifier: Apache-2.0
"""`import trapless`: runs, sweeps, results as data frames, figures; and the notebook, which is executed."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import trapless
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from trapless.base.paths import ROOT
from trapless.base.ui import UserError
from trapless.guest import boot as guests
from trapless.guest.run import Request
from trapless.loads.setup import Setup
from trapless.results import columns, figures, plots
from trapless.results.columns import LOWER
from trapless.study import catalogue, repeated
from trapless.study.experiment import Experiment, Table
from trapless.sweeps import record

from dev.tests.fake_lab import Fake
from dev.tests.test_cli import complaint

NOTEBOOK = ROOT / "docs" / "notebooks" / "measure.ipynb"


def rows(setup: Setup | None = None) -> list[dict]:
    return [{**repeated.row({"kind": kind, "threads": threads},
                            [{"mean_us": base * threads + seed, "seed": seed, "git": "v1"} for seed in (1, 2)]),
             **({"paper": 20.0} if kind == "hwdp" else {})}
            for threads in (1, 2) for kind, base in (("osdp", 30.0), ("hwdp", 15.0))]


COLUMNS = (figures.KIND, figures.THREADS, figures.MEAN_US)
MADE = Experiment("a title", rows, {"made": Table(COLUMNS, keys=2)},
                  {"bars": plots.Bars("threads", "kind", "mean_us", "us", "paper"),
                   "panels": plots.Lines("threads", "kind", "mean_us", "threads", "us", panel="kind")}, about="all of it")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Write results of an experiment `made` to out/made of the current folder."""
    monkeypatch.setitem(catalogue._experiments(), "made", MADE)
    monkeypatch.chdir(tmp_path)
    trapless.experiment("made")
    return tmp_path / "out" / "made"


def test_run(fake: Fake, tmp_path: Path) -> None:
    result = trapless.run("fake ok 7", memory="64M", settings={"hwdp.ring": 64, "ssd.read_us": 3}, out=tmp_path / "left")
    assert (result.ok, result.status, result.exit_status, result.line) == (True, "ok", 0, "")
    assert result.check() is result
    assert result.figures["n"] == 7 and result.figures["sim_seconds"] == 1.0 and result.stats["instructions"] == 5
    assert "last words" in result.console
    assert result.files == {"figures.json": tmp_path / "left" / "figures.json"}
    (tmp_path / "left" / "fio.json").write_text("{")
    again = trapless.run("fake ok 8", memory="64M", out=tmp_path / "left")
    assert (again.ok, again.figures["n"], list(again.files)) == (True, 8, ["figures.json"]), "what lay there is not this run's"
    frame = result.frame()
    assert frame.loc[0, ["command", "profile", "hwdp.ring", "n", "status"]].to_list() == ["fake ok 7", "vc707", 64, 7, "ok"]
    assert frame.attrs["units"]["sim_seconds"] == "s" and "hwdp.ring" not in frame.attrs["units"]


def test_one_alone_is_not_its_letters(fake: Fake, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A string instead of a list is one value: for inputs, packages, series and kinds."""
    asked = []

    def stop(request: Request) -> None:
        asked.append((request.inputs, request.packages, request.series))
        raise UserError("enough")

    monkeypatch.setattr("trapless.api.guests.prepare", stop)
    for inputs in ("job.fio", Path("job.fio"), ["job.fio"]):
        with pytest.raises(trapless.Error, match="enough"):
            trapless.run("true", inputs=inputs, packages="stress-ng", series="stc")
    assert asked == [((Path("job.fio"),), ("stress-ng",), ("stc",))] * 3
    kinds = []
    monkeypatch.setattr("trapless.study.measure.measure", lambda name, setup: kinds.append(setup.kinds))
    trapless.experiment("made", kinds="osdp")
    assert kinds == [("osdp",)]


def test_run_that_fails_is_a_result(fake: Fake) -> None:
    result = trapless.run(["fake", "exit", "3"], memory="64M")
    assert (result.ok, result.status, result.exit_status) == (False, "failed", 3)
    with pytest.raises(trapless.Error, match=r"^fake exit 3: exit status 3; its last words: last words$"):
        result.check()
    kept = result.files["figures.json"]
    assert kept.exists()
    del result
    assert not kept.exists()


@pytest.mark.parametrize(("command", "options", "complaint"), [
    ("", {}, "command: is empty"),
    ("echo 'x", {}, "command: echo 'x: no closing quotation"),
    ("true", {"kind": "nothing"}, "no such kind: nothing; there are ideal"),
    ("true", {"knd": "hwdp"}, "no such option: knd; did you mean kind?"),
    ("true", {"settings": {"ring": 3}}, "settings: ring: neither"),
    ("true", {"data": "no.img"}, "no.img: neither an image file"),
    ("true", {"simulator": "bochs"}, "simulator: bochs"),
    ("./no.c", {}, "./no.c: no such file"),
    ("true", {"harts": 0}, "harts must be a positive number, not 0"),
    ("true", {"kernel": __file__, "stock": True}, "does not work with --stock"),
    ("true", {"simulator": "qemu", "ssd": "tlc"}, "--ssd tlc does not work with --on qemu: leave one of them out"),
    ("true", {"simulator": "qemu", "settings": {"hwdp.ring": 64, "ssd.read_us": 3}},
     "--set ssd.read_us=3 does not work with --on qemu: leave one of them out"),
])
def test_what_cannot_run_is_one_line(fake: Fake, command: str, options: dict, complaint: str,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("run_on_machine", "run_on_qemu"):
        monkeypatch.setattr(guests, name, lambda *_, **more: pytest.fail("it runs"))
    with pytest.raises(trapless.Error, match=complaint) as caught:
        trapless.run(command, memory="64M", **options)
    assert "\n" not in str(caught.value) and caught.value.__cause__ is None and caught.value.__suppress_context__
    assert str(caught.type) == "<class 'trapless.Error'>"


def test_sweep(fake: Fake, tmp_path: Path) -> None:
    frame = trapless.sweep({"fixed": {"command": "fake {how} {n}", "memory": "64M"},
                            "vary": {"how": ("ok", "exit"), "n": range(2)}}, out=tmp_path / "out")
    assert frame[["how", "n", "status"]].to_numpy().tolist() == [["ok", 0, "ok"], ["ok", 1, "ok"], ["exit", 0, "ok"],
                                                                 ["exit", 1, "failed"]]
    assert frame["exit_status"].to_list() == [0, 0, 0, 1] and frame["line"].to_list()[3].startswith("exit status 1")
    loaded = trapless.load(tmp_path / "out")
    pd.testing.assert_frame_equal(loaded, frame)
    assert loaded.attrs["units"] == frame.attrs["units"]
    runs = trapless.load(tmp_path / "out", runs=True)
    assert runs["n"].to_list() == [0, 1, 0, 1] and runs.attrs["units"]["sim_seconds"] == "s"
    (fake.folder / "walk.toml").write_text('[fixed]\ncommand = "fake ok 5"\nmemory = "64M"\n')
    assert trapless.sweep(fake.folder / "walk.toml")["n"].to_list() == [5]


def test_units_of_a_programs_own_figures(tmp_path: Path) -> None:
    """A program gives the units itself; figures without one are bare numbers. The machine's units are known."""
    found = {"hits": 3, "page_us": 2.0, "hw_misses": 1}
    said = {"page_us": {"unit": "us", "direction": LOWER, "meaning": "Time of a page."}}
    row = {"values": {"n": 1}, "status": "ok", "exit_status": 0, "line": "", "figures": found, "columns": said}
    (tmp_path / "results.json").write_text(json.dumps([row]))
    columns.write(tmp_path, record.columns_of([row]).values())
    frame = trapless.load(tmp_path)
    assert frame.attrs["units"] == {"hits": "1", "page_us": "us", "hw_misses": "misses"}
    assert (frame.attrs["directions"]["page_us"], frame.attrs["meanings"]["page_us"]) == (LOWER, "Time of a page.")
    result = trapless.Result({"command": "x"}, "ok", 0, "", "", {}, found, {}, columns=said)
    assert result.frame().attrs["units"] == {"hits": "1", "page_us": "us", "hw_misses": "misses"}


def test_results_of_earlier_versions_are_bare_numbers(made: Path) -> None:
    """Rows without columns.json can be read; runs contain their own units."""
    (made / "columns.json").unlink()
    frame = trapless.load(made)
    assert set(frame.attrs["units"].values()) == {"1"} and set(frame.attrs["directions"].values()) == {None}
    assert trapless.load(made, runs=True).attrs["units"]["mean_us"] == "us"
    (made / "columns.json").write_text("[1]")
    with pytest.raises(trapless.Error, match="columns.json: not the columns of results"):
        trapless.load(made)


@pytest.mark.parametrize(("what", "options", "complaint"), [
    ({"fixed": {"command": "true", "kin": "osdp"}}, {}, "kin: neither an option"),
    ({"vary": {"command": "true"}}, {}, "vary.command: not a list"),
    ({"fixed": {"command": "x {n}"}, "vary": {"n": 4}}, {}, "vary.n: not a list"),
    ({"fixed": {"command": "x"}, "vary": [1]}, {}, "sweep: vary: not a table"),
    ({"other": {}}, {}, "other: should be in"),
    ({"fixed": {"command": "true"}}, {"jobs": 0}, "jobs must be at least 1, not 0"),
    ("/no/such.toml", {}, "/no/such.toml: No such file"),
])
def test_wrong_sweeps(what: object, options: dict, complaint: str) -> None:
    with pytest.raises(trapless.Error, match=complaint):
        trapless.sweep(what, **options)


def test_experiment(made: Path) -> None:
    frame = trapless.load(made)
    assert frame[["threads", "kind"]].to_numpy().tolist() == [[1, "osdp"], [1, "hwdp"], [2, "osdp"], [2, "hwdp"]]
    assert frame["mean_us"].to_list() == [31.5, 16.5, 61.5, 31.5]
    assert frame.attrs["units"]["mean_us"] == frame.attrs["units"]["mean_us_ci"] == "us"
    assert {key: frame.attrs[key] for key in ("experiment", "title", "about", "form")} == {
        "experiment": "made", "title": "a title", "about": "all of it", "form": "quick"}
    runs = trapless.load(made, runs=True)
    assert len(runs) == 8 and runs["mean_us"].to_list()[:2] == [31.0, 32.0] and runs.attrs["units"]["mean_us"] == "us"
    with pytest.raises(trapless.Error, match="no such experiment: none"):
        trapless.experiment("none")


def test_settings_of_an_experiment(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drive is set before its values; settings without effect are refused."""
    asked = []
    monkeypatch.setattr("trapless.study.measure.measure", lambda name, setup: asked.append(setup.settings))
    trapless.experiment("made", settings={"ssd.read_us": 3, "ssd": "tlc"})
    assert asked == [("ssd=tlc", "ssd.read_us=3")]
    for name, text in (("read_us", "settings: read_us: neither"), ("hwdp.ring", "settings: hwdp.ring=3: an experiment sets the")):
        with pytest.raises(trapless.Error, match=text):
            trapless.experiment("made", settings={name: 3})
    assert len(asked) == 1


def test_compare(made: Path, tmp_path: Path) -> None:
    trapless.experiment("made", out=tmp_path / "again")
    frame = trapless.compare(made, tmp_path / "again")
    assert set(frame["verdict"]) == {"same"} and frame["difference"].to_list() == [0] * 4
    with pytest.raises(trapless.Error, match="/no: No such file"):
        trapless.compare(made, "/no")


@pytest.mark.parametrize("text", ["{", "3", '[{"values": 3, "figures": 4}]', "[1]"])
def test_what_is_no_result(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(trapless.Error, match=r"results\.json: not the results of an experiment"):
        trapless.load(tmp_path)


def drawn(figure: object) -> dict:
    """Return name, x, y and error bars of the traces of a Plotly figure."""
    return {trace.name: (list(trace.x), list(trace.y), list(trace.error_y.array or [])) for trace in figure.data}


def test_plot_of_columns(made: Path) -> None:
    """Rows with the same names are repetitions: the plot has their mean with its interval."""
    runs = trapless.load(made, runs=True)
    figure = trapless.plot(runs, "threads", "mean_us", "kind")
    wide = [repeated.half_width([31.0, 32.0])] * 2
    assert drawn(figure) == {"osdp": ([1, 2], [31.5, 61.5], wide), "hwdp": ([1, 2], [16.5, 31.5], wide)}
    assert {trace.type for trace in figure.data} == {"scatter"}
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("threads", "mean, us")
    alone = trapless.plot(runs[runs["threads"] == 1], "kind", "mean_us")
    assert drawn(alone) == {"mean, us": (["osdp", "hwdp"], [31.5, 16.5], wide)} and alone.data[0].type == "bar"
    assert trapless.plot(runs, "threads", "mean_us", "kind", form="bars", stacked=True).layout.barmode == "stack"
    printed = trapless.figure(runs, "threads", "mean_us", "kind")
    assert [list(line.get_ydata()) for line in printed.axes[0].get_lines()[:1]] == [[31.5, 61.5]]
    for arguments, text in ((("threads", "no"), "such column: no"), (("threads",), "both x and y"), ((), "such figure: none")):
        with pytest.raises(trapless.Error, match=text):
            trapless.plot(trapless.load(made), *arguments, figure="none")


def test_lines_over_words(made: Path) -> None:
    """The words keep the order of the rows, even if the first line lacks some."""
    runs = trapless.load(made, runs=True)
    runs = runs[(runs["kind"] != "osdp") | (runs["threads"] == 2)].sort_values("kind", ascending=False)
    axes, = trapless.figure(runs, "kind", "mean_us", "threads", form="lines").axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["osdp", "hwdp"]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines() if len(line.get_xdata())][:1] == [
        ([0, 1], [61.5, 31.5])]
    shown = trapless.plot(runs.iloc[::-1], "kind", "mean_us", "threads", form="lines")
    assert {name: at[:2] for name, at in drawn(shown).items()} == {"1": (["hwdp"], [16.5]), "2": (["hwdp", "osdp"], [31.5, 61.5])}
    assert (shown.layout.xaxis.type, shown.layout.xaxis.categoryarray) == ("category", ("hwdp", "osdp"))
    for form in ("lines", "bars"):
        found = trapless.plot(pd.concat([runs[runs["threads"] == 1], runs]), "kind", "mean_us", "threads", form=form)
        assert found.layout.xaxis.categoryarray == ("hwdp", "osdp")
    for form in (None, "lines"):
        with pytest.raises(trapless.Error, match="plot: log: the column kind has words, not numbers"):
            trapless.figure(runs, "kind", "mean_us", "threads", form=form, log=True)
    gap = pd.DataFrame({"size": [1, None, 4], "us": [1.0, 2.0, 3.0]})
    assert drawn(trapless.plot(gap, "size", "us"))["us"][:2] == ([1, 4], [1, 3]), "the plot leaves out rows without x"
    assert [tick.get_text() for tick in trapless.figure(gap, "size", "us").axes[0].get_xticklabels()] == ["1", "4"]


def test_plot_of_an_experiment(made: Path) -> None:
    for what in ("made", made, trapless.load(made)):
        found = drawn(trapless.plot(what))
        assert found["hwdp"][:2] == (["1", "2"], [16.5, 31.5])
        assert found["hwdp, paper"][:2] == (["1", "2"], [20, 20]) and "osdp, paper" not in found
    panels = trapless.plot("made", figure="panels")
    assert panels.layout.yaxis.title.text == "osdp kind" and panels.layout.yaxis2.domain == (0, 0.48)
    assert len(trapless.figure("made", figure="panels").axes) == 2


def test_python_of_the_launcher(tmp_path: Path) -> None:
    (tmp_path / "look.py").write_text("import sys, trapless\nprint(trapless.run.__name__, sys.argv[1:])\nsys.exit(3)\n")
    done = subprocess.run([ROOT / "trapless", "python", "look.py", "--out", "a", "--", "b"], cwd=tmp_path, capture_output=True,
                          text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (3, "run ['--out', 'a', '--', 'b']\n"), complaint(done)


def test_notebook_has_the_example(tmp_path: Path) -> None:
    """The notebook and the example have the same program."""
    cells = [cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.source.startswith("%%writefile reads.c")]
    assert [cell.partition("\n")[2].rstrip() for cell in cells] == [(ROOT / "docs/examples/reads.c").read_text().rstrip()]


def execute(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Run all cells in this folder, as Jupyter does."""
    made = copy.deepcopy(notebook)
    NotebookClient(made, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return made


def test_notebook_has_no_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None


@pytest.mark.guest
@pytest.mark.series
def test_notebook(program: Path, patched: Path, root: Path, tmp_path: Path) -> None:
    """Every cell runs, and its figures exist: one for each call of plot, and the file for a paper."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    outputs = [output for cell in execute(notebook, tmp_path).cells for output in cell.get("outputs", [])]
    figures = [output["data"]["application/vnd.plotly.v1+json"] for output in outputs
               if "application/vnd.plotly.v1+json" in output.get("data", {})]
    assert len(figures) == sum(cell.source.count("trapless.plot(") for cell in notebook.cells) > 0
    for figure in figures:
        assert all(len(trace["y"]) > 0 for trace in figure["data"]), json.dumps(figure)[:500]
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_failing_cell_fails(tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("import trapless\ntrapless.run('true', kind='nothing')")
    with pytest.raises(CellExecutionError, match="no such kind: nothing"):
        execute(nbformat.v4.new_notebook(cells=[cell]), tmp_path)


def test_public_names_are_documented() -> None:
    assert all(getattr(trapless, name).__doc__ for name in trapless.__all__)
    assert sys.modules["trapless"].__doc__
