/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the SoC's parts from the core's side: console, atomic operations, traps, timer, software and external interrupts, the
 * time CSR, floating point division. Prints a greeting and ends by the test finisher: 0, or the number of the failed check. */
#define FINISHER	0x100000
#define MSIP		0x2000000
#define MTIMECMP	0x2004000
#define MTIME		0x200bff8
#define PLIC_PRIORITY	0xc000028	/* of source 10, the UART */
#define PLIC_ENABLE	0xc002000	/* context 0: machine mode */
#define PLIC_CLAIM	0xc200004
#define UART		0x10000000
#define UART_SOURCE	10

/* Check `n` fails if the register differs from the value. */
#define EXPECT(n, reg, value)	li gp, n; li t6, value; bne reg, t6, fail
/* Wait for a trap. Then s0 has its cause. */
#define WAIT			li s0, 0; 9: beqz s0, 9b

	.section .text.init, "ax", @progbits
	.globl _start
_start:
	la t0, trap
	csrw mtvec, t0
	la a0, hello
	li a1, UART
1:	lbu a2, (a0)
	beqz a2, 2f
	sb a2, (a1)
	addi a0, a0, 1
	j 1b
2:
	/* atomic operations */
	la a0, word
	li a1, 5
	amoadd.d a2, a1, (a0)
	EXPECT(1, a2, 40)
	amomaxu.w a2, a1, (a0)
	EXPECT(2, a2, 45)
	amoand.d a2, a1, (a0)
	EXPECT(3, a2, 45)
	ld a2, (a0)
	EXPECT(4, a2, 5)
	lr.d a2, (a0)
	addi a2, a2, 1
	sc.d a3, a2, (a0)
	EXPECT(5, a3, 0)
	sc.d a3, a2, (a0)
	sltu a3, zero, a3
	EXPECT(6, a3, 1)
	ld a2, (a0)
	EXPECT(7, a2, 6)

	/* traps */
	li s0, 0
	ecall
	EXPECT(10, s0, 11)
	.word 0
	EXPECT(11, s0, 2)

	/* timer; the time CSR counts with mtime */
	li a0, MTIME
	rdtime a1
	ld a2, (a0)
	sub a2, a2, a1
	sltiu a2, a2, 20
	EXPECT(12, a2, 1)
	ld a1, (a0)
	addi a1, a1, 30
	li a0, MTIMECMP
	sd a1, (a0)
	li a0, 1 << 7
	csrs mie, a0
	csrsi mstatus, 8
	WAIT
	EXPECT(13, s0, (1 << 63) | 7)

	/* software interrupt */
	li a0, 1 << 3
	csrs mie, a0
	li a0, MSIP
	li a1, 1
	sw a1, (a0)
	WAIT
	EXPECT(14, s0, (1 << 63) | 3)

	/* external interrupt: the UART has nothing to send */
	li a0, PLIC_PRIORITY
	li a1, 1
	sw a1, (a0)
	li a0, PLIC_ENABLE
	li a1, 1 << UART_SOURCE
	sw a1, (a0)
	li a0, 1 << 11
	csrs mie, a0
	li a0, UART
	li a1, 2
	sb a1, 1(a0)
	WAIT
	EXPECT(15, s0, (1 << 63) | 11)
	li a0, PLIC_CLAIM
	lw a1, (a0)
	EXPECT(16, a1, UART_SOURCE)

	/* floating point, if the core has it */
	csrr a0, misa
	andi a0, a0, 1 << 3
	beqz a0, pass
	li t0, 3 << 13
	csrs mstatus, t0
	li a0, 7
	li a1, 2
	fcvt.d.l fa0, a0
	fcvt.d.l fa1, a1
	fdiv.d fa0, fa0, fa1
	fmv.x.d a2, fa0
	EXPECT(20, a2, 0x400c000000000000)
	frflags a2
	EXPECT(21, a2, 0)
	fsqrt.d fa0, fa1
	frflags a2
	EXPECT(22, a2, 1)

pass:
	li a1, 0x5555
	j finish
fail:
	slli a1, gp, 16
	li a2, 0x3333
	or a1, a1, a2
finish:
	li a0, FINISHER
	sw a1, (a0)
1:	j 1b

	/* Notes the cause. Skips the instruction of an exception (4 bytes); turns an interrupt off. */
	.balign 4
trap:
	csrr s0, mcause
	bltz s0, 1f
	csrr s1, mepc
	addi s1, s1, 4
	csrw mepc, s1
	mret
1:	csrw mie, zero
	mret

	.data
hello:	.string "hello from the core\n"
	.balign 8
word:	.dword 40
