/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of calls whose instructions are counted by hand (tests/attribution.rs). */
#include "bare.h"

asm(
".text\n"
".globl leaf\n leaf:\n .rept 10\n nop\n .endr\n ret\n"				/* 11 */
".globl middle\n middle:\n addi sp, sp, -16\n sd ra, 8(sp)\n jal leaf\n jal leaf\n"	/* 7, leaf twice */
" ld ra, 8(sp)\n addi sp, sp, 16\n ret\n"
".globl tail\n tail:\n nop\n j leaf\n"						/* 2, and leaf returns for it */
".globl down\n down:\n beqz a0, 1f\n addi sp, sp, -16\n sd ra, 8(sp)\n addi a0, a0, -1\n"
" jal down\n ld ra, 8(sp)\n addi sp, sp, 16\n 1: ret\n"				/* 8, the last one 2 */
".globl spin\n spin:\n li t0, 100\n 1: addi t0, t0, -1\n bnez t0, 1b\n ret\n"	/* 202 */
".globl away\n away:\n addi sp, sp, -16\n sd ra, 8(sp)\n mv s1, sp\n jal jumper\n"	/* 6, two of them after the jump */
".globl landing\n landing:\n ld ra, 8(sp)\n addi sp, sp, 16\n ret\n"
".globl jumper\n jumper:\n nop\n mv sp, s1\n la t2, landing\n jr t2\n"		/* 5: a longjmp */
);
void leaf(void), middle(void), tail(void), spin(void), away(void);
void down(u64 n);

void main(u64 hart)
{
	if (hart)
		for (;;)
			asm volatile("wfi");
	MARKER(0x7a1, 1, 0, 0);
	for (int i = 0; i < 5; i++)
		middle();
	tail();
	down(5);
	spin();
	away();
	CHECK(probe_load(0x100) == 1);		/* nothing is there: a fault that trap_entry handles */
	middle();
	MARKER(0x7a2, 1, 0, 0);
}
