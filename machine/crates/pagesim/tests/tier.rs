// SPDX-License-Identifier: Apache-2.0
//! The compressed tier and several drives: simulations by hand, and small random ones that must keep the invariants.

mod common;

use common::{Program, access, json, loads, policies, programs, run, settings, sim};
use proptest::prelude::*;
use trapless_pagesim::optimum;
use trapless_pagesim::replacement::BUILT_IN;
use trapless_pagesim::settings::{Clean, Ratio, SchedulerKind, Settings, Tier, TierKind, us};
use trapless_pagesim::sim::Sim;

/// Five frames. The tier may use one of them.
fn small(tier: &str) -> Settings {
    let text = format!(
        "[memory]\nframes = 5\nreserve = 0\n[tier]\nframes = 1\ncompress_us = 1.0\ndecompress_us = 2.0\n{tier}"
    );
    settings("sync", &text, 1)
}

/// Stores to some pages, then loads of others.
fn program(stores: &[u64], then: &[u64]) -> Program {
    stores.iter().map(|page| access(*page, 0, true, 1000)).chain(loads(then)).collect()
}

fn time_ns(sim: &Sim) -> u64 {
    sim.core.now() / 1000
}

/// Pages 0 (changed) to 4 fill five frames. Page 5 evicts page 0, which is compressed in 1 us; the tier keeps its frame. So page
/// 1 is evicted as well. It has not changed and is dropped. Page 0 returns in 2 us without a read. The drive reads six pages.
#[test]
fn a_changed_page_comes_back_from_the_tier_by_hand() {
    for kind in ["zswap", "zram"] {
        let sim = run(&small(&format!("kind = '{kind}'\nratio = 4.0")), &[program(&[0], &[1, 2, 3, 4, 5, 0])], 10);
        let stats = &sim.core.stats;
        assert_eq!((stats.reads, stats.writes, stats.processes[0].faults), (6, 0, 7));
        assert_eq!((stats.tier.stored, stats.tier.hits, stats.tier.loaded, stats.tier.most_frames), (1, 1, 1, 1));
        assert_eq!((stats.tier.hit_time, stats.tier.work), (us(2.0), us(3.0)));
        assert_eq!(time_ns(&sim), 7 * (1000 + 50) + 6 * 3000 + 1000 + 2000);
        assert_eq!(sim.core.check(), Ok(()));
    }
}

/// Pages 0 and 1 have changed. When compressed, one of them fills the tier. Page 5 evicts 0, then 1. To make room for 1, page 0
/// is decompressed and written, in the frame of 1. Then 2 is evicted and dropped. The read of page 5 waits 1.28 us for the write
/// on the link.
#[test]
fn a_full_zswap_writes_its_oldest_page_by_hand() {
    let sim = run(&small("kind = 'zswap'\nratio = 1.6"), &[program(&[0, 1], &[2, 3, 4, 5])], 10);
    let stats = &sim.core.stats;
    assert_eq!((stats.reads, stats.writes, stats.tier.stored, stats.tier.written_back), (6, 1, 2, 1));
    assert_eq!(time_ns(&sim), 6 * (1000 + 50) + 6 * 3000 + 2 * 1000 + 2000 + 1280);
    // The drive has page 0, the tier page 1.
    let sim = run(&small("kind = 'zswap'\nratio = 1.6"), &[program(&[0, 1], &[2, 3, 4, 5, 6, 7, 8, 0, 1])], 10);
    assert_eq!((sim.core.stats.reads, sim.core.stats.tier.hits), (10, 1));
}

/// A full zram takes no more pages: page 1 is written, and the fault waits for the write. Page 0 is still in the tier.
#[test]
fn a_full_zram_sends_pages_to_the_drive_by_hand() {
    let sim = run(&small("kind = 'zram'\nratio = 1.6"), &[program(&[0, 1], &[2, 3, 4, 5, 0])], 10);
    let stats = &sim.core.stats;
    assert_eq!((stats.reads, stats.writes, stats.tier.stored, stats.tier.rejected, stats.tier.hits), (6, 1, 1, 1, 1));
    assert_eq!((time_ns(&sim), stats.stalled), (7 * (1000 + 50) + 7 * 3000 + 1000 + 2000, us(3.0)));
}

#[test]
fn a_page_that_does_not_compress_is_none_for_zswap() {
    for (kind, stored) in [("zswap", 0), ("zram", 1)] {
        let sim = run(&small(&format!("kind = '{kind}'\nratio = 1.0")), &[program(&[0], &[1, 2, 3, 4, 5])], 10);
        let found = (sim.core.stats.tier.stored, sim.core.stats.tier.rejected, sim.core.stats.writes);
        assert_eq!(found, (stored, 1 - stored, 1 - stored), "{kind}");
    }
}

/// A loop over 60 pages in 40 frames: LRU reads every page in every round. A tier of up to 20 frames, with four pages in each,
/// has room for all evicted pages, if unchanged pages may enter it.
#[test]
fn a_tier_for_clean_pages_saves_reads() {
    let rounds = loads(&(0..60).collect::<Vec<_>>().repeat(5));
    let reads = |clean| {
        let text = format!(
            "[memory]\nframes = 40\nreserve = 0\n[tier]\nkind = 'zswap'\nframes = 20\nratio = 4\nclean = '{clean}'"
        );
        let sim = run(&settings("sync", &text, 1), std::slice::from_ref(&rounds), 60);
        (sim.core.stats.reads, sim.core.stats.writes, sim.core.stats.tier.hits)
    };
    // The cache holds all lines of pages that stay. A page that was evicted has lost its line.
    assert_eq!(reads("drop"), (300, 0, 0));
    assert_eq!(reads("store"), (60, 0, 240));
}

/// Eight pages on four drives, each of which serves one read at a time: two rounds instead of eight.
#[test]
fn drives_serve_their_pages_side_by_side() {
    let time = |drives: u32, stripe: u32| {
        let text = format!(
            "[memory]\nframes = 64\n[prefetch]\npages = 7\n[device]\nlatency_us = 20.0\nchannels = 1\n\
             drives = {drives}\nstripe_pages = {stripe}"
        );
        let sim = run(&settings("virt", &text, 1), &[loads(&(0..8).collect::<Vec<_>>())], 8);
        assert_eq!(sim.core.stats.reads, 8);
        (sim.core.now(), sim.core.drives().iter().map(|drive| drive.reads).collect::<Vec<_>>())
    };
    let (one, reads) = time(1, 256);
    assert_eq!(reads, [8]);
    assert_eq!(time(4, 256), (one, vec![8, 0, 0, 0]));
    let (four, reads) = time(4, 1);
    assert_eq!(reads, [2; 4]);
    assert!(four < one / 2, "{four} {one}");
}

#[test]
fn far_memory_is_a_drive() {
    let time = |drive: &str| {
        let text = format!("[memory]\nframes = 64\n[device]\ndrive = '{drive}'");
        time_ns(&run(&settings("sync", &text, 1), &[loads(&[0])], 1))
    };
    assert_eq!((time("rdma"), time("cxl")), (1000 + 4300 + 50, 1000 + 800 + 50));
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |settings: &Settings| sim(settings, &[loads(&[0])], 1).err().unwrap().to_string();
    let mut large = small("kind = 'zram'");
    large.memory.frames = 4;
    assert_eq!(refused(&large), "tier.frames: 1 is not from 1 to 0");
    let mut none = small("kind = 'zram'");
    none.device.drives = 0;
    assert_eq!(refused(&none), "device.drives: 0 is not from 1 to 64");
    let error = optimum::run(&small("kind = 'zram'"), vec![], &[], &mut |_| ()).err().unwrap().to_string();
    assert!(error.starts_with("policy optimum: ") && !error.contains('\n'), "{error}");
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let tier = (any::<bool>(), 1..12u32, 1.0..8.0f64, 0.0..4.0f64, any::<bool>(), any::<bool>()).prop_map(
        |(zswap, frames, ratio, compress_us, store, shape)| Tier {
            kind: if zswap { TierKind::Zswap } else { TierKind::Zram },
            frames,
            ratio: if shape { Ratio::Shape(vec![(0.0, 1.0), (0.3, 1.0), (1.0, ratio)]) } else { Ratio::Same(ratio) },
            compress_us,
            decompress_us: compress_us / 2.0,
            clean: if store { Clean::Store } else { Clean::Drop },
        },
    );
    let choice = (prop::sample::select(policies(|_| true)), 0..BUILT_IN.len(), any::<bool>(), 4..40u32, 0..6u32);
    (choice, tier, 1.8..60.0f64, 1..4u32, 1..8u32).prop_map(
        |((policy, replacement, eevdf, frames, reserve), tier, latency, drives, stripe)| {
            let frames = frames + reserve + 3 + tier.frames;
            let mut settings = settings(policy, &format!("[memory]\nframes = {frames}\nreserve = {reserve}"), 4);
            settings.memory.replacement = Some(BUILT_IN[replacement].name.to_owned());
            settings.scheduler.kind = if eevdf { SchedulerKind::Eevdf } else { SchedulerKind::Cfs };
            settings.device.latency_us = Some(latency);
            (settings.device.drives, settings.device.stripe_pages) = (drives, stripe);
            settings.tier = Some(tier);
            (settings.cpu.cache_kib, settings.cpu.cache_ways) = (8, 2);
            settings
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Frames and compressed bytes are conserved after every turn. Every page that enters the tier leaves it once or stays. Times
    /// add up.
    #[test]
    fn any_simulation(mut settings in any_settings(), programs in programs(4)) {
        settings.processes.truncate(programs.len());
        let mut first = sim(&settings, &programs, 30).unwrap();
        while first.core.stats.processes.iter().any(|process| process.finished.is_none()) {
            first.turn().unwrap();
            prop_assert_eq!(first.core.check(), Ok(()));
        }
        let (stats, tier) = (&first.core.stats, &first.core.stats.tier);
        let sum = |of: fn(&trapless_pagesim::stats::ProcessStats) -> u64| stats.processes.iter().map(of).sum::<u64>();
        let ahead: u64 = stats.prefetches.values().map(|found| found.issued).sum();
        prop_assert_eq!(stats.reads + tier.loaded, sum(|process| process.faults) + ahead);
        prop_assert!(tier.hits <= tier.loaded);
        prop_assert!(tier.written_back <= stats.writes);
        let left = tier.loaded + tier.written_back + tier.dropped;
        prop_assert!(left <= tier.stored && tier.stored - left <= first.core.pages.iter().count() as u64);
        prop_assert!(tier.most_frames <= settings.tier.as_ref().unwrap().frames.into());
        let costs = settings.tier.as_ref().map(|tier| (us(tier.compress_us), us(tier.decompress_us))).unwrap();
        let least = tier.stored * costs.0 + (tier.loaded + tier.written_back) * costs.1;
        prop_assert!(tier.work >= least && tier.work <= least + tier.rejected * costs.0);
        prop_assert!(tier.hit_time >= tier.hits * costs.1);
        let busy = sum(|process| process.cpu);
        prop_assert_eq!(first.core.now(), busy + stats.idle + stats.switches * us(5.0) + tier.between_turns);
        let work: u64 = programs.iter().flatten().map(|step| step.instructions * 1000).sum::<u64>()
            + sum(|process| process.cache_misses) * 50_000
            + sum(|process| process.waited);
        prop_assert!(busy >= work && busy <= work + stats.stalled + tier.work - tier.between_turns);
        let asked = first.core.drives().iter().fold((0, 0), |all, drive| (all.0 + drive.reads, all.1 + drive.writes));
        prop_assert_eq!(asked, (stats.reads, stats.writes));
        prop_assert_eq!(json(&first), json(&run(&settings, &programs, 30)));
    }
}
