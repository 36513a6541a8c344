// SPDX-License-Identifier: Apache-2.0
// The counters of misses agree with what the harness sees at the walker's port, for each kind of access, each answer, abandoned
// waits and a busy SMU. Only the allowed modes can read them. REQ: ISA-7
#include "walk.h"

static u64 (*const kinds[4])(u64) = {load, store, add, fetch};

static u64 read_served(u64 v) { (void)v; return csr_read(0xdc0); }
static u64 read_wait(u64 v) { (void)v; return csr_read(0xdc1); }
static u64 write_served(u64 v) { csr_write(0xdc0, v); return 0; }
static u64 set_wait(u64 v) { csr_set(0xdc1, v); return 0; }

// Makes one access to a new page. Checks that it was served `served` times and waited at least `least` cycles, and that the
// harness has counted the same.
static u64 counted(int n, int kind, u64 entry, u64 served, u64 least) {
    arm(80, entry);
    u64 before[2] = {csr_read(0xdc0), csr_read(0xdc1)}, began = DEVICE[NOW];
    run(USER, kinds[kind], VA(80) + (kind == 3 ? 0 : 64));
    u64 waited = csr_read(0xdc1) - before[1];
    CHECK(n, waited <= DEVICE[NOW] - began);
    CHECK(n, waited >= least);
    EQUAL(n, csr_read(0xdc0) - before[0], served);
    EQUAL(n, csr_read(0xdc0), DEVICE[SERVED]);
    EQUAL(n, csr_read(0xdc1), DEVICE[WAITED]);
    if ((entry_of(80) & V) && served) DEVICE[FREE] = entry_of(80) >> 10;
    return waited;
}

int main(void) {
    set_up(64);
    EQUAL(1, csr_read(0xdc0), 0);
    EQUAL(2, csr_read(0xdc1), 0);
    for (int k = 0; k < 4; k++) {
        counted(10 + k, k, ARMED(DONE, 500, 1 + k, R | W | X), 1, 500);
        counted(20 + k, k, ARMED(DEVICE_ERROR, 500, 1, R | W | X), 0, 500);
        counted(30 + k, k, ARMED(NO_FRAME, 0, 1, R | W | X), 0, 1);
        counted(40 + k, k, ARMED(BUS_ERROR, 0, 1, R | W | X), 0, 1);
        counted(50 + k, k, ARMED(PRESENT, 500, 1, R | W | X), 0, 500);
        counted(60 + k, k, ARMED(GONE, 500, 1, R | W | X), 0, 500);
        counted(70 + k, k, ARMED(REARMED, 100, 1, R | W | X), 0, 500);
        // A request that is not yet accepted waits, too.
        counted(80 + k, k, ARMED(BUSY, 2000, 5, R | W | X), 1, 2000);
        // An interrupt in the middle: the access waits again, and is served once. The handler's time does not count.
        DEVICE[TIMER] = 2000;
        u64 before = interrupts;
        counted(90 + k, k, ARMED(DONE, 9000, 6, R | W | X), 1, 7000);
        EQUAL(90 + k, interrupts, before + 1);
        DEVICE[TIMER] = 1000;
        counted(100 + k, k, ARMED(BUSY, 4000, 6, R | W | X), 1, 2000);
        EQUAL(100 + k, interrupts, before + 2);
    }
    // Accesses that do not ask.
    EQUAL(110, counted(110, 0, ARMED(NEVER, 0, 1, X), 0, 0), 0);
    EQUAL(111, counted(111, 0, 0, 0, 0), 0);
    csr_write(mie, 0);
    arm(80, ARMED(NEVER, 0, 1, R | W));
    run(SUPER, load, VA(80));
    EQUAL(112, csr_read(0xdc1), DEVICE[WAITED]);

    u64 served = csr_read(0xdc0), waited = csr_read(0xdc1);
    EQUAL(120, run(SUPER, read_served, 0).value, served);
    EQUAL(121, run(SUPER, read_wait, 0).value, waited);
    EQUAL(122, run(USER, read_served, 0).cause, ILLEGAL);
    EQUAL(123, run(USER, read_wait, 0).cause, ILLEGAL);
    for (int mode = 0; mode < 2; mode++) {
        EQUAL(124, run(mode ? SUPER : MACHINE, write_served, 5).cause, ILLEGAL);
        EQUAL(125, run(mode ? SUPER : MACHINE, set_wait, 5).cause, ILLEGAL);
    }
    EQUAL(126, csr_read(0xdc0), served);
    EQUAL(127, csr_read(0xdc1), waited);
    say("counters\n");
    return 0;
}
