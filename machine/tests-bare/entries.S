/* SPDX-License-Identifier: Apache-2.0 */
/* Page table entries that are malformed or forbid an access, non-canonical addresses, and tables and pages that PMP denies:
 * a load, store, AMO, LR and fetch of each raise the exception that the privileged specification names, with the virtual
 * address as trap value, and neither read nor write anything. Without Svnapot, Svpbmt, Svrsw60t59b and Svadu. */
#include "test.h"
#define V	0x01
#define R	0x02
#define W	0x04
#define X	0x08
#define U	0x10
#define A	0x40
#define D	0x80
#define SOFTWARE 0x320	/* G, and the two bits for software, of which 9 is the mark (spec/isa.md): legal everywhere */
#define LEAF	(D | A | X | W | R | V)
#define BASE	0x80000000	/* of memory: what the pages of 1 GiB and 2 MiB map */
#define VIRTUAL	0x40000000	/* the page lies this much below its physical address, whatever its size */
#define DEVICE	0x10000000
#define MAGIC	0x123456	/* what lies at DATA in the page */
#define DATA	8

/* Modes, as in mstatus.MPP. */
#define USER	0
#define SUPER	(1 << 11)
#define MACHINE	(3 << 11)
#define MPRV	(1 << 17)
#define SUM	(1 << 18)
#define MXR	(1 << 19)

/* Kinds of access: bits of these that read, and that write. */
#define FETCH	4
#define KINDS	5
#define READS	0b01101
#define WRITES	0b00110

/* The three entries of the walk; s5 to s7 are well-formed ones, s8 that for a large page. */
#define ROOT	(s2)
#define MIDDLE	(s3)
#define LOWEST	(s4)
#define TO_MIDDLE s5
#define TO_LOWEST s6
#define PAGE	s7
#define LARGE	s8

/* Case `n`: every kind of access ends as the table says. */
#define EXPECT_ALL(n, table)	li gp, n; la a2, table; jal everywhere
/* Entry `where` is `good` with each of the bits `first` to `last`, one after the other: page faults. */
#define EACH_BIT(n, where, good, first, last)										\
	li a6, first;													\
7:	li t0, 1;													\
	sll t0, t0, a6;													\
	or t0, t0, good;												\
	sd t0, where;													\
	EXPECT_ALL(n, page_faults);											\
	addi a6, a6, 1;													\
	li t0, last;													\
	ble a6, t0, 7b;													\
	sd good, where
/* Entry `where` is `good` with bits `off` cleared and bits `on` set. */
#define CHANGED(where, good, off, on)	not t0, good; ori t0, t0, off; not t0, t0; ori t0, t0, on; sd t0, where
/* PMP allows the 4 KiB at `page` only what `rights` say. */
#define PMP(page, rights)	la a6, page; li a7, rights; jal restrict

	BEGIN
	la t0, handler
	csrw mtvec, t0
	la s2, root
	addi s2, s2, 8	/* of VIRTUAL */
	la s3, middle
	la s4, lowest
	la a0, target
	srli t0, a0, 12
	andi t0, t0, 511
	slli t0, t0, 3
	add s4, s4, t0
	la t0, middle
	srli t0, t0, 2
	ori TO_MIDDLE, t0, V
	la t0, lowest
	srli t0, t0, 2
	ori TO_LOWEST, t0, V
	srli t0, a0, 2
	ori PAGE, t0, LEAF
	li LARGE, BASE >> 2 | LEAF
	sd TO_MIDDLE, ROOT
	sd TO_LOWEST, MIDDLE
	sd PAGE, LOWEST
	la t0, root
	srli t0, t0, 12
	li t1, 8 << 60
	or t0, t0, t1
	csrw satp, t0
	mv a4, a0
	li t0, VIRTUAL
	sub a0, a0, t0
	li a3, SUPER

	EXPECT_ALL(2, fine)
	/* Legal bits. */
	ori t0, TO_MIDDLE, SOFTWARE
	sd t0, ROOT
	ori t0, TO_LOWEST, SOFTWARE
	sd t0, MIDDLE
	ori t0, PAGE, SOFTWARE
	sd t0, LOWEST
	EXPECT_ALL(3, fine)
	sd TO_MIDDLE, ROOT
	sd TO_LOWEST, MIDDLE
	sd PAGE, LOWEST

	/* Reserved bits: 63:54 everywhere; U, A, D in pointers. */
	EACH_BIT(10, ROOT, TO_MIDDLE, 54, 63)
	EACH_BIT(11, MIDDLE, TO_LOWEST, 54, 63)
	EACH_BIT(12, LOWEST, PAGE, 54, 63)
	EACH_BIT(13, ROOT, TO_MIDDLE, 4, 4)
	EACH_BIT(14, ROOT, TO_MIDDLE, 6, 7)
	EACH_BIT(15, MIDDLE, TO_LOWEST, 4, 4)
	EACH_BIT(16, MIDDLE, TO_LOWEST, 6, 7)
	EXPECT_ALL(17, fine)
	sd LARGE, MIDDLE
	EXPECT_ALL(20, fine)
	EACH_BIT(21, MIDDLE, LARGE, 54, 63)
	/* Large pages that are not aligned. */
	EACH_BIT(22, MIDDLE, LARGE, 10, 18)
	EXPECT_ALL(23, fine)
	/* Writable and not readable. */
	CHANGED(MIDDLE, LARGE, R, 0)
	EXPECT_ALL(24, page_faults)
	sd TO_LOWEST, MIDDLE
	sd LARGE, ROOT
	EXPECT_ALL(30, fine)
	EACH_BIT(31, ROOT, LARGE, 54, 63)
	EACH_BIT(32, ROOT, LARGE, 10, 27)
	EXPECT_ALL(33, fine)
	CHANGED(ROOT, LARGE, R, 0)
	EXPECT_ALL(34, page_faults)
	sd TO_MIDDLE, ROOT
	CHANGED(LOWEST, PAGE, R, 0)
	EXPECT_ALL(35, page_faults)
	CHANGED(LOWEST, PAGE, R | X, 0)
	EXPECT_ALL(36, page_faults)
	CHANGED(MIDDLE, TO_LOWEST, 0, W)
	EXPECT_ALL(37, page_faults)
	sd TO_LOWEST, MIDDLE
	/* A pointer at the last level. */
	CHANGED(LOWEST, PAGE, LEAF, V)
	EXPECT_ALL(38, page_faults)
	/* Not valid: nothing else matters. */
	li t0, -1 << 1
	sd t0, LOWEST
	EXPECT_ALL(39, page_faults)
	sd t0, MIDDLE
	EXPECT_ALL(40, page_faults)
	sd TO_LOWEST, MIDDLE
	sd PAGE, LOWEST
	EXPECT_ALL(41, fine)

	/* Permissions; A and D (Svade). */
	CHANGED(LOWEST, PAGE, A, 0)
	EXPECT_ALL(50, page_faults)
	CHANGED(LOWEST, PAGE, D, 0)
	EXPECT_ALL(51, no_writes)
	CHANGED(LOWEST, PAGE, W, 0)
	EXPECT_ALL(52, no_writes)
	CHANGED(LOWEST, PAGE, X, 0)
	EXPECT_ALL(53, no_fetches)
	CHANGED(LOWEST, PAGE, R | W, 0)
	EXPECT_ALL(54, fetches_only)
	li t0, MXR
	csrs mstatus, t0
	EXPECT_ALL(55, no_writes)
	/* MXR holds at once, without a fence. */
	li t0, MXR
	csrc mstatus, t0
	li gp, 56
	la a2, fetches_only
	jal unfenced
	CHANGED(LOWEST, PAGE, 0, U)
	EXPECT_ALL(57, page_faults)
	li t0, SUM
	csrs mstatus, t0
	EXPECT_ALL(58, no_fetches)
	li t0, SUM
	csrc mstatus, t0
	/* Also where the page has no memory. */
	li t0, DEVICE >> 2 | U | LEAF
	sd t0, LOWEST
	EXPECT_ALL(59, page_faults)
	CHANGED(LOWEST, PAGE, 0, U)
	li a3, USER
	EXPECT_ALL(60, fine_for_user)
	sd PAGE, LOWEST
	EXPECT_ALL(61, page_faults)
	li a3, SUPER

	/* Addresses whose bits 63:39 are not as bit 38, with the page in the TLBs and without. */
	mv s1, a0
	li a6, 39
1:	li t0, 1
	sll t0, t0, a6
	or a0, s1, t0
	EXPECT_ALL(70, page_faults)
	mv a0, s1
	EXPECT_ALL(71, fine)
	li t0, 1
	sll t0, t0, a6
	or a0, s1, t0
	li gp, 72
	la a2, page_faults
	jal unfenced
	mv a0, s1
	addi a6, a6, 1
	li t0, 63
	ble a6, t0, 1b
	li t0, -1 << 39
	or a0, s1, t0
	EXPECT_ALL(73, page_faults)
	mv a0, s1
	EXPECT_ALL(74, fine)

	/* Tables and page denied by PMP. */
	PMP(root, 0)
	EXPECT_ALL(80, access_faults)
	PMP(middle, 0)
	EXPECT_ALL(81, access_faults)
	PMP(lowest, 0)
	EXPECT_ALL(82, access_faults)
	PMP(target, 0)
	EXPECT_ALL(83, access_faults)
	PMP(target, R >> 1)
	EXPECT_ALL(84, reads_pass)
	PMP(target, (R | W) >> 1)
	EXPECT_ALL(85, fetches_denied)
	PMP(target, X >> 1)
	EXPECT_ALL(86, fetches_pass)
	/* The walker reads and writes nothing. */
	PMP(lowest, R >> 1)
	EXPECT_ALL(87, fine)
	PMP(lowest, X >> 1)
	EXPECT_ALL(88, access_faults)
	/* What lies in a table that is denied does not matter; a page that is denied does not, if its entry is at fault. */
	sd zero, LOWEST
	EXPECT_ALL(89, access_faults)
	PMP(target, 0)
	EXPECT_ALL(90, page_faults)
	CHANGED(LOWEST, PAGE, 0, U)
	EXPECT_ALL(91, page_faults)
	CHANGED(LOWEST, PAGE, X, U)
	li a3, USER
	EXPECT_ALL(92, denied_no_fetches)
	li a3, SUPER
	CHANGED(LOWEST, PAGE, D, 0)
	EXPECT_ALL(93, denied_no_writes)
	li t0, 1 << 54
	or t0, t0, PAGE
	sd t0, LOWEST
	EXPECT_ALL(94, page_faults)
	sd PAGE, LOWEST
	ori t0, TO_MIDDLE, A
	sd t0, ROOT
	PMP(middle, 0)
	EXPECT_ALL(95, page_faults)
	sd TO_MIDDLE, ROOT
	/* The walk is not begun for an address that cannot be. */
	li t0, 1 << 63
	or a0, a0, t0
	EXPECT_ALL(96, page_faults)
	mv a0, s1
	PMP(target, (R | W | X) >> 1)
	EXPECT_ALL(97, fine)
	j pass

	/* The 4 KiB at a6 get the rights a7 (R is 1, W 2, X 4), everything else has all. */
restrict:
	srli a6, a6, 2
	ori a6, a6, 0x1ff
	csrw pmpaddr0, a6
	li t0, -1
	csrw pmpaddr1, t0
	li t0, 0x1f18
	or t0, t0, a7
	csrw pmpcfg0, t0
	ret

	/* Each kind of access, at a0 (a fetch) or DATA behind it, as in mode a3, ends in the cause that the table at a2 says;
	 * -1: none. a4 is the physical address. */
everywhere:
	sfence.vma
unfenced:
	mv s9, ra
	li s10, 0
1:	li s0, -1
	li a5, 0
	li t1, MAGIC
	sd t1, DATA(a4)
	li t2, 1
	la s11, 4f
	li t0, MACHINE
	csrc mstatus, t0
	csrs mstatus, a3
	li t0, FETCH
	beq s10, t0, 3f
	addi t3, s10, -1
	addi t4, s10, -2
	addi t6, a0, DATA
	add t1, t1, t2
	li t0, MPRV
	csrs mstatus, t0
	beqz s10, 5f
	beqz t3, 6f
	beqz t4, 7f
	lr.d a5, (t6)
	j 2f
5:	ld a5, (t6)
	j 2f
6:	sd t1, (t6)
	j 2f
7:	amoadd.d a5, t2, (t6)
2:	li t0, MPRV
	csrc mstatus, t0
	j 4f
3:	mv t6, a0
	csrw mepc, t6
	mret
4:	ld t1, (a2)
	bne s0, t1, fail
	/* What was read, what was written. */
	addi t2, s0, 1
	seqz t2, t2
	li t3, READS
	srl t3, t3, s10
	and t3, t3, t2
	neg t3, t3
	li t1, MAGIC
	and t3, t3, t1
	bne a5, t3, fail
	li t3, WRITES
	srl t3, t3, s10
	and t3, t3, t2
	add t3, t3, t1
	ld t1, DATA(a4)
	bne t1, t3, fail
	/* The trap value; not of an ECALL, in which a fetch ends if it may. */
	addi t1, s0, -8
	sltiu t1, t1, 2
	or t1, t1, t2
	bnez t1, 5f
	bne s11, t6, fail
5:	addi a2, a2, 8
	addi s10, s10, 1
	li t0, KINDS
	blt s10, t0, 1b
	mv ra, s9
	ret

	.balign 4
handler:
	csrr s0, mcause
	csrw mepc, s11
	csrr s11, mtval
	li t0, MPRV
	csrc mstatus, t0
	li t0, MACHINE
	csrs mstatus, t0
	mret
	END

	.data
	.balign 8
	/* Load, store, AMO, LR, fetch. */
fine:			.dword -1, -1, -1, -1, 9
fine_for_user:		.dword -1, -1, -1, -1, 8
page_faults:		.dword 13, 15, 15, 13, 12
access_faults:		.dword 5, 7, 7, 5, 1
no_writes:		.dword -1, 15, 15, -1, 9
no_fetches:		.dword -1, -1, -1, -1, 12
fetches_only:		.dword 13, 15, 15, 13, 9
reads_pass:		.dword -1, 7, 7, -1, 1
fetches_denied:		.dword -1, -1, -1, -1, 1
fetches_pass:		.dword 5, 7, 7, 5, 9
denied_no_fetches:	.dword 5, 7, 7, 5, 12
denied_no_writes:	.dword 5, 15, 15, 5, 1

	.balign 4096
	.option norvc
target:
	ecall
	j .
	.dword 0
	.bss
	.balign 4096
root:	.space 4096
middle:	.space 4096
lowest:	.space 4096
