// SPDX-License-Identifier: Apache-2.0
//! A bug seeded into the page walker that only deep page tables can show. The programs of the deep modes must find it by what
//! the specification requires, so that the test does not need QEMU.

use trapless_difftest::program::Program;
use trapless_difftest::run::MACHINES;
use trapless_difftest::{compare, paging};
use trapless_memory::Paging;
use trapless_riscv::{Bug, seed_bug};

/// The mistakes that a program of this mode finds.
fn problems(mode: Paging, bug: Option<Bug>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::paged(mode);
    paging::common(&mut program);
    seed_bug(bug);
    let run = MACHINES[0].run(&program, folder.path()).unwrap();
    seed_bug(None);
    let log = compare::records(&run.memory);
    assert!(compare::complete(&program, &log));
    compare::broken_expectations(&program, &log, "the machine")
}

#[test]
fn a_walker_that_takes_misaligned_leaves_above_a_gigabyte_is_found() {
    for mode in Paging::ALL {
        assert_eq!(problems(mode, None), Vec::<String>::new(), "{mode}");
        let found = problems(mode, Some(Bug::LargeMisaligned));
        assert_eq!(found.is_empty(), mode == Paging::Sv39, "{mode}: {found:?}");
        assert!(found.iter().all(|p| p.contains("misaligned")), "{mode}: {found:?}");
    }
}
