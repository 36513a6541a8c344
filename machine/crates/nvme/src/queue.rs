// SPDX-License-Identifier: Apache-2.0
//! Submission and completion queues (NVMe 1.4, section 4.1): rings in guest memory and the controller's view of them.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use trapless_memory::{BusError, Cycle, Dma, PhysAddr};

use crate::command::{CQE_BYTES, Command, Completion, SQE_BYTES};
use crate::record::CommandRecord;

/// Error of an invalid doorbell value: out of range, unchanged, or beyond the entries or the room of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidDoorbell;

/// A write to a tail doorbell: the new tail and the time of the write.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Doorbell {
    pub tail: u32,
    pub at: Cycle,
}

/// A submission queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SubmissionQueue {
    base: PhysAddr,
    size: u32,
    head: u32,
    tail: u32,
    pub cqid: u16,
    /// Doorbell writes with entries that are not fetched. Each write adds at least one entry, so there are fewer than `size`.
    pub doorbells: VecDeque<Doorbell>,
    /// Identifiers of the commands that are fetched and not completed.
    pub outstanding: BTreeSet<u16>,
}

impl SubmissionQueue {
    /// Creates an empty queue of `size` entries (at least 2).
    pub fn new(base: PhysAddr, size: u32, cqid: u16) -> SubmissionQueue {
        SubmissionQueue { base, size, head: 0, tail: 0, cqid, doorbells: VecDeque::new(), outstanding: BTreeSet::new() }
    }

    /// Returns the head, in the form of the SQ head field of completion queue entries.
    pub fn head(&self) -> u16 {
        self.head as u16
    }

    /// Handles a write to the tail doorbell.
    pub fn ring(&mut self, tail: u32, at: Cycle) -> Result<(), InvalidDoorbell> {
        let added = distance(self.tail, tail, self.size)?;
        if added == 0 || distance(self.head, self.tail, self.size)? + added >= self.size {
            return Err(InvalidDoorbell);
        }
        self.tail = tail;
        self.doorbells.push_back(Doorbell { tail, at });
        Ok(())
    }

    /// Reads the entry at the head. If all entries of the oldest doorbell write are read, removes that write and returns `None`.
    pub fn fetch(&mut self, dma: &mut dyn Dma) -> Result<Option<(Command, Cycle)>, BusError> {
        let Some(&doorbell) = self.doorbells.front() else { return Ok(None) };
        if self.head == doorbell.tail {
            self.doorbells.pop_front();
            return Ok(None);
        }
        let mut entry = [0; SQE_BYTES as usize];
        dma.read(entry_address(self.base, self.head, SQE_BYTES)?, &mut entry)?;
        self.head = (self.head + 1) % self.size;
        Ok(Some((Command::parse(&entry), doorbell.at)))
    }
}

/// A completion that waits for room in its queue.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Waiting {
    pub completion: Completion,
    pub record: CommandRecord,
    /// Whether this completion frees the command's identifier.
    pub owns_cid: bool,
}

/// A completion queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompletionQueue {
    base: PhysAddr,
    size: u32,
    head: u32,
    tail: u32,
    phase: bool,
    /// Interrupt vector, if interrupts are enabled.
    pub vector: Option<u16>,
    /// Completions that wait because the queue is full, oldest first.
    pub waiting: VecDeque<Waiting>,
    /// Time at which the host made room while completions were waiting.
    pub room_at: Option<Cycle>,
}

impl CompletionQueue {
    /// Creates an empty queue of `size` entries (at least 2).
    pub fn new(base: PhysAddr, size: u32, vector: Option<u16>) -> CompletionQueue {
        let waiting = VecDeque::new();
        CompletionQueue { base, size, head: 0, tail: 0, phase: true, vector, waiting, room_at: None }
    }

    /// Tells whether the queue has entries that the host has not read.
    pub fn unread(&self) -> bool {
        self.head != self.tail
    }

    /// Tells whether the queue is full.
    pub fn full(&self) -> bool {
        (self.tail + 1) % self.size == self.head
    }

    /// Handles a write to the head doorbell.
    pub fn ring(&mut self, head: u32, at: Cycle) -> Result<(), InvalidDoorbell> {
        let read = distance(self.head, head, self.size)?;
        if read == 0 || read > distance(self.head, self.tail, self.size)? {
            return Err(InvalidDoorbell);
        }
        self.head = head;
        if !self.waiting.is_empty() && self.room_at.is_none() {
            self.room_at = Some(at);
        }
        Ok(())
    }

    /// Writes an entry and returns its address. The queue must not be full.
    pub fn post(&mut self, c: &Completion, sq_head: u16, dma: &mut dyn Dma) -> Result<PhysAddr, BusError> {
        let at = entry_address(self.base, self.tail, CQE_BYTES)?;
        dma.write(at, &c.bytes(sq_head, self.phase))?;
        self.tail += 1;
        if self.tail == self.size {
            self.tail = 0;
            self.phase = !self.phase;
        }
        Ok(at)
    }
}

/// Returns the number of entries from index `from` up to index `to` in a ring of `size` entries.
fn distance(from: u32, to: u32, size: u32) -> Result<u32, InvalidDoorbell> {
    if to >= size { Err(InvalidDoorbell) } else { Ok((to + size - from) % size) }
}

fn entry_address(base: PhysAddr, index: u32, bytes: u64) -> Result<PhysAddr, BusError> {
    base.checked_add(u64::from(index) * bytes).ok_or(BusError(base))
}
