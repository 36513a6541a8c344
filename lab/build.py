# SPDX-License-Identifier: Apache-2.0
"""Builds what a run needs: the machine (cargo), the kernels and the guest's tools."""

from __future__ import annotations

import os

from lab.paths import CACHE


def cargo_env() -> dict[str, str]:
    """Environment for cargo: its output goes to the cache unless the user says otherwise."""
    return {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(CACHE / "target"))}
