// SPDX-License-Identifier: Apache-2.0
//! Predecoded instructions.

use crate::csr::number;

/// What one retired instruction adds to a hart's `acc`. The lower half of `acc` counts cycles.
pub const ONE: u64 = 1 << 32;

/// Register index to which writes to x0 go. Reads of x0 use index 0, which is never written.
pub const SINK: u8 = 32;
/// Index of f0 in the register file. Integer and floating-point registers share one array.
pub const F0: u8 = 64;
/// Size of the register file. Any `u8` is a valid index, so no access needs a bounds check.
pub const REG_FILE: usize = 256;

/// Operation of a slot. If several instructions share an operation, `imm` tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[rustfmt::skip]
pub enum Op {
    /// The instruction is not decoded yet. Must be 0, because fresh pages are zeroed.
    Undecoded = 0,
    /// The end of a page: fetch by pc.
    Refetch,
    /// A 32-bit instruction that may cross into the next page.
    Cross,
    /// Illegal; `imm` holds the instruction's bits.
    Illegal,

    // R format: rd, rs1, rs2; imm = length in slots.
    Add, Sub, Sll, Slt, Sltu, Xor, Srl, Sra, Or, And,
    Addw, Subw, Sllw, Srlw, Sraw,
    Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu,
    Mulw, Divw, Divuw, Remw, Remuw,

    // I format: rd, rs1, imm; rs2 = length in slots.
    Li, Mv, Addi, Slti, Sltiu, Xori, Ori, Andi, Slli, Srli, Srai,
    Addiw, Slliw, Srliw, Sraiw,
    Lb, Lh, Lw, Ld, Lbu, Lhu, Lwu, Flw, Fld,
    Jalr,

    // U and J format: rd, imm; rs2 = length in slots. `In`: the target is in the page, imm counts slots; `Out`: imm counts bytes.
    Lui, Auipc, JalIn, JalOut,

    // S and B format: rs1, rs2, imm; rd = length in slots.
    Sb, Sh, Sw, Sd, Fsw, Fsd,
    BeqIn, BneIn, BltIn, BgeIn, BltuIn, BgeuIn,
    BeqOut, BneOut, BltOut, BgeOut, BltuOut, BgeuOut,

    // From here on, all instructions are two slots long.
    /// LR: rd, rs1; imm = log2 of the size.
    Lr,
    /// SC: rd, rs1, rs2; imm = log2 of the size.
    Sc,
    /// AMO: rd, rs1, rs2; imm = log2 of the size | funct5 << 8.
    Amo,
    /// CSR instruction: rd, rs1 (register or immediate); imm = number | funct3 << 12.
    Csr,
    Fence, FenceI, SfenceVma, Ecall, Ebreak, Mret, Sret, Wfi,
    /// `slti x0, x0, imm` with a marker's immediate.
    Marker,
    // Floating point; imm = [`FpFn`] | rm << 8 | rs3 << 16. The operation only decides the price.
    FpAdd, FpMul, FpFma, FpConvert, FpDiv, FpSqrt, FpMove,
}

/// Number of operations.
pub const OPS: usize = Op::FpMove as usize + 1;

/// Floating-point operations. `S` means single, `D` double precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[rustfmt::skip]
#[allow(missing_docs)]
pub enum FpFn {
    AddS, SubS, MulS, DivS, SqrtS, MaddS, MsubS, NmsubS, NmaddS,
    AddD, SubD, MulD, DivD, SqrtD, MaddD, MsubD, NmsubD, NmaddD,
    SgnjS, SgnjnS, SgnjxS, MinS, MaxS, EqS, LtS, LeS, ClassS,
    SgnjD, SgnjnD, SgnjxD, MinD, MaxD, EqD, LtD, LeD, ClassD,
    CvtWS, CvtWuS, CvtLS, CvtLuS, CvtSW, CvtSWu, CvtSL, CvtSLu,
    CvtWD, CvtWuD, CvtLD, CvtLuD, CvtDW, CvtDWu, CvtDL, CvtDLu,
    CvtSD, CvtDS, MvXW, MvWX, MvXD, MvDX,
}

impl FpFn {
    const LAST: u8 = FpFn::MvDX as u8;

    /// The function in the low byte of a slot's `imm`.
    #[inline]
    pub fn from_imm(imm: i32) -> FpFn {
        let n = (imm as u8).min(FpFn::LAST);
        // SAFETY: the enum is repr(u8) with consecutive values from 0 to LAST, and n is in that range.
        unsafe { std::mem::transmute::<u8, FpFn>(n) }
    }
}

/// A predecoded instruction. There is a slot for every two bytes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Slot {
    /// Operation.
    pub op: Op,
    /// Destination register; in formats without one, the length in slots.
    pub rd: u8,
    /// First source register.
    pub rs1: u8,
    /// Second source register; in formats without one, the length in slots.
    pub rs2: u8,
    /// Immediate; in R format, the length in slots.
    pub imm: i32,
}

impl Slot {
    /// A slot that makes the hart fetch by pc.
    pub const REFETCH: Slot = Slot { op: Op::Refetch, rd: 0, rs1: 0, rs2: 0, imm: 0 };
}

/// Number of slots to the next instruction; `None` if it jumps, or if translated code never contains it.
pub fn length(s: Slot) -> Option<usize> {
    let is = |first: Op, last: Op| (first as u8..=last as u8).contains(&(s.op as u8));
    match s.op {
        Op::Jalr | Op::JalIn | Op::JalOut => None,
        Op::Fence => Some(2),
        _ if is(Op::Add, Op::Remuw) => Some(s.imm as usize),
        _ if is(Op::Li, Op::Auipc) => Some(usize::from(s.rs2)),
        _ if is(Op::Sb, Op::BgeuOut) => Some(usize::from(s.rd)),
        _ if is(Op::FpAdd, Op::FpMove) || is(Op::Lr, Op::Amo) => Some(2),
        Op::Csr if is_local_csr(s) => Some(2),
        _ => None,
    }
}

/// Whether an instruction accesses a CSR of supervisor mode that mostly has an effect on the hart only.
pub fn is_local_csr(s: Slot) -> bool {
    matches!((s.imm & 0xfff) as u16, number::SSTATUS | number::SSCRATCH | number::SEPC | number::SCAUSE | number::STVAL)
}
