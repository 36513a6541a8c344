# SPDX-License-Identifier: Apache-2.0
"""Where things are: the checkout and the cache."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(os.environ.get("TRAPLESS_ROOT", Path(__file__).resolve().parent.parent))
CACHE = Path(os.environ.get("TRAPLESS_CACHE", ROOT / ".trapless")).absolute()
LAB = ROOT / "lab"
LINUX = ROOT / "linux"
MACHINE = ROOT / "machine"
RTL = ROOT / "rtl"
