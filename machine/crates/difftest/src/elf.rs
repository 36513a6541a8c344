// SPDX-License-Identifier: Apache-2.0
//! Writes ELF files that both machines can load.

use object::elf;
use object::write::elf::{FileHeader, ProgramHeader, Sym, Writer};

/// Bytes at a physical address. After `data` there are zeros up to `size`.
pub struct Segment<'a> {
    /// Physical address.
    pub at: u64,
    /// Content.
    pub data: &'a [u8],
    /// Size in memory.
    pub size: u64,
}

/// Writes a statically linked RISC-V program. Its entry is the start of the first segment.
///
/// # Panics
/// The object crate refuses what it has reserved itself.
pub fn write(segments: &[Segment<'_>], symbols: &[(&str, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = Writer::new(object::Endianness::Little, true, &mut out);
    w.reserve_file_header();
    w.reserve_program_headers(segments.len() as u32);
    let offsets: Vec<usize> = segments.iter().map(|s| w.reserve(s.data.len(), 4096)).collect();
    w.reserve_null_section_index();
    w.reserve_symtab_section_index();
    w.reserve_strtab_section_index();
    w.reserve_shstrtab_section_index();
    w.reserve_null_symbol_index();
    let names: Vec<_> = symbols.iter().map(|(name, _)| w.add_string(name.as_bytes())).collect();
    for _ in symbols {
        w.reserve_symbol_index(None);
    }
    w.reserve_symtab();
    w.reserve_strtab();
    w.reserve_shstrtab();
    w.reserve_section_headers();

    let header = FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_EXEC,
        e_machine: elf::EM_RISCV,
        e_entry: segments[0].at,
        e_flags: elf::EF_RISCV_RVC | elf::EF_RISCV_FLOAT_ABI_DOUBLE,
    };
    w.write_file_header(&header).expect("the header was reserved");
    w.write_align_program_headers();
    for (s, offset) in segments.iter().zip(&offsets) {
        w.write_program_header(&ProgramHeader {
            p_type: elf::PT_LOAD,
            p_flags: elf::PF_R | elf::PF_W | elf::PF_X,
            p_offset: *offset as u64,
            p_vaddr: s.at,
            p_paddr: s.at,
            p_filesz: s.data.len() as u64,
            p_memsz: s.size.max(s.data.len() as u64),
            p_align: 4096,
        });
    }
    for (s, offset) in segments.iter().zip(&offsets) {
        w.pad_until(*offset);
        w.write(s.data);
    }
    w.write_null_symbol();
    for (name, (_, value)) in names.into_iter().zip(symbols) {
        w.write_symbol(&Sym {
            name: Some(name),
            section: None,
            st_info: elf::STB_GLOBAL << 4 | elf::STT_NOTYPE,
            st_other: 0,
            st_shndx: elf::SHN_ABS,
            st_value: *value,
            st_size: 0,
        });
    }
    w.write_strtab();
    w.write_shstrtab();
    w.write_null_section_header();
    w.write_symtab_section_header(1);
    w.write_strtab_section_header();
    w.write_shstrtab_section_header();
    out
}
