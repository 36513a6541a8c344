// SPDX-License-Identifier: GPL-2.0
/*
 * Smallest init for the guest tests: an initramfs with this as /init and
 * hwdp-check as /hwdp-check. Mounts the first NVMe disk (ext4, writable), runs
 * the check with the arguments of the kernel command line's check="...", prints
 * the statistics and powers off.
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
	char *argv[16] = { "/hwdp-check" }, *args = getenv("check");
	int argc = 1, status = 0, tries;
	pid_t pid;

	/* milestone 1 of the platform: the guest's first command runs */
	register long a0 __asm__("a0") = 1;
	__asm__ volatile("slti x0, x0, 0x7a5" : : "r"(a0));

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mkdir("/mnt", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	for (tries = 0; tries < 100; tries++) {
		if (!mount("/dev/nvme0n1", "/mnt", "ext4", 0, NULL))
			break;
		usleep(20000);
	}
	if (tries == 100)
		perror("mount /dev/nvme0n1");

	for (args = args ? strtok(args, ",") : NULL; args && argc < 14;
	     args = strtok(NULL, ","))
		argv[argc++] = args;
	argv[argc++] = "/mnt";
	/* names of tests follow the folder */
	args = getenv("only");
	for (args = args ? strtok(args, ",") : NULL; args && argc < 15;
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
	umount("/mnt");
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
