# SPDX-License-Identifier: Apache-2.0
"""Where things are: the checkout and the cache."""

from __future__ import annotations

import os
from pathlib import Path


def _root() -> Path:
    """Return TRAPLESS_ROOT, the checkout that a wheel was built in (setup.py), or the checkout that this file is in."""
    built_in = Path(__file__).with_name("checkout.txt")
    if named := os.environ.get("TRAPLESS_ROOT"):
        return Path(named)
    return Path(built_in.read_text().strip()) if built_in.is_file() else Path(__file__).resolve().parents[3]


ROOT = _root()
CACHE = Path(os.environ.get("TRAPLESS_CACHE", ROOT / ".trapless")).absolute()
DEV = ROOT / "dev"
STUDIES = ROOT / "studies"
LINUX = ROOT / "linux"
MACHINE = ROOT / "machine"
RTL = ROOT / "rtl"
PYTHONPATH = os.pathsep.join([str(ROOT), str(ROOT / "python")])
"""Folders in which `trapless`, `studies`, `dev` and `rtl` are found."""
