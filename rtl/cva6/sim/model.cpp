// SPDX-License-Identifier: Apache-2.0
// C functions of the verilated SoC for machine/crates/rtl-platform, and the memory, which the SoC calls and which must be fast.
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>

#include "Vtrapless_soc.h"
#include "Vtrapless_soc___024root.h"
#include "svdpi.h"
#include "verilated.h"
#include "verilated_save.h"

namespace {

struct Model {
    std::unique_ptr<VerilatedContext> context;
    std::unique_ptr<Vtrapless_soc> soc;
    uint8_t *ram = nullptr;
    uint64_t base = 0, size = 0;
    uint64_t cycle = 0;
    uint64_t to_host = ~0ull;
    bool stop = false;
    uint64_t boot_address = 0;
    uint16_t read_latency = 1, write_latency = 1, device_latency = 1;
    // Cache lines that a drive has written and that the core's data cache may hold. The interrupt signals do not change before
    // all of these lines are invalidated.
    std::deque<uint64_t> stale;
    struct {
        uint8_t external;
        bool software, timer;
    } lines{};
    // Lines that were read recently: they may be on their way into the cache.
    uint64_t recent[8]{};
    unsigned next_recent = 0;
} model;

constexpr int ResetCycles = 10;

// The data cache's shape, as in rtl/cva6/build; checked below against the generated arrays.
constexpr uint64_t LineBytes = 16, Sets = 256, Ways = 4, TagShift = 12, TagBits = 44;

void apply_lines() {
    model.soc->external_i = model.lines.external;
    model.soc->software_i = model.lines.software;
    model.soc->timer_i = model.lines.timer;
}

void next_stale() {
    model.soc->inval_valid_i = !model.stale.empty();
    if (model.stale.empty())
        apply_lines();
    else
        model.soc->inval_addr_i = model.stale.front();
}

void tick() {
    bool taken = model.soc->inval_valid_i && model.soc->inval_ready_o;
    model.soc->clk_i = 1;
    model.soc->eval();
    if (taken) {
        model.stale.pop_front();
        next_stale();
    }
    model.soc->clk_i = 0;
    model.soc->eval();
}

// Verilator's name of a way's tags.
#define TAGS(way)                                                                                                  \
    trapless_soc__DOT__u_core__DOT__i_cache_subsystem__DOT__i_wt_dcache__DOT__i_wt_dcache_mem__DOT__gen_tag_srams__BRA__##way \
        ##__KET____DOT__i_tag_sram__DOT__gen_cut__BRA__0__KET____DOT__gen_mem__DOT__i_tc_sram_wrapper__DOT__i_tc_sram__DOT__sram

template <typename Array> bool holds(const Array &tags, uint64_t line) {
    static_assert(sizeof(tags.m_storage) == Sets * sizeof(uint64_t), "the data cache has another shape than expected");
    uint64_t word = tags[(line / LineBytes) % Sets];
    return word >> TagBits & 1 && (word & ((1ull << TagBits) - 1)) == line >> TagShift;
}

bool may_be_cached(uint64_t line) {
    const auto &root = *model.soc->rootp;
    static_assert(Ways == 4);
    bool cached = holds(root.TAGS(0), line) || holds(root.TAGS(1), line) || holds(root.TAGS(2), line) ||
                  holds(root.TAGS(3), line);
    for (uint64_t recent : model.recent)
        cached |= recent == line;
    return cached;
}

void drive_constants() {
    model.soc->boot_address_i = model.boot_address;
    model.soc->memory_read_latency_i = model.read_latency;
    model.soc->memory_write_latency_i = model.write_latency;
    model.soc->device_latency_i = model.device_latency;
}

uint8_t *at(uint64_t address) {
    uint64_t offset = address - model.base;
    return offset < model.size ? model.ram + offset : nullptr;
}

}  // namespace

extern "C" {

// machine/crates/rtl-platform
int trapless_rtl_main();
void trapless_to_host(uint64_t value);

void trapless_model_new(uint8_t *ram, uint64_t base, uint64_t size) {
    model.context = std::make_unique<VerilatedContext>();
    model.soc = std::make_unique<Vtrapless_soc>(model.context.get());
    model.ram = ram;
    model.base = base;
    model.size = size;
}

void trapless_model_configure(uint64_t boot_address, uint16_t read, uint16_t write, uint16_t device) {
    model.boot_address = boot_address;
    model.read_latency = read;
    model.write_latency = write;
    model.device_latency = device;
    drive_constants();
}

void trapless_model_reset() {
    model.soc->rst_ni = 0;
    for (int n = 0; n < ResetCycles; n++)
        tick();
    model.soc->rst_ni = 1;
    model.cycle = 0;
}

void trapless_model_watch(uint64_t address) { model.to_host = address; }

void trapless_model_run(uint64_t until) {
    model.stop = false;
    while (model.cycle < until && !model.stop) {
        tick();
        model.cycle++;
    }
}

void trapless_model_stop() { model.stop = true; }

uint64_t trapless_model_cycle() { return model.cycle; }

uint64_t trapless_model_instructions() { return model.soc->rootp->trapless_soc__DOT__u_core__DOT__csr_regfile_i__DOT__instret_q; }

uint64_t trapless_model_pc() { return model.soc->rootp->trapless_soc__DOT__u_core__DOT__pc_commit; }

void trapless_model_lines(uint8_t external, bool software, bool timer) {
    model.lines = {external, software, timer};
    if (model.stale.empty())
        apply_lines();
}

// The platform has written memory. Only lines that the cache holds or is about to get need invalidation: the harness looks at
// the tags, where a bus would have a snoop filter.
void trapless_model_written(uint64_t address, uint64_t length) {
    bool idle = model.stale.empty();
    for (uint64_t line = address & ~(LineBytes - 1); line < address + length; line += LineBytes)
        if (may_be_cached(line))
            model.stale.push_back(line);
    if (idle && !model.stale.empty())
        next_stale();
}

bool trapless_model_save(const char *path) {
    VerilatedSave file;
    file.open(path);
    if (!file.isOpen())
        return false;
    file.write(&model.cycle, sizeof model.cycle);
    uint64_t stale = model.stale.size();
    file.write(&stale, sizeof stale);
    for (uint64_t line : model.stale)
        file.write(&line, sizeof line);
    file << *model.soc;
    file.close();
    return true;
}

bool trapless_model_restore(const char *path) {
    VerilatedRestore file;
    file.open(path);
    if (!file.isOpen())
        return false;
    file.read(&model.cycle, sizeof model.cycle);
    uint64_t stale = 0;
    file.read(&stale, sizeof stale);
    model.stale.resize(stale);
    for (uint64_t &line : model.stale)
        file.read(&line, sizeof line);
    file >> *model.soc;
    file.close();
    drive_constants();
    next_stale();
    return true;
}

// Addresses outside memory read as zero.
uint64_t trapless_memory_read(uint64_t address) {
    uint64_t word = 0, line = address & ~(LineBytes - 1);
    if (model.recent[model.next_recent] != line)
        model.recent[model.next_recent = (model.next_recent + 1) % 8] = line;
    if (const uint8_t *from = at(address))
        std::memcpy(&word, from, sizeof word);
    return word;
}

void trapless_memory_write(uint64_t address, uint64_t data, uint8_t strobes) {
    uint8_t *to = at(address);
    if (!to)
        return;
    if (strobes == 0xff) {
        std::memcpy(to, &data, sizeof data);
    } else {
        for (int byte = 0; byte < 8; byte++)
            if (strobes >> byte & 1)
                to[byte] = uint8_t(data >> (8 * byte));
    }
    if (address == (model.to_host & ~7ull))
        trapless_to_host(data >> (8 * (model.to_host & 7)));
}

// Computes an IEEE division or square root with RISC-V's rounding modes, flags (NV DZ OF UF NX) and canonical NaN.
uint64_t trapless_div_sqrt(uint8_t square_root, uint8_t double_precision, uint8_t rounding, uint64_t a, uint64_t b,
                           uint8_t *flags) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST};
    uint64_t bits;
    std::fenv_t before;
    std::feholdexcept(&before);
    std::fesetround(modes[rounding <= 4 ? rounding : 0]);
    if (double_precision) {
        double x, y;
        std::memcpy(&x, &a, sizeof x);
        std::memcpy(&y, &b, sizeof y);
        volatile double vx = x, vy = y, result;
        result = square_root ? std::sqrt(vx) : vx / vy;
        double value = result;
        std::memcpy(&bits, &value, sizeof value);
        if (value != value)
            bits = 0x7ff8000000000000ull;
    } else {
        float x, y;
        std::memcpy(&x, &a, sizeof x);
        std::memcpy(&y, &b, sizeof y);
        volatile float vx = x, vy = y, result;
        result = square_root ? std::sqrt(vx) : vx / vy;
        float value = result;
        uint32_t low;
        std::memcpy(&low, &value, sizeof value);
        bits = 0xffffffff00000000ull | (value != value ? 0x7fc00000u : low);
    }
    int raised = std::fetestexcept(FE_ALL_EXCEPT);
    *flags = uint8_t((raised & FE_INVALID ? 16 : 0) | (raised & FE_DIVBYZERO ? 8 : 0) | (raised & FE_OVERFLOW ? 4 : 0) |
                     (raised & FE_UNDERFLOW ? 2 : 0) | (raised & FE_INEXACT ? 1 : 0));
    std::fesetenv(&before);
    return bits;
}

}  // extern "C"

int main() { return trapless_rtl_main(); }
