// SPDX-License-Identifier: Apache-2.0
//! Decodes the bits of an instruction into a [`Slot`].

use crate::compressed;
use crate::op::{F0, FpFn, Op, SINK, Slot};
use crate::page::PAGE_SLOTS;

/// Immediates of the markers, from the first to the last (spec/platform.md).
const MARKERS: std::ops::RangeInclusive<i32> = 0x7a1..=0x7a8;

/// Whether an instruction whose first 16 bits are `low` is 32 bits long.
pub const fn is_wide(low: u16) -> bool {
    low & 3 == 3
}

/// Decodes the instruction at slot `index` of its page. If it is a short one, the upper half of `raw` is zero.
pub fn decode(raw: u32, index: usize) -> Slot {
    let (wide, len) = if is_wide(raw as u16) { (Some(raw), 2) } else { (compressed::expand(raw as u16), 1) };
    wide.and_then(|w| Fields { w, len, index }.decode()).unwrap_or(Slot {
        op: Op::Illegal,
        rd: 0,
        rs1: 0,
        rs2: 0,
        imm: raw as i32,
    })
}

struct Fields {
    w: u32,
    len: u8,
    index: usize,
}

impl Fields {
    fn rd_field(&self) -> u8 {
        ((self.w >> 7) & 31) as u8
    }
    /// The integer destination. Writes to x0 go to the sink.
    fn rd(&self) -> u8 {
        match self.rd_field() {
            0 => SINK,
            n => n,
        }
    }
    fn rs1(&self) -> u8 {
        ((self.w >> 15) & 31) as u8
    }
    fn rs2(&self) -> u8 {
        ((self.w >> 20) & 31) as u8
    }
    fn funct3(&self) -> u32 {
        (self.w >> 12) & 7
    }
    fn funct7(&self) -> u32 {
        self.w >> 25
    }
    fn imm_i(&self) -> i32 {
        (self.w as i32) >> 20
    }
    fn imm_s(&self) -> i32 {
        ((self.w as i32) >> 25 << 5) | ((self.w >> 7) & 31) as i32
    }
    fn imm_b(&self) -> i32 {
        let w = self.w;
        ((w as i32) >> 31 << 12) | ((w << 4) & 0x800 | (w >> 20) & 0x7e0 | (w >> 7) & 0x1e) as i32
    }
    fn imm_j(&self) -> i32 {
        let w = self.w;
        ((w as i32) >> 31 << 20) | (w & 0xff000 | (w >> 9) & 0x800 | (w >> 20) & 0x7fe) as i32
    }

    fn r(&self, op: Op) -> Slot {
        Slot { op, rd: self.rd(), rs1: self.rs1(), rs2: self.rs2(), imm: i32::from(self.len) }
    }
    fn i(&self, op: Op, imm: i32) -> Slot {
        Slot { op, rd: self.rd(), rs1: self.rs1(), rs2: self.len, imm }
    }
    fn s(&self, op: Op, imm: i32) -> Slot {
        Slot { op, rd: self.len, rs1: self.rs1(), rs2: self.rs2(), imm }
    }
    fn u(&self, op: Op, imm: i32) -> Slot {
        Slot { op, rd: self.rd(), rs1: 0, rs2: self.len, imm }
    }
    fn plain(&self, op: Op) -> Slot {
        Slot { op, rd: self.rd(), rs1: self.rs1(), rs2: self.rs2(), imm: 0 }
    }

    /// Chooses `inside` for a target in the page (counted in slots), `outside` for any other target (in bytes).
    fn target(&self, inside: Op, outside: Op, offset: i32) -> (Op, i32) {
        let to = self.index as i64 + i64::from(offset / 2);
        if (0..PAGE_SLOTS as i64).contains(&to) { (inside, offset / 2) } else { (outside, offset) }
    }

    fn decode(&self) -> Option<Slot> {
        match self.w & 0x7f {
            0x03 => self.load(),
            0x07 => self.load_fp(),
            0x0f => match self.funct3() {
                0 => Some(self.plain(Op::Fence)),
                1 => Some(self.plain(Op::FenceI)),
                _ => None,
            },
            0x13 => self.op_imm(),
            0x17 => Some(self.u(Op::Auipc, (self.w & 0xffff_f000) as i32)),
            0x1b => self.op_imm_32(),
            0x23 => {
                let op = [Op::Sb, Op::Sh, Op::Sw, Op::Sd].get(self.funct3() as usize)?;
                Some(self.s(*op, self.imm_s()))
            }
            0x27 => {
                let op = match self.funct3() {
                    2 => Op::Fsw,
                    3 => Op::Fsd,
                    _ => return None,
                };
                Some(Slot { rs2: F0 + self.rs2(), ..self.s(op, self.imm_s()) })
            }
            0x2f => self.amo(),
            0x33 => self.op(),
            0x37 => Some(self.u(Op::Lui, (self.w & 0xffff_f000) as i32)),
            0x3b => self.op_32(),
            0x43 | 0x47 | 0x4b | 0x4f => self.fused(),
            0x53 => self.op_fp(),
            0x63 => self.branch(),
            0x67 if self.funct3() == 0 => Some(self.i(Op::Jalr, self.imm_i())),
            0x6f => {
                let (op, imm) = self.target(Op::JalIn, Op::JalOut, self.imm_j());
                Some(self.u(op, imm))
            }
            0x73 => self.system(),
            _ => None,
        }
    }

    fn load(&self) -> Option<Slot> {
        let ops = [Op::Lb, Op::Lh, Op::Lw, Op::Ld, Op::Lbu, Op::Lhu, Op::Lwu];
        Some(self.i(*ops.get(self.funct3() as usize)?, self.imm_i()))
    }

    fn load_fp(&self) -> Option<Slot> {
        let op = match self.funct3() {
            2 => Op::Flw,
            3 => Op::Fld,
            _ => return None,
        };
        Some(Slot { rd: F0 + self.rd_field(), ..self.i(op, self.imm_i()) })
    }

    fn op_imm(&self) -> Option<Slot> {
        let (imm, shamt) = (self.imm_i(), (self.imm_i() & 63));
        Some(match self.funct3() {
            0 if self.rs1() == 0 => self.i(Op::Li, imm),
            0 if imm == 0 => self.i(Op::Mv, 0),
            0 => self.i(Op::Addi, imm),
            1 if self.w >> 26 == 0 => self.i(Op::Slli, shamt),
            2 if self.rd_field() == 0 && self.rs1() == 0 && MARKERS.contains(&imm) => {
                Slot { imm, ..self.plain(Op::Marker) }
            }
            2 => self.i(Op::Slti, imm),
            3 => self.i(Op::Sltiu, imm),
            4 => self.i(Op::Xori, imm),
            5 if self.w >> 26 == 0 => self.i(Op::Srli, shamt),
            5 if self.w >> 26 == 0x10 => self.i(Op::Srai, shamt),
            6 => self.i(Op::Ori, imm),
            7 => self.i(Op::Andi, imm),
            _ => return None,
        })
    }

    fn op_imm_32(&self) -> Option<Slot> {
        let shamt = self.imm_i() & 31;
        Some(match (self.funct3(), self.funct7()) {
            (0, _) => self.i(Op::Addiw, self.imm_i()),
            (1, 0) => self.i(Op::Slliw, shamt),
            (5, 0) => self.i(Op::Srliw, shamt),
            (5, 0x20) => self.i(Op::Sraiw, shamt),
            _ => return None,
        })
    }

    fn op(&self) -> Option<Slot> {
        Some(match (self.funct7(), self.funct3()) {
            (0, 0) if self.rs1() == 0 => Slot { rs1: self.rs2(), ..self.i(Op::Mv, 0) },
            (0, 0) => self.r(Op::Add),
            (0x20, 0) => self.r(Op::Sub),
            (0, 1) => self.r(Op::Sll),
            (0, 2) => self.r(Op::Slt),
            (0, 3) => self.r(Op::Sltu),
            (0, 4) => self.r(Op::Xor),
            (0, 5) => self.r(Op::Srl),
            (0x20, 5) => self.r(Op::Sra),
            (0, 6) => self.r(Op::Or),
            (0, 7) => self.r(Op::And),
            (1, f) => {
                self.r([Op::Mul, Op::Mulh, Op::Mulhsu, Op::Mulhu, Op::Div, Op::Divu, Op::Rem, Op::Remu][f as usize])
            }
            _ => return None,
        })
    }

    fn op_32(&self) -> Option<Slot> {
        Some(match (self.funct7(), self.funct3()) {
            (0, 0) => self.r(Op::Addw),
            (0x20, 0) => self.r(Op::Subw),
            (0, 1) => self.r(Op::Sllw),
            (0, 5) => self.r(Op::Srlw),
            (0x20, 5) => self.r(Op::Sraw),
            (1, 0) => self.r(Op::Mulw),
            (1, 4) => self.r(Op::Divw),
            (1, 5) => self.r(Op::Divuw),
            (1, 6) => self.r(Op::Remw),
            (1, 7) => self.r(Op::Remuw),
            _ => return None,
        })
    }

    fn branch(&self) -> Option<Slot> {
        let (inside, outside) = match self.funct3() {
            0 => (Op::BeqIn, Op::BeqOut),
            1 => (Op::BneIn, Op::BneOut),
            4 => (Op::BltIn, Op::BltOut),
            5 => (Op::BgeIn, Op::BgeOut),
            6 => (Op::BltuIn, Op::BltuOut),
            7 => (Op::BgeuIn, Op::BgeuOut),
            _ => return None,
        };
        let (op, imm) = self.target(inside, outside, self.imm_b());
        Some(self.s(op, imm))
    }

    fn amo(&self) -> Option<Slot> {
        let size = self.funct3();
        if size != 2 && size != 3 {
            return None;
        }
        let (op, imm) = match self.w >> 27 {
            2 if self.rs2() == 0 => (Op::Lr, size),
            3 => (Op::Sc, size),
            f @ (0 | 1 | 4 | 8 | 12 | 16 | 20 | 24 | 28) => (Op::Amo, size | f << 8),
            _ => return None,
        };
        Some(Slot { imm: imm as i32, ..self.plain(op) })
    }

    fn system(&self) -> Option<Slot> {
        let funct3 = self.funct3();
        if funct3 & 3 != 0 {
            return Some(Slot { imm: (self.w >> 20 | funct3 << 12) as i32, ..self.plain(Op::Csr) });
        }
        Some(self.plain(match self.w {
            0x0000_0073 => Op::Ecall,
            0x0010_0073 => Op::Ebreak,
            0x1020_0073 => Op::Sret,
            0x3020_0073 => Op::Mret,
            0x1050_0073 => Op::Wfi,
            w if w & 0xfe00_7fff == 0x1200_0073 => Op::SfenceVma,
            _ => return None,
        }))
    }

    fn fp(&self, op: Op, f: FpFn, rd: u8, rs1: u8, rs2: u8, rs3: u8) -> Option<Slot> {
        let imm = i32::from(f as u8) | (self.funct3() as i32) << 8 | i32::from(rs3) << 16;
        Some(Slot { op, rd, rs1, rs2, imm })
    }

    fn fused(&self) -> Option<Slot> {
        use FpFn::*;
        let row = match (self.w >> 25) & 3 {
            0 => [MaddS, MsubS, NmsubS, NmaddS],
            1 => [MaddD, MsubD, NmsubD, NmaddD],
            _ => return None,
        };
        let f = row[((self.w >> 2) & 3) as usize];
        let rs3 = F0 + (self.w >> 27) as u8;
        if matches!(self.funct3(), 5 | 6) {
            return None;
        }
        self.fp(Op::FpFma, f, F0 + self.rd_field(), F0 + self.rs1(), F0 + self.rs2(), rs3)
    }

    fn op_fp(&self) -> Option<Slot> {
        use FpFn::*;
        let double = match self.funct7() & 3 {
            0 => false,
            1 => true,
            _ => return None,
        };
        fn pick<V>(double: bool, s: V, d: V) -> V {
            if double { d } else { s }
        }
        let (funct3, rs2) = (self.funct3(), self.rs2());
        let rounds = !matches!(funct3, 5 | 6);
        let (fd, f1, f2) = (F0 + self.rd_field(), F0 + self.rs1(), F0 + rs2);
        let arith = |op, s, d| self.fp(op, pick(double, s, d), fd, f1, f2, 0);
        match self.funct7() >> 2 {
            0x00 if rounds => arith(Op::FpAdd, AddS, AddD),
            0x01 if rounds => arith(Op::FpAdd, SubS, SubD),
            0x02 if rounds => arith(Op::FpMul, MulS, MulD),
            0x03 if rounds => arith(Op::FpDiv, DivS, DivD),
            0x0b if rounds && rs2 == 0 => arith(Op::FpSqrt, SqrtS, SqrtD),
            0x04 => {
                let row = pick(double, [SgnjS, SgnjnS, SgnjxS], [SgnjD, SgnjnD, SgnjxD]);
                self.fp(Op::FpMove, *row.get(funct3 as usize)?, fd, f1, f2, 0)
            }
            0x05 => {
                let row = pick(double, [MinS, MaxS], [MinD, MaxD]);
                self.fp(Op::FpMove, *row.get(funct3 as usize)?, fd, f1, f2, 0)
            }
            0x08 if rounds => match (double, rs2) {
                (false, 1) => self.fp(Op::FpConvert, CvtSD, fd, f1, f2, 0),
                (true, 0) => self.fp(Op::FpConvert, CvtDS, fd, f1, f2, 0),
                _ => None,
            },
            0x14 => {
                let row = pick(double, [LeS, LtS, EqS], [LeD, LtD, EqD]);
                self.fp(Op::FpMove, *row.get(funct3 as usize)?, self.rd(), f1, f2, 0)
            }
            0x18 if rounds => {
                let row = pick(double, [CvtWS, CvtWuS, CvtLS, CvtLuS], [CvtWD, CvtWuD, CvtLD, CvtLuD]);
                self.fp(Op::FpConvert, *row.get(rs2 as usize)?, self.rd(), f1, f2, 0)
            }
            0x1a if rounds => {
                let row = pick(double, [CvtSW, CvtSWu, CvtSL, CvtSLu], [CvtDW, CvtDWu, CvtDL, CvtDLu]);
                self.fp(Op::FpConvert, *row.get(rs2 as usize)?, fd, self.rs1(), f2, 0)
            }
            0x1c if rs2 == 0 => match funct3 {
                0 => self.fp(Op::FpMove, pick(double, MvXW, MvXD), self.rd(), f1, f2, 0),
                1 => self.fp(Op::FpMove, pick(double, ClassS, ClassD), self.rd(), f1, f2, 0),
                _ => None,
            },
            0x1e if rs2 == 0 && funct3 == 0 => self.fp(Op::FpMove, pick(double, MvWX, MvDX), fd, self.rs1(), f2, 0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_compressed_space_expands_to_legal_instructions_or_is_reserved() {
        // Number of reserved encodings by quadrant and funct3, as counted from the specification's tables.
        let mut reserved = std::collections::BTreeMap::new();
        for c in (0..=u16::MAX).filter(|&c| !is_wide(c)) {
            let slot = decode(u32::from(c), 0);
            match compressed::expand(c) {
                Some(w) => {
                    assert!(is_wide(w as u16));
                    assert_ne!(slot.op, Op::Illegal, "{c:#06x} -> {w:#010x}");
                }
                None => {
                    assert_eq!((slot.op, slot.imm), (Op::Illegal, i32::from(c)));
                    *reserved.entry((c & 3, c >> 13)).or_insert(0) += 1;
                }
            }
        }
        let want = [
            ((0, 0), 8),    // c.addi4spn with zero
            ((0, 4), 2048), // Zcb
            ((1, 1), 64),   // c.addiw to x0
            ((1, 3), 32),   // c.lui, c.addi16sp with zero
            ((1, 4), 128),  // two unused rows of the register operations
            ((2, 2), 64),   // c.lwsp to x0
            ((2, 3), 64),   // c.ldsp to x0
            ((2, 4), 1),    // c.jr x0
        ];
        assert_eq!(reserved.into_iter().collect::<Vec<_>>(), want.map(|((q, f), n)| ((q, f), n)));
    }

    #[test]
    fn compressed_samples_match_the_assembler() {
        // Pairs of a compressed and a full instruction, as riscv64-linux-gnu-as assembles them.
        for (c, w) in [
            (0x1141, 0xff01_0113), // addi sp, sp, -16
            (0xe406, 0x0011_3423), // sd ra, 8(sp)
            (0x60a2, 0x0081_3083), // ld ra, 8(sp)
            (0x8082, 0x0000_8067), // ret
            (0x9002, 0x0010_0073), // ebreak
            (0x6505, 0x0000_1537), // lui a0, 1
            (0x715d, 0xfb01_0113), // addi sp, sp, -80
            (0x08a8, 0x0581_0513), // addi a0, sp, 88
            (0xa001, 0x0000_006f), // j .
            (0xdfe5, 0xfe07_8ce3), // beqz a5, . - 8
            (0x8f95, 0x40d7_87b3), // sub a5, a5, a3
            (0x97ba, 0x00e7_87b3), // add a5, a5, a4
            (0x4118, 0x0005_2703), // lw a4, 0(a0)
        ] {
            assert_eq!(compressed::expand(c), Some(w), "{c:#06x}");
        }
    }

    #[test]
    fn every_word_decodes_within_the_register_file() {
        let mut w = 0x2545_f491u32;
        for _ in 0..2_000_000 {
            w ^= w << 13;
            w ^= w >> 17;
            w ^= w << 5;
            let s = decode(w | 3, (w >> 5) as usize % PAGE_SLOTS);
            assert!(s.rd < F0 + 32 && s.rs1 < F0 + 32 && s.rs2 < F0 + 32, "{w:#x}");
            assert_ne!(s.op, Op::Undecoded);
        }
    }

    #[test]
    fn branches_know_whether_they_stay_in_the_page() {
        let beq_minus_8 = 0xfe00_0ce3;
        assert_eq!(decode(beq_minus_8, 4), Slot { op: Op::BeqIn, rd: 2, rs1: 0, rs2: 0, imm: -4 });
        assert_eq!(decode(beq_minus_8, 3), Slot { op: Op::BeqOut, rd: 2, rs1: 0, rs2: 0, imm: -8 });
    }
}
