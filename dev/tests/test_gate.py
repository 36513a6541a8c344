# SPDX-License-Identifier: Apache-2.0
"""The costs of the gate: only files that hardware serves have them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest.images import dataset, ext4
from trapless.guest.job import Job, launcher
from trapless.profile import profiling

pytestmark = [pytest.mark.guest, pytest.mark.series]

PAGES = 256
PROGRAM = f"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
/* Map one file, so that there is an area; read another. */
int main(int argc, char **argv)
{{
	static char buffer[65536];
	int mapped = open("/data/random.bin", O_RDONLY), other = open(argv[1], O_RDONLY);
	long sum = 0, got;
	volatile char *page = mmap(NULL, {PAGES} << 12, PROT_READ, MAP_SHARED, mapped, 0);

	if (argc != 2 || page == MAP_FAILED || other < 0)
		return 2;
	while ((got = read(other, buffer, sizeof(buffer))) > 0)
		sum += got;
	printf("%ld\\n", sum);
	munmap((void *)page, {PAGES} << 12);
	return got < 0;
}}
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reader")
    (folder / "reader.c").write_text(PROGRAM)
    subprocess.run(["riscv64-linux-gnu-gcc", "-O1", "-o", folder / "reader", folder / "reader.c"], check=True)
    return folder / "reader"


@pytest.mark.parametrize(("file", "gated"), [("/data/other.bin", 0), ("/data/random.bin", PAGES)])
def test_only_files_with_an_area_pass_the_gate(program: Path, patched: Path, root: Path, reader: Path, tmp_path: Path,
                                               file: str, gated: int) -> None:
    """Insertions into the page cache for all other files are Linux's own: without a lock, and without GFP_NOFS."""
    wanted = profiling.Attribute(tmp_path / "profile", "roi", (str(profiling.symbols_of(patched)),))
    guest = guests.Guest(patched, root, dataset.image(PAGES * ext4.BLOCK), max_seconds=300, options=tuple(wanted.options()))
    script = "\n".join(["cp /data/random.bin /data/other.bin", "sync", "echo 3 >/proc/sys/vm/drop_caches",
                        " ".join([*launcher("hwdp"), "./reader", file])])
    outcome = guests.run_on_machine(program, guest, Job(script, (reader,)))
    assert (outcome.console, outcome.status) == (f"{PAGES * ext4.BLOCK}\n", 0)
    record = json.loads((tmp_path / "profile" / "profile.json").read_text())
    calls = {function["name"]: function["calls"] for function in record["functions"]}
    assert calls["filemap_insert_folio"] >= PAGES
    assert calls.get("filemap_add_gated", 0) == gated
