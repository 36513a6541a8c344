/* SPDX-License-Identifier: Apache-2.0 */
/* Four harts miss on the same pages at once; then one changes a command between submission queue and drive. */
#include "bare.h"

static volatile u64 ready, arrived[2], done;

static void meet(volatile u64 *where)
{
	__atomic_fetch_add(where, 1, __ATOMIC_SEQ_CST);
	while (*where < 4)
		;
}

static u64 first_word(u32 page) { return user_word(AREA + page * PAGE); }

void main(u64 hart)
{
	if (hart == 0) {
		platform_start();
		smu_start(200);
		for (u32 i = 0; i < PAGES; i++)
			arm(i, i * 8, 0);
		ready = 1;
	}
	while (!ready)
		;
	paging_on();
	csr_write(0x5c0, 1);
	meet(&arrived[0]);

	/* REQ: SMU-1: requests for one entry join, from any hart; one read a page. */
	for (u32 i = 0; i < 64; i++)
		CHECK(first_word(i) == i * 8);
	meet(&arrived[1]);
	if (hart == 0) {
		CHECK(smu(SMU_CNT_INSTALLED) == 64 && smu(SMU_CNT_COMMANDS) == 64);
		CHECK(smu(SMU_CNT_COALESCED) > 0);
		CHECK(smu(SMU_CNT_REQUESTS) == 64 + smu(SMU_CNT_COALESCED));
		CHECK((u32)smu(SMU_FREE_USED) == 64);
		done = 1;
		/* Hart 1 turns block 800 into block 400 while the command waits in the queue: the drive reads what it finds. */
		CHECK(first_word(100) == 50 * 8);
		finish(0);
	}
	/* Nothing is under way: the next command goes there. Reading a register takes long, and the drive fetches soon. */
	volatile u64 *slba = &sq[smu(desc(0, SMU_DESC_SQ_TAIL)) % QDEPTH * 8 + 5];
	while (!done)
		;
	if (hart == 1) {
		while (*slba != 800)
			;
		*slba = 400;
	}
	for (;;)
		;
}
