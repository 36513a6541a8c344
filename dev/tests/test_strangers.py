# SPDX-License-Identifier: Apache-2.0
"""Actions of another user on a file must not keep its mappings from hardware."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest.images import dataset, ext4
from trapless.guest.job import Job, launcher
from trapless.guest.programs import cross

pytestmark = [pytest.mark.guest, pytest.mark.series]

PAGES = 1024
SQUATTED = 8
YIELDED = 128
READ_US = 4000
"""Longest time of a read while an area yields, in us. On `vc707`, emptying 128 MiB takes 14 ms; with OS paging a read takes 2 ms
at most."""
PROGRAM = f"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* Another user maps the file, has an area of it, and does nothing. */
static void squat(int begun)
{{
	volatile char *page;

	if (setuid(1000))
		_exit(1);
	page = mmap(NULL, {PAGES} << 12, PROT_READ, MAP_SHARED, open("/data/random.bin", O_RDONLY), 0);
	for (long n = 0; n < {SQUATTED}; n++)
		(void)page[n << 12];
	if (write(begun, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}}

/* A child reads, or writes, past the page cache without end, or squats; then map the file and read it in another order. */
int main(int argc, char **argv)
{{
	int begun[2], writes = argc > 1 && !strcmp(argv[1], "writes"), squats = argc > 1 && !writes;
	char byte = 0;
	pid_t child;

	if (pipe(begun) || (child = fork()) < 0)
		return 2;
	if (!child && squats)
		squat(begun[1]);
	if (!child) {{
		int file = open("/data/random.bin", O_DIRECT | (writes ? O_RDWR : O_RDONLY));
		void *buffer = aligned_alloc(4096, 65536);

		if (!writes && setuid(1000))
			_exit(1);
		for (long n = 0;; n++) {{
			off_t at = (n % 8) << 16;
			if (pread(file, buffer, 65536, at) != 65536 || (writes && pwrite(file, buffer, 65536, at) != 65536))
				_exit(1);
			if (!n && write(begun[1], &byte, 1) != 1)
				_exit(1);
		}}
	}}
	if (read(begun[0], &byte, 1) != 1)
		return 2;
	if (squats)
		usleep(1100000);
	volatile char *page = mmap(NULL, {PAGES} << 12, PROT_READ, MAP_SHARED, open("/data/random.bin", O_RDONLY), 0);
	long sum = 0;
	for (long n = 0; n < {PAGES}; n++)
		sum += page[(n * 397 % {PAGES}) << 12];
	printf("%ld\\n", sum);
	munmap((void *)page, {PAGES} << 12);
	kill(child, SIGKILL);
	return 0;
}}
"""


@pytest.mark.parametrize("arguments", [(), ("writes",)], ids=["reads", "writes"])
def test_direct_access_beside_a_mapping(paged: Callable[..., guests.Outcome], arguments: tuple[str, ...]) -> None:
    """Direct reads change nothing. During a direct write, Linux serves the file."""
    outcome = paged("hwdp", *arguments)
    assert outcome.console == paged(None, *arguments).console
    hardware = sum(region["hw_miss"]["count"] for region in outcome.stats["rois"])
    assert hardware == PAGES if not arguments else 0 < hardware < PAGES


def test_who_came_first_keeps_nobody_from_hardware(paged: Callable[..., guests.Outcome]) -> None:
    """A file has one area. After one second, it passes to another mapping that misses."""
    outcome = paged("hwdp", "squats", before="echo miss >/sys/kernel/mm/hwdp/populate")
    assert outcome.console == paged(None, "squats").console
    assert outcome.counters["areas_withdrawn_yielded"] == 1
    assert outcome.counters["smu_installed"] >= PAGES - 2 * SQUATTED


def test_who_reads_does_not_wait_for_a_whole_area_to_yield(program: Path, patched: Path, root: Path) -> None:
    """read() of a file whose area yields (128 MiB with all tables armed) waits for one page table at a time."""
    binary = cross.compile_program("readers", [Path(__file__).with_name("readers.c")])
    guest = guests.Guest(patched, root, dataset.image(YIELDED * ext4.MIB), profile="vc707", harts=4, max_seconds=300,
                         populate=None)
    job = Job(f"{' '.join(launcher('hwdp'))} ./{binary.name} /data/random.bin {YIELDED}", (binary,))
    outcome = guests.run_on_machine(program, guest, job)
    assert outcome.status == 0, outcome.console
    assert outcome.counters["areas_withdrawn_yielded"] >= 1
    assert float(outcome.console.split("longest=")[1].split()[0]) < READ_US
