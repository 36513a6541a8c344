// SPDX-License-Identifier: Apache-2.0
// Runs a bare-metal program on one core (walk_tb.sv) with memory, a device for tests and a mock of the SMU.
//
//   harness IMAGE [--seed N] [--cycles N] [--quiet-limit N]
//
// What the mock does with a page is written in its block address: bits 3:0 the behaviour, 19:4 the latency in cycles,
// 40:20 the number of the page, of which its content is made. Memory answers after random times; what the mock writes
// is told to the core's data cache before the answer goes out, as the SoC does (SMU-4).
#include "Vwalk_tb.h"
#include "verilated.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace {

using u64 = uint64_t;

constexpr u64 Ram = 0x8000'0000, RamSize = 64 << 20, Device = 0x1000'0000, DebugRom = 0x800;
constexpr u64 PteV = 1, PteL = 1 << 9;
enum Behaviour { Done, DeviceError, BusError, Present, Rearmed, Silent, NoFrame, Busy, Gone, Never = 15 };
enum Outcome { AnswerDone = 1, AnswerChanged, AnswerFailed };
enum Reason { ReasonNoFrame = 1, ReasonDevice, ReasonBus };
enum Register {
    Exit, Putc, Free, Requests, Abandons, Timer, Software, External, Supervisor, Debug, Now, Random, Chaos, Installs,
    DmaAddress, DmaValue, Late, Frames, Raised
};

[[noreturn]] void die(const char *what, u64 a = 0, u64 b = 0) {
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
};

struct Read {
    u64 addr, sample_at, send_at;
    unsigned id, len, size;
    bool lock, sampled;
    std::vector<u64> data;
};

struct Write {
    u64 addr, apply_at, answer_at;
    unsigned id, size, atop;
    bool lock, full, applied, ok;
    u64 data;
    unsigned strb;
};

struct Miss {
    u64 pte, pmd, pud, seen, due, frame;
    bool written;
    u64 told;  // lines to tell before the answer
    unsigned outcome, reason;
    u64 entry;
};

struct Line {
    u64 raise_at;
    bool up;
    u64 late;    // cycles in which it was up and enabled
    u64 waited;  // those of them in which the walker waited for the mock
};

class Harness {
  public:
    Harness(const char *image, u64 seed) : rng{seed * 0x9e37'79b9'7f4a'7c15ull + 1}, ram(RamSize) {
        FILE *file = fopen(image, "rb");
        if (!file || !fread(ram.data(), 1, RamSize, file)) die("cannot read the image");
        fclose(file);
        for (auto &line : lines) line = {};
    }

    int run(u64 cycles, u64 quiet_limit) {
        top.rst_ni = 0;
        for (int i = 0; i < 10; i++) clock();
        top.rst_ni = 1;
        u64 quiet = 0;
        limit = cycles;
        for (now = 1; !stopped; now++) {
            drive();
            top.clk_i = 0;
            top.eval();
            sample();
            top.clk_i = 1;
            top.eval();
            // Inputs change after the edge.
            if (took_read) top.r_valid_i = 0;
            if (took_answer) top.b_valid_i = 0;
            took_read = took_answer = false;
            quiet = alive ? 0 : quiet + 1;
            if (quiet > quiet_limit) die("no instruction retires: pc, cycle", top.pc_o, now);
            if (cycles && now > cycles * 2 + 100'000'000) die("the program does not end");
        }
        printf("%s: %lu cycles, %lu instructions, %lu requests, %lu installed, %lu abandoned, "
               "waits ended at most %lu cycles after an interrupt\n",
               code == 1 ? "passed" : "FAILED", (unsigned long)now, (unsigned long)retired, (unsigned long)all_requests,
               (unsigned long)installs, (unsigned long)all_abandons, (unsigned long)worst);
        if (code != 1) printf("case %lu\n", (unsigned long)(code >> 1));
        return code == 1 ? 0 : 1;
    }

  private:
    void clock() {
        top.clk_i = 0, top.eval();
        top.clk_i = 1, top.eval();
    }

    u64 &word(u64 addr) {
        if (addr < Ram || addr >= Ram + RamSize) die("no memory", addr, top.pc_o);
        return *reinterpret_cast<u64 *>(&ram[(addr - Ram) & ~7ull]);
    }

    u64 read(u64 addr, unsigned size) {
        if (addr >= Device && addr < Device + 0x1000) return device_read((addr - Device) / 8);
        if ((addr & ~15ull) == DebugRom) {
            lines[4].up = false;
            return 0x7b20'0073'7b20'0073ull;  // dret
        }
        if (addr < Ram || addr >= Ram + RamSize) return 0;  // a fetch on a wrong path
        (void)size;
        return word(addr);
    }

    void store(u64 addr, u64 data, unsigned strb) {
        if (addr >= Device && addr < Device + 0x1000) return device_write((addr - Device) / 8, data);
        u64 mask = 0;
        for (int i = 0; i < 8; i++)
            if (strb >> i & 1) mask |= 0xffull << 8 * i;
        word(addr) = (word(addr) & ~mask) | (data & mask);
    }

    // Another master writes.
    void outside(u64 addr, u64 data) {
        word(addr) = data;
        if ((addr & ~7ull) == reserved) reserved = 0;
        tell(addr);
    }

    void tell(u64 addr) {
        if (tells.empty() || tells.back() != (addr & ~15ull)) tells.push_back(addr & ~15ull), pushed++;
    }

    u64 device_read(u64 index) {
        switch (index) {
        case Requests: return requests;
        case Abandons: return abandons;
        case Now: return now;
        case Random: return rng.next();
        case Installs: return installs;
        case Late: return late;
        case Frames: return frames.size();
        case Raised: return limit && now >= limit;
        default: return 0;
        }
    }

    void device_write(u64 index, u64 value) {
        switch (index) {
        case Exit: stopped = true, code = value; break;
        case Putc: putchar(int(value)); break;
        case Free: frames.push_back(value << 12); break;
        case Requests: requests = abandons = late = 0; break;
        case Timer: case Software: case External: case Supervisor: case Debug:
            lines[index - Timer].up = false;
            lines[index - Timer].raise_at = value ? now + value : 0;
            break;
        case Chaos: chaos = value; break;
        case DmaAddress: dma = value; break;
        case DmaValue: outside(dma, value); break;
        default: die("no such register", index);
        }
    }

    // -------------- inputs of a cycle --------------

    bool often() { return rng.below(8) != 0; }

    void drive() {
        top.ar_ready_i = reads.size() < 4 && often();
        top.aw_ready_i = writes.size() < 4 && (writes.empty() || writes.back().full) && often();
        top.w_ready_i = !writes.empty() && !writes.back().full && often();

        for (auto &r : reads)
            if (!r.sampled && now >= r.sample_at) {
                for (unsigned i = 0; i <= r.len; i++) r.data.push_back(read(r.addr + 8 * i, r.size));
                if (r.lock) reserved = r.addr & ~7ull;
                r.sampled = true;
            }
        if (!top.r_valid_i && !reads.empty() && reads.front().sampled && now >= reads.front().send_at) {
            const Read &r = reads.front();
            top.r_valid_i = 1;
            top.r_data_i = r.data[beat];
            top.r_id_i = r.id;
            top.r_last_i = beat == r.len;
            top.r_resp_i = r.lock ? 1 : 0;
        }
        for (auto &w : writes)
            if (w.full && !w.applied && now >= w.apply_at) apply(w);
        if (!top.b_valid_i && !writes.empty() && writes.front().applied && now >= writes.front().answer_at) {
            top.b_valid_i = 1;
            top.b_id_i = writes.front().id;
            top.b_resp_i = writes.front().lock && writes.front().ok ? 1 : 0;
        }
        top.inval_valid_i = !tells.empty();
        top.inval_addr_i = tells.empty() ? rng.next() : tells.front();
        interrupts();
        smu();
    }

    void apply(Write &w) {
        w.applied = true;
        w.ok = !w.lock || reserved == (w.addr & ~7ull);
        if (w.lock) reserved = 0;
        if (!w.ok) return;
        if (!w.atop) {
            if ((w.addr & ~7ull) == reserved) reserved = 0;
            return store(w.addr, w.data, w.strb);
        }
        u64 old = word(w.addr), mask = w.size == 2 ? 0xffff'ffffull : ~0ull;
        unsigned shift = w.size == 2 ? 8 * (w.addr & 4) : 0;
        u64 a = old >> shift & mask, b = w.data >> shift & mask, result;
        int64_t sa = w.size == 2 ? int32_t(a) : int64_t(a), sb = w.size == 2 ? int32_t(b) : int64_t(b);
        if (w.atop == 0x30) result = b;
        else switch (w.atop & 7) {
            case 0: result = a + b; break;
            case 1: result = a & ~b; break;
            case 2: result = a ^ b; break;
            case 3: result = a | b; break;
            case 4: result = sa > sb ? a : b; break;
            case 5: result = sa < sb ? a : b; break;
            case 6: result = a > b ? a : b; break;
            default: result = a < b ? a : b; break;
        }
        word(w.addr) = (old & ~(mask << shift)) | (result & mask) << shift;
        if ((w.addr & ~7ull) == reserved) reserved = 0;
        reads.push_back({w.addr, now, now + rng.below(4), w.id, 0, w.size, false, true, {old}});
    }

    void interrupts() {
        for (unsigned i = 0; i < 5; i++) {
            Line &line = lines[i];
            if (line.raise_at && now >= line.raise_at) line.up = true, line.raise_at = 0, line.late = line.waited = 0;
            // A debug request empties the instruction cache: seldom.
            if (chaos >> i & 1 && !line.up && rng.below(i == 4 ? 100'000 : 5'000) == 0)
                line.up = true, line.late = line.waited = 0;
            // It is enabled, and the hart does not run in machine mode: it is to be taken.
            static constexpr unsigned bits[3] = {7, 3, 11};
            if (line.up && i < 3 && top.enabled_o >> bits[i] & 1 && top.privilege_o != 3 && !top.debug_o) {
                if (++line.late > late) late = line.late;
                if ((waits || asking) && ++line.waited > worst) worst = line.waited;
            }
        }
        top.time_irq_i = lines[0].up;
        top.ipi_i = lines[1].up;
        top.irq_i = lines[2].up | lines[3].up << 1;
        top.debug_req_i = lines[4].up;
    }

    // -------------- the mock of the SMU --------------

    void smu() {
        top.smu_rsp_valid_i = 0;
        top.smu_rsp_pte_i = rng.next();
        top.smu_rsp_id_i = rng.next();
        bool said = false;
        for (auto it = misses.begin(); it != misses.end();) {
            Miss &m = it->second;
            if (now >= m.due && !m.written) finish(m);
            if (m.written && told >= m.told && !said) {
                if (waits && waiting_for == m.pte) {
                    top.smu_rsp_valid_i = 1;
                    top.smu_rsp_id_i = waiting_id;
                    top.smu_rsp_outcome_i = m.outcome;
                    top.smu_rsp_reason_i = m.reason;
                    top.smu_rsp_pte_i = m.entry;
                    waits = false;
                    said = true;
                }
                it = misses.erase(it);
            } else ++it;
        }
        bool busy = top.smu_req_valid_o && (top.smu_pte_o >> 10 & 15) == Busy && now < busy_until;
        if (top.smu_req_valid_o && (top.smu_pte_o >> 10 & 15) == Busy && busy_until == 0)
            busy_until = now + (top.smu_pte_o >> 14 & 0xffff), busy = true;
        if (!top.smu_req_valid_o) busy_until = 0;
        top.smu_req_ready_i = !busy && rng.below(4) != 0;
    }

    static u64 content(u64 page, u64 i) {
        // First `li a0, page; ret`, then a number of its own in every word.
        if (i == 0) return 0x0000'8067'0000'0513ull | (page & 0x7ff) << 20;
        return page << 32 | i << 8 | 0x5a;
    }

    // The page is there, or not: memory is written, and the caches are told.
    void finish(Miss &m) {
        unsigned behaviour = m.seen >> 10 & 15;
        u64 page = m.seen >> 30 & 0x1f'ffff;
        m.written = true;
        m.outcome = AnswerFailed;
        m.entry = 0;
        switch (behaviour) {
        case DeviceError: m.reason = ReasonDevice; return;
        case BusError: m.reason = ReasonBus; return;
        case NoFrame: m.reason = ReasonNoFrame; return;
        case Gone: if (word(m.pte) == m.seen) outside(m.pte, 0); break;
        case Rearmed: if (word(m.pte) == m.seen) outside(m.pte, m.seen ^ 1ull << 40); break;
        default: break;
        }
        if (frames.empty()) {
            m.reason = ReasonNoFrame;
            return;
        }
        if (word(m.pte) != m.seen) {
            m.outcome = AnswerChanged, m.entry = word(m.pte), m.told = pushed;
            return;
        }
        u64 frame = frames.front();
        frames.pop_front();
        for (u64 i = 0; i < 512; i++) outside(frame + 8 * i, content(page, i));
        m.entry = frame >> 2 | (m.seen & 0x5e) | PteL | PteV;
        outside(m.pte, m.entry);
        outside(m.pmd, word(m.pmd) | PteL);
        outside(m.pud, word(m.pud) | PteL);
        m.outcome = behaviour == Present ? AnswerChanged : AnswerDone;
        m.told = pushed;
        installs++;
    }

    // -------------- outputs of a cycle --------------

    void sample() {
        if (top.r_valid_i && top.r_ready_o) {
            took_read = true;
            if (beat++ == reads.front().len) reads.pop_front(), beat = 0;
        }
        if (top.b_valid_i && top.b_ready_o) took_answer = true, writes.pop_front();
        if (top.ar_valid_o && top.ar_ready_i) {
            u64 at = now + 1 + rng.below(20);
            reads.push_back({top.ar_addr_o, at, at + rng.below(40), top.ar_id_o, top.ar_len_o, top.ar_size_o,
                             bool(top.ar_lock_o), false, {}});
        }
        if (top.w_valid_o && top.w_ready_i) {
            Write &w = writes.back();
            w.data = top.w_data_o, w.strb = top.w_strb_o, w.full = true;
            w.apply_at = now + 1 + rng.below(20);
            w.answer_at = w.apply_at + rng.below(20);
            if (!top.w_last_o) die("a burst of writes");
        }
        if (top.aw_valid_o && top.aw_ready_i)
            writes.push_back({top.aw_addr_o, 0, 0, top.aw_id_o, top.aw_size_o, top.aw_atop_o, bool(top.aw_lock_o), false,
                              false, false, 0, 0});
        if (top.inval_valid_i && top.inval_ready_o) tells.pop_front(), told++;
        alive = top.retired_o || top.trap_o;
        retired += (top.retired_o & 1) + (top.retired_o >> 1 & 1);
        sample_smu();
    }

    void sample_smu() {
        if (top.smu_abandon_o) {
            abandons++, all_abandons++;
            if (waits && waiting_id != last_id) die("abandons what it did not ask");
            waits = false;
        }
        if (!top.smu_req_valid_o) {
            asking = false;
            return;
        }
        u64 pte = top.smu_pte_addr_o, seen = top.smu_pte_o;
        if (asking && (pte != asked[0] || seen != asked[1] || top.smu_id_o != asked[2])) die("a request changes", pte, seen);
        asking = true, asked[0] = pte, asked[1] = seen, asked[2] = top.smu_id_o;
        if ((seen >> 10 & 15) == Never) die("a request that must not be: entry, pc", seen, top.pc_o);
        if ((seen & PteV) || !(seen & PteL)) die("a request for an entry that is not armed", seen);
        if (!top.smu_req_ready_i) return;
        asking = false;
        if (waits) die("a second wait");
        waits = true, waiting_for = pte, waiting_id = last_id = top.smu_id_o;
        requests++, all_requests++;
        if (misses.count(pte)) return;
        Miss m{pte, top.smu_pmd_addr_o, top.smu_pud_addr_o, seen, now + 3 + (seen >> 14 & 0xffff), 0, false, 0, 0, 0, 0};
        if ((seen >> 10 & 15) == Silent) m.due = ~0ull;
        if ((seen >> 10 & 15) == Busy) m.due = now + 3;
        if (word(pte) != seen) m.due = 0, m.written = true, m.outcome = AnswerChanged, m.entry = word(pte);
        if (~word(m.pmd) & PteV || ~word(m.pud) & PteV) die("upper entries", m.pmd, m.pud);
        misses[pte] = m;
    }

    Vwalk_tb top;
    Rng rng;
    std::vector<uint8_t> ram;
    std::deque<Read> reads;
    std::deque<Write> writes;
    std::deque<u64> tells, frames;
    std::map<u64, Miss> misses;
    Line lines[5];
    bool alive = false, took_read = false, took_answer = false, stopped = false, waits = false, asking = false;
    u64 now = 0, code = 0, retired = 0, beat = 0, reserved = 0, pushed = 0, told = 0, dma = 0, chaos = 0, limit = 0;
    u64 requests = 0, abandons = 0, installs = 0, late = 0, worst = 0, all_requests = 0, all_abandons = 0;
    u64 waiting_for = 0, busy_until = 0, asked[3] = {};
    unsigned waiting_id = 0, last_id = 0;
};

}  // namespace

int main(int argc, char **argv) {
    u64 seed = 1, cycles = 0, quiet = 30'000;
    const char *image = nullptr;
    for (int i = 1; i < argc; i++) {
        std::string arg = argv[i];
        if (arg == "--seed" && i + 1 < argc) seed = strtoull(argv[++i], nullptr, 0);
        else if (arg == "--cycles" && i + 1 < argc) cycles = strtoull(argv[++i], nullptr, 0);
        else if (arg == "--quiet-limit" && i + 1 < argc) quiet = strtoull(argv[++i], nullptr, 0);
        else if (!image && arg[0] != '-') image = argv[i];
        else die("usage: harness IMAGE [--seed N] [--cycles N] [--quiet-limit N]");
    }
    if (!image) die("usage: harness IMAGE [--seed N] [--cycles N] [--quiet-limit N]");
    Verilated::randReset(0);
    static Harness harness(image, seed);
    return harness.run(cycles, quiet);
}
