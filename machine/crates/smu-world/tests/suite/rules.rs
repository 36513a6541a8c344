// SPDX-License-Identifier: Apache-2.0
//! One or more examples of each rule. The random games in `random` cover further cases.

use trapless_memory::{Cycle, PhysAddr};
use trapless_smu::{FailReason, Outcome};
use trapless_smu_regs::{self as regs, Counter};
use trapless_smu_world::sim::{HARTS, PMSHR, Sim, config};
use trapless_smu_world::world::{self, Area, FRAMES, Place};

use super::unit;

/// Cycles that are enough for everything except commands at a device.
pub const LONG: u64 = 1000;

fn new() -> Sim {
    with_frames(4)
}

fn with_frames(frames: usize) -> Sim {
    Sim::new(unit(config(false)), frames)
}

/// Creates an SMU and waits until its prefetch buffer is full.
pub fn warm() -> Sim {
    let mut sim = new();
    sim.run(100);
    sim
}

/// Ends a test: checks that no rule was broken and that nothing is left over.
pub fn finish(mut sim: Sim) {
    sim.finish();
    assert_eq!(sim.world.breach, None);
}

pub fn outcomes(sim: &Sim) -> Vec<Outcome> {
    sim.answers.iter().map(|a| a.outcome).collect()
}

pub fn failed(sim: &Sim, reason: FailReason) -> bool {
    outcomes(sim) == [Outcome::Failed(reason)]
        && regs::LAST_ERROR_REASON.get(sim.read(regs::LAST_ERROR)) == reason as u64
}

/// Misses overlap: four misses take little longer than one.
#[test]
fn misses_are_pipelined() {
    let mut sim = warm();
    for hart in 0..HARTS {
        sim.ask(hart, 2 * hart);
    }
    sim.run(60);
    while sim.complete(0, 0, 0) {}
    let start = sim.now;
    sim.run(LONG);
    assert_eq!(sim.answers.len(), HARTS);
    let last = sim.answers.iter().map(|a| a.at).max().unwrap();
    assert!(last.since(start) < Cycle(130), "{:?}", last.since(start));
    finish(sim);
}

/// REQ: SMU-1
#[test]
fn requests_for_one_page_join_and_all_are_answered() {
    let mut sim = warm();
    sim.ask(0, 5);
    sim.run(30);
    sim.ask(1, 5);
    sim.ask(3, 5);
    assert_eq!(sim.status(regs::STATUS_LIVE), 1);
    assert!(sim.complete(1, 0, 0));
    sim.run(LONG);
    let value = sim.world.pte(5);
    assert_eq!(outcomes(&sim), [Outcome::Done(value); 3]);
    assert_eq!(sim.answers.iter().map(|a| (a.hart, a.joined)).collect::<Vec<_>>(), [(0, false), (1, true), (3, true)]);
    assert_eq!((sim.count(Counter::Commands), sim.count(Counter::Coalesced)), (1, 2));
    finish(sim);
}

/// REQ: SMU-1, ISA-4
#[test]
fn an_abandoned_wait_gets_no_answer_and_the_miss_goes_on() {
    let mut sim = warm();
    sim.ask(0, 5);
    sim.run(40);
    sim.abandon(0);
    sim.complete(1, 0, 0);
    sim.run(LONG);
    assert!(sim.answers.is_empty());
    assert!(regs::PTE_V.is_set(sim.world.pte(5)));
    assert_eq!(sim.count(Counter::Installed), 1);
    finish(sim);
}

/// REQ: SMU-2
#[test]
fn an_entry_that_changed_before_the_lookup_starts_no_io() {
    let mut sim = new();
    sim.look(0, 2);
    sim.withdraw(2);
    sim.send(0);
    sim.run(100);
    assert_eq!(sim.count(Counter::Commands), 0);
    assert_eq!(outcomes(&sim), [Outcome::Changed(0)]);
    assert_eq!(sim.read(regs::FREE_USED), 0);
    finish(sim);
}

/// REQ: SMU-3, SMU-4. The SMU accesses completion queue entry, PTE, PMD and PUD at different times and in this order, then
/// answers.
#[test]
fn installs_go_from_the_leaf_up() {
    let mut sim = warm();
    sim.ask(0, 7);
    sim.run(40);
    sim.world.log.clear();
    sim.complete(1, 0, 0);
    let mut steps = Vec::new();
    for _ in 0..LONG {
        if !sim.answers.is_empty() {
            break;
        }
        sim.run(1);
        let mut areas: Vec<Area> =
            sim.world.log.drain(..).map(|(area, _)| area).filter(|a| *a != Area::CqDoorbell).collect();
        areas.retain(|area| steps.last() != Some(&vec![*area])); // an exclusive pair has two accesses
        steps.extend((!areas.is_empty()).then_some(areas));
    }
    assert_eq!(steps, [[Area::Cq], [Area::Pte], [Area::Pmd], [Area::Pud]]);
    let pte = sim.world.pte(7);
    assert_eq!(pte & 0x3ff, 0b10_0101_0011, "V R U A L");
    finish(sim);
}

/// REQ: SMU-3
#[test]
fn an_entry_that_changed_during_the_io_is_left_alone() {
    let mut sim = warm();
    sim.ask(0, 7);
    sim.run(50);
    sim.withdraw(7);
    sim.complete(1, 0, 0);
    sim.run(LONG);
    assert_eq!(outcomes(&sim), [Outcome::Changed(0)]);
    assert_eq!(sim.world.pte(7), 0);
    assert_eq!(sim.take_returned(), [regs::REASON_CHANGED]);
    assert!(!sim.world.log.iter().any(|(area, _)| matches!(area, Area::Pmd | Area::Pud)));
    finish(sim);
}

/// REQ: SMU-5, SMU-6
#[test]
fn an_empty_ring_fails_the_miss() {
    let mut sim = with_frames(0);
    sim.ask(0, 0);
    sim.run(100);
    assert!(failed(&sim, FailReason::NoFrame));
    sim.refill(1);
    sim.ask(0, 0);
    sim.run(100);
    assert_eq!(sim.count(Counter::Commands), 1);
    finish(sim);
}

/// REQ: SMU-5
#[test]
fn frames_are_prefetched_and_counted() {
    let mut sim = warm();
    assert_eq!((sim.read(regs::FREE_HEAD), sim.read(regs::FREE_USED)), (2, 0));
    sim.ask(0, 0);
    sim.run(100);
    assert_eq!((sim.read(regs::FREE_HEAD), sim.read(regs::FREE_USED)), (3, 1));
    finish(sim);
}

/// REQ: SMU-5, SMU-6
#[test]
fn disabling_hands_prefetched_frames_back_and_lets_accepted_misses_end() {
    let mut sim = warm();
    sim.ask(0, 0);
    sim.run(50);
    sim.write(regs::CTRL, 0);
    sim.ask(1, 2);
    sim.run(50);
    assert!(failed(&sim, FailReason::Disabled));
    assert_eq!(sim.take_returned(), [regs::REASON_DISABLED; 2]);
    assert_eq!(sim.status(regs::STATUS_NO_FRAMES), 0, "one frame is at the device");
    sim.complete(0, 0, 0);
    sim.run(LONG);
    assert_eq!(sim.count(Counter::Installed), 1);
    assert_eq!(sim.status(regs::STATUS_NO_FRAMES), 1);
    finish(sim);
}

/// REQ: SMU-5
#[test]
fn a_full_return_ring_makes_the_smu_keep_frames() {
    let mut sim = new();
    for page in 0..5 {
        sim.refill(8);
        sim.ask(0, page);
        sim.run(50);
        sim.complete(page % 2, 0, 1);
        sim.run(LONG);
    }
    assert_eq!(sim.read(regs::RET_TAIL), world::RET_ENTRIES);
    assert_eq!((sim.status(regs::STATUS_LIVE), sim.status(regs::STATUS_IDLE)), (0, 1));
    assert_eq!(sim.take_returned(), [regs::REASON_DEVICE; 4]);
    sim.run(100);
    assert_eq!(sim.take_returned(), [regs::REASON_DEVICE]);
    finish(sim);
}

/// REQ: SMU-5. After one bus error on the return ring, the SMU does not write to the ring again.
#[test]
fn a_broken_return_ring_is_left_alone() {
    let mut sim = warm();
    sim.ask(0, 0);
    sim.run(50);
    sim.world.faults.insert(Area::RetRing);
    assert!(sim.complete(0, 0, 1));
    for _ in 0..LONG {
        if sim.status(regs::STATUS_ERROR) == 0 {
            sim.run(1);
        }
    }
    sim.world.faults.clear();
    sim.run(LONG);
    assert_eq!((sim.status(regs::STATUS_ERROR), sim.read(regs::RET_TAIL)), (1, 0));
    finish(sim);
}

/// REQ: SMU-5, SMU-10
#[test]
fn malformed_ring_entries_go_back() {
    let mut sim = with_frames(0);
    sim.put(8); // the DMA address is not page aligned
    sim.run(100);
    assert_eq!(sim.take_returned(), [regs::REASON_BAD_ENTRY]);
    assert_eq!(sim.status(regs::STATUS_ERROR), 1);
    finish(sim);
}

/// REQ: SMU-6
#[test]
fn a_device_error_is_told_and_its_frame_returned() {
    let mut sim = warm();
    sim.ask(0, 0);
    sim.run(50);
    sim.complete(0, 0, 0x281); // media error, unrecovered read
    sim.run(LONG);
    assert!(failed(&sim, FailReason::Device));
    assert_eq!(regs::LAST_ERROR_STATUS.get(sim.read(regs::LAST_ERROR)), 0x281);
    assert_eq!(sim.take_returned(), [regs::REASON_DEVICE]);
    assert_eq!(sim.world.pte(0), world::armed(0, 0));
    finish(sim);
}

/// REQ: SMU-6
#[test]
fn bus_errors_fail_the_miss_wherever_they_happen() {
    for area in [Area::Pte, Area::Sq, Area::SqDoorbell, Area::Cq, Area::Pmd, Area::Pud] {
        let mut sim = warm();
        if matches!(area, Area::Pmd | Area::Pud) {
            sim.ask(0, 0);
            sim.run(50);
            sim.complete(0, 0, 0);
            sim.world.faults.insert(area);
        } else {
            sim.world.faults.insert(area);
            sim.ask(0, 0);
        }
        sim.run(LONG);
        assert!(failed(&sim, FailReason::Bus), "{area:?}: {:?}", outcomes(&sim));
        assert_eq!(sim.status(regs::STATUS_ERROR), 1, "{area:?}");
        let quarantined = u64::from(matches!(area, Area::SqDoorbell | Area::Cq));
        assert_eq!(sim.status(regs::STATUS_QUARANTINED), quarantined, "{area:?}");
        finish(sim);
    }
}

/// REQ: SMU-10. Without the doorbell write, the device would at some time find the completion queue full and stop.
#[test]
fn a_lost_completion_doorbell_ends_what_is_at_the_device() {
    let mut sim = warm();
    sim.ask(0, 0);
    sim.run(5);
    sim.ask(1, 2);
    sim.run(50);
    sim.world.faults.insert(Area::CqDoorbell);
    sim.complete(0, 0, 0);
    sim.run(LONG);
    let done = Outcome::Done(sim.world.pte(0));
    assert_eq!(outcomes(&sim), [Outcome::Failed(FailReason::Bus), done]);
    assert_eq!(sim.status(regs::STATUS_QUARANTINED), 1);
    finish(sim);
}

/// REQ: SMU-6. The operating system must repair an unusable ring; the program did nothing wrong.
#[test]
fn a_bus_error_on_the_free_ring_means_no_frame() {
    let mut sim = with_frames(0);
    sim.world.faults.insert(Area::FreeRing);
    sim.refill(1);
    sim.ask(0, 0);
    sim.run(100);
    assert!(failed(&sim, FailReason::NoFrame));
    assert_eq!(sim.status(regs::STATUS_ERROR), 1);
    finish(sim);
}

/// REQ: SMU-6
#[test]
fn bad_descriptors_fail() {
    let mut sim = warm();
    sim.invalidate(0);
    sim.ask(0, 0);
    sim.run(100);
    assert!(failed(&sim, FailReason::Descriptor));
    finish(sim);
}

/// REQ: SMU-7
#[test]
fn a_timed_out_command_keeps_its_frame_until_the_completion_comes() {
    let mut sim = warm();
    sim.write(regs::TIMEOUT, 300);
    sim.ask(0, 0);
    sim.run(400);
    assert!(failed(&sim, FailReason::Timeout));
    assert_eq!((sim.status(regs::STATUS_QUARANTINED), sim.status(regs::STATUS_NO_DMA)), (1, 0));
    assert!(sim.take_returned().is_empty());
    sim.complete(0, 0, 0);
    sim.run(LONG);
    assert_eq!(sim.world.pte(0), world::armed(0, 0), "a timed-out miss must not be installed");
    assert_eq!(sim.take_returned(), [regs::REASON_TIMEOUT]);
    assert_eq!(sim.status(regs::STATUS_NO_DMA), 1);
    finish(sim);
}

/// REQ: SMU-7
#[test]
fn release_ends_quarantine_and_waiting() {
    let mut sim = warm();
    sim.write(regs::TIMEOUT, 300);
    sim.ask(0, 0);
    sim.run(400);
    sim.write(regs::TIMEOUT, 0);
    sim.ask(1, 2);
    sim.run(400);
    sim.write(Sim::desc(0, regs::DESC_RELEASE), 0);
    assert_eq!(sim.status(regs::STATUS_ERROR), 1, "refused while valid");
    sim.invalidate(0);
    sim.release(0);
    sim.run(100);
    assert_eq!(outcomes(&sim)[1], Outcome::Failed(FailReason::Descriptor));
    let mut reasons = sim.take_returned();
    reasons.sort_unstable();
    assert_eq!(reasons, [regs::REASON_DESCRIPTOR, regs::REASON_TIMEOUT]);
    assert_eq!(sim.read(Sim::desc(0, regs::DESC_SQ_TAIL)), 0);
    sim.set_up_descriptor(0);
    sim.ask(0, 4);
    sim.run(50);
    assert!(sim.complete(0, 0, 0));
    sim.run(LONG);
    assert_eq!(sim.count(Counter::Installed), 1);
    finish(sim);
}

/// REQ: SMU-7, SMU-10. If all entries are in quarantine, requests fail at once, because the quarantine may never end.
#[test]
fn a_pmshr_full_of_quarantine_fails_requests_at_once() {
    let mut sim = new();
    sim.write(regs::TIMEOUT, 100);
    for hart in 0..usize::from(PMSHR) {
        sim.ask(hart, 2 * hart);
    }
    sim.run(300);
    assert_eq!(sim.status(regs::STATUS_QUARANTINED), u64::from(PMSHR));
    assert_eq!([0, 1].map(|d| sim.read(Sim::desc(d, regs::DESC_QUARANTINED))), [PMSHR.into(), 0]);
    sim.ask(0, 1);
    sim.run(20);
    assert_eq!(outcomes(&sim), [Outcome::Failed(FailReason::Timeout); 5]);
    finish(sim);
}

/// REQ: SMU-8
#[test]
fn a_fence_waits_for_the_device_but_not_for_quarantine_and_a_drain_does() {
    let mut sim = warm();
    sim.fence(0);
    sim.run(5);
    assert_eq!(sim.fences(0), (false, false), "nothing to wait for");
    sim.write(regs::TIMEOUT, 300);
    sim.ask(0, 0);
    sim.run(100);
    sim.fence(0);
    sim.drain(0);
    sim.run(100);
    assert_eq!(sim.fences(0), (true, true));
    sim.ask(1, 2); // the fence does not wait for a later request
    sim.run(150);
    assert_eq!(sim.fences(0), (false, true));
    sim.complete(0, 0, 0);
    sim.run(20);
    assert_eq!(sim.fences(0), (false, false));
    assert_eq!(sim.status(regs::STATUS_LIVE), 1);
    finish(sim);
}

/// REQ: SMU-8. A silent device delays only the fences of its own descriptor.
#[test]
fn a_fence_is_of_one_descriptor() {
    let mut sim = warm();
    sim.ask(0, 0);
    sim.ask(1, 1);
    sim.run(100);
    for d in 0..2 {
        sim.fence(d);
        sim.drain(d);
    }
    sim.run(LONG);
    assert_eq!([sim.fences(0), sim.fences(1)], [(true, true); 2]);
    sim.complete(1, 0, 0);
    sim.run(LONG);
    assert_eq!([sim.fences(0), sim.fences(1)], [(true, true), (false, false)]);
    // A second fence of the descriptor ends, too.
    sim.fence(1);
    sim.run(20);
    assert_eq!(sim.fences(1), (false, false));
    sim.complete(0, 0, 0);
    finish(sim);
}

/// REQ: SMU-7, SMU-12. EXPIRE lets all commands at one device time out at once. Their frames stay in quarantine.
#[test]
fn expire_ends_the_waits_at_one_device() {
    let mut sim = warm();
    sim.ask(0, 0);
    sim.ask(1, 2);
    sim.ask(2, 1);
    sim.run(100);
    sim.fence(0);
    sim.drain(0);
    sim.expire(0);
    sim.run(20);
    assert_eq!(outcomes(&sim), [Outcome::Failed(FailReason::Timeout); 2]);
    assert_eq!(sim.fences(0), (false, true));
    assert_eq!((sim.status(regs::STATUS_LIVE), sim.status(regs::STATUS_QUARANTINED)), (1, 2));
    assert_eq!([0, 1].map(|d| sim.read(Sim::desc(d, regs::DESC_QUARANTINED))), [2, 0]);
    // A completion with an error that comes late has no effect: both misses are already answered.
    sim.complete(0, 0, 0);
    sim.complete(0, 0, 0x281);
    sim.complete(1, 0, 0);
    sim.run(LONG);
    assert_eq!(regs::LAST_ERROR_STATUS.get(sim.read(regs::LAST_ERROR)), 0);
    assert_eq!(sim.fences(0), (false, false));
    assert_eq!(sim.status(regs::STATUS_QUARANTINED), 0);
    assert!(matches!(outcomes(&sim)[2], Outcome::Done(_)));
    finish(sim);
}

/// REQ: SMU-9. Tails, heads and the phase bit wrap over several rounds of both queues.
#[test]
fn queues_wrap() {
    let mut sim = Sim::new(unit(config(true)), 8);
    for round in 0..3 * world::DEPTH {
        sim.ask(0, 0);
        sim.run(60);
        assert!(sim.complete(0, 0, 0), "round {round}");
        sim.run(200);
        sim.withdraw(0);
        sim.run(5);
        sim.arm(0, true);
        sim.refill(1);
    }
    assert_eq!(sim.count(Counter::Installed), 3 * world::DEPTH);
    assert_eq!(regs::DESC_CQ_HEAD_PHASE.get(sim.read(Sim::desc(0, regs::DESC_CQ_HEAD))), 0);
    finish(sim);
}

/// REQ: SMU-10
#[test]
fn stray_completions_are_counted_and_dropped() {
    let mut sim = warm();
    sim.ask(0, 0);
    sim.run(100);
    for cid in [1, u16::from(PMSHR), 0xffff] {
        sim.stray(0, cid);
    }
    sim.run(100);
    assert_eq!(sim.count(Counter::StrayCqe), 3);
    assert!(sim.answers.is_empty());
    finish(sim);
}

/// REQ: SMU-9. A completion comes a second time, when the PMSHR entry has a command of another miss.
#[test]
fn a_completion_of_an_earlier_command_is_dropped() {
    let mut sim = warm();
    sim.ask(0, 0);
    sim.run(LONG);
    let earlier = sim.world.devices[0].pending[0].cid;
    assert!(sim.complete(0, 0, 0));
    sim.run(LONG);
    sim.ask(0, 2);
    sim.run(LONG);
    assert_eq!(regs::CID_INDEX.get(sim.world.devices[0].pending[0].cid.into()), regs::CID_INDEX.get(earlier.into()));
    sim.stray(0, earlier);
    sim.run(LONG);
    assert_eq!((sim.count(Counter::StrayCqe), sim.answers.len()), (1, 1));
    assert!(sim.complete(0, 0, 0));
    sim.run(LONG);
    assert_eq!(sim.count(Counter::Installed), 2);
    finish(sim);
}

/// REQ: SMU-10
#[test]
fn settings_cannot_change_while_in_use() {
    let mut sim = new();
    let error = |sim: &mut Sim, register, value| {
        sim.write(register, value);
        sim.status(regs::STATUS_ERROR)
    };
    let before = sim.read(regs::FREE_BASE);
    assert_eq!(error(&mut sim, regs::FREE_BASE, 0x1000), 1);
    assert_eq!(sim.read(regs::FREE_BASE), before);
    sim.write(regs::CTRL, 0);
    assert_eq!(sim.status(regs::STATUS_ERROR), 0, "cleared by disabling while idle");
    assert_eq!(error(&mut sim, regs::FREE_SIZE, 3), 1);
    sim.write(regs::CTRL, 0);
    assert_eq!(error(&mut sim, Sim::desc(1, regs::DESC_NSID), 9), 1);
    assert_eq!(sim.read(Sim::desc(1, regs::DESC_NSID)), 2);
    sim.invalidate(1);
    sim.write(Sim::desc(1, regs::DESC_DEPTH), u64::from(PMSHR));
    sim.write(regs::CTRL, 0);
    assert_eq!(error(&mut sim, Sim::desc(1, regs::DESC_CTRL), 1), 1, "queue too short");
    assert_eq!(sim.read(Sim::desc(1, regs::DESC_CTRL)), 0);
    finish(sim);
}

#[test]
fn registers_can_be_reached_by_halves() {
    let mut sim = new();
    let read = |sim: &mut Sim, offset, size| sim.smu.mmio_read(offset, size, Cycle(1), &mut sim.world);
    let write = |sim: &mut Sim, offset, size, value| sim.smu.mmio_write(offset, size, value, Cycle(1), &mut sim.world);
    assert_eq!(read(&mut sim, regs::ID, 4), u64::from(u32::from_le_bytes(*b"SMU1")));
    assert_eq!(read(&mut sim, regs::ID + 4, 4), 2);
    write(&mut sim, regs::TIMEOUT, 8, 0x1_0000_0002);
    write(&mut sim, regs::TIMEOUT + 4, 4, 7);
    write(&mut sim, regs::TIMEOUT, 4, u64::MAX);
    assert_eq!(sim.read(regs::TIMEOUT), 0x7_ffff_ffff);
    for (offset, size) in [(regs::TIMEOUT + 2, 4), (regs::TIMEOUT, 2), (regs::TIMEOUT + 4, 8), (1 << 40, 8)] {
        write(&mut sim, offset, size, 1);
        assert_eq!(read(&mut sim, offset, size), 0);
    }
    assert_eq!(sim.read(regs::TIMEOUT), 0x7_ffff_ffff);
    let cap = sim.read(regs::CAP);
    let fields = [regs::CAP_PMSHR, regs::CAP_DESCRIPTORS, regs::CAP_PREFETCH, regs::CAP_HARTS, regs::CAP_SOCKET];
    assert_eq!(fields.map(|f| f.get(cap)), [4, 8, 2, 4, 0]);
}

/// Every register that the generated map lists as read-only keeps its value when it is written.
#[test]
fn read_only_registers_ignore_writes() {
    let mut sim = warm();
    for register in regs::REGISTERS.iter().filter(|r| r.access == regs::Access::ReadOnly) {
        let before = sim.read(register.offset);
        sim.write(register.offset, !before);
        assert_eq!(sim.read(register.offset), before, "{}", register.name);
    }
    finish(sim);
}

/// REQ: OS-4. Shows why a fence is needed before a page is armed again with the same block: without the fence, the old miss
/// installs into the new entry. The world would report a breach only if a fence had ended before.
#[test]
fn arming_again_without_a_fence_lets_a_stale_exchange_succeed() {
    let mut sim = warm();
    sim.ask(0, 0);
    sim.run(50);
    let at = PhysAddr(world::PT).0;
    sim.world.mem.insert(at, 0);
    sim.run(50);
    sim.world.mem.insert(at, world::armed(0, 0));
    sim.complete(0, 0, 0);
    sim.run(LONG);
    assert!(matches!(outcomes(&sim)[..], [Outcome::Done(_)]));
    assert_eq!(sim.world.places.iter().filter(|p| matches!(p, Place::Page(0))).count(), 1);
    assert!(sim.world.places.len() == FRAMES);
    finish(sim);
}
