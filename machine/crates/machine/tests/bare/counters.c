/* SPDX-License-Identifier: Apache-2.0 */
/* One hart misses on pages, all in the region of interest, and counts the time of each. REQ: ISA-7 */
#include "bare.h"

#define MISSES 64

void main(u64 hart)
{
	if (hart)
		for (;;)
			asm volatile("wfi");
	platform_start();
	smu_start(200);
	for (u32 i = 0; i < PAGES; i++)
		arm(i, i * 8, 0);
	paging_on();
	csr_write(0x5c0, 1);
	MARKER(SMU_MARKER_ROI_BEGIN, 1, 0, 0);
	for (u32 i = 0; i < MISSES; i++) {
		u64 before = csr_read(0xdc1), begun = csr_read(cycle);
		CHECK(user_word(AREA + i * PAGE) == i * 8);
		u64 wait = csr_read(0xdc1) - before, whole = csr_read(cycle) - begun;
		/* The rest is the way into U mode and back, and the walk. */
		CHECK(wait < whole && whole - wait < 400);
		CHECK(csr_read(0xdc0) == i + 1);
		/* A page that is there is not waited for. */
		before = csr_read(0xdc1);
		CHECK(user_word(AREA + i * PAGE) == i * 8);
		CHECK(csr_read(0xdc1) == before && csr_read(0xdc0) == i + 1);
	}
	MARKER(SMU_MARKER_ROI_END, 1, 0, 0);
	finish(0);
}
