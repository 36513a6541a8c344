# SPDX-License-Identifier: Apache-2.0
"""`./trapless dev docs`: checks all pages (pages.py) and builds the documentation site of mkdocs.yml."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from trapless.base.cache import CACHE, GIB, cached, content_key, run_tool
from trapless.base.paths import DEV, ROOT
from trapless.base.ui import UserError, say

from dev import pages

REQUIREMENTS = DEV / "requirements-docs.txt"
SITE = CACHE / "site-docs"
LOGS = CACHE / "logs"
_PARTS = {"table": "table_open", "tr": "tr_open", "li": "list_item_open", "pre": ("fence", "code_block"), "a": "link_open",
          "h1": "heading_open"}
"""Parts of a page: the HTML element, and the names of its tokens in markdown-it."""


def run(check: bool) -> int:
    """Check all pages; without `check`, also build the site. UserError if something is wrong."""
    if faults := pages.faults():
        print("\n".join(faults))
        raise UserError(f"{len(faults)} faults in pages (listed above)")
    if not check:
        # No -q: with -q, mkdocs does not count warnings, so --strict would have no effect.
        run_tool([_python(), "-m", "mkdocs", "build", "--strict", "--clean", "-d", SITE], LOGS / "docs.log", "mkdocs",
                 env={"NO_MKDOCS_2_WARNING": "1"}, cwd=ROOT, cause="^WARNING|^ERROR")
        if lost := [fault for page in pages.pages() for fault in differences(page)]:
            print("\n".join(lost))
            raise UserError(f"{len(lost)} differences between pages of the site and pages on GitHub (listed above)")
        say(f"site: {SITE / 'index.html'}")
    return 0


def _python() -> Path:
    """Return a Python that has the site's packages."""
    def make(folder: Path) -> None:
        run_tool([sys.executable, "-m", "venv", folder], LOGS / "docs-venv.log", "making a Python environment")
        run_tool([folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                  "-r", REQUIREMENTS], LOGS / "docs-pip.log", "pip install")

    return cached("venv-docs", content_key(REQUIREMENTS, sys.version), "installing the documentation's Python packages", make,
                  GIB // 2) / "bin" / "python"


def differences(page: Path, site: Path = SITE, root: Path = ROOT) -> Iterator[str]:
    """Yield a line if the site has a different number of tables, rows, items, blocks of code, links or headings than GitHub
    shows: Python-Markdown parses some lists and tables differently."""
    name = str(page.relative_to(root))
    html = site / re.sub(r"README\.md$", "index.html", name)
    if html.suffix == ".md":
        html = html.with_suffix(".html")
    if not html.is_file():
        yield f"{name}: not in the site"
        return
    article = re.search(r"<article[^>]*>(.*)</article>", html.read_text(), re.DOTALL)
    read = Counter(token.type for token in pages.tokens(page))
    for part, types in _PARTS.items():
        wanted = sum(read[kind] for kind in ([types] if isinstance(types, str) else types))
        pattern = {"h1": "<h[1-6]", "a": '<a (?!class="headerlink")'}.get(part, rf"<{part}\b")
        found = len(re.findall(pattern, article[1] if article else ""))
        if found != wanted:
            yield f"{name}: {found} of <{part}> in the site, {wanted} on GitHub"
            return
