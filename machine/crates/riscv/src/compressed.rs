// SPDX-License-Identifier: Apache-2.0
//! RV64C: expands 16-bit instructions into the 32-bit instructions that they abbreviate.

/// Moves bits `[hi:lo]` of `c` to the bits from `to` upwards.
const fn field(c: u32, hi: u32, lo: u32, to: u32) -> u32 {
    ((c >> lo) & ((1 << (hi - lo + 1)) - 1)) << to
}

/// Sign-extends the low `bits` of `v`.
const fn sext(v: u32, bits: u32) -> i32 {
    ((v << (32 - bits)) as i32) >> (32 - bits)
}

const OP_IMM: u32 = 0x13;
const OP_IMM_32: u32 = 0x1b;
const OP: u32 = 0x33;
const OP_32: u32 = 0x3b;
const LOAD: u32 = 0x03;
const LOAD_FP: u32 = 0x07;
const STORE: u32 = 0x23;
const STORE_FP: u32 = 0x27;
const EBREAK: u32 = 0x0010_0073;

const fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    ((imm as u32) << 20) | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

const fn r_type(opcode: u32, funct3: u32, funct7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

const fn s_type(opcode: u32, funct3: u32, rs1: u32, rs2: u32, imm: u32) -> u32 {
    (imm >> 5) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (imm & 0x1f) << 7 | opcode
}

const fn b_type(funct3: u32, rs1: u32, imm: i32) -> u32 {
    let i = imm as u32;
    field(i, 12, 12, 31)
        | field(i, 10, 5, 25)
        | rs1 << 15
        | funct3 << 12
        | field(i, 4, 1, 8)
        | field(i, 11, 11, 7)
        | 0x63
}

const fn jal(rd: u32, imm: i32) -> u32 {
    let i = imm as u32;
    field(i, 20, 20, 31) | field(i, 10, 1, 21) | field(i, 11, 11, 20) | field(i, 19, 12, 12) | rd << 7 | 0x6f
}

/// Returns the 32-bit instruction that `c` abbreviates; `None` if `c` is reserved.
pub fn expand(c: u16) -> Option<u32> {
    let c = u32::from(c);
    // rd and rs2 can name any register; rd3 and rs1p are limited to x8 to x15.
    let (rd, rs2) = ((c >> 7) & 31, (c >> 2) & 31);
    let (rd3, rs1p) = (((c >> 2) & 7) + 8, ((c >> 7) & 7) + 8);
    let imm6 = sext(field(c, 12, 12, 5) | field(c, 6, 2, 0), 6);
    let shamt = field(c, 12, 12, 5) | field(c, 6, 2, 0);
    let off_w = field(c, 12, 10, 3) | field(c, 6, 6, 2) | field(c, 5, 5, 6);
    let off_d = field(c, 12, 10, 3) | field(c, 6, 5, 6);
    let lwsp = field(c, 12, 12, 5) | field(c, 6, 4, 2) | field(c, 3, 2, 6);
    let ldsp = field(c, 12, 12, 5) | field(c, 6, 5, 3) | field(c, 4, 2, 6);
    let swsp = field(c, 12, 9, 2) | field(c, 8, 7, 6);
    let sdsp = field(c, 12, 10, 3) | field(c, 9, 7, 6);
    Some(match (c & 3, c >> 13) {
        (0, 0) => {
            let imm = field(c, 12, 11, 4) | field(c, 10, 7, 6) | field(c, 6, 6, 2) | field(c, 5, 5, 3);
            if imm == 0 {
                return None;
            }
            i_type(OP_IMM, 0, rd3, 2, imm as i32)
        }
        (0, 1) => i_type(LOAD_FP, 3, rd3, rs1p, off_d as i32),
        (0, 2) => i_type(LOAD, 2, rd3, rs1p, off_w as i32),
        (0, 3) => i_type(LOAD, 3, rd3, rs1p, off_d as i32),
        (0, 5) => s_type(STORE_FP, 3, rs1p, rd3, off_d),
        (0, 6) => s_type(STORE, 2, rs1p, rd3, off_w),
        (0, 7) => s_type(STORE, 3, rs1p, rd3, off_d),
        (1, 0) => i_type(OP_IMM, 0, rd, rd, imm6),
        (1, 1) if rd != 0 => i_type(OP_IMM_32, 0, rd, rd, imm6),
        (1, 2) => i_type(OP_IMM, 0, rd, 0, imm6),
        (1, 3) if imm6 == 0 => return None,
        (1, 3) if rd == 2 => {
            let imm =
                field(c, 12, 12, 9) | field(c, 6, 6, 4) | field(c, 5, 5, 6) | field(c, 4, 3, 7) | field(c, 2, 2, 5);
            i_type(OP_IMM, 0, 2, 2, sext(imm, 10))
        }
        (1, 3) => (imm6 as u32) << 12 | rd << 7 | 0x37,
        (1, 4) => match (c >> 10) & 3 {
            0 => i_type(OP_IMM, 5, rs1p, rs1p, shamt as i32),
            1 => i_type(OP_IMM, 5, rs1p, rs1p, (shamt | 0x400) as i32),
            2 => i_type(OP_IMM, 7, rs1p, rs1p, imm6),
            _ => match ((c >> 12) & 1, (c >> 5) & 3) {
                (0, 0) => r_type(OP, 0, 0x20, rs1p, rs1p, rd3),
                (0, 1) => r_type(OP, 4, 0, rs1p, rs1p, rd3),
                (0, 2) => r_type(OP, 6, 0, rs1p, rs1p, rd3),
                (0, 3) => r_type(OP, 7, 0, rs1p, rs1p, rd3),
                (1, 0) => r_type(OP_32, 0, 0x20, rs1p, rs1p, rd3),
                (1, 1) => r_type(OP_32, 0, 0, rs1p, rs1p, rd3),
                _ => return None,
            },
        },
        (1, 5) => {
            let imm = field(c, 12, 12, 11)
                | field(c, 11, 11, 4)
                | field(c, 10, 9, 8)
                | field(c, 8, 8, 10)
                | field(c, 7, 7, 6)
                | field(c, 6, 6, 7)
                | field(c, 5, 3, 1)
                | field(c, 2, 2, 5);
            jal(0, sext(imm, 12))
        }
        (1, f @ (6 | 7)) => {
            let imm =
                field(c, 12, 12, 8) | field(c, 11, 10, 3) | field(c, 6, 5, 6) | field(c, 4, 3, 1) | field(c, 2, 2, 5);
            b_type(f & 1, rs1p, sext(imm, 9))
        }
        (2, 0) => i_type(OP_IMM, 1, rd, rd, shamt as i32),
        (2, 1) => i_type(LOAD_FP, 3, rd, 2, ldsp as i32),
        (2, 2) if rd != 0 => i_type(LOAD, 2, rd, 2, lwsp as i32),
        (2, 3) if rd != 0 => i_type(LOAD, 3, rd, 2, ldsp as i32),
        (2, 4) => match ((c >> 12) & 1, rd, rs2) {
            (0, 0, 0) => return None,
            (0, _, 0) => i_type(0x67, 0, 0, rd, 0),
            (0, _, _) => r_type(OP, 0, 0, rd, 0, rs2),
            (_, 0, 0) => EBREAK,
            (_, _, 0) => i_type(0x67, 0, 1, rd, 0),
            _ => r_type(OP, 0, 0, rd, rd, rs2),
        },
        (2, 5) => s_type(STORE_FP, 3, 2, rs2, sdsp),
        (2, 6) => s_type(STORE, 2, 2, rs2, swsp),
        (2, 7) => s_type(STORE, 3, 2, rs2, sdsp),
        _ => return None,
    })
}
