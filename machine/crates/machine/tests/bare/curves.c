/* SPDX-License-Identifier: Apache-2.0 */
/* Detailed timing seen from inside: what an access, a translation and a branch cost, by how much there is of them. Each
 * result is two words in the signature: what was measured (kind, size) and thousandths of a cycle. */
#include "bare.h"

#define KIND_CHASE 1	/* size: bytes, in lines visited at random */
#define KIND_STRIDE 2	/* size: bytes from one load to the next */
#define KIND_PAGES 3	/* size: pages, one line of each; all are the same physical page */
#define KIND_SPREAD 5	/* size: the same, each page another one */
#define KIND_BRANCH 4	/* size: period of the pattern; 0: none */

#define RESULTS 48
#define KIND_STORE 6	/* size: bytes, stores to one line after the other */

#define LINE 64UL
#define MOST (64UL << 20)
#define WINDOW 0x2000000000UL

static unsigned char area[MOST] __attribute__((aligned(4096)));
static volatile u64 window_root[512] __attribute__((aligned(4096)));
static volatile u64 window_pmd[512] __attribute__((aligned(4096)));
static volatile u64 window_pte[8][512] __attribute__((aligned(4096)));

volatile struct { u32 kind, size; u64 milli; } begin_signature[RESULTS];
#define TEXT(x) #x
#define END(n) ".globl end_signature\n.set end_signature, begin_signature + 16 * " TEXT(n)
asm(END(RESULTS));
static u32 results;

static void result(u32 kind, u32 size, u64 cycles, u64 of)
{
	begin_signature[results].kind = kind;
	begin_signature[results].size = size;
	begin_signature[results++].milli = cycles * 1000 / of;
}

static void chase(u64 bytes)
{
	u64 lines = bytes / LINE, steps = lines < 65536 ? 65536 : lines, **at = (u64 **)area, from;

	/* One cycle through all lines: a linear congruential generator of full period. */
	for (u64 i = 0; i < lines; i++)
		*(u64 *)(area + i * LINE) = (u64)(area + (i * 1664525 + 1013904223) % lines * LINE);
	for (u64 warm = 0; warm < 2; warm++) {
		from = csr_read(cycle);
		for (u64 i = 0; i < steps; i += 8)
			asm volatile("ld %0, (%0)\nld %0, (%0)\nld %0, (%0)\nld %0, (%0)\n"
				     "ld %0, (%0)\nld %0, (%0)\nld %0, (%0)\nld %0, (%0)" : "+r"(at));
		from = csr_read(cycle) - from;
	}
	result(KIND_CHASE, bytes, from, steps);
}

static void stride(u64 bytes)
{
	u64 from, n;

	for (u64 warm = 0; warm < 2; warm++) {
		from = csr_read(cycle), n = 0;
		for (unsigned char *at = area; at < area + (4UL << 20); at += bytes, n++)
			*(volatile unsigned char *)at;
		from = csr_read(cycle) - from;
	}
	result(KIND_STRIDE, bytes, from, n);
}

static void store(u64 bytes)
{
	u64 from;

	for (u64 warm = 0; warm < 2; warm++) {
		from = csr_read(cycle);
		for (unsigned char *at = area; at < area + bytes; at += 4 * LINE)
			asm volatile("sd zero, (%0)\nsd zero, 64(%0)\nsd zero, 128(%0)\nsd zero, 192(%0)" :: "r"(at) : "memory");
		from = csr_read(cycle) - from;
	}
	result(KIND_STORE, bytes, from, bytes / LINE);
}

static void pages(u32 kind, u64 count)
{
	u64 from = 0, rounds = 32;

	for (u64 round = 0; round <= rounds; round++) {
		if (round == 1)
			from = csr_read(cycle);
		for (u64 i = 0; i < count; i++)
			*(volatile u64 *)(WINDOW + i * PAGE + (i + i / 64) % 64 * LINE);
	}
	result(kind, count, csr_read(cycle) - from, count * rounds);
}

/* Page n of the window is `step` bytes further in the area than page n - 1. */
static void window(u64 step)
{
	for (u64 i = 0; i < 8 * 512; i++)
		window_pte[i / 512][i % 512] = ((u64)area + i * step) >> 2 | SMU_PTE_V | SMU_PTE_R | SMU_PTE_A | SMU_PTE_D;
	asm volatile("sfence.vma" ::: "memory");
}

static void branches(u64 period)
{
	u64 from = 0, n = 20000, random = 12345, sum = 0;

	for (u64 i = 0; i < n; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		area[i] = period ? i % period == 0 : random & 1;
	}
	for (u64 round = 0; round < 4; round++) {
		if (round == 3)
			from = csr_read(cycle);
		for (u64 i = 0; i < n; i++)
			asm volatile("beqz %1, 1f\naddi %0, %0, 1\n1:" : "+r"(sum) : "r"(area[i]));
	}
	result(KIND_BRANCH, period, csr_read(cycle) - from, n);
}

void main(u64 hart)
{
	while (hart)
		asm volatile("wfi");
	for (u64 kib = 8; kib <= MOST >> 10; kib *= 2)
		chase(kib << 10);
	for (u64 bytes = 8; bytes <= 256; bytes *= 2)
		stride(bytes);
	store(16 << 10);
	store(128 << 10);
	store(8 << 20);
	store(MOST);
	branches(1);
	branches(7);
	branches(0);
	for (u64 i = 0; i < 4; i++)
		window_root[i] = i << 28 | SMU_PTE_V | SMU_PTE_R | SMU_PTE_W | SMU_PTE_X | SMU_PTE_A | SMU_PTE_D;
	window_root[WINDOW >> 30] = (u64)window_pmd >> 2 | SMU_PTE_V;
	for (u64 i = 0; i < 8; i++)
		window_pmd[i] = (u64)window_pte[i] >> 2 | SMU_PTE_V;
	/* All pages of the window are the same one: its lines stay in the first level, and only translations differ. */
	window(0);
	csr_write(satp, 8ULL << 60 | (u64)window_root >> 12);
	asm volatile("sfence.vma" ::: "memory");
	for (u64 count = 16; count <= 4096; count *= 2)
		pages(KIND_PAGES, count);
	window(PAGE);
	for (u64 count = 16; count <= 256; count *= 2)
		pages(KIND_SPREAD, count);
}
