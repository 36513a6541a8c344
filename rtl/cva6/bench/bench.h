// SPDX-License-Identifier: Apache-2.0
// Code that the programs share: cycle counter, console, results as lines `name cycles operations`.
#pragma once
#include <stdint.h>
#include <stddef.h>

static inline uint64_t cycles(void) {
    uint64_t c;
    __asm__ volatile("csrr %0, cycle" : "=r"(c));
    return c;
}

static inline void put(char c) {
    volatile uint8_t *uart = (uint8_t *)0x10000000;
    while (!(uart[5] & 0x20)) {
    }
    uart[0] = c;
}

static inline void puts_(const char *s) {
    while (*s) put(*s++);
}

static inline void put_number(uint64_t n) {
    char text[21];
    int i = 20;
    text[i] = 0;
    do {
        text[--i] = '0' + n % 10;
        n /= 10;
    } while (n);
    puts_(text + i);
}

static inline void result(const char *name, uint64_t taken, uint64_t operations) {
    puts_(name);
    put(' ');
    put_number(taken);
    put(' ');
    put_number(operations);
    put('\n');
}

// Runs `body` twice and reports the second run; the first brings code and data into the caches.
#define MEASURE(name, operations, body)                      \
    do {                                                     \
        uint64_t taken_ = 0;                                 \
        for (int run_ = 0; run_ < 2; run_++) {               \
            uint64_t begin_ = cycles();                      \
            body;                                            \
            taken_ = cycles() - begin_;                      \
        }                                                    \
        result(name, taken_, operations);                    \
    } while (0)

static inline uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}
