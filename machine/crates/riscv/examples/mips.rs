// SPDX-License-Identifier: Apache-2.0
//! Measures the interpreter: runs a loop of loads, stores, arithmetic, branches and calls in M-mode for a few seconds.
//!
//! `cargo run --release --example mips [SECONDS]` prints how many million instructions it executes per second of host time.

use std::time::Instant;

use trapless_memory::{BusError, Cycle, MmioEffect, PhysAddr, Ram};
use trapless_riscv::{Bus, CodeCache, Env, Hart, HartConfig};

/// Code at the start of RAM: `_start` walks over 16 KiB and calls `helper`, which is in another page (at 0x1000).
const START: &[u32] = &[
    0x4008_0437,
    0xd9b7_0406,
    0x899b_3b9a,
    0x82a2_a009,
    0x4000_0313,
    0xb583_4501,
    0x058d_0002,
    0xb023_8d2d,
    0xa603_00b2,
    0x1693_0042,
    0x9536_0036,
    0x00a2_8423,
    0x0015_7713,
    0x0785_c311,
    0x137d_02c1,
    0xfc03_1de3,
    0x0000_1097,
    0xfc00_80e7,
    0x92e3_19fd,
    0xa001_fc09,
];
const HELPER: &[u32] = &[0x8d1d_1141, 0x8082_0141];

struct Board(Ram);

impl Bus for Board {
    fn ram(&mut self) -> &mut Ram {
        &mut self.0
    }
    fn mmio_read(&mut self, at: PhysAddr, _: u8, _: Cycle) -> Result<(u64, MmioEffect), BusError> {
        Err(BusError(at))
    }
    fn mmio_write(&mut self, at: PhysAddr, _: u8, _: u64, _: Cycle) -> Result<MmioEffect, BusError> {
        Err(BusError(at))
    }
    fn time(&mut self, now: Cycle) -> u64 {
        now.0
    }
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(3.0);
    let base = PhysAddr(0x8000_0000);
    let Ok(mut ram) = Ram::new(base, 4 << 20) else { return eprintln!("no memory") };
    for (at, words) in [(0, START), (0x1000, HELPER)] {
        for (i, w) in words.iter().enumerate() {
            ram.store(PhysAddr(base.0 + at + 4 * i as u64), w.to_le_bytes());
        }
    }
    let mut board = Board(ram);
    let mut code = CodeCache::default();
    let mut hart = Hart::new(HartConfig::new(0), base.0);
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds {
        let until = hart.now() + Cycle(10_000_000);
        hart.run(&mut Env { bus: &mut board, code: &mut code, observer: &mut (), timing: &mut () }, until);
    }
    let (n, s) = (hart.retired().iter().sum::<u64>(), begin.elapsed().as_secs_f64());
    println!("{:.1} MIPS ({n} instructions, {} cycles, {s:.2} s)", n as f64 / s / 1e6, hart.now().0);
}
