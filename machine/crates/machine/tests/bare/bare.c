/* SPDX-License-Identifier: Apache-2.0 */
#include "bare.h"

#define TABLE __attribute__((aligned(4096)))
TABLE volatile u64 root[512];
TABLE volatile u64 pmd[512];
TABLE volatile u64 pte[512];
TABLE volatile u64 sq[QDEPTH * 8];
TABLE volatile u64 cq[QDEPTH * 2];
TABLE volatile u64 free_ring[256][2];
TABLE volatile u64 ret_ring[512][2];
static TABLE u32 admin_sq[16 * 16];
static TABLE volatile u32 admin_cq[16 * 4];
static TABLE unsigned char frames[256][PAGE];
static u32 admin_tail, frames_given;

u32 admin(u32 opcode, u64 prp1, u32 cdw10, u32 cdw11)
{
	u32 *c = &admin_sq[admin_tail * 16];

	for (int i = 0; i < 16; i++)
		c[i] = 0;
	c[0] = opcode | admin_tail << 16;
	c[6] = prp1;
	c[7] = prp1 >> 32;
	c[10] = cdw10;
	c[11] = cdw11;
	volatile u32 *entry = &admin_cq[admin_tail * 4], *done = &entry[3];
	admin_tail++;
	asm volatile("fence" ::: "memory");
	REG32(NVME + 0x1000) = admin_tail;
	while (!(*done & 0x10000))
		;
	CHECK(*done >> 17 == 0);
	REG32(NVME + 0x1004) = admin_tail;
	return entry[0];
}

void platform_start(void)
{
	u64 dev = ECAM + (1 << 15);

	REG32(dev + 0x10) = NVME;
	REG32(dev + 0x14) = 0;
	REG32(dev + 0x04) = 0x6;		/* memory space, bus master */
	REG32(NVME + 0x24) = 15 << 16 | 15;	/* AQA */
	REG64(NVME + 0x28) = (u64)admin_sq;
	REG64(NVME + 0x30) = (u64)admin_cq;
	REG32(NVME + 0x14) = 4 << 20 | 6 << 16 | 1;
	while (!(REG32(NVME + 0x1c) & 1))
		;
	admin(0x05, (u64)cq, (QDEPTH - 1) << 16 | 1, 1);	/* create CQ 1, no interrupt */
	admin(0x01, (u64)sq, (QDEPTH - 1) << 16 | 1, 1 << 16 | 1);
}

u64 give_frame(void)
{
	u32 tail = smu(SMU_FREE_TAIL);
	u64 at = (u64)frames[frames_given++ % 256];

	free_ring[tail % 256][0] = at >> 12;
	free_ring[tail % 256][1] = at;
	asm volatile("fence" ::: "memory");
	smu_write(SMU_FREE_TAIL, tail + 1);
	return at;
}

void smu_start(u32 count)
{
	CHECK((u32)smu(SMU_ID) == SMU_ID_MAGIC_RESET);
	smu_write(SMU_FREE_BASE, (u64)free_ring);
	smu_write(SMU_FREE_SIZE, 256);
	smu_write(SMU_RET_BASE, (u64)ret_ring);
	smu_write(SMU_RET_SIZE, 512);
	while (count--)
		give_frame();
	smu_write(desc(0, SMU_DESC_SQ_BASE), (u64)sq);
	smu_write(desc(0, SMU_DESC_CQ_BASE), (u64)cq);
	smu_write(desc(0, SMU_DESC_SQ_DB), NVME + 0x1008);
	smu_write(desc(0, SMU_DESC_CQ_DB), NVME + 0x100c);
	smu_write(desc(0, SMU_DESC_DEPTH), QDEPTH);
	smu_write(desc(0, SMU_DESC_NSID), 1);
	smu_write(desc(0, SMU_DESC_BLOCKS), 3);
	smu_write(desc(0, SMU_DESC_CTRL), SMU_DESC_CTRL_VALID);
	smu_write(SMU_CTRL, SMU_CTRL_ENABLE);
	CHECK(smu(SMU_STATUS) & SMU_STATUS_ENABLED);
}

void arm(u32 index, u64 lba, u64 flags)
{
	pte[index] = SMU_PTE_L | SMU_PTE_R | SMU_PTE_U | SMU_PTE_A | lba << 10 | flags;
}

void paging_on(void)
{
	for (u64 i = 0; i < 4; i++)
		root[i] = i << 28 | SMU_PTE_V | SMU_PTE_R | SMU_PTE_W | SMU_PTE_X | SMU_PTE_A | SMU_PTE_D;
	root[USER_RAM >> 30] = 0x80000000 >> 2 | SMU_PTE_V | SMU_PTE_R | SMU_PTE_X | SMU_PTE_U | SMU_PTE_A;
	root[AREA >> 30] = (u64)pmd >> 2 | SMU_PTE_V;
	pmd[0] = (u64)pte >> 2 | SMU_PTE_V;
	csr_write(satp, 8ULL << 60 | (u64)root >> 12);
	fence_vma();
	csr_set(sstatus, 1 << 18);		/* SUM: the area is user pages, which the kernel's own loads reach once they are there */
}

u64 user_word(u64 at)
{
	u64 hart;

	CHECK(user_load(at) == USER_CALL);
	asm volatile("mv %0, tp" : "=r"(hart));
	return faults[hart].loaded;
}

void smu_fence(void)
{
	smu_write(desc(0, SMU_DESC_FENCE), SMU_DESC_FENCE_FENCE);
	while (smu(desc(0, SMU_DESC_FENCE)) & SMU_DESC_FENCE_FENCE)
		;
}
