// SPDX-License-Identifier: Apache-2.0
// Runs a bare-metal program on one core (walk_tb.sv) with memory, a device for tests, and the SMU or a mock of it.
//
//   harness IMAGE [--seed N] [--cycles N] [--quiet-limit N] [--seeded N] [--steady]
//
// The block address of a page says what happens to the page (world.h). Memory answers after random times.
#include "world.h"
#ifdef WALK_SMU
#include "rtl_smu.h"
#else
#include "mock.h"
#endif
#include "verilated.h"

namespace {

constexpr u64 Device = 0x1000'0000, DebugRom = 0x800;
enum Register {
    Exit, Putc, Free, Requests, Abandons, Timer, Software, External, Supervisor, Debug, Now, Random, Chaos, Installs,
    DmaAddress, DmaValue, Late, Frames, Enough, Commands, Times, DmaDelay, Served, Waited
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

struct Line {
    u64 raise_at;
    bool up;
    u64 late;    // cycles in which the line was up and enabled
    u64 waited;  // those of them in which the walker waited for the SMU
};

class Harness : World {
  public:
    Harness(const char *image, u64 seed, u64 seeded, bool always) {
        steady = always;
        top.seeded_i = seeded;
        rng.state = seed * 0x9e37'79b9'7f4a'7c15ull + 1;
        FILE *file = fopen(image, "rb");
        if (!file || !fread(ram.data(), 1, RamSize, file)) die("cannot read the image, or it is empty");
        fclose(file);
    }

    int run(u64 cycles, u64 quiet_limit) {
        top.rst_ni = 0;
        for (int i = 0; i < 10; i++) clock();
        top.rst_ni = 1;
        smu.reset();
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
            smu.after_edge();
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

    u64 read(u64 addr) {
        if (addr >= Device && addr < Device + 0x1000) return device_read((addr - Device) / 8);
        if ((addr & ~15ull) == DebugRom) {
            lines[4].up = false;
            return 0x7b20'0073'7b20'0073ull;  // dret
        }
        if (addr < Ram || addr >= Ram + RamSize) return 0;  // a fetch on a wrong path
        return word(addr);
    }

    void store(u64 addr, u64 data, unsigned strb) {
        if (addr >= Device && addr < Device + 0x1000) device_write((addr - Device) / 8, data);
        else write(addr, data, strb);
    }

    u64 device_read(u64 index) {
        switch (index) {
        case Requests: return requests;
        case Abandons: return abandons;
        case Now: return now;
        case Random: return rng.next();
        case Installs: return installs;
        case Late: return late;
        case Frames: return smu.free_frames();
        case Commands: return commands;
        case Served: return served;
        case Waited: return waited;
        case Enough: return limit && now >= limit;
        default: return 0;
        }
    }

    void device_write(u64 index, u64 value) {
        switch (index) {
        case Exit: stopped = true, code = value; break;
        case Putc: putchar(int(value)); break;
        case Free: smu.free(value << 12); break;
        case Requests: requests = abandons = late = 0; break;
        case Timer: case Software: case External: case Supervisor: case Debug:
            lines[index - Timer].up = false;
            lines[index - Timer].raise_at = value ? now + value : 0;
            break;
        case Chaos: chaos = value; break;
        case DmaAddress: dma = value; break;
        case DmaDelay: dma_delay = value; break;
        case DmaValue:
            if (dma_delay) dma_at = now + dma_delay, dma_value = value;
            else outside(dma, value);
            break;
        case Times: times(value); break;
        default: die("a write to an unknown register of the test device: index", index);
        }
    }

    // Nonzero: starts a measurement. Zero: ends it and prints the cycles of each step.
    void times(u64 begin) {
        if (begin) {
            steps.clear(), measuring = true;
            return;
        }
        if (!first(Step::Asks)) steps.clear();  // no request was sent: the walk itself has faulted
        u64 before = first(Step::Walk), end = first(Step::End);
        for (Step s : {Step::Asks, Step::Accepted, Step::Command, Step::Doorbell, Step::Device, Step::Entry, Step::Answer,
                       Step::End}) {
            u64 at = first(s);
            if (at) printf("%9ld", long(at - before)), before = at;
            else printf("%9s", "-");
        }
        if (end) printf("%9ld\n", long(end - first(Step::Walk)));
        else printf("%9s\n", "-");
        measuring = false;
    }

    // Notes the start of the walk that leads to a miss, and the end of the access: the next instruction that retires, or a fault.
    void measure() {
        if (top.walks_o && !walking) walk_at = now;
        walking = top.walks_o;
        if (!measuring || first(Step::End)) return;
        bool fault = top.trap_o && top.cause_o < 16 && (0xb0a2 >> top.cause_o & 1);
        if (fault || (first(Step::Answer) && alive)) step(Step::End);
    }

    // -------------- inputs of a cycle --------------

    void drive() {
        top.ar_ready_i = reads.size() < 4 && ready();
        top.aw_ready_i = writes.size() < 4 && (writes.empty() || writes.back().full) && ready();
        top.w_ready_i = !writes.empty() && !writes.back().full && ready();

        for (auto &r : reads)
            if (!r.sampled && now >= r.sample_at) {
                for (unsigned i = 0; i <= r.len; i++) r.data.push_back(read(r.addr + 8 * i));
                if (r.lock) reserved[Core] = r.addr & ~7ull;
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
        if (dma_at && now >= dma_at) dma_at = 0, outside(dma, dma_value);
        top.inval_valid_i = !tells.empty();
        top.inval_addr_i = tells.empty() ? rng.next() : tells.front();
        interrupts();
        smu.drive();
        hold();
    }

    void apply(Write &w) {
        w.applied = true;
        if (w.lock) {
            w.ok = reserved[Core] == (w.addr & ~7ull);
            reserved[Core] = 0;
            if (!w.ok) return;
        }
        if (!w.atop) return store(w.addr, w.data, w.strb);
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
        write(w.addr, (old & ~(mask << shift)) | (result & mask) << shift, 0xff);
        reads.push_back({w.addr, now, now + pause(4, 0), w.id, 0, w.size, false, true, {old}});
    }

    void interrupts() {
        for (unsigned i = 0; i < 5; i++) {
            Line &line = lines[i];
            if (line.raise_at && now >= line.raise_at) line.up = true, line.raise_at = 0, line.late = line.waited = 0;
            // Debug requests are rare, because each empties the instruction cache.
            if (chaos >> i & 1 && !line.up && rng.below(i == 4 ? 100'000 : 15'000) == 0)
                line.up = true, line.late = line.waited = 0;
            // The interrupt must be taken: it is enabled, and the hart does not run in machine mode.
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

    // Lets the SMU accept nothing for a while (Busy).
    void hold() {
        bool busy = top.smu_req_valid_o && behaviour(top.smu_pte_o) == Busy;
        if (!busy) held_until = 0;
        else if (held_until == 0) held_until = now + latency(top.smu_pte_o);
        top.smu_hold_i = busy && now < held_until;
    }

    // -------------- outputs of a cycle --------------

    void sample() {
        if (top.r_valid_i && top.r_ready_o) {
            took_read = true;
            if (beat++ == reads.front().len) reads.pop_front(), beat = 0;
        }
        if (top.b_valid_i && top.b_ready_o) took_answer = true, writes.pop_front();
        if (top.ar_valid_o && top.ar_ready_i) {
            u64 at = now + 1 + pause(20, 7);
            reads.push_back({top.ar_addr_o, at, at + pause(40, 0), top.ar_id_o, top.ar_len_o, top.ar_size_o,
                             bool(top.ar_lock_o), false, {}});
        }
        if (top.w_valid_o && top.w_ready_i) {
            Write &w = writes.back();
            w.data = top.w_data_o, w.strb = top.w_strb_o, w.full = true;
            w.apply_at = now + 1 + pause(20, 0);
            w.answer_at = w.apply_at + pause(20, 1);
            if (!top.w_last_o) die("a burst of writes");
        }
        if (top.aw_valid_o && top.aw_ready_i)
            writes.push_back({top.aw_addr_o, 0, 0, top.aw_id_o, top.aw_size_o, top.aw_atop_o, bool(top.aw_lock_o), false,
                              false, false, 0, 0});
        if (top.inval_valid_i && top.inval_ready_o) tells.pop_front(), told++;
        alive = top.retired_o || top.trap_o;
        measure();
        retired += (top.retired_o & 1) + (top.retired_o >> 1 & 1);
        sample_smu();
    }

    // REQ: ISA-7: counts the cycles in which a request is out, and the answers `done`, as seen from outside.
    void count() {
        if (top.smu_abandon_o) out = false;  // the wait ended in the cycle before
        if (top.smu_req_valid_o || out) waited++;
#ifdef WALK_SMU
        bool answered = top.smu_rsp_valid_o && top.smu_rsp_id_o == out_id, done = top.smu_rsp_outcome_o == 1;
#else
        bool answered = top.smu_rsp_valid_i && top.smu_rsp_id_i == out_id, done = top.smu_rsp_outcome_i == 1;
#endif
        if (out && answered) served += done, out = false;
        if (top.smu_req_valid_o && top.smu_accepted_o) out = true, out_id = top.smu_id_o;
    }

    void sample_smu() {
        count();
        smu.sample();
#ifdef WALK_SMU
        if (top.smu_rsp_valid_o && top.smu_rsp_id_o == waiting_id) waits = false, step(Step::Answer);
#endif
        if (top.smu_abandon_o) {
            abandons++, all_abandons++;
            waits = false;
        }
        if (!top.smu_req_valid_o) {
            asking = false;
            return;
        }
        u64 pte = top.smu_pte_addr_o, seen = top.smu_pte_o;
        if (!asking) steps.push_back({Step::Walk, walk_at}), step(Step::Asks);
        if (asking && (pte != asked[0] || seen != asked[1] || top.smu_id_o != asked[2]))
            die("a request changes while it is valid: PTE address, entry", pte, seen);
        asking = true, asked[0] = pte, asked[1] = seen, asked[2] = top.smu_id_o;
        if (behaviour(seen) == Never) die("a request for a page that no instruction reaches: entry, pc", seen, top.pc_o);
        if ((seen & PteV) || !(seen & PteL)) die("a request for an entry that is not armed: entry", seen);
        if (top.privilege_o != User) die("a request in another mode than U: mode, pc", top.privilege_o, top.pc_o);
        if (!top.smu_accepted_o) return;
        asking = false;
        if (waits) die("a second request is accepted while the walker waits");
        u64 pmd = word(top.smu_pmd_addr_o), pud = word(top.smu_pud_addr_o);
        if ((pmd & 0xf) != PteV || (pud & 0xf) != PteV || pmd >> 10 != pte >> 12)
            die("a request with wrong upper entries: PMD, PUD", pmd, pud);
        step(Step::Accepted);
        waits = true, waiting_for = pte, waiting_seen = seen, waiting_id = top.smu_id_o;
        requests++, all_requests++;
        smu.accepted(pte, top.smu_pmd_addr_o, top.smu_pud_addr_o, seen);
    }

    static constexpr unsigned Core = 0;  // the core's number in `reserved`
    static constexpr unsigned User = 0;  // the number of U mode
    Smu smu{*this};
    std::deque<Read> reads;
    std::deque<Write> writes;
    Line lines[5] = {};
    bool alive = false, took_read = false, took_answer = false, stopped = false, asking = false;
    bool measuring = false, walking = false, out = false;
    u64 served = 0, waited = 0, out_id = 0;
    u64 walk_at = 0, code = 0, retired = 0, beat = 0, chaos = 0, limit = 0, late = 0, worst = 0, held_until = 0;
    u64 asked[3] = {};
    u64 dma = 0, dma_value = 0, dma_delay = 0, dma_at = 0;  // a write of another master, at once or after a delay
};

}  // namespace

int main(int argc, char **argv) {
    u64 seed = 1, cycles = 0, quiet = 30'000, seeded = 0;
    const char *image = nullptr;
    bool steady = false;
    for (int i = 1; i < argc; i++) {
        std::string arg = argv[i];
        if (arg == "--seed" && i + 1 < argc) seed = strtoull(argv[++i], nullptr, 0);
        else if (arg == "--cycles" && i + 1 < argc) cycles = strtoull(argv[++i], nullptr, 0);
        else if (arg == "--quiet-limit" && i + 1 < argc) quiet = strtoull(argv[++i], nullptr, 0);
        else if (arg == "--seeded" && i + 1 < argc) seeded = strtoull(argv[++i], nullptr, 0);
        else if (arg == "--steady") steady = true;
        else if (!image && arg[0] != '-') image = argv[i];
        else die("usage: harness IMAGE [--seed N] [--cycles N] [--quiet-limit N] [--seeded N] [--steady]");
    }
    if (!image) die("usage: harness IMAGE [--seed N] [--cycles N] [--quiet-limit N] [--seeded N] [--steady]");
    Verilated::randReset(0);
    static Harness harness(image, seed, seeded, steady);
    return harness.run(cycles, quiet);
}
