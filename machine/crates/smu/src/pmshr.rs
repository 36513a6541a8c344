// SPDX-License-Identifier: Apache-2.0
//! Page miss status holding registers (PMSHR): the misses under way, and the held requests that wait for a free entry.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, PhysAddr};
use trapless_smu_regs as regs;

use crate::{FailReason, Outcome, Request, Source, Stamps};

/// A unit with fewer entries reserves none for other devices.
const FEW: usize = 8;

/// Stage of a miss. All stages except `WaitFrame`, `AtDevice` and `Over` end with the entry's pending step event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// The SMU searches the PMSHR, then reads the PTE again.
    Lookup,
    /// The entry waits for a frame.
    WaitFrame,
    /// The SMU writes the command.
    Command,
    /// The SMU writes this tail to the doorbell.
    Doorbell(u32),
    /// The device works on the command.
    AtDevice,
    /// The SMU decodes the completion. The value is its status field.
    Completing(u16),
    /// The SMU exchanges the PTE.
    Pte,
    /// The SMU marks the PMD. The value is the installed PTE. If the entry still has its frame, the SMU does not know
    /// whether the PTE maps this frame (REQ: SMU-13).
    Pmd(u64),
    /// The SMU marks the PUD. The value is the installed PTE.
    Pud(u64),
    /// The SMU reads the PTE back after a bus error on its exchange.
    ReadBack(u64),
    /// The SMU sends the answer.
    Answering(Outcome),
    /// The miss is answered. The entry stays while it keeps a frame.
    Over,
}

/// A request that waits for the answer of a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waiter {
    pub from: Source,
    pub id: u64,
    pub seen: u64,
    pub asked: Cycle,
    /// Earliest time of the answer, because the request must reach the PMSHR first.
    pub ready: Cycle,
    pub joined: bool,
}

/// A frame from the free ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub pfn: u64,
    pub dma: u64,
}

/// A PMSHR entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Position of the miss in the order of acceptance. Fences need it.
    pub seq: u64,
    /// Source of the first request.
    pub from: Source,
    pub pte: PhysAddr,
    pub pmd: PhysAddr,
    pub pud: PhysAddr,
    pub seen: u64,
    pub waiters: Vec<Waiter>,
    pub requests: u32,
    pub stage: Stage,
    /// The descriptor of the entry's command, while the command may still write the frame.
    pub command: Option<usize>,
    pub frame: Option<Frame>,
    /// The frame waits for the return ring.
    pub returning: bool,
    /// Second word of the frame's return ring entry, if the frame is returned.
    pub reason: u64,
    pub stamps: Stamps,
}

impl Entry {
    pub fn is_live(&self) -> bool {
        self.stage != Stage::Over
    }

    /// REQ: SMU-7. Tells whether the entry is in quarantine: the answer is sent or on its way, but the command may still write.
    pub fn is_quarantined(&self) -> bool {
        self.command.is_some() && matches!(self.stage, Stage::Answering(_) | Stage::Over)
    }

    /// REQ: SMU-13. Tells whether the SMU sets the marks without knowing whether the PTE maps the frame.
    pub fn is_in_doubt(&self) -> bool {
        self.frame.is_some() && matches!(self.stage, Stage::Pmd(_) | Stage::Pud(_))
    }

    /// Tells whether the entry can be freed.
    pub fn is_finished(&self) -> bool {
        self.stage == Stage::Over && self.command.is_none() && self.frame.is_none()
    }
}

/// A request that is not accepted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    pub from: Source,
    pub request: Request,
    pub asked: Cycle,
}

/// The PMSHR entries and the held requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pmshr {
    pub slots: Vec<Option<Entry>>,
    pub held: BTreeMap<Source, Held>,
    /// Source of the held request that was accepted last (REQ: SMU-6).
    last: Option<Source>,
    pub next_seq: u64,
    /// Upper part of the identifier of each slot's latest command (REQ: SMU-9).
    generations: Vec<u16>,
}

impl Pmshr {
    pub fn new(entries: usize) -> Pmshr {
        Pmshr {
            slots: vec![None; entries],
            held: BTreeMap::new(),
            last: None,
            next_seq: 0,
            generations: vec![0; entries],
        }
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().flatten()
    }

    /// Finds the live miss for this PTE. Ignores entries that are answered and only keep a command or frame.
    pub fn find(&self, pte: PhysAddr) -> Option<usize> {
        self.slots.iter().position(|s| s.as_ref().is_some_and(|e| e.is_live() && e.pte == pte))
    }

    /// Makes the identifier of a slot's next command.
    pub fn next_command(&mut self, slot: usize) -> u16 {
        let generation = &mut self.generations[slot];
        *generation = (*generation + 1) & regs::CID_GENERATION.get(u64::MAX) as u16;
        (regs::CID_INDEX.of(slot as u64) | regs::CID_GENERATION.of(u64::from(*generation))) as u16
    }

    /// Finds the slot whose latest command has this identifier.
    pub fn slot_of_command(&self, cid: u64) -> Option<usize> {
        let slot = regs::CID_INDEX.get(cid) as usize;
        let latest = *self.generations.get(slot)?;
        (u64::from(latest) == regs::CID_GENERATION.get(cid)).then_some(slot)
    }

    pub fn free_slot(&self) -> Option<usize> {
        self.slots.iter().position(Option::is_none)
    }

    /// REQ: SMU-10. Tells whether a new request for the device in `seen` must fail, because this device may be silent and other
    /// devices need the free entries. This is so if three quarters of the entries have no waiter but a command that may still
    /// write, and one of these commands is at this device.
    pub fn is_crowded_for(&self, seen: u64) -> bool {
        let forgotten = || self.entries().filter(|e| e.command.is_some() && e.waiters.is_empty());
        let device = regs::PTE_DEVICE.get(seen) as usize;
        let entries = self.slots.len();
        entries >= FEW && forgotten().count() >= entries - entries / 4 && forgotten().any(|e| e.command == Some(device))
    }

    /// Fills a free slot with a new entry.
    pub fn fill(&mut self, slot: usize, request: &Request, waiter: Waiter) {
        let stamps = Stamps { requested: Some(waiter.asked), ..Stamps::default() };
        self.slots[slot] = Some(Entry {
            seq: self.next_seq,
            from: waiter.from,
            pte: request.pte,
            pmd: request.pmd,
            pud: request.pud,
            seen: request.seen,
            waiters: vec![waiter],
            requests: 1,
            stage: Stage::Lookup,
            command: None,
            frame: None,
            returning: false,
            reason: FailReason::Disabled as u64,
            stamps,
        });
        self.next_seq += 1;
    }

    /// Returns the sources of held requests, in the order of their turns.
    pub fn held_in_turn(&self) -> Vec<Source> {
        let all = self.held.keys().copied();
        let (before, after): (Vec<_>, Vec<_>) = all.partition(|from| Some(*from) <= self.last);
        [after, before].concat()
    }

    /// Removes the held request of a source. The next source then has the next turn.
    pub fn take_held(&mut self, from: Source) -> Option<Held> {
        let held = self.held.remove(&from)?;
        self.last = Some(from);
        Some(held)
    }

    pub fn live(&self) -> u64 {
        self.entries().filter(|e| e.is_live()).count() as u64
    }

    pub fn quarantined(&self) -> u64 {
        self.entries().filter(|e| e.is_quarantined()).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(hart: u32) -> Request {
        Request { pte: PhysAddr(8), pmd: PhysAddr(16), pud: PhysAddr(24), seen: 1, hart, id: 0 }
    }

    /// REQ: SMU-6, SMU-11. Harts and ports are served in turn: the source served last becomes the last in the order.
    #[test]
    fn those_who_wait_are_served_in_turn() {
        use Source::{Port, Walker};
        let mut p = Pmshr::new(1);
        let hold = |p: &mut Pmshr, from| p.held.insert(from, Held { from, request: request(3), asked: Cycle(0) });
        for from in [Walker(3), Port(1), Walker(0)] {
            hold(&mut p, from);
        }
        assert_eq!(p.held_in_turn(), [Walker(0), Walker(3), Port(1)]);
        p.take_held(Walker(3));
        hold(&mut p, Walker(3));
        assert_eq!(p.held_in_turn(), [Port(1), Walker(0), Walker(3)]);
        p.take_held(Port(1));
        hold(&mut p, Port(1));
        assert_eq!(p.held_in_turn(), [Walker(0), Walker(3), Port(1)]);
        assert!(p.take_held(Port(3)).is_none());
    }

    /// REQ: SMU-7. New requests for a PTE do not join an entry that is answered and in quarantine.
    #[test]
    fn only_live_entries_are_found() {
        let mut p = Pmshr::new(2);
        let waiter =
            Waiter { from: Source::Walker(0), id: 0, seen: 1, asked: Cycle(0), ready: Cycle(0), joined: false };
        p.fill(0, &request(0), waiter);
        assert_eq!(p.find(PhysAddr(8)), Some(0));
        assert_eq!(p.find(PhysAddr(16)), None);
        let e = p.slots[0].as_mut().unwrap();
        e.stage = Stage::Over;
        e.command = Some(0);
        assert!(e.is_quarantined() && !e.is_finished());
        assert_eq!(p.find(PhysAddr(8)), None);
        assert_eq!((p.live(), p.quarantined()), (0, 1));
    }

    /// REQ: SMU-10. If three quarters of the entries have commands at a device and no waiters, requests for this device fail,
    /// and requests for other devices do not.
    #[test]
    fn a_silent_device_leaves_entries_to_the_others() {
        let mut p = Pmshr::new(8);
        let seen = |device| regs::PTE_DEVICE.of(device);
        for slot in 0..6 {
            assert!(!p.is_crowded_for(seen(2)));
            let from = Source::Walker(0);
            let waiter = Waiter { from, id: 0, seen: 0, asked: Cycle(0), ready: Cycle(0), joined: false };
            p.fill(slot, &request(0), waiter);
            if let Some(entry) = &mut p.slots[slot] {
                entry.command = Some(2);
                assert!(!entry.waiters.is_empty());
            }
            assert!(!p.is_crowded_for(seen(2)), "the entry still has a waiter");
            if let Some(entry) = &mut p.slots[slot] {
                entry.waiters.clear();
            }
        }
        assert!(p.is_crowded_for(seen(2)) && !p.is_crowded_for(seen(1)));
    }
}
