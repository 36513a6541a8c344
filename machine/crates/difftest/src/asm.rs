// SPDX-License-Identifier: Apache-2.0
//! A small assembler with mnemonics, labels and constants.

use crate::insn::{Form, by_name};

/// A place in the code, whether bound yet or not.
#[derive(Clone, Copy, Debug)]
pub struct Label(usize);

enum Fix {
    Branch,
    Jal,
    CJump,
    CBranch,
    /// An auipc followed by an addi.
    Address,
}

/// Code being written for a known address.
pub struct Asm {
    base: u64,
    code: Vec<u8>,
    labels: Vec<Option<usize>>,
    fixes: Vec<(usize, Label, Fix)>,
}

/// Encodes a branch offset. Branch and jump formats scatter the bits of their offsets.
fn branch_bits(offset: i64) -> u32 {
    let o = offset as u32;
    (o & 0x1000) << 19 | (o & 0x7e0) << 20 | (o & 0x1e) << 7 | (o & 0x800) >> 4
}

fn jal_bits(offset: i64) -> u32 {
    let o = offset as u32;
    (o & 0x10_0000) << 11 | (o & 0x7fe) << 20 | (o & 0x800) << 9 | o & 0xf_f000
}

fn cjump_bits(offset: i64) -> u16 {
    let o = offset as u16;
    let bit = |from: u32, to: u32| (o >> from & 1) << to;
    bit(11, 12)
        | bit(4, 11)
        | bit(9, 10)
        | bit(8, 9)
        | bit(10, 8)
        | bit(6, 7)
        | bit(7, 6)
        | (o >> 1 & 7) << 3
        | bit(5, 2)
}

fn cbranch_bits(offset: i64) -> u16 {
    let o = offset as u16;
    (o >> 8 & 1) << 12 | (o >> 3 & 3) << 10 | (o >> 6 & 3) << 5 | (o >> 1 & 3) << 3 | (o >> 5 & 1) << 2
}

impl Asm {
    /// Starts code for address `base`.
    pub fn new(base: u64) -> Asm {
        Asm { base, code: Vec::new(), labels: Vec::new(), fixes: Vec::new() }
    }

    /// Address of the next instruction.
    pub fn here(&self) -> u64 {
        self.base + self.code.len() as u64
    }

    /// Creates a label that is bound later.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Binds a label to the current address.
    pub fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// Creates a label bound to the current address.
    pub fn bound(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    /// Address of a bound label.
    pub fn address(&self, label: Label) -> u64 {
        self.base + self.labels[label.0].expect("every label must be bound") as u64
    }

    /// Adds a 32-bit word.
    pub fn word(&mut self, word: u32) {
        self.code.extend(word.to_le_bytes());
    }

    /// Adds a 16-bit word.
    pub fn half(&mut self, half: u16) {
        self.code.extend(half.to_le_bytes());
    }

    /// Pads with `c.nop` up to an address that is a multiple of `n`.
    pub fn align(&mut self, n: usize) {
        while !self.here().is_multiple_of(n as u64) {
            self.half(1);
        }
    }

    /// Adds an instruction with its rd, rs1 and rs2 fields, and an immediate if its form has one.
    pub fn op(&mut self, name: &str, rd: u8, rs1: u8, rs2: u8, imm: i64) {
        let row = by_name(name);
        let (rd, rs1, rs2, imm) = (u32::from(rd) << 7, u32::from(rs1) << 15, u32::from(rs2) << 20, imm as u32);
        let operands = match row.form {
            Form::R | Form::Amo | Form::Sc | Form::F2 | Form::F2Round | Form::FCompare => rd | rs1 | rs2,
            Form::I | Form::Load | Form::LoadFp | Form::Jalr | Form::Csr | Form::CsrI => rd | rs1 | imm << 20,
            Form::Shift64 => rd | rs1 | (imm & 63) << 20,
            Form::Shift32 => rd | rs1 | (imm & 31) << 20,
            Form::Store | Form::StoreFp => rs1 | rs2 | (imm & 31) << 7 | (imm >> 5 & 0x7f) << 25,
            Form::U => rd | imm << 12,
            Form::F1Round | Form::FToInt | Form::FToIntRound | Form::IntToF | Form::IntToFRound | Form::Lr => rd | rs1,
            Form::Sfence => rs1 | rs2,
            Form::F3Round => rd | rs1 | rs2 | imm << 27,
            Form::Branch | Form::Jal => unreachable!("{name} takes a label"),
            Form::Fence | Form::FenceI | Form::System => 0,
        };
        self.word(row.bits | operands);
    }

    /// Adds an instruction with rd, rs1 and rs2.
    pub fn r(&mut self, name: &str, rd: u8, rs1: u8, rs2: u8) {
        self.op(name, rd, rs1, rs2, 0);
    }

    /// Adds an instruction with rd, rs1 and an immediate. Loads and `jalr` are such instructions, too.
    pub fn i(&mut self, name: &str, rd: u8, rs1: u8, imm: i64) {
        self.op(name, rd, rs1, 0, imm);
    }

    /// Adds a store of rs2 to `imm(rs1)`.
    pub fn s(&mut self, name: &str, rs2: u8, rs1: u8, imm: i64) {
        self.op(name, 0, rs1, rs2, imm);
    }

    /// Adds a CSR instruction; in the immediate forms `rs1` is the immediate.
    pub fn csr(&mut self, name: &str, rd: u8, csr: u16, rs1: u8) {
        self.op(name, rd, rs1, 0, i64::from(csr));
    }

    /// Adds an instruction without operands.
    pub fn plain(&mut self, name: &str) {
        self.op(name, 0, 0, 0, 0);
    }

    /// Adds a conditional branch.
    pub fn b(&mut self, name: &str, rs1: u8, rs2: u8, to: Label) {
        self.fixes.push((self.code.len(), to, Fix::Branch));
        self.word(by_name(name).bits | u32::from(rs1) << 15 | u32::from(rs2) << 20);
    }

    /// Adds `jal rd, to`.
    pub fn jal(&mut self, rd: u8, to: Label) {
        self.fixes.push((self.code.len(), to, Fix::Jal));
        self.word(by_name("jal").bits | u32::from(rd) << 7);
    }

    /// Adds a jump.
    pub fn j(&mut self, to: Label) {
        self.jal(0, to);
    }

    /// Adds `c.j to`.
    pub fn cj(&mut self, to: Label) {
        self.fixes.push((self.code.len(), to, Fix::CJump));
        self.half(0xa001);
    }

    /// Adds `c.beqz` or `c.bnez` of a register from x8 to x15.
    pub fn cb(&mut self, equal: bool, rs1: u8, to: Label) {
        self.fixes.push((self.code.len(), to, Fix::CBranch));
        self.half(if equal { 0xc001 } else { 0xe001 } | u16::from(rs1 - 8) << 7);
    }

    /// Loads a 64-bit constant.
    pub fn li(&mut self, rd: u8, value: u64) {
        let v = value as i64;
        if (-2048..2048).contains(&v) {
            return self.i("addi", rd, 0, v);
        }
        let low = v << 52 >> 52;
        if v == i64::from(v as i32) {
            // The upper part is rounded so that adding the sign-extended lower part gives the value; addiw wraps at 32 bits.
            self.op("lui", rd, 0, 0, (v - low) >> 12);
            return self.i("addiw", rd, rd, low);
        }
        let upper = v.wrapping_sub(low);
        let shift = upper.trailing_zeros();
        self.li(rd, (upper >> shift) as u64);
        self.i("slli", rd, rd, i64::from(shift));
        if low != 0 {
            self.i("addi", rd, rd, low);
        }
    }

    /// Loads the address of a label, relative to pc.
    pub fn la(&mut self, rd: u8, to: Label) {
        self.fixes.push((self.code.len(), to, Fix::Address));
        self.op("auipc", rd, 0, 0, 0);
        self.i("addi", rd, rd, 0);
    }

    /// Returns the code, with all jumps resolved.
    ///
    /// # Panics
    /// A label is unbound or too far away, which is a mistake in this crate.
    pub fn finish(mut self) -> Vec<u8> {
        for (at, label, fix) in std::mem::take(&mut self.fixes) {
            let target = self.labels[label.0].expect("every label must be bound") as i64;
            let offset = target - at as i64;
            let short = u16::from_le_bytes([self.code[at], self.code[at + 1]]);
            if let Fix::CJump | Fix::CBranch = fix {
                let (reach, bits) = match fix {
                    Fix::CJump => (2048, cjump_bits(offset)),
                    _ => (256, cbranch_bits(offset)),
                };
                assert!((-reach..reach).contains(&offset), "a jump of {offset} bytes is too far");
                self.code[at..at + 2].copy_from_slice(&(short | bits).to_le_bytes());
                continue;
            }
            if let Fix::Address = fix {
                let upper = (offset + 0x800) >> 12;
                self.patch(at, (upper as u32) << 12);
                self.patch(at + 4, ((offset - (upper << 12)) as u32) << 20);
                continue;
            }
            let (reach, bits) = match fix {
                Fix::Branch => (4096, branch_bits(offset)),
                _ => (1 << 20, jal_bits(offset)),
            };
            assert!((-reach..reach).contains(&offset), "a jump of {offset} bytes is too far");
            self.patch(at, bits);
        }
        self.code
    }

    fn patch(&mut self, at: usize, bits: u32) {
        let word = u32::from_le_bytes(self.code[at..at + 4].try_into().expect("four bytes"));
        self.code[at..at + 4].copy_from_slice(&(word | bits).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executes the code of `li` and returns the constant.
    fn run_li(code: &[u8]) -> u64 {
        let mut x: u64 = 0;
        for w in code.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())) {
            let imm = i64::from(w as i32 >> 20);
            let has_source = w >> 15 & 31 != 0;
            x = match (w & 0x7f, w >> 12 & 7) {
                (0x37, _) => i64::from((w & 0xffff_f000) as i32) as u64,
                (0x1b, 0) => i64::from((x as i32).wrapping_add(imm as i32)) as u64,
                (0x13, 1) => x << (w >> 20 & 63),
                (0x13, 0) => if has_source { x } else { 0 }.wrapping_add(imm as u64),
                other => panic!("{other:?}"),
            };
        }
        x
    }

    #[test]
    fn constants() {
        for v in [
            0,
            1,
            2047,
            2048,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            u64::MAX,
            1 << 63,
            0x8100_0800,
            0x1234_5678_9abc_def0,
        ] {
            let mut a = Asm::new(0);
            a.li(5, v);
            assert_eq!(run_li(&a.finish()), v, "{v:#x}");
        }
    }
}
