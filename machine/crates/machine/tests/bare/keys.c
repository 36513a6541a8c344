/* SPDX-License-Identifier: Apache-2.0 */
/* Does something of everything that a key of a profile is about, so that a change of the key changes what the run measures. */
#include "bare.h"

#define HARTS 4
#define SHARED_PAGES 32
#define SPREAD 200			/* pages with one line each */
#define SPREAD_FIRST 256		/* their first entry in the leaf table */
#define STRIDE (4UL << 20)		/* all caches and TLBs have what is so far apart in one set */
#define MOST_WAYS 48
#define RAM 0x80000000UL
#define FAR (RAM + (64UL << 20))
#define UART_LINE_STATUS 0x10000005UL
#define RET 0x8082			/* c.jr ra */
#define NVME_FLUSH 0
#define NVME_WRITE 1
#define NVME_READ 2
#define NVME_UNKNOWN 0x7f		/* refused as soon as it is read */
#define PAGE_BLOCKS 8
#define LARGE_PAGES 32
#define READS 40

#define TABLE __attribute__((aligned(4096)))
static TABLE unsigned char spread[SPREAD][PAGE], buffer[PAGE];
static TABLE volatile u64 flat[512], prp_list[512];
static TABLE u32 io_sq[QDEPTH * 16];
static TABLE volatile u32 io_cq[QDEPTH * 4];
static u32 io_tail, io_head, io_phase = 1;
static volatile u64 ready, arrived, counter[16];

/* A turn of a loop that waits: few instructions in many cycles. */
static void pause(void)
{
	asm volatile("div t0, t0, t1" ::: "t0");
}

static void milestone(u64 number) { MARKER(SMU_MARKER_MILESTONE, number, 0, 0); }

static void __attribute__((noreturn)) sleep_for_ever(void)
{
	for (;;)
		asm volatile("wfi");
}

/* What all harts do at once: misses of different pages and of the same ones, and stores to one line. */
static void together(u64 hart)
{
	for (u64 i = 0; i < SHARED_PAGES; i++)
		user_word(AREA + (i + hart) % SHARED_PAGES * PAGE);
	for (u64 i = 0; i < 100; i++) {
		__atomic_fetch_add(&counter[0], 1, __ATOMIC_SEQ_CST);
		counter[1 + hart]++;
	}
}

static void each_instruction(void)
{
	static u64 place[2];

	for (u64 i = 0; i < 40; i++)
		asm volatile("la	t0, 1f\n"
			     "jr	t0\n"
			     "1: j	2f\n"
			     "2: beq	zero, zero, 3f\n"
			     "3: bne	zero, zero, 3b\n"
			     "mul	t1, t0, t0\n"
			     "div	t1, t1, t0\n"
			     "ld	t1, 0(%0)\n"
			     "sd	t1, 0(%0)\n"
			     "ld	t1, 1(%0)\n"
			     "amoadd.d	t1, zero, (%0)\n"
			     "fcvt.d.l	ft0, t0\n"
			     "fmv.d	ft1, ft0\n"
			     "fadd.d	ft0, ft0, ft1\n"
			     "fmul.d	ft0, ft0, ft1\n"
			     "fmadd.d	ft0, ft0, ft1, ft1\n"
			     "fdiv.d	ft0, ft0, ft1\n"
			     "fsqrt.d	ft0, ft0\n"
			     "csrr	t1, sscratch\n"
			     "fence\n"
			     ".word	0x0000100f\n"	/* fence.i */
			     "sfence.vma\n"
			     :: "r"(place) : "t0", "t1", "ft0", "ft1", "memory");
}

static void devices_traps_and_time(void)
{
	for (u64 i = 0; i < 4; i++) {
		*(volatile unsigned char *)UART_LINE_STATUS;
		probe_load(0x8000000000);
	}
	for (u64 from = csr_read(time); csr_read(time) < from + 3;)
		;
	/* Which is the deepest mode? One leaf of the top level maps all there is. */
	u64 before = csr_read(satp);
	flat[0] = SMU_PTE_V | SMU_PTE_R | SMU_PTE_W | SMU_PTE_X | SMU_PTE_A | SMU_PTE_D;
	for (u64 mode = 9; mode <= 10; mode++) {
		csr_write(satp, mode << 60 | (u64)flat >> 12);
		fence_vma();
		milestone(csr_read(satp) >> 60);
	}
	csr_write(satp, before);
	fence_vma();
	/* How much memory is there? */
	for (u64 size = 16UL << 20; size <= 2UL << 30; size *= 2)
		milestone(probe_load(RAM + size - 8));
}

/* Stores to, loads from and calls at `count` places, `step` apart and each in another line if `lines`. */
static void visit(u64 at, u64 step, u64 lines, u64 count)
{
	for (u64 i = 0; i < count; i++)
		*(volatile u16 *)(at + i * step + i % 64 * lines) = RET;
	asm volatile(".word 0x0000100f" ::: "memory");
	for (u64 round = 0; round < 2; round++)
		for (u64 i = 0; i < count; i++)
			*(volatile u64 *)(at + i * step + i % 64 * lines);
	for (u64 round = 0; round < 2; round++)
		for (u64 i = 0; i < count; i++)
			((void (*)(void))(at + i * step + i % 64 * lines))();
}

static void memory(void)
{
	for (u64 i = 0; i < SPREAD; i++)
		pte[SPREAD_FIRST + i] = (u64)spread[i] >> 2 | SMU_PTE_V | SMU_PTE_R | SMU_PTE_W | SMU_PTE_X | SMU_PTE_A | SMU_PTE_D;
	/* The same leaf table again and again. */
	for (u64 i = 0; i < MOST_WAYS; i++)
		pmd[2 * i] = (u64)pte >> 2 | SMU_PTE_V;
	fence_vma();
	for (u64 count = 3; count <= MOST_WAYS; count *= 2) {
		visit(FAR, STRIDE, 0, count);
		visit(AREA + SPREAD_FIRST * PAGE, STRIDE, 0, count);
		/* Another page under the same upper entries. */
		visit(AREA + (SPREAD_FIRST + 1) * PAGE, STRIDE, 0, count);
		fence_vma();
	}
	visit(AREA + SPREAD_FIRST * PAGE, PAGE, 64, SPREAD);
}

static void __attribute__((noinline)) leaf(void) { asm volatile(""); }
static void __attribute__((noinline)) other_leaf(void) { asm volatile("nop"); }
static void (*volatile functions[2])(void) = { leaf, other_leaf };

static void __attribute__((noinline)) down(u64 depth)
{
	if (depth)
		down(depth - 1);
	asm volatile("");
}

static void jumps(void)
{
	for (u64 i = 0; i < 400; i++)
		asm volatile("beqz %0, 1f\nnop\n1:" :: "r"(0x9d2c5680b5026f5aUL >> i % 64 & 1));
	for (u64 i = 0; i < 20; i++) {
		functions[0]();
		functions[1]();
		down(12);
	}
}

/* A command to the drive; what its pages are for does not matter, so that all are the same. */
static void io(u32 opcode, u64 lba, u32 blocks)
{
	u32 *c = &io_sq[io_tail * 16];

	for (int i = 0; i < 16; i++)
		c[i] = 0;
	c[0] = opcode | io_tail << 16;
	c[1] = 1;
	if (opcode != NVME_FLUSH) {
		*(u64 *)&c[6] = (u64)buffer;
		*(u64 *)&c[8] = (u64)prp_list;
		c[10] = lba;
		c[12] = blocks - 1;
	}
	io_tail = (io_tail + 1) % QDEPTH;
}

static void io_wait(u32 count)
{
	asm volatile("fence" ::: "memory");
	REG32(NVME + 0x1010) = io_tail;
	for (; count; count--) {
		while ((io_cq[io_head * 4 + 3] >> 16 & 1) != io_phase)
			pause();
		io_head = (io_head + 1) % QDEPTH;
		io_phase ^= !io_head;
	}
	REG32(NVME + 0x1014) = io_head;
	milestone(io_tail);			/* what comes later may make up for what this took */
}

static void drive(void)
{
	for (u64 i = 0; i < 512; i++)
		prp_list[i] = (u64)buffer;
	milestone(REG64(NVME) & 0xffff);			/* MQES */
	milestone(admin(0x0a, 0, 7, 0));			/* number of queues */
	admin(0x06, (u64)buffer, 1, 0);				/* identify the controller */
	milestone(buffer[77]);					/* MDTS */
	admin(0x05, (u64)io_cq, (QDEPTH - 1) << 16 | 2, 1);
	admin(0x01, (u64)io_sq, (QDEPTH - 1) << 16 | 2, 2 << 16 | 1);
	for (u32 i = 0; i < READS; i++)
		io(NVME_READ, i * PAGE_BLOCKS, PAGE_BLOCKS);
	io_wait(READS);
	io(NVME_WRITE, 0, PAGE_BLOCKS);
	io_wait(1);
	for (u32 i = 0; i < 16; i++)
		io(NVME_WRITE, i * LARGE_PAGES * PAGE_BLOCKS, LARGE_PAGES * PAGE_BLOCKS);
	io_wait(16);
	/* Behind what is being programmed. */
	for (u32 i = 0; i < READS; i++)
		io(NVME_READ, i * 4 * PAGE_BLOCKS, PAGE_BLOCKS);
	io_wait(READS);
	io(NVME_FLUSH, 0, 0);
	io_wait(1);
	io(NVME_UNKNOWN, 0, 1);
	io_wait(1);
}

void main(u64 hart)
{
	if (hart >= HARTS)
		sleep_for_ever();
	if (!hart) {
		platform_start();
		smu_start(SHARED_PAGES);
		for (u32 i = 0; i < SHARED_PAGES; i++)
			arm(i, i * PAGE_BLOCKS, 0);
		ready = 1;
	}
	while (!ready)
		pause();
	paging_on();
	csr_write(0x5c0, 1);
	csr_set(sstatus, 1 << 13);		/* floating point */
	__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
	while (arrived < HARTS)
		;
	together(hart);
	if (hart)
		sleep_for_ever();
	each_instruction();
	devices_traps_and_time();
	memory();
	jumps();
	drive();
	finish(0);
}
