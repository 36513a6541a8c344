// SPDX-License-Identifier: GPL-2.0
/*
 * trapless-init: the guest's first and only system process.
 *
 * Mounts the job disk (ext4, label trapless-job) at /job and the data disk (trapless-data) at
 * /data, runs /job/cmd in /job/in with the console as its output, writes its exit status to
 * /job/status, and powers off. The kernel's counters from before and after the command go to
 * /job/before and /job/after, as lines "name value". The data disk's readahead at the end goes to
 * /job/readahead.
 *
 * Two words on the kernel's command line change this. trapless.shell gives a shell on the console
 * instead of the job. trapless.readahead=KB sets the readahead of both disks; without it, Linux
 * chooses.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "marker.h"

/*
 * BOOTED is before the first look at a disk: a checkpoint from here can continue with other disks
 * of the same sizes.
 */
#define MILESTONE_BOOTED 0
#define MILESTONE_COMMAND 1

#define LABEL_OFFSET (1024 + 120)	/* s_volume_name in the ext4 superblock */

static void complain(const char *what, const char *name)
{
	fprintf(stderr, "trapless-init: %s %s: %s\n", what, name, strerror(errno));
}

static bool mounted(const char *source, const char *target, const char *type, unsigned long flags, const char *options)
{
	if (!mount(source, target, type, flags, options) || errno == EBUSY)
		return true;
	complain("cannot mount", target);
	return false;
}

/* Write a small text to a file of /sys, /proc or a disk. */
static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Write over the beginning of a file. This needs no free space if the file exists. */
static bool overwrite(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !fsync(fd);

	if (fd >= 0)
		close(fd);
	return done;
}

/*
 * Find the NVMe disk with this ext4 label, since Linux may find the controllers in any order. When
 * the kernel looked for partitions, it filled buffers. After a checkpoint (MILESTONE_BOOTED), they
 * may have the content of another disk, so drop them.
 */
static bool find_disk(const char *label, char *name, size_t size)
{
	DIR *block = opendir("/sys/block");
	struct dirent *entry;
	bool found = false;

	while (block && !found && (entry = readdir(block))) {
		char path[280], text[17] = "";
		if (strncmp(entry->d_name, "nvme", 4))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		ioctl(fd, BLKFLSBUF, 0);
		found = pread(fd, text, 16, LABEL_OFFSET) == 16 && !strcmp(text, label);
		close(fd);
		if (found)
			snprintf(name, size, "%s", entry->d_name);
	}
	if (block)
		closedir(block);
	return found;
}

/* Is `name` on the kernel's command line, alone or as `name=VALUE`? Its value, which may be empty, goes to `value`. */
static bool asked_for(const char *name, char *value, size_t size)
{
	char line[4096];
	size_t length = strlen(name);
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (fd >= 0)
		close(fd);
	if (got < 0)
		return false;
	line[got] = 0;
	for (char *part = strtok(line, " \n"); part; part = strtok(NULL, " \n")) {
		if (strncmp(part, name, length) || (part[length] && part[length] != '='))
			continue;
		snprintf(value, size, "%s", part[length] ? part + length + 1 : "");
		return true;
	}
	return false;
}

/* The file that says how far Linux reads ahead on a disk. */
static void readahead_path(char *path, size_t size, const char *disk)
{
	snprintf(path, size, "/sys/block/%s/queue/read_ahead_kb", disk);
}

/* Mount the disk with this ext4 label; `name` becomes its name, or empty. */
static bool mount_disk(const char *label, const char *target, char *name, size_t size)
{
	char path[320], kilobytes[16];

	if (!find_disk(label, name, size)) {
		name[0] = 0;
		return false;
	}
	readahead_path(path, sizeof(path), name);
	if (asked_for("trapless.readahead", kilobytes, sizeof(kilobytes)) && !put(path, kilobytes))
		complain("cannot write", path);
	snprintf(path, sizeof(path), "/dev/%s", name);
	return mounted(path, target, "ext4", MS_NOATIME, "noinit_itable");
}

/* Write the data disk's readahead, as the kernel reports it, to the job disk. */
static void note_readahead(const char *disk)
{
	char text[32], readahead[320];

	readahead_path(readahead, sizeof(readahead), disk);
	int fd = open(readahead, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	/* The command may have put something over /sys. */
	if (got < 0)
		got = snprintf(text, sizeof(text), "-1\n");
	text[got] = 0;
	if (!overwrite("/job/readahead", text))
		complain("cannot write", "/job/readahead");
}

/*
 * The kernel's counters, kept in memory: what is written to the job disk before the command would
 * be flushed while it runs.
 */
struct counters {
	size_t length;
	char text[32768];
};

static void add_file(struct counters *counters, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;

	while (fd >= 0 && got > 0 && counters->length < sizeof(counters->text) - 1) {
		got = read(fd, counters->text + counters->length, sizeof(counters->text) - 1 - counters->length);
		counters->length += got > 0 ? got : 0;
	}
	if (fd >= 0)
		close(fd);
	counters->text[counters->length] = 0;
}

/*
 * Add the number of a disk's completed reads (Documentation/block/stat.rst), and of their sectors
 * of 512 bytes.
 */
static void add_disk(struct counters *counters, const char *disk)
{
	struct counters stat = { 0 };
	char path[300];
	unsigned long reads, merged, sectors;

	snprintf(path, sizeof(path), "/sys/block/%s/stat", disk);
	add_file(&stat, path);
	if (sscanf(stat.text, "%lu %lu %lu", &reads, &merged, &sectors) == 3)
		counters->length += snprintf(counters->text + counters->length, sizeof(counters->text) - counters->length,
					     "data_reads %lu\ndata_sectors_read %lu\n", reads, sectors);
}

static void count(struct counters *counters, const char *disk)
{
	counters->length = 0;
	if (*disk)
		add_disk(counters, disk);
	add_file(counters, "/sys/kernel/mm/hwdp/stats");
	add_file(counters, "/proc/vmstat");
}

/*
 * Init, not the command, leads the session that the console belongs to: when a session's leader
 * exits, Linux hangs up its terminal, and the bytes that the serial port has not sent yet are lost.
 * /dev/console cannot be a controlling terminal, so Ctrl-C would not work; the device behind it
 * can. Returns the file descriptor of that device, or -1.
 */
static int take_terminal(void)
{
	char active[64] = "", path[80];
	int fd = open("/sys/class/tty/console/active", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, active, sizeof(active) - 1) > 0)
			active[strcspn(active, " \n")] = 0;
		close(fd);
	}
	snprintf(path, sizeof(path), "/dev/%s", active);
	setsid();
	/* Init changes the terminal while the command is in its foreground. */
	signal(SIGTTOU, SIG_IGN);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		ioctl(fd, TIOCSCTTY, 1);
	return fd;
}

/* Make the calling child the terminal's foreground job. */
static void enter_foreground(int terminal)
{
	setpgid(0, 0);
	if (terminal >= 0) {
		tcsetpgrp(terminal, getpid());
		for (int standard = 0; standard < 3; standard++)
			dup2(terminal, standard);
	}
	signal(SIGTTOU, SIG_DFL);
}

static int run(const char *directory, char *const argv[])
{
	int status, terminal = take_terminal();
	pid_t child = fork();

	if (child < 0) {
		complain("cannot start", argv[0]);
		return 126;
	}
	if (!child) {
		enter_foreground(terminal);
		if (chdir(directory))
			complain("cannot enter", directory);
		marker(MARKER_MILESTONE, MILESTONE_COMMAND);
		execv(argv[0], argv);
		complain("cannot run", argv[0]);
		_exit(127);
	}
	for (;;) {
		pid_t ended = wait(&status);
		if (ended == child)
			break;
		if (ended < 0 && errno != EINTR)
			return 126;
	}
	if (terminal >= 0)
		close(terminal);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/*
 * The approximate number of bytes that the console has still to send. QEMU's hvc0 is no serial
 * port, and sends at once.
 */
static int unsent(void)
{
	int queued = 0, port = TIOCSER_TEMT;

	if (ioctl(1, TIOCOUTQ, &queued))
		queued = 0;
	if (ioctl(1, TIOCSERGETLSR, &port))
		port = TIOCSER_TEMT;
	return queued + !(port & TIOCSER_TEMT);
}

/* Wait until the console has sent all, or has sent nothing for three seconds. */
static void drain_console(void)
{
	int left = unsent();

	for (int idle = 0; left && idle < 3000; idle++) {
		/*
		 * The console may have been stopped (Ctrl-S, TCOOFF), and QEMU's serial port can
		 * lose an interrupt.
		 */
		if (idle % 250 == 0) {
			tcflow(1, TCOOFF);
			tcflow(1, TCOON);
		}
		usleep(1000);
		int now = unsent();
		if (now != left)
			idle = 0;
		left = now;
	}
}

static _Noreturn void finish(int command)
{
	/* Once before processes die, since one of them may lead a session that the console belongs to, and once after. */
	drain_console();
	kill(-1, SIGTERM);
	kill(-1, SIGKILL);
	while (wait(NULL) > 0)
		;
	drain_console();
	sync();
	umount("/data");
	if (umount("/job") && errno != EINVAL && errno != ENOENT)
		mount(NULL, "/job", NULL, MS_REMOUNT | MS_RDONLY, NULL);
	reboot(command);
	_exit(0);
}

int main(void)
{
	if (fcntl(0, F_GETFD) < 0) {
		mount("dev", "/dev", "devtmpfs", 0, NULL);
		if (open("/dev/console", O_RDWR) == 0) {
			dup(0);
			dup(0);
		}
	}
	mounted("proc", "/proc", "proc", 0, NULL);
	mounted("sys", "/sys", "sysfs", 0, NULL);
	mounted("dev", "/dev", "devtmpfs", 0, NULL);
	mounted("tmp", "/tmp", "tmpfs", 0, NULL);
	mounted("run", "/run", "tmpfs", 0, NULL);
	mkdir("/dev/shm", 01777);
	mounted("shm", "/dev/shm", "tmpfs", 0, NULL);
	put("/proc/sys/kernel/printk", "4 4 1 7");
	setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", 1);
	setenv("HOME", "/tmp", 1);
	setenv("TERM", "linux", 0);

	static char job_disk[256], data_disk[256];
	static struct counters before, after;
	char value[16];
	bool shell = asked_for("trapless.shell", value, sizeof(value));
	marker(MARKER_MILESTONE, MILESTONE_BOOTED);
	bool job = mount_disk("trapless-job", "/job", job_disk, sizeof(job_disk));
	bool data = mount_disk("trapless-data", "/data", data_disk, sizeof(data_disk));
	if (shell) {
		char *const argv[] = { "/bin/sh", "-l", NULL };
		run(job ? "/job/in" : "/tmp", argv);
		finish(RB_POWER_OFF);
	}
	if (!job) {
		fputs("trapless-init: no job disk\n", stderr);
		finish(RB_AUTOBOOT);
	}
	char *const argv[] = { "/job/cmd", NULL };
	char text[16];
	count(&before, data_disk);
	snprintf(text, sizeof(text), "%-6d\n", run("/job/in", argv));
	/* The region of interest ends now if the command has not unmapped its mappings. */
	marker(MARKER_ROI_END, ROI_ANY);
	count(&after, data_disk);
	if (data)
		note_readahead(data_disk);
	/* Overwrite the file in place: the command may have filled the disk. */
	if (!overwrite("/job/status", text)) {
		complain("cannot write", "/job/status");
		finish(RB_AUTOBOOT);
	}
	if (!put("/job/before", before.text) || !put("/job/after", after.text))
		complain("cannot write", "/job/after");
	finish(RB_POWER_OFF);
}
