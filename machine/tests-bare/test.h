/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up and verdict of a bare-metal test in the convention of riscv-tests: 1 in `tohost` is success, (n << 1 | 1)
 * the failure of test case n. */

/* ALL_HARTS, defined before, lets every hart run the test; else the others stay out of it. */
#ifdef ALL_HARTS
#define ONLY_FIRST
#else
#define ONLY_FIRST csrr t0, mhartid; bnez t0, park
#endif

#define BEGIN                                                                                                          \
	.section .text.init, "ax", @progbits;                                                                          \
	.globl _start;                                                                                                 \
_start:                                                                                                                \
	ONLY_FIRST;                                                                                                    \
	/* What a hart may lack is tried under a trap vector just behind it. */                                        \
	la t0, 1f;                                                                                                     \
	csrw mtvec, t0;                                                                                                \
	csrwi 0x744, 8;                                                                                                \
	.balign 4;                                                                                                     \
1:	la t0, unexpected;                                                                                             \
	csrw mtvec, t0;                                                                                                \
	li t0, -1;                                                                                                     \
	csrw pmpaddr0, t0;                                                                                             \
	li t0, 0x1f;                                                                                                   \
	csrw pmpcfg0, t0;                                                                                              \
	li gp, 1

/* The registers' values differ: test case `n` fails. */
#define EXPECT(n, reg, value)                                                                                          \
	li gp, n;                                                                                                      \
	li t6, value;                                                                                                  \
	bne reg, t6, fail

#define END                                                                                                            \
pass:                                                                                                                  \
	li gp, 1;                                                                                                      \
	j verdict;                                                                                                     \
	.balign 4;                                                                                                     \
unexpected:                                                                                                            \
fail:                                                                                                                  \
	slli gp, gp, 1;                                                                                                \
	ori gp, gp, 1;                                                                                                 \
verdict:                                                                                                               \
	la t0, tohost;                                                                                                 \
	sd gp, (t0);                                                                                                   \
park:                                                                                                                  \
	j park;                                                                                                        \
	.section .tohost, "aw", @progbits;                                                                             \
	.balign 64;                                                                                                    \
	.globl tohost;                                                                                                 \
tohost:                                                                                                                \
	.dword 0
