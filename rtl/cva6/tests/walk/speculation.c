// SPDX-License-Identifier: Apache-2.0
// Only what would retire next may start a miss (REQ: ISA-3). The harness ends the run when a page that no instruction reaches
// is asked for.
#include "walk.h"

static __attribute__((noinline)) u64 after_illegal(u64 a) {
    __asm__ volatile(".word 0\n ld %0, (%0)\n ld %0, (%0)" : "+r"(a) : : "memory");
    return a;
}
static __attribute__((noinline)) u64 after_call(u64 a) {
    __asm__ volatile("li a7, 0\n ecall\n ld %0, (%0)" : "+r"(a) : : "a7", "memory");
    return a;
}
// An older load that faults, found out late behind a division.
static __attribute__((noinline)) u64 after_fault(u64 a) {
    u64 bad = VA(900);
    __asm__ volatile("div t0, %1, %0\n div t0, t0, %0\n ld t1, (%1)\n ld t2, (%0)\n amoadd.d t2, t2, (%0)\n sd t2, 8(%0)"
                     : : "r"(a), "r"(bad) : "t0", "t1", "t2", "memory");
    return a;
}
// A jump that the branch predictor has learnt, and that goes elsewhere now.
static u64 targets[2];
static __attribute__((noinline)) u64 jumps(u64 second) {
    u64 sum = 0;
    for (int i = 0; i < 40; i++) {
        u64 at = targets[i == 39 ? second : 0], slow = (u64)i | 1;
        __asm__ volatile("div %0, %0, %1\n mul %0, %0, %1" : "+r"(at) : "r"(1ul));
        __asm__ volatile("div %0, %0, %1" : "+r"(slow) : "r"(1ul));
        sum += ((u64(*)(void))at)();
    }
    return sum;
}
// A branch that is taken always but the last time: behind it, the page that must not be.
static __attribute__((noinline)) u64 branches(u64 a) {
    u64 sum = 0;
    for (u64 i = 0; i < 60; i++) {
        u64 hidden = i;
        __asm__ volatile("div %0, %0, %1\n div %0, %0, %1" : "+r"(hidden) : "r"(1ul));
        if (hidden < 59) sum += i;
        else return sum;
        if (hidden == 1000) sum += ((u64(*)(void))a)() + *(reg *)a;
    }
    return sum;
}
// A return address that the stack of return addresses does not know.
static __attribute__((noinline)) u64 returns(u64 a) {
    u64 v;
    __asm__ volatile("la t1, 1f\n mv ra, %1\n div t1, t1, %2\n mv ra, t1\n ret\n .balign 4\n1: li %0, 5\n"
                     : "=r"(v) : "r"(a), "r"(1ul) : "ra", "t1");
    return v;
}
// The last instruction of a page that is there, before one that is armed: the fetch behind it is a guess.
static __attribute__((noinline)) u64 edge(u64 a) { return ((u64(*)(void))(a + 4096 - 8))(); }

int main(void) {
    set_up(32);
    arm(10, ARMED(NEVER, 0, 1, R | W | X));
    arm(900, 0);
    for (int i = 0; i < 20; i++) {
        EQUAL(1, run(USER, after_illegal, VA(10)).cause, ILLEGAL);
        EQUAL(2, run(USER, after_call, VA(10)).cause, USER_CALL);
        EQUAL(3, run(USER, after_fault, VA(10)).cause, LOAD_FAULT);
    }
    // The predictor learns the way into page 11, then into page 10, armed and never reached.
    arm(11, ARMED(DONE, 10, 11, R | X));
    arm(12, ARMED(DONE, 10, 12, R | X));
    targets[0] = VA(11);
    targets[1] = VA(12);
    EQUAL(4, run(USER, jumps, 1).value, 11 * 39 + 12);
    for (int i = 0; i < 5; i++) {
        // What was learnt for page 11 is followed into an armed page by a guess alone.
        u64 kept = entry_of(11);
        run(USER, jumps, 0);
        arm(11, ARMED(NEVER, 0, 1, R | X));
        targets[0] = VA(12);
        EQUAL(5, run(USER, jumps, 0).value, 12 * 40);
        targets[0] = VA(11);
        arm(11, kept);
    }
    EQUAL(6, run(USER, branches, VA(10)).cause, USER_CALL);
    EQUAL(7, run(USER, returns, VA(10)).value, 5);
    // Page 9 ends with `li a0, 9; ret`; page 10 follows it.
    arm(9, ARMED(DONE, 10, 9, R | X));
    run(USER, load, VA(9));
    reg *frame = (reg *)(entry_of(9) >> 10 << 12);
    frame[511] = frame[0];
    __asm__ volatile("fence.i");
    for (int i = 0; i < 10; i++) EQUAL(8, run(USER, edge, VA(9)).value, 9);
    EQUAL(9, DEVICE[REQUESTS], 3);
    say("nothing by guess\n");
    return 0;
}
