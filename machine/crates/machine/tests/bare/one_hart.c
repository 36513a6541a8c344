/* SPDX-License-Identifier: Apache-2.0 */
/* One hart tries the page table extension and all answers of the SMU. Every word of block n of the drive has the value n. */
#include "bare.h"

static u64 word(u32 page) { return user_word(AREA + page * PAGE + 8 * (page % 512)); }

void main(u64 hart)
{
	if (hart)
		for (;;)
			asm volatile("wfi");
	platform_start();
	smu_start(8);
	for (u32 i = 0; i < 64; i++)
		arm(i, i * 8, 0);
	paging_on();

	/* REQ: ISA-1: the extension is off at reset. Then an armed entry is an ordinary invalid entry. */
	CHECK(csr_read(0x5c0) == 0);
	CHECK(user_load(AREA) == 13 && faults[0].tval == AREA);
	CHECK(smu(SMU_CNT_REQUESTS) == 0);
	csr_write(0x5c0, ~0UL);
	CHECK(csr_read(0x5c0) == SMU_SHWDP_EN);
	/* REQ: ISA-7 */
	CHECK(csr_read(0xdc0) == 0 && csr_read(0xdc1) == 0);

	/* REQ: ISA-3: for accesses of the kernel an armed entry is always an ordinary invalid one. The kernel never waits. */
	CHECK(probe_load(AREA) && faults[0].cause == 13 && faults[0].tval == AREA);
	arm(1, 8, SMU_PTE_W);
	CHECK(probe_store(AREA + PAGE + 8, 1) && faults[0].cause == 15 && faults[0].tval == AREA + PAGE + 8);
	CHECK(smu(SMU_CNT_REQUESTS) == 0 && !((pte[0] | pte[1]) & SMU_PTE_V));
	arm(1, 8, 0);

	/* REQ: SMU-3: after the miss the page, its entry and the marks above are in memory. The load goes on without a trap. */
	MARKER(SMU_MARKER_ROI_BEGIN, 1, 0, 0);
	u64 before = pte[5];
	u64 t0 = csr_read(cycle);
	CHECK(word(5) == 5 * 8);
	u64 miss = csr_read(cycle) - t0;
	CHECK(miss > 2816 && miss < 2816 + 400);
	CHECK(csr_read(0xdc0) == 1 && csr_read(0xdc1) > 2816 && csr_read(0xdc1) < miss);
	CHECK((pte[5] & 0x3ff) == ((before & 0x3ff) | SMU_PTE_V));
	CHECK(pmd[0] & SMU_PTE_L && root[AREA >> 30] & SMU_PTE_L);
	CHECK(smu(SMU_CNT_INSTALLED) == 1);
	/* All eight blocks of the page were read. */
	for (u32 b = 0; b < 8; b++)
		CHECK(user_word(AREA + 5 * PAGE + b * 512) == 5 * 8 + b);
	/* REQ: ISA-5: the next read of an installed page makes no trap and no request. */
	CHECK(word(5) == 5 * 8 && smu(SMU_CNT_REQUESTS) == 1);

	MARKER(SMU_MARKER_ROI_END, 1, 0, 0);

	/* REQ: ISA-2: a forbidden access traps at once and makes no request. */
	u64 requests = smu(SMU_CNT_REQUESTS);
	CHECK(user_store(AREA + 6 * PAGE, 1) == 15);
	CHECK(smu(SMU_CNT_REQUESTS) == requests && !(pte[6] & SMU_PTE_V));

	/* REQ: ISA-1: each of these entries breaks one condition of an armed entry, so it is an ordinary invalid one. */
	u64 good = pte[7];
	u64 bad[] = { good | SMU_PTE_G, good & ~SMU_PTE_U, good & ~SMU_PTE_R, good | SMU_PTE_D, good | 1ULL << 57, good & ~SMU_PTE_L };
	for (u32 i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		pte[7] = bad[i];
		CHECK(user_load(AREA + 7 * PAGE) == 13);
		CHECK(pte[7] == bad[i] && smu(SMU_CNT_REQUESTS) == requests);
	}
	pte[7] = good;
	CHECK(word(7) == 7 * 8);

	/* REQ: SMU-6: a bad descriptor, an error of the device, and an empty ring end a miss as page faults. */
	arm(10, 80, 1ULL << 51);
	CHECK(user_load(AREA + 10 * PAGE) == 13 && smu(SMU_CNT_FAIL_DESCRIPTOR) == 1);
	arm(10, 80, 1ULL << 54);
	CHECK(user_load(AREA + 10 * PAGE) == 13 && smu(SMU_CNT_FAIL_DESCRIPTOR) == 2);
	arm(11, (1ULL << 40), 0);
	u64 returned = smu(SMU_CNT_RETURNED);
	CHECK(user_load(AREA + 11 * PAGE) == 13 && smu(SMU_CNT_FAIL_DEVICE) == 1);
	CHECK((smu(SMU_LAST_ERROR) & 0xff) == 0x80);	/* LBA out of range */
	CHECK(smu(SMU_CNT_RETURNED) == returned + 1 && (u32)smu(SMU_RET_TAIL) == 1);
	CHECK(ret_ring[0][1] == SMU_REASON_DEVICE);
	for (u32 i = 20; !(smu(SMU_CNT_FAIL_NO_FRAME)); i++) {
		CHECK(i < 40);
		if (user_load(AREA + i * PAGE) == USER_CALL)
			CHECK(word(i) == i * 8);
		else
			CHECK(faults[0].cause == 13);
	}
	/* The SMU got 8 frames: one came back after the device error, and the other 7 are mapped. */
	CHECK(smu(SMU_CNT_INSTALLED) == 7);
	u64 frame = give_frame();
	CHECK(word(50) == 50 * 8 && (pte[50] >> 10 & 0xfffffffffffULL) == frame >> 12);

	/* REQ: SMU-5, SMU-6: a disabled SMU serves no miss, and gives prefetched frames back. */
	give_frame();
	give_frame();
	smu_write(SMU_CTRL, 0);
	CHECK(user_load(AREA + 51 * PAGE) == 13 && smu(SMU_CNT_FAIL_DISABLED) == 1);
	smu_fence();
	smu_write(SMU_CTRL, SMU_CTRL_ENABLE);

	/* REQ: ISA-6: a bus error becomes an access fault. The queue of descriptor 1 is outside memory. */
	smu_write(desc(1, SMU_DESC_SQ_BASE), 0x1000);
	smu_write(desc(1, SMU_DESC_CQ_BASE), 0x2000);
	smu_write(desc(1, SMU_DESC_SQ_DB), NVME + 0x1008);
	smu_write(desc(1, SMU_DESC_CQ_DB), NVME + 0x100c);
	smu_write(desc(1, SMU_DESC_DEPTH), QDEPTH);
	smu_write(desc(1, SMU_DESC_NSID), 1);
	smu_write(desc(1, SMU_DESC_BLOCKS), 3);
	smu_write(desc(1, SMU_DESC_CTRL), SMU_DESC_CTRL_VALID);
	arm(52, 52 * 8, 1ULL << 51);
	give_frame();
	CHECK(user_load(AREA + 52 * PAGE) == 5 && smu(SMU_CNT_FAIL_BUS) == 1);

	/* A load that crosses from one page to the next waits for both. */
	give_frame();
	give_frame();
	CHECK(user_word(AREA + 55 * PAGE - 4) == ((u64)(55 * 8) << 32));
	CHECK(pte[54] & SMU_PTE_V && pte[55] & SMU_PTE_V);
	/* REQ: ISA-7: the hart's counter of served misses does not count failures. */
	CHECK(csr_read(0xdc0) == smu(SMU_CNT_INSTALLED));
	finish(0);
}
