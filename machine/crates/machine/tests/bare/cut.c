/* SPDX-License-Identifier: Apache-2.0 */
/* One hart misses while a timer interrupts its waits: shortly, so that it waits again, or for longer than the miss takes. */
#include "bare.h"

#define MTIME 0x200bff8UL
#define MTIMECMP 0x2004000UL
#define MISSES 64
/* Ticks of 10 cycles between two interrupts, at least, so that misses end during handlers and between them; turns of a loop of
 * more cycles than any miss takes. */
#define PERIOD 60
#define LONG 10000

extern volatile u64 timer_period, timer_spin;
u64 timer_enable = 0x80;		/* mie.MTIE; it comes once MTIMECMP is written */

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
	timer_period = PERIOD;
	REG64(MTIMECMP) = REG64(MTIME) + PERIOD;
	for (u32 i = 0; i < MISSES; i++) {
		timer_spin = i % 8 == 7 ? LONG : 0;
		timer_period = PERIOD + i % 16 * 3;
		CHECK(user_word(AREA + i * PAGE) == i * 8);
	}
	REG64(MTIMECMP) = ~0UL;
	MARKER(SMU_MARKER_ROI_END, 1, 0, 0);
	CHECK(smu(SMU_CNT_INSTALLED) == MISSES && smu(SMU_CNT_COALESCED) > MISSES);
	finish(0);
}
