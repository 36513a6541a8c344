// SPDX-License-Identifier: Apache-2.0
//! Translates one block: consecutive instructions of a page, up to a jump or an instruction that only the interpreter does.
//!
//! Guest registers are in host registers inside a block and in the hart outside. Instructions and cycles are summed up at
//! translation and added at each exit, so that every exit has counted what the interpreter would have counted.

mod arithmetic;
mod control;
mod memory;
mod prediction;

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::asm::Asm;
use super::calls;
use super::layout::{self, reg};
use super::prices::Prices;
use super::stubs::Stubs;
use crate::lines::LINE_SHIFT;
use crate::op::{F0, Op, SINK, Slot, is_local_csr, length};
use crate::page::{CodePage, PAGE_SLOTS};

/// Maximum number of instructions of a block. With detailed timing a block continues to the end of its line.
pub const LONGEST: usize = 96;
/// Number of slots in a line of code.
const SLOTS_OF_LINE: usize = 1 << (LINE_SHIFT - 1);
/// Host registers that hold guest registers. Others: rax, rcx and rdx are scratch, rbx points at the hart, r12 is `acc`, r13
/// points at the data entries, and r15 is the virtual address of the page.
const POOL: [u8; 8] = [6, 7, 8, 9, 10, 11, 5, 14];
const RAX: u8 = 0;

/// What a host register of the pool holds.
#[derive(Clone, Copy)]
struct Held {
    guest: u8,
    dirty: bool,
    used: u32,
}

type Cache = [Option<Held>; POOL.len()];

/// Code for rare cases, placed after the block.
enum Cold {
    /// The interpreter executes the instruction of slot `index`; the block continues at `resume`.
    Slow { label: DynamicLabel, index: usize, before: Cache, after: Cache, cost: u64, resume: DynamicLabel },
    /// The interpreter checks the line of slot `index`; the block continues at `resume`.
    Line { label: DynamicLabel, index: usize, before: Cache, cost: u64, resume: DynamicLabel },
    /// The branch of slot `index` goes to another slot of the page.
    Taken { label: DynamicLabel, index: usize, to: usize, before: Cache, cost: u64 },
    /// The branch of slot `index` goes to another page.
    Leave { label: DynamicLabel, index: usize, offset: i32, before: Cache, cost: u64 },
    /// A branch finds a counter that is not at its end in the branch's direction.
    Count { label: DynamicLabel, taken: bool, back: DynamicLabel },
    /// An indirect jump was mispredicted. If `target` is given, its target is stored there.
    Wrong { label: DynamicLabel, target: Option<i32>, back: DynamicLabel },
}

/// A block being translated.
pub struct Block<'a> {
    ops: Asm,
    stubs: &'a Stubs,
    prices: &'a Prices,
    entries: *const *const u8,
    /// Number of the page's first line of code.
    first_line: u64,
    cache: Cache,
    clock: u32,
    cost: u64,
    fp_checked: bool,
    cold: Vec<Cold>,
}

impl<'a> Block<'a> {
    /// Translates the block that begins in slot `first` of `page`, for execution at `at`.
    ///
    /// # Safety
    /// The page must be live, and no other reference to it may exist.
    pub unsafe fn translate(
        page: *const CodePage,
        first: usize,
        at: *const u8,
        stubs: &'a Stubs,
        prices: &'a Prices,
    ) -> Vec<u8> {
        // SAFETY: the page is live.
        let (entries, pa) = unsafe { ((*page).entries.cast::<*const u8>(), (*page).pa) };
        let mut block = Block {
            ops: Asm::new(at.addr()),
            stubs,
            prices,
            entries,
            first_line: pa >> LINE_SHIFT,
            cache: [None; POOL.len()],
            clock: 0,
            cost: 0,
            fp_checked: false,
            cold: Vec::new(),
        };
        let mut index = first;
        let mut line = None;
        for n in 0.. {
            if index >= PAGE_SLOTS {
                block.leave_at(layout::PAGE_BYTES + 2 * (index - PAGE_SLOTS) as i32);
                break;
            }
            // With detailed timing a block may end only where a line begins, because the line is checked there anyway.
            let entered = line.replace(index / SLOTS_OF_LINE) != Some(index / SLOTS_OF_LINE);
            if n >= LONGEST && (entered || prices.predictor.is_none()) {
                block.go_on_at(index);
                break;
            }
            if entered && prices.predictor.is_some() {
                block.check_line(index);
            }
            // SAFETY: index is below PAGE_SLOTS; the page is live.
            let slot = unsafe { (*page).slots[index] };
            match block.instruction(slot, index) {
                Some(length) => index += length,
                None => break,
            }
        }
        block.finish()
    }

    /// Translates one instruction. Returns the number of slots to the next one, or `None` if the block ends.
    fn instruction(&mut self, s: Slot, index: usize) -> Option<usize> {
        let here = 2 * index as i32;
        let price = self.prices.costs[s.op as usize];
        self.cost += price;
        match s.op {
            Op::Add | Op::Sub | Op::Xor | Op::Or | Op::And => self.binary(s),
            Op::Addw | Op::Subw => self.binary_word(s),
            Op::Sll | Op::Srl | Op::Sra | Op::Sllw | Op::Srlw | Op::Sraw => self.shift(s),
            Op::Slt | Op::Sltu => {
                let (a, b) = (self.src(s.rs1), self.src(s.rs2));
                dynasm!(self.ops; .arch x64; cmp Rq(a), Rq(b));
                self.set_flag(s.rd, s.op == Op::Slt);
            }
            Op::Slti | Op::Sltiu => {
                let a = self.src(s.rs1);
                dynasm!(self.ops; .arch x64; cmp Rq(a), s.imm);
                self.set_flag(s.rd, s.op == Op::Slti);
            }
            Op::Mul | Op::Mulw => self.multiply(s),
            Op::Mulh | Op::Mulhu | Op::Mulhsu => self.multiply_high(s),
            Op::Div | Op::Divu | Op::Rem | Op::Remu | Op::Divw | Op::Divuw | Op::Remw | Op::Remuw => self.divide(s),
            Op::Li | Op::Lui => {
                let d = self.dst(s.rd);
                if s.imm == 0 {
                    dynasm!(self.ops; .arch x64; xor Rd(d), Rd(d));
                } else {
                    dynasm!(self.ops; .arch x64; mov Rq(d), DWORD s.imm);
                }
            }
            Op::Auipc => {
                let d = self.dst(s.rd);
                dynasm!(self.ops; .arch x64; lea Rq(d), [r15 + here + s.imm]);
            }
            Op::Mv => {
                let (a, d) = (self.src(s.rs1), self.dst(s.rd));
                dynasm!(self.ops; .arch x64; mov Rq(d), Rq(a));
            }
            Op::Addi | Op::Addiw | Op::Xori | Op::Ori | Op::Andi => self.immediate(s),
            Op::Slli | Op::Srli | Op::Srai | Op::Slliw | Op::Srliw | Op::Sraiw => self.shift_immediate(s),

            Op::Lb | Op::Lh | Op::Lw | Op::Ld | Op::Lbu | Op::Lhu | Op::Lwu => self.load(s, index),
            Op::Flw | Op::Fld => self.with_fp(index, true, |block| block.load(s, index)),
            Op::Sb | Op::Sh | Op::Sw | Op::Sd => self.store(s, index),
            Op::Fsw | Op::Fsd => self.with_fp(index, false, |block| block.store(s, index)),
            Op::FpAdd | Op::FpMul | Op::FpFma | Op::FpConvert | Op::FpDiv | Op::FpSqrt | Op::FpMove => {
                self.with_fp(index, s.rd >= F0, |block| block.call(s, index, calls::floating_point));
            }
            Op::Fence => {}
            Op::Lr | Op::Sc | Op::Amo => self.atomic(s, index),
            Op::Csr if is_local_csr(s) => self.csr(s, index),

            Op::BeqIn | Op::BneIn | Op::BltIn | Op::BgeIn | Op::BltuIn | Op::BgeuIn => {
                let label = self.ops.new_dynamic_label();
                self.branch(s, s.op as u8 - Op::BeqIn as u8, label);
                let to = (index as i64 + i64::from(s.imm)) as usize;
                self.cold.push(Cold::Taken {
                    label,
                    index,
                    to,
                    before: self.cache,
                    cost: self.cost + self.prices.taken,
                });
                self.predict_branch(index, false);
            }
            Op::BeqOut | Op::BneOut | Op::BltOut | Op::BgeOut | Op::BltuOut | Op::BgeuOut => {
                let label = self.ops.new_dynamic_label();
                self.branch(s, s.op as u8 - Op::BeqOut as u8, label);
                let (before, cost) = (self.cache, self.cost + self.prices.taken);
                self.cold.push(Cold::Leave { label, index, offset: here + s.imm, before, cost });
                self.predict_branch(index, false);
            }
            Op::JalIn => {
                self.link(s, here);
                self.write_back(self.cache);
                self.add_cost(self.cost);
                self.predict_call(s, here);
                self.jump_checked((index as i64 + i64::from(s.imm)) as usize);
                return None;
            }
            Op::JalOut => {
                self.link(s, here);
                self.predict_call(s, here);
                self.leave_at(here + s.imm);
                return None;
            }
            Op::Jalr => {
                let a = self.src(s.rs1);
                dynasm!(self.ops; .arch x64; lea rax, [Rq(a) + s.imm]; and rax, -2);
                self.link(s, here);
                self.write_back(self.cache);
                self.add_cost(self.cost);
                self.predict_jump(s, index);
                self.predict_call(s, here);
                let fetch = self.stubs.fetch.addr();
                dynasm!(self.ops; .arch x64; jmp extern fetch);
                return None;
            }

            // Only the interpreter does these.
            Op::Undecoded
            | Op::Refetch
            | Op::Cross
            | Op::Illegal
            | Op::Csr
            | Op::FenceI
            | Op::SfenceVma
            | Op::Ecall
            | Op::Ebreak
            | Op::Mret
            | Op::Sret
            | Op::Wfi
            | Op::Marker => {
                self.exit(self.stubs.slow, index, self.cache, self.cost, None);
                return None;
            }
        }
        length(s)
    }

    // Host registers for guest registers.

    /// Returns the host register that holds guest register `g`, and loads it if necessary.
    fn src(&mut self, g: u8) -> u8 {
        if let Some(i) = self.find(g) {
            return POOL[i];
        }
        let i = self.place(g, false);
        dynasm!(self.ops; .arch x64; mov Rq(POOL[i]), [rbx + reg(g)]);
        POOL[i]
    }

    /// Returns the host register for a new value of guest register `g`.
    fn dst(&mut self, g: u8) -> u8 {
        let i = self.find(g).unwrap_or_else(|| self.place(g, true));
        if let Some(held) = &mut self.cache[i] {
            held.dirty = true;
        }
        POOL[i]
    }

    fn find(&mut self, g: u8) -> Option<usize> {
        let i = self.cache.iter().position(|h| h.is_some_and(|h| h.guest == g))?;
        self.clock += 1;
        if let Some(held) = &mut self.cache[i] {
            held.used = self.clock;
        }
        Some(i)
    }

    /// Makes room for `guest` in the pool: takes a free register, or the least recently used one.
    fn place(&mut self, guest: u8, dirty: bool) -> usize {
        let free = self.cache.iter().position(Option::is_none);
        let i =
            free.unwrap_or_else(|| (0..POOL.len()).min_by_key(|&i| self.cache[i].map_or(0, |h| h.used)).unwrap_or(0));
        self.write_back_one(i, self.cache[i]);
        self.clock += 1;
        self.cache[i] = Some(Held { guest, dirty, used: self.clock });
        i
    }

    fn write_back_one(&mut self, i: usize, held: Option<Held>) {
        if let Some(Held { guest, dirty: true, .. }) = held
            && guest != SINK
        {
            dynasm!(self.ops; .arch x64; mov [rbx + reg(guest)], Rq(POOL[i]));
        }
    }

    fn write_back(&mut self, cache: Cache) {
        for (i, held) in cache.into_iter().enumerate() {
            self.write_back_one(i, held);
        }
    }

    fn reload(&mut self, cache: Cache) {
        for (i, held) in cache.into_iter().enumerate() {
            if let Some(held) = held {
                dynasm!(self.ops; .arch x64; mov Rq(POOL[i]), [rbx + reg(held.guest)]);
            }
        }
    }

    /// Emits code that adds `cost` to `acc`. Uses rcx.
    fn add_cost(&mut self, cost: u64) {
        if cost != 0 {
            dynasm!(self.ops; .arch x64; mov rcx, QWORD cost as i64; add r12, rcx);
        }
    }

    /// Adds the code for rare cases.
    fn finish(mut self) -> Vec<u8> {
        while let Some(cold) = self.cold.pop() {
            self.out_of_the_way(cold);
        }
        // Every label is defined, either where it is created or in this function.
        self.ops.finalize().unwrap_or_default()
    }

    fn out_of_the_way(&mut self, cold: Cold) {
        match cold {
            Cold::Slow { label, index, before, after, cost, resume } => {
                dynasm!(self.ops; .arch x64; =>label);
                self.leave_and_resume(self.stubs.slow, index, before, after, cost, resume);
            }
            Cold::Line { label, index, before, cost, resume } => {
                dynasm!(self.ops; .arch x64; =>label);
                self.leave_and_resume(self.stubs.line, index, before, before, cost, resume);
            }
            Cold::Taken { label, index, to, before, cost } => {
                dynasm!(self.ops; .arch x64; =>label);
                self.predict_branch(index, true);
                self.write_back(before);
                self.add_cost(cost);
                self.jump_checked(to);
            }
            Cold::Leave { label, index, offset, before, cost } => {
                dynasm!(self.ops; .arch x64; =>label);
                self.predict_branch(index, true);
                self.write_back(before);
                self.add_cost(cost);
                self.jump_to_page(offset);
            }
            Cold::Count { label, taken, back } => self.count(label, taken, back),
            Cold::Wrong { label, target, back } => {
                dynasm!(self.ops; .arch x64; =>label);
                if let Some(at) = target {
                    dynasm!(self.ops; .arch x64; mov [rbx + at], rax);
                }
                self.mispredicted(back);
            }
        }
    }

    /// Exits through `stub` and continues at `resume`. The pool is as `before` at the exit and as `after` at `resume`.
    fn leave_and_resume(
        &mut self,
        stub: *const u8,
        index: usize,
        before: Cache,
        after: Cache,
        cost: u64,
        resume: DynamicLabel,
    ) {
        let back = self.ops.new_dynamic_label();
        self.exit(stub, index, before, cost, Some(back));
        dynasm!(self.ops; .arch x64; =>back);
        self.reload(after);
        self.add_cost(cost.wrapping_neg());
        dynasm!(self.ops; .arch x64; jmp =>resume);
    }
}
