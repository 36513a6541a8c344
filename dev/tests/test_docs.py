# SPDX-License-Identifier: Apache-2.0
"""Checks of pages: links, code blocks and commands are right, and pages and tables are small enough to read."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from trapless.base.paths import ROOT

from dev import pages, site

LOST = "/".join(("docs", "none.md"))


def test_pages_are_right() -> None:
    assert pages.faults() == []


def test_much_is_looked_at() -> None:
    """A check that finds no pages would pass, too."""
    found = pages.pages()
    assert len(found) > 100 and {ROOT / "README.md", ROOT / "spec" / "smu.md"} <= {*found}
    assert sum(len(list(pages.links(page))) for page in found) > 500
    assert sum(len(list(pages.commands(page))) for page in found) > 120
    assert sum(len(pages.columns(page)) for page in found) > 100


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return an empty checkout."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[here](other.md)", "link to other.md: no such file"),
        ("[here](#nothing)", "link to #nothing: no such heading"),
        ("# Some `code` here\n\n[here](#some-code)", "link to #some-code: no such heading"),
        ("[outside](../../etc/passwd)", "link to ../../etc/passwd: no such file"),
        ('<img src="none.svg">', "link to none.svg: no such file"),
        (f"See {LOST}.", f"names {LOST}, which does not exist"),
        ("`a_test_that_is_not_there`", "names a_test_that_is_not_there, which does not exist"),
        ("line\n" * 201, "201 lines, more than 200: split it"),
        ("| a |" + " b |" * 7 + "\n|" + " --- |" * 8 + "\n", "a table of 8 columns, more than 7: put some into a file beside it"),
        ("```toml\na = = 1\n```", "line 1: not toml: "),
        ("```json\n{,}\n```", "line 1: not json: "),
        ("```python\nif\n```", "line 1: not python: "),
        ("`./trapless rum`", "./trapless rum: no command rum"),
        ("`./trapless dev sok`", "./trapless dev sok: no command sok"),
        ("`./trapless sok`", "./trapless sok: no command sok"),
        ("    ./trapless run --dta 4M -- ls --all", "./trapless run --dta 4M -- ls --all: no option --dta"),
        ("```sh\n./trapless run \\\n    --knd hwdp\n```", "./trapless run      --knd hwdp: no option --knd"),
        ("`./trapless study isca20-99`", "./trapless study isca20-99: no study isca20-99"),
        ("`./trapless test lnt`", "./trapless test lnt: no test lnt"),
    ],
)
def test_what_is_wrong_is_found(checkout: Path, text: str, fault: str) -> None:
    (checkout / "page.md").write_text(text)
    found = pages.faults(checkout)
    assert len(found) == 1 and found[0].startswith(f"page.md: {fault}"), found


@pytest.mark.parametrize(
    "text",
    [
        "# Some `code`, here: now!\n\n[here](#some-code-here-now) [there](https://example.org/x#y)",
        "# Twice\n\n# Twice\n\n[second](page.md#twice-1) [file](page.md) [folder](./)",
        "`[no link](x)` and `./trapless run --kind KIND ...`, `./trapless COMMAND --help`, ./trapless is a script",
        "`./trapless test --all difftest; ./trapless help run | less`, `./trapless dev difftest [--seed N]`",
        "    ./trapless run --data 4M -- ls --what-not    # --anything\n    ./trapless sweep --worker tcp://head:1",
        "```text\na = =\n```",
    ],
)
def test_what_is_right_passes(checkout: Path, text: str) -> None:
    (checkout / "page.md").write_text(text)
    assert pages.faults(checkout) == []


def test_an_exception_that_is_needed_no_more_is_named(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "LONG", {"page.md": "a reason"})
    monkeypatch.setattr(pages, "WIDE", {"page.md": "a reason"})
    (checkout / "page.md").write_text("short\n")
    assert [fault.partition(": dev/")[0] for fault in pages.faults(checkout)] == [
        "page.md: 1 lines", "page.md: tables of at most 0 columns"]


def test_exceptions_are_there() -> None:
    assert {*pages.LONG, *pages.WIDE} <= {*pages.tracked()}


def test_a_page_of_the_site_that_lost_something_is_named(checkout: Path) -> None:
    (checkout / "README.md").write_text("# A\n\n- [b](README.md)\n- c\n\n| d |\n| --- |\n| e |\n")
    html = ('<article class="x"><h1>A</h1><ul><li><a href="i">b</a></li>{}</ul><table><thead><tr></tr></thead><tr></tr></table>'
            '</article>')
    assert list(site.differences(checkout / "README.md", checkout, checkout)) == ["README.md: not in the site"]
    (checkout / "index.html").write_text(html.format("<li>c</li>"))
    assert list(site.differences(checkout / "README.md", checkout, checkout)) == []
    (checkout / "index.html").write_text(html.format("- c"))
    assert list(site.differences(checkout / "README.md", checkout, checkout)) == [
        "README.md: 1 of <li> in the site, 2 on GitHub"]


def test_requirements_of_the_site_are_pinned() -> None:
    lines = [line for line in site.REQUIREMENTS.read_text().splitlines() if not line.startswith("#")]
    assert lines and all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in lines)
    known = (ROOT / "docs" / "reference" / "dependencies.md").read_text()
    assert [line for line in lines if line.partition("==")[0] not in known] == []
