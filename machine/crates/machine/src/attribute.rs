// SPDX-License-Identifier: Apache-2.0
//! Telling the attribution what harts, drives and SMU do. While a window is open, harts are followed from jump to jump.

use std::cell::Cell;
use std::path::PathBuf;

use trapless_attribution::{Attribution, Command, MISS_KINDS, Miss, State, SymbolFile, View};
use trapless_memory::{ClockHz, Cycle, PhysAddr, Ram};
use trapless_nvme::CommandRecord;
use trapless_riscv::{
    Access, Env, Exit, Fill, Hart, Jump, Loss, Observer, Privilege, Timing, TrapInfo, WalkAnswer, csr_number,
};
use trapless_smu::Answer;

use crate::board::{Asked, doorbell_of};
use crate::machine::{Machine, Phase, is_due};
use crate::recorder::Recorder;
use crate::times::{HartTimes, MissCounts, Misses, Times};
use crate::{Boot, DetailFrom, Error, Moment};

/// Which cycles to attribute, and how.
#[derive(Clone, Debug)]
pub struct AttributionConfig {
    /// Files with symbols. Those of an ELF that is booted are known.
    pub symbols: Vec<SymbolFile>,
    /// Table of categories; none: the one for this repository's kernel.
    pub categories: Option<PathBuf>,
    /// From when on: the whole run, in regions of interest, from a moment on.
    pub from: DetailFrom,
    /// Most records of each kind.
    pub limit: usize,
}

/// Register tp.
const TP: u8 = 4;
/// What the kernel's first task is called, and how much of it is searched for that.
const FIRST_NAME: &[u8] = b"swapper";
const TASK_BYTES: u64 = 16 << 10;
/// Length of a task's name with its end (TASK_COMM_LEN).
const NAME_BYTES: u64 = 16;

/// The counts in the attribution's order; those of branches are the hart's.
type Counts = [u64; MISS_KINDS.len()];

/// An attribution with what it needs of the machine.
pub(crate) struct Attributed {
    pub inner: Box<Attribution>,
    from: DetailFrom,
    /// Where in a task its name is, once that is known.
    name_at: Option<u64>,
}

impl Attributed {
    pub fn new(config: AttributionConfig, boot: &Boot, harts: usize, clock: ClockHz) -> Result<Attributed, Error> {
        let mut files = config.symbols;
        if let Boot::Elf { file } = boot {
            files.insert(0, SymbolFile { path: file.clone(), base: None, of_all: true });
        }
        let inner = Attribution::new(&files, config.categories.as_deref(), harts, clock, config.limit)?;
        Ok(Attributed { inner: Box::new(inner), from: config.from, name_at: None })
    }

    /// A drive has finished a command.
    pub fn command(&mut self, drive: usize, r: &CommandRecord) {
        if self.inner.is_open() && r.sqid != 0 {
            self.inner.completed(Command {
                drive,
                queue: r.sqid,
                opcode: r.opcode,
                lba: r.slba,
                blocks: r.blocks,
                doorbell: r.doorbell.0,
                fetched: r.fetched.0,
                completed: r.completed.0,
            });
        }
    }

    /// The SMU has answered a request port.
    pub fn port_answered(&mut self, answer: &Answer) {
        if self.inner.is_open() {
            self.inner.answered(answer.hart as u16, answer.at);
        }
    }

    /// Names the tasks that were seen for the first time.
    fn name_tasks(&mut self, hart: &Hart, ram: &Ram) {
        for (task, at) in self.inner.unnamed() {
            let read = |va: u64| hart.translate_debug(ram, va).and_then(|pa| ram.load::<1>(pa)).map(|[byte]| byte);
            if self.name_at.is_none() {
                let first = self.inner.init_task();
                let starts = |at: u64| (0..).zip(FIRST_NAME).all(|(n, byte)| read(at + n) == Some(*byte));
                self.name_at = first.and_then(|task| (0..TASK_BYTES).step_by(8).find(|offset| starts(task + offset)));
            }
            let Some(offset) = self.name_at else { continue };
            let bytes = (0..NAME_BYTES).map_while(|n| read(at + offset + n)).take_while(|byte| *byte != 0);
            let name: String = bytes.map(|b| if b.is_ascii_graphic() { char::from(b) } else { '?' }).collect();
            if !name.is_empty() {
                self.inner.name(task, name);
            }
        }
    }
}

/// Listens for the recorder and for the attribution.
struct Following<'a> {
    recorder: &'a mut Recorder,
    attribution: &'a mut Attribution,
    hart: usize,
    misses: &'a Cell<Counts>,
}

impl Observer for Following<'_> {
    const FOLLOWS: bool = true;

    fn jumped(&mut self, jump: &Jump) {
        self.attribution.jumped(self.hart, jump, self.misses.get());
    }

    fn trap(&mut self, trap: &TrapInfo) {
        self.recorder.trap(trap);
    }

    fn fill(&mut self, fill: &Fill) {
        self.recorder.fill(fill);
        tell(self.recorder, self.attribution);
    }
}

/// Passes on the misses that have ended.
fn tell(recorder: &mut Recorder, attribution: &mut Attribution) {
    for (hart, va, times) in recorder.ended.iter_mut().flat_map(|ended| ended.drain(..)) {
        attribution.missed(Miss { hart, va, at: times.marks().map(|at| at.0) });
    }
}

/// The costs of a hart, with its misses in view after each question.
struct Counted<'a> {
    inner: HartTimes<'a>,
    misses: &'a Cell<Counts>,
}

impl Counted<'_> {
    fn show(&self) {
        if let Some(misses) = self.inner.misses() {
            self.misses.set(counts(misses));
        }
    }
}

fn counts(misses: &Misses) -> Counts {
    let sum = |f: fn(&MissCounts) -> u64| f(&misses.user) + f(&misses.kernel);
    [
        sum(|m| m.l1i),
        sum(|m| m.l1d),
        sum(|m| m.l2),
        sum(|m| m.last),
        sum(|m| m.itlb),
        sum(|m| m.dtlb),
        sum(|m| m.walks),
        0,
    ]
}

impl Timing for Counted<'_> {
    fn pte_read(&mut self, at: PhysAddr, level: u32, now: Cycle) -> u64 {
        let cycles = self.inner.pte_read(at, level, now);
        self.show();
        cycles
    }
    fn fence(&mut self, page: Option<u64>) {
        self.inner.fence(page);
    }
    fn switched(&mut self) {
        self.inner.switched();
    }
    fn find(&mut self, access: Access, va: u64, by: Privilege) -> (u64, bool) {
        let found = self.inner.find(access, va, by);
        self.show();
        found
    }
    fn walked(&mut self, access: Access, va: u64, size: u32) {
        self.inner.walked(access, va, size);
    }
    fn data(&mut self, access: Access, waits: bool, at: PhysAddr, now: Cycle, by: Privilege) -> (u64, bool) {
        let granted = self.inner.data(access, waits, at, now, by);
        self.show();
        granted
    }
    fn code(&mut self, at: PhysAddr, now: Cycle, by: Privilege) -> u64 {
        let cycles = self.inner.code(at, now, by);
        self.show();
        cycles
    }
    fn lost(&mut self) -> Option<Loss> {
        self.inner.lost()
    }
}

/// A hart as the attribution sees it between two runs.
fn view(hart: usize, h: &Hart, phase: Phase, times: &Times) -> View {
    let mut misses = times.misses_of(hart).map_or([0; MISS_KINDS.len()], counts);
    misses[MISS_KINDS.len() - 1] = h.mispredictions();
    View {
        pc: h.pc(),
        privilege: h.privilege(),
        task: if h.privilege() == Privilege::User { h.csr(csr_number::SSCRATCH).unwrap_or(0) } else { h.x(TP) },
        now: h.now(),
        retired: h.retired().iter().sum(),
        misses,
        state: match phase {
            Phase::Running => State::Running,
            Phase::Asleep | Phase::Stopped => State::Asleep,
            Phase::Waiting { .. } => State::Waiting,
        },
    }
}

impl Machine {
    /// What was attributed, if anything was asked for.
    pub fn attribution(&self) -> Option<&Attribution> {
        self.attribution.as_ref().map(|a| &*a.inner)
    }

    /// Follows one hart up to `end`, if a window is open.
    pub(crate) fn follow_hart(&mut self, hart: usize, end: Cycle) -> Option<Exit> {
        let Machine { board, code, recorder, attribution, times, harts, phases, .. } = self;
        let Attributed { inner, .. } = attribution.as_mut().filter(|a| a.inner.is_open())?;
        recorder.select(hart);
        let now = view(hart, &harts[hart], phases[hart], times);
        inner.enter(hart, &now);
        let misses = Cell::new(now.misses);
        let mut observer = Following { recorder, attribution: inner, hart, misses: &misses };
        let mut timing = Counted { inner: times.of(hart), misses: &misses };
        let mut env = Env { bus: board, code, observer: &mut observer, timing: &mut timing };
        let exit = harts[hart].run(&mut env, end);
        for asked in board.requests.iter_mut().flat_map(|asked| asked.drain(..)) {
            match asked {
                Asked::Drive(drive, offset, at) => {
                    if let Some(queue) = doorbell_of(offset) {
                        inner.rang(hart, Some(drive), queue, at);
                    }
                }
                Asked::Port(port, at) => inner.rang(hart, None, port as u16, at),
            }
        }
        Some(exit)
    }

    /// After a hart has run and what made it stop is known.
    pub(crate) fn note_hart(&mut self, hart: usize) {
        let Machine { attribution, recorder, times, harts, phases, board, .. } = self;
        if let Some(a) = attribution.as_mut().filter(|a| a.inner.is_open()) {
            a.inner.leave(hart, &view(hart, &harts[hart], phases[hart], times));
            tell(recorder, &mut a.inner);
            a.name_tasks(&harts[hart], &board.ram);
        }
    }

    /// Continues a hart's walk with an answer.
    pub(crate) fn resume_walk(&mut self, hart: usize, answer: WalkAnswer) {
        let Machine { recorder, attribution, times, harts, phases, .. } = self;
        let Some(Attributed { inner, .. }) = attribution.as_mut().filter(|a| a.inner.is_open()) else {
            return harts[hart].resume_walk(answer, recorder);
        };
        let now = view(hart, &harts[hart], phases[hart], times);
        inner.enter(hart, &now);
        let misses = Cell::new(now.misses);
        harts[hart].resume_walk(answer, &mut Following { recorder, attribution: inner, hart, misses: &misses });
        inner.leave(hart, &view(hart, &harts[hart], Phase::Running, times));
    }

    /// Opens a window if it is time by this judgement.
    pub(crate) fn attribute_if(&mut self, due: impl Fn(DetailFrom) -> bool) {
        if self.attribution.as_ref().is_some_and(|a| !a.inner.is_open() && due(a.from)) {
            self.attribute(None);
        }
    }

    /// Opens a window when so many instructions were executed.
    pub(crate) fn attribute_when_due(&mut self) {
        if let Some(a) = &self.attribution
            && let DetailFrom::Moment(moment @ Moment::Instructions(_)) = a.from
            && is_due(moment, false, &self.harts)
        {
            self.attribute_if(|_| true);
        }
    }

    /// A region of interest begins.
    pub(crate) fn attribute_region(&mut self, number: u64) {
        self.end_region();
        if self.attribution.as_ref().is_some_and(|a| a.from.in_region(number)) {
            self.attribute(Some(number));
        }
    }

    /// A region of interest ends.
    pub(crate) fn end_region(&mut self) {
        if self.attribution.as_ref().is_some_and(|a| a.from.by_regions()) {
            self.stop_attributing();
        }
    }

    fn views(&self) -> Vec<View> {
        let harts = self.harts.iter().zip(&self.phases).enumerate();
        harts.map(|(n, (hart, phase))| view(n, hart, *phase, &self.times)).collect()
    }

    fn attribute(&mut self, region: Option<u64>) {
        let views = self.views();
        self.recorder.ended = Some(Vec::new());
        self.board.requests = Some(Vec::new());
        if let Some(a) = &mut self.attribution {
            a.inner.open(region, self.now, &views);
        }
    }

    /// Closes the window, if one is open.
    pub(crate) fn stop_attributing(&mut self) {
        if self.attribution.as_ref().is_some_and(|a| a.inner.is_open()) {
            self.look_at_frames(true);
        }
        let views = self.views();
        if let Some(a) = self.attribution.as_mut().filter(|a| a.inner.is_open()) {
            tell(&mut self.recorder, &mut a.inner);
            a.inner.close(self.now, &views);
            (self.recorder.ended, self.board.requests) = (None, None);
        }
    }
}
