// SPDX-License-Identifier: Apache-2.0

use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use super::{ORDER, Python, obey};
use crate::Error;
use crate::input::{Kind, Source, Step, Tail};
use crate::policy;
use crate::policy::tests::core;
use crate::report::Report;
use crate::settings::Settings;
use crate::sim::Sim;

/// A source of loads and stores to pages.
struct Accesses(std::vec::IntoIter<(u64, bool)>);

impl Source for Accesses {
    fn next(&mut self) -> Result<Option<Step>, Error> {
        let kind = |store| if store { Kind::Store } else { Kind::Load };
        Ok(self.0.next().map(|(page, store)| Step {
            line: page * 64,
            kind: kind(store),
            instructions: 2000,
            repeats: 0,
        }))
    }

    fn tail(&self) -> Tail {
        Tail::default()
    }

    fn accesses(&self) -> Option<u64> {
        None
    }

    fn name(&self) -> &str {
        "accesses"
    }
}

fn settings(policy: &str) -> Settings {
    let process = |name| format!("[[process]]\nname = \"{name}\"\ntrace = \"\"\n");
    let (one, other) = (process("one"), process("other"));
    let own = "[own]\nanswer = 42\n[prefetch]\npages = 3\n";
    toml::from_str(&format!("policy = \"{policy}\"\n[memory]\nframes = 24\nreserve = 4\n{own}{one}{other}")).unwrap()
}

/// Two programs that access 60 pages, each with its own stride, and change some of them.
fn programs() -> Vec<Box<dyn Source>> {
    let program = |stride: u64| -> Box<dyn Source> {
        let accesses: Vec<_> = (0..400).map(|n| (n * stride % 60, n % 3 == 0)).collect();
        Box::new(Accesses(accesses.into_iter()))
    };
    vec![program(1), program(7)]
}

/// The report of a run without the policy's name.
fn outcome(name: &str) -> Result<String, Error> {
    let settings = settings(name);
    let made = policy::built_in().make(&settings)?;
    let mut sim = Sim::with_policy(&settings, made, programs(), &[vec![(0, 60)], vec![(0, 30), (40, 20)]])?;
    sim.run(&mut |_| ())?;
    sim.core.check().unwrap();
    Ok(serde_json::to_string(&Report::new(&sim)).unwrap().replace(name, "NAME"))
}

/// Makes a folder with a policy of this text.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.py");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

fn outcome_of(text: &str) -> Result<String, Error> {
    let (_dir, path) = file(text);
    outcome(&format!("python:{}", path.display()))
}

/// The message about a wrong policy, without the folder's name.
fn complaint(text: &str) -> String {
    let said = outcome_of(text).unwrap_err().to_string();
    assert!(!said.contains('\n') && said.contains("mine.py"), "{said}");
    said[said.find("mine.py").unwrap()..].to_owned()
}

const CLASS: &str = "class Policy:\n    def fault(self, core, pid, page):\n        pass\n";

#[test]
fn the_same_policy_gives_the_same_report() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/examples/pagesim-policy.py");
    let example = example.canonicalize().unwrap();
    assert_eq!(outcome(&format!("python:{}", example.display())).unwrap(), outcome("virt").unwrap());
    assert_eq!(outcome_of(CLASS).unwrap(), outcome("sync").unwrap());
    assert_ne!(outcome("virt").unwrap(), outcome("sync").unwrap());
    let switches =
        "    def wait(self, core, pid, page, until):\n        assert until > core.now\n        return 'switch'\n";
    assert_eq!(outcome_of(&[CLASS, switches].concat()).unwrap(), outcome("async").unwrap());
    let method = |line: &str| format!("    def {line}\n");
    let usual =
        method("slice(self, core, pid, usual): pass") + &method("goes_on(self, core, pid, usual): return usual");
    assert_eq!(outcome_of(&[CLASS, &usual].concat()).unwrap(), outcome("sync").unwrap());
}

/// Calls every method, and checks what the simulator tells it.
#[test]
fn every_method_is_called_and_told_the_truth() {
    let text = r#"
import os
class Policy:
    replacement = "two-lists"

    def __init__(self, settings):
        assert settings["own"]["answer"] == 42 and settings["memory"]["frames"] == 24
        self.seen, self.running, self.ahead, self.called = set(), None, set(), []

    def fault(self, core, pid, page):
        self.seen.add("fault")
        assert pid == self.running and core.page(pid, page).place == "reading"
        assert core.page(pid, page).arrives > core.now and core.page(pid, page).origin == "demand"
        assert core.area(pid, page) == ((0, 60) if pid == 0 else (0, 30) if page < 30 else None if page < 40 else (40, 60))
        assert not core.mapped(1, 35) and not core.mapped(0, 60) and core.area(0, 60) is None and core.mapped(1, 40)
        following = page + 1
        if core.mapped(pid, following) and core.page(pid, following).place == "device":
            core.prefetch(pid, following, origin="successor")
            found = core.page(pid, following)
            assert found.place in ("reading", "device") and found.origin in ("demand", "successor"), found
            if found.place == "reading":
                self.ahead.add((pid, following))
        core.prefetch(1, 70)
        core.demote(pid, page - 1 if page else 0)
        core.keep(pid, page)
        core.call_at(core.now + 1000)
        self.called.append(core.now + 1000)

    def call(self, core):
        self.seen.add("call")
        assert core.now >= self.called.pop(0)

    def used(self, core, pid, page):
        self.seen.add("used")
        assert (pid, page) in self.ahead

    def evicted(self, core, pid, page, written):
        self.seen.add("written" if written else "dropped")
        assert core.page(pid, page).place != "resident"

    def enter(self, core, pid):
        self.seen.add("enter")
        self.running = pid
        following, asleep = core.ready()
        assert following in (None, 1 - pid) and asleep in (0, 1), (following, asleep)

    def slice(self, core, pid, usual):
        self.seen.add("slice")
        return 50_000_000

    def goes_on(self, core, pid, usual):
        self.seen.add("goes_on")
        return False

    def leave(self, core, pid):
        self.seen.add("leave")
        assert pid == self.running
        with open(os.path.join(os.path.dirname(__file__), "seen"), "w") as file:
            file.write(" ".join(sorted(self.seen)))
"#;
    let (dir, path) = file(text);
    let name = format!("python:{}", path.display());
    let report = outcome(&name).unwrap();
    let seen = std::fs::read_to_string(dir.path().join("seen")).unwrap();
    assert_eq!(seen, "call dropped enter fault goes_on leave slice used written");
    assert!(report.contains("\"successor\":{\"issued\""), "{report}");
    // Each run gives the same report.
    assert_eq!(outcome(&name).unwrap(), report);
}

#[test]
fn a_wrong_file_is_named_with_its_line() {
    assert_eq!(complaint("class Policy:\n    def fault(self core):\n"), "mine.py, line 2: SyntaxError: invalid syntax");
    assert_eq!(complaint("x = 1\n"), "mine.py: has no class Policy");
    assert_eq!(complaint("class Policy:\n    pass\n"), "mine.py: class Policy has no method fault(core, pid, page)");
    assert_eq!(
        complaint("import no_such_module\n"),
        "mine.py, line 1: ModuleNotFoundError: No module named 'no_such_module'"
    );
    let fault = |line: &str| complaint(&CLASS.replace("pass", line));
    assert_eq!(fault("1 / (page - page)"), "mine.py, line 3: ZeroDivisionError: division by zero");
    assert_eq!(fault("raise ValueError('two\\nlines')"), "mine.py, line 3: ValueError: two lines");
    assert_eq!(
        fault("self.fault()"),
        "mine.py, line 3: TypeError: Policy.fault() missing 3 required positional arguments: 'core', 'pid', and 'page'"
    );
    assert_eq!(
        fault("core.prefetch(pid, -1)"),
        "mine.py, line 3: process 0, page or time -1: both must be whole numbers, 0 or more"
    );
    assert_eq!(fault("core.prefetch(9, 1)"), "mine.py: there is no process 9");
    assert_eq!(fault("core.mapped(9, 1)"), "mine.py, line 3: IndexError: list index out of range");
    assert!(
        fault("core.prefetch(pid, 1, 'x')")
            .starts_with("mine.py, line 3: prefetch: origin 'x' is not one of neighbour, ")
    );
    assert!(fault("core.call_at(core.now)").starts_with("mine.py, line 3: call_at: "));
    assert!(fault("exit()").starts_with("mine.py, line 3: SystemExit"));
    let wait = "    def wait(self, core, pid, page, until):\n        pass\n";
    assert_eq!(complaint(&[CLASS, wait].concat()), "mine.py: wait returned None, not \"spin\" or \"switch\"");
    let slice = "    def slice(self, core, pid, usual):\n        return 0\n";
    assert_eq!(complaint(&[CLASS, slice].concat()), "mine.py: slice returned 0, not a time from 1 to 10^15 ps");
    let order = "    replacement = 'best'\n";
    assert!(complaint(&[CLASS, order].concat()).starts_with("mine.py: replacement must be one of lru, fifo"));
    let said = outcome("python:/nowhere/mine.py").unwrap_err().to_string();
    assert!(said.starts_with("/nowhere/mine.py: No such file"), "{said}");
}

/// Whether the process of a policy has ended.
fn gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_child_that_dies_or_hangs_is_one_line_and_leaves_no_zombie() {
    assert_eq!(
        complaint(&["import os\n", &CLASS.replace("pass", "os._exit(3)")].concat()),
        "mine.py: python3 ended with exit status: 3 and did not answer a question"
    );
    assert_eq!(
        complaint("import os\nos._exit(4)\n"),
        "mine.py: python3 ended with exit status: 4 and did not answer its start"
    );
    let killed = ["import os\n", &CLASS.replace("pass", "os.kill(os.getpid(), 9)")].concat();
    assert!(complaint(&killed).starts_with("mine.py: python3 ended with signal: 9"), "{}", complaint(&killed));
    // Sends nonsense over the socket: 16 bytes with kind 7, and unknown orders.
    let nonsense = |bytes: &str| {
        complaint(&["import os\n", &CLASS.replace("pass", &format!("os.write(core._socket, {bytes})"))].concat())
    };
    assert_eq!(nonsense("bytes([7]) * 16"), "mine.py: its answer makes no sense");
    assert_eq!(nonsense("bytes([0] * 7 + [255] + [0] * 8)"), "mine.py: its answer makes no sense");
    assert_eq!(nonsense("bytes([0] * 4 + [1] + [0] * 11 + [99] + [0] * 15)"), "mine.py: its answer makes no sense");

    // A policy that hangs is stopped when its time is over.
    let (_dir, path) = file(&CLASS.replace("pass", "while True: pass"));
    let settings = settings("sync");
    let mut python = Python::start(&path, &settings).unwrap();
    python.wait_for(Duration::from_millis(300)).unwrap();
    let pid = python.child.id();
    let mut sim = Sim::with_policy(&settings, Box::new(python), programs(), &[vec![(0, 60)], vec![(0, 60)]]).unwrap();
    let said = sim.run(&mut |_| ()).unwrap_err().to_string();
    assert!(said.ends_with("mine.py: no answer to a question within 0.3 s"), "{said}");
    assert!(!gone(pid));
    drop(sim);
    assert!(gone(pid));
    // A policy that ends by itself may finish its output.
    let (dir, path) =
        file(&["import atexit\natexit.register(lambda: open(__file__ + '.end', 'w').write('end'))\n", CLASS].concat());
    let python = Python::start(&path, &settings).unwrap();
    let pid = python.child.id();
    drop(python);
    assert!(gone(pid) && dir.path().join("mine.py.end").exists());
}

proptest! {
    /// Whatever the child orders, the counts of frames and pages stay right.
    #[test]
    fn orders_break_nothing(
        orders in prop::collection::vec((0u8..7, 0u8..7, 0u32..3, prop_oneof![0u64..40, any::<u64>()]), 0..60),
    ) {
        let mut core = core(8, &[(0, 20), (5, 20)]);
        for (op, origin, pid, page) in orders {
            let mut text = vec![op, origin, 0, 0];
            text.extend(pid.to_le_bytes());
            text.extend(page.to_le_bytes());
            prop_assert_eq!(text.len(), ORDER);
            let _ = obey(Path::new("x.py"), &mut core, &text);
        }
        prop_assert_eq!(core.check(), Ok(()));
    }
}
