// SPDX-License-Identifier: Apache-2.0
//! The list of policies: names, a policy that a program adds, and the table in docs/reference/pagesim.md.

use std::path::Path;

use trapless_pagesim::Error;
use trapless_pagesim::core::Core;
use trapless_pagesim::input::{Kind, Source, Step, Tail};
use trapless_pagesim::pages::{Origin, PageId, Pid};
use trapless_pagesim::policy::{self, Policy, Registration};
use trapless_pagesim::replacement::BUILT_IN;
use trapless_pagesim::settings::Settings;
use trapless_pagesim::sim::Sim;

/// A source of loads from pages. It begins with the last page of the list.
struct Loads(Vec<u64>);

impl Source for Loads {
    fn next(&mut self) -> Result<Option<Step>, Error> {
        let step = |page| Step { line: page * 64, kind: Kind::Load, instructions: 1000, repeats: 0 };
        Ok(self.0.pop().map(step))
    }

    fn tail(&self) -> Tail {
        Tail::default()
    }

    fn accesses(&self) -> Option<u64> {
        None
    }

    fn name(&self) -> &str {
        "loads"
    }
}

fn settings(policy: &str) -> Settings {
    let process = "[[process]]\nname = \"P\"\ntrace = \"\"\n";
    toml::from_str(&format!("policy = \"{policy}\"\n[memory]\nframes = 64\n[prefetch]\npages = 2\n{process}")).unwrap()
}

/// Reads the pages on both sides of the missing one. This is the example of docs/how-to/add-a-policy.md.
struct Around;

impl Policy for Around {
    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId) {
        let vpn = core.pages[page].vpn;
        for distance in 1..=u64::from(core.settings.prefetch.pages / 2) {
            for near in [Some(vpn + distance), vpn.checked_sub(distance)].into_iter().flatten() {
                if let Some(page) = core.pages.mapped(pid, near) {
                    core.prefetch(page, Origin::Neighbour);
                }
            }
        }
    }
}

const AROUND: Registration =
    Registration { name: "around", about: "reads the pages on both sides", make: |_| Box::new(Around) };

/// Of pages 5, 4, 6 and 8, only 5 and 8 are missing: the fault on 5 also reads 6 and 4.
#[test]
fn a_program_adds_a_policy_and_runs_it() {
    let mut known = policy::built_in();
    known.add(AROUND).unwrap();
    assert_eq!(known.names().last(), Some("around"));
    let settings = settings("around");
    let made = known.make(&settings).unwrap();
    let loads = Box::new(Loads(vec![8, 6, 4, 5]));
    let mut sim = Sim::with_policy(&settings, made, vec![loads], &[vec![(0, 12)]]).unwrap();
    sim.run(&mut |_| ()).unwrap();
    assert_eq!((sim.core.stats.processes[0].faults, sim.core.stats.reads), (2, 6));
}

#[test]
fn a_name_is_one_policy() {
    let mut known = policy::built_in();
    let taken = Registration { name: "sync", ..AROUND };
    assert_eq!(known.add(taken).unwrap_err().to_string(), "policy sync: another policy has this name");
    let mut names: Vec<_> = known.names().collect();
    let kebab = |name: &&str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    assert!(names.iter().all(kebab), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), known.iter().count());
}

#[test]
fn an_unknown_name_is_refused_with_the_list() {
    let error = policy::built_in().make(&settings("syn")).err().unwrap().to_string();
    assert!(error.starts_with("policy must be one of sync, async, virt, ") && error.ends_with(", not syn"), "{error}");
}

#[test]
fn the_documentation_lists_every_policy() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/pagesim.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let rows = policy::built_in().iter().map(|policy| format!("| `{}` | {} |\n", policy.name, policy.about)).collect();
    let table = ["| name | what it does |\n| --- | --- |\n".to_owned(), rows].concat();
    assert!(text.contains(&table), "docs/reference/pagesim.md must have this table:\n\n{table}");
}

#[test]
fn the_documentation_lists_every_order_of_replacement() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/pagesim.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let rows = BUILT_IN.iter().map(|order| format!("| `{}` | {} |\n", order.name, order.about)).collect();
    let table = ["| name | which page goes |\n| --- | --- |\n".to_owned(), rows].concat();
    assert!(text.contains(&table), "docs/reference/pagesim.md must have this table:\n\n{table}");
}

#[test]
fn an_unknown_order_of_replacement_is_refused_with_the_list() {
    let mut settings = settings("sync");
    settings.memory.replacement = Some("lur".into());
    let error = settings.check().unwrap_err().to_string();
    let begin = "memory.replacement must be one of lru, fifo, clock, ";
    assert!(error.starts_with(begin) && error.ends_with(", not lur"), "{error}");
}
