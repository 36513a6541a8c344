// SPDX-License-Identifier: Apache-2.0
//! A block's code for people: by objdump where it is installed, in hex otherwise.

use std::path::Path;
use std::process::Command;

use crate::program::Block;

/// The code of a block with its addresses.
pub fn listing(block: &Block, folder: &Path) -> String {
    disassemble(block, folder).unwrap_or_else(|| hex(block))
}

fn disassemble(block: &Block, folder: &Path) -> Option<String> {
    let file = folder.join("block.bin");
    std::fs::write(&file, &block.code).ok()?;
    let out = Command::new("riscv64-linux-gnu-objdump")
        .args(["-D", "-b", "binary", "-m", "riscv:rv64", "-M", "no-aliases"])
        .arg(format!("--adjust-vma={:#x}", block.entry))
        .arg(&file)
        .output()
        .ok()
        .filter(|out| out.status.success())?;
    let _ = std::fs::remove_file(&file);
    let text = String::from_utf8_lossy(&out.stdout);
    Some(text.lines().filter(|l| l.contains(":\t")).collect::<Vec<_>>().join("\n"))
}

fn hex(block: &Block) -> String {
    let mut lines = Vec::new();
    let mut at = 0;
    while let Some(low) = block.code.get(at..at + 2) {
        let length = if low[0] & 3 == 3 { 4 } else { 2 };
        let bytes = block.code.get(at..at + length).unwrap_or(low);
        let word: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
        lines.push(format!("{:x}: {word}", block.entry + at as u64));
        at += length;
    }
    lines.join("\n")
}
