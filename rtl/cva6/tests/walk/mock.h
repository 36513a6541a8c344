// SPDX-License-Identifier: Apache-2.0
// A mock of the SMU with its device: serves a request as the block address says, after the latency given there. The lines that
// it writes are invalidated in the core's data cache before the answer goes out (SMU-4).
#pragma once
#include "world.h"

class Smu {
  public:
    explicit Smu(World &world) : w(world) {}

    void free(u64 frame) { frames.push_back(frame); }
    u64 free_frames() const { return frames.size(); }
    void reset() {}

    void drive() {
        w.top.smu_rsp_valid_i = 0;
        w.top.smu_rsp_pte_i = w.rng.next();
        w.top.smu_rsp_id_i = w.rng.next();
        for (auto it = misses.begin(); it != misses.end();) {
            Miss &m = it->second;
            if (w.now >= m.due && !m.written) finish(m);
            if (!m.written || w.told < m.told || w.top.smu_rsp_valid_i) {
                ++it;
                continue;
            }
            if (w.waits && w.waiting_for == m.pte) {
                w.top.smu_rsp_valid_i = 1;
                w.top.smu_rsp_id_i = w.waiting_id;
                w.top.smu_rsp_outcome_i = m.outcome;
                w.top.smu_rsp_reason_i = m.reason;
                w.top.smu_rsp_pte_i = m.entry;
                w.waits = false;
            }
            it = misses.erase(it);
        }
        w.top.smu_req_ready_i = w.rng.below(4) != 0;
    }

    void accepted(u64 pte, u64 pmd, u64 pud, u64 seen) {
        if (misses.count(pte)) return;
        Miss m{pte, pmd, pud, seen, w.now + 3 + (behaviour(seen) == Busy ? 0 : latency(seen)), 0, false, 0, 0, 0};
        if (behaviour(seen) == Silent) m.due = ~0ull;
        if (w.word(pte) != seen) m.written = true, m.outcome = AnswerChanged, m.entry = w.word(pte);
        misses[pte] = m;
    }

    void sample() {}
    void after_edge() {}

  private:
    enum Outcome { AnswerDone = 1, AnswerChanged, AnswerFailed };
    enum Reason { ReasonNoFrame = 1, ReasonDevice, ReasonBus };
    struct Miss {
        u64 pte, pmd, pud, seen, due;
        u64 told;  // invalidations that must be done before the answer
        bool written;
        unsigned outcome, reason;
        u64 entry;
    };

    // Ends a miss: writes the page and its entry if the miss is served, and invalidates the lines in the cache.
    void finish(Miss &m) {
        m.written = true;
        m.outcome = AnswerFailed;
        m.entry = 0;
        bool unchanged = w.word(m.pte) == m.seen;
        switch (behaviour(m.seen)) {
        case DeviceError: m.reason = ReasonDevice; return;
        case BusError: m.reason = ReasonBus; return;
        case NoFrame: m.reason = ReasonNoFrame; return;
        case Gone: if (unchanged) w.outside(m.pte, 0); break;
        case Rearmed: if (unchanged) w.outside(m.pte, m.seen ^ 1ull << 40); break;
        default: break;
        }
        if (frames.empty()) {
            m.reason = ReasonNoFrame;
            return;
        }
        if (w.word(m.pte) != m.seen) {
            m.outcome = AnswerChanged, m.entry = w.word(m.pte), m.told = w.pushed;
            return;
        }
        u64 frame = frames.front();
        frames.pop_front();
        for (u64 i = 0; i < 512; i++) w.outside(frame + 8 * i, content(page(m.seen), i));
        m.entry = frame >> 2 | (m.seen & 0x5e) | PteL | PteV;
        w.outside(m.pte, m.entry);
        w.outside(m.pmd, w.word(m.pmd) | PteL);
        w.outside(m.pud, w.word(m.pud) | PteL);
        m.outcome = behaviour(m.seen) == Present ? AnswerChanged : AnswerDone;
        m.told = w.pushed;
        w.installs++;
    }

    World &w;
    std::deque<u64> frames;
    std::map<u64, Miss> misses;
};
