# SPDX-License-Identifier: Apache-2.0
"""Python: a mapping across subprocess, multiprocessing and threads."""

import hashlib
import mmap
import multiprocessing
import os
import subprocess
import threading

PAGE = mmap.PAGESIZE
file = os.open("/data/random.bin", os.O_RDONLY)
data = mmap.mmap(file, 0, prot=mmap.PROT_READ)


def digest(part: int) -> str:
    length = len(data) // 8
    return hashlib.sha256(data[part * length:(part + 1) * length]).hexdigest()[:16]


print("before", digest(0))
for command in (["no-such-command"], ["true"], ["sh", "-c", "exit 5"]):
    try:
        print(command[0], subprocess.run(command).returncode)
    except FileNotFoundError:
        print(command[0], "not found")
print("output", subprocess.run(["stat", "-c", "%s", "/data/random.bin"], capture_output=True, text=True).stdout.split())
print("after", digest(1))
with multiprocessing.get_context("fork").Pool(3) as pool:
    print("fork", pool.map(digest, range(8)))
found = {}
threads = [threading.Thread(target=lambda part=part: found.update({part: digest(part)})) for part in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("threads", [found[part] for part in range(4)])
data.close()
with mmap.mmap(file, 3 * PAGE + 100, prot=mmap.PROT_READ, offset=4 * PAGE) as part:
    print("part", hashlib.sha256(part).hexdigest()[:16])
