/* SPDX-License-Identifier: Apache-2.0 */
/* What the bare-metal programs share: the platform, one NVMe drive, the SMU, and an armed mapping. */
#ifndef BARE_H
#define BARE_H
#include <stdint.h>
#include "places.h"
#include "trapless_smu_regs.h"

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;

#define REG64(a) (*(volatile u64 *)(u64)(a))
#define REG32(a) (*(volatile u32 *)(u64)(a))
#define csr_read(n) ({ u64 v_; asm volatile("csrr %0, " #n : "=r"(v_)); v_; })
#define csr_write(n, v) asm volatile("csrw " #n ", %0" :: "r"((u64)(v)) : "memory")
#define csr_set(n, v) asm volatile("csrs " #n ", %0" :: "r"((u64)(v)) : "memory")
#define CHECK(what) do { if (!(what)) finish(__LINE__ & 0x7f); } while (0)

#define SMU_BASE 0x11000000UL
#define ECAM 0x30000000UL
#define NVME 0x40000000UL
#define PAGE 4096UL
/* The armed mapping: one leaf table under its own upper tables. */
#define AREA 0x1000000000UL
#define PAGES 512
#define QDEPTH 64

struct fault { u64 cause, tval, resume, loaded; };
extern volatile struct fault faults[8];
int probe_load(u64 at);
int probe_store(u64 at, u64 value);
u64 user_load(u64 at);			/* these two in U mode; scause */
u64 user_store(u64 at, u64 value);
u64 user_word(u64 at);			/* what is there, loaded in U mode without a trap */
void finish(u64 code) __attribute__((noreturn));

static inline u64 smu(u64 reg) { return REG64(SMU_BASE + reg); }
static inline void smu_write(u64 reg, u64 value) { REG64(SMU_BASE + reg) = value; }
static inline u64 desc(u64 n, u64 reg) { return SMU_DESC_BASE + n * SMU_DESC_STRIDE + reg; }
/* Marker IMM of spec/platform.md with its arguments. */
#define MARKER4(imm, x, y, z, w) do { \
	register u64 a0_ asm("a0") = (x), a1_ asm("a1") = (y), a2_ asm("a2") = (z), a3_ asm("a3") = (w); \
	asm volatile("slti x0, x0, %4" :: "r"(a0_), "r"(a1_), "r"(a2_), "r"(a3_), "i"(imm) : "memory"); \
} while (0)
#define MARKER(imm, x, y, z) MARKER4(imm, x, y, z, 0)
static inline void fence_vma(void) { asm volatile("sfence.vma" ::: "memory"); }

extern volatile u64 root[512], pmd[512], pte[512];
extern volatile u64 sq[QDEPTH * 8], cq[QDEPTH * 2];
extern volatile u64 free_ring[256][2], ret_ring[512][2];

void platform_start(void);		/* PCIe, NVMe, queue pair 1 */
u32 admin(u32 opcode, u64 prp1, u32 cdw10, u32 cdw11);	/* dword 0 of the completion */
void smu_start(u32 frames);		/* rings with that many frames, descriptor 0, enabled */
void arm(u32 index, u64 lba, u64 flags);
void paging_on(void);			/* identity gigapages, RAM for U mode, the area */
/* Of descriptor 0. */
void smu_fence(void);
u64 give_frame(void);			/* one more frame into the ring; its address */
#endif
