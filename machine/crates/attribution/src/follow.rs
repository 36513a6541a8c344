// SPDX-License-Identifier: Apache-2.0
//! Turns jumps into stacks, costs and the steps of faults.

use trapless_memory::Cycle;
use trapless_riscv::{Jump, JumpKind, Privilege};

use crate::faults::{self, Fault};
use crate::stack::{Reader, Stack};
use crate::symbols::{Function, Symbols};
use crate::tree::Cost;
use crate::{Attribution, Command, Context, MISS_KINDS, State, View};

/// Bit that is set in the cause of an interrupt.
const INTERRUPT: u64 = 1 << 63;
/// Exception codes: page faults on fetch, load and store; then system calls.
const PAGE_FAULTS: [u64; 3] = [12, 13, 15];
const SYSTEM_CALL: u64 = 8;
/// Interrupt codes of supervisor and machine mode (privileged specification).
const SOFTWARE: [u64; 2] = [1, 3];
const TIMER: [u64; 2] = [5, 7];

/// In the place of a drive's number: the SMU's request ports.
const PORTS: usize = usize::MAX;
/// Maximum number of tasks that are followed separately, and of unanswered doorbells, so that a guest cannot fill the host's
/// memory.
const MOST_CONTEXTS: usize = 1 << 16;
const MOST_RUNG: usize = 1 << 16;

impl Attribution {
    /// Notes that a hart is about to run.
    pub fn enter(&mut self, hart: usize, view: &View) {
        if self.harts[hart].state != State::Running || self.harts[hart].pc != view.pc {
            self.flush(hart, view.total());
        }
        self.harts[hart].state = State::Running;
        if self.harts[hart].pc != view.pc {
            self.place(hart, view);
        }
    }

    /// Notes that a hart has run.
    pub fn leave(&mut self, hart: usize, view: &View) {
        if view.state != State::Running {
            self.flush(hart, view.total());
        }
        let h = &mut self.harts[hart];
        (h.state, h.pc) = (view.state, view.pc);
    }

    /// Notes a jump of a hart; `misses` are the hart's misses in caches and TLBs so far, without branches.
    pub fn jumped(&mut self, hart: usize, jump: &Jump, mut misses: [u64; MISS_KINDS.len()]) {
        let inside = self.harts[hart].range.contains(&jump.to);
        match jump.kind {
            JumpKind::Branch | JumpKind::Jump if inside => return,
            JumpKind::Call(_) | JumpKind::Return if inside && self.is_nameless(hart) => return,
            _ => {}
        }
        misses[MISS_KINDS.len() - 1] = jump.mispredicted;
        self.flush(hart, Cost { cycles: jump.now.0, instructions: jump.retired, misses });
        let switched = self.switch(hart, jump.privilege, jump.tp, jump.now.0);
        if matches!(jump.kind, JumpKind::TrapReturn) && jump.privilege == Privilege::User {
            self.rename(hart);
        }
        let space = self.contexts[self.harts[hart].context].space;
        let (function, range) = self.finder.find(space, jump.to, &self.symbols);
        let entered = range.start == jump.to;
        let trap = match jump.kind {
            JumpKind::Trap { cause, tval, from } => Some((self.trapped(hart, cause, tval, from, jump.now.0), cause)),
            _ => None,
        };
        let Attribution { categories, tree, contexts, harts, .. } = self;
        let stack = &mut contexts[harts[hart].context].stack;
        let mut reader = Reader { categories, tree };
        match (jump.kind, trap) {
            (_, Some((pseudo, _))) => stack.trap(pseudo, function, &mut reader),
            (JumpKind::Call(back), _) => stack.call(function, back, &mut reader),
            (JumpKind::Return, _) => {
                if !stack.ret(jump.to, function, &mut reader) && switched {
                    stack.restart(function, &mut reader);
                }
            }
            (JumpKind::TrapReturn, _) => stack.trap_return(function, &mut reader),
            _ => stack.become_function(function, &mut reader),
        }
        self.harts[hart].range = range;
        match jump.kind {
            JumpKind::TrapReturn if jump.privilege == Privilege::User => self.returned(hart, jump.now.0),
            _ if entered => self.entered(hart, function, jump),
            _ => {}
        }
    }

    /// Whether the hart runs code without symbols.
    fn is_nameless(&self, hart: usize) -> bool {
        let top = self.contexts[self.harts[hart].context].stack.top();
        matches!(self.tree.node(top).function, Symbols::USER | Symbols::UNNAMED)
    }

    /// Adds the cost since the last call to what has run, or to what kept the hart from running.
    pub(crate) fn flush(&mut self, hart: usize, total: Cost) {
        let h = &mut self.harts[hart];
        let context = &mut self.contexts[h.context];
        let top = context.stack.top();
        let node = match h.state {
            State::Running => top,
            State::Asleep => self.tree.child(top, self.pseudo.asleep, &self.categories),
            State::Waiting => self.tree.child(top, self.pseudo.waiting, &self.categories),
        };
        let (spent, since) = (total - h.last, h.last.cycles);
        h.last = total;
        if spent == Cost::default() {
            return;
        }
        self.tree.spend(node, spent);
        let category = self.tree.node(node).category;
        h.spent[usize::from(category)] += spent;
        if let Some(fault) = &mut context.fault {
            fault.cost += spent;
            self.in_faults[usize::from(category)] += spent;
        }
        if (category, h.context) != (h.slice.0, h.slice.1) {
            let context = h.context;
            self.end_slice(hart, since);
            self.harts[hart].slice = (category, context, since);
        }
    }

    /// Ends the open slice of the timeline.
    pub(crate) fn end_slice(&mut self, hart: usize, at: u64) {
        let (category, context, since) = self.harts[hart].slice;
        if at > since {
            self.log.slice(hart, category, context, since, at);
        }
        self.harts[hart].slice.2 = at;
    }

    /// Finds out from its registers alone what a hart runs.
    pub(crate) fn place(&mut self, hart: usize, view: &View) {
        self.harts[hart].context = self.context(if view.task >> 63 == 1 { view.task } else { hart as u64 });
        let space = self.contexts[self.harts[hart].context].space;
        let (function, range) = self.finder.find(space, view.pc, &self.symbols);
        let Attribution { categories, tree, contexts, harts, .. } = self;
        let h = &mut harts[hart];
        contexts[h.context].stack.restart(function, &mut Reader { categories, tree });
        (h.range, h.pc) = (range, view.pc);
    }

    fn context(&mut self, key: u64) -> usize {
        if let Some(&known) = self.by_key.get(&key) {
            return known;
        }
        let number = self.contexts.len();
        if number >= MOST_CONTEXTS {
            // All further tasks share the last one.
            return number - 1;
        }
        let stack = Stack::new(self.tree.root());
        self.contexts.push(Context { key, name: None, space: 0, renamed: false, stack, fault: None });
        self.by_key.insert(key, number);
        if key >> 63 == 1 {
            self.unnamed.push(number);
        }
        number
    }

    /// Makes a new task of a task whose name has changed, most likely by exec.
    fn rename(&mut self, hart: usize) {
        let context = self.harts[hart].context;
        if std::mem::take(&mut self.contexts[context].renamed) {
            let key = self.contexts[context].key;
            self.by_key.remove(&key);
            let fault = self.contexts[context].fault.take();
            self.harts[hart].context = self.context(key);
            let context = self.harts[hart].context;
            self.contexts[context].fault = fault.map(|f| Box::new(Fault { context, ..*f }));
        }
    }

    /// Switches to another task, if the jump was made by one; returns true if so. In supervisor mode Linux keeps the task in tp,
    /// except during the first instructions of its trap entry.
    fn switch(&mut self, hart: usize, privilege: Privilege, tp: u64, now: u64) -> bool {
        let from = self.harts[hart].context;
        if privilege != Privilege::Supervisor || tp >> 63 == 0 || self.contexts[from].key == tp {
            return false;
        }
        let to = self.context(tp);
        if let Some(fault) = &mut self.contexts[from].fault {
            fault.slept.get_or_insert(now);
        }
        if let Some(fault) = &mut self.contexts[to].fault {
            fault.at[faults::RUN] = Some(now);
        }
        self.harts[hart].context = to;
        true
    }

    /// Notes a trap; returns the pseudo function that it is counted as.
    fn trapped(&mut self, hart: usize, cause: u64, tval: u64, from: Privilege, now: u64) -> Function {
        let code = cause & !INTERRUPT;
        if cause & INTERRUPT != 0 {
            if SOFTWARE.contains(&code) {
                return self.pseudo.software;
            }
            if TIMER.contains(&code) {
                return self.pseudo.timer;
            }
            (self.harts[hart].interrupt, self.harts[hart].completion) = (Some(now), None);
            return self.pseudo.external;
        }
        if PAGE_FAULTS.contains(&code) {
            if from == Privilege::User {
                let context = self.harts[hart].context;
                self.forget_doorbells(context);
                self.contexts[context].fault = Some(Box::new(Fault::new(hart, context, tval, code, now)));
            }
            return self.pseudo.page_fault;
        }
        if code == SYSTEM_CALL { self.pseudo.system_call } else { self.pseudo.exception }
    }

    /// Notes that a function was entered at its first instruction.
    fn entered(&mut self, hart: usize, function: Function, jump: &Jump) {
        if function == self.pseudo.set_name
            && let Some(&context) = self.by_key.get(&jump.a0)
        {
            self.contexts[context].renamed = true;
        }
        let Some(step) = self.categories.step(function) else { return };
        let now = jump.now.0;
        match step {
            faults::COMPLETION => self.harts[hart].completion = Some(now),
            faults::WAKE => {
                let Some(&sleeper) = self.by_key.get(&jump.a0) else { return };
                let (interrupt, completion) = (self.harts[hart].interrupt, self.harts[hart].completion);
                // Others may wake the task for other reasons.
                if let Some(fault) = self.contexts[sleeper].fault.as_mut().filter(|f| f.read())
                    && fault.at[faults::WAKE].is_none()
                {
                    fault.at[faults::INTERRUPT] = interrupt;
                    fault.at[faults::COMPLETION] = completion;
                    fault.reach(faults::WAKE, now);
                }
            }
            _ => {
                if let Some(fault) = &mut self.contexts[self.harts[hart].context].fault {
                    fault.reach(step, now);
                }
            }
        }
    }

    /// Notes that user code continues: the fault is over.
    fn returned(&mut self, hart: usize, now: u64) {
        let context = self.harts[hart].context;
        let Some(mut fault) = self.contexts[context].fault.take() else { return };
        self.forget_doorbells(context);
        fault.reach(faults::RETURN, now);
        if fault.read() { &mut self.sums } else { &mut self.minor }.add(&fault);
        self.log.fault(*fault);
    }

    fn forget_doorbells(&mut self, context: usize) {
        self.rung.retain(|r| r.3 != context);
    }

    /// Notes that a hart has rung a doorbell of a drive, or (`None`) has asked the SMU through a request port.
    pub fn rang(&mut self, hart: usize, drive: Option<usize>, queue: u16, now: Cycle) {
        let drive = drive.unwrap_or(PORTS);
        let context = self.harts[hart].context;
        if let Some(fault) = &mut self.contexts[context].fault {
            fault.reach(faults::DOORBELL, now.0);
            if self.rung.len() < MOST_RUNG {
                self.rung.push((drive, queue, now.0, context));
            }
        }
    }

    /// Notes that a drive has finished a command.
    pub fn completed(&mut self, command: Command) {
        if let Some(context) = self.device_end(command.drive, command.queue, command.doorbell, command.completed)
            && let Some(fault) = &mut self.contexts[context].fault
        {
            fault.lba.get_or_insert(command.lba);
        }
        self.log.command(command);
    }

    /// Notes that the SMU has answered a request port.
    pub fn answered(&mut self, port: u16, at: Cycle) {
        self.device_end(PORTS, port, at.0, at.0);
    }

    /// Finds out whose doorbell it was: the last one of the queue that was rung by the time `rung`, because a drive may notice a
    /// doorbell a little later than a hart rings it. If a fault has several commands, the last one to end counts.
    fn device_end(&mut self, drive: usize, queue: u16, rung: u64, end: u64) -> Option<usize> {
        let same = |r: &&(usize, u16, u64, usize)| (r.0, r.1) == (drive, queue) && r.2 <= rung;
        let (.., context) = *self.rung.iter().filter(same).max_by_key(|r| r.2)?;
        if let Some(fault) = &mut self.contexts[context].fault {
            fault.at[faults::DEVICE_END] = Some(end);
        }
        Some(context)
    }
}
