# SPDX-License-Identifier: Apache-2.0
"""The page of a profile, from small records made here: the numbers that its figures draw, and that it is self-contained."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import accumulate
from pathlib import Path

import numpy
import pytest
from trapless.base.paths import ROOT
from trapless.profile import page as profile_page
from trapless.profile import profiling
from trapless.results import drawing as figures
from trapless.results.columns import LOWER, Column, word

MHZ = 10**6
FAULT = ("exception", "driver", "device", "interrupt")
MISS = ("walk", "device", "resume")
COLUMNS = (word("name", "category", "What."), Column("us", "us", "Time.", "us", LOWER, ",.2f"))
GRAPH = '<svg xmlns="http://www.w3.org/2000/svg"><g><title>all: 90 cycles, 100.00 %</title><rect/></g></svg>'


def miss(begin: int, spans: list[int], steps: tuple[str, ...], **more: object) -> dict:
    times = dict(zip((*steps, "end"), accumulate([begin, *spans]), strict=True))
    return {"hart": 0, "task": "fio", "va": "0x1000", "times": times, "spans": dict(zip(steps, spans, strict=True))} | more


def fault(begin: int, spans: list[int], waited: bool = True) -> dict:
    one = miss(begin, spans, FAULT)
    if waited:
        one["times"]["device_end"] = begin
    return one


def record_in(folder: Path) -> dict:
    """Write the record and files of a run with two regions of 1000 us at 1 MHz, and 4000 us between them; return the record."""
    windows = [{"region": 0, "begin_cycle": 1000, "end_cycle": 2000}, {"region": 1, "begin_cycle": 6000, "end_cycle": 7000}]
    faults = [fault(1000, [1, 0, 30, 9]), fault(1500, [2, 0, 10, 3]), fault(6005, [1, 0, 20, 4], waited=False),
              fault(6999, [3, 0, 20, 4])]
    misses = [*(miss(6000 + n, [2, 10 + n, 1], MISS) for n in range(10)),
              miss(6500, [0, 8, 0], MISS, hart=None, va="0x0", task=None)]
    frames = [{"cycle": cycle, "ring": ring, "requests": 0, "unsynced": unsynced, "adopted": adopted}
              for cycle, ring, unsynced, adopted in ((1000, None, 0, 5), (1990, 64, 0, 5), (6000, 60, 4, 5), (7000, 62, 1, 9))]
    for name, records in (("faults", faults), ("misses", misses), ("frames", frames)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return {"clock_hz": MHZ, "windows": windows, "cut": {"slices": 3, "faults": 7, "misses": 0, "commands": 0}}


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, dict]:
    return tmp_path, record_in(tmp_path)


def written(out: Path, record: dict, command: str = "fio") -> str:
    profile_page.write(out, record, [("command", command)], [("Work:", [{"name": "driver", "us": 1.5}], COLUMNS)], (GRAPH, 90))
    return (out / "index.html").read_text()


def numbers(page: str) -> dict[str, dict]:
    """Return the numbers of each figure by its id."""
    found = re.findall(r'<script type="application/json" id="([\w-]+)-data">(.*?)</script>', page, re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def cells(page: str, name: str) -> list[list[str]]:
    body = re.search(rf'<table id="{name}">(.*?)</table>', page, re.DOTALL)[1]
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)]


def test_the_life_shown_is_the_median_ones(recorded: tuple[Path, dict]) -> None:
    page = written(*recorded)
    shown = numbers(page)
    (bars,) = shown["life-faults"]["data"]
    # The page shows the median of 40, 15 and 27 cycles, which is 27. A step that takes no time has no bar.
    assert (bars["y"], bars["x"], bars["base"]) == (["exception", "device", "interrupt"], [3, 20, 4], [0, 3, 23])
    assert "The median of 3: task fio, hart 0, address 0x1000, 6.999 ms into the run; 27.00 us." in page
    assert shown["life-walks"]["data"][0]["x"] == [2, 14, 1], "of an even number the shorter one"
    assert shown["life-ports"]["data"][0]["y"] == ["device"]
    assert "The median of 1: 6.500 ms into the run" in page
    assert "life-minor" not in shown


def test_distributions(recorded: tuple[Path, dict]) -> None:
    page = written(*recorded)
    rows = cells(page, "steps-walks-table")
    assert rows[0] == ["step", "mean us", "p1 us", "p25 us", "p50 us", "p75 us", "p99 us", "max us"]
    assert rows[2] == ["device", "14.500", "10.000", "12.000", "14.000", "17.000", "19.000", "19.000"]
    assert rows[4][:2] == ["whole", "17.500"]
    (box,) = numbers(page)["steps-walks"]["data"]
    assert [box[key][1] for key in ("lowerfence", "q1", "median", "q3", "upperfence")] == [10, 12, 14, 17, 19]
    (box,) = numbers(page)["steps-faults"]["data"]
    assert box["y"] == ["exception", "device", "interrupt", "whole"], "a step that no fault came to is left out"
    assert cells(page, "steps-minor-table")[1][:2] == ["exception", "1.000"]


def test_a_logarithmic_axis_has_no_zero(tmp_path: Path) -> None:
    some = profile_page.Misses("walks", "a miss", tmp_path)
    for spans in ([0, 5], [0, 5], [4, 5]):
        some.add(miss(0, spans, ("walk", "device")), 0)
    rows, figure = profile_page.steps(some, {"clock_hz": MHZ})
    assert rows[0][2] == "0.000" and figure.traces[0]["lowerfence"][0] == 1


def test_misses_over_time_count_each_once(recorded: tuple[Path, dict]) -> None:
    hardware, waited, minor = numbers(written(*recorded))["misses-over-time"]["data"]
    assert [sum(curve["y"]) for curve in (hardware, waited, minor)] == [10, 3, 1]
    # The second region begins where the first ends: at 1 ms, in the middle.
    half = profile_page.BINS // 2
    assert hardware["y"][half] == 10 and hardware["x"][half] == pytest.approx(1)
    assert [n for n, count in enumerate(waited["y"]) if count] == [0, half // 2, profile_page.BINS - 1]


def test_time_between_regions_is_left_out() -> None:
    windows = [{"begin_cycle": 10, "end_cycle": 20}, {"begin_cycle": 50, "end_cycle": 55}]
    cycles = numpy.array([5, 10, 15, 20, 40, 50, 52, 99])
    assert profile_page.looked_at(windows, cycles).tolist() == [0, 0, 5, 10, 10, 10, 12, 15]


def test_frames(recorded: tuple[Path, dict]) -> None:
    out, record = recorded
    ring, unsynced, adopted = numbers(written(out, record))["frames"]["data"]
    assert (ring["name"], ring["x"], ring["y"]) == ("in the ring", [0, 0.99, 1, 2], [None, 64, 60, 62])
    assert (unsynced["y"], adopted["y"]) == ([0, 0, 4, 1], [0, 0, 0, 4])
    assert ring["yaxis"] == unsynced["yaxis"] != adopted["yaxis"]
    # With the kind emulated, the ring's frames are unknown.
    lines = [json.loads(line) | {"ring": None} for line in (out / "frames.jsonl").read_text().splitlines()]
    (out / "frames.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [curve["name"] for curve in numbers(written(out, record))["frames"]["data"]] == ["unsynced", "adopted so far"]
    (out / "frames.jsonl").write_text('{"cycle": 1, "ring": null, "requests": 0, "unsynced": 0, "adopted": 0}\n')
    assert "frames" not in numbers(page := written(out, record)) and "No frame came from a ring" in page


def test_a_run_without_a_miss_has_a_page(recorded: tuple[Path, dict]) -> None:
    out, record = recorded
    for name in ("faults", "misses", "frames"):
        (out / f"{name}.jsonl").write_text("")
    page = written(out, record)
    assert set(numbers(page)) == {"flame"} and "hardware served no miss" in page


class _Page(HTMLParser):
    """The addresses that a page loads, its ids, and its viewport."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.phone = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.ids += [named["id"]] if "id" in named else []
        self.loads += [named[key] for key in ("src", "srcset", "data") if named.get(key)]
        self.loads += [named["href"]] if tag == "link" and named["href"] != "data:," else []
        self.phone |= named.get("name") == "viewport" and "width=device-width" in named["content"]


def test_one_file_for_every_reader(recorded: tuple[Path, dict]) -> None:
    page = written(*recorded, command="sh -c '</script><b>'")
    parsed = _Page()
    parsed.feed(page)
    assert parsed.phone and not parsed.loads and len(set(parsed.ids)) == len(parsed.ids)
    assert "url(" not in page.split("<script>")[0] and "</script><b>" not in page
    assert {"flame", "frames", "misses-over-time", "work-1", "cut"} <= set(parsed.ids)
    for name, shown in numbers(page).items():
        assert name in parsed.ids, f"{name}: numbers without a figure"
        assert name == "flame" or shown["data"]
    assert numbers(page)["flame"] == {"cycles": 90, "frames": 1}
    assert 'href="trace.json"' in page and 'href="https://ui.perfetto.dev"' in page
    assert re.search(r'id="cut">.*7 faults\. ', page, re.DOTALL), "the page says how many faults are missing"
    assert page.count("Plotly.react(holder") == 1


def test_kinds_have_a_page_with_links(tmp_path: Path) -> None:
    rows = [{"kind": "osdp", "before": 5.0, "device": 30.0, "smu": 0.0, "after": 4.0},
            {"kind": "hwdp", "device": 30.0, "smu": 1.5}]
    columns = (word("kind", "kind", "Which."), Column("device", "device us", "Time.", "us", LOWER, ",.2f"))
    profile_page.write_kinds(tmp_path, rows, columns, ["ideal", "osdp", "hwdp"], [])
    page = (tmp_path / "index.html").read_text()
    assert all(f'<a href="{kind}/index.html">{kind}</a>' in page for kind in ("ideal", "osdp", "hwdp"))
    assert cells(page, "kinds-table") == [["kind", "device us"], ["osdp", "30.00"], ["hwdp", "30.00"]]
    drawn = {part["name"]: part["x"] for part in numbers(page)["kinds"]["data"]}
    assert drawn["device"] == [30, 30] and drawn["before"] == [5, None] and drawn["user code over ideal"] == [None, None]
    profile_page.write_kinds(tmp_path, [], columns, ["ideal"], [])
    assert not numbers((tmp_path / "index.html").read_text())


def test_names_end_no_element() -> None:
    text = figures.timeline("x", 'a "b" <c>', [("</script><b>", 1.0)]).__html__()
    assert text.count("</script>") == 1 and "<b>" not in text and "<c>" not in text


def test_a_kind_that_was_refused_ends_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Asked:
        kind: str | None = None

    monkeypatch.setattr(profiling, "profile", lambda *_: 2)
    assert profiling.compare(Asked(), tmp_path, None, (), None, ("osdp", "hwdp")) == 2


def luminance(colour: str) -> float:
    """Return the relative luminance (WCAG 2)."""
    parts = [int(colour[place:place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("scheme", "number"), [("light", 0), ("dark", 1), ("paper", 2)])
def test_colours_can_be_seen(scheme: str, number: int) -> None:
    """WCAG 2.2: a contrast of 3 : 1 for graphics (1.4.11), 4.5 : 1 for text (1.4.3)."""
    style, script = figures.style(), (ROOT / "python" / "trapless" / "results" / "site.js").read_text()
    roots = [dict(re.findall(r"--(\w+): #(\w+)", root)) for root in re.findall(r":root {(.*?)}", style)]
    colours = {name: "".join(2 * digit for digit in value) if len(value) == 3 else value for name, value in roots[number].items()}
    drawn = re.findall(r"#(\w{6})", re.search(r"const colours = \[(.*?)\]", script)[1])
    assert len(drawn) >= 6 and all(contrast(colour, colours["back"]) >= 3 for colour in drawn)
    assert all(contrast(colours[name], colours["back"]) >= 4.5 for name in ("ink", "soft", "link", "far"))
