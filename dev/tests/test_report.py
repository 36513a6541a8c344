# SPDX-License-Identifier: Apache-2.0
"""The report, opened in headless Chromium: no errors, nothing wider than a phone, and each figure has its marks and numbers."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from trapless.base.ui import UserError
from trapless.loads.setup import Setup
from trapless.results import figures as known
from trapless.results import plots
from trapless.study import measure, repeated, site
from trapless.study.catalogue import EXPERIMENTS
from trapless.study.compared import Compared, one
from trapless.study.experiment import Experiment, Study, Table

from dev.tests.test_profile_page import record_in, written

PHONE, DESK = 390, 1200
# Opens a page in a frame of this width, and reports its content when its figures are drawn.
HARNESS = """<!doctype html><link rel="icon" href="data:,"><iframe id="page" src="%s" width="%d" height="900"></iframe><script>
const frame = document.getElementById("page");
function look() {
  const inside = frame.contentDocument, root = inside.documentElement, figures = {};
  if (inside.querySelector(".figure") && !root.dataset.drawn) { setTimeout(look, 50); return; }
  for (const holder of inside.querySelectorAll(".figure")) {
    figures[holder.id] = {
      bars: holder.querySelectorAll(".barlayer .point").length, points: holder.querySelectorAll(".scatterlayer .point").length,
      lines: holder.querySelectorAll(".scatterlayer .js-line").length,
      errors: holder.querySelectorAll(".errorbar path.yerror").length,
      boxes: holder.querySelectorAll(".boxlayer path.box").length,
      ticks: [...holder.querySelectorAll(".xtick text")].map((tick) => tick.textContent),
      ink: holder.layout.font.color, width: holder.getBoundingClientRect().width,
      drawn: holder.data.map((trace) => [trace.name, [...trace.y]]),
      data: JSON.parse(inside.getElementById(holder.id + "-data").textContent),
    };
  }
  const result = { wide: root.scrollWidth, room: root.clientWidth, tables: inside.querySelectorAll("table").length, figures };
  const said = document.createElement("pre");
  said.id = "result";
  said.textContent = JSON.stringify(result);
  document.body.append(said);
}
frame.addEventListener("load", look);
</script>"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


Look = Callable[..., dict]


def browse(url: str, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                           "--virtual-time-budget=20000", "--enable-logging=stderr", *options, url],
                          capture_output=True, text=True, timeout=120, check=True)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[str]:
    """Yield the address of the folder `report`."""
    (tmp_path / "report").mkdir(exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "report")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture
def look(serve: str, tmp_path: Path) -> Look:
    """Return a function that opens a page and returns its content, including errors on the console."""
    def open_page(page: str, width: int = DESK, dark: bool = False) -> dict:
        (tmp_path / "report" / "harness.html").write_text(HARNESS % (page, width))
        done = browse(f"{serve}/harness.html", "--window-size=1400,1000", "--dump-dom",
                      f"--blink-settings=preferredColorScheme={0 if dark else 1}")
        found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
        assert found, done.stdout[-500:] + done.stderr[-500:]
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return {**json.loads(unescape(found[1])), "console": console}
    return open_page


def rows(setup: Setup | None = None) -> list[dict]:
    return [{**repeated.row({"kind": kind, "threads": threads},
                            [{"mean_us": base * threads + seed, "seed": seed} for seed in range(1, 3 if threads < 4 else 2)]),
             "paper_us": 20.0 if kind == "hwdp" else None}
            for threads in (1, 2, 4) for kind, base in (("osdp", 30.0), ("hwdp", 15.0))]


MADE = Experiment(
    "made <up> & measured", rows, {"made": Table((known.KIND, known.MEAN_US.but(form=".1f")))},
    {"bars": plots.Bars("threads", "kind", "mean_us", "us a </script> read", "paper_us"),
     "stacked": plots.Bars("threads", "kind", "mean_us", "us", stacked=True),
     "lines": plots.Lines("threads", "kind", "mean_us", "threads", "us", "paper_us"),
     "panels": plots.Lines("threads", "kind", "mean_us", "threads", "us", panel="kind", log=True),
     "series": plots.Lines("threads", "kind", "mean_us", "threads", "us", marks=False),
     "words": plots.Lines("kind", "threads", "mean_us", "kind", "us")},
    about="What is <b>not</b> measured: </script>.",
    compared=lambda found: [Compared("near", "us", one(30.0), one(31.0), 0.5),
                            Compared("far", "us", one(10.0), one(31.5), 0.5, "A reason that is </script> long. " * 12)])


TIMES = {"host_seconds": 4.0, "runs_known": 17, "host_seconds_known": 271.0}


def known_to(monkeypatch: pytest.MonkeyPatch, experiments: dict[str, Experiment]) -> None:
    """Let the report find one study with these experiments."""
    monkeypatch.setattr(site, "EXPERIMENTS", experiments)
    monkeypatch.setattr(site, "ALL", {"made": Study("a made-up study", experiments)})


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a site of one made-up experiment; another experiment is not measured."""
    known_to(monkeypatch, {"isca20-made": MADE, "isca20-missing": MADE})
    folder = tmp_path / "out" / "isca20-made"
    folder.mkdir(parents=True)
    measure.keep("isca20-made", MADE, Setup(folder), rows(), TIMES)
    site.run(tmp_path / "out", tmp_path / "report")
    return tmp_path / "report"


@pytest.mark.parametrize(("width", "dark"), [(DESK, False), (PHONE, True)])
def test_pages(look: Look, made: Path, width: int, dark: bool) -> None:
    page = look("isca20-made.html", width, dark)
    assert page["console"] == []
    assert page["wide"] <= page["room"] <= width
    figures = {name.removeprefix("figure-"): figure for name, figure in page["figures"].items()}
    assert figures.keys() == MADE.plots.keys()
    for name, figure in figures.items():
        assert figure["width"] <= width
        assert figure["ink"] == ("#e4e4e4" if dark else "#222222")
        drawn = [values for trace, values in figure["drawn"] if not trace.endswith(", paper")]
        assert drawn == [trace["y"] for trace in figure["data"]["traces"]], name
        assert sorted(value for values in drawn for value in values) == sorted(row["mean_us"] for row in rows())
    assert (figures["bars"]["bars"], figures["stacked"]["bars"]) == (6, 6)
    assert figures["bars"]["points"] == 3, "the paper's marks"
    assert [values for trace, values in figures["lines"]["drawn"] if trace == "hwdp, paper"] == [[20.0] * 3]
    assert (figures["lines"]["points"], figures["lines"]["lines"]) == (9, 2)
    assert (figures["panels"]["points"], figures["series"]["points"], figures["series"]["lines"]) == (6, 0, 2)
    assert figures["bars"]["errors"] == figures["lines"]["errors"] == 4, "of one run there is no interval"
    assert (figures["words"]["ticks"], figures["words"]["points"], figures["words"]["lines"]) == (["osdp", "hwdp"], 6, 3)


def test_breakdown(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of misses in hardware, spans of faults. A row whose runs have none is left out, and so is the part of a page without
    rows."""
    runs = {"osdp": [{"profile": {"faults": {"spans_us": {"exception": 1.0, "device": 10.9, "nothing": 0.0}}}}],
            "hwdp": [{"steps": {"walk": 0.1, "device": 10.0}}, {"hw_miss": {"steps": {"walk": 0.3, "device": 12.0}}}],
            "emulated": [{"steps": None, "profile": "vc707", "hw_miss": None}],
            # One record combines points of two machines, and one point without steps.
            "both": [{"names": {"timing": timing}, "steps": {"walk": us}}
                     for timing, us in (("timed", 5.0), ("hits", 1.0), ("timed", 7.0))] + [{"names": {"timing": "none"}}]}
    of_kind = [{"kind": kind, "mean_us": 12.0, "runs": of} for kind, of in runs.items()]
    made = replace(MADE, measure=lambda setup: of_kind, plots={})
    known_to(monkeypatch, {"isca20-made": made, "isca20-plain": MADE})
    for name, experiment_of, rows_of in (("isca20-made", made, made.measure(None)), ("isca20-plain", MADE, rows())):
        (tmp_path / "out" / name).mkdir(parents=True)
        measure.keep(name, experiment_of, Setup(tmp_path / "out" / name), rows_of, TIMES)
    site.run(tmp_path / "out", tmp_path / "report")
    assert 'id="breakdown"' not in (tmp_path / "report" / "isca20-plain.html").read_text()
    page = look("isca20-made.html", PHONE)
    assert page["console"] == [] and page["wide"] <= page["room"]
    drawn = page["figures"]["breakdown"]["drawn"]
    assert drawn == [["exception", [1.0]], ["device", [10.9, 11.0]], ["walk", [pytest.approx(0.2), 6.0, 1.0]]]
    text = (tmp_path / "report" / "isca20-made.html").read_text()
    assert re.search(r"hwdp</td><td>-</td><td>11.000</td><td>0.200</td>", text)


def test_beyond_a_bound_of_nothing() -> None:
    """A percentage of 0 does not exist."""
    shown = site.beside(vars(Compared("x", "%", (-42.4, 0.0), (-3.0, 5.0))))
    assert (shown["paper"], shown["difference"]) == ("-42.4 to 0", "5 above 0")


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_overview(look: Look, made: Path, width: int) -> None:
    page = look("index.html", width)
    assert page["console"] == []
    assert page["wide"] <= page["room"]
    text = (made / "index.html").read_text()
    assert "./trapless study isca20-missing" in text
    assert re.search(r'<td class="far">\+215 %</td>', text)
    assert "31.5 ± 0.5" in text
    assert "A reason that is &lt;/script&gt; long." in text


def test_page_of_a_profile(look: Look, serve: str, tmp_path: Path) -> None:
    """The page's one file is self-contained."""
    written(tmp_path / "report", record_in(tmp_path / "report"))
    page = look("index.html", PHONE, dark=True)
    assert page["console"] == [] and page["wide"] <= page["room"] <= PHONE
    figures = page["figures"]
    assert {"life-faults", "steps-walks", "misses-over-time", "frames"} < figures.keys()
    for name, figure in figures.items():
        assert figure["width"] <= PHONE and figure["ink"] == "#e4e4e4"
        assert figure["drawn"] == [[trace.get("name"), trace["y"]] for trace in figure["data"]["data"]], name
    assert figures["life-faults"]["bars"] == 3 and figures["steps-walks"]["boxes"] == 4
    assert (figures["misses-over-time"]["lines"], figures["frames"]["lines"]) == (3, 3)


def test_prints(made: Path, serve: str, tmp_path: Path) -> None:
    browse(f"{serve}/isca20-made.html", f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_files_are_there(made: Path) -> None:
    text = (made / "isca20-made.html").read_text()
    assert f'title="{known.MEAN_US.meaning}"' in text
    linked = re.findall(r'(?:href|src)="(?!data:)([^"#]+)"', text)
    assert linked
    assert all((made / name).is_file() for name in linked)
    assert "4; 17 runs taken from the cache once took 271, one after another" in text


def test_nothing_measured(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there are no results"):
        site.run(tmp_path, tmp_path / "report")


def test_half_written_results_are_named(tmp_path: Path) -> None:
    name = next(iter(EXPERIMENTS))
    (tmp_path / name).mkdir()
    (tmp_path / name / "experiment.json").write_text('{"figures"')
    with pytest.raises(UserError, match="experiment.json: "):
        site.run(tmp_path, tmp_path / "report")


@pytest.mark.parametrize("missing", ["about", "compared", "confidence", "tables", "host_seconds", "form"])
def test_results_of_another_version_are_named(made: Path, tmp_path: Path, missing: str) -> None:
    path = tmp_path / "out" / "isca20-made" / "experiment.json"
    whole = json.loads(path.read_text())
    del whole[missing]
    path.write_text(json.dumps(whole))
    line = rf"made/experiment\.json: written by another version \(.*{missing}.*\); measure it again$"
    with pytest.raises(UserError, match=line):
        site.run(tmp_path / "out", tmp_path / "report")


def test_a_report_does_not_go_to_where_results_are(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^--out .*/out: this is also the folder of --from"):
        site.run(Path("out"), tmp_path / "out")
