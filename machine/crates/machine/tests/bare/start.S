# SPDX-License-Identifier: Apache-2.0
# Every hart gets a stack and goes to main(hart) in S-mode, with page faults delegated to it.
#include "places.h"
.section .text.start, "ax"
.globl _start
_start:
	csrr	t0, mhartid
	la	sp, stacks
	addi	t1, t0, 1
	slli	t1, t1, 14
	add	sp, sp, t1
	mv	tp, t0
	li	t1, -1			# one PMP region over everything
	csrw	pmpaddr0, t1
	li	t1, 0x1f
	csrw	pmpcfg0, t1
	li	t1, -1
	csrw	mcounteren, t1
	li	t1, 0xffff
	csrw	medeleg, t1
	la	t1, trap_m
	csrw	mtvec, t1
	la	t1, timer_enable	# mie.MTIE, in programs that use the timer: elsewhere no interrupt can end a wait
	ld	t1, 0(t1)
	csrw	mie, t1
	la	t1, trap_entry
	csrw	stvec, t1
	li	t1, 0x1800
	csrc	mstatus, t1
	li	t1, 0x0800
	csrs	mstatus, t1
	la	t1, 1f
	csrw	mepc, t1
	mret
1:	mv	a0, tp
	call	main
	mv	a0, zero
	call	finish
	.balign	4
trap_m:
	csrw	mscratch, t0
	csrr	t0, mcause
	bltz	t0, 3f
fail_m:
	li	a0, 98
	call	finish
# Hart 0's timer: turns `timer_spin` times, and comes again after `timer_period`.
3:	sd	t1, -8(sp)
	la	t0, timer_spin
	ld	t1, 0(t0)
4:	addi	t1, t1, -1
	bgtz	t1, 4b
	la	t0, timer_period
	ld	t1, 0(t0)
	li	t0, 0x200bff8		# MTIME
	ld	t0, 0(t0)
	add	t1, t1, t0
	li	t0, 0x2004000		# MTIMECMP
	sd	t1, 0(t0)
	ld	t1, -8(sp)
	csrr	t0, mscratch
	mret

# Records a fault and resumes at the address in `resume` of this hart.
	.balign	4
.globl trap_entry
trap_entry:
	la	t0, faults
	slli	t1, tp, 5
	add	t0, t0, t1
	csrr	t1, scause
	sd	t1, 0(t0)
	csrr	t1, stval
	sd	t1, 8(t0)
	ld	t1, 16(t0)		# address to go on at; none: unexpected
	beqz	t1, 2f
	sd	zero, 16(t0)
	csrw	sepc, t1
	csrr	t1, sstatus		# back to S-mode
	ori	t1, t1, 0x100
	csrw	sstatus, t1
	sret
2:	li	a0, 99
	call	finish

# probe_load(address): 1 when the load faulted; probe_store(address, value) likewise. The value loaded is in `loaded`.
.globl probe_load
probe_load:
	la	t0, faults
	slli	t1, tp, 5
	add	t0, t0, t1
	la	t1, 3f
	sd	t1, 16(t0)
	ld	a1, 0(a0)
	sd	zero, 16(t0)
	sd	a1, 24(t0)
	li	a0, 0
	ret
3:	li	a0, 1
	ret
.globl probe_store
probe_store:
	la	t0, faults
	slli	t1, tp, 5
	add	t0, t0, t1
	la	t1, 3b
	sd	t1, 16(t0)
	sd	a1, 0(a0)
	sd	zero, 16(t0)
	li	a0, 0
	ret

# user_load(address), user_store(address, value): the access in U mode; scause of the trap that ends it, USER_CALL when it
# is done. What was loaded is in `loaded`. Hardware serves misses of U mode only.
.globl user_load
user_load:
	la	t2, 4f
	j	5f
.globl user_store
user_store:
	la	t2, 6f
5:	la	t0, faults
	slli	t1, tp, 5
	add	t0, t0, t1
	la	t1, 7f
	sd	t1, 16(t0)
	li	t1, USER_RAM - 0x80000000
	add	t2, t2, t1
	csrw	sepc, t2
	li	t1, 0x100		# to U mode
	csrc	sstatus, t1
	sret
7:	sd	a1, 24(t0)		# trap_entry leaves the address of this hart's record in t0
	ld	a0, 0(t0)
	ret
4:	ld	a1, 0(a0)
	ecall
6:	sd	a1, 0(a0)
	ecall

# finish(code): 0 passes.
.globl finish
finish:
	slli	a0, a0, 1
	ori	a0, a0, 1
	la	t0, tohost
	sd	a0, 0(t0)
1:	j	1b

.section .tohost, "aw"
.balign 64
.globl tohost
tohost:	.dword 0
.globl fromhost
fromhost: .dword 0
.balign 8
.weak timer_enable
timer_enable: .dword 0
.bss
.balign 4096
.globl timer_period
timer_period: .dword 0
.globl timer_spin
timer_spin: .dword 0
.balign 4096
.globl faults
faults:	.skip 32 * 8
.balign 4096
stacks:	.skip 16384 * 8
