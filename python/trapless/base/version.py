# SPDX-License-Identifier: Apache-2.0
"""Version of the project that a result comes from."""

from __future__ import annotations

import subprocess

from trapless.base.paths import ROOT

VERSION = "0.1.0"
"""Version of the project; CHANGELOG.md says what is in it."""


def git_describe() -> str | None:
    """`git describe` of the checkout, with `-dirty` if it has changes; None outside of a checkout."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True,
                              check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
