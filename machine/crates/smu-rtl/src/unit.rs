// SPDX-License-Identifier: Apache-2.0
//! The simulated unit: its clock, the pins of its walkers, and its register bus.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use trapless_memory::{Cycle, PhysAddr};
use trapless_smu::{
    Accept, Answer, FailReason, Miss, Outcome, Request, Smu, SmuBus, SmuConfig, SmuSink, SmuTiming, SmuUnit, Source,
    Stamps,
};
use trapless_smu_regs as regs;

use crate::axi::{Access, Axi, Memory};
use crate::dice::Dice;
use crate::error::RtlError;
use crate::misses::{Installed, Misses};
use crate::nowhere::Nowhere;
use crate::pins::{Inputs, Outputs, Parameters, RequestPins, Unit};

/// The unit is idle after this number of cycles without a sign of work, plus the cycles of its internal rounds.
const QUIET: u64 = 64;
/// Cycles after which we assume that a register access hangs.
const PATIENCE: u64 = 100_000;

/// A request of a walker or a port that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Wait {
    request: Request,
    /// Identifier on the pins, in place of `request.id`.
    pin_id: u8,
    asked: Cycle,
    accepted: bool,
    joined: bool,
}

/// An event that waits for its report to the sink.
#[derive(Debug)]
enum Event {
    Accepted(Source),
    Answer {
        from_port: bool,
        answer: Answer,
    },
    /// A miss is installed. Its waiters are answered afterwards.
    Over(Miss),
}

/// The simulated RTL.
///
/// ```
/// use trapless_memory::{ClockHz, Cycle};
/// use trapless_smu::{SmuConfig, SmuTiming};
/// use trapless_smu_rtl::RtlSmu;
///
/// let config = SmuConfig {
///     pmshr_entries: 8,
///     prefetch_depth: 4,
///     harts: 1,
///     socket: 0,
///     timeout: Cycle(0),
///     completion_hints: false,
///     timing: SmuTiming::isca20(ClockHz(100_000_000)),
/// };
/// // `RtlSmu::load` needs a library that rtl/smu/sim/build.py has built with these arguments.
/// let parameters = RtlSmu::parameters(&config);
/// assert!(parameters.arguments().starts_with("pmshr=8 harts=1 ports=1 "));
/// ```
pub struct RtlSmu {
    config: SmuConfig,
    unit: Unit,
    axi: Axi,
    pins: Inputs,
    outs: Outputs,
    /// Number of clock cycles since reset, and the machine's time of the next clock cycle.
    ticks: u64,
    clock: Cycle,
    /// The unit panics when `ticks` reaches this number.
    limit: u64,
    /// Number of clock cycles without a sign of work, and the number after which the unit is idle.
    quiet: u64,
    drowsy: u64,
    /// Times at which an idle unit must wake up, for a completion or a timeout.
    alarms: BTreeSet<Cycle>,
    walkers: Vec<Option<Wait>>,
    ports: Vec<Option<Wait>>,
    next_pin_id: u8,
    misses: Misses,
    /// For the address of each PTE with a miss: source and time of the first request, and the armed entry.
    begun: BTreeMap<u64, (Source, Cycle, u64)>,
    events: Vec<Event>,
    /// Log of all memory accesses, if a test has set it.
    pub log: Option<Vec<(Cycle, Access)>>,
}

impl RtlSmu {
    /// Returns the parameters with which a library must be built for this configuration.
    pub fn parameters(config: &SmuConfig) -> Parameters {
        Parameters {
            pmshr_entries: config.pmshr_entries.into(),
            harts: config.harts.into(),
            ports: u32::from(config.harts).min(regs::PORT_COUNT as u32),
            devices: regs::DESC_COUNT as u32,
            prefetch: config.prefetch_depth.into(),
            updaters: 2,
            data_width: 64,
            axi_id_width: 4,
            poll_interval: config.timing.poll_interval.0.min(1 << 20) as u32,
            socket: config.socket.into(),
        }
    }

    /// Loads the library and resets the unit. A library that was built with traces writes a waveform to `trace`.
    ///
    /// # Errors
    /// The library cannot be loaded, or it was built with other sizes.
    pub fn load(path: &Path, config: SmuConfig, memory: Memory, trace: Option<&Path>) -> Result<RtlSmu, RtlError> {
        let unit = Unit::load(path, trace)?;
        let (have, want) = (unit.parameters, RtlSmu::parameters(&config));
        for (what, have, want) in [
            ("pmshr_entries", have.pmshr_entries, want.pmshr_entries),
            ("harts", have.harts, want.harts),
            ("prefetch_depth", have.prefetch, want.prefetch),
            ("socket", have.socket, want.socket),
        ] {
            if have != want {
                return Err(RtlError::Parameters(path.into(), what, have, want));
            }
        }
        let p = unit.parameters;
        let rounds = u64::from(p.pmshr_entries + 4 * (p.harts + p.ports) + 2 * p.poll_interval);
        let mut smu = RtlSmu {
            axi: Axi::new(memory, p.data_width, p.axi_id_width),
            pins: Inputs { csr_bready: 1, csr_rready: 1, ..Inputs::default() },
            outs: Outputs::default(),
            ticks: 0,
            limit: u64::MAX,
            clock: Cycle(0),
            quiet: 0,
            drowsy: QUIET + rounds,
            alarms: BTreeSet::new(),
            walkers: vec![None; p.harts as usize],
            ports: vec![None; p.ports as usize],
            next_pin_id: 0,
            misses: Misses::new(p.updaters),
            begun: BTreeMap::new(),
            events: Vec::new(),
            log: None,
            unit,
            config,
        };
        if smu.config.timeout != Cycle(0) {
            smu.access(regs::TIMEOUT, 0xff, Some(smu.config.timeout.0), &mut Nowhere);
        }
        Ok(smu)
    }

    /// Changes the behaviour of memory from now on.
    pub fn set_memory(&mut self, memory: Memory) {
        self.axi.set_memory(memory);
    }

    /// Makes the unit panic after `ticks` clock cycles, for tests of a unit that may hang.
    pub fn set_limit(&mut self, ticks: u64) {
        self.limit = ticks;
    }

    /// Returns the number of clock cycles so far.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    fn is_awake(&self) -> bool {
        self.quiet < self.drowsy + 2 * self.axi.longest() || self.pins.req_valid != 0 || self.pins.abandon != 0
    }

    /// Advances the time to `at` without simulating the clock cycles in between.
    fn sleep_until(&mut self, at: Cycle) {
        if at > self.clock {
            self.unit.skip(at.0 - self.clock.0);
            self.clock = at;
        }
        self.alarms.retain(|alarm| *alarm > at);
        self.quiet = 0;
    }

    /// Prepares the unit for a call of the host at time `now`.
    fn called(&mut self, now: Cycle) {
        if !self.is_awake() {
            self.sleep_until(now.max(self.clock));
        }
        self.quiet = 0;
    }

    /// Simulates one clock cycle.
    fn tick(&mut self, bus: &mut dyn SmuBus) {
        let was_asking = self.outs.port_asking;
        let was_busy = self.outs.port_busy;
        self.axi.drive(self.ticks, &mut self.pins);
        self.unit.tick(&self.pins, &mut self.outs);
        self.quiet += 1;
        let RtlSmu { axi, pins, outs, misses, alarms, log, quiet, clock, unit, .. } = self;
        let now = *clock;
        let hints = self.config.completion_hints;
        axi.take(self.ticks, pins, outs, bus, &mut |access| {
            misses.note(&access, now);
            let work = !misses.finds_nothing(&access) || !hints;
            if work {
                *quiet = 0;
            }
            if matches!(access, Access::Write { bytes: 4, .. }) {
                let timeout = unit.peek(regs::TIMEOUT as u32);
                alarms.extend((timeout != 0).then(|| Cycle(now.0.saturating_add(timeout))));
            }
            log.iter_mut().for_each(|log| log.push((now, access)));
            work
        });
        if axi.is_working() {
            *quiet = 0;
        }
        for installed in self.misses.take_installed() {
            self.installed(&installed);
        }
        self.ticks += 1;
        assert!(self.ticks < self.limit, "the SMU still works after its limit of clock cycles");
        self.ports_changed(was_asking, was_busy);
        for hart in bits(self.pins.req_valid & self.outs.req_ready) {
            self.pins.req_valid &= !(1 << hart);
            self.accepted(Source::Walker(hart));
        }
        for hart in bits(self.outs.rsp_valid) {
            self.answered(hart);
        }
        self.pins.abandon = 0;
    }

    /// Reports a miss as over when its entries are updated. Its waiters still wait for their answers.
    fn installed(&mut self, installed: &Installed) {
        // A port's miss is reported as over with the port's answer.
        let walkers = |(from, ..): &(Source, Cycle, u64)| matches!(from, Source::Walker(_));
        let Some((from, asked, seen)) = self.begun.get(&installed.pte).copied().filter(walkers) else { return };
        self.begun.remove(&installed.pte);
        let (pte, outcome) = (PhysAddr(installed.pte), Outcome::Done(installed.value));
        let waits = self.walkers.iter().chain(&self.ports).flatten();
        let requests = waits.filter(|wait| wait.accepted && wait.request.pte == pte).count() as u32;
        let stamps = Stamps { requested: Some(asked), ..installed.stamps };
        self.events.push(Event::Over(Miss { from, pte, seen, outcome, requests, stamps }));
    }

    fn wait(&mut self, from: Source) -> Option<&mut Wait> {
        match from {
            Source::Walker(hart) => self.walkers.get_mut(hart as usize)?.as_mut(),
            Source::Port(port) => self.ports.get_mut(port as usize)?.as_mut(),
        }
    }

    /// Records that a request is accepted. It has joined a miss if an accepted request for the same PTE still waits.
    fn accepted(&mut self, from: Source) {
        let Some(pte) = self.wait(from).map(|w| w.request.pte) else { return };
        let others = self.walkers.iter().chain(&self.ports).flatten();
        let joined = others.into_iter().any(|w| w.accepted && w.request.pte == pte);
        if let Some(wait) = self.wait(from) {
            (wait.accepted, wait.joined) = (true, joined);
            let begun = (from, wait.asked, wait.request.seen);
            if !joined {
                self.begun.insert(pte.0, begun);
            }
        }
        self.events.push(Event::Accepted(from));
    }

    /// Reports an answer on a walker's pins. Reports an answer without a waiting request too, with an identifier that no
    /// request has.
    fn answered(&mut self, hart: u32) {
        let rsp = self.outs.rsp[hart as usize];
        let outcome = outcome(rsp.outcome, rsp.reason, rsp.pte);
        let wait = self.walkers[hart as usize].take_if(|w| w.accepted && u64::from(w.pin_id) == rsp.id);
        let answer = match wait {
            Some(wait) => self.answer(wait, outcome),
            None if self.pins.abandon >> hart & 1 == 1 => return,
            None => Answer {
                hart,
                id: u64::MAX,
                seen: 0,
                outcome,
                at: self.clock,
                asked: self.clock,
                joined: false,
                stamps: Stamps::default(),
            },
        };
        self.events.push(Event::Answer { from_port: false, answer });
    }

    fn answer(&self, wait: Wait, outcome: Outcome) -> Answer {
        let Wait { request, asked, joined, .. } = wait;
        let mut stamps = self.misses.stamps(request.pte.0);
        (stamps.requested, stamps.answered) = (Some(asked), Some(self.clock));
        Answer {
            hart: request.hart,
            id: request.id,
            seen: request.seen,
            outcome,
            at: self.clock,
            asked,
            joined,
            stamps,
        }
    }

    fn ports_changed(&mut self, was_asking: u32, was_busy: u32) {
        let (asking, busy) = (self.outs.port_asking, self.outs.port_busy);
        for number in bits(busy & !was_busy) {
            let read = |field| self.unit.peek((regs::PORT_BASE + regs::PORT_STRIDE * u64::from(number) + field) as u32);
            let at = |field| PhysAddr(read(field));
            let request = Request {
                pte: at(regs::PORT_PTE_ADDR),
                pmd: at(regs::PORT_PMD_ADDR),
                pud: at(regs::PORT_PUD_ADDR),
                seen: read(regs::PORT_ENTRY),
                hart: number,
                id: 0,
            };
            let wait = Wait { request, pin_id: 0, asked: self.clock, accepted: false, joined: false };
            self.ports[number as usize] = Some(wait);
        }
        for number in bits(was_asking & !asking) {
            self.accepted(Source::Port(number));
        }
        for number in bits(was_busy & !busy) {
            if let Some(wait) = self.ports[number as usize].take() {
                let base = regs::PORT_BASE + regs::PORT_STRIDE * u64::from(number);
                let status = self.unit.peek((base + regs::PORT_STATUS) as u32);
                let value = self.unit.peek((base + regs::PORT_ANSWER) as u32);
                let (what, why) = (regs::PORT_STATUS_OUTCOME.get(status), regs::PORT_STATUS_REASON.get(status));
                let answer = self.answer(wait, outcome(what, why, value));
                if let (Outcome::Done(_), false) = (answer.outcome, answer.joined) {
                    let Answer { seen, outcome, stamps, .. } = answer;
                    let (from, pte) = (Source::Port(number), wait.request.pte);
                    self.begun.remove(&pte.0);
                    self.events.push(Event::Over(Miss { from, pte, seen, outcome, requests: 1, stamps }));
                }
                self.events.push(Event::Answer { from_port: true, answer });
            }
        }
    }

    /// Reports the events of this cycle, and of the calls before it, to the sink.
    fn deliver(&mut self, now: Cycle, sink: &mut dyn SmuSink) {
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::Accepted(from) => sink.accepted(from),
                Event::Over(miss) => sink.miss_over(&miss),
                Event::Answer { from_port, answer } => {
                    let answer = Answer { at: answer.at.min(now), ..answer };
                    if from_port { sink.port_answered(&answer) } else { sink.answer(answer) }
                }
            }
        }
    }

    /// Makes an access over the register bus: a write of `value`, or a read if there is none.
    fn access(&mut self, offset: u64, strobe: u8, value: Option<u64>, bus: &mut dyn SmuBus) -> u64 {
        let at = (offset & !7) as u32;
        match value {
            Some(value) => {
                (self.pins.csr_awvalid, self.pins.csr_awaddr) = (1, at);
                (self.pins.csr_wvalid, self.pins.csr_wdata, self.pins.csr_wstrb) = (1, value, strobe.into());
            }
            None => (self.pins.csr_arvalid, self.pins.csr_araddr) = (1, at),
        }
        for _ in 0..PATIENCE {
            self.tick(bus);
            self.quiet = 0;
            if self.outs.csr_awready == 1 {
                self.pins.csr_awvalid = 0;
            }
            if self.outs.csr_wready == 1 {
                self.pins.csr_wvalid = 0;
            }
            if self.outs.csr_arready == 1 {
                self.pins.csr_arvalid = 0;
            }
            let (over, response) = match value {
                Some(_) => (self.outs.csr_bvalid, self.outs.csr_bresp),
                None => (self.outs.csr_rvalid, self.outs.csr_rresp),
            };
            if over == 1 {
                assert!(response == 0, "an access of the SMU's register {offset:#x} got the error response {response}");
                return self.outs.csr_rdata;
            }
        }
        panic!("an access of the SMU's register {offset:#x} has no response after {PATIENCE} cycles");
    }
}

/// Accesses for tests of the register bus.
impl RtlSmu {
    /// Makes several accesses at the same time, each to a separate register: a write if it has a value, else a read. Sets valid
    /// and ready signals at random. Returns the values read.
    pub fn access_together(
        &mut self,
        accesses: &[(u64, Option<u64>)],
        dice: &mut Dice,
        bus: &mut dyn SmuBus,
    ) -> Vec<u64> {
        let reads: Vec<u64> = accesses.iter().filter(|(_, value)| value.is_none()).map(|(at, _)| *at).collect();
        let writes: Vec<(u64, u64)> = accesses.iter().filter_map(|(at, value)| Some((*at, (*value)?))).collect();
        let (mut addresses, mut data, mut asked, mut written, mut found) = (0, 0, 0, 0, Vec::new());
        let mut stuck = (None, false);
        self.called(self.clock);
        for _ in 0..PATIENCE {
            let pins = &mut self.pins;
            let mut starts = |valid: u8, left: bool| u8::from(left && (valid == 1 || dice.one_in(2)));
            pins.csr_awvalid = starts(pins.csr_awvalid, addresses < writes.len());
            pins.csr_wvalid = starts(pins.csr_wvalid, data < writes.len());
            pins.csr_arvalid = starts(pins.csr_arvalid, asked < reads.len());
            pins.csr_awaddr = writes.get(addresses).map_or(0, |w| w.0 as u32);
            (pins.csr_wdata, pins.csr_wstrb) = (writes.get(data).map_or(0, |w| w.1), 0xff);
            pins.csr_araddr = reads.get(asked).map_or(0, |at| *at as u32);
            (pins.csr_bready, pins.csr_rready) = (dice.one_in(3).into(), dice.one_in(3).into());
            self.tick(bus);
            self.quiet = 0;
            let (pins, outs) = (&mut self.pins, &self.outs);
            for (valid, ready, done) in [
                (&mut pins.csr_awvalid, outs.csr_awready, &mut addresses),
                (&mut pins.csr_wvalid, outs.csr_wready, &mut data),
                (&mut pins.csr_arvalid, outs.csr_arready, &mut asked),
            ] {
                if *valid == 1 && ready == 1 {
                    (*valid, *done) = (0, *done + 1);
                }
            }
            let read = (outs.csr_rvalid == 1).then_some(outs.csr_rdata);
            assert!(stuck.0.is_none() || stuck.0 == read, "the response of a read changed before it was accepted");
            assert!(!stuck.1 || outs.csr_bvalid == 1, "the response of a write was withdrawn before it was accepted");
            stuck = (read.filter(|_| pins.csr_rready == 0), outs.csr_bvalid == 1 && pins.csr_bready == 0);
            found.extend(read.filter(|_| pins.csr_rready == 1));
            written += usize::from(outs.csr_bvalid == 1 && pins.csr_bready == 1);
            assert!(found.len() <= asked && written <= addresses.min(data), "a response without an access");
            if found.len() == reads.len() && written == writes.len() {
                (self.pins.csr_bready, self.pins.csr_rready) = (1, 1);
                return found;
            }
        }
        panic!("accesses of the SMU's registers are not done after {PATIENCE} cycles");
    }
}

impl SmuUnit for RtlSmu {
    fn config(&self) -> &SmuConfig {
        &self.config
    }

    /// Changes only the latency of memory, because the RTL has its own times.
    fn set_timing(&mut self, timing: SmuTiming) {
        self.axi.set_latency(timing.ring_read.0);
    }

    fn next_event(&self) -> Option<Cycle> {
        if self.is_awake() || !self.events.is_empty() {
            return Some(self.clock);
        }
        self.alarms.first().copied()
    }

    fn advance(&mut self, now: Cycle, bus: &mut dyn SmuBus, sink: &mut dyn SmuSink) {
        self.deliver(now, sink);
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            if !self.is_awake() {
                self.sleep_until(at.max(self.clock));
            }
            self.tick(bus);
            self.deliver(now, sink);
            self.clock += Cycle(1);
        }
    }

    fn request(&mut self, now: Cycle, request: Request) -> Accept {
        self.called(now);
        let hart = request.hart as usize;
        self.next_pin_id = self.next_pin_id.wrapping_add(1);
        let Request { pte, pmd, pud, seen, .. } = request;
        let pin_id = self.next_pin_id;
        self.pins.req[hart] =
            RequestPins { pte_addr: pte.0, pmd_addr: pmd.0, pud_addr: pud.0, pte: seen, id: pin_id.into() };
        self.pins.req_valid |= 1 << hart;
        let asked = now.max(self.clock);
        self.walkers[hart] = Some(Wait { request, pin_id, asked, accepted: false, joined: false });
        Accept::Full
    }

    fn is_held(&self, from: Source) -> bool {
        let wait = match from {
            Source::Walker(hart) => self.walkers[hart as usize],
            Source::Port(port) => self.ports[port as usize],
        };
        wait.is_some_and(|w| !w.accepted)
    }

    fn abandon(&mut self, hart: u32, id: u64) {
        self.events.retain(
            |e| !matches!(e, Event::Answer { from_port: false, answer } if (answer.hart, answer.id) == (hart, id)),
        );
        let Some(wait) = self.walkers[hart as usize].take_if(|w| w.request.id == id) else { return };
        self.quiet = 0;
        let bit = 1 << hart;
        if wait.accepted {
            self.pins.abandon |= bit;
        } else {
            self.pins.req_valid &= !bit;
        }
    }

    fn mmio_read(&mut self, offset: u64, size: usize, now: Cycle, bus: &mut dyn SmuBus) -> u64 {
        self.called(now);
        if !is_access(offset, size) {
            return 0;
        }
        let value = self.access(offset, 0, None, bus) >> (8 * (offset & 7));
        if size == 4 { value & 0xffff_ffff } else { value }
    }

    fn mmio_write(&mut self, offset: u64, size: usize, value: u64, now: Cycle, bus: &mut dyn SmuBus) {
        self.called(now);
        if is_access(offset, size) {
            let shift = offset & 7;
            let strobe = if size == 8 { 0xff } else { 0xf << shift };
            self.access(offset, strobe, Some(value << (8 * shift)), bus);
        }
    }

    fn peek(&self, offset: u64) -> u64 {
        if offset < 0x1000 { self.unit.peek(offset as u32) } else { 0 }
    }

    fn interrupt(&self) -> bool {
        self.outs.irq == 1
    }

    fn completion_queue_written(&mut self, now: Cycle) {
        if self.config.completion_hints && !self.is_awake() {
            self.alarms.insert(now.max(self.clock));
        }
        if now <= self.clock {
            self.quiet = 0;
        }
    }

    fn save(&self) -> Option<Smu> {
        None
    }
}

/// Tells whether the register block supports this access (spec/smu.md).
fn is_access(offset: u64, size: usize) -> bool {
    offset < 0x1000 && (size == 8 && offset.is_multiple_of(8) || size == 4 && offset.is_multiple_of(4))
}

fn bits(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros());
        set &= set.wrapping_sub(1);
        bit
    })
}

fn outcome(outcome: u64, reason: u64, pte: u64) -> Outcome {
    match outcome {
        regs::OUTCOME_DONE => Outcome::Done(pte),
        regs::OUTCOME_CHANGED => Outcome::Changed(pte),
        _ => Outcome::Failed(match reason {
            regs::REASON_NO_FRAME => FailReason::NoFrame,
            regs::REASON_DEVICE => FailReason::Device,
            regs::REASON_BUS => FailReason::Bus,
            regs::REASON_DISABLED => FailReason::Disabled,
            regs::REASON_DESCRIPTOR => FailReason::Descriptor,
            regs::REASON_TIMEOUT => FailReason::Timeout,
            other => panic!("the SMU answered with the unknown reason {other}"),
        }),
    }
}
