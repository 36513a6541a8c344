// SPDX-License-Identifier: Apache-2.0
//! Calls from the guest to the machine: built-in firmware and markers. A guest loads registers from a table and makes a call,
//! for each row of the table. Two runs must give the same result.

use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use trapless_difftest::asm::Asm;
use trapless_difftest::runtime::reg::*;
use trapless_machine::{Boot, Console, DetailFrom, Engine, Error, Limits, Machine, MachineConfig};
use trapless_memory::Cycle;
use trapless_smu_regs::{MARKER_ROI_BEGIN, MARKER_WATCH_REGION};
use trapless_timing::Profile;

use crate::demand;
use crate::tape::Tape;

const RAM: u64 = 0x8000_0000;
const MEMORY: u64 = 16 << 20;
/// Address of the Image.
const KERNEL: u64 = RAM + 0x20_0000;
const HEADER: usize = 64;
/// Address of the table of registers.
const TABLE: u64 = KERNEL + 0x1000;
const CALLS: usize = 100;
const MAX_CYCLE: Cycle = Cycle(2_000_000);
/// Maximum number of bytes that one call prints.
const MOST_PRINTED: usize = 4096;
/// SBI extensions: some that exist and some that do not.
const EXTENSIONS: [u64; 12] =
    [0x10, 0x5449_4d45, 0x73_5049, 0x5246_4e43, 0x48_534d, 0x5352_5354, 0x4442_434e, 0, 1, 2, 8, 0x50_4d55];

/// Stores what the guest prints.
#[derive(Clone, Default)]
struct Printed(Rc<RefCell<Vec<u8>>>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A Linux Image with a program that makes the calls of the table.
fn image(calls: &[[u64; 9]], call: impl Fn(&mut Asm)) -> Vec<u8> {
    let mut a = Asm::new(KERNEL + HEADER as u64);
    a.li(S0, TABLE);
    let (top, over) = (a.bound(), a.label());
    a.i("ld", T0, S0, 64);
    a.b("beq", T0, 0, over);
    for n in 0..8 {
        a.i("ld", A0 + n, S0, i64::from(n) * 8);
    }
    a.i("addi", S0, S0, 72);
    call(&mut a);
    a.j(top);
    a.bind(over);
    a.li(A0, 0);
    a.li(A1, 0);
    a.li(A0 + 6, 0);
    a.li(A0 + 7, 0x5352_5354);
    a.plain("ecall");
    let code = a.finish();
    let mut bytes = vec![0; (TABLE - KERNEL) as usize];
    // `j` to the code after the header.
    bytes[..4].copy_from_slice(&0x0400_006fu32.to_le_bytes());
    bytes[8..16].copy_from_slice(&(KERNEL - RAM).to_le_bytes());
    bytes[56..60].copy_from_slice(b"RSC\x05");
    bytes[HEADER..HEADER + code.len()].copy_from_slice(&code);
    bytes.extend(calls.iter().flatten().flat_map(|w| w.to_le_bytes()));
    bytes.extend([0; 72]);
    let size = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&size.to_le_bytes());
    bytes
}

/// Result of a run: how it ended, what it printed, and the state of all harts.
fn result(kernel: &Path, detail: DetailFrom) -> Result<(String, Vec<u8>, String), String> {
    let changes = ["machine.harts=2".into(), format!("machine.memory_bytes={MEMORY}"), "smu.present=true".to_owned()];
    let config = MachineConfig {
        profile: Profile::load(if detail == DetailFrom::Never { "vc707" } else { "server" }, &changes)
            .map_err(|e| e.to_string())?,
        boot: Boot::Linux { kernel: kernel.into(), initrd: None, append: String::new(), firmware: None },
        disks: Vec::new(),
        faults: Vec::new(),
        engine: Engine::default(),
        detail,
        checkpoint: None,
        attribution: None,
    };
    let printed = Printed::default();
    let console = Console { output: Box::new(printed.clone()), input: None };
    let mut machine = Machine::new(config, console).map_err(|e| e.to_string())?;
    let stop = AtomicBool::new(false);
    let end = match machine.run(&Limits { max_cycle: MAX_CYCLE, window: None, stop: &stop }) {
        Ok(end) => {
            let report = machine.report(&end);
            format!("{end:?} {} milestones, {} rois", report.milestones.len(), report.rois.len())
        }
        Err(Error::Deadlock(at)) => format!("all asleep at {at}"),
        Err(e) => return Err(format!("the run ended with: {e}")),
    };
    let bytes = printed.0.borrow().clone();
    Ok((end, bytes, format!("{:x?}", machine.harts())))
}

fn twice(bytes: &[u8], detail: DetailFrom) -> Result<(String, Vec<u8>), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let kernel = folder.path().join("Image");
    std::fs::write(&kernel, bytes).map_err(|e| e.to_string())?;
    let (end, printed, harts) = result(&kernel, detail)?;
    let again = result(&kernel, detail)?;
    demand((&end, &printed, &harts) == (&again.0, &again.1, &again.2), || {
        format!("the first run ended with {end}, the second with {}", again.0)
    })?;
    Ok((end, printed))
}

/// Firmware calls with any arguments.
pub fn sbi(t: &mut Tape) -> Result<(), String> {
    let mut calls = Vec::new();
    while t.more() && calls.len() < CALLS {
        let mut call = [1; 9];
        for argument in call.iter_mut().take(6) {
            *argument = t.number(RAM, MEMORY);
        }
        call[6] = if t.below(8) == 0 { t.number(0, 16) } else { t.below(4) };
        call[7] = if t.below(8) == 0 { t.u64() } else { t.one(&EXTENSIONS) };
        calls.push(call);
    }
    let (_, printed) = twice(&image(&calls, |a| a.plain("ecall")), DetailFrom::Never)?;
    demand(printed.len() <= 2 * CALLS * MOST_PRINTED, || format!("{} bytes are printed, too many", printed.len()))
}

/// Markers with any arguments.
pub fn markers(t: &mut Tape) -> Result<(), String> {
    let mut calls = Vec::new();
    while t.more() && calls.len() < CALLS {
        let mut call = [1; 9];
        for argument in call.iter_mut().take(4) {
            *argument = t.number(RAM, MEMORY);
        }
        // The number of instructions that are skipped selects the marker.
        call[4] = t.below(MARKER_WATCH_REGION - MARKER_ROI_BEGIN + 1);
        calls.push(call);
    }
    let detail = t.one(&[DetailFrom::Never, DetailFrom::Rois, DetailFrom::Start]);
    let program = image(&calls, |a| {
        let (table, over) = (a.label(), a.label());
        a.la(T1, table);
        a.i("slli", T2, A0 + 4, 3);
        a.r("add", T1, T1, T2);
        a.i("jalr", 0, T1, 0);
        a.bind(table);
        for marker in MARKER_ROI_BEGIN..=MARKER_WATCH_REGION {
            a.i("slti", 0, 0, marker as i64);
            a.j(over);
        }
        a.bind(over);
    });
    let (end, printed) = twice(&program, detail)?;
    demand(printed.is_empty(), || "markers print text".into())?;
    demand(end.starts_with("PowerOff"), || format!("a marker ends the run: {end}"))
}
