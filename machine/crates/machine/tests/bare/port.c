/* SPDX-License-Identifier: Apache-2.0 */
/* REQ: SMU-11: software asks through request ports, alone and from four harts at once. Block n of the drive holds words n. */
#include "bare.h"

#define BUSY_FOR_EVER 1000000

static volatile u64 ready, arrived, finished;

static u64 port(u64 n, u64 reg) { return SMU_PORT_BASE + n * SMU_PORT_STRIDE + reg; }

static void addresses(u64 n, u32 page)
{
	smu_write(port(n, SMU_PORT_PTE_ADDR), (u64)&pte[page]);
	smu_write(port(n, SMU_PORT_PMD_ADDR), (u64)&pmd[0]);
	smu_write(port(n, SMU_PORT_PUD_ADDR), (u64)&root[AREA >> 30]);
}

/* Asks and polls; STATUS without BUSY. */
static u64 ask(u64 n, u32 page, u64 entry)
{
	u64 status;

	addresses(n, page);
	asm volatile("fence" ::: "memory");
	smu_write(port(n, SMU_PORT_ENTRY), entry);
	for (u32 i = 0; (status = smu(port(n, SMU_PORT_STATUS))) & SMU_PORT_STATUS_BUSY; i++)
		CHECK(i < BUSY_FOR_EVER);
	return status;
}

static u64 outcome(u64 status) { return (status & SMU_PORT_STATUS_OUTCOME) >> 2; }
static u64 reason(u64 status) { return (status & SMU_PORT_STATUS_REASON) >> 8; }
static u64 word(u32 page) { return user_word(AREA + page * PAGE); }

static void one_hart(void)
{
	u64 status, entry;

	CHECK((smu(SMU_CAP) & SMU_CAP_PORTS) >> 40 == 4);
	CHECK(smu(port(0, SMU_PORT_STATUS)) == 0);

	/* An entry for software alone is an ordinary invalid one for the walker. */
	arm(5, 5 * 8, SMU_PTE_SOFT);
	CHECK(user_load(AREA + 5 * PAGE) == 13 && smu(SMU_CNT_REQUESTS) == 0);

	MARKER(SMU_MARKER_ROI_BEGIN, 1, 0, 0);
	status = ask(0, 5, pte[5]);
	MARKER(SMU_MARKER_ROI_END, 1, 0, 0);
	CHECK(outcome(status) == SMU_OUTCOME_DONE && reason(status) == 0);
	CHECK(smu(port(0, SMU_PORT_ANSWER)) == pte[5]);
	CHECK(pte[5] & SMU_PTE_V && pte[5] & SMU_PTE_L && !(pte[5] & SMU_PTE_SOFT));
	CHECK(pmd[0] & SMU_PTE_L && root[AREA >> 30] & SMU_PTE_L);
	CHECK(word(5) == 5 * 8);

	/* Also an entry that walkers serve. */
	arm(6, 6 * 8, 0);
	CHECK(outcome(ask(0, 6, pte[6])) == SMU_OUTCOME_DONE && word(6) == 6 * 8);
	CHECK(smu(SMU_CNT_REQUESTS) == 2 && smu(SMU_CNT_PORT_REQUESTS) == 2);

	/* Changed: also when nothing but SOFT differs. */
	arm(7, 7 * 8, SMU_PTE_SOFT);
	entry = pte[7];
	CHECK(outcome(ask(0, 7, entry & ~SMU_PTE_SOFT)) == SMU_OUTCOME_CHANGED);
	CHECK(smu(port(0, SMU_PORT_ANSWER)) == entry && pte[7] == entry);

	/* Failed: what no walker would ask, a wrong block, no descriptor, disabled. */
	status = ask(0, 7, entry | SMU_PTE_HIGH);
	CHECK(outcome(status) == SMU_OUTCOME_CHANGED);
	pte[7] = entry | SMU_PTE_G;
	status = ask(0, 7, pte[7]);
	CHECK(outcome(status) == SMU_OUTCOME_FAILED && reason(status) == SMU_REASON_DESCRIPTOR);
	arm(7, 1ULL << 40, SMU_PTE_SOFT);
	status = ask(0, 7, pte[7]);
	CHECK(outcome(status) == SMU_OUTCOME_FAILED && reason(status) == SMU_REASON_DEVICE);
	CHECK(smu(port(0, SMU_PORT_ANSWER)) == 0);
	arm(7, 7 * 8, SMU_PTE_SOFT | 1ULL << 51);
	CHECK(reason(ask(0, 7, pte[7])) == SMU_REASON_DESCRIPTOR);
	CHECK(!(smu(SMU_STATUS) & SMU_STATUS_ERROR));
	smu_write(SMU_CTRL, 0);
	arm(7, 7 * 8, SMU_PTE_SOFT);
	CHECK(reason(ask(0, 7, pte[7])) == SMU_REASON_DISABLED);
	smu_write(SMU_CTRL, SMU_CTRL_ENABLE);

	/* A fence waits for a port's request. */
	addresses(0, 7);
	smu_write(port(0, SMU_PORT_ENTRY), pte[7]);
	CHECK(smu(port(0, SMU_PORT_STATUS)) == SMU_PORT_STATUS_BUSY);
	smu_fence();
	CHECK(outcome(smu(port(0, SMU_PORT_STATUS))) == SMU_OUTCOME_DONE && pte[7] & SMU_PTE_V);

	/* Busy: nothing is written, and ERROR tells. A port beyond CAP.PORTS is not there. */
	arm(8, 8 * 8, SMU_PTE_SOFT);
	addresses(0, 8);
	smu_write(port(0, SMU_PORT_ENTRY), pte[8]);
	smu_write(port(0, SMU_PORT_PTE_ADDR), 0);
	CHECK(smu(port(0, SMU_PORT_PTE_ADDR)) == (u64)&pte[8] && smu(SMU_STATUS) & SMU_STATUS_ERROR);
	smu_fence();
	CHECK(pte[8] & SMU_PTE_V);
	smu_write(port(4, SMU_PORT_PTE_ADDR), 8);
	CHECK(smu(port(4, SMU_PORT_PTE_ADDR)) == 0);
}

void main(u64 hart)
{
	if (hart == 0) {
		platform_start();
		smu_start(200);
		paging_on();
		csr_write(0x5c0, 1);
		one_hart();
		for (u32 i = 100; i < 164; i++)
			arm(i, i * 8, i % 2 ? SMU_PTE_SOFT : 0);
		ready = 1;
	} else {
		while (!ready)
			;
		paging_on();
		csr_write(0x5c0, 1);
	}
	__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
	while (arrived < 4)
		;
	/* All harts use walkers for even pages and ports for odd pages; half of the harts use ports for all pages. */
	for (u32 i = 100; i < 164; i++) {
		u64 entry = pte[i];

		if ((entry & SMU_PTE_SOFT || hart % 2) && !(entry & SMU_PTE_V)) {
			u64 status = ask(hart, i, entry);

			CHECK(outcome(status) == SMU_OUTCOME_DONE || outcome(status) == SMU_OUTCOME_CHANGED);
			CHECK(smu(port(hart, SMU_PORT_ANSWER)) == pte[i]);
		}
		CHECK(word(i) == i * 8);
	}
	__atomic_fetch_add(&finished, 1, __ATOMIC_SEQ_CST);
	while (hart || finished < 4)
		;
	CHECK(smu(SMU_CNT_INSTALLED) == 4 + 64 && smu(SMU_CNT_COALESCED) > 0);
	CHECK(smu(SMU_CNT_PORT_REQUESTS) < smu(SMU_CNT_REQUESTS));
	finish(0);
}
