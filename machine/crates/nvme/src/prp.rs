// SPDX-License-Identifier: Apache-2.0
//! Physical region pages (NVMe 1.4, section 4.3): the addresses of a command's data.

use trapless_memory::{Dma, PAGE_SIZE, PhysAddr};

use crate::command::Status;

/// Contiguous bytes inside one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub at: PhysAddr,
    pub len: usize,
}

const ENTRY: u64 = 8;

/// Returns the segments of `len` bytes of data that PRP1 and PRP2 describe. Reads PRP lists by DMA. Checks all entries, so
/// that a command with a wrong entry moves no data.
pub fn segments(dma: &mut dyn Dma, prp1: u64, prp2: u64, len: u64) -> Result<Vec<Segment>, Status> {
    if len == 0 {
        return Ok(Vec::new());
    }
    if prp1 & 3 != 0 {
        return Err(Status::PRP_OFFSET_INVALID);
    }
    let first = len.min(PAGE_SIZE - prp1 % PAGE_SIZE);
    let mut out = vec![Segment { at: PhysAddr(prp1), len: first as usize }];
    let mut left = len - first;
    if left == 0 {
        return Ok(out);
    }
    if left <= PAGE_SIZE {
        push_page(&mut out, prp2, &mut left)?;
        return Ok(out);
    }
    if !prp2.is_multiple_of(ENTRY) {
        return Err(Status::PRP_OFFSET_INVALID);
    }
    let mut list = prp2;
    loop {
        let room = (PAGE_SIZE - list % PAGE_SIZE) / ENTRY;
        let pages = left.div_ceil(PAGE_SIZE);
        // If the entries do not fit into this list page, its last entry points to the next list page.
        let chained = pages > room;
        let mut bytes = vec![0; (pages.min(room) * ENTRY) as usize];
        dma.read(PhysAddr(list), &mut bytes).map_err(|_| Status::DATA_TRANSFER_ERROR)?;
        let mut entries = bytes.chunks_exact(ENTRY as usize).map(|b| {
            let mut word = [0; 8];
            word.copy_from_slice(b);
            u64::from_le_bytes(word)
        });
        let next = if chained { entries.next_back() } else { None };
        for entry in entries {
            push_page(&mut out, entry, &mut left)?;
        }
        match next {
            // A chained list starts at offset 0 of its page, so it holds 512 entries and the walk makes progress.
            Some(next) if next % PAGE_SIZE == 0 => list = next,
            Some(_) => return Err(Status::PRP_OFFSET_INVALID),
            None => return Ok(out),
        }
    }
}

/// Adds the page at address `entry`, whose page offset must be zero.
fn push_page(out: &mut Vec<Segment>, entry: u64, left: &mut u64) -> Result<(), Status> {
    if !entry.is_multiple_of(PAGE_SIZE) {
        return Err(Status::PRP_OFFSET_INVALID);
    }
    let len = (*left).min(PAGE_SIZE);
    out.push(Segment { at: PhysAddr(entry), len: len as usize });
    *left -= len;
    Ok(())
}

/// Writes `data` to guest memory.
pub fn scatter(dma: &mut dyn Dma, to: &[Segment], data: &[u8]) -> Result<(), Status> {
    let mut rest = data;
    for s in to {
        let (part, tail) = rest.split_at(s.len.min(rest.len()));
        dma.write(s.at, part).map_err(|_| Status::DATA_TRANSFER_ERROR)?;
        rest = tail;
    }
    Ok(())
}

/// Reads guest memory into `data`.
pub fn gather(dma: &mut dyn Dma, from: &[Segment], data: &mut [u8]) -> Result<(), Status> {
    let mut rest = data;
    for s in from {
        let (part, tail) = rest.split_at_mut(s.len.min(rest.len()));
        dma.read(s.at, part).map_err(|_| Status::DATA_TRANSFER_ERROR)?;
        rest = tail;
    }
    Ok(())
}
