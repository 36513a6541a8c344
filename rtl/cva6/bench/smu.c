// SPDX-License-Identifier: Apache-2.0
// Page misses one after another, on a drive, to measure the SMU's steps. There are two regions of interest: in region 1 the
// upper entries already have their marks, in region 2 they do not.
#include "bare.h"

enum { COUNT = 100, WARM = 8 };

static void touch(u32 first, u32 count, int unmark) {
    for (u32 page = first; page < first + count; page++) {
        if (unmark) {
            pmd[0] &= ~SMU_PTE_L;
            root[AREA >> 30] &= ~SMU_PTE_L;
            fence_vma();
        }
        CHECK(*(volatile u64 *)(AREA + page * PAGE) == page * 8);
    }
}

void main(u64 hart) {
    if (hart)
        for (;;) asm volatile("wfi");
    platform_start();
    smu_start(255);
    for (u32 i = 0; i < 2 * COUNT + WARM; i++) arm(i, i * 8, 0);
    paging_on();
    csr_write(0x5c0, 1);
    touch(0, WARM, 0);
    MARKER(SMU_MARKER_ROI_BEGIN, 1, 0, 0);
    touch(WARM, COUNT, 0);
    MARKER(SMU_MARKER_ROI_END, 1, 0, 0);
    MARKER(SMU_MARKER_ROI_BEGIN, 2, 0, 0);
    touch(WARM + COUNT, COUNT, 1);
    MARKER(SMU_MARKER_ROI_END, 2, 0, 0);
    CHECK(smu(SMU_CNT_INSTALLED) == 2 * COUNT + WARM);
}
