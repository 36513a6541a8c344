// SPDX-License-Identifier: GPL-2.0
/*
 * A small init for the guest tests: /init of an initramfs that has the tests' programs
 * beside it. It mounts the first partition of the first NVMe disk, or the whole disk if
 * it has no partitions (ext4, writable). For hwdp-check it mounts the second partition,
 * too, as the small file system of -s. For the attack it mounts the third one, and the
 * attack works there. It runs the program that run= on the kernel's command line names
 * (default /hwdp-check). The program's arguments are those of check=, the folder, and
 * those of only=; commas separate the arguments. At the end, init prints the statistics
 * and powers off.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tools/marker.h"

static void cat(const char *path)
{
	char buf[4096];
	ssize_t n;
	int fd = open(path, O_RDONLY);

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		if (write(1, buf, n) < 0)
			break;
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	char *program = getenv("run"), *args = getenv("check");
	char *argv[64] = { program ? program : "/hwdp-check" };
	const char *disk = "/dev/nvme0n1";
	char *folder = "/mnt";
	int argc = 1, status = 0, tries;
	pid_t pid;

	/* milestone 1 of the platform: the guest's first command runs */
	marker(MARKER_MILESTONE, 1, 0, 0);

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mkdir("/mnt", 0755);
	mkdir("/small", 0755);
	mkdir("/tiny", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	for (tries = 0; tries < 100; tries++) {
		if (!access("/dev/nvme0n1", F_OK))
			break;
		usleep(20000);
	}
	if (!access("/dev/nvme0n1p1", F_OK))
		disk = "/dev/nvme0n1p1";
	if (mount(disk, "/mnt", "ext4", 0, NULL))
		perror(disk);

	for (args = args ? strtok(args, ",") : NULL; args && argc < 16;
	     args = strtok(NULL, ","))
		argv[argc++] = args;
	if (!strcmp(argv[0], "/attack")) {
		if (!mount("/dev/nvme0n1p3", "/tiny", "ext4", 0, NULL))
			folder = "/tiny";
	} else if (!strcmp(argv[0], "/hwdp-check") && !mount("/dev/nvme0n1p2", "/small", "ext4", 0, NULL)) {
		argv[argc++] = "-s";
		argv[argc++] = "/small";
	}
	argv[argc++] = folder;
	/* names of tests follow the folder */
	args = getenv("only");
	for (args = args ? strtok(args, ",") : NULL; args && argc < 63;
	     args = strtok(NULL, ","))
		argv[argc++] = args;
	pid = fork();
	if (!pid) {
		execv(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	printf("status %d\n", status);
	fflush(stdout);
	cat("/sys/kernel/mm/hwdp/stats");
	umount("/small");
	umount("/tiny");
	umount("/mnt");
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
