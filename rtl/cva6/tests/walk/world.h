// SPDX-License-Identifier: Apache-2.0
// State that core, SMU and devices share in the simulation: memory, invalidations of the cache, time, random numbers.
#pragma once
#include "Vtop.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <vector>

using u64 = uint64_t;

constexpr u64 Ram = 0x8000'0000, RamSize = 64 << 20;
constexpr u64 PteV = 1, PteL = 1 << 9;

// Behaviour that a block address asks for in its bits 3:0. Bits 19:4 are the latency in cycles, 40:20 the number of the page.
enum Behaviour { Done, DeviceError, BusError, Present, Rearmed, Silent, NoFrame, Busy, Gone, Never = 15 };
inline unsigned behaviour(u64 entry) { return entry >> 10 & 15; }
inline u64 latency(u64 entry) { return entry >> 14 & 0xffff; }
inline u64 page(u64 entry) { return entry >> 30 & 0x1f'ffff; }

// Content of a page: `li a0, page; ret` in word 0, then a different number in every word.
inline u64 content(u64 page, u64 i) {
    if (i == 0) return 0x0000'8067'0000'0513ull | (page & 0x7ff) << 20;
    return page << 32 | i << 8 | 0x5a;
}

[[noreturn]] inline void die(const char *what, u64 a = 0, u64 b = 0) {
    printf("\nharness: error: %s (%#lx, %#lx)\n", what, (unsigned long)a, (unsigned long)b);
    fflush(stdout);
    _Exit(1);
}

struct Rng {
    u64 state;
    u64 next() {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return state * 0x2545'f491'4f6c'dd1dull >> 11;
    }
    u64 below(u64 n) { return next() % n; }
    bool often() { return below(8) != 0; }
};

// Steps of a miss, in order.
enum class Step { Walk, Asks, Accepted, Command, Doorbell, Device, Entry, Answer, End };

struct World {
    Vtop top;
    Rng rng;
    bool steady = false;  // memory always takes the platform's time (rtl/cva6/README.md)
    std::vector<std::pair<Step, u64>> steps;
    std::vector<uint8_t> ram = std::vector<uint8_t>(RamSize);
    u64 now = 0;
    std::map<unsigned, u64> reserved;  // for each master, the word of its exclusive read
    std::deque<u64> tells;             // lines that the core's cache must invalidate
    u64 pushed = 0, told = 0;
    // Whether the walker waits, and for which request.
    bool waits = false;
    u64 waiting_for = 0, waiting_seen = 0;
    unsigned waiting_id = 0;
    u64 requests = 0, abandons = 0, installs = 0, commands = 0, all_requests = 0, all_abandons = 0;

    void step(Step what) { steps.push_back({what, now}); }
    // The cycle of the first time that a step was made, or 0.
    u64 first(Step what) const {
        for (auto &s : steps)
            if (s.first == what) return s.second;
        return 0;
    }
    u64 last(Step what) const {
        u64 at = 0;
        for (auto &s : steps)
            if (s.first == what) at = s.second;
        return at;
    }

    // Random, unless `steady`.
    bool ready() { return steady || rng.often(); }
    u64 pause(u64 most, u64 always) { return steady ? always : rng.below(most); }

    u64 &word(u64 addr) {
        if (addr < Ram || addr >= Ram + RamSize) die("no memory", addr, now);
        return *reinterpret_cast<u64 *>(&ram[(addr - Ram) & ~7ull]);
    }
    void write(u64 addr, u64 data, unsigned strb) {
        u64 mask = 0;
        for (int i = 0; i < 8; i++)
            if (strb >> i & 1) mask |= 0xffull << 8 * i;
        word(addr) = (word(addr) & ~mask) | (data & mask);
        for (auto &r : reserved)
            if (r.second == (addr & ~7ull)) r.second = 0;
    }
    // Whether the core's cache may still hold the line with its value before another master's write.
    bool telling(u64 addr) const { return std::find(tells.begin(), tells.end(), addr & ~15ull) != tells.end(); }
    // A write of another master than the core.
    void outside(u64 addr, u64 data, unsigned strb = 0xff) {
        write(addr, data, strb);
        // The first line is already being invalidated, so a write after that needs another invalidation.
        if (tells.size() < 2 || tells.back() != (addr & ~15ull)) tells.push_back(addr & ~15ull), pushed++;
    }
};
