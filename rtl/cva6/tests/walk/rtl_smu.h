// SPDX-License-Identifier: Apache-2.0
// The surroundings of the SMU's RTL (rtl/smu) beside the core: memory, an NVMe device, and the operating system's side of the
// rings.
// A write of the SMU is answered when the core's data cache no longer holds its lines (SMU-4).
#pragma once
#include "world.h"

#include "trapless_smu_regs.h"

class Smu {
  public:
    explicit Smu(World &world) : w(world) {}

    void reset() {
        for (u64 frame = Own; frame < Own + 64 * 4096; frame += 4096) own.push_back(frame);
        set(SMU_TIMEOUT, 0);
        set(SMU_FREE_BASE, FreeRing);
        set(SMU_FREE_SIZE, RingSize);
        set(SMU_RET_BASE, ReturnRing);
        set(SMU_RET_SIZE, RingSize);
        const u64 desc = SMU_DESC_BASE;
        set(desc + SMU_DESC_SQ_BASE, Queue);
        set(desc + SMU_DESC_CQ_BASE, Completions);
        set(desc + SMU_DESC_SQ_DB, Doorbell);
        set(desc + SMU_DESC_CQ_DB, Doorbell + 4);
        set(desc + SMU_DESC_DEPTH, Depth);
        set(desc + SMU_DESC_NSID, 1);
        set(desc + SMU_DESC_BLOCKS, 0);
        set(desc + SMU_DESC_CTRL, SMU_DESC_CTRL_VALID);
        set(SMU_CTRL, SMU_CTRL_ENABLE);
    }

    // Frames from `Own` up belong to the operating system, for the pages that it installs itself.
    void free(u64 frame) {
        if (frame >= Own) own.push_back(frame);
        else produce(frame);
    }
    u64 free_frames() const { return given - w.installs - came_back; }

    void drive() {
        Vtop &t = w.top;
        // Registers: one write at a time.
        t.s_awvalid_i = !settings.empty() && !sent_address;
        t.s_wvalid_i = !settings.empty() && !sent_data;
        if (!settings.empty()) t.s_addr_i = settings.front().first, t.s_wdata_i = settings.front().second;
        // Frames that came back are given again after some time, because the tail register lags behind the entry.
        while (!returned.empty() && w.now >= returned.front().first) {
            produce(returned.front().second);
            set(SMU_RET_HEAD, ++consumed);
            returned.pop_front();
        }
        device();
        t.m_arready_i = reads.size() < 4 && w.ready();
        t.m_awready_i = writes.size() < 4 && (writes.empty() || writes.back().full) && w.ready();
        t.m_wready_i = !writes.empty() && !writes.back().full && w.ready();
        for (auto &r : reads)
            // A write of another master is not seen before the caches have invalidated their copies.
            if (r.data.empty() && w.now >= r.sample_at && !w.telling(r.addr)) fetch(r);
        if (!t.m_rvalid_i && !reads.empty() && !reads.front().data.empty() && w.now >= reads.front().send_at) {
            const Read &r = reads.front();
            t.m_rvalid_i = 1;
            t.m_rdata_i = r.data[beat];
            t.m_rid_i = r.id;
            t.m_rlast_i = beat == r.len;
            t.m_rresp_i = r.resp;
        }
        for (auto &x : writes)
            if (x.full && !x.applied && w.now >= x.apply_at) apply(x);
        if (!t.m_bvalid_i && !writes.empty() && writes.front().applied && w.told >= writes.front().told) {
            t.m_bvalid_i = 1;
            t.m_bid_i = writes.front().id;
            t.m_bresp_i = writes.front().resp;
        }
    }

    void accepted(u64 pte, u64, u64, u64 seen) { entries[seen >> 10 & 0x1ff'ffff'ffffull] = {pte, seen}; }

    void sample() {
        Vtop &t = w.top;
        if (t.s_awvalid_i && t.s_awready_o) sent_address = true;
        if (t.s_wvalid_i && t.s_wready_o) sent_data = true;
        if (t.s_bvalid_o) settings.pop_front(), sent_address = sent_data = false;
        if (t.m_rvalid_i && t.m_rready_o) {
            took_read = true;
            if (beat++ == reads.front().len) reads.pop_front(), beat = 0;
        }
        if (t.m_bvalid_i && t.m_bready_o) took_answer = true, writes.pop_front();
        if (t.m_arvalid_o && t.m_arready_i) {
            u64 at = w.now + 1 + w.pause(20, 7);
            reads.push_back({t.m_araddr_o, at, at + w.pause(20, 0), t.m_arid_o, t.m_arlen_o, bool(t.m_arlock_o), 0, {}});
        }
        if (t.m_wvalid_o && t.m_wready_i) {
            Write &x = writes.back();
            x.data.push_back({t.m_wdata_o, t.m_wstrb_o});
            x.full = t.m_wlast_o;
            x.apply_at = w.now + 1 + w.pause(20, 0);
            if (x.full && x.addr >= Queue && x.addr < Completions) w.step(Step::Command);
            if (x.addr == Doorbell) w.step(Step::Doorbell);
        }
        if (t.m_awvalid_o && t.m_awready_i)
            writes.push_back({t.m_awaddr_o, 0, 0, t.m_awid_o, bool(t.m_awlock_o), false, false, 0, {}});
    }

    void after_edge() {
        if (took_read) w.top.m_rvalid_i = 0;
        if (took_answer) w.top.m_bvalid_i = 0;
        took_read = took_answer = false;
    }

  private:
    static constexpr u64 Own = 0x8300'0000, Queues = 0x83f0'0000, FreeRing = Queues, ReturnRing = Queues + 0x4000,
                         Queue = Queues + 0x8000, Completions = Queues + 0xc000, Doorbell = 0x2000'0000, RingSize = 256,
                         Depth = 64;
    static constexpr unsigned Master = 16;  // first number in `reserved`; the AXI identifier is added

    struct Read {
        u64 addr, sample_at, send_at;
        unsigned id, len;
        bool lock;
        unsigned resp;
        std::vector<u64> data;
    };
    struct Write {
        u64 addr, apply_at, told;
        unsigned id;
        bool lock, full, applied;
        unsigned resp;
        std::vector<std::pair<u64, unsigned>> data;
    };
    struct Command {
        u64 due, prp, block;
        unsigned cid;
        bool filled;
    };
    struct Entry {
        u64 pte, seen;
    };

    void set(u64 reg, u64 value) { settings.push_back({reg, value}); }

    void produce(u64 frame) {
        u64 at = FreeRing + (given % RingSize) * SMU_FREE_ENTRY_SIZE;
        w.outside(at + SMU_FREE_ENTRY_PFN, frame >> 12);
        w.outside(at + SMU_FREE_ENTRY_DMA, frame);
        set(SMU_FREE_TAIL, ++given);
    }

    void fetch(Read &r) {
        for (unsigned i = 0; i <= r.len; i++) r.data.push_back(w.word(r.addr + 8 * i));
        u64 first = r.data[0];
        // A bus error on the read of the entry.
        bool armed = (first & (PteV | PteL)) == PteL && r.addr < Queues;
        if (!r.lock && r.len == 0 && armed && behaviour(first) == BusError) r.resp = 2;
        if (r.lock) w.reserved[Master + r.id] = r.addr & ~7ull, r.resp = 1;
    }

    void apply(Write &x) {
        x.applied = true;
        if (x.addr >= Doorbell && x.addr < Doorbell + 8) {
            if (x.addr == Doorbell) submitted(x.data[0].first & 0xffff);
            return;
        }
        if (x.lock) {
            u64 &reserved = w.reserved[Master + x.id];
            if (reserved != (x.addr & ~7ull)) return;
            reserved = 0;
            x.resp = 1;
            // A write with these bits installs an entry, and does not set a mark.
            if ((x.data[0].first & PteV) && (x.data[0].first & 0xa)) w.installs++, w.step(Step::Entry);
        }
        for (unsigned i = 0; i < x.data.size(); i++) w.outside(x.addr + 8 * i, x.data[i].first, x.data[i].second);
        x.told = w.pushed;
        // The exclusive pair that tests the fabric does not count.
        if (!x.lock && x.addr >= ReturnRing && x.addr < ReturnRing + RingSize * SMU_RET_ENTRY_SIZE)
            returned.push_back({w.now + 300, x.data[0].first << 12}), came_back++;
    }

    // -------------- the NVMe device --------------

    void submitted(u64 tail) {
        for (; head != tail; head = (head + 1) % Depth) {
            u64 at = Queue + head * SMU_NVME_SQE_SIZE;
            u64 first = w.word(at), block = w.word(at + SMU_NVME_SQE_SLBA);
            if ((first & 0xff) != SMU_NVME_OPC_READ || first >> 32 != 1) die("no read of namespace 1: first word", first);
            if (w.word(at + SMU_NVME_SQE_CDW12) & 0xffff) die("not one block: word 12", w.word(at + SMU_NVME_SQE_CDW12));
            u64 due = (block & 15) == Silent ? ~0ull : w.now + (block >> 4 & 0xffff);
            w.commands++;
            commands.push_back({due, w.word(at + SMU_NVME_SQE_PRP1), block, unsigned(first >> 16 & 0xffff), false});
        }
    }

    void device() {
        for (auto it = commands.begin(); it != commands.end();) {
            // The data come before the completion: just before it, which tests the order, or 600 cycles before it, as with a real
            // device.
            if (w.now + (w.steady ? 600 : 0) >= it->due) fill(*it);
            if (w.now < it->due) {
                ++it;
                continue;
            }
            complete(*it);
            it = commands.erase(it);
        }
    }

    void fill(Command &c) {
        unsigned what = c.block & 15;
        if (c.filled || what == DeviceError || what == NoFrame) return;
        c.filled = true;
        for (u64 i = 0; i < 512; i++) w.outside(c.prp + 8 * i, content(c.block >> 20, i));
    }

    void complete(const Command &c) {
        unsigned what = c.block & 15, status = 0;
        Entry e = entries[c.block];
        bool unchanged = w.word(e.pte) == e.seen;
        switch (what) {
        case DeviceError: case NoFrame: status = 0x281; break;
        case Gone: if (unchanged) w.outside(e.pte, 0); break;
        case Rearmed: if (unchanged) w.outside(e.pte, e.seen ^ 1ull << 40); break;
        case Present:
            // The operating system installs the page first.
            if (unchanged && !own.empty()) {
                u64 frame = own.front();
                own.pop_front();
                for (u64 i = 0; i < 512; i++) w.outside(frame + 8 * i, content(c.block >> 20, i));
                w.outside(e.pte, frame >> 2 | (e.seen & 0x5e) | PteL | PteV);
            }
            break;
        default: break;
        }
        u64 at = Completions + place * SMU_NVME_CQE_SIZE;
        w.outside(at, 0);
        w.outside(at + SMU_NVME_CQE_DW2, head | u64(c.cid) << 32 | u64(phase) << 48 | u64(status) << 49);
        if (++place == Depth) place = 0, phase = !phase;
        w.step(Step::Device);
    }

    World &w;
    std::deque<std::pair<u64, u64>> settings, returned;
    std::deque<Read> reads;
    std::deque<Write> writes;
    std::deque<Command> commands;
    std::deque<u64> own;
    std::map<u64, Entry> entries;  // by block
    bool sent_address = false, sent_data = false, took_read = false, took_answer = false, phase = true;
    u64 given = 0, came_back = 0, consumed = 0, head = 0, place = 0, beat = 0;
};
