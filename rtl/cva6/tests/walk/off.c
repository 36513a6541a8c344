// SPDX-License-Identifier: Apache-2.0
// A core with the extension off: the CSRs do not exist, and an armed entry is an ordinary invalid entry.
#include "walk.h"

static u64 read_enable(u64 v) { (void)v; return csr_read(0x5c0); }
static u64 read_served(u64 v) { (void)v; return csr_read(0xdc0); }
static u64 read_wait(u64 v) { (void)v; return csr_read(0xdc1); }
static u64 write_enable(u64 v) { csr_write(0x5c0, v); return 0; }

int main(void) {
    EQUAL(1, run(MACHINE, read_enable, 1).cause, ILLEGAL);
    EQUAL(2, run(MACHINE, write_enable, 1).cause, ILLEGAL);
    // REQ: ISA-7
    EQUAL(3, run(MACHINE, read_served, 1).cause, ILLEGAL);
    EQUAL(4, run(MACHINE, read_wait, 1).cause, ILLEGAL);
    set_up_tables();
    arm(20, ARMED(NEVER, 0, 1, R | W | X));
    EQUAL(10, run(USER, load, VA(20)).cause, LOAD_FAULT);
    EQUAL(11, run(USER, store, VA(20)).cause, STORE_FAULT);
    EQUAL(12, run(USER, fetch, VA(20)).cause, FETCH_FAULT);
    say("off\n");
    return 0;
}
