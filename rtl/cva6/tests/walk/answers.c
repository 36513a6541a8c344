// SPDX-License-Identifier: Apache-2.0
// What the walker does with each answer of the SMU, for loads, stores, AMOs and fetches.
#include "walk.h"

static u64 (*const kinds[4])(u64) = {load, store, add, fetch};
static const u64 fault[4] = {LOAD_FAULT, STORE_FAULT, STORE_FAULT, FETCH_FAULT};
static const u64 access_fault[4] = {LOAD_ACCESS, STORE_ACCESS, STORE_ACCESS, FETCH_ACCESS};

static void fails(int n, u64 behaviour, const u64 *causes) {
    for (int k = 0; k < 4; k++) {
        u64 entry = ARMED(behaviour, 30, 1, R | W | X), at = VA(30) + (k == 3 ? 0 : 48);
        arm(30, entry);
        struct result r = run(USER, kinds[k], at);
        EQUAL(n + k, r.cause, causes[k]);
        EQUAL(n + k, r.address, at);
        EQUAL(n + k, entry_of(30), entry);
    }
}

int main(void) {
    set_up(32);
    // REQ: ISA-6: failures are page faults, except for a bus error.
    fails(10, DEVICE_ERROR, fault);
    fails(20, NO_FRAME, fault);
    fails(30, BUS_ERROR, access_fault);

    // Changed, to the entry of a present page: the walker uses this entry and does not read it again.
    arm(31, ARMED(PRESENT, 30, 55, R | W | X));
    EQUAL(40, run(USER, load, VA(31) + 8).value, CONTENT(55, 1));
    arm(31, ARMED(PRESENT, 30, 56, R | W | X));
    EQUAL(41, run(USER, fetch, VA(31)).value, 56);
    // Changed, to zero.
    arm(31, ARMED(GONE, 30, 55, R | W | X));
    EQUAL(42, run(USER, load, VA(31)).cause, LOAD_FAULT);
    EQUAL(43, entry_of(31), 0);
    arm(31, ARMED(GONE, 30, 55, R | W | X));
    EQUAL(44, run(USER, fetch, VA(31)).cause, FETCH_FAULT);

    // Changed, to an armed entry: the walker asks again after four such answers; the fifth ends in the page fault.
    for (int k = 0; k < 4; k++) {
        DEVICE[REQUESTS] = 0;
        arm(32, ARMED(REARMED, 30, 57, R | W | X));
        EQUAL(45 + k, run(USER, kinds[k], VA(32)).cause, fault[k]);
        EQUAL(45 + k, DEVICE[REQUESTS], 5);
    }

    // With eight frames the ninth page finds the free ring empty; then the ring gets a frame again.
    while (DEVICE[FRAMES] > 8) {
        arm(33, ARMED(DONE, 0, 1, R));
        EQUAL(50, run(USER, load, VA(33)).cause, USER_CALL);
    }
    for (int i = 0; i < 9; i++) {
        arm(40 + i, ARMED(DONE, 10, i, R));
        struct result r = run(USER, load, VA(40 + i) + 16);
        if (i < 8) EQUAL(51, r.value, CONTENT(i, 2));
        else EQUAL(52, r.cause, LOAD_FAULT);
    }
    DEVICE[FREE] = entry_of(40) >> 10;
    arm(40, 0);
    EQUAL(53, run(USER, load, VA(48) + 16).value, CONTENT(8, 2));

    // The SMU accepts nothing for a while.
    DEVICE[FREE] = entry_of(41) >> 10;
    arm(49, ARMED(BUSY, 3000, 99, R));
    EQUAL(54, run(USER, load, VA(49) + 16).value, CONTENT(99, 2));
    say("failures, changed entries, empty ring\n");
    return 0;
}
