// SPDX-License-Identifier: Apache-2.0
//! Bare-metal programs on the whole machine: page table extension, SMU, drive and harts together.

mod common;

use common::{build, build_image, disk, run_elf};
use trapless_machine::{
    Boot, DetailFrom, DiskConfig, DiskWrites, End, Engine, Machine, Reads, Report, Roi, WatchCounts,
};
use trapless_timing::Profile;

fn run(program: &str, changes: &[&str]) -> (End, Report) {
    let (end, report, _) = run_machine(program, changes);
    (end, report)
}

fn run_machine(program: &str, changes: &[&str]) -> (End, Report, Machine) {
    let dir = tempfile::tempdir().unwrap();
    let changes: Vec<String> = changes.iter().map(|c| (*c).to_owned()).collect();
    let profile = Profile::load("vc707", &changes).unwrap();
    let disks = vec![DiskConfig::new(disk(dir.path()), DiskWrites::Fail)];
    let (end, machine) = run_elf(build(program, dir.path()), profile, Engine::default(), DetailFrom::Never, disks);
    let report = machine.report(&end);
    (end, report, machine)
}

/// Sums of `shwdpserved` and `shwdpwait` over all harts.
fn counters(machine: &Machine) -> (u64, u64) {
    machine.harts().iter().fold((0, 0), |sum, h| (sum.0 + h.csr.shwdpserved, sum.1 + h.csr.shwdpwait))
}

#[test]
fn one_hart_through_every_answer() {
    // A failed check ends the program; its exit status is the source line (modulo 128).
    let (end, report) = run("one_hart", &[]);
    assert_eq!(end, End::ToHost(0));
    // The one miss of the region: every step is measured, and the drive takes the time that the profile says.
    let miss = &report.rois[0].hw_miss;
    assert_eq!(miss.whole.count, 1);
    assert!((miss.device_mean_us - 28.16).abs() < 0.02, "{miss:?}");
    eprintln!("{miss:#?}");
    assert!((miss.device_mean_us + miss.nondevice_mean_us - miss.whole.mean_us).abs() < 0.02, "{miss:?}");
}

#[test]
fn four_harts_share_misses_and_commands_are_read_from_memory() {
    assert_eq!(run("four_harts", &[]).0, End::ToHost(0));
}

#[test]
fn a_pmshr_of_one_entry_serves_four_harts_in_turn() {
    let (end, report) = run("four_harts", &["smu.pmshr_entries=1"]);
    assert_eq!(end, End::ToHost(0));
    assert_eq!(report.smu_counters["installed"], 65);
    // The drive has read what the SMU has asked for: one page each.
    let reads = report.disks[0].reads;
    assert_eq!(reads.unit, Reads { commands: report.smu_counters["commands"], bytes: 65 * 4096 });
    assert_eq!(reads.software.commands, 0);
}

/// REQ: SMU-11
#[test]
fn software_asks_through_ports() {
    let (end, report) = run("port", &[]);
    assert_eq!(end, End::ToHost(0));
    // The one miss of the region is counted for the port, not for walkers.
    let roi = &report.rois[0];
    let miss = &roi.port_miss;
    assert_eq!((miss.whole.count, roi.hw_miss.whole.count), (1, 0));
    assert!((miss.device_mean_us - 28.16).abs() < 0.02, "{miss:?}");
    assert!(miss.nondevice_mean_us > 1.0 && miss.nondevice_mean_us < 4.0, "{miss:?}");
    assert_eq!((roi.smu["port_requests"], roi.smu["installed"]), (1, 1));
    // With one PMSHR entry, ports and walkers take turns.
    assert_eq!(run("port", &["smu.pmshr_entries=1"]).0, End::ToHost(0));
}

/// Each block that the SMU reads for a walker is one sample, no matter how often interrupts cut the wait.
#[test]
fn misses_whose_wait_is_cut_are_measured() {
    let (end, report) = run("cut", &[]);
    assert_eq!(end, End::ToHost(0));
    let roi = &report.rois[0];
    let miss = &roi.hw_miss;
    assert_eq!((miss.whole.count, miss.with_steps, miss.cut), (64, 64, 64), "{miss:?}");
    assert_eq!((roi.smu["installed"], roi.reads[0].unit.commands), (64, 64));
    assert!(miss.whole.p50_us > 28.16 && miss.whole.max_us < 40.0, "{miss:?}");
    assert!((miss.device_mean_us - 28.16).abs() < 0.02, "{miss:?}");
    assert!((miss.device_mean_us + miss.nondevice_mean_us - miss.whole.mean_us).abs() < 0.02, "{miss:?}");
    eprintln!("{miss:#?}");
}

/// REQ: ISA-7: the harts' counters agree with the record of their misses.
#[test]
fn counters_of_misses_agree_with_the_record() {
    for (changes, hz) in [(&[][..], 1e8), (&["machine.clock_hz=200000000"], 2e8)] {
        let (end, report, machine) = run_machine("counters", changes);
        assert_eq!(end, End::ToHost(0));
        let ((served, wait), miss) = (counters(&machine), &report.rois[0].hw_miss);
        assert_eq!((served, miss.whole.count, miss.with_steps, miss.cut), (64, 64, 64, 0), "{miss:?}");
        let (s, wait_us) = (&miss.steps, wait as f64 * 1e6 / hz / 64.0);
        let until_installed = s.request + s.frame + s.command + s.device + s.completion + s.install;
        // The answer comes after the install. The last step of the walk, one more read of the entry, is not part of the wait.
        let rest = s.resume - (wait_us - until_installed);
        assert!(wait_us > until_installed && wait_us > miss.device_mean_us, "{wait_us} {miss:?}");
        assert!(rest > 0.0 && rest < 20.0 * 1e6 / hz, "{rest} {miss:?}");
        assert!((miss.whole.mean_us - s.walk - rest - wait_us).abs() < 0.02, "{wait_us} {miss:?}");
    }
}

/// Time from the install of a page until the access continues.
fn resume_us() -> f64 {
    run("one_hart", &[]).1.rois[0].hw_miss.steps.resume
}

/// REQ: ISA-7: each hart that shares a miss counts it. A wait that is cut counts up to the cut. The miss counts as served for the
/// access that waits for it again; if it is over by then, it is not counted.
#[test]
fn shared_and_cut_misses_are_counted() {
    let (_, report, machine) = run_machine("four_harts", &[]);
    let smu = &report.smu_counters;
    assert_eq!(counters(&machine).0, smu["installed"] + smu["coalesced"]);
    assert!(smu["coalesced"] > 0);

    let (_, report, machine) = run_machine("cut", &[]);
    let ((served, wait), miss) = (counters(&machine), &report.rois[0].hw_miss);
    // Misses of the record after which a hart continued: the time from the install until then is always the same.
    let resumed = miss.steps.resume * 64.0 / resume_us();
    assert!(served > 16 && served < 56, "{served}");
    assert!((resumed - served as f64).abs() < 0.01, "{resumed} {served} {miss:?}");
    let whole = miss.whole.mean_us * 64.0;
    assert!(wait as f64 / 100.0 < whole && wait as f64 / 100.0 > whole / 2.0, "{wait} {whole}");
}

/// In every program, the number of samples equals the number of installs, for walkers and for request ports.
#[test]
fn samples_are_installs() {
    for program in ["one_hart", "port", "cut", "faults"] {
        let roi = &run(program, &[]).1.rois[0];
        assert_eq!(roi.hw_miss.whole.count + roi.port_miss.whole.count, roi.smu["installed"], "{program}");
        assert_eq!(roi.reads[0].unit.commands, roi.smu["commands"], "{program}");
    }
}

#[test]
fn page_faults_have_a_time_and_a_cause() {
    let (end, report) = run("faults", &[]);
    assert_eq!(end, End::ToHost(0));
    let roi = &report.rois[0];
    let causes = [("accessed_dirty", 1), ("descriptor", 1), ("hardware_off", 1), ("not_armed", 2), ("permission", 1)];
    assert_eq!(roi.os_fault_causes, causes.into_iter().collect());
    assert_eq!((roi.os_faults, roi.os_fault.count, roi.os_faults_open), (6, 5, 1));
    assert_eq!(roi.kernel_faults, 2);
    // A repair takes 10,000 iterations of a loop of at least five instructions.
    assert!(roi.os_fault.max_us > 500.0 && roi.os_fault.p50_us < 50.0, "{:?}", roi.os_fault);
    let watch = &roi.watch[0];
    assert_eq!((watch.pages_touched, watch.hw_misses, watch.os_faults, watch.os_faults_total), (7, 1, 6, 6));
    assert_eq!(roi.hw_miss.whole.count, 2);
}

#[test]
fn programs_and_address_spaces_share_regions() {
    let (end, report) = run("regions", &[]);
    assert_eq!(end, End::ToHost(0));
    let which = |region: &Roi| (region.number, region.automatic, region.regions);
    let rois: Vec<_> = report.rois.iter().map(which).collect();
    assert_eq!(rois[..6], [(0, true, 1), (7, false, 1), (1, true, 1), (2, true, 1), (8, false, 1), (3, true, 1)]);
    // A thousand single regions, then the sum of the others: no region is lost.
    assert_eq!((rois.len(), rois[999], rois[1000]), (1001, (997, true, 1), (998, true, 1206 - 1000)));
    assert_eq!(report.rois.iter().map(|r| r.instructions.total()).min(), Some(1));
    assert!(report.rois.is_sorted_by(|a, b| a.end_cycle <= b.begin_cycle));
    assert_eq!(report.marks_ignored, 2);
    let watches = |counts: &[WatchCounts]| counts.iter().map(|c| c.watches).sum::<u64>();
    assert_eq!((watches(&report.watch), report.watch.len()), (1205, 1001));
    assert_eq!((watches(&report.rois[1000].watch), report.rois[1000].watch.len()), (1205, 33));
}

#[test]
fn the_same_run_twice_is_the_same_to_the_cycle() {
    let (a, b) = (run("four_harts", &[]).1, run("four_harts", &[]).1);
    assert_eq!(a.sim_cycles, b.sim_cycles);
    assert_eq!(a.instructions, b.instructions);
    assert_eq!(a.smu_counters, b.smu_counters);
}

#[test]
fn harts_that_the_guest_does_not_start_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = build_image("sbi", dir.path());
    let boot = Boot::Linux { kernel, initrd: None, append: String::new(), firmware: None };
    let profile = Profile::load("vc707", &[]).unwrap();
    let (end, machine) = common::run(boot, profile, Engine::default(), DetailFrom::Never, Vec::new());
    assert_eq!((end, machine.harts_never_started()), (End::PowerOff, 3));
}
