// SPDX-License-Identifier: Apache-2.0
// Code that the walker's programs share: page tables, armed entries that say what happens to a page (world.h), running code in
// other modes, traps and interrupts. Include it only once.
#include <stdint.h>
typedef uint64_t u64;
typedef volatile u64 reg;

// -------------- the device of the harness --------------
enum {
    EXIT, PUTC, FREE, REQUESTS, ABANDONS, TIMER, SOFTWARE, EXTERNAL, SUPERVISOR, DEBUG, NOW, RANDOM, CHAOS, INSTALLS,
    DMA_ADDRESS, DMA_VALUE, LATE, FRAMES, ENOUGH, COMMANDS, TIMES,
    DMA_DELAY, SERVED, WAITED
};
#define DEVICE ((reg *)0x10000000)

#define csr_read(n) ({ u64 v_; __asm__ volatile("csrr %0, " #n : "=r"(v_)); v_; })
#define csr_write(n, v) __asm__ volatile("csrw " #n ", %0" : : "r"((u64)(v)) : "memory")
#define csr_set(n, v) __asm__ volatile("csrs " #n ", %0" : : "r"((u64)(v)) : "memory")
#define csr_clear(n, v) __asm__ volatile("csrc " #n ", %0" : : "r"((u64)(v)) : "memory")
#define sfence() __asm__ volatile("sfence.vma" : : : "memory")

void finish(u64) __attribute__((noreturn));

static void say(const char *text) {
    while (*text) DEVICE[PUTC] = *text++;
}

// Ends the program with failed case `n` unless `holds` is true.
#define CHECK(n, holds) do { if (!(holds)) finish((u64)(n) << 1 | 1); } while (0)
#define EQUAL(n, a, b) CHECK(n, (u64)(a) == (u64)(b))

// -------------- entries --------------
enum { V = 1, R = 2, W = 4, X = 8, U = 16, G = 32, A = 64, D = 128, L = 1 << 9 };
enum { DONE, DEVICE_ERROR, BUS_ERROR, PRESENT, REARMED, SILENT, NO_FRAME, BUSY, GONE, NEVER = 15 };
#define BITS(x) ((u64)(x))
#define ARMED(behaviour, latency, page, perm) \
    (BITS(page) << 30 | BITS(latency) << 14 | BITS(behaviour) << 10 | L | A | U | (perm))
#define CONTENT(page, i) (BITS(page) << 32 | BITS(i) << 8 | 0x5a)

enum { MACHINE = 3, SUPER = 1, USER = 0 };
enum { MPRV = 1 << 17, SUM = 1 << 18, MXR = 1 << 19 };  // of mstatus
enum { FETCH_ACCESS = 1, ILLEGAL = 2, LOAD_ACCESS = 5, STORE_ACCESS = 7, USER_CALL = 8, SUPER_CALL = 9, FETCH_FAULT = 12,
       LOAD_FAULT = 13, STORE_FAULT = 15 };

// Virtual addresses: 0x4000_0000 tested pages (two leaf tables); 0x8000_0000 all memory for U; 0xc000_0000 the same for S.
#define TESTED 0x40000000ul
#define PAGES 1024
#define ALIAS 0x40000000ul
#define VA(i) (TESTED + BITS(i) * 4096)
#define POOL 0x82000000ul  // frames
static u64 root[512] __attribute__((aligned(4096)));
static u64 middle[512] __attribute__((aligned(4096)));
static u64 leaf[PAGES] __attribute__((aligned(4096)));
static char stack[8192] __attribute__((aligned(16)));
extern u64 alias;

static volatile u64 interrupts, last_interrupt;
static void (*on_interrupt)(void);

static void set_up_tables(void) {
    root[TESTED >> 30] = (u64)middle >> 2 | V;
    for (int i = 0; i < PAGES / 512; i++) middle[i] = (u64)&leaf[512 * i] >> 2 | V;
    root[2] = 0x80000000ul >> 2 | D | A | U | X | W | R | V;
    root[3] = 0x80000000ul >> 2 | D | A | X | W | R | V;
    csr_write(satp, 8ul << 60 | (u64)root >> 12);
    csr_write(mie, 1 << 11 | 1 << 7 | 1 << 3);
    sfence();
}
static void set_up(int frames) {
    set_up_tables();
    for (int i = 0; i < frames; i++) DEVICE[FREE] = (POOL >> 12) + i;
    csr_write(0x5c0, 1);
}

static void arm(int page, u64 entry) {
    *(reg *)&leaf[page] = entry;
    sfence();
}
static u64 entry_of(int page) { return *(reg *)&leaf[page]; }

// -------------- running code in another mode --------------
struct result { u64 cause, value, pc, address; };
static struct result result;
void enter(u64 mode, u64 function, u64 argument, u64 stack);
void leave(void) __attribute__((noreturn));
static u64 (*on_call)(u64 number, u64 argument);

// Runs a function; returns its a0 at the end (cause 8 or 9), or the trap that ended it.
static struct result run_at(u64 mode, u64 function, u64 argument) {
    alias = mode == SUPER ? ALIAS : 0;
    enter(mode, function, argument, (u64)stack + sizeof stack + alias);
    return result;
}
static struct result run(u64 mode, u64 (*function)(u64), u64 argument) {
    return run_at(mode, (u64)function + (mode == SUPER ? ALIAS : 0), argument);
}

void trap(u64 *x) {
    u64 cause = csr_read(mcause);
    if (cause >> 63) {
        interrupts++;
        last_interrupt = csr_read(mepc);
        switch (cause & 63) {
        case 7: DEVICE[TIMER] = 0; break;
        case 3: DEVICE[SOFTWARE] = 0; break;
        case 11: DEVICE[EXTERNAL] = 0; break;
        case 9: DEVICE[SUPERVISOR] = 0; break;
        default: finish(999 << 1 | 1);
        }
        __asm__ volatile("fence" ::: "memory");
        if (on_interrupt) on_interrupt();
        return;
    }
    if ((cause == USER_CALL || cause == SUPER_CALL) && x[17]) {
        x[10] = on_call(x[17], x[10]);
        csr_write(mepc, csr_read(mepc) + 4);
        return;
    }
    result.cause = cause;
    result.pc = csr_read(mepc);
    result.address = csr_read(mtval);
    result.value = x[10];
    leave();
}

static u64 call(u64 number, u64 argument) {
    register u64 a0 __asm__("a0") = argument, a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7) : "memory");
    return a0;
}

// Functions to run in another mode. Each accesses its page once.
static __attribute__((noinline)) u64 load(u64 a) { return *(reg *)a; }
static __attribute__((noinline)) u64 store(u64 a) { *(reg *)a = 77; return 0; }
static __attribute__((noinline)) u64 add(u64 a) {
    u64 old;
    __asm__ volatile("amoadd.d %0, %1, (%2)" : "=r"(old) : "r"(1ul), "r"(a) : "memory");
    return old;
}
static __attribute__((noinline)) u64 fetch(u64 a) { return ((u64(*)(void))a)(); }
