// SPDX-License-Identifier: Apache-2.0
//! What a debugger can do. While the machine is stopped, simulated time stops in all its parts. Afterwards only what the
//! debugger changed on purpose is different.

use trapless_memory::{Dma, PAGE_SIZE, PhysAddr, Ram};
use trapless_riscv::{Access, Hart};

/// A register of a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// x0 to x31.
    X(u8),
    /// The program counter.
    Pc,
    /// f0 to f31, as 64 bits.
    F(u8),
    /// A control and status register by its number.
    Csr(u16),
    /// The mode: 0 user, 1 supervisor, 3 machine. It cannot be written.
    Mode,
}

/// Why the machine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The debugger asked for it.
    Asked,
    /// The instruction to step over is done.
    Stepped,
    /// The next instruction is at a breakpoint.
    Breakpoint,
    /// The last instruction accessed watched memory.
    Watchpoint {
        /// Load or store.
        access: Access,
        /// The watched address that was accessed.
        at: u64,
    },
}

/// A stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The hart to which the reason applies.
    pub hart: usize,
    /// The reason.
    pub why: Why,
}

/// Memory whose accesses stop the machine: virtual addresses, in any address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchpoint {
    /// First byte.
    pub at: u64,
    /// Length in bytes.
    pub len: u64,
    /// Whether loads stop the machine.
    pub load: bool,
    /// Whether stores stop the machine.
    pub store: bool,
}

/// How the machine continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Stop when this hart has executed an instruction or taken a trap. The other harts run as usual.
    pub step: Option<usize>,
    /// Stop before instructions at these virtual addresses, in any address space.
    pub breakpoints: Vec<u64>,
    /// Stop after instructions that access this memory.
    pub watchpoints: Vec<Watchpoint>,
    /// End the run.
    pub kill: bool,
}

impl Orders {
    /// Whether each instruction has to be checked.
    fn look(&self) -> bool {
        self.step.is_some() || !self.breakpoints.is_empty() || !self.watchpoints.is_empty()
    }
}

/// A debugger's front end.
pub trait Debugger {
    /// Whether the machine should stop. This is called often.
    fn wants_stop(&mut self) -> bool;
    /// The machine has stopped; it continues when this returns.
    fn stopped(&mut self, stop: Stop, view: &mut View<'_>) -> Orders;
}

/// A debugger's view of a stopped machine.
pub struct View<'a> {
    harts: Vec<&'a mut Hart>,
    ram: &'a mut Ram,
    changed: bool,
}

impl View<'_> {
    /// Number of harts.
    pub fn harts(&self) -> usize {
        self.harts.len()
    }

    /// A register's value; `None` if there is no such register.
    pub fn register(&self, hart: usize, register: Register) -> Option<u64> {
        let hart = self.harts.get(hart)?;
        match register {
            Register::X(n) => (n < 32).then(|| hart.x(n)),
            Register::F(n) => (n < 32).then(|| hart.f(n)),
            Register::Pc => Some(hart.pc()),
            Register::Csr(n) => hart.csr(n),
            Register::Mode => Some(hart.privilege() as u64),
        }
    }

    /// Writes a register; returns false if it does not exist or cannot be written.
    pub fn set_register(&mut self, hart: usize, register: Register, value: u64) -> bool {
        let Some(hart) = self.harts.get_mut(hart) else { return false };
        self.changed = true;
        match register {
            Register::X(n) if n < 32 => hart.set_x(n, value),
            Register::F(n) if n < 32 => hart.set_f(n, value),
            Register::Pc => hart.set_pc(value),
            Register::Csr(n) => return hart.set_csr(n, value),
            _ => return false,
        }
        true
    }

    /// Splits `[va, va + len)` into pieces of one page each, by physical address; ends at the first page that is not mapped RAM.
    fn pieces(&self, hart: usize, va: u64, len: usize) -> Vec<(PhysAddr, usize)> {
        let mut pieces = Vec::new();
        let mut done = 0;
        while done < len {
            let at = va.wrapping_add(done as u64);
            let piece = (len - done).min((PAGE_SIZE - at % PAGE_SIZE) as usize);
            let found = self.harts.get(hart).and_then(|h| h.translate_debug(self.ram, at));
            let Some(pa) = found.filter(|pa| self.ram.offset(*pa, piece as u64).is_some()) else { break };
            pieces.push((pa, piece));
            done += piece;
        }
        pieces
    }

    /// Reads memory through the hart's page table, without changing it; in M-mode by physical address. Returns the number of
    /// bytes, which is less than asked for if some of the memory is not mapped or not RAM.
    pub fn read(&mut self, hart: usize, va: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        for (pa, len) in self.pieces(hart, va, buffer.len()) {
            if Dma::read(self.ram, pa, &mut buffer[done..done + len]).is_err() {
                break;
            }
            done += len;
        }
        done
    }

    /// Writes `data` to memory, whatever the page table allows. Writes nothing and returns false if a part is not mapped RAM.
    pub fn write(&mut self, hart: usize, va: u64, data: &[u8]) -> bool {
        let pieces = self.pieces(hart, va, data.len());
        if pieces.iter().map(|(_, len)| len).sum::<usize>() < data.len() {
            return false;
        }
        self.changed = true;
        let mut done = 0;
        pieces.into_iter().all(|(pa, len)| {
            done += len;
            Dma::write(self.ram, pa, &data[done - len..done]).is_ok()
        })
    }
}

/// A debugger and its last orders.
pub struct Debugging {
    front: Box<dyn Debugger>,
    orders: Orders,
    /// Where the harts were when the machine continued (address, instructions retired): being there does not count as a step.
    from: Vec<(u64, u64)>,
    /// The hart that stopped last. A breakpoint at its current instruction has been reported and does not stop it again.
    stopped: usize,
    /// Watchpoints that harts have hit. They are reported before the next instruction of the hart.
    met: Vec<Stop>,
}

impl Debugging {
    /// A debugger that has ordered nothing yet.
    pub fn new(front: Box<dyn Debugger>) -> Debugging {
        Debugging { front, orders: Orders::default(), from: Vec::new(), stopped: 0, met: Vec::new() }
    }

    /// Whether each instruction has to be checked.
    pub fn looks(&self) -> bool {
        self.orders.look() && !self.orders.kill
    }

    /// Checks a hart that is about to execute an instruction.
    #[inline]
    pub fn instruction(&mut self, id: usize, hart: &Hart) -> Option<Stop> {
        if self.orders.kill {
            return None;
        }
        let stop = |why| Some(Stop { hart: id, why });
        if let Some(place) = self.met.iter().position(|met| met.hart == id) {
            return Some(self.met.swap_remove(place));
        }
        let stays = self.from.get(id) == Some(&(hart.pc(), hart.instructions()));
        if self.orders.breakpoints.contains(&hart.pc()) && !(stays && self.stopped == id) {
            return stop(Why::Breakpoint);
        }
        if self.orders.step == Some(id) && !stays { stop(Why::Stepped) } else { None }
    }

    /// Checks an access of a hart to memory.
    #[inline]
    pub fn access(&mut self, id: usize, access: Access, va: u64, len: u64) {
        let meets = |w: &&Watchpoint| {
            let wanted = if access == Access::Store { w.store } else { w.load };
            wanted && (va.wrapping_sub(w.at) < w.len || w.at.wrapping_sub(va) < len)
        };
        if access != Access::Fetch
            && self.met.iter().all(|met| met.hart != id)
            && let Some(watch) = self.orders.watchpoints.iter().find(meets)
        {
            self.met.push(Stop { hart: id, why: Why::Watchpoint { access, at: va.max(watch.at) } });
        }
    }

    /// Whether the debugger wants the machine to stop now.
    pub fn wants_stop(&mut self) -> bool {
        !self.orders.kill && self.front.wants_stop()
    }

    /// Whether the debugger wants the run to end.
    pub fn kills(&self) -> bool {
        self.orders.kill
    }

    /// Stops until the debugger lets the machine continue. Returns whether the debugger has changed something.
    pub fn stop(&mut self, stop: Stop, harts: Vec<&mut Hart>, ram: &mut Ram) -> bool {
        let mut view = View { harts, ram, changed: false };
        self.orders = self.front.stopped(stop, &mut view);
        self.stopped = stop.hart;
        if self.orders.watchpoints.is_empty() {
            self.met.clear();
        }
        self.from = view.harts.iter().map(|h| (h.pc(), h.instructions())).collect();
        view.changed
    }
}
