// SPDX-License-Identifier: Apache-2.0
// Waits that end without an answer: by interrupts and debug requests; and waits that only the answer can end. REQ: ISA-4
#include "walk.h"

static u64 (*const kinds[4])(u64) = {load, store, add, fetch};

static u64 times;
// Interrupts in the middle of a wait of 10,000 cycles. Each is taken at once; the access runs again and joins the miss.
static void interrupted(int n, int kind, int line, u64 latency, int behaviour) {
    u64 entry = ARMED(behaviour, latency, 300 + kind, R | W | X), at = VA(50) + (kind == 3 ? 0 : 64), before = interrupts;
    arm(50, entry);
    DEVICE[REQUESTS] = 0;
    DEVICE[line] = 2000;
    u64 start = DEVICE[NOW];
    struct result r = run(USER, kinds[kind], at);
    u64 end = DEVICE[NOW];
    if (kind == 1 || kind == 2) EQUAL(n, r.cause, STORE_FAULT);  // because D is clear
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

// No interrupt is enabled: the wait lasts until the answer, whatever is pending.
static void alone(void) {
    csr_write(mie, 0);
    for (int k = 0; k < 4; k++) {
        DEVICE[REQUESTS] = 0;
        DEVICE[TIMER] = DEVICE[SOFTWARE] = DEVICE[EXTERNAL] = DEVICE[SUPERVISOR] = 1000;
        arm(60 + k, ARMED(DONE, 25000, 500 + k, R | X));
        u64 start = DEVICE[NOW], before = interrupts;
        struct result r = run(USER, k == 3 ? fetch : load, VA(60 + k) + (k == 3 ? 0 : 64));
        EQUAL(100 + k, r.cause, USER_CALL);
        EQUAL(100 + k, r.value, k == 3 ? 503 : CONTENT(500 + k, 8));
        CHECK(104 + k, DEVICE[NOW] - start >= 25000);
        EQUAL(108, DEVICE[ABANDONS], 0);
        EQUAL(109, DEVICE[REQUESTS], 1);
        EQUAL(110, interrupts, before);
        DEVICE[TIMER] = DEVICE[SOFTWARE] = DEVICE[EXTERNAL] = DEVICE[SUPERVISOR] = 0;
        DEVICE[FREE] = entry_of(60 + k) >> 10;
    }
    csr_write(mie, 1 << 11 | 1 << 7 | 1 << 3);
}

// The supervisor's trap handler: it makes a call at once, which ends the run.
void to_supervisor(void);
__asm__(".balign 4\nto_supervisor: li a7, 0\n ecall\n");

// A supervisor external interrupt by the line, which no CSR stores. First machine mode handles it, then the supervisor;
// mstatus.SIE does not mask it in U-mode.
static void supervisors(void) {
    csr_write(mie, 1 << 9);
    u64 before = interrupts;
    DEVICE[REQUESTS] = 0;
    DEVICE[SUPERVISOR] = 3000;
    arm(69, ARMED(DONE, 9000, 69, R));
    EQUAL(120, run(USER, load, VA(69) + 8).value, CONTENT(69, 1));
    EQUAL(121, interrupts, before + 1);
    EQUAL(122, DEVICE[ABANDONS], 1);
    csr_write(mideleg, 1 << 9);
    csr_write(stvec, (u64)to_supervisor + ALIAS);
    csr_clear(mstatus, 2);
    DEVICE[REQUESTS] = 0;
    DEVICE[SUPERVISOR] = 3000;
    arm(70, ARMED(DONE, 9000, 70, R));
    struct result r = run(USER, load, VA(70) + 8);
    EQUAL(123, r.cause, SUPER_CALL);
    CHECK(124, r.pc - (u64)to_supervisor - ALIAS <= 4);
    EQUAL(125, csr_read(scause), 1ul << 63 | 9);
    CHECK(126, csr_read(sepc) - (u64)load < 24);
    EQUAL(127, DEVICE[ABANDONS], 1);
    EQUAL(128, interrupts, before + 1);
    DEVICE[SUPERVISOR] = 0;
    EQUAL(129, run(USER, load, VA(70) + 8).value, CONTENT(70, 1));
    csr_write(mideleg, 0);
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
    alone();
    supervisors();
    say("interrupts, debug requests, none enabled\n");
    return 0;
}
