// SPDX-License-Identifier: Apache-2.0
//! The interpreter, and how it enters and leaves translated code.
//!
//! The hot loop in [`Hart::execute`] works on predecoded slots and makes no calls. It handles plain arithmetic, jumps to known
//! pages, and memory accesses that hit in the translation cache. `slow` handles everything else.
//!
//! Instructions and cycles are counted in one 64-bit number, `acc`: retired instructions in the upper half, cycles in the
//! lower half. [`Hart::settle`] moves it to the real counters.

mod amo;
mod detail;
mod each;
mod fetch;
mod flow;
mod follow;
mod fp;
mod int;
mod mem;
mod slow;
mod system;
mod translated;

use flow::Flow;

use crate::entry::{DataEntry, PAGE_MASK};
use crate::lines::{self, LINE_MASK, LINE_SHIFT};
use crate::op::{Op, Slot, length};
use crate::page::CodePage;
use crate::tlb;
use crate::{Access, Bus, Env, Exit, Hart, JumpKind, Observer, Timing};

/// Why the hot loop ended.
enum Left {
    /// The current slot needs the slow path.
    Slow,
    /// The limit is reached; the current slot comes next.
    Limit,
    /// The page has now been used often enough to be translated; the current slot comes next.
    Warm,
}

/// Number of slots in a line of code.
const SLOTS_OF_LINE: usize = 1 << (LINE_SHIFT - 1);

/// Index of `va` in the entries that the hot loop uses: of pages, or of lines in detailed timing.
#[inline(always)]
fn index<const DETAIL: bool>(va: u64) -> usize {
    if DETAIL { lines::index(va) } else { tlb::index(va) }
}

/// Mask of the address bits that the tags of these entries contain.
#[inline(always)]
fn mask<const DETAIL: bool>() -> u64 {
    if DETAIL { LINE_MASK } else { PAGE_MASK }
}

/// Counts a jump into a page; returns true once the page should be translated.
#[inline(always)]
fn warm(page: *const CodePage) -> bool {
    // SAFETY: the page is live (see the hot loop), and no reference to this field exists.
    unsafe {
        let heat = &raw mut (*page.cast_mut()).heat;
        if *heat == 0 {
            return true;
        }
        *heat -= 1;
    }
    false
}

impl Hart {
    /// Runs until the limit or an exit. `pc` and `acc` are in `self` before and after the call.
    pub(crate) fn execute<B: Bus, O: Observer, T: Timing>(&mut self, env: &mut Env<'_, B, O, T>) -> Exit {
        loop {
            if let Some(exit) = self.interpret_for(env, None) {
                return exit;
            }
            if let Some(exit) = self.run_translated(env) {
                return exit;
            }
        }
    }

    /// Interprets until the limit, an exit, or a jump into a page that should be translated. Such a jump returns `None` and sets
    /// `code_page`. Begins with the instruction in the scratch page if `single` is given.
    fn interpret_for<B: Bus, O: Observer, T: Timing>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        single: Option<*const CodePage>,
    ) -> Option<Exit> {
        if self.detailed {
            self.interpret::<B, O, T, true>(env, single)
        } else {
            self.interpret::<B, O, T, false>(env, single)
        }
    }

    /// The interpreter itself, with or without detailed timing.
    #[allow(clippy::too_many_lines)]
    fn interpret<B: Bus, O: Observer, T: Timing, const DETAIL: bool>(
        &mut self,
        env: &mut Env<'_, B, O, T>,
        mut single: Option<*const CodePage>,
    ) -> Option<Exit> {
        let mut acc = self.acc;
        'fetch: loop {
            let mut page: *const CodePage;
            if let Some(scratch) = single.take() {
                page = scratch;
            } else {
                if acc as u32 >= self.limit {
                    self.acc = acc;
                    return Some(Exit::QuantumEnd);
                }
                let entry = self.tlb.fetch_entry(self.privilege, self.pc);
                page = entry.page;
                if entry.tag != self.pc & PAGE_MASK || self.stepping {
                    self.acc = acc;
                    let flow = self.fetch_miss(env);
                    acc = self.acc;
                    match flow {
                        Ok(p) => page = p,
                        Err(Flow::Exit(exit)) => return Some(exit),
                        Err(_) => continue 'fetch,
                    }
                }
                if !O::EACH && !O::FOLLOWS && warm(page) {
                    self.acc = acc;
                    self.code_page = page;
                    return None;
                }
            }
            'page: loop {
                // A slot has four times the size of the code that it represents: pc = ip / 4 + bias.
                let base = page.cast::<Slot>();
                let bias = (self.pc & PAGE_MASK).wrapping_sub(base.addr() as u64 >> 2);
                let mut ip = base.wrapping_add((self.pc & !PAGE_MASK) as usize >> 1);
                // Number of the current line of code in its page; none after a jump.
                let mut line = usize::MAX;
                // Physical address of the current instruction.
                macro_rules! pa {
                    () => {
                        // SAFETY: the page is live (see the hot loop).
                        unsafe { (*page).pa }.wrapping_add((ip.addr() - base.addr()) as u64 >> 2)
                    };
                }
                macro_rules! pc {
                    () => {
                        (ip.addr() as u64 >> 2).wrapping_add(bias)
                    };
                }
                loop {
                    let dtlb = self.dtlb;
                    let left = 'hot: loop {
                        // SAFETY: ip points into the page's slots. It starts there; a decoded instruction moves it by at
                        // most two slots, and two extra slots behind the last one stop it (Refetch is always slow); the
                        // decoder makes in-page branches only to slots of the page. Pages live until the next run.
                        let s: &Slot = unsafe { &*ip };
                        if O::EACH && !matches!(s.op, Op::Undecoded | Op::Refetch | Op::Cross) {
                            self.pc = pc!();
                            self.acc = acc;
                            if self.begin_instruction(env, page) {
                                continue 'fetch;
                            }
                        }
                        if DETAIL {
                            let here = (ip.addr() - base.addr()) / (SLOTS_OF_LINE * size_of::<Slot>());
                            if here != line && s.op != Op::Refetch && !std::ptr::eq(page, &raw const *self.scratch) {
                                line = here;
                                self.acc = acc;
                                self.enter_line(env, pa!());
                                acc = self.acc;
                            }
                        }
                        acc += self.costs[s.op as usize];

                        macro_rules! rs1 {
                            () => {
                                self.regs[s.rs1 as usize]
                            };
                        }
                        macro_rules! rs2 {
                            () => {
                                self.regs[s.rs2 as usize]
                            };
                        }
                        // R format.
                        macro_rules! r {
                            ($a:ident, $b:ident, $e:expr) => {{
                                let ($a, $b) = (rs1!(), rs2!());
                                self.regs[s.rd as usize] = $e;
                                ip = ip.wrapping_add(s.imm as usize);
                            }};
                        }
                        // I format.
                        macro_rules! i {
                            ($a:ident, $imm:ident, $e:expr) => {{
                                let ($a, $imm) = (rs1!(), s.imm);
                                self.regs[s.rd as usize] = $e;
                                ip = ip.wrapping_add(s.rs2 as usize);
                            }};
                        }
                        macro_rules! predict {
                            ($taken:expr) => {
                                if DETAIL {
                                    acc += self.predictor.conditional(pa!(), $taken);
                                }
                            };
                        }
                        macro_rules! follow {
                            ($kind:expr, $to:expr) => {
                                if O::FOLLOWS {
                                    self.follow(env.observer, $kind, $to, acc);
                                }
                            };
                        }
                        macro_rules! taken {
                            () => {{
                                predict!(true);
                                line = usize::MAX;
                                acc += self.taken;
                                ip = ip.wrapping_offset(s.imm as isize);
                                follow!(JumpKind::Branch, pc!());
                                if acc as u32 >= self.limit {
                                    break 'hot Left::Limit;
                                }
                                if !O::EACH && !O::FOLLOWS && warm(page) {
                                    break 'hot Left::Warm;
                                }
                            }};
                        }
                        macro_rules! branch_in {
                            ($a:ident, $b:ident, $e:expr) => {{
                                let ($a, $b) = (rs1!(), rs2!());
                                if $e {
                                    taken!();
                                } else {
                                    predict!(false);
                                    ip = ip.wrapping_add(s.rd as usize);
                                }
                            }};
                        }
                        macro_rules! branch_out {
                            ($a:ident, $b:ident, $e:expr) => {{
                                let ($a, $b) = (rs1!(), rs2!());
                                if $e {
                                    predict!(true);
                                    acc += self.taken;
                                    self.pc = pc!().wrapping_add(s.imm as u64);
                                    follow!(JumpKind::Branch, self.pc);
                                    continue 'fetch;
                                }
                                predict!(false);
                                ip = ip.wrapping_add(s.rd as usize);
                            }};
                        }
                        macro_rules! accessed {
                            ($access:expr, $va:expr, $t:ty) => {
                                if O::EACH {
                                    self.acc = acc;
                                    env.observer.access(self, $access, $va, size_of::<$t>() as u64);
                                }
                            };
                        }
                        macro_rules! load {
                            ($t:ty, $v:ident, $e:expr) => {{
                                let va = rs1!().wrapping_add(s.imm as u64);
                                // SAFETY: the set has ENTRIES entries and lives as long as the hart; index() is below ENTRIES.
                                let e: &DataEntry = unsafe { &*dtlb.wrapping_add(index::<DETAIL>(va)) };
                                if va & (mask::<DETAIL>() | (size_of::<$t>() as u64 - 1)) != e.read {
                                    break 'hot Left::Slow;
                                }
                                // SAFETY: the entry maps this page to host memory of guest RAM, which outlives the run;
                                // the comparison above has checked the page and the alignment.
                                let $v = unsafe { (va.wrapping_add(e.addend) as *const $t).read() };
                                self.regs[s.rd as usize] = $e;
                                accessed!(Access::Load, va, $t);
                                ip = ip.wrapping_add(s.rs2 as usize);
                            }};
                        }
                        macro_rules! store {
                            ($t:ty) => {{
                                let va = rs1!().wrapping_add(s.imm as u64);
                                // SAFETY: as in load!.
                                let e: &DataEntry = unsafe { &*dtlb.wrapping_add(index::<DETAIL>(va)) };
                                if va & (mask::<DETAIL>() | (size_of::<$t>() as u64 - 1)) != e.write {
                                    break 'hot Left::Slow;
                                }
                                let v = rs2!() as $t;
                                // SAFETY: as in load!; pages that hold predecoded code never have a write tag.
                                unsafe { (va.wrapping_add(e.addend) as *mut $t).write(v) };
                                accessed!(Access::Store, va, $t);
                                ip = ip.wrapping_add(s.rd as usize);
                            }};
                        }
                        macro_rules! fp_on {
                            () => {
                                if !self.fp_dirty {
                                    break 'hot Left::Slow;
                                }
                            };
                        }

                        match s.op {
                            Op::Li => {
                                self.regs[s.rd as usize] = s.imm as u64;
                                ip = ip.wrapping_add(s.rs2 as usize);
                            }
                            Op::Mv => i!(a, _imm, a),
                            Op::Addi => i!(a, imm, a.wrapping_add(imm as u64)),
                            Op::Slti => i!(a, imm, u64::from((a as i64) < i64::from(imm))),
                            Op::Sltiu => i!(a, imm, u64::from(a < imm as u64)),
                            Op::Xori => i!(a, imm, a ^ imm as u64),
                            Op::Ori => i!(a, imm, a | imm as u64),
                            Op::Andi => i!(a, imm, a & imm as u64),
                            Op::Slli => i!(a, imm, a << (imm & 63)),
                            Op::Srli => i!(a, imm, a >> (imm & 63)),
                            Op::Srai => i!(a, imm, (a as i64 >> (imm & 63)) as u64),
                            Op::Addiw => i!(a, imm, (a as i32).wrapping_add(imm) as u64),
                            Op::Slliw => i!(a, imm, ((a as i32) << (imm & 31)) as u64),
                            Op::Srliw => i!(a, imm, (a as u32 >> (imm & 31)) as i32 as u64),
                            Op::Sraiw => i!(a, imm, (a as i32 >> (imm & 31)) as u64),
                            Op::Lui => {
                                self.regs[s.rd as usize] = s.imm as u64;
                                ip = ip.wrapping_add(s.rs2 as usize);
                            }
                            Op::Auipc => {
                                self.regs[s.rd as usize] = pc!().wrapping_add(s.imm as u64);
                                ip = ip.wrapping_add(s.rs2 as usize);
                            }

                            Op::Add => r!(a, b, a.wrapping_add(b)),
                            Op::Sub => r!(a, b, a.wrapping_sub(b)),
                            Op::Sll => r!(a, b, a << (b & 63)),
                            Op::Slt => r!(a, b, u64::from((a as i64) < b as i64)),
                            Op::Sltu => r!(a, b, u64::from(a < b)),
                            Op::Xor => r!(a, b, a ^ b),
                            Op::Srl => r!(a, b, a >> (b & 63)),
                            Op::Sra => r!(a, b, (a as i64 >> (b & 63)) as u64),
                            Op::Or => r!(a, b, a | b),
                            Op::And => r!(a, b, a & b),
                            Op::Addw => r!(a, b, (a as i32).wrapping_add(b as i32) as u64),
                            Op::Subw => r!(a, b, (a as i32).wrapping_sub(b as i32) as u64),
                            Op::Sllw => r!(a, b, ((a as i32) << (b & 31)) as u64),
                            Op::Srlw => r!(a, b, (a as u32 >> (b & 31)) as i32 as u64),
                            Op::Sraw => r!(a, b, (a as i32 >> (b & 31)) as u64),

                            Op::Mul => r!(a, b, a.wrapping_mul(b)),
                            Op::Mulh => r!(a, b, int::mulh(a as i64, b as i64)),
                            Op::Mulhsu => r!(a, b, int::mulhsu(a as i64, b)),
                            Op::Mulhu => r!(a, b, int::mulhu(a, b)),
                            Op::Div => r!(a, b, int::div(a as i64, b as i64) as u64),
                            Op::Divu => r!(a, b, int::divu(a, b)),
                            Op::Rem => r!(a, b, int::rem(a as i64, b as i64) as u64),
                            Op::Remu => r!(a, b, int::remu(a, b)),
                            Op::Mulw => r!(a, b, (a as i32).wrapping_mul(b as i32) as u64),
                            Op::Divw => r!(a, b, int::div(a as i32 as i64, b as i32 as i64) as i32 as u64),
                            Op::Divuw => r!(a, b, int::divu(a as u32 as u64, b as u32 as u64) as i32 as u64),
                            Op::Remw => r!(a, b, int::rem(a as i32 as i64, b as i32 as i64) as i32 as u64),
                            Op::Remuw => r!(a, b, int::remu(a as u32 as u64, b as u32 as u64) as i32 as u64),

                            Op::BeqIn => branch_in!(a, b, a == b),
                            Op::BneIn => branch_in!(a, b, a != b),
                            Op::BltIn => branch_in!(a, b, (a as i64) < b as i64),
                            Op::BgeIn => branch_in!(a, b, a as i64 >= b as i64),
                            Op::BltuIn => branch_in!(a, b, a < b),
                            Op::BgeuIn => branch_in!(a, b, a >= b),
                            Op::BeqOut => branch_out!(a, b, a == b),
                            Op::BneOut => branch_out!(a, b, a != b),
                            Op::BltOut => branch_out!(a, b, (a as i64) < b as i64),
                            Op::BgeOut => branch_out!(a, b, a as i64 >= b as i64),
                            Op::BltuOut => branch_out!(a, b, a < b),
                            Op::BgeuOut => branch_out!(a, b, a >= b),

                            Op::JalIn => {
                                let to = pc!().wrapping_add(2 * u64::from(s.rs2));
                                self.regs[s.rd as usize] = to;
                                if DETAIL {
                                    line = usize::MAX;
                                    self.predict_call(*s, to);
                                }
                                ip = ip.wrapping_offset(s.imm as isize);
                                follow!(follow::kind(*s, false, to), pc!());
                                if acc as u32 >= self.limit {
                                    break 'hot Left::Limit;
                                }
                            }
                            Op::JalOut => {
                                let pc = pc!();
                                let to = pc.wrapping_add(2 * u64::from(s.rs2));
                                self.regs[s.rd as usize] = to;
                                if DETAIL {
                                    self.predict_call(*s, to);
                                }
                                self.pc = pc.wrapping_add(s.imm as u64);
                                follow!(follow::kind(*s, false, to), self.pc);
                                continue 'fetch;
                            }
                            Op::Jalr => {
                                let target = rs1!().wrapping_add(s.imm as u64) & !1;
                                let to = pc!().wrapping_add(2 * u64::from(s.rs2));
                                self.regs[s.rd as usize] = to;
                                if DETAIL {
                                    acc += self.predict_jump(*s, pa!(), target, to);
                                }
                                self.pc = target;
                                follow!(follow::kind(*s, true, to), target);
                                continue 'fetch;
                            }

                            Op::Lb => load!(i8, v, v as u64),
                            Op::Lh => load!(i16, v, v as u64),
                            Op::Lw => load!(i32, v, v as u64),
                            Op::Ld => load!(u64, v, v),
                            Op::Lbu => load!(u8, v, u64::from(v)),
                            Op::Lhu => load!(u16, v, u64::from(v)),
                            Op::Lwu => load!(u32, v, u64::from(v)),
                            Op::Sb => store!(u8),
                            Op::Sh => store!(u16),
                            Op::Sw => store!(u32),
                            Op::Sd => store!(u64),
                            Op::Flw => {
                                fp_on!();
                                load!(u32, v, 0xffff_ffff << 32 | u64::from(v))
                            }
                            Op::Fld => {
                                fp_on!();
                                load!(u64, v, v)
                            }
                            Op::Fsw => {
                                fp_on!();
                                store!(u32)
                            }
                            Op::Fsd => {
                                fp_on!();
                                store!(u64)
                            }
                            Op::FpAdd | Op::FpMul | Op::FpFma | Op::FpConvert | Op::FpDiv | Op::FpSqrt | Op::FpMove => {
                                fp_on!();
                                if !self.fp_execute(*s) {
                                    break 'hot Left::Slow;
                                }
                                ip = ip.wrapping_add(2);
                            }

                            Op::Fence => ip = ip.wrapping_add(2),
                            Op::Undecoded
                            | Op::Refetch
                            | Op::Cross
                            | Op::Illegal
                            | Op::Lr
                            | Op::Sc
                            | Op::Amo
                            | Op::Csr
                            | Op::FenceI
                            | Op::SfenceVma
                            | Op::Ecall
                            | Op::Ebreak
                            | Op::Mret
                            | Op::Sret
                            | Op::Wfi
                            | Op::Marker => break 'hot Left::Slow,
                        }
                    };
                    self.pc = pc!();
                    self.acc = acc;
                    match left {
                        Left::Slow => {}
                        Left::Limit => return Some(Exit::QuantumEnd),
                        Left::Warm => {
                            self.code_page = page;
                            return None;
                        }
                    }
                    // SAFETY: as at the head of the hot loop.
                    let slot = unsafe { *ip };
                    let forgotten = env.code.forgotten();
                    let flow = self.slow(env, page, slot);
                    acc = self.acc;
                    if DETAIL && (length(slot).is_none() || forgotten != env.code.forgotten()) {
                        // Here the translator begins a new block, which checks the line again. The interpreter does the same.
                        line = usize::MAX;
                    }
                    match flow {
                        Flow::Again => {}
                        Flow::Next(n) => {
                            ip = ip.wrapping_add(n);
                            if acc as u32 >= self.limit {
                                self.pc = pc!();
                                return Some(Exit::QuantumEnd);
                            }
                        }
                        Flow::Fetch => continue 'fetch,
                        Flow::Scratch => {
                            page = &raw const *self.scratch;
                            continue 'page;
                        }
                        Flow::Exit(exit) => return Some(exit),
                    }
                }
            }
        }
    }
}
