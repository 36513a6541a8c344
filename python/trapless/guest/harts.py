# SPDX-License-Identifier: Apache-2.0
"""Refuses more harts than the kernel supports. Linux would silently leave them out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from trapless.base.paths import MACHINE
from trapless.base.ui import UserError

PROFILES = MACHINE / "profiles"


def check(kernel: Path, harts: int | None) -> None:
    """Raise UserError if the kernel supports fewer harts than `harts`. None (unknown) is not checked."""
    most = kernels_most(kernel)
    if harts is not None and most is not None and harts > most:
        raise UserError(f"{harts} harts: the kernel supports at most {most} (CONFIG_NR_CPUS): use --harts {most} or less, or "
                        "another --kernel")


def kernels_most(kernel: Path) -> int | None:
    """Return the kernel's CONFIG_NR_CPUS from its configuration, where linux/build (config) or a kernel tree (.config) leaves it;
    None if there is no such file."""
    places = [kernel.parent / "config"]
    if kernel.parent.name == "boot" and kernel.parent.parent.parent.name == "arch":
        places.append(kernel.parents[3] / ".config")
    for place in places:
        if place.is_file() and (found := re.search(r"^CONFIG_NR_CPUS=(\d+)$", place.read_text(errors="replace"), re.MULTILINE)):
            return int(found[1])
    return None


def of_machine(profile: str, settings: tuple[str, ...], harts: int | None) -> int | None:
    """Return the number of harts of a machine with this profile (a name or a file), these `key=value` settings and the number of
    --harts. None if they are invalid: the machine reports that better."""
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
