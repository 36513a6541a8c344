// SPDX-License-Identifier: Apache-2.0
// Four page table units on one SMU (walkers_tb.sv). They ask for the same page or for different pages, in the same cycle or any
// number of cycles apart. In some cases one of them is interrupted or flushed, the device fails, or frames run out.
//
//   walkers [--seed N] [--seeded N]
//
// Each case runs with the platform's memory, whose cycles are printed, and with random times.
// REQ: SMU-1 REQ: SMU-6 REQ: ISA-3 REQ: ISA-4
#include "rtl_smu.h"
#include "verilated.h"

namespace {

constexpr unsigned Harts = 4;
constexpr u64 Root = 0x8010'0000, Middle = Root + 0x1000, Leaf = Root + 0x2000, Frames = 0x8200'0000, Virtual = 0x4000'0000;
constexpr u64 R = 2, W = 4, U = 16, A = 64, Dirty = 128, NotAtAll = ~0ull;

// An access of a hart: one load or store, from a cycle on, perhaps disturbed at another cycle.
struct Hart {
    bool takes_part, store, kernel;
    u64 page, from, trap, fence;
    // How the access ended.
    bool done, fault, trapped;
    u64 cause, paddr, ended, interrupted, flushed, late;
};

struct Access {
    u64 page, from = 0, trap = NotAtAll, fence = NotAtAll;
    bool store = false, kernel = false;
};

class Walkers : World {
  public:
    Walkers(u64 seed, u64 seeded) {
        top.seeded_i = seeded;
        rng.state = seed * 0x9e37'79b9'7f4a'7c15ull + 1;
        word(Root + 8) = Middle >> 2 | PteV;
        word(Middle) = Leaf >> 2 | PteV;
        for (int i = 0; i < 10; i++) cycle(false);
        smu.reset();
        for (u64 i = 0; i < 32; i++) smu.free(Frames + i * 4096);
        for (int i = 0; i < 4000; i++) cycle();
    }

    int run() {
        printf("%-42s%11s%11s%11s%11s%11s%11s%11s\n", "cycles from the first access, first and last", "accepted", "command",
               "doorbell", "device", "entry", "answer", "end");
        for (steady = true;; steady = false) {
            for (int n = 0; n < (steady ? 1 : 10); n++) all();
            if (!steady) break;
            // At every distance: before the miss, in it, after it.
            for (u64 d = 0; d < 700; d++) together("", {{page(), 0}, {at, d}}, 1);
            for (u64 d = 20; d < 700; d += 2) together("", {{page(), 0, d}, {at}}, 1);
            for (u64 d = 20; d < 700; d += 2) together("", {{page(), 0, NotAtAll, d}, {at}}, 1);
            // The entry stays armed, so a second access asks at any time: it joins the miss, or begins another one.
            for (u64 d = 0; d < 700; d++) together("", {{page(DeviceError), 0}, {at, d}}, 1, 13, 1);
        }
        printf("passed: %ld cycles, %ld cases, %ld requests, %ld abandoned, %ld reads of the device, %ld pages\n", long(now),
               long(cases), long(requests), long(abandons), long(commands), long(installs));
        return 0;
    }

  private:
    void all() {
        together("one", {{page()}}, 1);
        together("four, one page, the same cycle", {{page()}, {at}, {at}, {at}}, 1);
        together("four, one page, neighbouring cycles", {{page(), 0}, {at, 1}, {at, 2}, {at, 3}}, 1);
        together("four, one page, while it is read", {{page(), 0}, {at, 100}, {at, 200}, {at, 300}}, 1);
        together("four pages, the same cycle", {{page()}, {page()}, {page()}, {page()}}, 4);
        together("two pages, the same cycle", {{page()}, {at}, {page()}, {at}}, 2);
        together("four, one page, one interrupted", {{page()}, {at, 0, 150}, {at}, {at}}, 1);
        together("four, one page, the first interrupted", {{page(), 0, 150}, {at, 5}, {at, 5}, {at, 5}}, 1);
        together("four, one page, all interrupted", {{page(), 0, 150}, {at, 0, 150}, {at, 0, 160}, {at, 0, 170}}, 1);
        together("four, one page, sfence.vma of one", {{page()}, {at, 0, NotAtAll, 150}, {at}, {at}}, 1);
        together("four, one page, sfence.vma of all",
                 {{page(), 0, NotAtAll, 150}, {at, 0, NotAtAll, 150}, {at, 0, NotAtAll, 150}, {at, 0, NotAtAll, 150}}, 1);
        together("four, one page, error of the device", {{page(DeviceError)}, {at}, {at}, {at}}, 1, 13);
        together("four, one page, error of the bus", {{page(BusError)}, {at}, {at}, {at}}, 0, 5);
        together("four, one page, present by then", {{page(Present)}, {at}, {at}, {at}}, 1);
        together("four, one page, gone by then", {{page(Gone)}, {at}, {at}, {at}}, 1, 13);
        forbidden();
        kernel();
        empty();
    }

    // Arms a new page.
    u64 page(Behaviour what = Done, u64 permissions = R | W) {
        if (++at == 512) at = 1;
        word(Leaf + 8 * at) = at << 30 | 400ull << 14 | u64(what) << 10 | PteL | U | A | permissions;
        return at;
    }
    u64 entry(u64 page) { return word(Leaf + 8 * page); }

    // Runs the accesses until all have ended. Checks the number of device reads (within a tolerance) and the fault, if any.
    void together(const char *label, const std::vector<Access> &accesses, u64 reads, u64 fault = 0, u64 more = 0) {
        u64 commands_before = commands, armed = entry(at);
        go(label, accesses);
        u64 seen = commands - commands_before;
        if (seen < reads || seen > reads + more) die("wrong number of device reads: found, expected", seen, reads);
        for (unsigned h = 0; h < accesses.size(); h++) {
            const Hart &hart = harts[h];
            if (hart.interrupted > 1 || (accesses[h].fence == NotAtAll && hart.flushed))
                die("interrupted twice, or flushed without a fence: hart", h);
            if (hart.fault != (fault != 0) || (fault && hart.cause != fault)) die("wrong fault: hart, cause", h, hart.cause);
            if (!fault) good(hart);
        }
        if (fault && entry(at) != armed && entry(at) != 0) die("the entry has changed: found, armed", entry(at), armed);
        for (const Access &a : accesses) evict(a.page);
    }

    void good(const Hart &hart) {
        u64 now = entry(hart.page), frame = now >> 10 << 12;
        if ((now & 0x3ff) != (PteV | PteL | A | U | R | W)) die("the installed entry has wrong flags: entry", now);
        if (hart.paddr != frame + (hart.page * 8 & 0xff8)) die("wrong translation: address, frame", hart.paddr, frame);
        for (u64 i = 0; i < 512; i++)
            if (word(frame + 8 * i) != content(hart.page, i)) die("wrong content: address, page", frame + 8 * i, hart.page);
    }

    void evict(u64 page) {
        u64 old = entry(page);
        word(Leaf + 8 * page) = 0;
        if (old & PteV) smu.free(old >> 10 << 12);
    }

    // A store to a read-only page: its walker does not ask, while the other accesses are served.
    void forbidden() {
        u64 page_ = page(Done, R), before = requests, reads = commands;
        go("three loads, one store to a read-only page", {{page_}, {page_}, {page_, 0, NotAtAll, NotAtAll, true}, {page_}});
        if (requests - before != 3 || commands - reads != 1) die("not 3 requests, 1 read", requests - before, commands - reads);
        for (unsigned h = 0; h < Harts; h++)
            if (harts[h].fault != (h == 2)) die("wrong fault: hart, cause", h, harts[h].cause);
        if (harts[2].cause != 15) die("wrong fault of the store: cause", harts[2].cause);
        evict(page_);
    }

    // REQ: ISA-3: the kernel's loads and stores fault at once, for a page that is being read for others and for one that nobody
    // else touches. Once the page is present, the kernel finds it.
    void kernel() {
        u64 page_ = page(), other = page(), before = requests, reads = commands;
        go("two loads, the kernel's load and store",
           {{page_}, {page_, 5}, {page_, 100, NotAtAll, NotAtAll, false, true}, {other, 0, NotAtAll, NotAtAll, true, true}});
        if (requests - before != 2 || commands - reads != 1) die("not 2 requests, 1 read", requests - before, commands - reads);
        for (unsigned h = 0; h < Harts; h++)
            if (harts[h].fault != (h >= 2)) die("wrong fault: hart, cause", h, harts[h].cause);
        if (harts[2].cause != 13 || harts[3].cause != 15) die("wrong faults in S mode: causes", harts[2].cause, harts[3].cause);
        for (unsigned h = 2; h < Harts; h++)
            if (harts[h].ended - harts[h].from > 200) die("the kernel waits: hart, cycles", h, harts[h].ended - harts[h].from);
        go("", {{page_, 0, NotAtAll, NotAtAll, false, true}});
        good(harts[0]);
        evict(page_);
        evict(other);
    }

    // All frames are in use; then one is given.
    void empty() {
        std::vector<u64> kept;
        while (smu.free_frames()) {
            kept.push_back(page());
            go("", {{kept.back()}});
        }
        u64 page_ = page(), reads = commands;
        go("four, one page, no free frame", {{page_}, {page_}, {page_}, {page_}});
        for (unsigned h = 0; h < Harts; h++)
            if (!harts[h].fault || harts[h].cause != 13) die("no page fault without a frame: hart, cause", h, harts[h].cause);
        if (commands != reads) die("the device was read without a frame");
        evict(kept.back());
        kept.pop_back();
        for (int i = 0; i < 400; i++) cycle();
        together("the same, with a frame", {{page_}, {page_}, {page_}, {page_}}, 1);
        for (u64 k : kept) evict(k);
        for (int i = 0; i < 4000; i++) cycle();
    }

    void go(const char *label, const std::vector<Access> &accesses) {
        // Empty the TLBs, and wait until frames that were given have reached the SMU.
        for (unsigned h = 0; h < Harts; h++) harts[h] = {}, top.fence_i[h] = 1;
        for (int i = 0; i < 200; i++) cycle();
        cases++;
        steps.clear();
        const u64 start = now + 1;
        for (unsigned h = 0; h < accesses.size(); h++) {
            const Access &a = accesses[h];
            harts[h] = {true, a.store, a.kernel, a.page, start + a.from, a.trap == NotAtAll ? a.trap : start + a.trap,
                        a.fence == NotAtAll ? a.fence : start + a.fence, false, false, false, 0, 0, 0, 0, 0, 0};
        }
        while (std::any_of(harts, harts + Harts, [](const Hart &h) { return h.takes_part && !h.done; })) {
            cycle();
            if (now > start + 20'000) die("a hart waits for more than 20,000 cycles");
        }
        if (outstanding) die("no hart waits, but answers are outstanding: number", outstanding);
        if (!steady || !*label) return;
        printf("%-42s", label);
        for (Step s : {Step::Accepted, Step::Command, Step::Doorbell, Step::Device, Step::Entry, Step::Answer, Step::End}) {
            char text[32] = "-";
            long from = long(first(s) - start), to = long(last(s) - start);
            if (first(s) && from == to) snprintf(text, sizeof text, "%ld", from);
            else if (first(s)) snprintf(text, sizeof text, "%ld-%ld", from, to);
            printf("%11s", text);
        }
        printf("\n");
    }

    void cycle(bool running = true) {
        now++;
        top.rst_ni = running;
        for (unsigned h = 0; h < Harts && running; h++) drive(h);
        if (running) smu.drive();
        top.clk_i = 0, top.eval();
        for (unsigned h = 0; h < Harts && running; h++) sample(h);
        if (running) smu.sample();
        top.clk_i = 1, top.eval();
        smu.after_edge();
        for (unsigned h = 0; h < Harts; h++) top.fence_i[h] = 0;
        // No cache is between the walkers and memory.
        tells.clear(), told = pushed;
    }

    void drive(unsigned h) {
        Hart &hart = harts[h];
        if (hart.takes_part && !hart.done && now >= hart.fence) {
            hart.fence = NotAtAll, hart.flushed++, hart.from = now + 20;
            top.fence_i[h] = 1;
        }
        top.access_i[h] = hart.takes_part && !hart.done && now >= hart.from;
        top.store_i[h] = hart.store, top.kernel_i[h] = hart.kernel;
        top.vaddr_i[h] = Virtual + hart.page * 4096 + (hart.page * 8 & 0xff8);
        top.trap_i[h] = hart.takes_part && !hart.done && now >= hart.trap;
        top.read_valid_i[h] = reads[h].at && now >= reads[h].at;
        if (top.read_valid_i[h]) top.read_data_i[h] = word(reads[h].addr), reads[h].at = 0;
    }

    void sample(unsigned h) {
        Hart &hart = harts[h];
        if (top.read_o[h]) reads[h] = {now + 1 + pause(20, 1), top.read_addr_o[h]};
        if (top.trapped_o[h]) hart.trapped = true;
        if (top.trap_i[h] && waiting[h] && ++hart.late > 8) die("a wait goes on 8 cycles after an interrupt: hart", h);
        if (top.valid_o[h] && hart.takes_part && !hart.done && top.access_i[h]) {
            hart.fault = top.fault_o[h], hart.cause = top.cause_o[h], hart.paddr = top.paddr_o[h];
            if (hart.trapped) {
                // The handler runs, then the access again.
                if (!hart.fault) die("an interrupt does not end the wait with a fault: hart", h);
                hart.trapped = false, hart.interrupted++, hart.trap = NotAtAll, hart.from = now + 60;
            } else {
                hart.done = true, hart.ended = now;
                step(Step::End);
            }
        }
        if (hart.flushed && now < hart.from && now > hart.from - 16 && waiting[h]) die("a wait goes on after a fence: hart", h);
        if (top.smu_accepted_o[h]) {
            if (waiting[h]) die("a second request while a hart waits: hart", h);
            waiting[h] = true, outstanding++, requests++;
            if (harts[h].kernel) die("a request in S mode: hart", h);
            step(Step::Accepted);
            smu.accepted(top.smu_pte_addr_o[h], 0, 0, top.smu_pte_o[h]);
        }
        if (top.smu_rsp_valid_o[h]) {
            if (!waiting[h]) die("an answer for a hart that does not wait: hart", h);
            waiting[h] = false, outstanding--;
            step(Step::Answer);
        }
        if (top.smu_abandon_o[h]) {
            // An answer in this cycle does not count.
            if (waiting[h]) outstanding--;
            waiting[h] = false;
            abandons++;
        }
    }

    struct Read {
        u64 at, addr;
    };
    Smu smu{*this};
    Hart harts[Harts] = {};
    Read reads[Harts] = {};
    bool waiting[Harts] = {};
    u64 outstanding = 0, at = 0, cases = 0;
};

}  // namespace

int main(int argc, char **argv) {
    u64 seed = 1, seeded = 0;
    for (int i = 1; i < argc; i++) {
        if (std::string(argv[i]) == "--seed" && i + 1 < argc) seed = strtoull(argv[++i], nullptr, 0);
        else if (std::string(argv[i]) == "--seeded" && i + 1 < argc) seeded = strtoull(argv[++i], nullptr, 0);
        else die("usage: walkers [--seed N] [--seeded N]");
    }
    Verilated::randReset(0);
    static Walkers walkers(seed, seeded);
    return walkers.run();
}
