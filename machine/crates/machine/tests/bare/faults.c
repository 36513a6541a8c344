/* SPDX-License-Identifier: Apache-2.0 */
/* User code misses and faults on a watched mapping, for each reason that there is. */
#include "bare.h"

#define CODE 500		/* the area's page that has the code below */
#define LONG 10000

/* enter_user(pc, address): runs user code there until it traps; scause. */
u64 enter_user(u64 pc, u64 address);
asm(
".text\n"
".globl enter_user\n enter_user:\n"
" addi sp, sp, -128\n sd ra, 0(sp)\n sd gp, 8(sp)\n sd tp, 16(sp)\n sd s0, 24(sp)\n sd s1, 32(sp)\n csrw sscratch, sp\n"
" la t0, 1f\n csrw stvec, t0\n csrw sepc, a0\n li t0, 0x100\n csrc sstatus, t0\n mv a0, a1\n sret\n"
" .balign 4\n 1: csrr sp, sscratch\n ld ra, 0(sp)\n ld gp, 8(sp)\n ld tp, 16(sp)\n ld s0, 24(sp)\n ld s1, 32(sp)\n"
" addi sp, sp, 128\n la t0, trap_entry\n csrw stvec, t0\n csrr a0, scause\n ret\n"
".balign 4096\n user_load:\n ld a1, 0(a0)\n ecall\n user_store:\n sd a0, 0(a0)\n ecall\n .balign 4096\n"
);
extern char user_load[], user_store[];

static u64 data[512] __attribute__((aligned(4096)));

static u64 user(char *code) { return AREA + CODE * PAGE + (code - user_load); }

static void set(u32 page, u64 entry)
{
	pte[page] = entry;
	fence_vma();
}

static u64 here(u64 flags) { return (u64)data >> 2 | SMU_PTE_V | SMU_PTE_R | SMU_PTE_U | flags; }

/* The access faults with this cause; after the repair it is done. */
static void faults_once(char *code, u32 page, u64 cause, u64 repaired)
{
	CHECK(enter_user(user(code), AREA + page * PAGE) == cause);
	for (volatile u32 i = 0; page == 2 && i < LONG; i++)
		;
	set(page, repaired);
	CHECK(enter_user(user(code), AREA + page * PAGE) == 8);
}

void main(u64 hart)
{
	if (hart)
		for (;;)
			asm volatile("wfi");
	platform_start();
	smu_start(200);
	for (u32 i = 0; i < 100; i++)
		arm(i, i * 8, 0);
	pte[CODE] = (u64)user_load >> 2 | SMU_PTE_V | SMU_PTE_R | SMU_PTE_X | SMU_PTE_U | SMU_PTE_A;
	paging_on();
	csr_write(0x5c0, 1);
	MARKER(SMU_MARKER_WATCH, AREA, 100 * PAGE, 3);
	MARKER(SMU_MARKER_ROI_BEGIN, 1, 0, 0);

	CHECK(enter_user(user(user_load), AREA + PAGE) == 8);
	set(2, 0);
	faults_once(user_load, 2, 13, here(SMU_PTE_A));			/* not_armed */
	arm(3, 24, 1ULL << 51);
	faults_once(user_load, 3, 13, here(SMU_PTE_A));			/* descriptor */
	faults_once(user_store, 4, 15, here(SMU_PTE_A | SMU_PTE_W | SMU_PTE_D));	/* permission */
	set(5, here(0));
	faults_once(user_load, 5, 13, here(SMU_PTE_A));			/* accessed_dirty */
	csr_write(0x5c0, 0);
	CHECK(enter_user(user(user_load), AREA + 6 * PAGE) == 13);		/* hardware_off */
	csr_write(0x5c0, 1);
	CHECK(enter_user(user(user_load), AREA + 6 * PAGE) == 8);
	set(7, 0);
	CHECK(enter_user(user(user_load), AREA + 7 * PAGE) == 13);		/* not_armed, and left so */
	CHECK(enter_user(user(user_load), AREA + 200 * PAGE) == 13);		/* not watched */
	CHECK(*(volatile u64 *)(AREA + 8 * PAGE) == 64);			/* a miss of the kernel's, */
	CHECK(probe_store(AREA + 9 * PAGE, 1));				/* and a fault of its own */

	MARKER(SMU_MARKER_ROI_END, 1, 0, 0);
	CHECK(smu(SMU_CNT_INSTALLED) == 3);
	finish(0);
}
