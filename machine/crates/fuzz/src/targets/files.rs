// SPDX-License-Identifier: Apache-2.0
//! Damaged files of the user: the machine must either run or say what is wrong.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use trapless_difftest::elf::{self, Segment};
use trapless_machine::{Boot, Console, DetailFrom, Engine, Error, Limits, Machine, MachineConfig, Moment};
use trapless_memory::Cycle;
use trapless_timing::Profile;

use super::damage;
use crate::demand;
use crate::tape::Tape;

const RAM: u64 = 0x8000_0000;
const MEMORY: u64 = 16 << 20;
/// Maximum size of a result in bytes.
const LONG_RESULT: u64 = 64 << 10;
const MAX_CYCLE: Cycle = Cycle(20_000);
/// Longest result that a program may have, in lines.
const MOST_LINES: u64 = MEMORY / 4;

fn io(e: std::io::Error) -> String {
    e.to_string()
}

fn machine(boot: Boot, checkpoint: Option<(Moment, PathBuf)>) -> Result<Machine, Error> {
    let changes = ["machine.harts=1".into(), format!("machine.memory_bytes={MEMORY}")];
    let config = MachineConfig {
        profile: Profile::load("vc707", &changes).map_err(|e| Error::Profile(e.to_string()))?,
        boot,
        disks: Vec::new(),
        faults: Vec::new(),
        engine: Engine::default(),
        detail: DetailFrom::Never,
        checkpoint,
        attribution: None,
    };
    Machine::new(config, Console { output: Box::new(std::io::sink()), input: None })
}

/// Runs for a while. Returns the state of the harts afterwards.
fn run(machine: &mut Machine) -> String {
    let stop = AtomicBool::new(false);
    let end = machine.run(&Limits { max_cycle: MAX_CYCLE, window: None, stop: &stop });
    format!("{end:?} {:x?}", machine.harts())
}

/// Checks that an error is one line that names the file.
fn refused(e: &Error, file: &Path) -> Result<(), String> {
    let text = e.to_string();
    demand(!text.contains('\n'), || format!("more than one line: {text:?}"))?;
    let names =
        text.contains(&*file.to_string_lossy()) || matches!(e, Error::MemoryTooSmall { .. } | Error::CommandLine(_));
    demand(names, || format!("the error does not name the file: {text}"))
}

/// Damaged ELF programs.
pub fn elf(t: &mut Tape) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(io)?;
    let file = folder.path().join("program");
    let code: Vec<u8> = (0..8).flat_map(|_| (t.u64() as u32).to_le_bytes()).collect();
    let data = [0; 64];
    let segments = [
        Segment { at: RAM, data: &code, size: 64 },
        Segment { at: RAM + 0x1000, data: &data, size: t.number(0, MEMORY) % MEMORY },
    ];
    let symbols =
        [("tohost", t.number(RAM, MEMORY)), ("begin_signature", RAM), ("end_signature", t.number(RAM, LONG_RESULT))];
    let mut bytes = elf::write(&segments, &symbols);
    damage(t, &mut bytes);
    std::fs::write(&file, &bytes).map_err(io)?;
    match machine(Boot::Elf { file: file.clone() }, None) {
        Err(e) => refused(&e, &file),
        Ok(mut machine) => {
            run(&mut machine);
            let lines = machine.signature().map_or(0, |text| text.lines().count() as u64);
            demand(lines <= MOST_LINES, || format!("{lines} lines of signature, more than memory has words"))
        }
    }
}

/// Damaged kernels, RAM disks and firmware, and any command lines.
pub fn image(t: &mut Tape) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(io)?;
    let file = |name: &str, bytes: &[u8]| -> Result<PathBuf, String> {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).map_err(io)?;
        Ok(path)
    };
    let mut bytes = vec![0; 64];
    bytes[8..16].copy_from_slice(&0x20_0000u64.to_le_bytes());
    bytes[16..24].copy_from_slice(&t.one(&[0x1000, 0, 0x10_0000, 1 << 40, u64::MAX]).to_le_bytes());
    bytes[56..60].copy_from_slice(b"RSC\x05");
    bytes.extend((0..t.below(512)).map(|n| n as u8));
    damage(t, &mut bytes);
    let kernel = file("Image", &bytes)?;
    let initrd = match t.below(3) {
        0 => Some(file("initrd", &vec![0x5a; t.one(&[0, 1, 4096, 1 << 20, 15 << 20, 17 << 20])])?),
        _ => None,
    };
    let firmware = match t.below(3) {
        0 => Some(file("firmware", &vec![0; t.one(&[0, 1, 4096, 17 << 20])])?),
        _ => None,
    };
    let letters = t.below(200);
    let append: String = (0..letters).filter_map(|_| char::from_u32(t.below(0x300) as u32)).collect();
    let boot = Boot::Linux { kernel: kernel.clone(), initrd, append, firmware };
    match machine(boot, None) {
        Err(e) => refused(&e, folder.path()),
        Ok(mut machine) => {
            run(&mut machine);
            Ok(())
        }
    }
}

/// Checkpoints. Damaged ones must be refused; a machine from an intact one must continue as the machine that wrote it does.
pub fn checkpoint(t: &mut Tape) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(io)?;
    let program = folder.path().join("program");
    // Random instructions, followed by a loop.
    let mut code: Vec<u8> =
        (0..t.below(16)).flat_map(|_| (t.u64() as u32 & 0xfff0_7f80 | 0x13).to_le_bytes()).collect();
    code.extend(0x0000_006fu32.to_le_bytes());
    let bytes = elf::write(&[Segment { at: RAM, data: &code, size: code.len() as u64 }], &[]);
    std::fs::write(&program, bytes).map_err(io)?;
    let dir = folder.path().join("checkpoint");
    let moment = Moment::Instructions(1 + t.below(1000));
    let mut first = machine(Boot::Elf { file: program }, Some((moment, dir.clone()))).map_err(|e| e.to_string())?;
    let stop = AtomicBool::new(false);
    first.run(&Limits { max_cycle: MAX_CYCLE, window: None, stop: &stop }).map_err(|e| e.to_string())?;
    if !dir.exists() {
        // The program has never reached the moment of the checkpoint.
        return Ok(());
    }
    let again = || machine(Boot::Checkpoint { dir: dir.clone() }, None);
    let mut second = again().map_err(|e| e.to_string())?;
    demand(run(&mut first) == run(&mut second), || "the machine from the checkpoint continues differently".into())?;

    let file = dir.join(t.one(&["state", "state", "state", "memory"]));
    let good = std::fs::read(&file).map_err(io)?;
    let mut bytes = good.clone();
    damage(t, &mut bytes);
    if bytes == good {
        return Ok(());
    }
    std::fs::write(&file, &bytes).map_err(io)?;
    match again() {
        Err(e) => refused(&e, &dir),
        // Memory may have any content.
        Ok(mut machine) if file.ends_with("memory") => {
            run(&mut machine);
            Ok(())
        }
        Ok(_) => Err("a damaged state is accepted".into()),
    }
}
