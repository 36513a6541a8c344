# SPDX-License-Identifier: Apache-2.0
"""Demand paging without page faults, from Python: run a program in a guest, sweep parameters, measure a paper's figure, load
results as data frames, plot them.

    import trapless

    result = trapless.run("./my-program.c /data/random.bin", kind="hwdp", data="320M")
    print(result.figures["hw_misses"], result.figures["os_faults"])

    frame = trapless.sweep({"fixed": {"command": "./my-program.c /data/random.bin", "data": "320M"},
                            "vary": {"kind": ["osdp", "hwdp"], "ssd.read_us": [3, 10.9, 28.2]}})
    trapless.plot(frame, "ssd.read_us", "nondevice_us", "kind")
    trapless.figure(frame, "ssd.read_us", "nondevice_us", "kind").savefig("figure.pdf")

`./trapless python` starts a Python that has all required packages. To use your own environment, run `./trapless setup`, then `pip
install -e .` in the checkout. Data frames have the units of their columns in `frame.attrs["units"]`; times are simulated unless a
name says `host`. Errors that you can fix raise `trapless.Error` with a one-line message. See docs/reference/python.md.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trapless.api.error import Error
    from trapless.api.faults import faults
    from trapless.api.guests import Result, run, sweep
    from trapless.api.plots import figure, plot
    from trapless.api.results import compare, experiment, load

__all__ = ["Error", "Result", "compare", "experiment", "faults", "figure", "load", "plot", "run", "sweep"]
_ROOMS = {"error": ("Error",), "faults": ("faults",), "guests": ("Result", "run", "sweep"), "plots": ("figure", "plot"),
          "results": ("compare", "experiment", "load")}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `doctor` and `help` must work before the packages for data frames are
    installed."""
    for room, offered in _ROOMS.items():
        if name in offered:
            return getattr(importlib.import_module(f"trapless.api.{room}"), name)
    raise AttributeError(f"module trapless has no attribute {name}")


def __dir__() -> list[str]:
    """List the public names, including those that are not imported yet."""
    return sorted({*globals(), *__all__})


# Debian has mke2fs and debugfs in these folders. They may be missing from a user's PATH.
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
