/* SPDX-License-Identifier: Apache-2.0 */
/* A few instructions of each extension; all is well. */
#include "test.h"
	BEGIN
	li a0, -7
	li a1, 2
	rem a2, a0, a1
	EXPECT(2, a2, -1)
	la a3, word
	amoadd.w a2, a1, (a3)
	EXPECT(3, a2, 40)
	lw a2, (a3)
	EXPECT(4, a2, 42)
	li t0, 3 << 13
	csrs mstatus, t0
	fcvt.d.l fa0, a2
	fsqrt.d fa0, fa0
	fcvt.l.d a2, fa0, rtz
	EXPECT(5, a2, 6)
	END
	.data
	.balign 8
word:
	.word 40
