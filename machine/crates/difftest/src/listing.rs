// SPDX-License-Identifier: Apache-2.0
//! Code for people to read: by objdump if it is installed, otherwise in hex.

use std::path::Path;
use std::process::Command;

use crate::insn;

/// Lists the code at an address.
pub fn listing(code: &[u8], at: u64, folder: &Path) -> String {
    disassemble(code, at, folder).unwrap_or_else(|| hex(code, at))
}

/// Instructions with their addresses. An instruction that is cut off at the end is left out.
pub fn instructions(code: &[u8], at: u64) -> impl Iterator<Item = (u64, &[u8])> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let low = code.get(from..from + 2)?;
        let length = if low[0] & 3 == 3 { 4 } else { 2 };
        let bytes = code.get(from..from + length)?;
        from += length;
        Some((at + (from - length) as u64, bytes))
    })
}

/// The mnemonic of an instruction.
pub fn mnemonic(bytes: &[u8]) -> &'static str {
    let name = match bytes {
        [a, b] => insn::find_short(u16::from_le_bytes([*a, *b])).map(|i| i.name),
        [a, b, c, d] => insn::find_wide(u32::from_le_bytes([*a, *b, *c, *d])).map(|i| i.name),
        _ => None,
    };
    name.unwrap_or("(none)")
}

fn disassemble(code: &[u8], at: u64, folder: &Path) -> Option<String> {
    let file = folder.join("block.bin");
    std::fs::write(&file, code).ok()?;
    let out = Command::new("riscv64-linux-gnu-objdump")
        .args(["-D", "-b", "binary", "-m", "riscv:rv64", "-M", "no-aliases,numeric"])
        .arg(format!("--adjust-vma={:#x}", at))
        .arg(&file)
        .output()
        .ok()
        .filter(|out| out.status.success())?;
    let _ = std::fs::remove_file(&file);
    let text = String::from_utf8_lossy(&out.stdout);
    Some(text.lines().filter(|l| l.contains(":\t")).collect::<Vec<_>>().join("\n"))
}

fn hex(code: &[u8], at: u64) -> String {
    let line = |(at, bytes): (u64, &[u8])| {
        let word: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
        format!("{at:x}: {word} {}", mnemonic(bytes))
    };
    instructions(code, at).map(line).collect::<Vec<_>>().join("\n")
}
