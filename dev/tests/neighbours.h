// SPDX-License-Identifier: Apache-2.0
// Declarations that neighbours.c and its attacks share.
#ifndef NEIGHBOURS_H
#define NEIGHBOURS_H

#define _GNU_SOURCE
#include "marker.h"
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define PAGE 4096ul
#define FILE_PAGES 8192ul
#define MAP_HWDP 0x200000
#define ATTACKER 1000
#define VICTIM 1001
#define SECRET_PAGES 512ul
#define SECRET 0x5ec2e7a5ul
#define PUBLIC 0x0b11c0deul

struct shared {
	volatile unsigned long ops;	// operations of the attacker
	volatile long found;		// words of the victim that the attacker has seen
	volatile long secrets;		// files that the victim has deleted, or pages that it has read in addition
	volatile double beside, longest;	// time of these in microseconds, and the longest time
	volatile int over;
	size_t wanted, misses;
	long long cpu;			// time of the victim's group for these misses, in microseconds
	double stalled;			// part of it in which the thread ran, or waited for hardware, during its misses
	float wait[FILE_PAGES];		// time of each miss in microseconds
};

struct attack {
	const char *name;
	void (*run)(void);		// runs in the attacker's group, as the attacker; never returns
	long limit;			// its memory.max in bytes, or 0
	const char *bandwidth;		// its cpu.max, or NULL
	void (*beside)(void);		// additional work of the victim
};

extern struct shared *shared;
extern const struct attack attacks[];
extern size_t pages;
extern char victim_file[300], attacker_file[300], attacker_folder[200];
extern int fast;

void die(const char *what);
double now_us(void);
void put(const char *group, const char *file, const char *value);
void group(const char *name, const char *harts, long limit);
volatile char *map_file(const char *path, size_t bytes, int flags);
void make_file(const char *path, int user, size_t count, uint64_t magic);
void secrets(void);
void bytes(void);

static inline void done(void)
{
	__atomic_fetch_add(&shared->ops, 1, __ATOMIC_RELAXED);
}

static inline void look(const volatile void *at)
{
	if (*(const volatile uint64_t *)at >> 32 == SECRET)
		__atomic_fetch_add(&shared->found, 1, __ATOMIC_RELAXED);
}

#endif
