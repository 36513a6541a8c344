// SPDX-License-Identifier: Apache-2.0
//! Policies in Python. Needs valgrind and python3. (dev/tests/test_policy_examples.py has the example in Rust, which is a project
//! for itself.)

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CONFIG: &str = r#"
policy = "virt"
[memory]
frames = 60
[[process]]
name = "one"
trace = "echo.trace"
[[process]]
name = "other"
trace = "echo.trace"
"#;

fn pagesim(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trapless-pagesim")).current_dir(dir).args(arguments).output().unwrap()
}

fn recorded() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    assert!(pagesim(dir.path(), &["record", "--out", "echo.trace", "--", "echo", "hello"]).status.success());
    std::fs::write(dir.path().join("config.toml"), CONFIG).unwrap();
    dir
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/examples/pagesim-policy.py").canonicalize().unwrap()
}

#[test]
fn the_example_in_python_is_virt() {
    let temporary = recorded();
    let dir = temporary.path();
    let result = |policy: &str| -> String {
        let set = format!("policy={policy}");
        let done = pagesim(dir, &["run", "config.toml", "--json", "result.json", "--set", &set]);
        assert!(done.status.success(), "{done:?}");
        std::fs::read_to_string(dir.join("result.json")).unwrap().replace(&format!("\"{policy}\""), "NAME")
    };
    let virt = result("virt");
    assert!(virt.contains("\"neighbour\"") && virt != result("sync"));
    assert_eq!(result(&format!("python:{}", example().display())), virt);
    // Beside the configuration, wherever the simulator runs.
    std::fs::copy(example(), dir.join("mine.py")).unwrap();
    let config = dir.join("config.toml");
    let done = pagesim(Path::new("/"), &["run", config.to_str().unwrap(), "--set", "policy=python:mine.py"]);
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn what_is_wrong_is_one_line() {
    let temporary = recorded();
    let dir = temporary.path();
    let complaint = |text: &str| {
        std::fs::write(dir.join("mine.py"), text).unwrap();
        let done = pagesim(dir, &["run", "config.toml", "--set", "policy=python:mine.py", "--json", "result.json"]);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!((done.status.code(), said.lines().count(), done.stdout.len()), (Some(2), 1, 0), "{text}: {said}");
        assert!(!dir.join("result.json").exists());
        said
    };
    assert!(complaint("x = [\n").contains("mine.py, line 1: SyntaxError: '[' was never closed"));
    let class = "class Policy:\n    def fault(self, core, pid, page):\n        ";
    let said = complaint(&format!("{class}self.pages[page] = 1\n"));
    assert_eq!(said, "trapless-pagesim: mine.py, line 3: AttributeError: 'Policy' object has no attribute 'pages'\n");
    assert!(
        complaint(&format!("import os\n{class}os._exit(7)\n")).contains("mine.py: python3 ended with exit status: 7")
    );
    // What a policy prints is no result.
    std::fs::write(dir.join("mine.py"), format!("{class}print('a fault')\n")).unwrap();
    let done = pagesim(dir, &["run", "config.toml", "--set", "policy=python:mine.py"]);
    let (out, said) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert!(done.status.success() && out.lines().count() == 1 && said.starts_with("a fault\na fault\n"), "{out}{said}");
    let missing = pagesim(dir, &["run", "config.toml", "--set", "policy=python:none.py"]);
    assert!(String::from_utf8(missing.stderr).unwrap().contains("none.py: No such file"));
}
