// SPDX-License-Identifier: Apache-2.0
//! Every device of the board and every kind of input has a target, and all targets pass for a few inputs.

use std::collections::BTreeSet;

use trapless_fuzz::{run, targets};
use trapless_machine::devices;
use trapless_pagesim::input::import::FORMATS;
use trapless_riscv::{Bug, seed_bug};

/// Kinds of input apart from the board's devices.
const OTHERS: [&str; 13] = [
    "nvme",
    "sbi",
    "markers",
    "page-tables",
    "elf",
    "image",
    "initrd",
    "firmware",
    "command-line",
    "trace",
    "gzip",
    "xz",
    "zip",
];

#[test]
fn whatever_a_guest_or_a_file_reaches_has_a_target() {
    let covered: BTreeSet<&str> = targets::ALL.iter().flat_map(|t| t.covers).copied().collect();
    let devices = devices().expect("no two devices may overlap");
    let names = devices.iter().map(|(name, _)| *name);
    let formats = FORMATS.iter().map(|format| format.name());
    let missing: Vec<_> = names.chain(OTHERS).chain(formats).filter(|name| !covered.contains(name)).collect();
    assert!(missing.is_empty(), "no target for {missing:?}");
}

#[test]
fn names_are_different() {
    let names: BTreeSet<&str> = targets::ALL.iter().map(|t| t.name).collect();
    assert_eq!(names.len(), targets::ALL.len());
}

#[test]
fn targets_hold() {
    for target in targets::ALL {
        for seed in 0..target.runs.div_ceil(50) {
            if let Err(failure) = run(target, seed, |_| {}) {
                panic!("{}: seed {seed}: {} with {:x?}", target.name, failure.what, failure.input);
            }
        }
    }
}

/// REQ: ISA-3
#[test]
fn a_walker_that_serves_the_kernel_is_found() {
    let walker = targets::ALL.iter().find(|t| t.name == "walker").expect("the walker has a target");
    seed_bug(Some(Bug::ServesKernel));
    let found = (0..walker.runs.div_ceil(20)).filter_map(|seed| run(walker, seed, |_| {}).err()).next();
    seed_bug(None);
    let what = found.expect("some access of S or M mode finds an armed entry").what;
    assert!(what.contains("Armed") && what.contains("should be Trap"), "{what}");
}
