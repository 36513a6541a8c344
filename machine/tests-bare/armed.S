/* SPDX-License-Identifier: Apache-2.0 */
/* An armed entry where hardware paging is absent (ABSENT) or off, as it is after reset: the ordinary page fault with the
 * ordinary cause, for loads, stores and fetches. REQ: ISA-1 */
#include "test.h"
#define ARMED 0x252 /* L, A, U, R; block 0 */
	BEGIN
	la t0, handler
	csrw mtvec, t0
#ifdef ABSENT
	li gp, 2
	la s2, 1f
	csrr a0, 0x5c0
	j fail
1:	EXPECT(3, s0, 2)
	la s2, 1f
	csrr a0, 0x5c1
	li gp, 4
	j fail
1:	EXPECT(5, s0, 2)
	/* REQ: ISA-7 */
	li s0, 0
	la s2, 1f
	csrr a0, 0xdc0
	li gp, 13
	j fail
1:	EXPECT(14, s0, 2)
	li s0, 0
	la s2, 1f
	csrr a0, 0xdc1
	li gp, 15
	j fail
1:	EXPECT(16, s0, 2)
#else
	csrr a0, 0x5c0
	EXPECT(2, a0, 0)
	/* REQ: ISA-7: nothing is counted yet. */
	csrr a0, 0xdc0
	csrr a1, 0xdc1
	or a0, a0, a1
	EXPECT(13, a0, 0)
#endif
	/* Virtual 0x4000_0000 is an armed 4 KiB page. */
	la t0, middle
	srli t0, t0, 2
	ori t0, t0, 1
	la t1, root
	sd t0, 8(t1)
	la t0, lowest
	srli t0, t0, 2
	ori t0, t0, 1
	la t1, middle
	sd t0, (t1)
	li t0, ARMED
	la t1, lowest
	sd t0, (t1)
	la t0, root
	srli t0, t0, 12
	li t1, 8 << 60
	or t0, t0, t1
	csrw satp, t0
	sfence.vma
	li a0, 0x40000000
	/* As S-mode, with SUM, by MPRV. */
	li t0, 1 << 18 | 1 << 17 | 1 << 11
	li t1, 3 << 11
	la s2, 1f
	csrc mstatus, t1
	csrs mstatus, t0
	ld a1, 8(a0)
	li gp, 6
	j fail
1:	EXPECT(7, s0, 13)
	EXPECT(8, s1, 0x40000008)
	la s2, 1f
	csrc mstatus, t1
	csrs mstatus, t0
	sd a1, 16(a0)
	li gp, 9
	j fail
1:	EXPECT(10, s0, 15)
	/* U-mode goes there itself. */
	li t0, 1 << 17
	csrc mstatus, t0
	csrc mstatus, t1
	csrw mepc, a0
	la s2, 1f
	mret
1:	EXPECT(11, s0, 12)
	/* The entry is as it was. */
	la t1, lowest
	ld a1, (t1)
	EXPECT(12, a1, ARMED)
	j pass

	.balign 4
handler:
	csrr s0, mcause
	csrr s1, mtval
	csrw mepc, s2
	li s3, 1 << 17
	csrc mstatus, s3
	li s3, 3 << 11
	csrs mstatus, s3
	mret
	END
	.bss
	.balign 4096
root:	.space 4096
middle:	.space 4096
lowest:	.space 4096
