// SPDX-License-Identifier: Apache-2.0
//! Attributes every cycle to a guest function and a task, and records the steps of every fault (docs/explanation/attribution.md).
//!
//! Nothing is sampled: the hart reports every jump with its clock and its count of instructions, and the cycles between two
//! jumps belong to the function that ran. The guest does not notice it.

mod categories;
mod faults;
mod follow;
mod frames;
mod log;
mod perfetto;
mod report;
mod stack;
mod symbols;
mod tree;

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use trapless_memory::{ClockHz, Cycle};
use trapless_riscv::Privilege;

use crate::categories::{Categories, Category};
use crate::faults::{Fault, Sums};
pub use crate::faults::{SPANS, STEPS};
pub use crate::frames::Frames;
use crate::frames::Samples;
use crate::log::Log;
pub use crate::log::{Command, Miss};
pub use crate::report::{FaultMeans, FunctionLine, HartLine, Report, Spent};
use crate::stack::{Finder, Stack};
pub use crate::symbols::SymbolFile;
use crate::symbols::{Function, Symbols};
use crate::tree::{Cost, Tree};

/// Kinds of misses that detailed timing counts. Every array of misses in this crate has this order.
pub const MISS_KINDS: [&str; 8] = ["l1i", "l1d", "l2", "last", "itlb", "dtlb", "walks", "branches"];

/// Error: a file is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct Error {
    file: String,
    reason: String,
}

impl Error {
    fn file(path: &Path, reason: impl ToString) -> Error {
        Error { file: path.display().to_string(), reason: reason.to_string() }
    }
}

/// What a hart does between two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It executes.
    #[default]
    Running,
    /// It sleeps in `wfi`, or has not been started.
    Asleep,
    /// It waits for the SMU.
    Waiting,
}

/// A hart between two runs.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Next instruction.
    pub pc: u64,
    /// Mode.
    pub privilege: Privilege,
    /// Value that identifies the task in Linux: tp in supervisor mode, sscratch in user mode.
    pub task: u64,
    /// Local time.
    pub now: Cycle,
    /// Instructions retired.
    pub retired: u64,
    /// Misses so far, in the order of [`MISS_KINDS`].
    pub misses: [u64; MISS_KINDS.len()],
    /// What the hart does.
    pub state: State,
}

impl View {
    fn total(&self) -> Cost {
        Cost { cycles: self.now.0, instructions: self.retired, misses: self.misses }
    }
}

/// A task, or a hart without a task.
#[derive(Debug)]
struct Context {
    /// Value of tp that identifies the task; the hart's number if there is no task.
    key: u64,
    name: Option<String>,
    /// Number of the address space whose functions the task runs.
    space: usize,
    /// Whether the kernel has given the task a name since user code ran.
    renamed: bool,
    stack: Stack,
    fault: Option<Box<Fault>>,
}

/// What is known of a hart.
#[derive(Debug, Default)]
struct Followed {
    context: usize,
    /// Addresses of the running function.
    range: Range<u64>,
    /// Total cost of the hart that is already attributed.
    last: Cost,
    state: State,
    pc: u64,
    /// Time of the hart's last interrupt. `completion`: time at which the driver's handler began in that interrupt.
    interrupt: Option<u64>,
    completion: Option<u64>,
    /// Category, task and begin of the open slice of the timeline.
    slice: (Category, usize, u64),
    began: Cost,
    spent: Vec<Cost>,
}

/// A stretch of the run that was attributed.
#[derive(Clone, Debug)]
struct Window {
    region: Option<u64>,
    from: u64,
    to: u64,
}

/// Pseudo functions: they get the cycles of what is not a function, such as a trap or an idle hart.
#[derive(Debug)]
struct Pseudo {
    page_fault: Function,
    system_call: Function,
    exception: Function,
    external: Function,
    timer: Function,
    software: Function,
    asleep: Function,
    waiting: Function,
    /// The function with which Linux gives a task its name.
    set_name: Function,
}

impl Pseudo {
    fn new(symbols: &mut Symbols) -> Pseudo {
        let mut named = |name: &str| symbols.intern(name);
        Pseudo {
            page_fault: named("[page fault]"),
            system_call: named("[system call]"),
            exception: named("[exception]"),
            external: named("[external interrupt]"),
            timer: named("[timer interrupt]"),
            software: named("[software interrupt]"),
            asleep: named("[asleep]"),
            waiting: named("[walk in hardware]"),
            set_name: named("__set_task_comm"),
        }
    }
}

/// The attribution of a run, over all windows.
///
/// ```
/// use trapless_attribution::{Attribution, MISS_KINDS, State, View};
/// use trapless_memory::{ClockHz, Cycle};
/// use trapless_riscv::Privilege;
///
/// let mut attribution = Attribution::new(&[], None, 1, ClockHz(1_000_000_000), 100)?;
/// let view = |cycles, retired| View {
///     pc: 0x8000_0000,
///     privilege: Privilege::Machine,
///     task: 0,
///     now: Cycle(cycles),
///     retired,
///     misses: [0; MISS_KINDS.len()],
///     state: State::Running,
/// };
/// attribution.open(None, Cycle(0), &[view(0, 0)]);
/// attribution.close(Cycle(1000), &[view(1000, 400)]);
/// let report = attribution.report();
/// let spent = &report.harts[0].total;
/// assert_eq!((spent.cycles, spent.instructions), (1000, 400));
/// # Ok::<(), trapless_attribution::Error>(())
/// ```
#[derive(Debug)]
pub struct Attribution {
    clock: ClockHz,
    symbols: Symbols,
    categories: Categories,
    pseudo: Pseudo,
    tree: Tree,
    finder: Finder,
    contexts: Vec<Context>,
    by_key: HashMap<u64, usize>,
    harts: Vec<Followed>,
    windows: Vec<Window>,
    open: bool,
    sums: Sums,
    /// Sums over faults that needed no device.
    minor: Sums,
    /// What tasks spent in their faults, by category.
    in_faults: Vec<Cost>,
    /// Doorbells of open faults: drive, submission queue, time, task.
    rung: Vec<(usize, u16, u64, usize)>,
    unnamed: Vec<usize>,
    log: Log,
    frames: Samples,
}

impl Attribution {
    /// Creates an empty attribution for this number of `harts`. At most `limit` records of each kind are kept.
    ///
    /// # Errors
    /// A file of symbols or the table of categories is wrong. (`categories` `None`: the table for the kernel of this repository.)
    pub fn new(
        files: &[SymbolFile],
        categories: Option<&Path>,
        harts: usize,
        clock: ClockHz,
        limit: usize,
    ) -> Result<Attribution, Error> {
        let mut symbols = Symbols::load(files)?;
        let pseudo = Pseudo::new(&mut symbols);
        let categories = Categories::load(categories, &symbols)?;
        let count = categories.names().len();
        let hart = || Followed { spent: vec![Cost::default(); count], ..Followed::default() };
        Ok(Attribution {
            clock,
            symbols,
            in_faults: vec![Cost::default(); count],
            categories,
            pseudo,
            tree: Tree::default(),
            finder: Finder::new(),
            contexts: Vec::new(),
            by_key: HashMap::new(),
            harts: (0..harts).map(|_| hart()).collect(),
            windows: Vec::new(),
            open: false,
            sums: Sums::default(),
            minor: Sums::default(),
            rung: Vec::new(),
            unnamed: Vec::new(),
            log: Log::new(limit),
            frames: Samples::new(),
        })
    }

    /// Whether a window is open.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Opens a window. If `region` is given, the window is that of a region of interest. Stacks begin anew.
    pub fn open(&mut self, region: Option<u64>, now: Cycle, harts: &[View]) {
        self.open = true;
        self.frames.hurry();
        self.windows.push(Window { region, from: now.0, to: now.0 });
        for context in &mut self.contexts {
            context.stack.clear();
            context.fault = None;
        }
        self.rung.clear();
        for (hart, view) in harts.iter().enumerate() {
            let view = View { now: if view.state == State::Running { view.now } else { view.now.max(now) }, ..*view };
            let h = &mut self.harts[hart];
            (h.last, h.began, h.state) = (view.total(), view.total(), view.state);
            (h.interrupt, h.completion) = (None, None);
            self.place(hart, &view);
            let h = &mut self.harts[hart];
            h.slice = (Categories::OTHER, h.context, view.now.0);
        }
    }

    /// Closes the window.
    pub fn close(&mut self, now: Cycle, harts: &[View]) {
        for (hart, view) in harts.iter().enumerate() {
            let view = View { now: if view.state == State::Running { view.now } else { view.now.max(now) }, ..*view };
            self.flush(hart, view.total());
            self.end_slice(hart, view.now.0);
        }
        self.open = false;
        if let Some(window) = self.windows.last_mut() {
            window.to = now.0;
        }
    }

    /// Tasks that have not been named yet: number and tp.
    pub fn unnamed(&mut self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.unnamed).into_iter().map(|n| (n, self.contexts[n].key)).collect()
    }

    /// Names a task.
    pub fn name(&mut self, context: usize, name: String) {
        self.contexts[context].space = self.symbols.space_of(&name);
        self.contexts[context].name = Some(name);
        for hart in self.harts.iter_mut().filter(|h| h.context == context) {
            // The function must be looked up again at the hart's next jump.
            hart.range = 0..0;
        }
    }

    /// Address of the kernel's first task, from its symbols.
    pub fn init_task(&self) -> Option<u64> {
        self.symbols.init_task()
    }

    /// Notes that a miss that the SMU served has ended.
    pub fn missed(&mut self, miss: Miss) {
        let context = miss.hart.map(|hart| self.harts[hart].context);
        self.log.miss(miss, context);
    }

    /// Whether a new sample of the frames is due.
    pub fn frames_are_due(&self, now: Cycle) -> bool {
        self.open && self.frames.are_due(now)
    }

    /// Adds a sample of the frames.
    pub fn frames(&mut self, frames: Frames) {
        self.frames.push(frames);
    }

    /// Name of a task.
    fn task_name(&self, context: usize) -> String {
        let context = &self.contexts[context];
        let unnamed =
            || if context.key >> 63 == 1 { format!("task {:x}", context.key) } else { format!("hart {}", context.key) };
        context.name.clone().unwrap_or_else(unnamed)
    }
}
