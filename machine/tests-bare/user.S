/* SPDX-License-Identifier: Apache-2.0 */
/* A user program behind a page table, with accesses that are known one by one: for debuggers and traces. It runs at UP
 * below its physical address. The gigapage at its physical address is mapped as well, but nobody has accessed it (A=0). */
#include "test.h"
#define UP 0x40000000
#define V_R_W 0x07
#define V_R_W_X_U_A_D 0xdf
#define GIGAPAGE (0x80000000 >> 2)
	BEGIN
	lla t0, root
	li t1, GIGAPAGE | V_R_W_X_U_A_D
	sd t1, 8(t0)
	li t1, GIGAPAGE | V_R_W
	sd t1, 16(t0)
	srli t0, t0, 12
	li t1, 8 << 60
	or t0, t0, t1
	csrw satp, t0
	li t0, 3 << 11
	csrc mstatus, t0
	lla t0, user
	li t1, UP
	sub t0, t0, t1
	csrw mepc, t0
	mret
	END

	.section .text
	.balign 4096
	.globl user, loop, done, data, root
user:
	lla s0, data
	li a1, 0x4000
	add s1, s0, a1
	ld a0, 0(s0)
	sd a0, 8(s0)
	li a2, 4092
	add a2, s0, a2
	ld a0, 0(a2)
	li t0, 100
loop:
	ld a0, 64(s0)
	addi t0, t0, -1
	bnez t0, loop
	sd a0, 0(s1)
	amoadd.d a0, a1, (s1)
	lw a0, 4(s1)
done:
	lla t0, tohost
	li a0, 1
	sd a0, (t0)
	j .

	.data
	.balign 4096
root:
	.space 4096
data:
	.space 0x5000
