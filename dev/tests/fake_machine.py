#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replaces `trapless-machine run` and `resume`. It runs no guest, but ends as the job's command says. It notes each start in
$FAKE_LOG: the command, the number of the process that started the fake machine, and the number of the fake machine's own process.

The command is `fake NAME [N]`: `ok`; `exit` with status N; `stop` with N as the machine's own status; `wait` while the file
$FAKE_LOG.wait exists; `die` as if killed by the host while the file $FAKE_LOG.die exists. The figure `n` of the run is N. A boot
waits while the file $FAKE_LOG.boot exists.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def values(option: str) -> list[str]:
    return [sys.argv[at + 1] for at, word in enumerate(sys.argv) if word == option]


def debugfs(request: str, *options: str) -> str:
    job = values("--disk")[1].partition(",")[0]
    return subprocess.run(["debugfs", *options, "-R", request, job], capture_output=True, text=True, check=True).stdout


def put(name: str, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        debugfs(f"rm {name}", "-w")
        debugfs(f"write {file.name} {name}", "-w")


log = Path(os.environ["FAKE_LOG"])
for place in values("--checkpoint"):
    with open(log, "a") as file:
        file.write(f"boot {os.getppid()} {os.getpid()}\n")
    while log.with_suffix(".boot").exists():
        time.sleep(0.02)
    Path(place).mkdir()
    sys.exit(0)
assert sys.argv[1] == "run" or sys.argv[1] == "resume" and Path(sys.argv[2]).is_dir()
words = debugfs("cat /cmd").split()[2:]
with open(log, "a") as file:
    file.write(f"{'_'.join(words)} {os.getppid()} {os.getpid()}\n")
assert words[0] == "fake"
while words[1] == "wait" and log.with_suffix(".wait").exists():
    time.sleep(0.02)
if words[1] == "die" and log.with_suffix(".die").exists():
    os.kill(os.getpid(), signal.SIGKILL)
number = int(words[2]) if len(words) > 2 else 0
put("/out/figures.json", json.dumps({"n": number}))
put("/status", f"{number if words[1] == 'exit' else 0}\n")
Path(values("--json")[0]).write_text(json.dumps({"sim_seconds": 1.0, "instructions": 5}))
print("last words")
sys.exit(number if words[1] == "stop" else 0)
