// SPDX-License-Identifier: Apache-2.0
//! Misses that the SMU serves for walkers, from the first request until the first waiting hart continues. Each block that the SMU
//! reads for a walker is one sample, even if no hart waits for it any more.

use std::collections::{BTreeMap, VecDeque};

use trapless_memory::{Cycle, PAGE_SHIFT};
use trapless_nvme::CommandRecord;
use trapless_riscv::WalkRequest;
use trapless_smu::{Miss, Outcome, Source};
use trapless_smu_regs::PTE_LBA;

use super::stats::{MissTimes, Sample};

/// Maximum number of completions (kept to find when the device was done with a miss) and of misses under way. No PMSHR has more
/// entries.
const REMEMBERED: usize = 512;

/// A request for a miss that is under way.
struct Asked {
    hart: usize,
    va: u64,
    walk: Cycle,
    at: Cycle,
}

/// A miss that is under way, as far as its requests are known.
#[derive(Default)]
struct UnderWay {
    asked: Vec<Asked>,
    waiting: Vec<usize>,
    cut: bool,
}

/// A miss that is over, and the harts that have not continued yet.
struct Over {
    sample: Sample,
    waiting: Vec<usize>,
}

/// What a hart waits for.
#[derive(Clone, Copy)]
struct Wait {
    pte: u64,
    page: u64,
    /// Number of the miss, once the miss is over.
    over: Option<u64>,
    answered: bool,
}

/// All misses of walkers and request ports.
pub struct Misses {
    waits: Vec<Option<Wait>>,
    /// Misses under way, by the address of the entry.
    under_way: BTreeMap<u64, UnderWay>,
    over: BTreeMap<u64, Over>,
    next: u64,
    /// First block, doorbell and end of recent reads.
    recent: VecDeque<(u64, Cycle, Cycle)>,
    /// Samples that have ended and were not taken yet.
    ended: Vec<Sample>,
}

impl Misses {
    /// Starts without misses, for this number of `harts`.
    pub fn new(harts: usize) -> Misses {
        Misses {
            waits: vec![None; harts],
            under_way: BTreeMap::new(),
            over: BTreeMap::new(),
            next: 0,
            recent: VecDeque::new(),
            ended: Vec::new(),
        }
    }

    /// Takes the samples that have ended.
    pub fn take(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.ended)
    }

    /// Notes that a drive has completed a read.
    pub fn read(&mut self, record: &CommandRecord) {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back((record.slba, record.doorbell, record.completed));
    }

    /// Notes that a walker's request left its hart at `now`.
    pub fn requested(&mut self, hart: usize, request: &WalkRequest, now: Cycle) {
        self.goes_on(hart, request.started, true);
        let pte = request.pte_pa.0;
        if self.under_way.len() == REMEMBERED {
            // Drop requests that never became a miss.
            let idle = self.under_way.iter().find(|(_, miss)| miss.waiting.is_empty()).map(|(pte, _)| *pte);
            idle.and_then(|pte| self.under_way.remove(&pte));
        }
        let miss = self.under_way.entry(pte).or_default();
        miss.asked.push(Asked { hart, va: request.va, walk: request.started, at: now });
        miss.waiting.push(hart);
        self.waits[hart] = Some(Wait { pte, page: request.va >> PAGE_SHIFT, over: None, answered: false });
    }

    /// Notes that the SMU has finished its part of a miss.
    pub fn over(&mut self, miss: &Miss) {
        let UnderWay { asked, waiting, cut } = self.under_way.remove(&miss.pte.0).unwrap_or_default();
        if !matches!(miss.outcome, Outcome::Done(_)) {
            return;
        }
        let s = &miss.stamps;
        let requested = s.requested.unwrap_or_default();
        let installed = s.pud.or(s.pte).or(s.answered).unwrap_or(requested);
        let mut times = self.steps(miss, requested, installed);
        if let Source::Port(_) = miss.from {
            // When software notices the answer does not count.
            let ended = s.answered.unwrap_or(installed);
            times.iter_mut().for_each(|t| t.resumed = ended);
            self.ended.push(Sample { port: true, hart: None, va: 0, begun: requested, ended, cut: false, times });
            return;
        }
        // Earlier requests than the one with which the SMU began never became a miss.
        let first = asked.iter().rev().find(|a| a.at <= requested).or(asked.first());
        let begun = first.map_or(requested, |a| a.walk);
        if let (Some(times), Some(first)) = (&mut times, first) {
            (times.walk, times.request) = (first.walk, first.at);
        }
        let (hart, va) = first.map_or((None, 0), |a| (Some(a.hart), a.va));
        let sample = Sample { port: false, hart, va, begun, ended: installed, cut, times };
        for hart in &waiting {
            self.waits[*hart].iter_mut().for_each(|wait| wait.over = Some(self.next));
        }
        self.over.insert(self.next, Over { sample, waiting });
        self.close_unless_awaited(self.next);
        self.next += 1;
    }

    /// The steps of a miss that ended with an installed page.
    fn steps(&self, miss: &Miss, requested: Cycle, installed: Cycle) -> Option<MissTimes> {
        let s = &miss.stamps;
        let (doorbell, seen) = (s.doorbell?, s.completion?);
        let lba = PTE_LBA.get(miss.seen);
        let end = self.recent.iter().rev().find(|(slba, rung, _)| *slba == lba && *rung == doorbell);
        let allocated = s.allocated.unwrap_or(requested);
        Some(MissTimes {
            walk: requested,
            request: requested,
            allocated,
            frame: s.frame.unwrap_or(allocated),
            doorbell,
            device_done: end.map_or(seen, |e| e.2),
            seen,
            installed,
            resumed: installed,
        })
    }

    /// Ends a miss for which no hart waits, with the time at which its page was installed.
    fn close_unless_awaited(&mut self, miss: u64) {
        if self.over.get(&miss).is_some_and(|over| over.waiting.is_empty()) {
            let over = self.over.remove(&miss);
            self.ended.extend(over.map(|over| Sample { cut: true, ..over.sample }));
        }
    }

    /// Notes that a hart has received the SMU's answer. `done`: the page is installed.
    pub fn answered(&mut self, hart: usize, done: bool) {
        match &mut self.waits[hart] {
            Some(wait) if done => wait.answered = true,
            _ => self.stops_waiting(hart, false),
        }
    }

    /// Notes that a hart has stopped waiting without an answer.
    pub fn abandoned(&mut self, hart: usize) {
        self.stops_waiting(hart, true);
    }

    fn stops_waiting(&mut self, hart: usize, cut: bool) {
        let Some(wait) = self.waits[hart].take() else { return };
        if let Some(over) = wait.over {
            if let Some(over) = self.over.get_mut(&over) {
                over.waiting.retain(|waiting| *waiting != hart);
                over.sample.cut |= cut;
            }
            self.close_unless_awaited(over);
        } else if let Some(miss) = self.under_way.get_mut(&wait.pte) {
            miss.waiting.retain(|waiting| *waiting != hart);
            miss.cut |= cut;
            // The SMU has refused the request, so it has no such miss.
            if !cut && miss.waiting.is_empty() {
                self.under_way.remove(&wait.pte);
            }
        }
    }

    /// Notes that a hart has found a translation of `page`.
    pub fn found(&mut self, hart: usize, page: u64, now: Cycle) {
        if self.waits[hart].is_some_and(|wait| wait.answered && wait.page == page) {
            self.goes_on(hart, now, false);
        }
    }

    /// Notes that a hart that has its answer continues; `cut`: not with its access.
    pub fn goes_on(&mut self, hart: usize, now: Cycle, cut: bool) {
        let Some(wait) = self.waits[hart].take_if(|wait| wait.answered) else { return };
        if let Some(Over { mut sample, .. }) = wait.over.and_then(|over| self.over.remove(&over)) {
            sample.ended = now;
            sample.cut |= cut;
            sample.times.iter_mut().for_each(|times| times.resumed = now);
            self.ended.push(sample);
        }
    }

    /// Ends the misses whose page is installed, as if the waiting harts had continued at the time of the installation.
    pub fn settle(&mut self) {
        let over = std::mem::take(&mut self.over);
        self.ended.extend(over.into_values().map(|over| over.sample));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trapless_memory::PhysAddr;
    use trapless_riscv::Access;
    use trapless_smu::{FailReason, Stamps};

    const PTE: PhysAddr = PhysAddr(0x1000);

    fn asks(m: &mut Misses, hart: usize, at: u64) {
        let request = WalkRequest {
            pte_pa: PTE,
            pmd_pa: PTE,
            pud_pa: PTE,
            seen: 0,
            access: Access::Load,
            va: 0x5000,
            root_ppn: 1,
            started: Cycle(at - 1),
        };
        m.requested(hart, &request, Cycle(at));
    }

    /// Ends the SMU's part of a miss that began at `requested`, with the page installed at 100.
    fn over(m: &mut Misses, from: Source, requested: u64, outcome: Outcome) {
        let at = |n| Some(Cycle(n));
        let stamps = Stamps { requested: at(requested), pud: at(100), answered: at(102), ..Stamps::default() };
        m.over(&Miss { from, pte: PTE, seen: 0, outcome, requests: 1, stamps });
    }

    fn done(m: &mut Misses, requested: u64) {
        over(m, Source::Walker(0), requested, Outcome::Done(1));
    }

    /// Begin and end of each miss that has ended, and whether a wait for it was cut.
    fn ended(m: &mut Misses) -> Vec<(u64, u64, bool)> {
        m.take().iter().map(|s| (s.begun.0, s.ended.0, s.cut)).collect()
    }

    #[test]
    fn the_first_who_waits_ends_it() {
        let mut m = Misses::new(2);
        asks(&mut m, 0, 10);
        asks(&mut m, 1, 20);
        done(&mut m, 10);
        (0..2).for_each(|hart| m.answered(hart, true));
        m.found(1, 4, Cycle(103)); // for example the page of its code
        assert_eq!(ended(&mut m), []);
        m.found(1, 5, Cycle(104));
        m.found(0, 5, Cycle(105));
        assert_eq!(ended(&mut m), [(9, 104, false)]);
        // The hart is interrupted after the answer, before it continues.
        asks(&mut m, 0, 110);
        done(&mut m, 110);
        m.answered(0, true);
        m.goes_on(0, Cycle(120), true);
        m.found(0, 5, Cycle(130));
        assert_eq!(ended(&mut m), [(109, 120, true)]);
    }

    #[test]
    fn a_wait_that_is_cut_goes_on_with_the_next_request() {
        let mut m = Misses::new(2);
        asks(&mut m, 0, 10);
        m.abandoned(0);
        asks(&mut m, 1, 30); // the thread may have moved to another hart
        m.abandoned(1);
        asks(&mut m, 0, 40);
        done(&mut m, 10);
        m.answered(0, true);
        m.found(0, 5, Cycle(104));
        assert_eq!(ended(&mut m), [(9, 104, true)]);
        // No hart waits when the miss ends, or none any more when its answer would come.
        asks(&mut m, 0, 50);
        m.abandoned(0);
        done(&mut m, 50);
        asks(&mut m, 0, 60);
        done(&mut m, 60);
        m.abandoned(0);
        assert_eq!(ended(&mut m), [(49, 100, true), (59, 100, true)]);
        assert!(m.under_way.is_empty() && m.over.is_empty());
    }

    #[test]
    fn what_is_not_installed_for_a_walker_is_no_sample_of_walkers() {
        let mut m = Misses::new(1);
        // Answers: first refused at once, then failed, then changed.
        asks(&mut m, 0, 10);
        m.answered(0, false);
        assert!(m.under_way.is_empty());
        for outcome in [Outcome::Failed(FailReason::NoFrame), Outcome::Changed(3)] {
            asks(&mut m, 0, 20);
            over(&mut m, Source::Walker(0), 20, outcome);
            m.answered(0, false);
        }
        assert!(m.take().is_empty());
        // A walker joins a miss that a port began.
        asks(&mut m, 0, 30);
        over(&mut m, Source::Port(0), 25, Outcome::Done(1));
        m.answered(0, true);
        m.found(0, 5, Cycle(110));
        assert_eq!(m.take().iter().map(|s| (s.port, s.begun.0, s.ended.0)).collect::<Vec<_>>(), [(true, 25, 102)]);
        // The first request was given up before the SMU took it: the miss begins with the next request.
        asks(&mut m, 0, 40);
        m.abandoned(0);
        asks(&mut m, 0, 90);
        done(&mut m, 90);
        m.answered(0, true);
        m.settle();
        m.found(0, 5, Cycle(110));
        assert_eq!(m.take().iter().map(|s| (s.port, s.begun.0, s.ended.0)).collect::<Vec<_>>(), [(false, 89, 100)]);
    }
}
