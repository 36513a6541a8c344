// SPDX-License-Identifier: Apache-2.0
//! Tells the attribution what harts, drives and SMU do. While a window is open, harts report each of their jumps.

use std::cell::Cell;

use trapless_attribution::{Attribution, Command, MISS_KINDS, Miss, State, SymbolFile, View};
use trapless_memory::{ClockHz, Cycle, PhysAddr, Ram};
use trapless_nvme::CommandRecord;
use trapless_riscv::{Access, Fill, Hart, Jump, Loss, Observer, Privilege, Timing, TrapInfo, csr_number};
use trapless_smu::Answer;

use super::frames::frames;
use super::recorder::Recorder;
use super::scene::Scene;
use crate::board::{Asked, doorbell_of};
use crate::config::{AttributionConfig, Boot, DetailFrom};
use crate::cores::{Cores, HartTimes, MissCounts, Misses, Phase};
use crate::error::Error;

/// Number of register tp.
const TP: u8 = 4;
/// Name of the kernel's first task, and how many bytes of the task are searched for it.
const FIRST_NAME: &[u8] = b"swapper";
const TASK_BYTES: u64 = 16 << 10;
/// Length of a task's name with its final zero (TASK_COMM_LEN).
const NAME_BYTES: u64 = 16;

/// Counts of misses in the attribution's order. Those of branches come from the hart.
type Counts = [u64; MISS_KINDS.len()];

/// An attribution, and what it needs of the machine.
pub struct Attributed {
    inner: Box<Attribution>,
    from: DetailFrom,
    /// Offset of the name in a task, once it is known.
    name_at: Option<u64>,
    /// Misses so far of the hart that is running.
    misses: Cell<Counts>,
}

impl Attributed {
    /// Creates the attribution of a machine that starts with `boot`.
    ///
    /// # Errors
    /// A file of symbols, or the table of categories, cannot be read or is wrong.
    pub fn new(config: AttributionConfig, boot: &Boot, harts: usize, clock: ClockHz) -> Result<Attributed, Error> {
        let mut files = config.symbols;
        if let Boot::Elf { file } = boot {
            files.insert(0, SymbolFile { path: file.clone(), base: None, of_all: true });
        }
        let inner = Attribution::new(&files, config.categories.as_deref(), harts, clock, config.limit)?;
        Ok(Attributed { inner: Box::new(inner), from: config.from, name_at: None, misses: Cell::default() })
    }

    /// The results.
    pub fn accounts(&self) -> &Attribution {
        &self.inner
    }

    /// Whether a window is open.
    pub fn is_open(&self) -> bool {
        self.inner.is_open()
    }

    /// When windows open.
    pub fn from(&self) -> DetailFrom {
        self.from
    }

    /// Opens a window. If `region` is given, the window is that of a region of interest.
    pub fn open(&mut self, region: Option<u64>, recorder: &mut Recorder, scene: &Scene<'_>) {
        recorder.keep_ended(true);
        self.inner.open(region, scene.now, &views(scene));
    }

    /// Closes the window, if one is open.
    pub fn close(&mut self, recorder: &mut Recorder, scene: &Scene<'_>) {
        if self.inner.is_open() {
            self.look_at_frames(true, recorder, scene);
            tell(recorder, &mut self.inner);
            self.inner.close(scene.now, &views(scene));
            recorder.keep_ended(false);
        }
    }

    /// Finds out where the frames are, if that is due or the window ends. It takes no simulated time.
    pub fn look_at_frames(&mut self, ends: bool, recorder: &mut Recorder, scene: &Scene<'_>) {
        let Some(installed) = recorder.installed_mut() else { return };
        let due = ends || self.inner.frames_are_due(scene.now);
        if due || installed.is_full() {
            installed.look(scene.board.memory());
        }
        if due {
            self.inner.frames(frames(installed, scene.board.smu(), scene.now));
        }
    }

    /// A hart is about to run, or to continue a walk: returns its observer.
    pub fn follow<'a>(&'a mut self, hart: usize, recorder: &'a mut Recorder, cores: &Cores) -> Jumps<'a> {
        let now = view(hart, cores);
        self.inner.enter(hart, &now);
        self.misses.set(now.misses);
        Jumps { recorder, attribution: &mut self.inner, hart, misses: &self.misses }
    }

    /// Notes what a hart that has run asked of devices.
    pub fn asked(&mut self, hart: usize, asked: Vec<Asked>) {
        for asked in asked {
            match asked {
                Asked::Drive(drive, offset, at) => {
                    if let Some(queue) = doorbell_of(offset) {
                        self.inner.rang(hart, Some(drive), queue, at);
                    }
                }
                Asked::Port(port, at) => self.inner.rang(hart, None, port as u16, at),
            }
        }
    }

    /// Notes that a hart has run. The reason why it stopped is already known.
    pub fn ran(&mut self, hart: usize, recorder: &mut Recorder, cores: &Cores, ram: &Ram) {
        self.inner.leave(hart, &view(hart, cores));
        tell(recorder, &mut self.inner);
        self.name_tasks(&cores.harts()[hart], ram);
    }

    /// Notes that a hart has continued a walk.
    pub fn resumed(&mut self, hart: usize, cores: &Cores) {
        self.inner.leave(hart, &view(hart, cores));
    }

    /// Notes that a drive has finished a command.
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

    /// Notes that the SMU has answered a request port.
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

/// Observes a hart for the recorder and for the attribution.
pub struct Jumps<'a> {
    recorder: &'a mut Recorder,
    attribution: &'a mut Attribution,
    hart: usize,
    misses: &'a Cell<Counts>,
}

impl<'a> Jumps<'a> {
    /// Returns costs of the hart that show its misses to this observer.
    pub fn counted(&self, costs: HartTimes<'a>) -> Counted<'a> {
        Counted { inner: costs, misses: self.misses }
    }
}

impl Observer for Jumps<'_> {
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

/// Passes misses that have ended to the attribution.
fn tell(recorder: &mut Recorder, attribution: &mut Attribution) {
    for (hart, va, times) in recorder.take_ended() {
        attribution.missed(Miss { hart, va, at: times.marks().map(|at| at.0) });
    }
}

/// The costs of a hart. Shows the hart's misses after each access.
pub struct Counted<'a> {
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
fn view(hart: usize, cores: &Cores) -> View {
    let h = &cores.harts()[hart];
    let mut misses = cores.times().misses_of(hart).map_or([0; MISS_KINDS.len()], counts);
    misses[MISS_KINDS.len() - 1] = h.mispredictions();
    View {
        pc: h.pc(),
        privilege: h.privilege(),
        task: if h.privilege() == Privilege::User { h.csr(csr_number::SSCRATCH).unwrap_or(0) } else { h.x(TP) },
        now: h.now(),
        retired: h.retired().iter().sum(),
        misses,
        state: match cores.phase(hart) {
            Some(Phase::Running) => State::Running,
            Some(Phase::Waiting { .. }) => State::Waiting,
            Some(Phase::Asleep | Phase::Stopped) | None => State::Asleep,
        },
    }
}

fn views(scene: &Scene<'_>) -> Vec<View> {
    (0..scene.cores.len()).map(|hart| view(hart, scene.cores)).collect()
}
