// SPDX-License-Identifier: Apache-2.0
//! The page walker over arbitrary tables, compared with a walk that is written from the privileged specification (section
//! "Virtual Address Translation Process") and from the rules ISA-1 to ISA-3 for armed entries.

use trapless_memory::{BusError, Cycle, MmioEffect, Paging, PhysAddr, Ram};
use trapless_riscv::{Access, Bus, CodeCache, Env, Exit, Hart, HartConfig, Privilege, WalkAnswer};

use crate::demand;
use crate::tape::Tape;

const RAM: u64 = 0x8000_0000;
const PAGES: u64 = 16;
/// Number of pages that hold tables, at the start; the others hold data.
const TABLES: u64 = 8;
/// Number of entries of each table that addresses use.
const SLOTS: u64 = 2;
/// Address of the code that makes the accesses: the last page.
const CODE: u64 = RAM + (PAGES - 1) * 4096;
/// Entry of the root table that maps the code for S mode; the next entry maps it for U mode. Tried addresses use neither.
const CODE_SLOT: u64 = 200;
const SATP: u16 = 0x180;
const MSTATUS: u16 = 0x300;
const MCAUSE: u16 = 0x342;
const MTVAL: u16 = 0x343;
const MTVEC: u16 = 0x305;
const SHWDP: u16 = 0x5c0;
const SHWDPSERVED: u16 = 0xdc0;
const MPRV: u64 = 1 << 17;
const SUM: u64 = 1 << 18;
const MXR: u64 = 1 << 19;

/// Memory without devices.
struct World(Ram);

impl Bus for World {
    fn ram(&mut self) -> &mut Ram {
        &mut self.0
    }
    fn mmio_read(&mut self, at: PhysAddr, _: u8, _: Cycle) -> Result<(u64, MmioEffect), BusError> {
        Err(BusError(at))
    }
    fn mmio_write(&mut self, at: PhysAddr, _: u8, _: u64, _: Cycle) -> Result<MmioEffect, BusError> {
        Err(BusError(at))
    }
    fn time(&mut self, _: Cycle) -> u64 {
        0
    }
}

/// Result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The access reaches this physical address.
    Reaches(u64),
    /// The access traps with this cause.
    Trap(u64),
    /// The walker asks the SMU about the entry at this address.
    Armed(u64),
}

#[derive(Clone, Copy, Debug)]
struct Try {
    va: u64,
    access: Access,
    user: bool,
    sum: bool,
    mxr: bool,
    /// Whether machine mode makes the load or store, with MPRV.
    mprv: bool,
}

/// The result that the access must have.
fn expected(ram: &Ram, paging: Paging, root: u64, t: Try) -> Outcome {
    let code = |fault: [u64; 3]| match t.access {
        Access::Fetch => fault[0],
        Access::Load => fault[1],
        Access::Store => fault[2],
    };
    let (page_fault, access_fault) = (Outcome::Trap(code([12, 13, 15])), Outcome::Trap(code([1, 5, 7])));
    let (levels, unused) = match paging {
        Paging::Sv39 => (3, 64 - 39),
        Paging::Sv48 => (4, 64 - 48),
        Paging::Sv57 => (5, 64 - 57),
    };
    if (t.va as i64) << unused >> unused != t.va as i64 {
        return page_fault;
    }
    let mut table = root;
    for level in (0..levels).rev() {
        let at = table + (t.va >> (12 + 9 * level) & 511) * 8;
        let Some(e) = ram.load::<8>(PhysAddr(at)).map(u64::from_le_bytes) else { return access_fault };
        let bit = |n: u32| e >> n & 1 == 1;
        let (v, r, w, x, u, g, a, d) = (bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7));
        let reach = if t.user { u } else { !u || (t.sum && t.access != Access::Fetch) };
        let right = match t.access {
            Access::Fetch => x,
            Access::Load => r || (t.mxr && x),
            Access::Store => w,
        };
        if !v {
            let armed = level == 0 && bit(9) && u && !g && !d && (r || x) && (r || !w) && e >> 57 == 0;
            // REQ: ISA-3: the SMU serves only code that executes in U mode.
            return if armed && t.user && !t.mprv && reach && right { Outcome::Armed(at) } else { page_fault };
        }
        if e >> 54 != 0 || (w && !r) {
            return page_fault;
        }
        let page = (e >> 10 & ((1 << 44) - 1)) << 12;
        if !r && !x {
            if a || d || u {
                return page_fault;
            }
            table = page;
            continue;
        }
        let inside = (1u64 << (12 + 9 * level)) - 1;
        if !reach || !right || page & inside != 0 || !a || (t.access == Access::Store && !d) {
            return page_fault;
        }
        let pa = page | t.va & inside;
        return if ram.offset(PhysAddr(pa), 8).is_some() { Outcome::Reaches(pa) } else { access_fault };
    }
    page_fault
}

fn entry(t: &mut Tape) -> u64 {
    let n = t.u64();
    let page = match n >> 60 {
        0 => n >> 10 & ((1 << 44) - 1),
        1 => 0x80000,
        2 => 0x80000 >> 9 << 9,
        _ => 0x80000 + (n >> 20) % PAGES,
    };
    let bits = match n >> 56 & 15 {
        // A pointer, a leaf for S or U mode, an armed entry, or anything.
        0..5 => 1,
        5..8 => 0xcf,
        8..11 => 0xdf,
        11 | 12 => 0x25e,
        _ => n & 0x3ff,
    };
    let flip = if n >> 50 & 3 == 0 { 1 << (n >> 40 & 63) } else { 0 };
    (page << 10 | bits) ^ flip
}

/// Content of a data word: `lui x5` with the word's number, which tells its address both when read and when executed.
fn content(at: u64) -> u64 {
    ((at - RAM) / 8) << 12 | 0x2b7
}

/// Virtual address of [`CODE`] for code in U or S mode.
fn code_at(paging: Paging, user: bool) -> u64 {
    let shift = Paging::shift(paging.levels() - 1);
    (CODE_SLOT + u64::from(user)) << shift | CODE & ((1 << shift) - 1)
}

/// Uses a walker at random.
pub fn run(t: &mut Tape) -> Result<(), String> {
    let mut world = World(Ram::new(PhysAddr(RAM), PAGES * 4096).map_err(|e| e.to_string())?);
    let mut code = CodeCache::default();
    let paging = t.one(&Paging::ALL);
    let config = HartConfig { smu: true, paging: Paging::Sv57, ..HartConfig::new(0) };
    let mut hart = Hart::new(config, RAM);
    for at in (RAM + TABLES * 4096..RAM + PAGES * 4096).step_by(8) {
        let _ = world.0.store(PhysAddr(at), content(at).to_le_bytes());
    }
    let root = RAM + t.below(TABLES) * 4096;
    while t.more() {
        for _ in 0..t.below(6) {
            // Use only few entries of few tables, so that walks reach several levels.
            let (at, value) = (RAM + t.below(TABLES) * 4096 + t.below(SLOTS) * 8, entry(t));
            let _ = world.0.store(PhysAddr(at), value.to_le_bytes());
            hart.fence_vma(None);
        }
        let index = |t: &mut Tape| t.below(SLOTS);
        let page = (0..paging.levels()).fold(0, |va, level| va | index(t) << Paging::shift(level));
        let bits = Paging::shift(paging.levels());
        let va = page | (t.below(512) * 8) | if t.below(16) == 0 { 1 << t.one(&[bits - 1, bits, 63]) } else { 0 };
        let access = t.one(&[Access::Fetch, Access::Load, Access::Store]);
        let mode = t.u64();
        let (user, sum, mxr) = (mode & 1 != 0, mode & 2 != 0, mode & 4 != 0);
        let a = Try { va, access, user, sum, mxr, mprv: access != Access::Fetch && mode & 8 != 0 };
        // Machine mode enters a lower mode with mret.
        let word: u64 = match access {
            Access::Fetch => 0x3020_0073,
            Access::Load => 0x0005_3583,
            Access::Store => 0x00b5_3023,
        };
        let _ = world.0.store(PhysAddr(CODE), word.to_le_bytes());
        // Write them again each time: tables are data, too, and may have been overwritten.
        for user in [false, true] {
            let page = CODE >> 12 & !((1 << (9 * (paging.levels() - 1))) - 1);
            let leaf = page << 10 | if user { 0x5b } else { 0x4b };
            let _ = world.0.store(PhysAddr(root + (CODE_SLOT + u64::from(user)) * 8), leaf.to_le_bytes());
        }
        let wanted = expected(&world.0, paging, root, a);
        // Fetches must not reach tables or the code of this target.
        let is_data = |pa: u64| (RAM + TABLES * 4096..CODE).contains(&pa);
        if access == Access::Fetch && matches!(wanted, Outcome::Reaches(pa) if !is_data(pa)) {
            continue;
        }
        let got = attempt(&mut hart, &mut world, &mut code, (paging, root), a)?;
        demand(got == wanted, || {
            let text = format!("{a:x?}: {got:x?}, should be {wanted:x?}; root {root:x}, tables");
            let pte = |n: u64| world.0.load::<8>(PhysAddr(RAM + n * 8)).map_or(0, u64::from_le_bytes);
            let set = (0..TABLES * 512).filter(|n| pte(*n) != 0).map(|n| format!(" {:x}: {:x}", RAM + n * 8, pte(n)));
            text + &set.collect::<String>()
        })?;
        hart.fence_vma(None);
    }
    Ok(())
}

/// Makes one access, with tables of mode `paging` below this root.
fn attempt(
    hart: &mut Hart,
    world: &mut World,
    code: &mut CodeCache,
    (paging, root): (Paging, u64),
    a: Try,
) -> Result<Outcome, String> {
    const MAGIC: u64 = 0x1234_5678_9abc_def0;
    let missing = |name: &str| format!("no {name}");
    let mode = if a.user { 0 } else { 1 };
    let (privilege, pc) = match (a.mprv || a.access == Access::Fetch, a.user) {
        (true, _) => (Privilege::Machine, CODE),
        (false, true) => (Privilege::User, code_at(paging, true)),
        (false, false) => (Privilege::Supervisor, code_at(paging, false)),
    };
    let status = (mode << 11) | if a.sum { SUM } else { 0 } | if a.mxr { MXR } else { 0 };
    let set = [
        (MSTATUS, status | if a.mprv { MPRV } else { 0 }),
        (SATP, paging.satp() | root >> 12),
        (MTVEC, CODE + 64),
        (SHWDP, 1),
        (0x341, a.va),
        (MCAUSE, 0),
        (0x3b0, u64::MAX >> 10),
        (0x3a0, 0x1f),
    ];
    let mut state = hart.state();
    (state.privilege, state.pc) = (privilege, pc);
    (state.x[10], state.x[11]) = (a.va, MAGIC);
    hart.restore(&state);
    for (csr, value) in set {
        demand(hart.set_csr(csr, value), || missing("CSR"))?;
    }
    let (mut observer, mut timing) = ((), ());
    let mut env = Env { bus: world, code, observer: &mut observer, timing: &mut timing };
    let mut exit = hart.step(&mut env);
    if a.access == Access::Fetch && exit == Exit::Step && hart.csr(MCAUSE) == Some(0) {
        exit = hart.step(&mut env);
    }
    if let Exit::SmuWait(request) = exit {
        let at = request.pte_pa.0;
        hart.resume_walk(WalkAnswer::Failed, &mut ());
        // REQ: ISA-7: a miss that fails does not count as served.
        demand(hart.csr(SHWDPSERVED) == Some(0), || format!("{a:x?}: a failed miss counts as served"))?;
        return Ok(Outcome::Armed(at));
    }
    let cause = hart.csr(MCAUSE).ok_or_else(|| missing("mcause"))?;
    if hart.pc() == CODE + 64 {
        let tval = hart.csr(MTVAL).ok_or_else(|| missing("mtval"))?;
        demand(tval == a.va, || format!("the trap value is {tval:#x}, not the address"))?;
        return Ok(Outcome::Trap(cause));
    }
    let word = |world: &World, at: u64| world.0.load::<8>(PhysAddr(at)).map(u64::from_le_bytes);
    match a.access {
        Access::Fetch => Ok(Outcome::Reaches(RAM + (hart.x(5) >> 12) * 8)),
        Access::Load => {
            let wanted = expected(&world.0, paging, root, a);
            let same = matches!(wanted, Outcome::Reaches(pa) if word(world, pa) == Some(hart.x(11)));
            if same { Ok(wanted) } else { Err(format!("{a:x?} reads {:#x}, should be {wanted:x?}", hart.x(11))) }
        }
        Access::Store => {
            let mut all = (0..PAGES * 512).map(|n| RAM + n * 8);
            let at = all.find(|at| word(world, *at) == Some(MAGIC)).ok_or("the stored value is not in memory")?;
            let _ = world.0.store(PhysAddr(at), content(at).to_le_bytes());
            Ok(Outcome::Reaches(at))
        }
    }
}
