// SPDX-License-Identifier: Apache-2.0
//! The crate's modules form an order; each imports only from modules before it (docs/explanation/machine.md).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each module of the crate imports only from those before it.
const ORDER: [&str; 11] =
    ["config", "error", "cores", "board", "sbi", "firmware", "boot", "terminal", "watch", "checkpoint", "machine"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// The module of a file of `src`.
fn module(file: &Path) -> String {
    let first = file.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// Modules that a text names after `crate::`, without tests and comments.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let named = lines.flat_map(|line| line.split("crate::").skip(1));
    named.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()).collect()
}

#[test]
fn modules_import_only_what_is_before_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&src, &mut found);
    assert!(found.len() > 30, "{found:?}");
    for path in found {
        let file = path.strip_prefix(&src).unwrap();
        let module = module(file);
        if module == "lib" {
            continue;
        }
        let place = |name: &str| ORDER.iter().position(|m| *m == name);
        let own = place(&module).unwrap_or_else(|| panic!("{module} has no place in the order"));
        for import in imports(&fs::read_to_string(&path).unwrap()) {
            let before = place(&import).is_some_and(|other| other < own);
            assert!(before, "{} imports crate::{import}, which is not before {module}", file.display());
        }
    }
}
