#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replaces `trapless-pagesim run`. It makes up figures from the configuration, and notes each start in $FAKE_LOG.

The policy `fail` fails; `hang` never ends while the file $FAKE_LOG.hang exists.
"""

import json
import os
import sys
import time
import tomllib
from pathlib import Path

TYPES = {"name": str, "trace": str, "intense": bool, "scattered": int}
config_file = Path(sys.argv[2])
config = tomllib.loads(config_file.read_text())
policy, log = config["policy"], Path(os.environ["FAKE_LOG"])
with open(log, "a") as file:
    file.write(f"{policy}\n")
if policy == "fail":
    sys.exit(f"trapless-pagesim: {config_file}: memory.frames: 1 is not from 4 to 1000000000")
print("500.0 k of 1.0 M accesses, 1 s left", file=sys.stderr, flush=True)
while policy == "hang" and log.with_suffix(".hang").exists():
    time.sleep(0.05)
for process in config["process"]:
    for key, value in process.items():
        if type(value) is not TYPES[key]:
            sys.exit(f"trapless-pagesim: {config_file}: {key}: invalid type: {value!r}, expected {TYPES[key].__name__}")
    Path(process["trace"]).read_bytes()

gain = {"sync": 0, "async": -30, "virt": 6, "agg": 3, "aspf": 9, "aspf-star": 12, "foresight": 15}.get(policy, 1)
names = [process["name"] for process in config["process"]]
faults = 100 * (100 - gain) * len(names)
counts = {"issued": 200, "useful": 120, "useless": 60}
ONE = {"count": 9, "mean_ns": 3500.5, "p50_ns": 3000, "p90_ns": 4000, "p99_ns": 5000, "p999_ns": 6000, "max_ns": 7000}
LATENCY = {"until_page": ONE, "until_run": dict.fromkeys(ONE, None) | {"count": 0}}
Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps({
    "time_ns": 10_000_000 * (100 - gain), "waited_ns": 4_000_000 * (100 - gain), "accesses": 1000,
    "faults": faults, "context_switches": 10 * (100 - gain),
    "device_reads": 2 * faults, "device_writes": faults, "pages_moved": 3 * faults, "jain": 0.9995,
    "latency": LATENCY, "bookkeeping": {"bytes": 4096, "operations": 7},
    "prefetch": dict.fromkeys(("neighbour", "set", "successor", "reconstruct"), counts),
    "processes": [{
        "name": name, "faults": 10, "fault_parts": [6, 3, 1], "finished_ns": 5, "cpu_ns": 4,
        "waited_ns": 1_000_000 * (100 - gain), "latency": LATENCY,
        "cpu_share": {"0.05": 1 / len(names), "0.1": 1 / len(names)},
        "timeline": {"window_ns": 33_000_000, "counts": [3, 2, 1]},
    } for name in names],
}))
