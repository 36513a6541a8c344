// SPDX-License-Identifier: Apache-2.0
//! The hart, with the functions for its owner.

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, PhysAddr, Ram};

use crate::config::{HartConfig, op_costs};
use crate::csr::{Csrs, status};
use crate::entry::{DataEntry, DataSet, PAGE_MASK};
use crate::events::PageFault;
use crate::exit::{Privilege, WalkRequest};
use crate::op::{F0, REG_FILE};
use crate::page::CodePage;
use crate::predictor::{Predictor, PredictorConfig};
use crate::tlb::{FetchEntry, Tlb};

/// Interrupt lines and pending bits, by their bit in `mip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Interrupt {
    /// SSIP. Software clears it through `sip`.
    SupervisorSoft = 1,
    /// MSIP, from the ACLINT.
    MachineSoft = 3,
    /// STIP.
    SupervisorTimer = 5,
    /// MTIP, from the ACLINT.
    MachineTimer = 7,
    /// SEIP, from the PLIC.
    SupervisorExternal = 9,
    /// MEIP, from the PLIC.
    MachineExternal = 11,
}

/// The architectural state of a hart, to save and restore. Reservations are not included: an SC after a restore fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HartState {
    /// x0..x31.
    pub x: [u64; 32],
    /// f0..f31.
    pub f: [u64; 32],
    /// Program counter.
    pub pc: u64,
    /// Mode.
    pub privilege: Privilege,
    /// Control and status registers.
    pub csr: Csrs,
    /// Local time.
    pub cycle: Cycle,
    /// Instructions retired, by mode encoding.
    pub retired: [u64; 4],
}

/// A hart between two runs, with the request that it waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Suspended {
    state: HartState,
    wait: Option<(WalkRequest, u64)>,
    changed_pte: Option<(u64, u64)>,
    walk_answered: bool,
    retries: (u64, u32),
}

/// Maximum number of lines of code that are known at a time.
pub(crate) const CODE_LINES: usize = 2048;
/// A line number that no line has.
pub(crate) const NO_LINE: u32 = u32::MAX;
/// Predictor of a hart without detailed timing, which needs none.
const NO_PREDICTOR: PredictorConfig = PredictorConfig { history_bits: 1, targets: 1, returns: 1, mispredict_cycles: 0 };

/// A hart.
///
/// ```
/// use trapless_memory::{BusError, Cycle, MmioEffect, PhysAddr, Ram};
/// use trapless_riscv::{Bus, CodeCache, Env, Hart, HartConfig};
///
/// /// RAM and no device.
/// struct Board(Ram);
///
/// impl Bus for Board {
///     fn ram(&mut self) -> &mut Ram {
///         &mut self.0
///     }
///     fn mmio_read(&mut self, at: PhysAddr, _: u8, _: Cycle) -> Result<(u64, MmioEffect), BusError> {
///         Err(BusError(at))
///     }
///     fn mmio_write(&mut self, at: PhysAddr, _: u8, _: u64, _: Cycle) -> Result<MmioEffect, BusError> {
///         Err(BusError(at))
///     }
///     fn time(&mut self, now: Cycle) -> u64 {
///         now.0
///     }
/// }
///
/// let base = PhysAddr(0x8000_0000);
/// let mut board = Board(Ram::new(base, 4096)?);
/// // li x5, 7; add x5, x5, x5
/// board.0.store(base, 0x0070_0293_u32.to_le_bytes());
/// board.0.store(PhysAddr(base.0 + 4), 0x0052_82b3_u32.to_le_bytes());
/// let (mut code, mut hart) = (CodeCache::default(), Hart::new(HartConfig::new(0), base.0));
/// for _ in 0..2 {
///     hart.step(&mut Env { bus: &mut board, code: &mut code, observer: &mut (), timing: &mut () });
/// }
/// assert_eq!((hart.x(5), hart.pc()), (14, base.0 + 8));
/// # Ok::<(), trapless_memory::RamError>(())
/// ```
pub struct Hart {
    /// Registers: x0..x31, the sink for writes to x0, and f0..f31 from [`F0`] on.
    pub(crate) regs: [u64; REG_FILE],
    /// What each operation adds to `acc`: one instruction and its price.
    pub(crate) costs: [u64; 256],
    /// What a taken branch adds to `acc`.
    pub(crate) taken: u64,
    /// Instructions (upper half) and cycles (lower half) since the last [`Hart::settle`].
    pub(crate) acc: u64,
    /// The hot loop ends when the lower half of `acc` reaches this.
    pub(crate) limit: u32,
    /// Whether a device has asked for the end of the run.
    pub(crate) resync: bool,
    /// Whether the current access is atomic.
    pub(crate) atomic: bool,
    /// Whether mstatus.FS is dirty: then floating-point instructions need not check it again.
    pub(crate) fp_dirty: bool,
    /// Whether to fetch one instruction at a time.
    pub(crate) stepping: bool,
    pub(crate) privilege: Privilege,
    /// Effective mode of loads and stores (mstatus.MPRV).
    pub(crate) data_privilege: Privilege,
    pub(crate) data_set: DataSet,
    /// The entries of `data_set`.
    pub(crate) dtlb: *const DataEntry,
    /// The entries for fetches in the current mode.
    pub(crate) ftlb: *const FetchEntry,
    /// The page in which translated code runs.
    pub(crate) code_page: *const CodePage,
    pub(crate) pc: u64,
    pub(crate) csr: Csrs,
    pub(crate) tlb: Tlb,
    /// Physical address that LR reserved.
    pub(crate) reservation: Option<u64>,
    /// Local time of the LR that made the reservation.
    pub(crate) reserved_at: u64,
    /// Local time at the last [`Hart::settle`].
    pub(crate) cycle: u64,
    /// Instructions retired up to the last [`Hart::settle`], by mode.
    pub(crate) retired: [u64; 4],
    pub(crate) config: HartConfig,
    /// Whether timing is detailed: the hart then knows lines of data and code that are cached, and predicts branches.
    pub(crate) detailed: bool,
    /// Lines of code known to be in the first-level cache, indexed by the low bits of the line number.
    pub(crate) code_lines: [u32; CODE_LINES],
    pub(crate) predictor: Predictor,
    /// Mispredicted branches up to the last [`Hart::settle`], by mode.
    pub(crate) mispredicted: [u64; 4],

    /// The page from which single instructions are executed: those that cross pages, and those that are stepped.
    pub(crate) scratch: Box<CodePage>,
    pub(crate) scratch_index: usize,
    pub(crate) scratch_raw: u32,

    /// Host address of RAM. `ram_base` is the guest address of its first byte.
    pub(crate) ram_host: u64,
    pub(crate) ram_base: u64,
    pub(crate) code_epoch: u64,
    pub(crate) code_generation: u64,

    /// The last instruction that was reported to the observer: its address, and the instructions retired before it.
    pub(crate) begun: (u64, u64),
    /// The request with which the last run ended, and the local time at which it is made.
    pub(crate) wait: Option<(WalkRequest, u64)>,
    /// An address and the value that the next walk uses instead of the entry there.
    pub(crate) changed_pte: Option<(u64, u64)>,
    /// Whether the next walk is the rest of a walk that the SMU has answered.
    pub(crate) walk_answered: bool,
    /// The address of an entry, and how many times in a row the SMU has answered "changed" for it.
    pub(crate) retries: (u64, u32),
    /// Why the last walk that failed did so.
    pub(crate) page_fault: PageFault,
}

impl Hart {
    /// Creates a hart as it is after a reset: in M-mode, at `pc`.
    pub fn new(config: HartConfig, pc: u64) -> Hart {
        let tlb = Tlb::new();
        let mut hart = Hart {
            regs: [0; REG_FILE],
            costs: op_costs(&config.costs),
            taken: u64::from(config.costs.branch_taken),
            acc: 0,
            limit: 0,
            resync: false,
            atomic: false,
            fp_dirty: false,
            stepping: false,
            privilege: Privilege::Machine,
            data_privilege: Privilege::Machine,
            data_set: DataSet::Machine,
            dtlb: tlb.data_set(DataSet::Machine),
            ftlb: tlb.fetch_set(Privilege::Machine),
            code_page: std::ptr::null(),
            pc,
            csr: Csrs::reset(),
            tlb,
            reservation: None,
            reserved_at: 0,
            cycle: 0,
            retired: [0; 4],
            config,
            detailed: false,
            code_lines: [NO_LINE; CODE_LINES],
            predictor: Predictor::new(NO_PREDICTOR),
            mispredicted: [0; 4],
            scratch: CodePage::scratch(),
            scratch_index: 0,
            scratch_raw: 0,
            ram_host: 0,
            ram_base: 0,
            code_epoch: 0,
            code_generation: 0,
            begun: (u64::MAX, 0),
            wait: None,
            changed_pte: None,
            walk_answered: false,
            retries: (0, 0),
            page_fault: PageFault::Absent,
        };
        hart.refresh();
        hart
    }

    /// Puts the hart into the state in which SBI firmware would leave it: S-mode at `pc`, no translation, a0 = hart id, a1 =
    /// `opaque`, everything that a supervisor handles delegated, counters readable, PMP open. Counters go on (REQ: ISA-7).
    pub fn enter_supervisor(&mut self, pc: u64, opaque: u64) {
        let Csrs { shwdpserved, shwdpwait, .. } = self.csr;
        self.csr = Csrs { shwdpserved, shwdpwait, ..Csrs::reset() };
        // All exceptions except ecall from S-mode, which firmware handles.
        self.csr.medeleg = 0xb1ff;
        self.csr.mideleg = crate::csr::S_INTERRUPTS;
        self.csr.mcounteren = 7;
        // As OpenSBI does: without a PMU driver Linux does not write it, and the vDSO reads `time` in user mode.
        self.csr.scounteren = 7;
        self.csr.pmp.open();
        self.regs = [0; REG_FILE];
        self.set_x(10, self.config.id);
        self.set_x(11, opaque);
        self.privilege = Privilege::Supervisor;
        self.reservation = None;
        self.wait = None;
        self.set_pc(pc);
        self.tlb.flush();
        self.refresh();
    }

    /// Begins (with this predictor) or ends detailed timing. Call it between runs, and for the [`crate::CodeCache`] as well.
    pub fn set_detail(&mut self, predictor: Option<PredictorConfig>) {
        self.detailed = predictor.is_some();
        self.predictor = Predictor::new(predictor.unwrap_or(NO_PREDICTOR));
        self.code_lines.fill(NO_LINE);
        self.tlb.flush();
        self.refresh();
    }

    /// Whether an interrupt that would be taken now is pending. It ends a wait. REQ: ISA-4
    pub fn interrupt_pending_enabled(&self) -> bool {
        self.deliverable() != 0
    }

    /// Whether `wfi` would end: an interrupt is pending and enabled in `mie`; the global enable bits do not matter.
    pub fn wakes(&self) -> bool {
        self.csr.mip() & self.csr.mie != 0
    }

    /// Sets the level of an interrupt line.
    pub fn set_line(&mut self, line: Interrupt, level: bool) {
        set_bit(&mut self.csr.mip_lines, line, level);
    }

    /// Sets or clears a pending bit that software can write (SSIP, STIP, SEIP).
    pub fn set_pending(&mut self, bit: Interrupt, pending: bool) {
        set_bit(&mut self.csr.mip_soft, bit, pending);
    }

    /// The hart's local time between runs.
    pub fn now(&self) -> Cycle {
        Cycle(self.cycle)
    }

    /// The hart's local time in the middle of a run.
    #[inline]
    pub fn local_now(&self) -> Cycle {
        Cycle(self.cycle + (self.acc & 0xffff_ffff))
    }

    /// Lets time pass up to `at` without executing (idle, waiting). Does nothing if `at` has passed.
    pub fn advance_to(&mut self, at: Cycle) {
        self.cycle = self.cycle.max(at.0);
    }

    /// Adds cycles that the hart lost to the other hart of its core during its last run. The event that ended the run is
    /// that much later, too.
    pub fn delay(&mut self, cycles: Cycle) {
        self.cycle += cycles.0;
        self.wait.iter_mut().for_each(|(_, began)| *began += cycles.0);
    }

    /// Adds `acc` to the real counters and clears it.
    pub(crate) fn settle(&mut self) {
        let spent = self.acc & 0xffff_ffff;
        self.cycle += spent;
        self.retired[self.privilege as usize & 3] += self.acc >> 32;
        self.mispredicted[self.privilege as usize & 3] += std::mem::take(&mut self.predictor.missed);
        self.limit = self.limit.saturating_sub(spent as u32);
        self.acc = 0;
    }

    /// Recomputes the fields that depend on the mode and on mstatus.
    pub(crate) fn refresh(&mut self) {
        let s = self.csr.mstatus;
        let mprv = self.privilege == Privilege::Machine && s & status::MPRV != 0;
        self.data_privilege = match (mprv, s >> status::MPP_SHIFT & 3) {
            (false, _) => self.privilege,
            (true, 0) => Privilege::User,
            (true, 1) => Privilege::Supervisor,
            (true, _) => Privilege::Machine,
        };
        self.data_set = DataSet::of(self.data_privilege, s & status::SUM != 0);
        self.dtlb = if self.detailed { self.tlb.lines.set(self.data_set) } else { self.tlb.data_set(self.data_set) };
        self.ftlb = self.tlb.fetch_set(self.privilege);
        self.fp_dirty = s & status::FS == status::FS_DIRTY;
    }

    /// Notes that floating-point state was written.
    pub(crate) fn set_fp_dirty(&mut self) {
        self.csr.mstatus |= status::FS_DIRTY;
        self.fp_dirty = true;
    }

    /// Instructions retired, by mode encoding: `[U, S, -, M]`.
    pub fn retired(&self) -> [u64; 4] {
        self.retired
    }

    /// Instructions retired in all modes, also in the middle of a run.
    #[inline]
    pub fn instructions(&self) -> u64 {
        self.retired.iter().sum::<u64>() + (self.acc >> 32)
    }

    /// Page number of the root page table in use; `None` where addresses are physical.
    pub fn address_space(&self) -> Option<u64> {
        self.translates(self.privilege).then(|| self.root_ppn())
    }

    /// Mispredicted branches in detailed timing, by mode encoding: `[U, S, -, M]`.
    pub fn mispredicted(&self) -> [u64; 4] {
        self.mispredicted
    }

    /// The configuration that the hart was created with.
    pub fn config(&self) -> &HartConfig {
        &self.config
    }

    /// Current mode.
    pub fn privilege(&self) -> Privilege {
        self.privilege
    }

    /// Program counter.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Sets the program counter; bit 0 is dropped.
    pub fn set_pc(&mut self, pc: u64) {
        self.pc = pc & !1;
    }

    /// Integer register `index` (0 to 31).
    pub fn x(&self, index: u8) -> u64 {
        self.regs[usize::from(index & 31)]
    }

    /// Sets integer register `index`; x0 stays zero.
    pub fn set_x(&mut self, index: u8, value: u64) {
        if index & 31 != 0 {
            self.regs[usize::from(index & 31)] = value;
        }
    }

    /// Floating-point register `index` (0 to 31).
    pub fn f(&self, index: u8) -> u64 {
        self.regs[usize::from(F0 + (index & 31))]
    }

    /// Sets floating-point register `index`.
    pub fn set_f(&mut self, index: u8, value: u64) {
        self.regs[usize::from(F0 + (index & 31))] = value;
    }

    /// Reads a CSR as M-mode does, without side effects; `None` if it does not exist. `time` belongs to the bus and reads as 0.
    pub fn csr(&self, number: u16) -> Option<u64> {
        let mut context = self.csr_context();
        context.instret = self.retired.iter().sum();
        self.csr.read(number, &context)
    }

    /// Writes a CSR as M-mode does; returns false if it does not exist or is read-only.
    pub fn set_csr(&mut self, number: u16, value: u64) -> bool {
        let mut context = self.csr_context();
        // No instruction is executing that would count itself.
        context.instret = self.retired.iter().sum::<u64>().wrapping_sub(1);
        if number >> 10 == 3 || self.csr.read(number, &context).is_none() {
            return false;
        }
        self.csr.write(number, value, &context);
        self.tlb.flush();
        self.refresh();
        true
    }

    /// Remote `sfence.vma`: of all addresses, or of the pages that the range `(start, length)`, in bytes, overlaps.
    pub fn fence_vma(&mut self, range: Option<(u64, u64)>) {
        self.changed_pte = None;
        self.walk_answered = false;
        match range {
            Some((start, len)) if len > 0 => {
                self.tlb.flush_range(start & PAGE_MASK, start.saturating_add(len - 1));
            }
            Some(_) => {}
            None => self.tlb.flush(),
        }
    }

    /// Translates an address for a debugger: reads the page tables only, without permission checks or side effects.
    pub fn translate_debug(&self, ram: &Ram, va: u64) -> Option<PhysAddr> {
        self.peek_translation(ram, va)
    }

    /// The hart's architectural state.
    pub fn state(&self) -> HartState {
        HartState {
            x: std::array::from_fn(|i| self.x(i as u8)),
            f: std::array::from_fn(|i| self.f(i as u8)),
            pc: self.pc,
            privilege: self.privilege,
            csr: self.csr.clone(),
            cycle: Cycle(self.cycle),
            retired: self.retired,
        }
    }

    /// Returns the state of the hart. Call it between runs. The hart forgets what it has translated and learnt, so that it
    /// continues exactly as a hart does that is [`Hart::resume`]d from this state.
    pub fn suspend(&mut self) -> Suspended {
        let predictor = self.detailed.then_some(self.predictor.config);
        self.set_detail(predictor);
        self.reservation = None;
        Suspended {
            state: self.state(),
            wait: self.wait,
            changed_pte: self.changed_pte,
            walk_answered: self.walk_answered,
            retries: self.retries,
        }
    }

    /// Continues where another hart was suspended.
    pub fn resume(&mut self, from: &Suspended) {
        self.restore(&from.state);
        self.wait = from.wait;
        self.changed_pte = from.changed_pte;
        self.walk_answered = from.walk_answered;
        self.retries = from.retries;
    }

    /// Continues from a saved state.
    pub fn restore(&mut self, state: &HartState) {
        for i in 0..32 {
            self.set_x(i, state.x[usize::from(i)]);
            self.set_f(i, state.f[usize::from(i)]);
        }
        self.pc = state.pc;
        self.privilege = state.privilege;
        self.csr = state.csr.clone();
        self.cycle = state.cycle.0;
        self.retired = state.retired;
        self.acc = 0;
        self.begun = (u64::MAX, 0);
        self.reservation = None;
        self.wait = None;
        self.changed_pte = None;
        self.walk_answered = false;
        self.retries = (0, 0);
        self.tlb.flush();
        self.refresh();
    }
}

fn set_bit(word: &mut u64, bit: Interrupt, level: bool) {
    let mask = 1 << bit as u8;
    *word = if level { *word | mask } else { *word & !mask };
}
