# SPDX-License-Identifier: Apache-2.0
"""Harts that a kernel has no place for are refused: it would leave them out without a word."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from trapless.base.paths import MACHINE
from trapless.base.ui import UserError

PROFILES = MACHINE / "profiles"


def check(kernel: Path, harts: int | None) -> None:
    """UserError if the kernel takes fewer harts than these; what is not known (None) is not checked."""
    most = kernels_most(kernel)
    if harts is not None and most is not None and harts > most:
        raise UserError(f"{harts} harts: the kernel takes at most {most} (CONFIG_NR_CPUS): use --harts {most} or less, or "
                        "another --kernel")


def kernels_most(kernel: Path) -> int | None:
    """CONFIG_NR_CPUS of a kernel whose configuration is where linux/build (config) or a kernel tree (.config) has it."""
    places = [kernel.parent / "config"]
    if kernel.parent.name == "boot" and kernel.parent.parent.parent.name == "arch":
        places.append(kernel.parents[3] / ".config")
    for place in places:
        if place.is_file() and (found := re.search(r"^CONFIG_NR_CPUS=(\d+)$", place.read_text(errors="replace"), re.MULTILINE)):
            return int(found[1])
    return None


def of_machine(profile: str, settings: tuple[str, ...], harts: int | None) -> int | None:
    """The harts of a machine with this profile (a name or a file), these `key=value`s and the number of --harts. None where they
    make no sense: what is wrong, the machine says better."""
    pairs = [setting.partition("=") for setting in settings]
    said = [value.strip() for key, _, value in pairs if key.strip() == "machine.harts"]
    try:
        return harts or (int(said[-1]) if said else _of_profile(profile))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _of_profile(profile: str) -> int:
    built_in = PROFILES / f"{profile}.toml"
    table = tomllib.loads((built_in if built_in.is_file() else Path(profile)).read_text())
    own = table.get("machine", {}).get("harts")
    return int(own) if own is not None else _of_profile(table["extends"])
