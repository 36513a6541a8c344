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

`./trapless python` has all that this needs; `pip install -e .` in the checkout brings it into an environment of your own, after
`./trapless setup`. Data frames have the units of their columns in `frame.attrs["units"]`; times are simulated unless a name says
`host`. Whatever you can mend raises `trapless.Error` with one line. docs/python.md tells more.
"""

from __future__ import annotations

import os

from trapless._error import Error
from trapless._guests import Result, run, sweep
from trapless._plots import figure, plot
from trapless._results import compare, experiment, load

__all__ = ["Error", "Result", "compare", "experiment", "figure", "load", "plot", "run", "sweep"]

# Where Debian has what makes and reads disks; a user's path need not have it.
os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
