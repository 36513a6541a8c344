// SPDX-License-Identifier: Apache-2.0
// Only the access that would retire next may start a miss (REQ: ISA-3). The harness ends the run at a request for a page that
// no instruction reaches.
#include "walk.h"

// Two divisions of 64 cycles; t0 stays -1. Instructions after them are issued long before they may retire.
#define SLOW "li t0, -1\n li t3, 1\n divu t0, t0, t3\n divu t0, t0, t3\n"

static __attribute__((noinline)) u64 after_illegal(u64 a) {
    __asm__ volatile(SLOW ".word 0\n ld %0, (%0)\n ld %0, (%0)" : "+r"(a) : : "t0", "t3", "memory");
    return a;
}
static __attribute__((noinline)) u64 after_call(u64 a) {
    __asm__ volatile("li a7, 0\n" SLOW "ecall\n ld %0, (%0)" : "+r"(a) : : "a7", "t0", "t3", "memory");
    return a;
}
// An older load that faults; the fault is taken late.
static __attribute__((noinline)) u64 after_fault(u64 a) {
    u64 bad = VA(900);
    __asm__ volatile(SLOW "ld t1, (%1)\n ld t2, (%0)\n amoadd.d t2, t2, (%0)\n sd t2, 8(%0)"
                     : : "r"(a), "r"(bad) : "t0", "t1", "t2", "t3", "memory");
    return a;
}
// A jump that the branch predictor has learnt. The last jump goes to another target.
static u64 targets[2];
static __attribute__((noinline)) u64 jumps(u64 second) {
    u64 sum = 0;
    for (int i = 0; i < 40; i++) {
        u64 at = targets[i == 39 ? second : 0];
        __asm__ volatile(SLOW "and %0, %0, t0" : "+r"(at) : : "t0", "t3");
        sum += ((u64(*)(void))at)();
    }
    return sum;
}
// A branch that goes the same way every time, except for the last time. The access behind it must not ask the SMU.
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
// A return to an address that the return address stack does not have.
static __attribute__((noinline)) u64 returns(u64 a) {
    u64 v;
    __asm__ volatile("la t1, 1f\n mv ra, %1\n div t1, t1, %2\n mv ra, t1\n ret\n .balign 4\n1: li %0, 5\n"
                     : "=r"(v) : "r"(a), "r"(1ul) : "ra", "t1");
    return v;
}
// Code at the end of a page. `to_call` ends with a call that retires late: the core fetches from the next page by speculation
// while all instructions in the pipeline have been issued. `to_load` ends with a load that needs the walker while this fetch
// uses it.
__asm__(".section .rodata\n .option push\n .option norvc\n .balign 8\n"
        "to_call: li a7, 0\n" SLOW " ecall\n"
        "to_load: " SLOW " and a0, a0, t0\n ld a1, 8(a0)\n nop\n to_end:\n .option pop\n .text");
extern const unsigned to_call[], to_load[], to_end[];

// Copies code to the end of page 9; returns its address there.
static u64 at_end(const unsigned *code, const unsigned *end) {
    u64 size = (u64)end - (u64)code;
    volatile unsigned *frame = (volatile unsigned *)((entry_of(9) >> 10 << 12) + 4096 - size);
    for (u64 i = 0; i < size / 4; i++) frame[i] = code[i];
    __asm__ volatile("fence.i");
    return VA(9) + 4096 - size;
}

int main(void) {
    set_up(32);
    arm(10, ARMED(NEVER, 0, 1, R | W | X));
    arm(900, 0);
    for (int i = 0; i < 20; i++) {
        EQUAL(1, run(USER, after_illegal, VA(10)).cause, ILLEGAL);
        EQUAL(2, run(USER, after_call, VA(10)).cause, USER_CALL);
        EQUAL(3, run(USER, after_fault, VA(10)).cause, LOAD_FAULT);
    }
    // The predictor learns the way into page 11; the last jump goes to page 12.
    arm(11, ARMED(DONE, 10, 11, R | X));
    arm(12, ARMED(DONE, 10, 12, R | X));
    targets[0] = VA(11);
    targets[1] = VA(12);
    EQUAL(4, run(USER, jumps, 1).value, 11 * 39 + 12);
    for (int i = 0; i < 5; i++) {
        // Page 11 is now armed and never reached: only a prediction leads there.
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
    // Page 10 follows page 9.
    arm(9, ARMED(DONE, 10, 9, R | X));
    run(USER, load, VA(9));
    u64 edge = at_end(to_call, to_load);
    for (int i = 0; i < 10; i++) EQUAL(8, run_at(USER, edge, 0).cause, USER_CALL);
    EQUAL(9, DEVICE[REQUESTS], 3);
    edge = at_end(to_load, to_end);
    for (int i = 0; i < 10; i++) {
        arm(10, ARMED(DONE, 10, 20 + i, X));
        struct result r = run_at(USER, edge, VA(12));
        EQUAL(10, r.cause, USER_CALL);
        EQUAL(11, r.value, 20 + i);
    }
    EQUAL(12, DEVICE[REQUESTS], 13);
    say("nothing by guess\n");
    return 0;
}
