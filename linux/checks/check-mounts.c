// SPDX-License-Identifier: GPL-2.0
/*
 * Files below other mount points. A unit serves files under a bind mount or overlayfs.
 * It does not serve those of a file system on a loop device; a counter shows this.
 */
#include "check.h"
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#ifndef PR_SET_HWDP
#define PR_SET_HWDP 0x48574450
#endif

#define PAGES 256ul

/* Map the file with @flags and read it. Return how many pages the unit has read, or -1. */
static long served(const char *file, uint64_t seed, int flags)
{
	long fast = fast_pages();
	int fd;
	char *map;
	bool ok;

	drop_caches();
	fd = open(file, O_RDONLY);
	if (fd < 0) {
		snprintf(why, WHY_MAX, "open %s: %s", file, strerror(errno));
		return -1;
	}
	map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED | flags, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		snprintf(why, WHY_MAX, "mmap %s: %s", file, strerror(errno));
		return -1;
	}
	ok = read_all(map, seed, 0, PAGES);
	munmap(map, PAGES * PAGE);
	return ok ? fast_pages() - fast : -1;
}

/* With the flag and with prctl(), the unit serves over half of the pages. All bytes are right. */
static bool is_served(const char *file, uint64_t seed)
{
	char kind[80] = "";
	long n;
	FILE *f;

	n = served(file, seed, MAP_HWDP);
	if (n < 0)
		return false;
	CHECK(!have_smu() || n > (long)PAGES / 2, "%s: the unit served only %ld pages", file, n);
	if (!have_smu())
		return true;
	/* the number of the kind that is in brackets */
	f = fopen("/sys/kernel/mm/hwdp/kind", "r");
	CHECK(f && fgets(kind, sizeof(kind), f), "kind");
	fclose(f);
	CHECK(!prctl(PR_SET_HWDP, strstr(kind, "[emulated]") ? 2ul : strstr(kind, "[trap]") ? 3ul : 4ul, 0ul, 0ul, 0ul),
	      "prctl: %s", strerror(errno));
	n = served(file, seed, 0);
	prctl(PR_SET_HWDP, 0ul, 0ul, 0ul, 0ul);
	if (n < 0)
		return false;
	CHECK(n > (long)PAGES / 2, "%s, by prctl: the unit served only %ld pages", file, n);
	return true;
}

bool t_bind_mount(void)
{
	char other[600], file[700];
	bool ok;

	if (!make_file("bind", 210, PAGES))
		return false;
	snprintf(other, sizeof(other), "%s.other", dir);
	mkdir(other, 0755);
	if (mount(dir, other, NULL, MS_BIND, NULL)) {
		rmdir(other);
		SKIP("bind mount: %s", strerror(errno));
	}
	snprintf(file, sizeof(file), "%s/bind", other);
	ok = is_served(file, 210);
	umount(other);
	rmdir(other);
	return ok;
}

bool t_overlay(void)
{
	char base[600], options[2600], file[700];
	static const char * const parts[] = { "upper", "work", "merged" };
	bool ok, mounted;

	if (!make_file("over", 211, PAGES))
		return false;
	/* beside the folder, since the folder is the lower layer */
	snprintf(base, sizeof(base), "%s.layers", dir);
	mkdir(base, 0755);
	for (int i = 0; i < 3; i++) {
		snprintf(file, sizeof(file), "%s/%s", base, parts[i]);
		mkdir(file, 0755);
	}
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s/upper,workdir=%s/work", dir, base, base);
	mounted = !mount("overlay", file, "overlay", 0, options);
	if (!mounted && errno == ENODEV)
		SKIP("no overlayfs");
	CHECK(mounted, "mount overlay: %s", strerror(errno));
	snprintf(file, sizeof(file), "%s/merged/over", base);
	ok = is_served(file, 211);
	if (ok) {
		/* opening it for writing copies it to the upper layer: now it is another file */
		int fd = open(file, O_RDWR);

		ok = fd >= 0;
		close(fd);
		ok = ok && is_served(file, 211);
	}
	snprintf(file, sizeof(file), "%s/merged", base);
	umount(file);
	return ok;
}

/* Copy the disk's third partition, a small file system, into a file. */
static bool copy_disk(const char *to)
{
	static char buf[64 * PAGE];
	int in = open("/dev/nvme0n1p3", O_RDONLY), out = open(to, O_RDWR | O_CREAT | O_TRUNC, 0600);
	ssize_t n;

	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			n = -1;
	close(in);
	fsync(out);
	close(out);
	return !n;
}

bool t_loop(void)
{
	const char *place = "/tiny", *parent = dir;
	char device[32];
	int control, number, loop, image;
	long refused;
	bool ok;

	if (access("/dev/nvme0n1p3", F_OK))
		SKIP("no file system to put on a loop device");
	control = open("/dev/loop-control", O_RDWR);
	if (control < 0)
		SKIP("no loop devices");
	CHECK(copy_disk(path("image")), "copy: %s", strerror(errno));
	number = ioctl(control, LOOP_CTL_GET_FREE);
	snprintf(device, sizeof(device), "/dev/loop%d", number);
	loop = open(device, O_RDWR);
	image = open(path("image"), O_RDWR);
	CHECK(!ioctl(loop, LOOP_SET_FD, image), "%s: %s", device, strerror(errno));
	close(image);
	mkdir(place, 0755);
	ok = !mount(device, place, "ext4", 0, NULL);
	if (!ok)
		snprintf(why, WHY_MAX, "mount %s: %s", device, strerror(errno));
	refused = stat_of("refused_device");
	if (ok) {
		dir = place;
		ok = make_file("inside", 212, PAGES) && served("/tiny/inside", 212, MAP_HWDP) == 0;
		if (!ok && !*why)
			snprintf(why, WHY_MAX, "the unit served pages of a loop device");
		dir = parent;
		umount(place);
	}
	ioctl(loop, LOOP_CLR_FD, 0);
	close(loop);
	if (!ok)
		return false;
	CHECK(!have_smu() || stat_of("refused_device") == refused + 1, "refused_device %ld after %ld",
	      stat_of("refused_device"), refused);
	return true;
}
