# SPDX-License-Identifier: Apache-2.0
"""Hardware reads several namespaces of a drive, even if another user mapped a file on one of them first. REQ: OS-14"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from trapless.guest import boot as guests
from trapless.guest.images import dataset, ext4
from trapless.guest.programs import cross

pytestmark = [pytest.mark.guest, pytest.mark.series]

PAGES = 256
PAIRS = 4
"""Maximum number of a controller's namespaces that the unit reads."""
PROGRAM = f"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define MAP_HWDP 0x200000

static long stat_of(const char *name)
{{
	FILE *stats = fopen("/sys/kernel/mm/hwdp/stats", "r");
	char line[64];
	long n, found = -1;

	while (stats && fscanf(stats, "%63s %ld", line, &n) == 2)
		if (!strcmp(line, name))
			found = n;
	fclose(stats);
	return found;
}}

static char *map(const char *file)
{{
	char *map = mmap(NULL, {PAGES} << 12, PROT_READ, MAP_SHARED | MAP_HWDP, open(file, O_RDONLY), 0);

	if (map == MAP_FAILED)
		perror(file);
	return map;
}}

/* STRANGER|- {{NUMBER FILE}}...: another user maps a file and keeps it; then map others and write what they hold to /job/out. */
int main(int argc, char **argv)
{{
	static char copy[{PAGES} << 12];
	pid_t child = 0;

	if (strcmp(argv[1], "-")) {{
		int begun[2];
		char byte;

		if (pipe(begun) || (child = fork()) < 0)
			return 2;
		if (!child) {{
			volatile char *page;

			if (setuid(1000))
				_exit(1);
			page = map(argv[1]);
			byte = page[{PAGES // 2} << 12];
			if (write(begun[1], &byte, 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}}
		if (read(begun[0], &byte, 1) != 1)
			return 2;
	}}
	for (int i = 2; i + 1 < argc; i += 2) {{
		long installed = stat_of("smu_installed"), refused = stat_of("refused_device");
		char *from = map(argv[i + 1]), out[64];
		FILE *file;

		for (long n = 0, page; n < {PAGES}; n++) {{
			page = n * 101 % {PAGES};
			memcpy(copy + (page << 12), from + (page << 12), 4096);
		}}
		munmap(from, {PAGES} << 12);
		printf("%s %ld %ld\\n", argv[i], stat_of("smu_installed") - installed, stat_of("refused_device") - refused);
		snprintf(out, sizeof(out), "/job/out/%s", argv[i]);
		file = fopen(out, "w");
		if (!file || fwrite(copy, 1, sizeof(copy), file) != sizeof(copy) || fclose(file))
			return 3;
	}}
	if (child) {{
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}}
	return 0;
}}
"""
# When all namespaces are mounted, the file of namespace N of the data drive is /job/N/random.bin. $drive and $controller belong
# to the data drive.
FUNCTIONS = """
disk=$(grep ' /data ' /proc/mounts | cut -d' ' -f1); disk=${disk#/dev/}
drive=$(readlink -f /sys/block/$disk/device/device)
controller=$(readlink -f /sys/block/$disk/device)
umount /data
mount_all() {
    for at in $drive/nvme/*/nvme*n*; do
        number=$(cat $at/nsid)
        mkdir -p /job/$number && mount -t ext4 -o ro /dev/${at##*/} /job/$number || exit 3
        echo 0 > $at/queue/read_ahead_kb
    done
}
"""


@pytest.fixture(scope="module")
def program_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("namespaces") / "namespaces.c"
    source.write_text(PROGRAM)
    return cross.compile_program("namespaces", [source])


def namespace(folder: Path, number: int) -> tuple[Path, bytes]:
    """Return an ext4 image with a file random.bin that differs from all other namespaces' files, and the file's content."""
    tree = folder / f"tree{number}"
    tree.mkdir()
    dataset.write_random(tree / "random.bin", PAGES * ext4.BLOCK, seed=number)
    content = (tree / "random.bin").read_bytes()
    image = folder / f"namespace{number}.img"
    label = "trapless-data" if number == 1 else f"namespace{number}"
    ext4.make(ext4.Volume(label, 16 * ext4.MIB, ext4.LEAN), tree, image)
    return image, content


def drive(made: dict[int, tuple[Path, bytes]]) -> dict[str, object]:
    """Return options for a data drive with these namespaces."""
    first, *others = (image for image, _ in made.values())
    return {"data": first, "data_options": ",".join(["block=4096", *(f"namespace={image},snapshot" for image in others)])}


def asked(numbers: Iterable[int]) -> str:
    """Return the arguments for PROGRAM."""
    return " ".join(f"{number} /job/{number}/random.bin" for number in numbers)


def told(number: int) -> str:
    """Return PROGRAM's output: pages that hardware read, and mappings that were refused."""
    return f"{number} {PAGES} 0" if number <= PAIRS else f"{number} 0 1"


@pytest.mark.parametrize("count", [2, 6])
def test_each_namespace_has_its_own_pair(boot: Callable[..., guests.Outcome], patched: Path, program_file: Path, tmp_path: Path,
                                         count: int) -> None:
    """Another user maps a file on namespace 1 first. Mappings of other namespaces are served as long as there are queue pairs,
    and each shows its own bytes. After a reset of the controller, the same namespaces are served, in whatever order they
    ask."""
    made = {number: namespace(tmp_path, number) for number in range(1, count + 1)}
    others, reverse = range(2, count + 1), range(count, 0, -1)
    script = [FUNCTIONS, "mount_all", f"./namespaces /job/1/random.bin {asked(others)} || exit 4",
              "mkdir /job/out/before; mv /job/out/[0-9]* /job/out/before; echo 3 > /proc/sys/vm/drop_caches",
              "echo 1 > $controller/reset_controller", f"./namespaces - {asked(reverse)} || exit 5"]
    outcome = boot(patched, "\n".join(script), inputs=(program_file,), **drive(made))
    assert outcome.status == 0, outcome.console
    assert outcome.console.splitlines()[1 - 2 * count:] == [told(number) for number in (*others, *reverse)]
    out = tmp_path / "out"
    for number, (_, content) in made.items():
        assert (out / str(number)).read_bytes() == content, number
        assert number == 1 or (out / "before" / str(number)).read_bytes() == content, number


def test_a_drive_that_comes_back(boot: Callable[..., guests.Outcome], patched: Path, program_file: Path, tmp_path: Path) -> None:
    """Descriptors of a removed drive are free for the next one: this test uses 16, and the unit has 8."""
    made = {number: namespace(tmp_path, number) for number in range(1, PAIRS + 1)}
    again = f"""
for turn in 1 2 3 4; do
    mount_all
    ./namespaces - {asked(made)} || exit 4
    {"; ".join(f"umount /job/{number}" for number in made)}
    echo 1 > $drive/remove
    echo 1 > /sys/bus/pci/rescan
    until [ $(ls -d $drive/nvme/*/nvme*n* 2>/dev/null | wc -l) = {PAIRS} ]; do sleep 0.01; done
done
"""
    outcome = boot(patched, FUNCTIONS + again, inputs=(program_file,), **drive(made))
    assert outcome.status == 0, outcome.console
    assert outcome.console.splitlines()[-4 * PAIRS:] == [told(number) for number in made] * 4
    for number, (_, content) in made.items():
        assert (tmp_path / "out" / str(number)).read_bytes() == content, number
