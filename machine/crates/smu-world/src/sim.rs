// SPDX-License-Identifier: Apache-2.0
//! The SMU in its world, with walkers and an operating system that follows spec/os-contract.md.

use std::collections::BTreeMap;

use trapless_memory::{Cycle, PhysAddr};
use trapless_smu_regs::{self as regs, Counter};

use trapless_smu::{Accept, Answer, Outcome, Request, SmuConfig, SmuSink, SmuTiming, SmuUnit, Source};

use crate::world::{self, DESCRIPTORS, FRAMES, FREE_ENTRIES, PTES, Place, RET_ENTRIES, World};

pub const HARTS: usize = 4;
pub const PMSHR: u8 = 4;

/// A request of a walker or a port that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    page: usize,
    /// Position in the order of acceptance; `None` until the request is accepted.
    accepted: Option<u64>,
}

pub struct Sim {
    pub smu: Box<dyn SmuUnit>,
    pub world: World,
    pub now: Cycle,
    /// The page and the entry that each hart's walker has read, until it sends a request.
    looks: [Option<(usize, u64)>; HARTS],
    waiting: BTreeMap<(u32, u64), Wait>,
    /// The request that waits at each software request port.
    asked_ports: [Option<Wait>; HARTS],
    next_id: u64,
    acceptances: u64,
    /// Number of acceptances before the latest fence and drain of each descriptor.
    fences: [u64; DESCRIPTORS],
    drains: [u64; DESCRIPTORS],
    generation: u64,
    /// Number of acceptances at each page's withdrawal. The page may be armed again only after a fence that covers this number.
    withdrawn: [u64; PTES],
    pub answers: Vec<Answer>,
}

/// Reports of the SMU during one step.
#[derive(Default)]
struct News(Vec<New>);

#[allow(clippy::large_enum_variant, reason = "a step has only a few of them")]
enum New {
    Accepted(Source),
    Answer(Answer),
}

impl SmuSink for News {
    fn accepted(&mut self, from: Source) {
        self.0.push(New::Accepted(from));
    }

    fn answer(&mut self, answer: Answer) {
        self.0.push(New::Answer(answer));
    }
}

pub fn timing() -> SmuTiming {
    SmuTiming {
        request: Cycle(2),
        cam: Cycle(5),
        command_write: Cycle(8),
        doorbell: Cycle(1),
        completion: Cycle(2),
        update: Cycle(97),
        notify: Cycle(2),
        poll_interval: Cycle(10),
        first_look: None,
        ring_read: Cycle(4),
    }
}

pub fn config(hints: bool) -> SmuConfig {
    SmuConfig {
        pmshr_entries: PMSHR,
        prefetch_depth: 2,
        harts: HARTS as u8,
        socket: 0,
        timeout: Cycle(0),
        completion_hints: hints,
        timing: timing(),
    }
}

impl Sim {
    /// Creates a world with all pages armed, rings and descriptors set up, the SMU enabled, and `frames` frames in the free ring.
    pub fn new(smu: Box<dyn SmuUnit>, frames: usize) -> Sim {
        let mut sim = Sim {
            smu,
            world: World::new(),
            now: Cycle(0),
            looks: [None; HARTS],
            waiting: BTreeMap::new(),
            asked_ports: [None; HARTS],
            next_id: 0,
            acceptances: 0,
            fences: [0; DESCRIPTORS],
            drains: [0; DESCRIPTORS],
            generation: 0,
            withdrawn: [0; PTES],
            answers: Vec::new(),
        };
        for p in 0..PTES {
            sim.world.mem.insert(world::PT + 8 * p as u64, world::armed(p, 0));
        }
        for (register, value) in [
            (regs::FREE_BASE, world::FREE_RING),
            (regs::FREE_SIZE, FREE_ENTRIES),
            (regs::RET_BASE, world::RET_RING),
            (regs::RET_SIZE, RET_ENTRIES),
        ] {
            sim.write(register, value);
        }
        for d in 0..world::DESCRIPTORS {
            sim.set_up_descriptor(d);
        }
        sim.write(regs::CTRL, 1);
        sim.refill(frames);
        assert_eq!(sim.read(regs::STATUS) & regs::STATUS_ERROR.mask(), 0);
        sim
    }

    pub fn read(&self, register: u64) -> u64 {
        self.smu.peek(register)
    }

    pub fn status(&self, field: regs::Field) -> u64 {
        field.get(self.read(regs::STATUS))
    }

    pub fn write(&mut self, register: u64, value: u64) {
        self.smu.mmio_write(register, 8, value, self.now, &mut self.world);
        self.advance(self.now);
    }

    pub fn count(&self, counter: Counter) -> u64 {
        self.smu.counter(counter)
    }

    pub fn desc(d: usize, register: u64) -> u64 {
        regs::DESC_BASE + regs::DESC_STRIDE * d as u64 + register
    }

    pub fn window(w: u64, register: u64) -> u64 {
        regs::WINDOW_BASE + regs::WINDOW_STRIDE * w + register
    }

    pub fn set_up_descriptor(&mut self, d: usize) {
        for (register, value) in [
            (regs::DESC_SQ_BASE, world::sq(d)),
            (regs::DESC_CQ_BASE, world::cq(d)),
            (regs::DESC_SQ_DB, world::sq_doorbell(d)),
            (regs::DESC_CQ_DB, world::cq_doorbell(d)),
            (regs::DESC_DEPTH, self.world.depth),
            (regs::DESC_NSID, 1 + d as u64),
            (regs::DESC_BLOCKS, 3),
            (regs::DESC_CTRL, 1),
        ] {
            self.write(Self::desc(d, register), value);
        }
    }

    /// Advances the time by `cycles`, event by event.
    pub fn run(&mut self, cycles: u64) {
        let end = self.now + Cycle(cycles);
        while let Some(at) = self.smu.next_event().filter(|&at| at <= end) {
            self.world.check(at >= self.now, "time", || format!("next event at {at:?} lies in the past"));
            self.now = self.now.max(at);
            self.advance(at);
        }
        self.now = end;
        self.smu.advance(end, &mut self.world, &mut |_: Answer| unreachable!("everything due was done"));
    }

    fn advance(&mut self, at: Cycle) {
        let mut news = News::default();
        self.smu.advance(at, &mut self.world, &mut news);
        for new in news.0 {
            match new {
                New::Accepted(from) => self.accepted(from),
                New::Answer(answer) => self.answered(answer),
            }
        }
        self.poll_ports();
        self.settle();
    }

    /// Records that a held request is accepted.
    fn accepted(&mut self, from: Source) {
        self.acceptances += 1;
        let wait = match from {
            Source::Port(port) => self.asked_ports[port as usize].as_mut(),
            Source::Walker(hart) => self.waiting.iter_mut().find(|((h, _), _)| *h == hart).map(|(_, wait)| wait),
        };
        let Some(wait) = wait else { return };
        wait.accepted = Some(self.acceptances);
        let page = wait.page;
        let others = self.waiting.values().chain(self.asked_ports.iter().flatten());
        if !others.into_iter().any(|w| w.page == page && w.accepted.is_none()) {
            self.world.accepted[page] = self.acceptances;
        }
    }

    fn answered(&mut self, answer: Answer) {
        let wait = self.waiting.remove(&(answer.hart, answer.id));
        self.world.check(wait.is_some(), "SMU-6", || format!("nobody waits for {answer:?}"));
        self.world.check(answer.at <= self.now.max(answer.asked), "time", || format!("{answer:?} at {:?}", self.now));
        if let Some(Wait { page, .. }) = wait {
            let marked = self.world.is_marked(page);
            if matches!(answer.outcome, Outcome::Done(_)) {
                self.world.check(marked, "SMU-3", || format!("page {page} answered before its marks"));
            }
            self.world.accepted[page] = self.world.accepted[page].min(self.acceptances + 1);
        }
        self.answers.push(answer);
    }

    /// Checks the guarantees of finished fences and drains.
    fn settle(&mut self) {
        for d in 0..DESCRIPTORS {
            let busy = self.read(Self::desc(d, regs::DESC_FENCE));
            let over = |field: regs::Field, begun: u64| if field.is_set(busy) { 0 } else { begun };
            let drained = over(regs::DESC_FENCE_DRAIN, self.drains[d]);
            let fenced = over(regs::DESC_FENCE_FENCE, self.fences[d]).max(drained);
            self.world.fenced[d] = self.world.fenced[d].max(fenced);
            self.world.drained[d] = self.world.drained[d].max(drained);
        }
        let fenced = self.world.fenced;
        let over = |w: &Wait| w.accepted.is_some_and(|a| a <= fenced[world::device_of(w.page)]);
        let left = self.waiting.iter().find(|(_, w)| over(w));
        let left = left.map(|(key, wait)| format!("{key:?} {wait:?} still waits after a fence"));
        self.world.check(left.is_none(), "SMU-8", || left.unwrap_or_default());
        let left = self.asked_ports.iter().flatten().find(|w| over(w)).copied();
        self.world.check(left.is_none(), "SMU-8", || format!("a port with {left:?} is busy after a fence"));
    }

    // ---- walkers

    /// Lets a walker read an entry.
    pub fn look(&mut self, hart: usize, page: usize) {
        self.looks[hart] = Some((page, self.world.pte(page))).filter(|(_, pte)| regs::pte_is_armed(*pte));
    }

    /// Lets a walker send a request with the entry that it read.
    pub fn send(&mut self, hart: usize) -> Option<Accept> {
        self.send_beside(hart, [0; 3])
    }

    /// Like [`Sim::send`], with offsets that are added to the addresses of PTE, PMD and PUD.
    pub fn send_beside(&mut self, hart: usize, [pte, pmd, pud]: [u64; 3]) -> Option<Accept> {
        if self.waiting.keys().any(|&(h, _)| h == hart as u32) {
            return None;
        }
        let (page, seen) = self.looks[hart].take()?;
        self.next_id += 1;
        let at = |base: u64| PhysAddr(base + 8 * page as u64);
        let request = Request {
            pte: at(world::PT.wrapping_add(pte)),
            pmd: at(world::PMD.wrapping_add(pmd)),
            pud: at(world::PUD.wrapping_add(pud)),
            seen,
            hart: hart as u32,
            id: self.next_id,
        };
        let accept = self.smu.request(self.now, request);
        let accepted = (accept == Accept::Accepted).then(|| {
            self.acceptances += 1;
            self.acceptances
        });
        // A held request may be accepted at any time, so fences do not limit installs of its page.
        self.world.accepted[page] = accepted.unwrap_or(u64::MAX);
        self.waiting.insert((hart as u32, self.next_id), Wait { page, accepted });
        Some(accept)
    }

    pub fn ask(&mut self, hart: usize, page: usize) -> Option<Accept> {
        self.look(hart, page);
        self.send(hart)
    }

    pub fn abandon(&mut self, hart: usize) {
        if let Some((&key, _)) = self.waiting.iter().find(|((h, _), _)| *h == hart as u32) {
            self.waiting.remove(&key);
            self.smu.abandon(key.0, key.1);
            self.settle();
        }
    }

    // ---- software request ports

    pub fn port(port: usize, register: u64) -> u64 {
        regs::PORT_BASE + regs::PORT_STRIDE * port as u64 + register
    }

    /// Lets software request an armed page through a port.
    pub fn ask_port(&mut self, port: usize, page: usize) {
        let seen = self.world.pte(page);
        if self.asked_ports[port].is_some() || !regs::pte_names_block(seen) {
            return;
        }
        for (register, base) in
            [(regs::PORT_PTE_ADDR, world::PT), (regs::PORT_PMD_ADDR, world::PMD), (regs::PORT_PUD_ADDR, world::PUD)]
        {
            self.write(Self::port(port, register), base + 8 * page as u64);
        }
        self.world.accepted[page] = u64::MAX;
        self.asked_ports[port] = Some(Wait { page, accepted: None });
        self.write(Self::port(port, regs::PORT_ENTRY), seen);
        let from = Source::Port(port as u32);
        if self.asked_ports[port].is_some_and(|w| w.accepted.is_none()) && !self.smu.is_held(from) {
            self.accepted(from);
        }
    }

    /// Returns outcome, reason and answer of a port, or `None` if the port is busy.
    pub fn port_answer(&self, port: usize) -> Option<(u64, u64, u64)> {
        let status = self.read(Self::port(port, regs::PORT_STATUS));
        let (outcome, reason) = (regs::PORT_STATUS_OUTCOME.get(status), regs::PORT_STATUS_REASON.get(status));
        let busy = regs::PORT_STATUS_BUSY.is_set(status);
        (!busy).then(|| (outcome, reason, self.read(Self::port(port, regs::PORT_ANSWER))))
    }

    fn poll_ports(&mut self) {
        for port in 0..HARTS {
            let (Some(Wait { page, .. }), Some((outcome, _, value))) = (self.asked_ports[port], self.port_answer(port))
            else {
                continue;
            };
            self.asked_ports[port] = None;
            let (marked, known) =
                (self.world.is_marked(page), (regs::OUTCOME_DONE..=regs::OUTCOME_FAILED).contains(&outcome));
            self.world.check(known, "SMU-11", || format!("port {port} is idle without an answer"));
            if outcome == regs::OUTCOME_DONE {
                self.world.check(marked, "SMU-3", || format!("page {page} answered before its marks"));
                self.world.check(regs::PTE_V.is_set(value), "SMU-11", || format!("page {page} done with {value:#x}"));
            }
            self.world.accepted[page] = self.world.accepted[page].min(self.acceptances + 1);
        }
    }

    // ---- devices

    pub fn complete(&mut self, d: usize, which: usize, status: u16) -> bool {
        let done = self.world.complete(d, which, status);
        self.smu.completion_queue_written(self.now);
        done
    }

    /// Posts a completion for a command identifier that was never used. (A completion for a real command whose data is not
    /// written yet would be false, and the SMU cannot detect that.)
    pub fn stray(&mut self, d: usize, cid: u16) {
        self.world.post(d, cid, 0);
        self.smu.completion_queue_written(self.now);
    }

    // ---- the operating system

    /// Puts up to `n` frames into the free ring.
    pub fn refill(&mut self, n: usize) {
        for _ in 0..n {
            self.put(0);
        }
    }

    /// Puts a frame into the free ring. `spoil` sets bits of its DMA address.
    pub fn put(&mut self, spoil: u64) {
        let (head, tail) = (self.read(regs::FREE_HEAD), self.read(regs::FREE_TAIL));
        let room = (tail.wrapping_sub(head) & 0xffff_ffff) < FREE_ENTRIES;
        // We keep back a frame that the SMU will return as maybe mapped. So the world can tell its two uses apart.
        let mut ours = (0..FRAMES).filter(|f| self.world.places[*f] == Place::Os && !self.world.doubts.contains_key(f));
        let Some(frame) = ours.next().filter(|_| room) else { return };
        let at = world::FREE_RING + 16 * (tail % FREE_ENTRIES);
        self.world.mem.insert(at, world::pfn(frame));
        self.world.mem.insert(at + 8, world::dma(frame) | spoil);
        self.world.places[frame] = Place::Smu;
        self.write(regs::FREE_TAIL, (tail + 1) & 0xffff_ffff);
    }

    /// Empties the return ring and returns the reasons.
    pub fn take_returned(&mut self) -> Vec<u64> {
        let (mut head, tail) = (self.read(regs::RET_HEAD), self.read(regs::RET_TAIL));
        let mut reasons = Vec::new();
        let full = tail.wrapping_sub(head) & 0xffff_ffff;
        self.world.check(full <= RET_ENTRIES, "SMU-5", || format!("return ring from {head:#x} to {tail:#x}"));
        while head != tail && full <= RET_ENTRIES {
            let at = world::RET_RING + 16 * (head % RET_ENTRIES);
            let ours = self.world.returns.pop_front().unwrap_or(true);
            if let Some(frame) = self.world.frame(self.world.word(at)).filter(|_| ours) {
                self.world.take_back(frame);
            }
            reasons.push(self.world.word(at + 8));
            head = (head + 1) & 0xffff_ffff;
        }
        self.write(regs::RET_HEAD, head);
        reasons
    }

    /// Starts a fence of a descriptor.
    pub fn fence(&mut self, d: usize) {
        self.fences[d] = self.acceptances;
        self.write(Self::desc(d, regs::DESC_FENCE), regs::DESC_FENCE_FENCE.mask());
    }

    /// Starts a drain of a descriptor.
    pub fn drain(&mut self, d: usize) {
        self.drains[d] = self.acceptances;
        self.write(Self::desc(d, regs::DESC_FENCE), regs::DESC_FENCE_DRAIN.mask());
    }

    /// Tells whether a fence, and whether a drain, of a descriptor is running.
    pub fn fences(&self, d: usize) -> (bool, bool) {
        let busy = self.read(Self::desc(d, regs::DESC_FENCE));
        (regs::DESC_FENCE_FENCE.is_set(busy), regs::DESC_FENCE_DRAIN.is_set(busy))
    }

    /// Lets the commands at a device time out.
    pub fn expire(&mut self, d: usize) {
        self.write(Self::desc(d, regs::DESC_EXPIRE), 0);
    }

    /// Removes an armed or present page from the page table, then starts a fence.
    pub fn withdraw(&mut self, page: usize) {
        let pte = self.world.pte(page);
        self.world.mem.insert(world::PT + 8 * page as u64, 0);
        if regs::PTE_V.is_set(pte) {
            let frame = self.world.frame(regs::PTE_PFN.get(pte));
            frame.into_iter().for_each(|f| self.world.take_back(f));
        }
        self.withdrawn[page] = self.acceptances;
        self.fence(world::device_of(page));
    }

    /// Arms a page again, with the same or another block, if the fence of its withdrawal is over.
    pub fn arm(&mut self, page: usize, other_block: bool) {
        if self.world.pte(page) == 0 && self.world.fenced[world::device_of(page)] >= self.withdrawn[page] {
            self.generation += u64::from(other_block);
            self.world.mem.insert(world::PT + 8 * page as u64, world::armed(page, self.generation));
            self.world.lost_mark.remove(&page);
        }
    }

    /// Like [`Sim::arm`], but arms the page for software only (SOFT is set).
    pub fn arm_soft(&mut self, page: usize) {
        self.arm(page, true);
        let pte = self.world.pte(page);
        if regs::pte_is_armed(pte) {
            self.world.mem.insert(world::PT + 8 * page as u64, pte | regs::PTE_SOFT.mask());
        }
    }

    /// Adopts a page as kpted does: clears the marks from the top, then reads the entry below (OS-6).
    pub fn adopt(&mut self, page: usize) {
        let clear = |world: &mut World, base: u64| {
            let at = base + 8 * page as u64;
            let value = world.word(at);
            world.mem.insert(at, value & !regs::PTE_L.mask());
            regs::PTE_L.is_set(value)
        };
        if clear(&mut self.world, world::PUD) && clear(&mut self.world, world::PMD) {
            let pte = self.world.pte(page);
            if regs::PTE_V.is_set(pte) {
                clear(&mut self.world, world::PT);
            }
        }
    }

    pub fn invalidate(&mut self, d: usize) {
        self.write(Self::desc(d, regs::DESC_CTRL), 0);
    }

    /// Deletes a descriptor's queues, writes RELEASE, and only then creates new queues. Until the write of RELEASE is over, a
    /// doorbell write may still be under way.
    pub fn release(&mut self, d: usize) {
        if self.read(Self::desc(d, regs::DESC_CTRL)) == 0 {
            self.world.delete_queues(d);
            self.write(Self::desc(d, regs::DESC_RELEASE), 0);
            self.world.create_queues(d);
        }
    }

    /// Ends the test: the devices complete all commands, and the SMU is shut down in order. Then checks that nothing is left.
    pub fn finish(&mut self) {
        self.world.mend();
        for _ in 0..4 * PTES {
            for d in 0..world::DESCRIPTORS {
                while self.complete(d, 0, 0) {}
            }
            self.take_returned();
            self.run(500);
            if self.is_over() {
                break;
            }
        }
        let (status, waiting) = (self.read(regs::STATUS), format!("{:?}", self.waiting));
        self.world.check(regs::STATUS_LIVE.get(status) == 0, "SMU-10", || format!("a miss is not over: {waiting}"));
        self.world.check(self.waiting.is_empty(), "SMU-6", || format!("requests without an answer: {waiting}"));
        let ports = self.asked_ports;
        self.world.check(ports == [None; HARTS], "SMU-6, SMU-11", || format!("ports without an answer: {ports:?}"));
        self.write(regs::CTRL, 0);
        for d in 0..world::DESCRIPTORS {
            self.invalidate(d);
            self.release(d);
        }
        self.take_returned();
        self.write(regs::RET_BASE, world::RET_RING); // repairs the ring after a bus error
        for _ in 0..FRAMES {
            self.run(200);
            if self.take_returned().is_empty() && self.status(regs::STATUS_NO_FRAMES) == 1 {
                break;
            }
        }
        let want = regs::STATUS_IDLE.mask() | regs::STATUS_NO_DMA.mask() | regs::STATUS_NO_FRAMES.mask();
        let status = self.read(regs::STATUS) & !regs::STATUS_ERROR.mask();
        self.world.check(status == want, "SMU-5", || format!("not idle at the end: status {status:#x}"));
        for d in 0..DESCRIPTORS {
            let under_way = self.fences(d);
            self.world.check(under_way == (false, false), "SMU-8", || format!("descriptor {d} fenced: {under_way:?}"));
        }
        self.check_frames();
        self.check_marks();
        self.check_counters();
    }

    /// Tells whether no request waits, no miss is live, and no device has a command.
    fn is_over(&self) -> bool {
        let asked = self.asked_ports.iter().any(Option::is_some) || !self.waiting.is_empty();
        !asked && self.status(regs::STATUS_LIVE) == 0 && self.world.devices.iter().all(|d| d.pending.is_empty())
    }

    /// Checks that no frame is lost: each frame that the SMU got and did not install or return must still be in the free ring.
    fn check_frames(&mut self) {
        let (head, tail) = (self.read(regs::FREE_HEAD), self.read(regs::FREE_TAIL));
        let full = tail.wrapping_sub(head) & 0xffff_ffff;
        self.world.check(full <= FREE_ENTRIES, "SMU-5", || format!("free ring from {head:#x} to {tail:#x}"));
        let mut in_ring: Vec<usize> = (0..full.min(FREE_ENTRIES))
            .filter_map(|i| self.world.frame(self.world.word(world::FREE_RING + 16 * ((head + i) % FREE_ENTRIES))))
            .collect();
        in_ring.sort_unstable();
        let with_smu: Vec<usize> = (0..FRAMES).filter(|&f| self.world.places[f] == Place::Smu).collect();
        self.world
            .check(in_ring == with_smu, "SMU-5", || format!("frames {with_smu:?} given, {in_ring:?} in the ring"));
    }

    /// Checks that every unsynced page has its marks.
    fn check_marks(&mut self) {
        for p in 0..PTES {
            let pte = self.world.pte(p);
            let unsynced = regs::PTE_V.is_set(pte) && regs::PTE_L.is_set(pte);
            let above = |base: u64| regs::PTE_L.is_set(self.world.word(base + 8 * p as u64));
            let found = above(world::PMD) && above(world::PUD);
            let excused = self.world.lost_mark.contains(&p);
            self.world.check(!unsynced || found || excused, "SMU-3", || format!("page {p} is lost to kpted"));
        }
    }

    fn check_counters(&mut self) {
        let outcomes = Counter::Coalesced as usize..=Counter::FailTimeout as usize;
        let values = self.smu.counters();
        let sum: u64 = values[outcomes].iter().map(|(_, n)| n).sum();
        self.world.check(values[0].1 == sum, "SMU-10", || format!("counters do not add up: {values:?}"));
    }
}
