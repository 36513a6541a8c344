/* SPDX-License-Identifier: Apache-2.0 */
/* User code misses and faults on a watched mapping, for each reason that there is. */
#include "bare.h"

#define LONG 10000

static u64 data[512] __attribute__((aligned(4096)));

static void set(u32 page, u64 entry)
{
	pte[page] = entry;
	fence_vma();
}

static u64 here(u64 flags) { return (u64)data >> 2 | SMU_PTE_V | SMU_PTE_R | SMU_PTE_U | flags; }

/* A load, or a store of `stored`. */
static u64 access(u32 page, u64 stored)
{
	return stored ? user_store(AREA + page * PAGE, stored) : user_load(AREA + page * PAGE);
}

/* The access faults with this cause; after the repair it is done. */
static void faults_once(u64 stored, u32 page, u64 cause, u64 repaired)
{
	CHECK(access(page, stored) == cause);
	for (volatile u32 i = 0; page == 2 && i < LONG; i++)
		;
	set(page, repaired);
	CHECK(access(page, stored) == USER_CALL);
}

void main(u64 hart)
{
	if (hart)
		for (;;)
			asm volatile("wfi");
	platform_start();
	smu_start(200);
	for (u32 i = 0; i < 100; i++)
		arm(i, i * 8, 0);
	paging_on();
	csr_write(0x5c0, 1);
	MARKER(SMU_MARKER_WATCH, AREA, 100 * PAGE, 3);
	MARKER(SMU_MARKER_ROI_BEGIN, 1, 0, 0);

	CHECK(user_load(AREA + PAGE) == USER_CALL);
	set(2, 0);
	faults_once(0, 2, 13, here(SMU_PTE_A));			/* not_armed */
	arm(3, 24, 1ULL << 51);
	faults_once(0, 3, 13, here(SMU_PTE_A));			/* descriptor */
	faults_once(1, 4, 15, here(SMU_PTE_A | SMU_PTE_W | SMU_PTE_D));	/* permission */
	set(5, here(0));
	faults_once(0, 5, 13, here(SMU_PTE_A));			/* accessed_dirty */
	csr_write(0x5c0, 0);
	CHECK(user_load(AREA + 6 * PAGE) == 13);		/* hardware_off */
	csr_write(0x5c0, 1);
	CHECK(user_load(AREA + 6 * PAGE) == USER_CALL);
	set(7, 0);
	CHECK(user_load(AREA + 7 * PAGE) == 13);		/* not_armed, and left so */
	CHECK(user_load(AREA + 200 * PAGE) == 13);		/* not watched */
	CHECK(probe_load(AREA + 8 * PAGE) && probe_store(AREA + 9 * PAGE, 1));	/* the kernel's own faults */

	MARKER(SMU_MARKER_ROI_END, 1, 0, 0);
	CHECK(smu(SMU_CNT_INSTALLED) == 2);
	finish(0);
}
