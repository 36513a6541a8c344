// SPDX-License-Identifier: Apache-2.0
//! After a checkpoint, the machine that wrote it and the machines that are made from it do the same in every cycle.

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use common::{build, disk};
use trapless_machine::{
    Boot, Console, DetailFrom, DiskConfig, DiskWrites, End, Engine, Error, Limits, Machine, MachineConfig, Moment,
};
use trapless_memory::{Cycle, PhysAddr};
use trapless_timing::Profile;

fn machine(
    boot: Boot,
    disk: &Path,
    changes: &[&str],
    save: Option<(u64, PathBuf)>,
    detail: DetailFrom,
) -> Result<Machine, Error> {
    let changes: Vec<String> = changes.iter().map(|c| (*c).to_owned()).collect();
    let config = MachineConfig {
        profile: Profile::load("server", &changes).unwrap(),
        boot,
        disks: vec![DiskConfig::new(disk, DiskWrites::InMemory)],
        faults: Vec::new(),
        engine: Engine::default(),
        detail,
        checkpoint: save.map(|(n, dir)| (Moment::Instructions(n), dir)),
        attribution: None,
    };
    Machine::new(config, Console { output: Box::new(std::io::sink()), input: None })
}

const SETTINGS: [&str; 2] = ["machine.harts=4", "machine.memory_bytes=33554432"];

fn run(machine: &mut Machine) -> End {
    machine.run(&Limits { max_cycle: Cycle(4_000_000_000), window: None, stop: &AtomicBool::new(false) }).unwrap()
}

/// Counters, registers and memory of a machine. They must be equal in two machines that did the same.
fn outcome(machine: &Machine) -> (Vec<u64>, Vec<u64>) {
    let report = machine.report(&End::PowerOff);
    let mut known: Vec<u64> = report.smu_counters.values().copied().collect();
    known.extend([report.sim_cycles, report.instructions]);
    known.extend(machine.harts().iter().flat_map(|h| h.x.into_iter().chain([h.pc, h.cycle.0])));
    known.extend(machine.harts().iter().flat_map(|h| [h.csr.shwdpserved, h.csr.shwdpwait]));
    let ram = machine.ram();
    let word = |at| u64::from_le_bytes(ram.load::<8>(PhysAddr(at)).unwrap());
    (known, (ram.base().0..ram.base().0 + ram.size()).step_by(8).map(word).collect())
}

#[test]
fn a_checkpoint_is_gone_on_from_to_the_cycle() {
    let dir = tempfile::tempdir().unwrap();
    let (elf, image) = (build("four_harts", dir.path()), disk(dir.path()));
    for (n, detail) in [(300, DetailFrom::Never), (2_000, DetailFrom::Start), (6_000, DetailFrom::Never)] {
        let place = dir.path().join(format!("at-{n}"));
        let boot = Boot::Elf { file: elf.clone() };
        let mut writer = machine(boot, &image, &SETTINGS, Some((n, place.clone())), detail).unwrap();
        assert_eq!(run(&mut writer), End::Checkpoint);
        let mut others: Vec<Machine> = (0..2)
            .map(|_| machine(Boot::Checkpoint { dir: place.clone() }, &image, &SETTINGS, None, detail).unwrap())
            .collect();
        assert_eq!(run(&mut writer), End::ToHost(0));
        for other in &mut others {
            assert_eq!(run(other), End::ToHost(0));
            let (here, there) = (outcome(&writer), outcome(other));
            assert_eq!(here.0, there.0, "after {n} instructions");
            assert!(here.1 == there.1, "memory differs after {n} instructions");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let (elf, image) = (build("four_harts", dir.path()), disk(dir.path()));
    let place = dir.path().join("c");
    let boot = || Boot::Checkpoint { dir: place.clone() };
    let refused = |boot: Boot, changes: &[&str]| {
        let message = machine(boot, &image, changes, None, DetailFrom::Never).err().unwrap().to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    };
    assert!(refused(boot(), &SETTINGS).contains("memory: "));
    let save = Some((1_000, place.clone()));
    let mut writer = machine(Boot::Elf { file: elf }, &image, &SETTINGS, save, DetailFrom::Never).unwrap();
    assert_eq!(run(&mut writer), End::Checkpoint);
    assert!(writer.save(&place).unwrap_err().to_string().contains("already exists"));
    assert!(refused(boot(), &["machine.harts=2", SETTINGS[1]]).contains("machine.harts = 4, not 2"));
    assert!(
        refused(boot(), &[SETTINGS[0], SETTINGS[1], "machine.paging=sv48"]).contains("machine.paging = sv39, not sv48")
    );
    assert!(refused(boot(), &["machine.harts=4"]).contains("bytes"));
    assert!(refused(boot(), &[SETTINGS[0], SETTINGS[1], "smu.present=false"]).contains("SMU"));
    // The profile's times may differ from those at the checkpoint.
    assert!(machine(boot(), &image, &[SETTINGS[0], SETTINGS[1], "ssd.read_us=5.0"], None, DetailFrom::Never).is_ok());
    let state = place.join("state");
    let bytes = std::fs::read(&state).unwrap();
    std::fs::write(&state, &bytes[..bytes.len() / 2]).unwrap();
    assert!(refused(boot(), &SETTINGS).contains("state"));
    std::fs::write(&state, [&[0; 8], &bytes[8..]].concat()).unwrap();
    assert!(refused(boot(), &SETTINGS).contains("another build"));
}
