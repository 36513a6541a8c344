// SPDX-License-Identifier: Apache-2.0
// One loop for each constant of the machine's profile `cva6`: the cost of an instruction, a miss or a trap on the core in RTL.
#include "bench.h"

#define TEXT(x) #x
#define REPEAT(n, code) ".rept " TEXT(n) "\n" code "\n.endr\n"
// Runs a block of `n` copies of `code`, `rounds` times.
#define LOOP(name, rounds, n, code, ...)                                                        \
    MEASURE(name, (uint64_t)(rounds) * (n),                                                     \
            __asm__ volatile("li t3, " TEXT(rounds) "\n1:\n" REPEAT(n, code)                    \
                             "addi t3, t3, -1\nbnez t3, 1b\n" __VA_ARGS__))

static uint64_t area[1 << 17] __attribute__((aligned(4096)));  // 1 MiB
static uint64_t tables[3][512] __attribute__((aligned(4096)));
uint64_t run_paged(uint64_t (*f)(void), uint64_t satp);

// Makes a ring of pointers through `bytes`, one every `step` bytes, in an order that no stride prefetcher predicts.
static void **ring(size_t bytes, size_t step) {
    size_t n = bytes / step;
    uint32_t *order = (uint32_t *)((char *)area + sizeof(area) / 2);
    uint64_t random = 1;
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = next_random(&random) % (i + 1);
        uint32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (size_t i = 0; i < n; i++) {
        *(void **)((char *)area + order[i] * step) = (char *)area + order[(i + 1) % n] * step;
    }
    return (void **)((char *)area + order[0] * step);
}

static void *chase(void **at, uint64_t steps) {
    while (steps--) {
        at = *at;
        __asm__ volatile("" : "+r"(at));
    }
    return at;
}

static uint64_t chase_pages(void) {
    uint64_t begin = 0;
    void **at = (void **)area;
    for (int run = 0; run < 2; run++) {
        begin = cycles();
        at = chase(at, 2048);
    }
    uint64_t taken = cycles() - begin;
    __asm__ volatile("" : : "r"(at));
    return taken;
}

// Branches `n` times on bits of a pseudo-random number.
static uint64_t coin(uint64_t n, uint64_t mask) {
    uint64_t x = 88172645463325252u, sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if ((x & mask) == 1) __asm__ volatile("addi %0, %0, 1" : "+r"(sum));
        else __asm__ volatile("addi %0, %0, 2" : "+r"(sum));
    }
    return sum;
}

int main(void) {
    volatile uint64_t sink;
    LOOP("alu", 100, 64, "add t0, t0, t1", : : : "t0", "t3");
    LOOP("mul", 100, 64, "mul t0, t0, t1", : : : "t0", "t3");
    __asm__ volatile("li t0, 0x7fffffffffffffff\nli t1, 3" : : : "t0", "t1");
    LOOP("div", 10, 64, "div t2, t0, t1", : : : "t2", "t3");
    LOOP("load", 100, 64, "ld t0, 0(%0)", : : "r"(area) : "t0", "t3");
    area[0] = (uint64_t)area;
    __asm__ volatile("mv t0, %0" : : "r"(area) : "t0");
    LOOP("load_use", 100, 64, "ld t0, 0(t0)\nand t0, t0, t0", : : : "t0", "t3", "memory");
    LOOP("store", 100, 16, "sd t0, 0(%0)", : : "r"(area) : "t3", "memory");
    LOOP("amo", 20, 32, "amoadd.d t0, t1, (%0)", : : "r"(area) : "t0", "t3", "memory");
    LOOP("branch", 100, 64, "bne zero, zero, 1b", : : : "t3");
    LOOP("branch_taken", 100, 64, "beq zero, zero, 2f\nnop\n2:", : : : "t3");
    LOOP("jump", 100, 64, "j 2f\nnop\n2:", : : : "t3");
    LOOP("jump_indirect", 100, 32, "la t0, 2f\njr t0\nnop\n2:", : : : "t0", "t3");
    LOOP("call", 100, 32, "jal ra, 3f\nj 2f\n3: ret\n2:", : : : "ra", "t3");
    LOOP("csr", 20, 32, "csrr t0, mscratch", : : : "t0", "t3");
    LOOP("csr_write", 20, 32, "csrw mscratch, t0", : : : "t3");
    LOOP("fence", 20, 32, "fence", : : : "t3", "memory");
    LOOP("fence_i", 5, 16, "fence.i", : : : "t3", "memory");
    LOOP("sfence", 20, 32, "sfence.vma", : : : "t3", "memory");
    LOOP("ecall", 20, 16, "ecall", : : : "t3", "memory");
    LOOP("fp_move", 100, 32, "fmv.d ft0, ft0", : : : "ft0", "t3");
    LOOP("fp_add", 100, 32, "fadd.d ft0, ft0, ft1", : : : "ft0", "t3");
    LOOP("fp_mul", 100, 32, "fmul.d ft0, ft0, ft1", : : : "ft0", "t3");
    LOOP("fp_fma", 100, 32, "fmadd.d ft0, ft0, ft1, ft0", : : : "ft0", "t3");
    LOOP("fp_convert", 100, 32, "fcvt.d.l ft0, t1\nfcvt.l.d t1, ft0", : : : "ft0", "t1", "t3");
    LOOP("mmio_read", 10, 16, "lw t0, 0(%0)", : : "r"(0x0200bff8L) : "t0", "t3");
    LOOP("mmio_write", 10, 16, "sw zero, 0(%0)", : : "r"(0x02004000L) : "t3");

    void **at = ring(8 << 10, 64);
    MEASURE("chase_8k", 4096, at = chase(at, 4096));
    at = ring(128 << 10, 64);
    MEASURE("chase_128k", 4096, at = chase(at, 4096));
    at = ring(128 << 10, 16);
    MEASURE("chase_128k_16", 8192, at = chase(at, 8192));
    sink = (uint64_t)at;
    MEASURE("store_stream", 8192, for (int i = 0; i < 8192; i++) *(volatile uint64_t *)(area + 8 * i) = i);
    MEASURE("load_stream", 8192, for (int i = 0; i < 8192; i++) (void)*(volatile uint64_t *)(area + 8 * i));
    MEASURE("code_stream", 16384, __asm__ volatile(".option push\n.option norvc\n" REPEAT(16384, "addi t0, zero, 1") ".option pop\n" : : : "t0"));
    // Blocks of seven instructions, each in a separate 64-byte line, like blocks of real code.
    MEASURE("code_blocks", 1024 * 7, __asm__ volatile(".option push\n.option norvc\n.balign 64\n"
            REPEAT(1024, REPEAT(6, "addi t0, zero, 1") "j 2f\n.balign 64\n2:") ".option pop\n" : : : "t0"));
    MEASURE("coin", 4096, sink = coin(4096, 1));
    MEASURE("coin_biased", 4096, sink = coin(4096, 15));

    // Sv39: gigabyte 2 is one leaf for the code; `area` is mapped at 1 GiB in 4 KiB pages.
    uint64_t flags = 0xcf;
    tables[0][2] = (uint64_t)0x80000000 >> 2 | flags;
    tables[0][1] = (uint64_t)tables[1] >> 2 | 1;
    tables[1][0] = (uint64_t)tables[2] >> 2 | 1;
    for (int i = 0; i < 256; i++) tables[2][i] = ((uint64_t)area + 4096 * i) >> 2 | flags;
    uint64_t satp = (uint64_t)8 << 60 | (uint64_t)tables[0] >> 12;
    // 64 pages, more than the translation buffers hold. The lines read are in different sets of the cache.
    for (int i = 0; i < 64; i++) {
        area[512 * i + 8 * i] = 0x40000000 + 4096 * ((i * 29 + 29) % 64) + 64 * ((i * 29 + 29) % 64);
    }
    *(volatile uint64_t *)area = 0x40000000 + 4096 * 29 + 64 * 29;
    for (int i = 0; i < 64; i++) {
        int j = i * 29 % 64, k = (j + 29) % 64;
        area[512 * j + 8 * j] = 0x40000000 + 4096 * k + 64 * k;
    }
    result("walk_4k", run_paged(chase_pages, satp), 2048);
    (void)sink;
    puts_("end\n");
    return 0;
}
