# SPDX-License-Identifier: Apache-2.0
"""Hook of mkdocs.yml. It adds all pages of the checkout to the site, not only those of docs/. Each page keeps its path, so links
between pages work unchanged. A folder that a page links to gets a page that lists its content. Files that pages link to are
copied to the site."""

from __future__ import annotations

import posixpath
import re
import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/", "studies/", "spec/", "rtl/", "linux/", "machine/", "python/")
TABS = {"Tutorials": "docs/tutorials/", "How-to": "docs/how-to/", "Reference": "docs/reference/",
        "Explanation": "docs/explanation/", "Results": "studies/", "Specification": "spec/", "RTL": "rtl/", "Linux": "linux/",
        "Decisions": "docs/decisions/"}
"""Tabs of the site, and the folders whose pages they contain."""

_LINK = re.compile(r"(\]\()([^)\s#]+)")
_ITEM = re.compile(r"(\s*)(?:[-*]|\d+\.) ")
_listed: dict[str, str] = {}
"""Pages that are made here. Each lists a folder."""


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout.split("\0")
    return sorted(name for name in {*listed} if name and (ROOT / name).is_file())


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add all pages, the files that they link to, and the navigation."""
    tracked = _tracked()
    pages = [name for name in tracked if name.endswith(".md") and name.startswith(PAGES)]
    wanted = {str(name) for name in config.extra_css}
    for name in pages:
        text = (ROOT / name).read_text()
        for target in [*(found[1] for found in _LINK.findall(text)), *re.findall(r'(?:src|srcset)="([^"]+)"', text)]:
            if ":" not in target:
                wanted.add(posixpath.normpath(posixpath.join(posixpath.dirname(name), target)))
    folders = {name for name in wanted if (ROOT / name).is_dir()}
    own = Files([file for file in files if not file.is_documentation_page() and not (ROOT / "docs" / file.src_uri).exists()])
    for name in [*pages, *(name for name in tracked if name in wanted and name not in pages)]:
        own.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for folder in sorted(folders):
        if f"{folder}/README.md" not in pages:
            _listed[folder] = _list(folder, tracked, pages)
            own.append(File.generated(config, f"{folder}/README.md", content=_listed[folder],
                                      inclusion=InclusionLevel.NOT_IN_NAV))
    config.nav = _nav(pages)
    return own


def _list(folder: str, tracked: list[str], pages: list[str]) -> str:
    """Return a page that lists a folder: its pages by title, or its files if it has no pages."""
    inside = [name for name in pages if name.startswith(f"{folder}/")]
    lines = [f"- [{_title(name)}]({posixpath.relpath(name, folder)})" for name in inside]
    lines = lines or [f"- `{posixpath.relpath(name, folder)}`" for name in tracked if name.startswith(f"{folder}/")]
    return f"# {folder}\n\n" + "\n".join(lines) + "\n"


def _title(name: str) -> str:
    return next((line[2:] for line in (ROOT / name).read_text().splitlines() if line.startswith("# ")), name).replace("`", "")


def _nav(pages: list[str]) -> list:
    nav: list = [{"Trapless": ["README.md", {"All pages": "docs/README.md"}, "CONTRIBUTING.md", "CHANGELOG.md"]}]
    for tab, folder in TABS.items():
        listed = [f"{folder}README.md"] if folder.rstrip("/") in _listed else []
        nav.append({tab: listed + [{_title(name): name} for name in pages if name.startswith(folder)]})
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to folders lead to their lists, and convert nested lists for Python-Markdown."""
    place = posixpath.dirname(page.file.src_uri)

    def link(found: re.Match[str]) -> str:
        if ":" not in found[2] and (ROOT / place / found[2]).is_dir():
            return f"{found[1]}{posixpath.join(found[2], 'README.md')}"
        return found[0]

    return _nested(_LINK.sub(link, markdown))


def _nested(text: str) -> str:
    """Convert lists for Python-Markdown: content of an item is indented by four spaces (GitHub needs only two), and a list after
    a line of text has an empty line before it."""
    lines: list[str] = []
    level, fenced, loose = -1, False, False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith("```")
        indent = len(line) - len(line.lstrip())
        if not fenced and line.strip():
            if _ITEM.match(line) and (indent < 4 or level >= 0):
                if (loose or indent > level) and lines and lines[-1].strip() and not _ITEM.match(lines[-1]):
                    lines.append("")
                level, loose = indent, False
            elif not indent:
                level = -1
        loose |= not line.strip()
        lines.append(" " * indent + line if level >= 0 and indent and not fenced else line)
    return "\n".join(lines) + "\n"
