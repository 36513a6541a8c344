// SPDX-License-Identifier: Apache-2.0
// Everything at once, at random: loads, stores, AMOs and fetches of pages that are armed, present or fail, from U-mode and from
// S-mode, whose misses are not served; pages that are taken away and armed again; interrupts, debug requests, fences, and
// waits with no interrupt enabled.
// Every value read is checked.
#include "walk.h"

enum { COUNT = 48, POOL_FRAMES = 24 };
enum { ABSENT, ARM, GOOD };
// `older`: a miss of the previous entry may be under way. A request joins it and gets its outcome (SMU-1).
static struct { u64 number, state, entry, older, written[8], value[512]; } pages[COUNT];
static u64 random_state, armed_next = 1;
static u64 counts[8], fetched[COUNT];

// Returns the value that a word of a page should have.
static u64 value(int i, u64 k) {
    if (pages[i].written[k / 64] >> k % 64 & 1) return pages[i].value[k];
    return k ? CONTENT(pages[i].number, k) : 0x0000806700000513ul | (pages[i].number & 0x7ff) << 20;
}
static void set_value(int i, u64 k, u64 v) {
    pages[i].written[k / 64] |= 1ul << k % 64;
    pages[i].value[k] = v;
}

static u64 random_number(void) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return random_state >> 11;
}

// Takes a page away and gives its frame back to the SMU.
static void evict(int i) {
    u64 entry = entry_of(i);
    *(reg *)&leaf[i] = 0;
    sfence();
    // If the entry was still armed and a miss was under way, the SMU finds it changed, and keeps the frame.
    if (entry & V) DEVICE[FREE] = entry >> 10;
    pages[i].state = ABSENT;
}

static void arm_again(int i) {
    static const unsigned char behaviours[16] = {DONE, DONE, DONE, DONE, DONE, DONE, DONE, DONE, DONE, PRESENT, PRESENT,
                                                 DEVICE_ERROR, BUS_ERROR, NO_FRAME, BUSY, GONE};
    u64 what = behaviours[random_number() & 15];
    u64 latency = random_number() % 4 ? random_number() % 200 : random_number() % 4000;
    pages[i].older = pages[i].entry != 0;
    pages[i].number = armed_next++ & 0x1fffff;
    pages[i].entry = ARMED(what, latency, pages[i].number, R | W | X | (random_number() % 3 ? D : 0));
    pages[i].entry &= ~(u64)D;
    pages[i].state = ARM;
    for (int k = 0; k < 8; k++) pages[i].written[k] = 0;
    // A miss that nobody waits for may have just ended, so exchange the entry, as the operating system must do.
    u64 old;
    __asm__ volatile("amoswap.d %0, %1, (%2)" : "=r"(old) : "r"(pages[i].entry), "r"(&leaf[i]) : "memory");
    if (old & V) DEVICE[FREE] = old >> 10;
    sfence();
}

static __attribute__((noinline)) u64 swap(u64 a) {
    u64 v = 77, o;
    __asm__ volatile("1: lr.d %0, (%2)\n sc.d t0, %1, (%2)\n bnez t0, 1b" : "=&r"(o) : "r"(v), "r"(a) : "t0", "memory");
    return o;
}

// Loads from several pages in a row, some of them armed, without a trap between, and branches on the values.
static __attribute__((noinline)) u64 many(u64 seed) {
    u64 sum = 0;
    for (int n = 0; n < 12; n++) {
        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
        u64 a = VA((seed >> 33) % COUNT) + ((seed >> 50) & 511) * 8;
        u64 v = *(reg *)a;
        sum += v & 2 ? v : v >> 1;
    }
    return sum;
}

static void touch(int i) {
    u64 word = random_number() & 511, at = VA(i) + word * 8, mode = random_number() & 3 ? USER : SUPER;
    u64 (*const kinds[6])(u64) = {load, load, store, add, swap, fetch};
    int kind = random_number() % 6;
    if (kind == 5) at = VA(i), mode = USER, word = 0;
    else if (word == 0) word = 1, at += 8;  // word 0 is code: do not write it
    // The frame may have held the code of another page (OS-12).
    if (kind == 5 && fetched[i] != pages[i].number) {
        __asm__ volatile("fence.i");
        fetched[i] = pages[i].number;
    }
    u64 behaviour = pages[i].entry >> 10 & 15;
    // S-mode misses are not served, but a U-mode miss that nobody waits for may install the page meanwhile.
    u64 unserved = mode == SUPER && !(entry_of(i) & V);
    if (random_number() % 8 == 0) csr_write(mie, 0);
    struct result r = run(mode, kinds[kind], at);
    csr_write(mie, 1 << 11 | 1 << 7 | 1 << 3);
    u64 now = entry_of(i);
    if (now & V) {
        if (pages[i].state == ARM) counts[0]++;
        CHECK(1, pages[i].state != ABSENT);
        pages[i].state = GOOD;
    }
    if (r.cause == USER_CALL || r.cause == SUPER_CALL) {
        CHECK(2, pages[i].state == GOOD);
        CHECK(3, kind < 2 || kind == 5 || now & D);
        if (kind == 5) EQUAL(4, r.value, value(i, 0) >> 20 & 0x7ff);
        else if (kind != 2) EQUAL(5, r.value, value(i, word));
        if (kind == 2 || kind == 4) set_value(i, word, 77);
        if (kind == 3) set_value(i, word, value(i, word) + 1);
        counts[1]++;
        return;
    }
    EQUAL(6, r.address, at);
    if (kind == 5) EQUAL(7, r.pc, at);
    counts[2]++;
    // A swap is LR, which faults like a load, and SC, which faults if the page is present and clean.
    int loads = kind < 2 || (kind == 4 && !(pages[i].state == GOOD && r.cause == STORE_FAULT));
    u64 fault = loads ? LOAD_FAULT : kind == 5 ? FETCH_FAULT : STORE_FAULT;
    if (r.cause != fault) {
        CHECK(8, (behaviour == BUS_ERROR || pages[i].older) && pages[i].state == ARM && mode == USER);
        pages[i].older = 0;
        EQUAL(9, r.cause, loads ? LOAD_ACCESS : kind == 5 ? FETCH_ACCESS : STORE_ACCESS);
        counts[3]++;
        return;
    }
    // A page fault has one of these reasons.
    if (pages[i].state == GOOD) {
        if (unserved) return;
        CHECK(10, !(now & D) && kind >= 2 && kind < 5 && !loads);
        *(reg *)&leaf[i] |= D;
        sfence();
        return;
    }
    CHECK(11, pages[i].state == ABSENT || unserved || pages[i].older || behaviour == DEVICE_ERROR || behaviour == NO_FRAME
                  || behaviour == GONE || DEVICE[FRAMES] < 4);
    if (!unserved) pages[i].older = 0;
    if (behaviour == GONE && now == 0) pages[i].state = ABSENT;
    counts[4]++;
}

static void check_whole(int i) {
    if (pages[i].state != GOOD) return;
    reg *frame = (reg *)(entry_of(i) >> 10 << 12);
    for (int k = 0; k < 512; k += 1 + (random_number() & 63)) EQUAL(12, frame[k], value(i, k));
}

int main(void) {
    set_up(POOL_FRAMES);
    random_state = DEVICE[RANDOM] | 1;
    csr_set(mstatus, 1 << 18);
    DEVICE[CHAOS] = 0x17;  // timer, software, external; debug
    while (!DEVICE[ENOUGH]) {
        for (int n = 0; n < 32; n++) {
            switch (random_number() % 8) {
            case 0: case 1: case 2: {
                int i = random_number() % COUNT;
                if (pages[i].state == GOOD) {
                    check_whole(i);
                    evict(i);
                }
                // An armed entry is changed, too, whether a miss is under way or not.
                if (pages[i].state == ABSENT || random_number() % 4 == 0) arm_again(i);
                if (random_number() & 1) touch(i);
                break;
            }
            case 3: {
                u64 seed = random_number();
                (void)run(random_number() & 1 ? USER : SUPER, many, seed);
                for (int i = 0; i < COUNT; i++)
                    if (pages[i].state == ARM && entry_of(i) & V) pages[i].state = GOOD, counts[0]++;
                    else if (pages[i].state == ARM && !entry_of(i)) pages[i].state = ABSENT;
                break;
            }
            default: touch(random_number() % COUNT); break;
            }
        }
    }
    CHECK(20, counts[0] && counts[1] && counts[2] && counts[3] && counts[4]);
    // REQ: ISA-7
    EQUAL(21, csr_read(0xdc0), DEVICE[SERVED]);
    EQUAL(22, csr_read(0xdc1), DEVICE[WAITED]);
    say("pages installed, touched, faults seen\n");
    return 0;
}
