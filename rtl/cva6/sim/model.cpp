// SPDX-License-Identifier: Apache-2.0
// The verilated SoC as C functions for machine/crates/rtl-platform, and what the SoC calls that must be fast: memory.
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
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
} model;

constexpr int ResetCycles = 10;

void tick() {
    model.soc->clk_i = 1;
    model.soc->eval();
    model.soc->clk_i = 0;
    model.soc->eval();
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
    model.soc->external_i = external;
    model.soc->software_i = software;
    model.soc->timer_i = timer;
}

void trapless_model_written(uint64_t address, uint64_t length) {
    (void)address;
    (void)length;
}

bool trapless_model_save(const char *path) {
    VerilatedSave file;
    file.open(path);
    if (!file.isOpen())
        return false;
    file.write(&model.cycle, sizeof model.cycle);
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
    file >> *model.soc;
    file.close();
    drive_constants();
    return true;
}

// What no memory answers reads as zero.
uint64_t trapless_memory_read(uint64_t address) {
    uint64_t word = 0;
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

// IEEE division or square root with RISC-V's rounding modes, flags (NV DZ OF UF NX) and canonical NaN.
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
