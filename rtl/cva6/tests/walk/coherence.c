// SPDX-License-Identifier: Apache-2.0
// The core sees what other masters write, whatever its data cache held: entries, marks, frames, words beside those of its
// own stores. REQ: SMU-4
#include "walk.h"

static u64 shared[512] __attribute__((aligned(4096)));

static void from_outside(u64 at, u64 value) {
    DEVICE[DMA_ADDRESS] = at;
    DEVICE[DMA_VALUE] = value;
    __asm__ volatile("fence" ::: "memory");
    (void)DEVICE[NOW];
}

// Waits until the cache has invalidated what another master wrote: each read of the device takes about 20 cycles.
static void settle(int reads) {
    for (int i = 0; i < reads; i++) (void)DEVICE[NOW];
}

static u64 sum_of(u64 at) {
    u64 sum = 0;
    for (int i = 1; i < 512; i++) sum += ((reg *)at)[i];
    return sum;
}

static u64 expected(u64 page) {
    u64 sum = 0;
    for (int i = 1; i < 512; i++) sum += CONTENT(page, i);
    return sum;
}

int main(void) {
    set_up(4);
    // One word; the line is in the cache, is being filled, or has a store on its way.
    reg *const word = &shared[4], *const neighbour = &shared[5];
    for (u64 i = 1; i < 400; i++) {
        u64 old = *word;
        CHECK(1, old == i - 1);
        if (i % 3 == 0) *neighbour = i;
        from_outside((u64)word, i);
        u64 race = *word;
        CHECK(2, race == i || race == i - 1);
        settle(6);
        EQUAL(3, *word, i);
        if (i % 3 == 0) EQUAL(4, *neighbour, i);
    }
    // A write while the line is being filled: the fill may bring the old value, but must not stay in the cache.
    for (u64 i = 0; i < 300; i++) {
        from_outside((u64)word, 1000 + 2 * i);
        settle(6);
        DEVICE[DMA_DELAY] = 1 + DEVICE[RANDOM] % 120;
        DEVICE[DMA_VALUE] = 1001 + 2 * i;
        u64 race = *word;
        DEVICE[DMA_DELAY] = 0;
        CHECK(13, race == 1000 + 2 * i || race == 1001 + 2 * i);
        settle(16);
        EQUAL(14, *word, 1001 + 2 * i);
    }
    // The lines of one set in all ways: only the line that is written is invalidated.
    for (int way = 0; way < 8; way++) (void)*(reg *)(POOL + 0x100000 + way * 4096);
    from_outside(POOL + 0x100000, 42);
    settle(6);
    EQUAL(5, *(reg *)(POOL + 0x100000), 42);
    // A frame whose old content is in the cache gets a new page; entries and marks were read before, too.
    for (u64 i = 0; i < 12; i++) {
        arm(80, ARMED(DONE, 10 + i * 13, 500 + i, R | W));
        EQUAL(6, (*(reg *)&root[1] | *(reg *)&middle[0]) & L, 0);
        EQUAL(7, run(USER, sum_of, VA(80)).value, expected(500 + i));
        u64 frame = entry_of(80) >> 10;
        CHECK(8, entry_of(80) & V);
        EQUAL(9, *(reg *)&root[1] & *(reg *)&middle[0] & L, L);
        EQUAL(10, sum_of(frame << 12), expected(500 + i));
        for (int k = 0; k < 512; k += 5) ((reg *)(frame << 12))[k] = i;  // read now; must not be seen after the frame's next use
        sum_of(frame << 12);
        *(reg *)&root[1] &= ~(u64)L;
        *(reg *)&middle[0] &= ~(u64)L;
        arm(80, 0);
        DEVICE[FREE] = frame;
    }
    say("entries, marks, frames\n");
    return 0;
}
