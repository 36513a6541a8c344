// SPDX-License-Identifier: Apache-2.0
//! Floating-point instructions other than loads and stores.

use crate::Hart;
use crate::fp::{boxed, double, narrow, single, unboxed, widen};
use crate::op::{F0, FpFn, Slot};

/// Value of the rounding-mode field that selects the mode in `frm`.
const DYNAMIC: u8 = 7;

/// Whether `f` rounds as its rounding-mode field says; in other operations the field selects the function.
fn rounds(f: FpFn) -> bool {
    use FpFn::*;
    !matches!(
        f,
        SgnjS
            | SgnjnS
            | SgnjxS
            | MinS
            | MaxS
            | EqS
            | LtS
            | LeS
            | ClassS
            | SgnjD
            | SgnjnD
            | SgnjxD
            | MinD
            | MaxD
            | EqD
            | LtD
            | LeD
            | ClassD
            | MvXW
            | MvWX
            | MvXD
            | MvDX
    )
}

impl Hart {
    /// Executes a floating-point computation; returns false if its rounding mode is illegal.
    #[inline(never)]
    pub(crate) fn fp_execute(&mut self, s: Slot) -> bool {
        use FpFn::*;
        let f = FpFn::from_imm(s.imm);
        let mut rm = (s.imm >> 8 & 7) as u8;
        if rounds(f) {
            if rm == DYNAMIC {
                rm = self.csr.frm;
            }
            if rm > 4 {
                return false;
            }
        }
        let (a, b) = (self.regs[s.rs1 as usize], self.regs[s.rs2 as usize]);
        let c = self.regs[(s.imm >> 16 & 0xff) as usize];
        let before = self.csr.fflags;
        let mut flags = before;
        let fl = &mut flags;
        let (sa, sb, sc) = (unboxed(a), unboxed(b), unboxed(c));
        let value = match f {
            AddS => boxed(single::add(sa, sb, rm, fl)),
            SubS => boxed(single::sub(sa, sb, rm, fl)),
            MulS => boxed(single::mul(sa, sb, rm, fl)),
            DivS => boxed(single::div(sa, sb, rm, fl)),
            SqrtS => boxed(single::sqrt(sa, rm, fl)),
            MaddS => boxed(single::fma(sa, sb, sc, rm, fl)),
            MsubS => boxed(single::fma(sa, sb, single::negate(sc), rm, fl)),
            NmsubS => boxed(single::fma(single::negate(sa), sb, sc, rm, fl)),
            NmaddS => boxed(single::fma(single::negate(sa), sb, single::negate(sc), rm, fl)),
            AddD => double::add(a, b, rm, fl),
            SubD => double::sub(a, b, rm, fl),
            MulD => double::mul(a, b, rm, fl),
            DivD => double::div(a, b, rm, fl),
            SqrtD => double::sqrt(a, rm, fl),
            MaddD => double::fma(a, b, c, rm, fl),
            MsubD => double::fma(a, b, double::negate(c), rm, fl),
            NmsubD => double::fma(double::negate(a), b, c, rm, fl),
            NmaddD => double::fma(double::negate(a), b, double::negate(c), rm, fl),
            SgnjS => boxed(single::sign_inject(sa, sb, 0)),
            SgnjnS => boxed(single::sign_inject(sa, sb, 1)),
            SgnjxS => boxed(single::sign_inject(sa, sb, 2)),
            MinS => boxed(single::min_max(sa, sb, false, fl)),
            MaxS => boxed(single::min_max(sa, sb, true, fl)),
            EqS => u64::from(single::eq(sa, sb, fl)),
            LtS => u64::from(single::lt(sa, sb, fl)),
            LeS => u64::from(single::le(sa, sb, fl)),
            ClassS => single::class(sa),
            SgnjD => double::sign_inject(a, b, 0),
            SgnjnD => double::sign_inject(a, b, 1),
            SgnjxD => double::sign_inject(a, b, 2),
            MinD => double::min_max(a, b, false, fl),
            MaxD => double::min_max(a, b, true, fl),
            EqD => u64::from(double::eq(a, b, fl)),
            LtD => u64::from(double::lt(a, b, fl)),
            LeD => u64::from(double::le(a, b, fl)),
            ClassD => double::class(a),
            CvtWS | CvtWuS | CvtLS | CvtLuS => single::to_int(sa, f as u8 - CvtWS as u8, rm, fl),
            CvtSW | CvtSWu | CvtSL | CvtSLu => boxed(single::from_int(a, f as u8 - CvtSW as u8, rm, fl)),
            CvtWD | CvtWuD | CvtLD | CvtLuD => double::to_int(a, f as u8 - CvtWD as u8, rm, fl),
            CvtDW | CvtDWu | CvtDL | CvtDLu => double::from_int(a, f as u8 - CvtDW as u8, rm, fl),
            CvtSD => boxed(narrow(a, rm, fl)),
            CvtDS => widen(sa, fl),
            MvXW => a as i32 as u64,
            MvWX => boxed(a as u32),
            MvXD | MvDX => a,
        };
        self.regs[s.rd as usize] = value;
        self.csr.fflags = flags;
        // A result in an integer register leaves the floating-point state unchanged, unless it raised a flag.
        if s.rd >= F0 || flags != before {
            self.set_fp_dirty();
        }
        true
    }
}
