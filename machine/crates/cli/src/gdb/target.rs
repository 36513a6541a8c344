// SPDX-License-Identifier: Apache-2.0
//! Passes gdbstub's requests to the machine's thread.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use gdbstub::arch::Arch;
use gdbstub::common::{Signal, Tid};
use gdbstub::conn::ConnectionExt;
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event as LoopEvent, WaitForStopReasonError};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread as mt;
use gdbstub::target::ext::base::single_register_access::{SingleRegisterAccess, SingleRegisterAccessOps};
use gdbstub::target::ext::breakpoints as bp;
use gdbstub::target::{self, TargetError, TargetResult};
use trapless_machine::{Access, Orders, Register, View, Watchpoint, Why};

use super::messages::{Connection, Event, Look, Request};
use super::registers::{Core, Id, Rv64};

/// How long to wait for a message from the machine before checking, without a wait, whether GDB has sent anything.
const TURN: Duration = Duration::from_millis(5);

/// Error: the machine's thread has ended and does not answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the machine has ended")]
pub struct Gone;

type Fatal<T> = Result<T, Gone>;

/// The machine, as GDB's thread sees it. Harts are threads, numbered from 1.
pub struct Target {
    wants_stop: Arc<AtomicBool>,
    events: Receiver<Event>,
    requests: Sender<Request>,
    orders: Orders,
    running: bool,
    /// Whether the guest has ended.
    pub ended: bool,
}

fn hart(tid: Tid) -> usize {
    tid.get() - 1
}

fn thread(hart: usize) -> Tid {
    NonZeroUsize::MIN.saturating_add(hart)
}

impl Target {
    pub fn new(wants_stop: Arc<AtomicBool>, events: Receiver<Event>, requests: Sender<Request>) -> Target {
        Target { wants_stop, events, requests, orders: Orders::default(), running: true, ended: false }
    }

    /// Stops the machine if it is running; returns false if it has ended.
    pub fn halt(&mut self) -> bool {
        if self.running && !self.ended {
            self.wants_stop.store(true, Ordering::Relaxed);
            let event = self.events.recv();
            self.note(&event);
        }
        !self.ended
    }

    /// Lets the machine continue.
    pub fn go(&mut self, orders: Orders) {
        self.running = true;
        // This fails if the machine has ended; then it needs no orders.
        let _ = self.requests.send(Request::Go(orders));
        self.orders = Orders::default();
    }

    fn note<E>(&mut self, event: &Result<Event, E>) {
        self.running = false;
        self.ended |= !matches!(event, Ok(Event::Stopped(_)));
        // The machine has stopped, so a request to stop it is fulfilled.
        self.wants_stop.store(false, Ordering::Relaxed);
    }

    /// Runs `look` on the stopped machine, in the machine's thread. It may read or change the machine.
    fn look<R: Send + 'static>(&self, look: impl FnOnce(&mut View<'_>) -> R + Send + 'static) -> Fatal<R> {
        let (answer, answers) = mpsc::channel();
        let look: Look = Box::new(move |view| {
            // This cannot fail: the caller waits below.
            let _ = answer.send(look(view));
        });
        self.requests.send(Request::Look(look)).map_err(|_| Gone)?;
        answers.recv().map_err(|_| Gone)
    }

    fn event(&mut self) -> Option<MultiThreadStopReason<u64>> {
        let event = self.events.recv_timeout(TURN);
        if matches!(event, Err(RecvTimeoutError::Timeout)) {
            return None;
        }
        self.note(&event);
        let stop = match event {
            Ok(Event::Stopped(stop)) => stop,
            Ok(Event::Ended(status)) => return Some(MultiThreadStopReason::Exited(status)),
            Err(_) => return Some(MultiThreadStopReason::Terminated(Signal::SIGKILL)),
        };
        let tid = thread(stop.hart);
        Some(match stop.why {
            Why::Asked => MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGINT },
            Why::Stepped => MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGTRAP },
            Why::Breakpoint => MultiThreadStopReason::SwBreak(tid),
            Why::Watchpoint { access, at } => {
                let kind = if access == Access::Store { bp::WatchKind::Write } else { bp::WatchKind::Read };
                let both = |w: &Watchpoint| w.load && w.store && at.wrapping_sub(w.at) < w.len;
                let kind = if self.orders.watchpoints.iter().any(both) { bp::WatchKind::ReadWrite } else { kind };
                MultiThreadStopReason::Watch { tid, kind, addr: at }
            }
        })
    }
}

impl target::Target for Target {
    type Arch = Rv64;
    type Error = Gone;

    fn base_ops(&mut self) -> BaseOps<'_, Rv64, Gone> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<bp::BreakpointsOps<'_, Self>> {
        Some(self)
    }
}

impl mt::MultiThreadBase for Target {
    fn read_registers(&mut self, regs: &mut Core, tid: Tid) -> TargetResult<(), Self> {
        let read = self.look(move |view| {
            let get = |r| view.register(hart(tid), r);
            let mut core = Core { pc: get(Register::Pc)?, ..Core::default() };
            for (n, x) in core.x.iter_mut().enumerate() {
                *x = get(Register::X(n as u8))?;
            }
            Some(core)
        });
        *regs = read.map_err(TargetError::Fatal)?.ok_or(TargetError::NonFatal)?;
        Ok(())
    }

    fn write_registers(&mut self, regs: &Core, tid: Tid) -> TargetResult<(), Self> {
        let core = regs.clone();
        let write = move |view: &mut View<'_>| {
            let x = core.x.iter().enumerate().map(|(n, v)| (Register::X(n as u8), *v));
            x.chain([(Register::Pc, core.pc)]).all(|(r, v)| view.set_register(hart(tid), r, v))
        };
        done(self.look(write))
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, Tid, Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        let len = data.len();
        let read = self.look(move |view| {
            let mut bytes = vec![0; len];
            let got = view.read(hart(tid), start, &mut bytes);
            bytes.truncate(got);
            bytes
        });
        let bytes = read.map_err(TargetError::Fatal)?;
        if bytes.is_empty() && len > 0 {
            return Err(TargetError::NonFatal);
        }
        data[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn write_addrs(&mut self, start: u64, data: &[u8], tid: Tid) -> TargetResult<(), Self> {
        let data = data.to_vec();
        done(self.look(move |view| view.write(hart(tid), start, &data)))
    }

    fn list_active_threads(&mut self, active: &mut dyn FnMut(Tid)) -> Fatal<()> {
        let harts = self.look(|view| view.harts())?;
        (0..harts).map(thread).for_each(active);
        Ok(())
    }

    fn support_resume(&mut self) -> Option<mt::MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }
}

fn done(written: Fatal<bool>) -> TargetResult<(), Target> {
    if written.map_err(TargetError::Fatal)? { Ok(()) } else { Err(TargetError::NonFatal) }
}

impl SingleRegisterAccess<Tid> for Target {
    fn read_register(&mut self, tid: Tid, id: Id, buf: &mut [u8]) -> TargetResult<usize, Self> {
        let value = self.look(move |view| view.register(hart(tid), id.register)).map_err(TargetError::Fatal)?;
        let bytes = value.ok_or(TargetError::NonFatal)?.to_le_bytes();
        buf[..id.size].copy_from_slice(&bytes[..id.size]);
        Ok(id.size)
    }

    fn write_register(&mut self, tid: Tid, id: Id, val: &[u8]) -> TargetResult<(), Self> {
        let mut bytes = [0; 8];
        bytes.get_mut(..val.len()).ok_or(TargetError::NonFatal)?.copy_from_slice(val);
        done(self.look(move |view| view.set_register(hart(tid), id.register, u64::from_le_bytes(bytes))))
    }
}

impl mt::MultiThreadResume for Target {
    fn resume(&mut self) -> Fatal<()> {
        self.running = true;
        self.requests.send(Request::Go(self.orders.clone())).map_err(|_| Gone)
    }

    fn clear_resume_actions(&mut self) -> Fatal<()> {
        self.orders.step = None;
        Ok(())
    }

    fn set_resume_action_continue(&mut self, _: Tid, _: Option<Signal>) -> Fatal<()> {
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<mt::MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<mt::MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl mt::MultiThreadSingleStep for Target {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Fatal<()> {
        self.orders.step = Some(hart(tid));
        Ok(())
    }
}

impl mt::MultiThreadSchedulerLocking for Target {
    /// Does nothing: the other harts still run in their turns, because stopping them would change the order of events.
    fn set_resume_action_scheduler_lock(&mut self) -> Fatal<()> {
        Ok(())
    }
}

impl bp::Breakpoints for Target {
    fn support_sw_breakpoint(&mut self) -> Option<bp::SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<bp::HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<bp::HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

/// Removes an element from a list; returns false if it is not there.
fn remove<T: PartialEq>(list: &mut Vec<T>, thing: &T) -> bool {
    list.iter().position(|t| t == thing).map(|at| list.remove(at)).is_some()
}

/// The machine compares each pc with the addresses of both kinds of breakpoints. Guest memory is never changed.
impl bp::SwBreakpoint for Target {
    fn add_sw_breakpoint(&mut self, addr: u64, _: usize) -> TargetResult<bool, Self> {
        self.orders.breakpoints.push(addr);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, addr: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(remove(&mut self.orders.breakpoints, &addr))
    }
}

impl bp::HwBreakpoint for Target {
    fn add_hw_breakpoint(&mut self, addr: u64, kind: usize) -> TargetResult<bool, Self> {
        bp::SwBreakpoint::add_sw_breakpoint(self, addr, kind)
    }

    fn remove_hw_breakpoint(&mut self, addr: u64, kind: usize) -> TargetResult<bool, Self> {
        bp::SwBreakpoint::remove_sw_breakpoint(self, addr, kind)
    }
}

fn watchpoint(at: u64, len: u64, kind: bp::WatchKind) -> Watchpoint {
    let (load, store) = match kind {
        bp::WatchKind::Write => (false, true),
        bp::WatchKind::Read => (true, false),
        bp::WatchKind::ReadWrite => (true, true),
    };
    Watchpoint { at, len, load, store }
}

impl bp::HwWatchpoint for Target {
    fn add_hw_watchpoint(&mut self, addr: u64, len: u64, kind: bp::WatchKind) -> TargetResult<bool, Self> {
        self.orders.watchpoints.push(watchpoint(addr, len, kind));
        Ok(true)
    }

    fn remove_hw_watchpoint(&mut self, addr: u64, len: u64, kind: bp::WatchKind) -> TargetResult<bool, Self> {
        Ok(remove(&mut self.orders.watchpoints, &watchpoint(addr, len, kind)))
    }
}

/// Waits for the machine and for GDB at the same time.
pub enum Loop {}

type WaitError = WaitForStopReasonError<Gone, io::Error>;

impl BlockingEventLoop for Loop {
    type Target = Target;
    type Connection = Connection;
    type StopReason = MultiThreadStopReason<<Rv64 as Arch>::Usize>;

    fn wait_for_stop_reason(
        target: &mut Target,
        connection: &mut Connection,
    ) -> Result<LoopEvent<Self::StopReason>, WaitError> {
        loop {
            if let Some(reason) = target.event() {
                return Ok(LoopEvent::TargetStopped(reason));
            }
            if connection.peek().map_err(WaitForStopReasonError::Connection)?.is_some() {
                let byte = connection.read().map_err(WaitForStopReasonError::Connection)?;
                return Ok(LoopEvent::IncomingData(byte));
            }
        }
    }

    fn on_interrupt(target: &mut Target) -> Fatal<Option<Self::StopReason>> {
        target.wants_stop.store(true, Ordering::Relaxed);
        Ok(None)
    }
}
