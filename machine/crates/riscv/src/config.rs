// SPDX-License-Identifier: Apache-2.0
//! The configuration of a hart, as a profile gives it.

use serde::{Deserialize, Serialize};
use trapless_memory::Paging;

use crate::op::{ONE, OPS, Op};

/// Price of each class of instruction in core cycles. Every executed instruction costs at least the price of its class;
/// memory accesses and address translation may add more through [`crate::Timing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CostTable {
    /// Integer arithmetic, logic, shifts, moves, `lui`, `auipc`, hints.
    pub alu: u32,
    /// Integer multiplication.
    pub mul: u32,
    /// Integer division and remainder.
    pub div: u32,
    /// Loads, floating-point ones included.
    pub load: u32,
    /// Stores, floating-point ones included.
    pub store: u32,
    /// LR, SC and AMO.
    pub amo: u32,
    /// Conditional branch that falls through.
    pub branch: u32,
    /// Added when a conditional branch is taken.
    pub branch_taken: u32,
    /// `jal`.
    pub jump: u32,
    /// `jalr`. Detailed timing adds the price of a misprediction.
    pub jump_indirect: u32,
    /// CSR instructions, `wfi`, `ecall`, `ebreak` and illegal instructions.
    pub csr: u32,
    /// `mret` and `sret`.
    pub xret: u32,
    /// `fence`.
    pub fence: u32,
    /// `fence.i`.
    pub fence_i: u32,
    /// `sfence.vma`.
    pub sfence: u32,
    /// Floating-point addition and subtraction.
    pub fp_add: u32,
    /// Floating-point multiplication.
    pub fp_mul: u32,
    /// Floating-point fused multiply-add.
    pub fp_fma: u32,
    /// Floating-point conversion: to and from integers, and between formats.
    pub fp_convert: u32,
    /// Floating-point division.
    pub fp_div: u32,
    /// Floating-point square root.
    pub fp_sqrt: u32,
    /// Floating-point moves, comparisons, sign injection, classification.
    pub fp_move: u32,
    /// Entering a trap handler (a pipeline flush). At least 1 is charged, so that a trap vector that faults cannot stop time.
    pub trap: u32,
    /// Each page-table entry that a walk reads.
    pub pte_read: u32,
    /// Added to a load or store that is not naturally aligned.
    pub misaligned: u32,
    /// Added to a load or store outside RAM.
    pub mmio: u32,
}

impl Default for CostTable {
    /// A single-issue in-order core with a short pipeline and single-cycle hits.
    fn default() -> CostTable {
        CostTable {
            alu: 1,
            mul: 2,
            div: 32,
            load: 1,
            store: 1,
            amo: 4,
            branch: 1,
            branch_taken: 2,
            jump: 2,
            jump_indirect: 2,
            csr: 3,
            xret: 3,
            fence: 2,
            fence_i: 2,
            sfence: 2,
            fp_add: 4,
            fp_mul: 4,
            fp_fma: 4,
            fp_convert: 4,
            fp_div: 20,
            fp_sqrt: 25,
            fp_move: 2,
            trap: 5,
            pte_read: 2,
            misaligned: 2,
            mmio: 10,
        }
    }
}

/// One hart of the machine.
#[derive(Clone, Debug)]
pub struct HartConfig {
    /// `mhartid`.
    pub id: u64,
    /// Price of instructions.
    pub costs: CostTable,
    /// Whether the paging extension exists. Without it its CSR is illegal, and armed entries are ordinary invalid entries.
    pub smu: bool,
    /// `ecall` from S-mode ends the run with [`crate::Exit::SbiCall`] instead of trapping.
    pub sbi_exits: bool,
    /// The deepest mode that `satp` accepts; modes with fewer levels are accepted as well.
    pub paging: Paging,
}

impl HartConfig {
    /// A hart without the paging extension, with default costs, whose firmware is a guest program.
    pub fn new(id: u64) -> HartConfig {
        HartConfig { id, costs: CostTable::default(), smu: false, sbi_exits: false, paging: Paging::Sv39 }
    }
}

/// What each operation adds to the hart's accumulator: one instruction and its price, at least one cycle. Operations
/// that are not instructions (not decoded yet, end of a page) add nothing.
pub(crate) fn op_costs(c: &CostTable) -> [u64; 256] {
    let mut table = [0; 256];
    for (n, entry) in table.iter_mut().enumerate().take(OPS).skip(Op::Illegal as usize) {
        let n = n as u8;
        let within = |first: Op, last: Op| (first as u8..=last as u8).contains(&n);
        let price = match n {
            _ if within(Op::Mul, Op::Mulhu) || n == Op::Mulw as u8 => c.mul,
            _ if within(Op::Div, Op::Remu) || within(Op::Divw, Op::Remuw) => c.div,
            _ if within(Op::Lb, Op::Fld) => c.load,
            _ if within(Op::Sb, Op::Fsd) => c.store,
            _ if within(Op::Lr, Op::Amo) => c.amo,
            _ if within(Op::BeqIn, Op::BgeuOut) => c.branch,
            _ if within(Op::JalIn, Op::JalOut) => c.jump,
            _ if n == Op::Jalr as u8 => c.jump_indirect,
            _ if n == Op::Fence as u8 => c.fence,
            _ if n == Op::FenceI as u8 => c.fence_i,
            _ if n == Op::SfenceVma as u8 => c.sfence,
            _ if n == Op::Marker as u8 => c.alu,
            _ if n == Op::Mret as u8 || n == Op::Sret as u8 => c.xret,
            _ if n == Op::Csr as u8 || n == Op::Illegal as u8 || within(Op::Ecall, Op::Wfi) => c.csr,
            _ if n == Op::FpAdd as u8 => c.fp_add,
            _ if n == Op::FpMul as u8 => c.fp_mul,
            _ if n == Op::FpFma as u8 => c.fp_fma,
            _ if n == Op::FpConvert as u8 => c.fp_convert,
            _ if n == Op::FpDiv as u8 => c.fp_div,
            _ if n == Op::FpSqrt as u8 => c.fp_sqrt,
            _ if n == Op::FpMove as u8 => c.fp_move,
            _ => c.alu,
        };
        *entry = ONE | u64::from(price.max(1));
    }
    table
}
