// SPDX-License-Identifier: Apache-2.0
//! Guest RAM: one region, with a mark on every page that holds predecoded code.

use std::fs::File;
use std::os::unix::fs::FileExt;

use vm_memory::mmap::MmapRegionBuilder;
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestRegionMmap};

use crate::{BusError, Dma, PhysAddr};

/// log2 of the page size.
pub const PAGE_SHIFT: u32 = 12;
/// Bytes in a page.
pub const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;

/// Error of setting up RAM.
#[derive(Debug, thiserror::Error)]
pub enum RamError {
    /// The size is not a positive multiple of the page size.
    #[error("memory size must be a positive multiple of 4096 bytes, not {0}")]
    Size(u64),
    /// The host refused the mapping.
    #[error("cannot map {size} bytes of guest memory: {reason}")]
    Map {
        /// Size asked for, bytes.
        size: u64,
        /// Error of the host.
        reason: String,
    },
}

/// Guest RAM: one region, zero at the start, used by one host thread.
///
/// A page is marked if a hart has predecoded instructions of it. A write to the page removes the mark and is reported by
/// [`Ram::take_overwritten_code`], so that the decoder can forget these instructions.
///
/// ```
/// use trapless_memory::{PhysAddr, Ram};
///
/// let mut ram = Ram::new(PhysAddr(0x8000_0000), 1 << 20)?;
/// ram.store(PhysAddr(0x8000_0010), 7u64.to_le_bytes());
/// assert_eq!(ram.load(PhysAddr(0x8000_0010)).map(u64::from_le_bytes), Some(7));
/// // Nothing is behind its end.
/// assert_eq!(ram.load::<8>(PhysAddr(0x8010_0000)), None);
/// # Ok::<(), trapless_memory::RamError>(())
/// ```
pub struct Ram {
    mem: GuestMemoryMmap,
    base: u64,
    size: u64,
    host: *mut u8,
    code: Vec<bool>,
    overwritten: Vec<u64>,
}

impl Ram {
    /// Creates `size` bytes of zeroed RAM at `base`.
    ///
    /// # Errors
    /// `size` is not a positive multiple of the page size, or the host has not enough memory.
    pub fn new(base: PhysAddr, size: u64) -> Result<Ram, RamError> {
        if size == 0 || !size.is_multiple_of(PAGE_SIZE) || !base.0.is_multiple_of(PAGE_SIZE) {
            return Err(RamError::Size(size));
        }
        let failed = |e: &dyn std::fmt::Display| RamError::Map { size, reason: e.to_string() };
        let bytes = usize::try_from(size).map_err(|e| failed(&e))?;
        let mem = GuestMemoryMmap::from_ranges(&[(GuestAddress(base.0), bytes)]).map_err(|e| failed(&e))?;
        Ram::over(mem, base, size)
    }

    /// Creates RAM with the contents that [`Ram::save`] has written to `file`. Pages are read when they are first used, and
    /// writes do not reach the file.
    ///
    /// # Errors
    /// Fails like [`Ram::new`], or because the file's length is not `size`.
    pub fn restore(base: PhysAddr, size: u64, file: File) -> Result<Ram, RamError> {
        let failed = |e: &dyn std::fmt::Display| RamError::Map { size, reason: e.to_string() };
        let found = file.metadata().map_err(|e| failed(&e))?.len();
        if found != size {
            return Err(failed(&format!("the file has {found} bytes")));
        }
        let bytes = usize::try_from(size).map_err(|e| failed(&e))?;
        let region = MmapRegionBuilder::new(bytes)
            .with_mmap_prot(libc::PROT_READ | libc::PROT_WRITE)
            .with_mmap_flags(libc::MAP_NORESERVE | libc::MAP_PRIVATE)
            .with_file_offset(FileOffset::new(file, 0))
            .build()
            .map_err(|e| failed(&e))?;
        let region = GuestRegionMmap::new(region, GuestAddress(base.0)).ok_or(RamError::Size(size))?;
        let mem = GuestMemoryMmap::from_regions(vec![region]).map_err(|e| failed(&e))?;
        Ram::over(mem, base, size)
    }

    fn over(mem: GuestMemoryMmap, base: PhysAddr, size: u64) -> Result<Ram, RamError> {
        let failed = |e: &dyn std::fmt::Display| RamError::Map { size, reason: e.to_string() };
        let host = mem.get_host_address(GuestAddress(base.0)).map_err(|e| failed(&e))?;
        let pages = (size >> PAGE_SHIFT) as usize;
        Ok(Ram { mem, base: base.0, size, host, code: vec![false; pages], overwritten: Vec::new() })
    }

    /// Writes the contents to an empty file, which stays sparse where pages are zero. Removes all marks.
    ///
    /// # Errors
    /// The host cannot write the file.
    pub fn save(&mut self, file: &File) -> std::io::Result<()> {
        const CHUNK: usize = 1 << 20;
        self.code.fill(false);
        self.overwritten.clear();
        file.set_len(self.size)?;
        let mut buffer = vec![0; CHUNK.min(self.size as usize)];
        for offset in (0..self.size).step_by(CHUNK) {
            let n = CHUNK.min((self.size - offset) as usize);
            let read = self.mem.read_slice(&mut buffer[..n], GuestAddress(self.base + offset));
            read.map_err(std::io::Error::other)?;
            for (page, bytes) in buffer[..n].chunks(PAGE_SIZE as usize).enumerate() {
                if bytes.iter().any(|b| *b != 0) {
                    file.write_all_at(bytes, offset + page as u64 * PAGE_SIZE)?;
                }
            }
        }
        Ok(())
    }

    /// First address.
    pub fn base(&self) -> PhysAddr {
        PhysAddr(self.base)
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The same memory in the form of the crate vm-memory, for loaders.
    pub fn guest_memory(&self) -> &GuestMemoryMmap {
        &self.mem
    }

    /// Offset of `[at, at + len)` from the base, if the range is completely inside.
    #[inline]
    pub fn offset(&self, at: PhysAddr, len: u64) -> Option<u64> {
        let off = at.0.wrapping_sub(self.base);
        (off < self.size && len <= self.size - off).then_some(off)
    }

    /// Host address of RAM's first byte, valid as long as the RAM lives. It is meant for the hart's fast path, which checks
    /// bounds when it fills its TLB, and takes the slow path for pages marked as code.
    pub fn host_base(&self) -> *mut u8 {
        self.host
    }

    /// Reads a little-endian value of `N` bytes, whatever the marks; `None` outside RAM.
    #[inline]
    pub fn load<const N: usize>(&self, at: PhysAddr) -> Option<[u8; N]> {
        let off = self.offset(at, N as u64)?;
        // SAFETY: `offset` has checked that all N bytes lie inside the mapping, which lives as long as `self`; a byte
        // array has no alignment, and no reference into RAM is ever made.
        Some(unsafe { self.host.add(off as usize).cast::<[u8; N]>().read_unaligned() })
    }

    /// Writes `N` bytes and removes the marks of the pages that they touch; `None` outside RAM.
    #[inline]
    pub fn store<const N: usize>(&mut self, at: PhysAddr, value: [u8; N]) -> Option<()> {
        let off = self.offset(at, N as u64)?;
        self.note_write(off, N as u64);
        // SAFETY: as in `load`; `&mut self` keeps other writers out.
        unsafe { self.host.add(off as usize).cast::<[u8; N]>().write_unaligned(value) };
        Some(())
    }

    /// Marks the page at `at` as predecoded. Does nothing outside RAM.
    pub fn mark_code(&mut self, at: PhysAddr) {
        if let Some(off) = self.offset(at, 1) {
            self.code[(off >> PAGE_SHIFT) as usize] = true;
        }
    }

    /// Whether the page at `at` holds predecoded code.
    pub fn is_code(&self, at: PhysAddr) -> bool {
        self.offset(at, 1).is_some_and(|off| self.code[(off >> PAGE_SHIFT) as usize])
    }

    /// Whether any code page was written since the last [`Ram::take_overwritten_code`].
    #[inline]
    pub fn code_overwritten(&self) -> bool {
        !self.overwritten.is_empty()
    }

    /// Addresses of marked pages that were written since the last call; their marks are removed.
    pub fn take_overwritten_code(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.overwritten)
    }

    fn note_write(&mut self, off: u64, len: u64) {
        if len == 0 {
            return;
        }
        for page in (off >> PAGE_SHIFT)..=((off + len - 1) >> PAGE_SHIFT) {
            if std::mem::take(&mut self.code[page as usize]) {
                self.overwritten.push(self.base + (page << PAGE_SHIFT));
            }
        }
    }
}

impl Dma for Ram {
    fn read(&mut self, at: PhysAddr, buf: &mut [u8]) -> Result<(), BusError> {
        self.mem.read_slice(buf, GuestAddress(at.0)).map_err(|_| BusError(at))
    }

    fn write(&mut self, at: PhysAddr, data: &[u8]) -> Result<(), BusError> {
        let off = self.offset(at, data.len() as u64).ok_or(BusError(at))?;
        self.note_write(off, data.len() as u64);
        self.mem.write_slice(data, GuestAddress(at.0)).map_err(|_| BusError(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ram() -> Ram {
        Ram::new(PhysAddr(0x8000_0000), 4 * PAGE_SIZE).unwrap()
    }

    #[test]
    fn accesses_past_the_end_fail_and_write_nothing() {
        let mut r = ram();
        let end = PhysAddr(0x8000_0000 + 4 * PAGE_SIZE);
        assert_eq!(r.load::<8>(PhysAddr(end.0 - 4)), None);
        assert_eq!(r.write(PhysAddr(end.0 - 4), &[1; 8]), Err(BusError(PhysAddr(end.0 - 4))));
        assert_eq!(r.load::<4>(PhysAddr(end.0 - 4)), Some([0; 4]));
        assert_eq!(r.load::<1>(PhysAddr(0x7fff_ffff)), None);
        assert_eq!(r.load::<1>(PhysAddr(u64::MAX)), None);
    }

    #[test]
    fn what_is_saved_comes_back_and_stays() {
        let mut r = ram();
        r.write(PhysAddr(0x8000_1ffc), &[7; 8]).unwrap();
        let file = tempfile::tempfile().unwrap();
        r.save(&file).unwrap();
        let again = || Ram::restore(PhysAddr(0x8000_0000), 4 * PAGE_SIZE, file.try_clone().unwrap()).unwrap();
        let mut copy = again();
        assert_eq!(copy.load::<8>(PhysAddr(0x8000_1ffc)), Some([7; 8]));
        assert_eq!(copy.load::<8>(PhysAddr(0x8000_0000)), Some([0; 8]));
        copy.store(PhysAddr(0x8000_1ffc), [9; 4]).unwrap();
        assert_eq!(again().load::<8>(PhysAddr(0x8000_1ffc)), Some([7; 8]));
        assert!(Ram::restore(PhysAddr(0x8000_0000), 8 * PAGE_SIZE, file).is_err());
    }

    #[test]
    fn writes_to_code_pages_are_reported_once() {
        let mut r = ram();
        r.mark_code(PhysAddr(0x8000_1000));
        r.mark_code(PhysAddr(0x8000_2000));
        r.write(PhysAddr(0x8000_1ffc), &[7; 8]).unwrap();
        assert_eq!(r.take_overwritten_code(), vec![0x8000_1000, 0x8000_2000]);
        r.store(PhysAddr(0x8000_1000), [1]).unwrap();
        assert!(!r.code_overwritten());
    }
}
