// SPDX-License-Identifier: Apache-2.0
//! Bugs seeded into the translator: self-hashing blocks must find each of them, and the bisection must name the instruction.
//! The reference is the interpreter, so that the test does not need QEMU.

use fastrand::Rng;
use trapless_difftest::campaign;
use trapless_difftest::run::{MACHINES, Runner};
use trapless_machine::Engine;
use trapless_riscv::{Bug, seed_bug};

const INTERPRETER: Runner = Runner::Machine { engine: Engine::Interpreter, detailed: false };

/// Runs programs of self-hashing blocks until one differs. Returns the mnemonics that the bisection names.
fn named(bug: Option<Bug>, programs: u64, detailed: bool) -> Option<Vec<&'static str>> {
    let folder = tempfile::tempdir().unwrap();
    seed_bug(bug);
    let machine = Runner::Machine { engine: Engine::Translator, detailed };
    let outcome = (1..=programs).find_map(|seed| {
        let cells = campaign::program(&mut Rng::with_seed(seed), 2_000_000);
        let outcome = campaign::run(&cells, &INTERPRETER, std::slice::from_ref(&machine), folder.path()).unwrap();
        (!outcome.problems.is_empty()).then_some(outcome)
    });
    seed_bug(None);
    let culprit = outcome?.culprit.expect("the block must differ again");
    println!("{bug:?}: {}, round {}\n{}", culprit.cell, culprit.round, culprit.text);
    Some(culprit.mnemonics)
}

#[test]
fn a_right_translator_is_equal_to_the_interpreter() {
    assert_eq!(named(None, 1, false), None);
    assert_eq!(MACHINES.len(), 4);
}

#[test]
fn a_wrong_multiplication_is_found() {
    assert_eq!(named(Some(Bug::MulhsuUnsigned), 4, false), Some(vec!["mulhsu"]));
}

#[test]
fn a_wrong_shift_is_found_with_detailed_timing() {
    assert_eq!(named(Some(Bug::SrawLogical), 4, true), Some(vec!["sraw"]));
}

#[test]
fn a_wrong_remainder_is_found() {
    let found = named(Some(Bug::RemainderOfMinusOne), 4, false).expect("shows");
    assert!(matches!(found[..], ["rem" | "remw"]), "{found:?}");
}

#[test]
fn a_load_without_its_box_is_found() {
    assert_eq!(named(Some(Bug::FlwUnboxed), 4, false), Some(vec!["flw"]));
}

#[test]
fn a_store_that_must_not_be_is_found() {
    let found = named(Some(Bug::ScAlways), 4, false).expect("shows");
    assert!(matches!(found.last(), Some(&("sc.w" | "sc.d"))), "{found:?}");
}

#[test]
fn code_that_stays_is_found() {
    let found = named(Some(Bug::CodeStays), 4, false).expect("shows");
    assert_eq!(found[..2], ["sw", "fence.i"], "{found:?}");
}
