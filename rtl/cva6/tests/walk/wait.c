// SPDX-License-Identifier: Apache-2.0
// Waits that end otherwise than with an answer: interrupts, debug requests, the limit. REQ: ISA-4
#include "walk.h"

static u64 (*const kinds[4])(u64) = {load, store, add, fetch};
static const u64 fault[4] = {LOAD_FAULT, STORE_FAULT, STORE_FAULT, FETCH_FAULT};

static u64 times;
// Interrupts in the middle of a wait of 10,000 cycles: each is taken at once, the access runs again and joins the miss.
static void interrupted(int n, int kind, int line, u64 latency, int behaviour) {
    u64 entry = ARMED(behaviour, latency, 300 + kind, R | W | X), at = VA(50) + (kind == 3 ? 0 : 64), before = interrupts;
    arm(50, entry);
    DEVICE[REQUESTS] = 0;
    DEVICE[line] = 2000;
    u64 start = DEVICE[NOW];
    struct result r = run(USER, kinds[kind], at);
    u64 end = DEVICE[NOW];
    if (kind == 1 || kind == 2) EQUAL(n, r.cause, STORE_FAULT);  // for D
    else EQUAL(n, r.cause, USER_CALL);
    EQUAL(n, interrupts, before + 1);
    EQUAL(n, last_interrupt - (kind == 3 ? at : (u64)kinds[kind]) < 24, 1);
    CHECK(n, DEVICE[LATE] <= 300);
    EQUAL(n, DEVICE[ABANDONS], behaviour == BUSY ? 0 : 1);
    EQUAL(n, DEVICE[REQUESTS], behaviour == BUSY ? 1 : 2);
    CHECK(n, end - start >= latency);
    if (behaviour == DONE) CHECK(n, end - start < latency + 5000);
    if (kind == 0) EQUAL(n, r.value, CONTENT(300, 8));
    if (kind == 3) EQUAL(n, r.value, 303);
    times++;
    DEVICE[FREE] = entry_of(50) >> 10;
}

// A debug request: the harness's debugger returns at once.
static void debugged(int n, int kind) {
    arm(51, ARMED(DONE, 10000, 400, R | W | X));
    DEVICE[REQUESTS] = 0;
    DEVICE[DEBUG] = 3000;
    struct result r = run(USER, kinds[kind], VA(51) + (kind == 3 ? 0 : 64));
    EQUAL(n, r.cause, USER_CALL);
    EQUAL(n, DEVICE[ABANDONS], 1);
    EQUAL(n, DEVICE[REQUESTS], 2);
    DEVICE[FREE] = entry_of(51) >> 10;
}

static u64 load_masked(u64 a) {
    csr_clear(sstatus, 2);
    return *(reg *)a;
}

static void limits(void) {
    csr_set(mstatus, 1 << 18);
    // Interrupts masked: none is enabled.
    csr_write(mie, 0);
    csr_write(0x5c1, 1500);
    for (int k = 0; k < 4; k++) {
        u64 entry = ARMED(SILENT, 0, 0, R | W | X), at = VA(60 + k);
        arm(60 + k, entry);
        u64 start = DEVICE[NOW];
        struct result r = run(USER, kinds[k], at);
        u64 took = DEVICE[NOW] - start;
        EQUAL(100 + k, r.cause, fault[k]);
        EQUAL(100 + k, r.address, at);
        CHECK(100 + k, took >= 1500 && took < 4000);
        EQUAL(100 + k, entry_of(60 + k), entry);
    }
    // Zero: at once. The miss goes on if it was accepted.
    csr_write(0x5c1, 0);
    arm(64, ARMED(SILENT, 0, 0, R));
    u64 start = DEVICE[NOW];
    EQUAL(105, run(USER, load, VA(64)).cause, LOAD_FAULT);
    CHECK(106, DEVICE[NOW] - start < 1500);
    // The SMU does not even accept.
    csr_write(0x5c1, 1500);
    arm(65, ARMED(BUSY, 60000, 0, R));
    EQUAL(107, run(USER, load, VA(65)).cause, LOAD_FAULT);
    // An interrupt that could be taken, pending or not, does away with the limit: in U-mode ...
    csr_write(mie, 1 << 7);
    arm(66, ARMED(DONE, 5000, 66, R));
    EQUAL(108, run(USER, load, VA(66) + 8).value, CONTENT(66, 1));
    // ... and in S-mode with SIE = 0, if it goes to M-mode; not if it is delegated.
    arm(67, ARMED(DONE, 5000, 67, R));
    EQUAL(109, run(SUPER, load_masked, VA(67) + 8).value, CONTENT(67, 1));
    csr_write(mie, 1 << 9);
    csr_write(mideleg, 1 << 9);
    arm(68, ARMED(DONE, 5000, 68, R));
    EQUAL(110, run(SUPER, load_masked, VA(68) + 8).cause, LOAD_FAULT);
    csr_write(mideleg, 0);
    EQUAL(111, run(SUPER, load_masked, VA(68) + 8).value, CONTENT(68, 1));
    // A supervisor external interrupt by the line that no CSR keeps.
    csr_write(0x5c1, 20000);
    DEVICE[SUPERVISOR] = 3000;
    u64 before = interrupts;
    arm(69, ARMED(DONE, 9000, 69, R));
    EQUAL(112, run(USER, load, VA(69) + 8).value, CONTENT(69, 1));
    EQUAL(113, interrupts, before + 1);
    csr_write(mie, 1 << 11 | 1 << 7 | 1 << 3);
}

int main(void) {
    set_up(64);
    const int lines[3] = {TIMER, SOFTWARE, EXTERNAL};
    for (int kind = 0; kind < 4; kind++) {
        for (int line = 0; line < 3; line++) interrupted(1 + kind, kind, lines[line], 10000, DONE);
        interrupted(11 + kind, kind, TIMER, 10000, BUSY);
    }
    debugged(20, 0);
    debugged(21, 3);
    limits();
    say("interrupts, debug requests, limits\n");
    return 0;
}
