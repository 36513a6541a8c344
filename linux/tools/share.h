/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the parts of libhwdp: their functions, and system calls that bypass the library. */
#ifndef TRAPLESS_SHARE_H
#define TRAPLESS_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define PAGE 4096UL

static inline size_t whole_pages(size_t length)
{
	return (length + PAGE - 1) & -PAGE;
}

static inline void *raw_mmap(void *start, size_t length, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, start, length, protection, flags, fd, offset);
}

static inline int raw_munmap(void *start, size_t length)
{
	return syscall(SYS_munmap, start, length);
}

static inline void *raw_mremap(void *start, size_t length, size_t new_length, int flags, void *place)
{
	return (void *)syscall(SYS_mremap, start, length, new_length, flags, place);
}

static inline int raw_mprotect(void *start, size_t length, int protection)
{
	return syscall(SYS_mprotect, start, length, protection);
}

/* libhwdp.c: the system calls, which also tell the machine. */
int unmap_watched(void *start, size_t length);
void *remap_watched(void *start, size_t length, size_t new_length, int flags, void *place);

/* share.c */
struct share {
	dev_t device;
	ino_t inode;
	off_t offset;
};

void share_lock(void);
void share_unlock(void);
void *share_mmap(void *start, size_t length, int protection, int flags, int fd, const struct share *share, off_t offset,
		 bool *old);
int share_munmap(void *start, size_t length);
void *share_mremap(void *start, size_t length, size_t new_length, int flags, void *place);
int share_mprotect(void *start, size_t length, int protection);

#endif
