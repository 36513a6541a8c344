/* SPDX-License-Identifier: Apache-2.0 */
/* Four harts count together: by AMO, by LR and SC, and plainly under a lock. No count may be lost. */
#define ALL_HARTS
#include "test.h"
#define HARTS 4
#define ROUNDS 2000
	BEGIN
	j work
	END

	.section .text
work:
	la s0, counters
	li s1, ROUNDS
1:	li t0, 1
	amoadd.d zero, t0, (s0)
	addi s2, s0, 64
2:	lr.d t1, (s2)
	addi t1, t1, 1
	sc.d t2, t1, (s2)
	bnez t2, 2b
	addi s3, s0, 128
3:	li t0, 1
	amoswap.w.aq t1, t0, (s3)
	bnez t1, 3b
	ld t2, 64(s3)
	addi t2, t2, 1
	sd t2, 64(s3)
	amoswap.w.rl zero, zero, (s3)
	addi s1, s1, -1
	bnez s1, 1b
	li t0, 1
	addi s4, s0, 256
	amoadd.d zero, t0, (s4)
	csrr t0, mhartid
	bnez t0, park
	li t1, HARTS
4:	ld t0, (s4)
	bne t0, t1, 4b
	fence
	ld a0, (s0)
	EXPECT(2, a0, HARTS * ROUNDS)
	ld a0, 64(s0)
	EXPECT(3, a0, HARTS * ROUNDS)
	ld a0, 192(s0)
	EXPECT(4, a0, HARTS * ROUNDS)
	j pass

	.data
	.balign 64
counters:
	.space 320
