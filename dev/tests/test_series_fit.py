# SPDX-License-Identifier: Apache-2.0
"""A patch is applied where it was written for, or not at all: linux/build and linux/checks on trees that have changed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from trapless.base.paths import LINUX

CHECK = LINUX / "checks" / "check-hunks"

# Two functions that lock and return. In much of the kernel, the three context lines of a hunk look like this.
SOURCE = """\
#include <linux/mm.h>

{before}static int map_page(struct page *page)
{{
\tint err = 0;

\t{first}
\tspin_lock(&page->lock);
\terr = page->state;
\tspin_unlock(&page->lock);
\treturn err;
}}

static int free_page(struct page *page)
{{
\tint err = 0;

\t{second}
\tspin_lock(&page->lock);
\terr = page->state;
\tspin_unlock(&page->lock);
\treturn err;
}}
"""
PATCH = """\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
Subject: [PATCH] mm: look at the page first

--- a/mm/page.c
+++ b/mm/page.c
@@ -6,5 +6,6 @@ static int map_page(struct page *page)
 
 \ttrace_map(page);
 \tspin_lock(&page->lock);
+\tlook_at(page);
 \terr = page->state;
 \tspin_unlock(&page->lock);
"""


def tree(folder: Path, first: str = "trace_map(page);", second: str = "trace_free(page);", before: str = "") -> Path:
    (folder / "mm").mkdir(parents=True)
    (folder / "Makefile").write_text("kernelversion:\n\t@echo 6.12.1\n")
    (folder / "mm" / "page.c").write_text(SOURCE.format(first=first, second=second, before=before))
    return folder


def judged(folder: Path, patch: str = PATCH) -> subprocess.CompletedProcess[str]:
    (folder / "0001-x.patch").write_text(patch)
    return subprocess.run([CHECK, folder, folder / "0001-x.patch"], capture_output=True, text=True)


def test_a_hunk_at_its_line_is_not_mentioned(tmp_path: Path) -> None:
    done = judged(tree(tmp_path / "t"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_hunk_that_has_moved_is_told(tmp_path: Path) -> None:
    done = judged(tree(tmp_path / "t", before="int x;\n" * 40))
    assert done.returncode == 0
    assert done.stdout == "0001-x.patch: mm/page.c: hunk 1 (line 6, in map_page()): moved to line 46\n"


def test_a_function_may_have_other_arguments(tmp_path: Path) -> None:
    source = tree(tmp_path / "t")
    file = source / "mm" / "page.c"
    file.write_text(file.read_text().replace("map_page(struct page *page)", "map_page(struct page *page, int order)"))
    assert judged(source).returncode == 0


@pytest.mark.parametrize(("first", "second", "complaint"), [
    # The other function now has the lines that this one had.
    ("count(page);", "trace_map(page);", "would land in free_page(), line 17"),
    # Both functions have the lines, but not at the old place, so the hunk is ambiguous.
    ("prepare();\n\n\ttrace_map(page);", "trace_map(page);", "its lines are at lines 8, 19, not at line 6"),
    # Applies only with fuzz.
    ("count(page);", "trace_free(page);", "its lines are nowhere, not at line 6"),
])
def test_a_hunk_elsewhere_is_refused(tmp_path: Path, first: str, second: str, complaint: str) -> None:
    done = judged(tree(tmp_path / "t", first, second))
    assert done.returncode == 1
    assert done.stderr == f"0001-x.patch: mm/page.c: hunk 1 (line 6, in map_page()): {complaint}\n"


def test_a_new_file_must_be_new(tmp_path: Path) -> None:
    done = judged(tree(tmp_path / "t"), "--- /dev/null\n+++ b/mm/page.c\n@@ -0,0 +1 @@\n+int x;\n")
    assert done.returncode == 1 and "mm/page.c: is in the tree already" in done.stderr


def series(folder: Path) -> Path:
    """Return linux/build with a series of one patch."""
    shutil.copytree(LINUX / "configs", folder / "configs")
    shutil.copy(LINUX / "build", folder / "build")
    (folder / "checks").mkdir()
    shutil.copy(CHECK, folder / "checks")
    (folder / "series").mkdir()
    (folder / "series" / "series").write_text("0001-x.patch\n")
    (folder / "series" / "0001-x.patch").write_text(PATCH)
    return folder


@pytest.mark.parametrize("second", ["trace_map(page);", "trace_free(page);"])
def test_build_refuses_a_tree_where_a_hunk_lands_elsewhere(tmp_path: Path, second: str) -> None:
    source = tree(tmp_path / "t", "count(page);", second)
    done = subprocess.run([series(tmp_path / "linux") / "build", "--source", source, "--out", tmp_path / "out"],
                          capture_output=True, text=True)
    assert done.returncode == 2
    assert "mm/page.c: hunk 1 (line 6, in map_page())" in done.stderr
    assert "0001-x.patch does not fit" in done.stderr.splitlines()[-1]
    assert not list(tmp_path.glob("out*"))


def test_check_series_takes_another_tree(tmp_path: Path) -> None:
    source = tree(tmp_path / "t", "count(page);", "trace_map(page);")
    done = subprocess.run([LINUX / "checks" / "check-series", "--source", source, series(tmp_path / "linux") / "series"],
                          capture_output=True, text=True)
    assert "FAIL every hunk of series lands in its function" in done.stdout
    assert "would land in free_page()" in done.stderr
