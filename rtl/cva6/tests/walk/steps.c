// SPDX-License-Identifier: Apache-2.0
// One miss of each kind: prints how many cycles each step takes, and checks how the access ends.
#include "walk.h"

static u64 next_page = 200;

static void start(const char *label) {
    int n = 0;
    while (label[n]) DEVICE[PUTC] = label[n++];
    for (; n < 29; n++) DEVICE[PUTC] = ' ';
    __asm__ volatile("fence.i");
    DEVICE[TIMES] = 1;
}

// Measures one access to a new page with this entry; returns how it ended.
static struct result measure(const char *label, u64 (*kind)(u64), u64 entry) {
    u64 page = next_page++;
    arm(page, entry);
    start(label);
    struct result r = run(USER, kind, VA(page) + (kind == fetch ? 0 : 64));
    DEVICE[TIMES] = 0;
    return r;
}

static void fence_in_handler(void) {
    sfence();
    __asm__ volatile("fence.i");
}

int main(void) {
    set_up(8);
    say("cycles from step to step          asks accepted  command doorbell   device    entry   answer      end      all\n");
    // The first miss brings the code into the instruction cache, and its pages into the TLBs.
    measure("(the first miss)", load, ARMED(DONE, 1000, 1, R | W));
    EQUAL(1, measure("load", load, ARMED(DONE, 1000, 2, R | W)).value, CONTENT(2, 8));
    EQUAL(2, measure("store", store, ARMED(DONE, 1000, 3, R | W)).cause, STORE_FAULT);  // D is clear
    EQUAL(3, measure("AMO", add, ARMED(DONE, 1000, 4, R | W)).cause, STORE_FAULT);
    EQUAL(4, measure("fetch", fetch, ARMED(DONE, 1000, 5, X)).value, 5);

    // The handler runs in the middle of the miss; then the access joins the miss. REQ: SMU-1
    u64 before = DEVICE[COMMANDS];
    DEVICE[TIMER] = 1000;
    EQUAL(5, measure("load, interrupted", load, ARMED(DONE, 3000, 6, R | W)).value, CONTENT(6, 8));
    on_interrupt = fence_in_handler;
    DEVICE[TIMER] = 1000;
    EQUAL(6, measure("load, sfence.vma meanwhile", load, ARMED(DONE, 3000, 7, R | W)).value, CONTENT(7, 8));
    EQUAL(7, interrupts, 2);
    EQUAL(8, DEVICE[COMMANDS] - before, 2);

    EQUAL(9, measure("load, error of the device", load, ARMED(DEVICE_ERROR, 1000, 8, R | W)).cause, LOAD_FAULT);
    EQUAL(10, measure("load, error of the bus", load, ARMED(BUS_ERROR, 1000, 8, R | W)).cause, LOAD_ACCESS);
    EQUAL(11, measure("load, present by then", load, ARMED(PRESENT, 1000, 9, R | W)).value, CONTENT(9, 8));
    EQUAL(12, DEVICE[COMMANDS] - before, 4);
    EQUAL(13, measure("load, not permitted", load, ARMED(NEVER, 0, 8, X)).cause, LOAD_FAULT);
    EQUAL(14, measure("store, not permitted", store, ARMED(NEVER, 0, 8, R)).cause, STORE_FAULT);
    EQUAL(15, measure("fetch, not permitted", fetch, ARMED(NEVER, 0, 8, R)).cause, FETCH_FAULT);

    // The free ring becomes empty, and gets a frame again.
    while (DEVICE[FRAMES]) {
        arm(next_page, ARMED(DONE, 0, 1, R));
        EQUAL(16, run(USER, load, VA(next_page++)).cause, USER_CALL);
    }
    EQUAL(17, measure("load, no free frame", load, ARMED(DONE, 1000, 10, R | W)).cause, LOAD_FAULT);
    DEVICE[FREE] = entry_of(200) >> 10;
    arm(200, 0);
    u64 page = next_page - 1;
    start("the same, with a frame");
    EQUAL(18, run(USER, load, VA(page) + 64).value, CONTENT(10, 8));
    DEVICE[TIMES] = 0;
    return 0;
}
