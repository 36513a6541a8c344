/* SPDX-License-Identifier: Apache-2.0 */
/* Start, traps, and the change into other modes and back for `run` (walk.h). Everything else is in C. */
	.section .text.init, "ax", @progbits
	.globl _start
_start:
	la sp, machine_stack_end
	la t0, area
	csrw mscratch, t0
	la t0, trap_entry
	csrw mtvec, t0
	li t0, -1
	csrw pmpaddr0, t0
	li t0, 0x1f
	csrw pmpcfg0, t0
	la t0, bss_start
	la t1, _end
1:	sd zero, (t0)
	addi t0, t0, 8
	bltu t0, t1, 1b
	la sp, machine_stack_end
	call main
	li a0, 1
	.globl finish
finish:	/* a0: 1, or case << 1 | 1 */
	li t0, 0x10000000
	sd a0, (t0)
1:	j 1b

	.macro each op, base
	.irp r, 1,2,3,4,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	\op x\r, \r*8(\base)
	.endr
	.endm

	/* x5 (t0) points to the area while the other registers are saved there. */
	.balign 4
trap_entry:
	csrrw t0, mscratch, t0
	each sd, t0
	csrr t1, mscratch
	sd t1, 5*8(t0)
	csrw mscratch, t0
	la sp, trap_stack_end
	mv a0, t0
	call trap
	la t0, area
	each ld, t0
	ld t0, 5*8(t0)
	mret

	/* struct result *run(mode, function, argument, result): a0 mode, a1 function, a2 argument, a3 stack */
	.globl enter
enter:
	la t0, back
	.irp r, 0,1,2,3,4,5,6,7,8,9,10,11
	sd s\r, \r*8(t0)
	.endr
	sd ra, 12*8(t0)
	sd sp, 13*8(t0)
	li t1, 3 << 11
	csrc mstatus, t1
	slli a0, a0, 11
	csrs mstatus, a0
	csrw mepc, a1
	mv a0, a2
	mv sp, a3
	la ra, leave_call
	/* S-mode runs at the alias addresses. */
	la t0, alias
	ld t0, (t0)
	add ra, ra, t0
	mret
leave_call:
	li a7, 0
	ecall

	/* Called by the trap handler: goes back to the caller of `enter`. */
	.globl leave
leave:
	li t1, 1 << 17
	csrc mstatus, t1
	la t0, back
	.irp r, 0,1,2,3,4,5,6,7,8,9,10,11
	ld s\r, \r*8(t0)
	.endr
	ld ra, 12*8(t0)
	ld sp, 13*8(t0)
	ret

	.bss
	.balign 16
	.space 4096
machine_stack_end:
	.space 4096
trap_stack_end:
area:	.space 32*8
back:	.space 14*8
	.globl alias
alias:	.space 8
