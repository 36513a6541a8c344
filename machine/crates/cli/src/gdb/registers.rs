// SPDX-License-Identifier: Apache-2.0
//! GDB's register numbers for RV64 (gdb/riscv-tdep.h): 0 to 31 are x0 to x31, 32 is pc, 33 to 64 are f0 to f31, 65 to 4160 are
//! the CSRs in the order of their addresses, and 4161 is the privilege mode.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::sync::LazyLock;

use gdbstub::arch::{Arch, RegId, Registers};
use trapless_machine::Register;

const PC: usize = 32;
const F: usize = 33;
const CSR: usize = 65;
const MODE: usize = CSR + 4096;

/// Names and numbers of the CSRs that GDB shows, except those of the floating-point unit, which belong to another feature of the
/// target description.
const CSRS: &[(&str, u16)] = &[
    ("sstatus", 0x100),
    ("sie", 0x104),
    ("stvec", 0x105),
    ("scounteren", 0x106),
    ("sscratch", 0x140),
    ("sepc", 0x141),
    ("scause", 0x142),
    ("stval", 0x143),
    ("sip", 0x144),
    ("satp", 0x180),
    ("mstatus", 0x300),
    ("medeleg", 0x302),
    ("mideleg", 0x303),
    ("mie", 0x304),
    ("mtvec", 0x305),
    ("mscratch", 0x340),
    ("mepc", 0x341),
    ("mcause", 0x342),
    ("mtval", 0x343),
    ("mip", 0x344),
    ("cycle", 0xc00),
    ("mhartid", 0xf14),
];
const FP_CSRS: &[(&str, u16)] = &[("fflags", 1), ("frm", 2), ("fcsr", 3)];

/// The architecture RV64GC.
pub enum Rv64 {}

impl Arch for Rv64 {
    type Usize = u64;
    type Registers = Core;
    type BreakpointKind = usize;
    type RegId = Id;

    fn target_description_xml() -> Option<&'static str> {
        static XML: LazyLock<String> = LazyLock::new(description);
        Some(&XML)
    }
}

fn description() -> String {
    let mut xml =
        String::from("<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">");
    xml += "<architecture>riscv:rv64</architecture>";
    let mut feature = |name: &str, registers: Vec<(String, u32, usize, &str)>| {
        // Writing to a string cannot fail.
        let _ = write!(xml, "<feature name=\"org.gnu.gdb.riscv.{name}\">");
        for (name, bits, number, kind) in registers {
            let _ = write!(xml, "<reg name=\"{name}\" bitsize=\"{bits}\" regnum=\"{number}\" type=\"{kind}\"/>");
        }
        xml += "</feature>";
    };
    let csr = |&(name, number): &(&str, u16)| (name.to_owned(), 64, CSR + usize::from(number), "int");
    let x = |n: usize| (format!("x{n}"), 64, n, if matches!(n, 2..=4 | 8) { "data_ptr" } else { "int" });
    feature("cpu", (0..32).map(x).chain([("pc".to_owned(), 64, PC, "code_ptr")]).collect());
    let f = |n: usize| (format!("f{n}"), 64, F + n, "ieee_double");
    feature("fpu", (0..32).map(f).chain(FP_CSRS.iter().map(csr).map(|(n, _, at, t)| (n, 32, at, t))).collect());
    feature("csr", CSRS.iter().map(csr).collect());
    feature("virtual", vec![("priv".to_owned(), 64, MODE, "int")]);
    xml += "</target>";
    xml
}

/// The registers that GDB reads at once: x0 to x31 and pc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Core {
    pub x: [u64; 32],
    pub pc: u64,
}

impl Registers for Core {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        for value in self.x.iter().chain([&self.pc]) {
            value.to_le_bytes().into_iter().for_each(|b| write_byte(Some(b)));
        }
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let (words, []) = bytes.as_chunks() else { return Err(()) };
        if words.len() < self.x.len() + 1 {
            return Err(());
        }
        let mut words = words.iter().map(|w| u64::from_le_bytes(*w));
        self.x.iter_mut().chain([&mut self.pc]).zip(&mut words).for_each(|(to, from)| *to = from);
        Ok(())
    }
}

/// A register, by GDB's number.
#[derive(Clone, Copy, Debug)]
pub struct Id {
    pub register: Register,
    /// Size in bytes.
    pub size: usize,
}

impl RegId for Id {
    fn from_raw_id(id: usize) -> Option<(Id, Option<NonZeroUsize>)> {
        let known = |list: &[(&str, u16)], n: usize| list.iter().any(|(_, csr)| usize::from(*csr) == n);
        let (register, size) = match id {
            0..PC => (Register::X(id as u8), 8),
            PC => (Register::Pc, 8),
            F..CSR => (Register::F((id - F) as u8), 8),
            MODE => (Register::Mode, 8),
            CSR..MODE if known(CSRS, id - CSR) => (Register::Csr((id - CSR) as u16), 8),
            CSR..MODE if known(FP_CSRS, id - CSR) => (Register::Csr((id - CSR) as u16), 4),
            _ => return None,
        };
        Some((Id { register, size }, NonZeroUsize::new(size)))
    }
}
