// SPDX-License-Identifier: Apache-2.0
// Accesses of all kinds to armed pages; which entries count as armed, and which accesses are allowed.
// REQ: ISA-1 REQ: ISA-2 REQ: ISA-3 REQ: ISA-5 REQ: ISA-6
#include "walk.h"

static void kinds(void) {
    // A load; the next one does not ask again.
    arm(1, ARMED(DONE, 50, 7, R | W));
    struct result r = run(USER, load, VA(1) + 8);
    EQUAL(1, r.cause, USER_CALL);
    EQUAL(2, r.value, CONTENT(7, 1));
    u64 frame = entry_of(1) >> 10;
    EQUAL(3, entry_of(1) & 0x3ff, L | A | U | W | R | V);
    CHECK(4, entry_of(1) >> 54 == 0 && frame >= POOL >> 12);
    EQUAL(5, *(reg *)((frame << 12) + 4088), CONTENT(7, 511));
    EQUAL(6, (root[1] & L) && (middle[0] & L) && !(middle[1] & L), 1);
    EQUAL(7, run(USER, load, VA(1) + 16).value, CONTENT(7, 2));
    EQUAL(8, DEVICE[REQUESTS], 1);
    // ISA-5: the first store finds D = 0 and faults.
    r = run(USER, store, VA(1) + 16);
    EQUAL(9, r.cause, STORE_FAULT);
    EQUAL(10, r.address, VA(1) + 16);
    // A store and an AMO are served, and then fault only because D = 0.
    arm(2, ARMED(DONE, 50, 8, R | W));
    r = run(USER, store, VA(2) + 24);
    EQUAL(11, r.cause, STORE_FAULT);
    EQUAL(12, r.address, VA(2) + 24);
    EQUAL(13, entry_of(2) & 0xff, A | U | W | R | V);
    *(reg *)&leaf[2] |= D;
    sfence();
    EQUAL(14, run(USER, store, VA(2) + 24).cause, USER_CALL);
    EQUAL(15, *(reg *)((entry_of(2) >> 10 << 12) + 24), 77);
    arm(3, ARMED(DONE, 50, 9, R | W));
    r = run(USER, add, VA(3) + 32);
    EQUAL(16, r.cause, STORE_FAULT);
    *(reg *)&leaf[3] |= D;
    sfence();
    r = run(USER, add, VA(3) + 32);
    EQUAL(17, r.value, CONTENT(9, 4));
    EQUAL(18, *(reg *)((entry_of(3) >> 10 << 12) + 32), CONTENT(9, 4) + 1);
    // A fetch.
    arm(4, ARMED(DONE, 50, 123, X));
    r = run(USER, fetch, VA(4));
    EQUAL(19, r.cause, USER_CALL);
    EQUAL(20, r.value, 123);
    EQUAL(21, entry_of(4) & 0x3ff, L | A | U | X | V);
    // Four requests so far: the fetch asked for no further page.
    EQUAL(22, DEVICE[REQUESTS], 4);
    // With A = 0 the access faults after the miss, and the page is installed.
    arm(5, ARMED(DONE, 50, 10, R) & ~(u64)A);
    EQUAL(23, run(USER, load, VA(5)).cause, LOAD_FAULT);
    EQUAL(24, entry_of(5) & 0x3ff, L | U | R | V);
    // Another leaf table.
    arm(700, ARMED(DONE, 50, 11, R));
    EQUAL(25, run(USER, load, VA(700) + 80).value, CONTENT(11, 10));
    EQUAL(26, !!(middle[1] & L), 1);
    // The kernel can read the installed page.
    csr_set(mstatus, SUM);
    EQUAL(27, run(SUPER, load, VA(700) + 88).value, CONTENT(11, 11));
    csr_clear(mstatus, SUM);
}

// Arms an entry with older stores still under way, then reads the page: the request must have the value that memory holds.
static u64 arm_and_touch(u64 page) {
    (void)*(reg *)&leaf[page];  // the cache has the line
    for (int i = 0; i < 20; i++) ((reg *)leaf)[PAGES - 24 + i] = 0;
    *(reg *)&leaf[page] = ARMED(DONE, 50, page, R);
    return ((reg *)VA(page))[3];
}

static void forbidden(int n, u64 mode, u64 (*what)(u64), u64 entry, u64 cause) {
    arm(20, entry);
    u64 at = what == fetch ? 0 : 40;
    struct result r = run(mode, what, VA(20) + at);
    EQUAL(n, r.cause, cause);
    EQUAL(n, r.address, VA(20) + at);
    EQUAL(n, entry_of(20), entry);
}

static void permissions(void) {
    forbidden(40, USER, load, ARMED(NEVER, 0, 1, X), LOAD_FAULT);
    forbidden(41, USER, store, ARMED(NEVER, 0, 1, R), STORE_FAULT);
    forbidden(42, USER, add, ARMED(NEVER, 0, 1, R | X), STORE_FAULT);
    forbidden(43, USER, fetch, ARMED(NEVER, 0, 1, R | W), FETCH_FAULT);
    // MXR lets a load through.
    csr_set(mstatus, MXR);
    arm(20, ARMED(DONE, 50, 3, X));
    EQUAL(48, run(USER, load, VA(20) + 8).value, CONTENT(3, 1));
    csr_clear(mstatus, MXR);
}

static void forms(void) {
    const u64 good = ARMED(NEVER, 0, 1, R | W | X);
    // Each differs from the armed form in one respect.
    const u64 bad[] = {
        good & ~(u64)L, (good & ~(u64)U), good | G, good | D, (good & ~(u64)(R | X)) & ~(u64)W, (good & ~(u64)R),
        good | 1ul << 57, good | 1ul << 58, good | 1ul << 63,
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        forbidden(60 + i, USER, load, bad[i], LOAD_FAULT);
        if (bad[i] & X) forbidden(60 + i, USER, fetch, bad[i], FETCH_FAULT);
    }
    // Not a leaf of 4 KiB.
    u64 old = middle[1];
    middle[1] = good;
    sfence();
    EQUAL(80, run(USER, load, VA(600)).cause, LOAD_FAULT);
    EQUAL(81, middle[1], good);
    middle[1] = old;
    old = root[0];
    root[0] = good;
    sfence();
    EQUAL(82, run(USER, load, 4096).cause, LOAD_FAULT);
    root[0] = old;
    // Socket, device and the software bit belong to the armed form, so the walker asks the SMU, even for an unknown device.
    u64 asked = DEVICE[REQUESTS];
    arm(21, ARMED(DONE, 20, 5, R) | 1ul << 51 | 1ul << 54 | 1 << 8);
    run(USER, load, VA(21) + 8);
    EQUAL(83, DEVICE[REQUESTS], asked + 1);
    // EN = 0.
    arm(20, good);
    csr_write(0x5c0, 0);
    EQUAL(84, run(USER, load, VA(20)).cause, LOAD_FAULT);
    csr_write(0x5c0, ~0ul);
    EQUAL(85, csr_read(0x5c0), 1);
}

// Valid entries with bits of extensions that the core lacks: 63:54 of each entry; D, A and U of a pointer. They cause page
// faults at once, and the walker does not ask for an armed leaf below such a pointer.
static void malformed(void) {
    const u64 page = (u64)root >> 2 | D | A | U | X | W | R | V;
    arm(20, page);
    EQUAL(86, run(USER, load, VA(20)).cause, USER_CALL);
    for (int bit = 54; bit < 64; bit++) {
        forbidden(87, USER, load, page | 1ul << bit, LOAD_FAULT);
        forbidden(88, USER, add, page | 1ul << bit, STORE_FAULT);
        forbidden(89, USER, fetch, page | 1ul << bit, FETCH_FAULT);
    }
    u64 *const pointers[] = {&root[TESTED >> 30], &middle[0]};
    const u64 asked = DEVICE[REQUESTS];
    for (int i = 0; i < 2; i++) {
        const u64 good = *pointers[i];
        for (int bit = 0; bit < 64; bit++) {
            if (bit < 54 && !(1ul << bit & (D | A | U))) continue;
            *(reg *)pointers[i] = good | 1ul << bit;
            forbidden(90, USER, load, ARMED(NEVER, 0, 1, R | W | X), LOAD_FAULT);
            forbidden(91, USER, fetch, ARMED(NEVER, 0, 1, R | W | X), FETCH_FAULT);
        }
        *(reg *)pointers[i] = good;
    }
    EQUAL(92, DEVICE[REQUESTS], asked);
    sfence();
}

// Accesses in M-mode under MPRV: as if in the mode of mstatus.MPP. The status is in a register: with MPRV set, a load of the
// variable would be translated, too.
static u64 machine_status;
static __attribute__((noinline)) u64 load_mprv(u64 a) {
    const u64 status = machine_status;
    csr_set(mstatus, status);
    u64 v = *(reg *)a;
    csr_clear(mstatus, status);
    return v;
}
static __attribute__((noinline)) u64 store_mprv(u64 a) {
    const u64 status = machine_status;
    csr_set(mstatus, status);
    *(reg *)a = 77;
    csr_clear(mstatus, status);
    return 0;
}
static __attribute__((noinline)) u64 add_mprv(u64 a) {
    const u64 status = machine_status;
    csr_set(mstatus, status);
    __asm__ volatile("amoadd.d zero, %0, (%0)" : : "r"(a) : "memory");
    csr_clear(mstatus, status);
    return 0;
}

// For accesses that are not executed in U-mode, an armed entry is an ordinary invalid entry, whatever its permissions: the page
// fault comes at once, with the access's cause and address, and the SMU is not asked (a request would end the run).
static void kernel(void) {
    u64 (*const as_super[])(u64) = {load, store, add, fetch}, (*const as_machine[])(u64) = {load_mprv, store_mprv, add_mprv};
    const u64 cause[] = {LOAD_FAULT, STORE_FAULT, STORE_FAULT, FETCH_FAULT}, status[] = {0, SUM, MXR, SUM | MXR};
    const u64 all = ARMED(NEVER, 0, 1, R | W | X), asked = DEVICE[REQUESTS];
    for (int s = 0; s < 4; s++) {
        csr_set(mstatus, status[s]);
        for (int k = 0; k < 4; k++) forbidden(100 + 10 * s + k, SUPER, as_super[k], all, cause[k]);
        forbidden(104 + 10 * s, SUPER, load, ARMED(NEVER, 0, 1, X), LOAD_FAULT);
        // MPP is set to U, then to S; entering M-mode has cleared it.
        for (int mode = USER; mode <= SUPER; mode++) {
            machine_status = MPRV | (u64)mode << 11;
            for (int k = 0; k < 3; k++) forbidden(105 + 10 * s + k, MACHINE, as_machine[k], all, cause[k]);
        }
        csr_clear(mstatus, status[s]);
    }
    EQUAL(150, DEVICE[REQUESTS], asked);
}

static u64 super_csr(u64 v) {
    csr_write(0x5c0, v);
    return csr_read(0x5c0);
}
static u64 user_csr(u64 v) {
    (void)v;
    return csr_read(0x5c0);
}

static void modes(void) {
    EQUAL(93, run(SUPER, super_csr, ~0ul - 1).value, 0);
    EQUAL(94, run(SUPER, super_csr, ~0ul).value, 1);
    EQUAL(95, run(USER, user_csr, 0).cause, ILLEGAL);
}

int main(void) {
    csr_write(0x5c0, 0);
    EQUAL(99, csr_read(0x5c0), 0);
    set_up(64);
    kinds();
    permissions();
    for (int i = 0; i < 40; i++) {
        u64 asked = DEVICE[REQUESTS];
        struct result r = run(USER, arm_and_touch, 100 + i);
        if (r.cause == LOAD_FAULT) {
            // Without SFENCE.VMA the walk may come before the store; then the walker has not asked.
            EQUAL(31, DEVICE[REQUESTS], asked);
            r = run(USER, load, VA(100 + i) + 24);
        }
        EQUAL(30, r.value, CONTENT(100 + i, 3));
    }
    forms();
    malformed();
    kernel();
    modes();
    say("accesses, permissions, forms, malformed entries, the kernel's, modes\n");
    return 0;
}
