// SPDX-License-Identifier: Apache-2.0
//! A table of all instructions of RV64GC: fixed bits, their mask, and the form of the operands.
//!
//! Source: the opcode listings of the RISC-V unprivileged and privileged specifications. The hart's own decoder is not used
//! here, so that a mistake in either of them shows as a difference.

/// Operands of a 32-bit instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// rd, rs1, rs2.
    R,
    /// rd, rs1, 12-bit immediate.
    I,
    /// rd, rs1, 6-bit shift.
    Shift64,
    /// rd, rs1, 5-bit shift.
    Shift32,
    /// rd, offset(rs1).
    Load,
    /// rs2, offset(rs1).
    Store,
    /// rs1, rs2, target.
    Branch,
    /// rd, upper immediate.
    U,
    /// rd, target.
    Jal,
    /// rd, rs1, immediate.
    Jalr,
    /// fd, offset(rs1).
    LoadFp,
    /// fs2, offset(rs1).
    StoreFp,
    /// fd, fs1, fs2.
    F2,
    /// fd, fs1, fs2, rounding mode.
    F2Round,
    /// fd, fs1, rounding mode.
    F1Round,
    /// fd, fs1, fs2, fs3, rounding mode.
    F3Round,
    /// rd, fs1, fs2.
    FCompare,
    /// rd, fs1.
    FToInt,
    /// rd, fs1, rounding mode.
    FToIntRound,
    /// fd, rs1.
    IntToF,
    /// fd, rs1, rounding mode.
    IntToFRound,
    /// rd, rs2, (rs1).
    Amo,
    /// rd, (rs1).
    Lr,
    /// rd, rs2, (rs1).
    Sc,
    /// pred, succ.
    Fence,
    /// None.
    FenceI,
    /// rd, csr, rs1.
    Csr,
    /// rd, csr, 5-bit immediate.
    CsrI,
    /// None.
    System,
    /// rs1, rs2.
    Sfence,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Insn {
    /// Mnemonic.
    pub name: &'static str,
    /// Value of the fixed bits.
    pub bits: u32,
    /// Which bits are fixed.
    pub mask: u32,
    /// Form of the operands.
    pub form: Form,
}

const F3: u32 = 0x707f;
const F7: u32 = 0xfe00_707f;
const SH: u32 = 0xfc00_707f;
/// Mask of funct7 and opcode, for operations with a rounding mode.
const RM: u32 = 0xfe00_007f;
/// The same mask with rs2 fixed as well.
const RM2: u32 = 0xfff0_007f;
const F7R2: u32 = 0xfff0_707f;
/// Mask of funct5, funct3 and opcode; aq and rl are free.
const AMO: u32 = 0xf800_707f;

const fn i(name: &'static str, bits: u32, mask: u32, form: Form) -> Insn {
    Insn { name, bits, mask, form }
}
/// A row of OP or OP-32.
const fn op(name: &'static str, opcode: u32, f3: u32, f7: u32) -> Insn {
    i(name, f7 << 25 | f3 << 12 | opcode, F7, Form::R)
}
const fn amo(name: &'static str, f5: u32, f3: u32) -> Insn {
    i(name, f5 << 27 | f3 << 12 | 0x2f, AMO, Form::Amo)
}
/// A row of OP-FP: funct5, format, and rs2 or rounding mode according to the mask.
const fn fp(name: &'static str, f5: u32, fmt: u32, rs2: u32, f3: u32, mask: u32, form: Form) -> Insn {
    i(name, f5 << 27 | fmt << 25 | rs2 << 20 | f3 << 12 | 0x53, mask, form)
}

/// All 32-bit instructions.
pub const WIDE: &[Insn] = &[
    i("lui", 0x37, 0x7f, Form::U),
    i("auipc", 0x17, 0x7f, Form::U),
    i("jal", 0x6f, 0x7f, Form::Jal),
    i("jalr", 0x67, F3, Form::Jalr),
    i("beq", 0x0063, F3, Form::Branch),
    i("bne", 0x1063, F3, Form::Branch),
    i("blt", 0x4063, F3, Form::Branch),
    i("bge", 0x5063, F3, Form::Branch),
    i("bltu", 0x6063, F3, Form::Branch),
    i("bgeu", 0x7063, F3, Form::Branch),
    i("lb", 0x0003, F3, Form::Load),
    i("lh", 0x1003, F3, Form::Load),
    i("lw", 0x2003, F3, Form::Load),
    i("ld", 0x3003, F3, Form::Load),
    i("lbu", 0x4003, F3, Form::Load),
    i("lhu", 0x5003, F3, Form::Load),
    i("lwu", 0x6003, F3, Form::Load),
    i("sb", 0x0023, F3, Form::Store),
    i("sh", 0x1023, F3, Form::Store),
    i("sw", 0x2023, F3, Form::Store),
    i("sd", 0x3023, F3, Form::Store),
    i("addi", 0x0013, F3, Form::I),
    i("slti", 0x2013, F3, Form::I),
    i("sltiu", 0x3013, F3, Form::I),
    i("xori", 0x4013, F3, Form::I),
    i("ori", 0x6013, F3, Form::I),
    i("andi", 0x7013, F3, Form::I),
    i("slli", 0x1013, SH, Form::Shift64),
    i("srli", 0x5013, SH, Form::Shift64),
    i("srai", 0x4000_5013, SH, Form::Shift64),
    i("addiw", 0x001b, F3, Form::I),
    i("slliw", 0x101b, F7, Form::Shift32),
    i("srliw", 0x501b, F7, Form::Shift32),
    i("sraiw", 0x4000_501b, F7, Form::Shift32),
    op("add", 0x33, 0, 0),
    op("sub", 0x33, 0, 0x20),
    op("sll", 0x33, 1, 0),
    op("slt", 0x33, 2, 0),
    op("sltu", 0x33, 3, 0),
    op("xor", 0x33, 4, 0),
    op("srl", 0x33, 5, 0),
    op("sra", 0x33, 5, 0x20),
    op("or", 0x33, 6, 0),
    op("and", 0x33, 7, 0),
    op("addw", 0x3b, 0, 0),
    op("subw", 0x3b, 0, 0x20),
    op("sllw", 0x3b, 1, 0),
    op("srlw", 0x3b, 5, 0),
    op("sraw", 0x3b, 5, 0x20),
    op("mul", 0x33, 0, 1),
    op("mulh", 0x33, 1, 1),
    op("mulhsu", 0x33, 2, 1),
    op("mulhu", 0x33, 3, 1),
    op("div", 0x33, 4, 1),
    op("divu", 0x33, 5, 1),
    op("rem", 0x33, 6, 1),
    op("remu", 0x33, 7, 1),
    op("mulw", 0x3b, 0, 1),
    op("divw", 0x3b, 4, 1),
    op("divuw", 0x3b, 5, 1),
    op("remw", 0x3b, 6, 1),
    op("remuw", 0x3b, 7, 1),
    i("lr.w", 0x1000_202f, 0xf9f0_707f, Form::Lr),
    i("lr.d", 0x1000_302f, 0xf9f0_707f, Form::Lr),
    i("sc.w", 0x1800_202f, AMO, Form::Sc),
    i("sc.d", 0x1800_302f, AMO, Form::Sc),
    amo("amoswap.w", 1, 2),
    amo("amoadd.w", 0, 2),
    amo("amoxor.w", 4, 2),
    amo("amoand.w", 12, 2),
    amo("amoor.w", 8, 2),
    amo("amomin.w", 16, 2),
    amo("amomax.w", 20, 2),
    amo("amominu.w", 24, 2),
    amo("amomaxu.w", 28, 2),
    amo("amoswap.d", 1, 3),
    amo("amoadd.d", 0, 3),
    amo("amoxor.d", 4, 3),
    amo("amoand.d", 12, 3),
    amo("amoor.d", 8, 3),
    amo("amomin.d", 16, 3),
    amo("amomax.d", 20, 3),
    amo("amominu.d", 24, 3),
    amo("amomaxu.d", 28, 3),
    i("flw", 0x2007, F3, Form::LoadFp),
    i("fld", 0x3007, F3, Form::LoadFp),
    i("fsw", 0x2027, F3, Form::StoreFp),
    i("fsd", 0x3027, F3, Form::StoreFp),
    i("fmadd.s", 0x43, 0x0600_007f, Form::F3Round),
    i("fmsub.s", 0x47, 0x0600_007f, Form::F3Round),
    i("fnmsub.s", 0x4b, 0x0600_007f, Form::F3Round),
    i("fnmadd.s", 0x4f, 0x0600_007f, Form::F3Round),
    i("fmadd.d", 0x0200_0043, 0x0600_007f, Form::F3Round),
    i("fmsub.d", 0x0200_0047, 0x0600_007f, Form::F3Round),
    i("fnmsub.d", 0x0200_004b, 0x0600_007f, Form::F3Round),
    i("fnmadd.d", 0x0200_004f, 0x0600_007f, Form::F3Round),
    fp("fadd.s", 0, 0, 0, 0, RM, Form::F2Round),
    fp("fsub.s", 1, 0, 0, 0, RM, Form::F2Round),
    fp("fmul.s", 2, 0, 0, 0, RM, Form::F2Round),
    fp("fdiv.s", 3, 0, 0, 0, RM, Form::F2Round),
    fp("fsqrt.s", 11, 0, 0, 0, RM2, Form::F1Round),
    fp("fsgnj.s", 4, 0, 0, 0, F7, Form::F2),
    fp("fsgnjn.s", 4, 0, 0, 1, F7, Form::F2),
    fp("fsgnjx.s", 4, 0, 0, 2, F7, Form::F2),
    fp("fmin.s", 5, 0, 0, 0, F7, Form::F2),
    fp("fmax.s", 5, 0, 0, 1, F7, Form::F2),
    fp("fcvt.w.s", 24, 0, 0, 0, RM2, Form::FToIntRound),
    fp("fcvt.wu.s", 24, 0, 1, 0, RM2, Form::FToIntRound),
    fp("fcvt.l.s", 24, 0, 2, 0, RM2, Form::FToIntRound),
    fp("fcvt.lu.s", 24, 0, 3, 0, RM2, Form::FToIntRound),
    fp("fcvt.s.w", 26, 0, 0, 0, RM2, Form::IntToFRound),
    fp("fcvt.s.wu", 26, 0, 1, 0, RM2, Form::IntToFRound),
    fp("fcvt.s.l", 26, 0, 2, 0, RM2, Form::IntToFRound),
    fp("fcvt.s.lu", 26, 0, 3, 0, RM2, Form::IntToFRound),
    fp("fmv.x.w", 28, 0, 0, 0, F7R2, Form::FToInt),
    fp("fclass.s", 28, 0, 0, 1, F7R2, Form::FToInt),
    fp("fmv.w.x", 30, 0, 0, 0, F7R2, Form::IntToF),
    fp("feq.s", 20, 0, 0, 2, F7, Form::FCompare),
    fp("flt.s", 20, 0, 0, 1, F7, Form::FCompare),
    fp("fle.s", 20, 0, 0, 0, F7, Form::FCompare),
    fp("fadd.d", 0, 1, 0, 0, RM, Form::F2Round),
    fp("fsub.d", 1, 1, 0, 0, RM, Form::F2Round),
    fp("fmul.d", 2, 1, 0, 0, RM, Form::F2Round),
    fp("fdiv.d", 3, 1, 0, 0, RM, Form::F2Round),
    fp("fsqrt.d", 11, 1, 0, 0, RM2, Form::F1Round),
    fp("fsgnj.d", 4, 1, 0, 0, F7, Form::F2),
    fp("fsgnjn.d", 4, 1, 0, 1, F7, Form::F2),
    fp("fsgnjx.d", 4, 1, 0, 2, F7, Form::F2),
    fp("fmin.d", 5, 1, 0, 0, F7, Form::F2),
    fp("fmax.d", 5, 1, 0, 1, F7, Form::F2),
    fp("fcvt.s.d", 8, 0, 1, 0, RM2, Form::F1Round),
    fp("fcvt.d.s", 8, 1, 0, 0, RM2, Form::F1Round),
    fp("fcvt.w.d", 24, 1, 0, 0, RM2, Form::FToIntRound),
    fp("fcvt.wu.d", 24, 1, 1, 0, RM2, Form::FToIntRound),
    fp("fcvt.l.d", 24, 1, 2, 0, RM2, Form::FToIntRound),
    fp("fcvt.lu.d", 24, 1, 3, 0, RM2, Form::FToIntRound),
    fp("fcvt.d.w", 26, 1, 0, 0, RM2, Form::IntToFRound),
    fp("fcvt.d.wu", 26, 1, 1, 0, RM2, Form::IntToFRound),
    fp("fcvt.d.l", 26, 1, 2, 0, RM2, Form::IntToFRound),
    fp("fcvt.d.lu", 26, 1, 3, 0, RM2, Form::IntToFRound),
    fp("fmv.x.d", 28, 1, 0, 0, F7R2, Form::FToInt),
    fp("fclass.d", 28, 1, 0, 1, F7R2, Form::FToInt),
    fp("fmv.d.x", 30, 1, 0, 0, F7R2, Form::IntToF),
    fp("feq.d", 20, 1, 0, 2, F7, Form::FCompare),
    fp("flt.d", 20, 1, 0, 1, F7, Form::FCompare),
    fp("fle.d", 20, 1, 0, 0, F7, Form::FCompare),
    i("fence", 0x0000_000f, F3, Form::Fence),
    i("fence.i", 0x0000_100f, F3, Form::FenceI),
    i("csrrw", 0x1073, F3, Form::Csr),
    i("csrrs", 0x2073, F3, Form::Csr),
    i("csrrc", 0x3073, F3, Form::Csr),
    i("csrrwi", 0x5073, F3, Form::CsrI),
    i("csrrsi", 0x6073, F3, Form::CsrI),
    i("csrrci", 0x7073, F3, Form::CsrI),
    i("ecall", 0x0000_0073, u32::MAX, Form::System),
    i("ebreak", 0x0010_0073, u32::MAX, Form::System),
    i("sret", 0x1020_0073, u32::MAX, Form::System),
    i("mret", 0x3020_0073, u32::MAX, Form::System),
    i("wfi", 0x1050_0073, u32::MAX, Form::System),
    i("sfence.vma", 0x1200_0073, 0xfe00_7fff, Form::Sfence),
];

/// Operands of a 16-bit instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CForm {
    /// Computes in registers; any operands are allowed.
    Compute,
    /// rd', offset(rs1') of 4 or 8 bytes.
    Load(u8),
    /// rs2', offset(rs1').
    Store(u8),
    /// rd, offset(sp).
    LoadSp(u8),
    /// rs2, offset(sp).
    StoreSp(u8),
    /// Target.
    Jump,
    /// rs1', target.
    Branch,
    /// rs1.
    JumpRegister,
    /// None.
    Break,
}

/// A row of the table of 16-bit instructions.
#[derive(Clone, Copy, Debug)]
pub struct CInsn {
    /// Mnemonic.
    pub name: &'static str,
    /// Value of the fixed bits.
    pub bits: u16,
    /// Which bits are fixed.
    pub mask: u16,
    /// Form of the operands.
    pub form: CForm,
}

const fn c(name: &'static str, bits: u16, mask: u16, form: CForm) -> CInsn {
    CInsn { name, bits, mask, form }
}

/// All 16-bit instructions of RV64DC. If two rows match, the first one counts.
pub const SHORT: &[CInsn] = &[
    c("c.addi4spn", 0x0000, 0xe003, CForm::Compute),
    c("c.fld", 0x2000, 0xe003, CForm::Load(8)),
    c("c.lw", 0x4000, 0xe003, CForm::Load(4)),
    c("c.ld", 0x6000, 0xe003, CForm::Load(8)),
    c("c.fsd", 0xa000, 0xe003, CForm::Store(8)),
    c("c.sw", 0xc000, 0xe003, CForm::Store(4)),
    c("c.sd", 0xe000, 0xe003, CForm::Store(8)),
    c("c.nop", 0x0001, 0xef83, CForm::Compute),
    c("c.addi", 0x0001, 0xe003, CForm::Compute),
    c("c.addiw", 0x2001, 0xe003, CForm::Compute),
    c("c.li", 0x4001, 0xe003, CForm::Compute),
    c("c.addi16sp", 0x6101, 0xef83, CForm::Compute),
    c("c.lui", 0x6001, 0xe003, CForm::Compute),
    c("c.srli", 0x8001, 0xec03, CForm::Compute),
    c("c.srai", 0x8401, 0xec03, CForm::Compute),
    c("c.andi", 0x8801, 0xec03, CForm::Compute),
    c("c.sub", 0x8c01, 0xfc63, CForm::Compute),
    c("c.xor", 0x8c21, 0xfc63, CForm::Compute),
    c("c.or", 0x8c41, 0xfc63, CForm::Compute),
    c("c.and", 0x8c61, 0xfc63, CForm::Compute),
    c("c.subw", 0x9c01, 0xfc63, CForm::Compute),
    c("c.addw", 0x9c21, 0xfc63, CForm::Compute),
    c("c.j", 0xa001, 0xe003, CForm::Jump),
    c("c.beqz", 0xc001, 0xe003, CForm::Branch),
    c("c.bnez", 0xe001, 0xe003, CForm::Branch),
    c("c.slli", 0x0002, 0xe003, CForm::Compute),
    c("c.fldsp", 0x2002, 0xe003, CForm::LoadSp(8)),
    c("c.lwsp", 0x4002, 0xe003, CForm::LoadSp(4)),
    c("c.ldsp", 0x6002, 0xe003, CForm::LoadSp(8)),
    c("c.jr", 0x8002, 0xf07f, CForm::JumpRegister),
    c("c.mv", 0x8002, 0xf003, CForm::Compute),
    c("c.ebreak", 0x9002, 0xffff, CForm::Break),
    c("c.jalr", 0x9002, 0xf07f, CForm::JumpRegister),
    c("c.add", 0x9002, 0xf003, CForm::Compute),
    c("c.fsdsp", 0xa002, 0xe003, CForm::StoreSp(8)),
    c("c.swsp", 0xc002, 0xe003, CForm::StoreSp(4)),
    c("c.sdsp", 0xe002, 0xe003, CForm::StoreSp(8)),
];

/// The row of a 32-bit word, if it is an instruction. Words with a reserved rounding mode count as instructions.
pub fn find_wide(word: u32) -> Option<&'static Insn> {
    WIDE.iter().find(|i| word & i.mask == i.bits)
}

/// The row of a 16-bit word, if it is an instruction.
pub fn find_short(half: u16) -> Option<&'static CInsn> {
    let rd = half >> 7 & 31;
    let nzimm = half & 0x107c != 0;
    let row = SHORT.iter().find(|i| half & i.mask == i.bits)?;
    let reserved = match row.name {
        "c.addi4spn" => half & 0x1fe0 == 0,
        "c.addiw" | "c.lwsp" | "c.ldsp" => rd == 0,
        "c.addi16sp" | "c.lui" => !nzimm,
        "c.jr" => rd == 0,
        _ => false,
    };
    (!reserved).then_some(row)
}

/// The row with this mnemonic.
///
/// # Panics
/// There is none: only this crate passes mnemonics.
pub fn by_name(name: &str) -> &'static Insn {
    WIDE.iter().find(|i| i.name == name).unwrap_or_else(|| panic!("there is no instruction {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_do_not_overlap() {
        for (n, a) in WIDE.iter().enumerate() {
            assert_eq!(a.bits & !a.mask, 0, "{}", a.name);
            for b in &WIDE[n + 1..] {
                let common = a.mask & b.mask;
                assert_ne!(a.bits & common, b.bits & common, "{} and {} have common encodings", a.name, b.name);
            }
        }
    }

    #[test]
    fn known_words() {
        assert_eq!(find_wide(0x00a5_8533).map(|i| i.name), Some("add"));
        assert_eq!(find_wide(0x1af5_72d3).map(|i| i.name), Some("fdiv.d"));
        assert_eq!(find_wide(0).map(|i| i.name), None);
        assert_eq!(find_short(0x8082).map(|i| i.name), Some("c.jr"));
        assert_eq!(find_short(0).map(|i| i.name), None);
        assert_eq!(find_short(0x9002).map(|i| i.name), Some("c.ebreak"));
    }
}
