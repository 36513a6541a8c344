// SPDX-License-Identifier: Apache-2.0
//! Loads a kernel, an initial RAM disk, firmware or an ELF file into RAM.

use std::path::Path;

use object::{Object, ObjectSegment, ObjectSymbol};
use serde::{Deserialize, Serialize};
use trapless_memory::{Dma, PhysAddr, Ram};

use crate::board::map;
use crate::error::Error;

/// Offset of `text_offset` in the header of a RISC-V Linux Image (Documentation/arch/riscv/boot-image-header.rst).
const IMAGE_TEXT_OFFSET: usize = 8;
/// Offset of `image_size`.
const IMAGE_SIZE: usize = 16;
/// Offset of the second magic number.
const IMAGE_MAGIC2: usize = 56;
const MAGIC2: &[u8; 4] = b"RSC\x05";
/// The RAM disk starts at a multiple of this.
const PAGE: u64 = 4096;
/// Bytes at the end of RAM that are reserved for the device tree. It starts at a multiple of 2 MiB.
pub const DEVICE_TREE_ROOM: u64 = 2 << 20;

/// Where a kernel was loaded.
#[derive(Clone, Copy, Debug)]
pub struct LoadedImage {
    /// Entry point.
    pub entry: u64,
    /// First byte after the image and its bss.
    pub end: u64,
}

/// Reads a whole file.
///
/// # Errors
/// When the file cannot be read. The error names the file.
pub fn read_file(path: &Path, what: &'static str) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|cause| Error::File { what, path: path.to_owned(), cause })
}

fn write(ram: &mut Ram, at: u64, data: &[u8], what: &'static str, path: &Path) -> Result<(), Error> {
    ram.write(PhysAddr(at), data).map_err(|_| Error::DoesNotFit { what, path: path.to_owned(), memory: ram.size() })
}

/// Loads a RISC-V Linux Image.
///
/// # Errors
/// When the file cannot be read, is not an Image, is cut short, or does not fit into RAM.
pub fn linux_image(ram: &mut Ram, path: &Path) -> Result<LoadedImage, Error> {
    let data = read_file(path, "kernel")?;
    let field = |at: usize| data.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
    let (Some(text_offset), Some(size)) = (field(IMAGE_TEXT_OFFSET), field(IMAGE_SIZE)) else {
        return Err(Error::NotAnImage { path: path.to_owned() });
    };
    if data.get(IMAGE_MAGIC2..IMAGE_MAGIC2 + 4) != Some(MAGIC2) {
        return Err(Error::NotAnImage { path: path.to_owned() });
    }
    let entry = map::RAM_BASE.0.checked_add(text_offset).ok_or_else(|| Error::NotAnImage { path: path.to_owned() })?;
    let end = entry.checked_add(size.max(data.len() as u64));
    let end = end
        .filter(|end| ram.offset(PhysAddr(entry), end - entry).is_some())
        .ok_or_else(|| Error::DoesNotFit { what: "kernel", path: path.to_owned(), memory: ram.size() })?;
    // The header gives only the size in memory. That includes zeroed data, which the file leaves out: a small part of a usual
    // kernel, more than half of one with lockdep and KASAN. A file that lacks far more has been cut short.
    if (data.len() as u64) < size / 4 {
        return Err(Error::Truncated { what: "kernel", path: path.to_owned(), has: data.len() as u64, needs: size });
    }
    write(ram, entry, &data, "kernel", path)?;
    Ok(LoadedImage { entry, end })
}

/// Loads the RAM disk as high as possible below `top`. Returns its start and end.
///
/// # Errors
/// When the file cannot be read or would overlap memory below `floor`.
pub fn initrd(ram: &mut Ram, path: &Path, floor: u64, top: u64) -> Result<(u64, u64), Error> {
    let data = read_file(path, "initrd")?;
    let start = top.saturating_sub(data.len() as u64) & !(PAGE - 1);
    if start < floor {
        return Err(Error::DoesNotFit { what: "initrd", path: path.to_owned(), memory: ram.size() });
    }
    write(ram, start, &data, "initrd", path)?;
    Ok((start, start + data.len() as u64))
}

/// Loads raw firmware at the start of RAM.
///
/// # Errors
/// When the file cannot be read or does not fit.
pub fn firmware(ram: &mut Ram, path: &Path) -> Result<(), Error> {
    let data = read_file(path, "firmware")?;
    write(ram, map::RAM_BASE.0, &data, "firmware", path)
}

/// Puts the device tree at the last 2 MiB boundary after which there is enough room. Returns its address.
///
/// # Errors
/// When the device tree would overlap memory below `floor`.
pub fn device_tree(ram: &mut Ram, dtb: &[u8], floor: u64) -> Result<u64, Error> {
    let at = (map::RAM_BASE.0 + ram.size()).saturating_sub(DEVICE_TREE_ROOM) & !(DEVICE_TREE_ROOM - 1);
    let fits = at >= floor && dtb.len() as u64 <= DEVICE_TREE_ROOM;
    if !fits || ram.write(PhysAddr(at), dtb).is_err() {
        return Err(Error::MemoryTooSmall { memory: ram.size() });
    }
    Ok(at)
}

/// An ELF program in RAM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadedElf {
    /// Entry point.
    pub entry: u64,
    /// Address of the symbol `tohost`, if there is one.
    pub tohost: Option<u64>,
    /// Addresses of `begin_signature` and `end_signature`, if both exist.
    pub signature: Option<(u64, u64)>,
}

/// Loads the segments of a 64-bit RISC-V ELF at their physical addresses.
///
/// # Errors
/// When the file cannot be read, is not such an ELF, or has a segment outside RAM.
pub fn elf(ram: &mut Ram, path: &Path) -> Result<LoadedElf, Error> {
    use object::read::elf::{ElfFile64, ProgramHeader};
    let data = read_file(path, "ELF file")?;
    let bad = |reason: String| Error::BadElf { path: path.to_owned(), reason };
    let file = ElfFile64::<object::Endianness>::parse(&*data).map_err(|e| bad(e.to_string()))?;
    if file.architecture() != object::Architecture::Riscv64 {
        return Err(bad(format!("it is for {:?}, not riscv64", file.architecture())));
    }
    for segment in file.segments() {
        let header = segment.elf_program_header();
        let physical = header.p_paddr(file.endian());
        let bytes = segment.data().map_err(|e| bad(e.to_string()))?;
        write(ram, physical, bytes, "ELF segment", path)?;
        let size = header.p_memsz(file.endian());
        if ram.offset(PhysAddr(physical), size).is_none() {
            return Err(Error::DoesNotFit { what: "ELF segment", path: path.to_owned(), memory: ram.size() });
        }
    }
    let symbol = |name: &str| file.symbols().find(|s| s.name() == Ok(name)).map(|s| s.address());
    let signature = symbol("begin_signature").zip(symbol("end_signature"));
    if let Some((begin, end)) = signature
        && end.checked_sub(begin).is_none_or(|length| ram.offset(PhysAddr(begin), length).is_none())
    {
        return Err(bad(format!("its signature, {begin:#x} to {end:#x}, is not in guest memory")));
    }
    Ok(LoadedElf { entry: file.entry(), tohost: symbol("tohost"), signature })
}
