// SPDX-License-Identifier: GPL-2.0
/* Blocks that move, are added or are freed, and pages whose blocks are not adjacent. REQ: OS-3, OS-11 */
#include "check.h"
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/swap.h>

/* ioctls of ext4, which no installed header has */
struct move_extent {
	uint32_t reserved;
	uint32_t donor_fd;
	uint64_t orig_start;
	uint64_t donor_start;
	uint64_t len;
	uint64_t moved_len;
};
#define EXT4_IOC_MOVE_EXT	_IOWR('f', 15, struct move_extent)
#define EXT4_IOC_RESIZE_FS	_IOW('f', 16, uint64_t)
#define EXT4_IOC_SWAP_BOOT	_IO('f', 17)
#define EXT4_IOC_SHUTDOWN	_IOR('X', 125, uint32_t)

bool t_insert_range(void)
{
	char *map;
	int fd;

	if (!setup("ins", 50, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 50, 0, 100))
		return false;
	CHECK(!fallocate(fd, FALLOC_FL_INSERT_RANGE, 64 * PAGE, 64 * PAGE),
	      "insert: %s", strerror(errno));
	for (size_t p = 0; p < 256; p++) {
		if (p >= 64 && p < 128)
			CHECK(is_zero(map + p * PAGE), "page %zu is not 0", p);
		else
			CHECK(same(map + p * PAGE, 50, p < 64 ? p : p - 64),
			      "wrong content of page %zu", p);
	}
	return true;
}

bool t_zero_range(void)
{
	char *map;
	int fd;

	if (!setup("zero", 51, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 51, 0, 100))
		return false;
	CHECK(!fallocate(fd, FALLOC_FL_ZERO_RANGE, 64 * PAGE, 128 * PAGE), "zero range: %s",
	      strerror(errno));
	for (size_t p = 0; p < 256; p++) {
		if (p >= 64 && p < 192)
			CHECK(is_zero(map + p * PAGE), "page %zu is not 0", p);
		else
			CHECK(same(map + p * PAGE, 51, p), "wrong content of page %zu", p);
	}
	return true;
}

/* The ioctl exchanges the blocks of the file and of the boot loader's inode. */
bool t_swap_boot(void)
{
	char *map;
	int fd;

	if (!make_file("boot", 52, 256))
		return false;
	fd = open(path("boot"), O_RDWR);
	CHECK(!ioctl(fd, EXT4_IOC_SWAP_BOOT), "swap: %s", strerror(errno));
	close(fd);
	/* the boot loader's inode now has content 52, the file has none: write 53 */
	if (!setup("boot", 53, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 53, 0, 64))
		return false;
	CHECK(!ioctl(fd, EXT4_IOC_SWAP_BOOT), "swap back: %s", strerror(errno));
	for (size_t p = 0; p < 256; p++)
		CHECK(same(map + p * PAGE, 52, p), "page %zu is not the boot loader's", p);
	return true;
}

bool defragment(int fd, size_t pages)
{
	struct move_extent move = { .len = pages };
	uint64_t before = physical(fd, 0);
	int donor = open(path("donor"), O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(!fallocate(donor, 0, 0, pages * PAGE), "fallocate: %s", strerror(errno));
	move.donor_fd = donor;
	while (move.len) {
		CHECK(!ioctl(fd, EXT4_IOC_MOVE_EXT, &move), "move: %s", strerror(errno));
		CHECK(move.moved_len && move.moved_len <= move.len, "moved nothing");
		move.orig_start += move.moved_len;
		move.donor_start += move.moved_len;
		move.len -= move.moved_len;
		move.moved_len = 0;
	}
	CHECK(physical(fd, 0) && physical(fd, 0) != before, "blocks did not move");
	/* another file soon gets the blocks that the donor got from @fd */
	close(donor);
	unlink(path("donor"));
	sync();
	return make_file("taker", 99, 2 * pages);
}

/* When blocks move, entries get their new addresses: contents stay, and hardware serves misses. */
bool t_defrag(void)
{
	char *map;
	long fast;
	int fd;

	if (!setup("defrag", 54, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 54, 0, 100) || !defragment(fd, 512))
		return false;
	drop_caches();	/* the move itself has read and written all pages */
	usleep(50000);
	fast = fast_pages();
	if (!read_all(map, 54, 0, 512))
		return false;
	CHECK(!have_smu() || fast_pages() - fast > 300, "only %ld pages by hardware afterwards",
	      fast_pages() - fast);
	return true;
}

bool t_defrag_busy(void)
{
	struct endless e[READERS];
	bool moved;
	char *map;
	int fd;

	if (!setup("defragb", 55, 512, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	start_readers(e, map, 55, 512);
	usleep(2000);
	moved = defragment(fd, 512);
	CHECK(stop_readers(e), "a reader saw another file's page");
	return moved && read_all(map, 55, 0, 512);
}

/* Growing the file system does not move the blocks of files. */
bool t_resize(void)
{
	struct endless e[READERS];
	uint64_t blocks, grow;
	struct statfs fs;
	int fd, mnt;
	char *map;

	if (!setup("resize", 56, 2048, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	mnt = open(mount_point, O_RDONLY);
	start_readers(e, map, 56, 2048);
	statfs(mount_point, &fs);
	for (grow = 8192; grow; grow -= 512) {
		blocks = fs.f_blocks + grow;
		if (!ioctl(mnt, EXT4_IOC_RESIZE_FS, &blocks))
			break;
	}
	CHECK(stop_readers(e), "a reader saw a wrong page");
	if (!read_all(map, 56, 0, 2048))
		return false;
	if (!grow)
		SKIP("the file system fills its disk");
	return true;
}

bool t_remount(void)
{
	struct endless e[READERS];
	char *map;

	/* a descriptor open for writing would keep the file system from becoming read-only */
	if (!setup("remount", 57, 2048, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	start_readers(e, map, 57, 2048);
	CHECK(!mount(NULL, mount_point, NULL, MS_REMOUNT | MS_RDONLY, NULL), "read-only: %s",
	      strerror(errno));
	usleep(5000);
	CHECK(!mount(NULL, mount_point, NULL, MS_REMOUNT, NULL), "read-write: %s",
	      strerror(errno));
	CHECK(stop_readers(e), "a reader saw a wrong page");
	return read_all(map, 57, 0, 2048);
}

bool t_freeze(void)
{
	struct endless e[READERS];
	char *map;
	int mnt;

	if (!setup("freeze", 58, 2048, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	mnt = open(mount_point, O_RDONLY);
	start_readers(e, map, 58, 2048);
	CHECK(!ioctl(mnt, FIFREEZE, 0), "freeze: %s", strerror(errno));
	usleep(5000);
	CHECK(!ioctl(mnt, FITHAW, 0), "thaw: %s", strerror(errno));
	CHECK(stop_readers(e), "a reader saw a wrong page");
	return read_all(map, 58, 0, 2048);
}

/* Hardware serves no more misses of a file system that has been shut down. */
bool t_shutdown(void)
{
	uint32_t how = 1;	/* flush the journal first */
	char *map;
	long fast;
	int mnt;

	if (!setup("shut", 59, 512, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	if (!read_all(map, 59, 0, 64))
		return false;
	mnt = open(mount_point, O_RDONLY);
	CHECK(!ioctl(mnt, EXT4_IOC_SHUTDOWN, &how), "shutdown: %s", strerror(errno));
	fast = fast_pages();
	if (!read_all(map, 59, 0, 64))
		return false;
	for (size_t p = 64; p < 512; p++)
		CHECK(touch(map + p * PAGE) || same(map + p * PAGE, 59, p),
		      "wrong content of page %zu", p);
	CHECK(fast_pages() == fast, "hardware read %ld pages after it", fast_pages() - fast);
	return true;
}

/* The controller is removed: an access to a page that is not in memory is SIGBUS, at once. */
bool t_removal(void)
{
	struct endless e[READERS];
	char *map;

	if (!setup("gone", 60, 4096, PROT_READ, MAP_SHARED, NULL, &map))
		return false;
	start_readers(e, map, 60, 256);
	usleep(20000);
	CHECK(put_text("/sys/class/nvme/nvme0/device/remove", "1"), "remove: %s",
	      strerror(errno));
	for (int i = 0; i < READERS; i++)
		e[i].stop = true;
	for (size_t p = 256; p < 4096; p += 7)
		CHECK(touch(map + p * PAGE) == SIGBUS, "page %zu did not end with SIGBUS", p);
	return true;
}

/* Write @pages pages of 1 KiB blocks, so that the blocks of a page do not follow each other. */
static bool write_scattered(int fd, uint64_t seed, size_t pages)
{
	char page[PAGE];

	for (size_t p = 0; p < pages; p++) {
		fill(page, seed, p);
		CHECK(write(fd, page, 1024) == 1024 &&
		      write(fd, page + 2048, 2048) == 2048, "write");
	}
	fsync(fd);
	/* on the disk, the inserted block cannot be between its neighbours, because they are adjacent there */
	for (size_t p = 0; p < pages; p++) {
		fill(page, seed, p);
		CHECK(!fallocate(fd, FALLOC_FL_INSERT_RANGE, p * PAGE + 1024, 1024),
		      "insert: %s", strerror(errno));
		CHECK(pwrite(fd, page + 1024, 1024, p * PAGE + 1024) == 1024, "pwrite");
	}
	fsync(fd);
	return true;
}

/* On a file system with 1 KiB blocks: pages whose blocks are adjacent, or scattered. */
static bool one_kib(bool scattered)
{
	const char *saved = dir;
	char *map;
	long fast;
	int fd;

	if (!small_dir)
		SKIP("no file system of 1 KiB blocks");
	dir = small_dir;
	if (!make_file("kib", 61, scattered ? 0 : 64))
		return false;
	fd = open(path("kib"), O_RDWR);
	if (scattered && !write_scattered(fd, 61, 64))
		return false;
	drop_caches();
	fast = fast_pages();
	map = map_file("kib", 64, PROT_READ, MAP_SHARED, NULL);
	if (!read_all(map, 61, 0, 64))
		return false;
	fast = fast_pages() - fast;
	CHECK(!scattered || fast <= 0, "hardware read %ld scattered pages", fast);
	dir = saved;
	return true;
}

bool t_blocks_1k(void) { return one_kib(false); }
bool t_fragmented(void) { return one_kib(true); }

bool t_inline_data(void)
{
	static const char text[] = "a file so short that it lies in its inode";
	const char *saved = dir;
	char *map;
	int fd;

	if (!small_dir)
		SKIP("no file system with inline data");
	dir = small_dir;
	fd = open(path("inline"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(write(fd, text, sizeof(text)) == sizeof(text), "write");
	fsync(fd);
	CHECK(!physical(fd, 0), "the data is not inline");
	drop_caches();
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_HWDP, fd, 0);
	CHECK(!memcmp(map, text, sizeof(text)), "wrong content");
	for (size_t i = sizeof(text); i < PAGE; i++)
		CHECK(!map[i], "byte %zu after EOF is not 0", i);
	dir = saved;
	return true;
}

/* Bytes stored after EOF are not kept: they neither go to the disk nor show when the file grows. */
bool t_dirty_tail(void)
{
	char *map, byte;
	long fast;
	int fd;

	if (!make_file("tail", 62, 8))
		return false;
	fd = open(path("tail"), O_RDWR);
	CHECK(!ftruncate(fd, 7 * PAGE + 100), "ftruncate");
	fsync(fd);
	drop_caches();
	map = map_file("tail", 8, PROT_READ | PROT_WRITE, MAP_SHARED, NULL);
	CHECK(map != MAP_FAILED, "mmap");
	map[7 * PAGE + 200] = 'X';
	CHECK(!msync(map, 8 * PAGE, MS_SYNC), "msync");
	munmap(map, 8 * PAGE);
	drop_caches();
	fast = fast_pages();
	map = map_file("tail", 8, PROT_READ, MAP_SHARED, NULL);
	CHECK(!map[7 * PAGE + 200], "a byte stored after EOF is in the file");
	CHECK(fast_pages() == fast, "hardware read the page that has EOF");
	CHECK(!ftruncate(fd, 8 * PAGE), "longer");
	CHECK(!map[7 * PAGE + 200], "a byte stored after EOF shows in the longer file");
	CHECK(pread(fd, &byte, 1, 7 * PAGE + 200) == 1 && !byte,
	      "read() returns a byte that was stored after EOF");
	return true;
}

/*
 * Hardware must not read a file whose data goes through the journal. The flag takes
 * effect only without delayed allocation.
 */
bool t_data_journal(void)
{
	char *map, page[PAGE];
	int fd, flags = 0;
	long fast;

	if (mount(NULL, mount_point, NULL, MS_REMOUNT, "nodelalloc"))
		SKIP("nodelalloc: %s", strerror(errno));
	if (!setup("dj", 63, 256, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!read_all(map, 63, 0, 64))
		return false;
	CHECK(!ioctl(fd, FS_IOC_GETFLAGS, &flags), "flags");
	flags |= FS_JOURNAL_DATA_FL;
	if (ioctl(fd, FS_IOC_SETFLAGS, &flags))
		SKIP("data=journal: %s", strerror(errno));
	fast = fast_pages();
	for (size_t p = 0; p < 256; p += 2) {
		fill(page, 64, p);
		CHECK(pwrite(fd, page, PAGE, p * PAGE) == PAGE, "write");
	}
	CHECK(!fsync(fd), "fsync");	/* now in the journal, but perhaps not yet in place */
	for (size_t p = 0; p < 256; p++)
		CHECK(same(map + p * PAGE, p % 2 ? 63 : 64, p), "wrong content of page %zu", p);
	fast = fast_pages() - fast;
	CHECK(!mount(NULL, mount_point, NULL, MS_REMOUNT, "delalloc"), "delalloc: %s",
	      strerror(errno));
	CHECK(!fast, "hardware read %ld pages of journalled data", fast);
	return true;
}

/* Hardware must not read a swap file, which the kernel writes without the file system. */
bool t_swap_file(void)
{
	char *map, *mine;
	size_t pages = 1024;
	int fd, wrong = 0;
	long fast;

	if (!setup("swapf", 65, pages, PROT_READ, MAP_SHARED, &fd, &map))
		return false;
	if (!make_swap(fd, pages))
		return false;
	CHECK(!swapon(path("swapf"), 0), "swapon: %s", strerror(errno));
	mine = mmap(NULL, 256 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	for (size_t p = 0; p < 256; p++)
		fill(mine + p * PAGE, 66, p);
	CHECK(!madvise(mine, 256 * PAGE, MADV_PAGEOUT), "pageout");
	/* what the mapping shows is undefined, but the kernel must read it */
	for (size_t p = 0; p < 256; p++)
		wrong += !same(mine + p * PAGE, 66, p);
	fast = fast_pages();
	for (size_t p = 1; p < pages; p++)
		wrong += touch(map + p * PAGE);
	fast = fast_pages() - fast;
	swapoff(path("swapf"));
	CHECK(!wrong, "%d pages have wrong content", wrong);
	CHECK(fast <= 0, "hardware read %ld pages of swap", fast);
	return true;
}
