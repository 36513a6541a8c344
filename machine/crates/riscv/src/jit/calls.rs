// SPDX-License-Identifier: Apache-2.0
//! Functions that translated code calls, for instructions that are too long for templates and too frequent for an exit.
//!
//! Each either executes the whole instruction of a slot and returns true, or returns false and leaves it to the interpreter.

use crate::Hart;
use crate::atomic::combine;
use crate::bugs::{self, Bug};
use crate::csr::{number, status};
use crate::entry::PAGE_MASK;
use crate::lines::LINE_MASK;
use crate::op::{Op, Slot};

/// A function that translated code calls; the slot is given as its bytes.
pub type Call = extern "sysv64" fn(hart: *mut Hart, slot: u64) -> bool;

/// Packs the fields of a slot into a number.
pub fn pack(s: Slot) -> u64 {
    let imm = s.imm.to_le_bytes();
    u64::from_le_bytes([s.op as u8, s.rd, s.rs1, s.rs2, imm[0], imm[1], imm[2], imm[3]])
}

fn unpack(op: Op, slot: u64) -> Slot {
    let b = slot.to_le_bytes();
    Slot { op, rd: b[1], rs1: b[2], rs2: b[3], imm: i32::from_le_bytes([b[4], b[5], b[6], b[7]]) }
}

macro_rules! call {
    ($(#[$doc:meta])* $name:ident, $op:expr, $does:expr) => {
        $(#[$doc])*
        pub extern "sysv64" fn $name(hart: *mut Hart, slot: u64) -> bool {
            // SAFETY: translated code passes the hart that runs it. The caller of `enter` has borrowed the hart exclusively.
            let hart = unsafe { &mut *hart };
            $does(hart, unpack($op, slot))
        }
    };
}

// The operation only decides the price, which is already paid.
call!(
    /// A floating-point computation; false if it is illegal.
    floating_point, Op::FpMove, |hart: &mut Hart, s| hart.fp_execute(s)
);
call!(
    /// An access to a CSR of supervisor mode that has an effect on the hart only.
    csr, Op::Csr, control
);
call!(
    /// LR on a page that the data entries contain.
    load_reserved, Op::Lr, atomic
);
call!(
    /// SC on a page that the data entries contain.
    store_conditional, Op::Sc, atomic
);
call!(
    /// AMO on a page that the data entries contain.
    amo, Op::Amo, atomic
);

fn control(hart: &mut Hart, s: Slot) -> bool {
    let n = (s.imm & 0xfff) as u16;
    let funct3 = s.imm >> 12;
    let source = if funct3 & 4 != 0 { u64::from(s.rs1) } else { hart.regs[s.rs1 as usize] };
    let writes = funct3 & 3 == 1 || s.rs1 != 0;
    if !hart.csr.accessible(n, hart.privilege, writes) {
        return false;
    }
    let context = hart.csr_context();
    let Some(old) = hart.csr.read(n, &context) else { return false };
    if writes {
        let before = hart.csr.mstatus;
        let new = match funct3 & 3 {
            1 => source,
            2 => old | source,
            _ => old & !source,
        };
        hart.csr.write(n, new, &context);
        if n == number::SSTATUS {
            hart.refresh();
            if (before ^ hart.csr.mstatus) & status::MXR != 0 || hart.interrupt_pending_enabled() {
                hart.csr.mstatus = before;
                hart.refresh();
                return false;
            }
        }
    }
    hart.regs[s.rd as usize] = old;
    true
}

fn atomic(hart: &mut Hart, s: Slot) -> bool {
    let va = hart.regs[s.rs1 as usize];
    let size = 1u64 << (s.imm & 3);
    let (entry, mask) = if hart.detailed {
        (hart.tlb.lines.entry(hart.data_set, va), LINE_MASK)
    } else {
        (hart.tlb.data_entry(hart.data_set, va), PAGE_MASK)
    };
    let tag = if s.op == Op::Lr { entry.read } else { entry.write };
    if va & (mask | (size - 1)) != tag {
        return false;
    }
    let pa = entry.pa_size & PAGE_MASK | va & !PAGE_MASK;
    let host = va.wrapping_add(entry.addend);
    let b = hart.regs[s.rs2 as usize];
    // SAFETY: the entry maps this page to host memory of guest RAM, which outlives the run, for this kind of access; the
    // comparison above has checked the page and the alignment.
    let old = unsafe { if size == 4 { (host as *const i32).read() as u64 } else { (host as *const u64).read() } };
    let write = |v: u64| {
        // SAFETY: as above; pages that hold code never have a write tag.
        unsafe { if size == 4 { (host as *mut u32).write(v as u32) } else { (host as *mut u64).write(v) } }
    };
    hart.regs[s.rd as usize] = match s.op {
        Op::Lr => {
            hart.reservation = Some(pa);
            hart.reserved_at = hart.local_now().0;
            old
        }
        Op::Sc => {
            let held = hart.reservation.take() == Some(pa) || bugs::has(Bug::ScAlways);
            if held {
                write(b);
            }
            u64::from(!held)
        }
        _ => {
            write(combine(s, old, b));
            old
        }
    };
    true
}
