// SPDX-License-Identifier: Apache-2.0
//! Page tables of the test programs: two address spaces that contain the program, and a playground with every kind of leaf
//! and pointer that can fault.

use trapless_memory::Paging;

use crate::layout::*;

/// Bits of a page table entry.
#[allow(missing_docs)]
pub mod pte {
    pub const V: u64 = 1;
    pub const R: u64 = 2;
    pub const W: u64 = 4;
    pub const X: u64 = 8;
    pub const U: u64 = 16;
    pub const G: u64 = 32;
    pub const A: u64 = 64;
    pub const D: u64 = 128;
    pub const RWX: u64 = R | W | X;
    pub const AD: u64 = A | D;
}
use pte::*;

/// An entry, leaf or pointer, for physical address `pa`.
pub fn entry(pa: u64, bits: u64) -> u64 {
    pa >> 12 << 10 | bits
}

/// Page tables, one page each, from [`TABLES`] on.
#[derive(Clone)]
pub struct Tables {
    levels: u32,
    pages: Vec<[u64; 512]>,
}

/// Index of the entry of `va` in its table of `level`.
fn index(va: u64, level: u32) -> u64 {
    va >> Paging::shift(level) & 511
}

impl Tables {
    /// Starts without tables. Walks will have as many levels as `paging`.
    fn new(paging: Paging) -> Tables {
        Tables { levels: paging.levels(), pages: Vec::new() }
    }

    /// Adds an empty table and returns its physical address.
    pub fn page(&mut self) -> u64 {
        self.pages.push([0; 512]);
        assert!(TABLES + self.pages.len() as u64 * 4096 <= PLAYGROUND, "too many page tables");
        TABLES + (self.pages.len() as u64 - 1) * 4096
    }

    fn slot(&mut self, table: u64, index: u64) -> &mut u64 {
        &mut self.pages[((table - TABLES) / 4096) as usize][index as usize]
    }

    /// Sets the entry of `va` at `level` (0: 4 KiB). Adds tables above it as needed.
    pub fn set(&mut self, root: u64, va: u64, level: u32, value: u64) {
        let table = self.table(root, va, level);
        *self.slot(table, index(va, level)) = value;
    }

    /// The table of `level` that has the entry of `va`. Adds it and tables above it as needed.
    fn table(&mut self, root: u64, va: u64, level: u32) -> u64 {
        let mut table = root;
        for l in (level + 1..self.levels).rev() {
            let seen = *self.slot(table, index(va, l));
            table = if seen == 0 {
                let page = self.page();
                *self.slot(table, index(va, l)) = entry(page, V);
                page
            } else {
                seen >> 10 << 12
            };
        }
        table
    }

    /// Content of the tables, for the ELF file.
    pub fn bytes(&self) -> Vec<u8> {
        self.pages.iter().flatten().flat_map(|e| e.to_le_bytes()).collect()
    }
}

/// One way to map memory, and what it should allow.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is special about it.
    pub name: String,
    /// Virtual address of the page.
    pub va: u64,
    /// The leaf that a walk finds; `None` if a walk finds none, whatever the access.
    pub leaf: Option<u64>,
}

impl Case {
    /// Whether the leaf lacks A or D. QEMU 7.2 sets these bits itself; the machine faults (Svade).
    pub fn lacks_ad(&self) -> bool {
        self.leaf.is_some_and(|l| l & V != 0 && l & AD != AD)
    }
}

/// The address spaces.
#[derive(Clone)]
pub struct Spaces {
    /// Paging mode of the address spaces.
    pub paging: Paging,
    /// All tables.
    pub tables: Tables,
    /// `satp` for S-mode blocks: code and data are supervisor pages.
    pub s_satp: u64,
    /// `satp` for U-mode blocks.
    pub u_satp: u64,
    /// Physical address of the level 1 entry of [`SCRATCH`] in the supervisor's tables.
    pub scratch_middle: u64,
    /// Physical address of the level 0 table below it.
    pub scratch_table: u64,
    /// Every way in which the playground is mapped.
    pub cases: Vec<Case>,
    /// Content of [`PLAYGROUND`]: each page begins with `ret`; data follows.
    pub playground: Vec<u8>,
}

/// Virtual address of pages whose entries the tests change while they run.
pub const SCRATCH: u64 = 0x20_0000_0000;
/// Number of pages of the playground.
pub const PLAYGROUND_PAGES: u64 = 4;
/// Number of pages at [`SCRATCH`] that self-hashing blocks map.
pub const SCRATCH_PAGES: u64 = PLAYGROUND_PAGES;
/// Distance of the data pages behind neighbouring pages of the alias: page i of the alias is page i * 397 of the data.
const SCATTER: u64 = 397;
const SMALL: u64 = 0xc0_0000_0000 >> 2;
/// Offset in a playground page at which loads and stores access it.
pub const DATA_OFFSET: u64 = 64;

impl Spaces {
    /// Builds all tables.
    pub fn new(paging: Paging) -> Spaces {
        let mut tables = Tables::new(paging);
        let mut satp = [0; 2];
        let mut cases = Vec::new();
        for (user, satp) in satp.iter_mut().enumerate() {
            let root = tables.page();
            *satp = paging.satp() | root >> 12;
            let user_bit = if user == 1 { U } else { 0 };
            for at in (RUNTIME..RUNTIME + MEMORY).step_by(2 << 20) {
                let test = (CODE..LOG).contains(&at);
                tables.set(root, at, 1, entry(at, V | RWX | AD | if test { user_bit } else { 0 }));
            }
            for offset in (0..CODE_SIZE).step_by(2 << 20) {
                tables.set(root, USER_CODE + offset, 1, entry(CODE + offset, V | RWX | AD | U));
            }
            let pages = DATA_SIZE / 4096;
            for page in 0..pages {
                let to = DATA + Spaces::page_behind(page) * 4096;
                tables.set(root, ALIAS + page * 4096, 0, entry(to, V | RWX | AD | user_bit));
            }
            cases = playground(&mut tables, root, paging);
        }
        let scratch_table = tables.page();
        let root = satp[0] << 12 & 0xff_ffff_f000;
        tables.set(root, SCRATCH, 1, entry(scratch_table, V));
        let scratch_middle = tables.table(root, SCRATCH, 1) + index(SCRATCH, 1) * 8;

        let mut playground = vec![0; 4096];
        // `ret` at 0 and 2. The last two bytes begin an `addi x0` that ends in the next page.
        playground[..4].copy_from_slice(&0x8082_8082u32.to_le_bytes());
        for (n, byte) in playground.iter_mut().enumerate().skip(DATA_OFFSET as usize) {
            *byte = n as u8;
        }
        playground[4094..].copy_from_slice(&0x0013u16.to_le_bytes());
        // The last bytes of the other pages differ from those of the first.
        for page in 1..PLAYGROUND_PAGES as usize {
            playground.extend_from_within(..4096);
            for byte in &mut playground[page * 4096 + 2048..page * 4096 + 4000] {
                *byte = byte.wrapping_mul(2 * page as u8 + 1);
            }
        }
        let [s_satp, u_satp] = satp;
        Spaces { paging, tables, s_satp, u_satp, scratch_middle, scratch_table, cases, playground }
    }

    /// Number of the data page behind a page of the alias.
    pub fn page_behind(page: u64) -> u64 {
        page * SCATTER % (DATA_SIZE / 4096)
    }

    /// Address in the alias of the byte at `offset` in the data.
    pub fn alias(offset: u64) -> u64 {
        let pages = DATA_SIZE / 4096;
        let page = (0..pages).find(|p| Spaces::page_behind(*p) == offset / 4096).expect("the factor is odd");
        ALIAS + page * 4096 + offset % 4096
    }
}

/// Maps the playground page in all ways. The virtual addresses are the same in each address space.
fn playground(tables: &mut Tables, root: u64, paging: Paging) -> Vec<Case> {
    let mut cases = Vec::new();
    let full = V | RWX | AD;
    let mut small = 0;
    let mut leaf = |tables: &mut Tables, name: String, value: u64, seen: Option<u64>| {
        let va = SMALL + small * 4096;
        small += 1;
        tables.set(root, va, 0, value);
        cases.push(Case { name, va, leaf: seen });
    };
    for bits in 0..32 {
        let value = entry(PLAYGROUND, bits | AD);
        leaf(tables, format!("4 KiB leaf, UXWRV = {bits:05b}"), value, Some(value));
    }
    for (name, bits) in [("G", G), ("RSW 01", 1 << 8), ("RSW 10", 2 << 8), ("RSW 11", 3 << 8)] {
        let value = entry(PLAYGROUND, full | U | bits);
        leaf(tables, format!("4 KiB leaf with {name}"), value, Some(value));
    }
    for bits in 0..4 {
        for u in [0, U] {
            let value = entry(PLAYGROUND, V | RWX | u | bits << 6);
            leaf(tables, format!("4 KiB leaf, U = {}, DA = {bits:02b}", u / U), value, Some(value));
        }
    }
    for bit in 54..64 {
        for u in [0, U] {
            let value = entry(PLAYGROUND, full | u | 1 << bit);
            leaf(tables, format!("4 KiB leaf, U = {}, reserved bit {bit}", u / U), value, None);
        }
    }
    for (name, bits) in [("plain", 0), ("A", A), ("D", D), ("U", U), ("G", G)] {
        let value = entry(PLAYGROUND, V | bits);
        leaf(tables, format!("pointer at the last level ({name})"), value, None);
    }

    // Larger leaves, and pointers with bits that only leaves may have. Each has its own table, which spans 2 MiB.
    let mut medium = SMALL + (1 << 30);
    let two_mib = PLAYGROUND & !0x1f_ffff;
    for (name, value, good) in [
        ("2 MiB leaf", entry(two_mib, full), true),
        ("2 MiB leaf with U", entry(two_mib, full | U), true),
        ("2 MiB leaf, read only, U", entry(two_mib, V | R | U | AD), true),
        ("2 MiB leaf, execute only, U", entry(two_mib, V | X | U | AD), true),
        ("2 MiB leaf, misaligned", entry(PLAYGROUND | 4096, full), false),
        ("2 MiB leaf with U, misaligned", entry(PLAYGROUND | 0x10_0000, full | U), false),
        ("2 MiB leaf, W without R", entry(two_mib, V | W | AD), false),
        ("2 MiB leaf, reserved bit", entry(two_mib, full | 1 << 60), false),
        ("2 MiB entry invalid", 0, false),
        ("2 MiB entry invalid, all else set", entry(two_mib, (full | U) & !V), false),
    ] {
        tables.set(root, medium, 1, value);
        cases.push(Case { name: name.into(), va: medium | PLAYGROUND & 0x1f_ffff, leaf: good.then_some(value) });
        medium += 2 << 20;
    }
    let inner = tables.page();
    let inner_leaf = entry(PLAYGROUND, full | U);
    *tables.slot(inner, 0) = inner_leaf;
    let medium_pointers = [
        ("", 0),
        ("A", A),
        ("D", D),
        ("U", U),
        ("G", G),
        ("RSW 11", 3 << 8),
        ("reserved bit 54", 1 << 54),
        ("reserved bit 63", 1 << 63),
    ];
    for (name, bits) in medium_pointers {
        let good = bits & (A | D | U) == 0 && bits >> 54 == 0;
        tables.set(root, medium, 1, entry(inner, V | bits));
        let name = format!("pointer to a 4 KiB leaf with {name}");
        cases.push(Case { name, va: medium, leaf: good.then_some(inner_leaf) });
        medium += 2 << 20;
    }

    // Upper levels, each with its own entries.
    let mut below = inner;
    for (level, size, mut at) in [(2, "1 GiB", SMALL + (2 << 30)), (3, "512 GiB", 1 << 39), (4, "256 TiB", 1 << 48)] {
        if level >= paging.levels() {
            break;
        }
        let span = 1u64 << Paging::shift(level);
        let aligned = PLAYGROUND & !(span - 1);
        let mut leaves = vec![
            (format!("{size} leaf"), entry(aligned, full), true),
            (format!("{size} leaf with U"), entry(aligned, full | U), true),
            (format!("{size} leaf, W without R"), entry(aligned, V | W | X | AD), false),
            (format!("{size} leaf, reserved bit"), entry(aligned, full | 1 << 59), false),
            (format!("{size} entry invalid"), 0, false),
        ];
        for (lower, name) in ["4 KiB", "2 MiB", "1 GiB", "512 GiB"].iter().enumerate().take(level as usize) {
            let off = aligned | 1 << Paging::shift(lower as u32);
            leaves.push((format!("{size} leaf, misaligned by {name}"), entry(off, full | U), false));
        }
        for (name, value, good) in leaves {
            tables.set(root, at, level, value);
            cases.push(Case { name, va: at | PLAYGROUND & (span - 1), leaf: good.then_some(value) });
            at += span;
        }
        let table = tables.page();
        *tables.slot(table, 0) = entry(below, V);
        for (name, bits) in [("A", A), ("D", D), ("U", U), ("reserved bit 58", 1 << 58)] {
            tables.set(root, at, level, entry(table, V | bits));
            cases.push(Case { name: format!("pointer in place of a {size} leaf with {name}"), va: at, leaf: None });
            at += span;
        }
        below = table;
    }

    // Addresses whose upper bits are not copies of the highest translated bit, and some correct ones beside them.
    let high = 0xffff_ffff_c000_0000;
    tables.set(root, high, 0, inner_leaf);
    cases.push(Case { name: "upper half".into(), va: high, leaf: Some(inner_leaf) });
    let bits = Paging::shift(paging.levels());
    let (top, above) = (1 << (bits - 1), 1 << bits);
    for va in [high & !(1 << 63), high & !above, high & !top, SMALL | top, SMALL | above, SMALL | 1 << 63, top] {
        cases.push(Case { name: format!("non-canonical address {va:#x}"), va, leaf: None });
    }
    cases
}
