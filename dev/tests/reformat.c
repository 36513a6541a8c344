// SPDX-License-Identifier: Apache-2.0
// reformat FILE DISK: half of FILE is read by a mapping, then the disk gets blocks of 4096 bytes, then the other half is read.
// Prints the number of requests to a unit before and after that.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 1024
#define FORMAT_NVM 0x80
#define BLOCKS_OF_4096 4	// QEMU's formats without metadata: 0 and 4

static void die(const char *what)
{
	perror(what);
	exit(2);
}

// Miss armed pages, whether or not the drive executed the format.
static long asked(void)
{
	char key[64];
	long value, sum = 0;
	FILE *file = fopen("/sys/kernel/mm/hwdp/stats", "r");

	if (!file)
		die("stats");
	while (fscanf(file, "%63s %ld", key, &value) == 2)
		if (!strcmp(key, "smu_installed") || !strcmp(key, "armed_faults_served_by_os"))
			sum += value;
	fclose(file);
	return sum;
}

static long reads(const volatile char *p)
{
	long before = asked();

	for (int i = 0; i < PAGES; i++)
		(void)p[i * PAGE];
	return asked() - before;
}

int main(int argc, char **argv)
{
	struct nvme_admin_cmd format = { .opcode = FORMAT_NVM, .nsid = 1, .cdw10 = BLOCKS_OF_4096, .timeout_ms = 60000 };
	const volatile char *p;
	int file, disk, size = 0;

	if (argc != 3)
		return 2;
	file = open(argv[1], O_RDONLY);
	disk = open(argv[2], O_RDONLY);
	p = mmap(NULL, 2 * PAGES * PAGE, PROT_READ, MAP_SHARED, file, 0);
	if (disk < 0 || p == MAP_FAILED)
		die(argv[1]);
	printf("before %ld\n", reads(p));
	if (ioctl(disk, NVME_IOCTL_ADMIN_CMD, &format))
		die("format");
	for (int i = 0; i < 100 && size != PAGE; i++, usleep(100000))
		if (ioctl(disk, BLKSSZGET, &size))
			die("BLKSSZGET");
	printf("block %d\nafter %ld\n", size, reads(p + PAGES * PAGE));
	return 0;
}
