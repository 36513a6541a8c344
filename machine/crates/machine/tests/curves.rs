// SPDX-License-Identifier: Apache-2.0
//! Detailed timing as a program measures it: the curves show the sizes and latencies of the profile.

mod common;

use std::collections::BTreeMap;

use common::{build, run_elf};
use trapless_machine::{DetailFrom, End, Engine};
use trapless_timing::Profile;

/// Kinds of results, as in curves.c.
const CHASE: u32 = 1;
const STRIDE: u32 = 2;
const PAGES: u32 = 3;
const BRANCH: u32 = 4;
const SPREAD: u32 = 5;
const STORE: u32 = 6;

/// Cycles per access, by kind and size.
type Curves = BTreeMap<(u32, u32), f64>;

fn measure(engine: Engine, profile: Profile) -> Curves {
    let dir = tempfile::tempdir().unwrap();
    let file = build("curves", dir.path());
    let (end, machine) = run_elf(file, profile, engine, DetailFrom::Start, Vec::new());
    assert_eq!(end, End::ToHost(0));
    let words: Vec<u32> =
        machine.signature().unwrap().lines().map(|line| u32::from_str_radix(line, 16).unwrap()).collect();
    let record = |w: &[u32]| ((w[0], w[1]), (u64::from(w[3]) << 32 | u64::from(w[2])) as f64 / 1000.0);
    words.chunks_exact(4).filter(|w| w[0] != 0).map(record).collect()
}

fn server() -> Profile {
    Profile::load("server", &["machine.harts=1".into(), "machine.memory_bytes=268435456".into()]).unwrap()
}

#[test]
fn curves_show_sizes_and_latencies() {
    let profile = server();
    let curves = measure(Engine::default(), profile.clone());
    for ((kind, size), cycles) in &curves {
        let name = ["", "chase, bytes", "stride, bytes", "pages", "branch, period", "other pages", "stores, bytes"]
            [*kind as usize];
        eprintln!("{name:16}{size:>10} {cycles:9.3} cycles");
    }
    let detail = profile.detail.clone().unwrap();
    let at = |kind, size| curves[&(kind, size)];
    let near = |what: &str, found: f64, expected: f64, percent: f64| {
        let off = (found - expected).abs();
        assert!(off <= expected * percent / 100.0 + 0.1, "{what}: {found:.3} cycles, expected {expected:.3}");
    };

    // A pointer chase: what fits a level costs that level's latency; what is far larger costs that of the next level.
    let c = &detail.caches;
    let first = at(CHASE, 16 << 10);
    near("within the first level", first - at(CHASE, 8 << 10), 0.0, 0.0);
    near("within the second level", at(CHASE, 128 << 10) - first, c.l2_cycles.into(), 5.0);
    near("within the last level", at(CHASE, 8 << 20) - first, c.last_cycles.into(), 5.0);
    let ns =
        f64::from(c.last_cycles) + 2.8 * (detail.dram.column_ns + detail.dram.activate_ns + detail.dram.precharge_ns);
    near("memory, mostly other rows", at(CHASE, 64 << 20) - first, ns, 15.0);

    // Strides within the last level: one of `loads` loads begins a line of 64 bytes.
    let whole = at(STRIDE, 64);
    near("a line for each load", at(STRIDE, 128), whole, 1.0);
    let miss = f64::from(c.last_cycles);
    for loads in [2u32, 4, 8] {
        near("a line for some loads", whole - at(STRIDE, 64 / loads), miss - miss / f64::from(loads), 1.0);
    }

    // Stores: the core does not wait for their lines, until memory itself is too slow.
    near("stores to the last level", at(STORE, 8 << 20) - at(STORE, 128 << 10), 0.0, 0.0);
    near("stores to memory", at(STORE, 64 << 20), 2.8 * detail.dram.burst_ns, 25.0);

    // Pages: first level, second level, walks.
    let t = &detail.tlb;
    let near_pages = at(PAGES, t.data_entries / 2);
    // The branch at the end of each round may be mispredicted.
    let end = 2.0 * f64::from(detail.predictor.mispredict_cycles) / f64::from(t.data_entries / 2);
    assert!((at(PAGES, t.data_entries) - near_pages).abs() < end, "within the first TLB");
    near("within the second TLB", at(PAGES, t.second_entries / 2) - near_pages, t.second_cycles.into(), 20.0);
    let spread = at(SPREAD, 4 * t.data_entries) - at(SPREAD, t.data_entries);
    near("other pages within the second TLB", spread, t.second_cycles.into(), 8.0);
    // Each walk reads three entries; those of the lowest level are in the first or second level of the caches.
    let (least, most) = (t.second_cycles + c.l1_cycles, t.second_cycles + 3 * (1 + c.l1_cycles) + c.l2_cycles);
    let walk = at(PAGES, 4 * t.second_entries) - near_pages;
    assert!((f64::from(least)..f64::from(most)).contains(&walk), "a walk: {walk:.3} cycles, not {least} to {most}");

    // Branches: a pattern that repeats is learnt, and random ones are mispredicted every other time. A branch that is not taken
    // has one more instruction behind it.
    let wrong = f64::from(detail.predictor.mispredict_cycles);
    near("a pattern of seven", at(BRANCH, 1) - at(BRANCH, 7), 6.0 / 7.0, 2.0);
    near("no pattern", at(BRANCH, 0) - at(BRANCH, 7), wrong / 2.0 + 0.5 - 1.0 / 7.0, 10.0);
}

#[test]
fn both_engines_draw_the_same_curves() {
    let mut profile = server();
    profile.detail.as_mut().unwrap().caches.last_kib = 1280;
    assert_eq!(measure(Engine::Interpreter, profile.clone()), measure(Engine::Translator, profile));
}

#[test]
fn another_profile_gives_other_curves() {
    let base = measure(Engine::default(), server());
    let mut profile = server();
    profile.detail.as_mut().unwrap().caches.l1d_kib = 16;
    profile.detail.as_mut().unwrap().predictor.mispredict_cycles = 30;
    profile.detail.as_mut().unwrap().caches.store_buffer = 0;
    let other = measure(Engine::default(), profile);
    let size = (CHASE, 32 << 10);
    assert!(other[&size] > base[&size] + 4.0, "half the first level: {} against {}", other[&size], base[&size]);
    let last = f64::from(server().detail.unwrap().caches.last_cycles);
    assert!(other[&(STORE, 8 << 20)] > base[&(STORE, 8 << 20)] + 0.9 * last, "every store waits");
    assert!(other[&(BRANCH, 0)] > base[&(BRANCH, 0)] + 5.0);
}
