// SPDX-License-Identifier: Apache-2.0
//! Entry and exits of translated code.
//!
//! In translated code rbx points at the hart ([`layout::BIAS`]), r12 is `acc`, r13 points at the data entries, and r15 is the
//! virtual address of the page. At a jump to a slot's entry, rax holds the slot's offset in its page.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::asm::Asm;
use super::layout;
use crate::Hart;
use crate::entry::PAGE_MASK;
use crate::left::{COLD, FETCH, LIMIT, LINE, Left, SLOW};

/// Enters translated code.
pub type Enter = extern "sysv64" fn(hart: *mut Hart, at: *const u8) -> Left;

/// Addresses of the common code.
pub struct Stubs {
    pub enter: *const u8,
    pub limit: *const u8,
    pub slow: *const u8,
    pub cold: *const u8,
    pub line: *const u8,
    pub fetch: *const u8,
}

/// Makes the common code for execution at `at`.
pub fn make(at: *const u8) -> (Vec<u8>, Stubs) {
    let mut ops = Asm::new(at.addr());
    let here = |ops: &Asm| at.wrapping_add(ops.offset().0);
    let leave = ops.new_dynamic_label();

    let enter = here(&ops);
    // Seven words with the return address, and one more that aligns the stack for calls.
    dynasm!(ops
        ; .arch x64
        ; push rbx ; push rbp ; push r12 ; push r13 ; push r14 ; push r15 ; sub rsp, 8
        ; lea rbx, [rdi + layout::BIAS]
        ; mov r12, [rbx + layout::ACC]
        ; mov r13, [rbx + layout::DTLB]
        ; mov r15, [rbx + layout::PC]
        ; mov eax, r15d
        ; and eax, layout::PAGE_BYTES - 1
        ; and r15, PAGE_MASK as i32
        ; jmp rsi
        ; =>leave
        ; mov [rbx + layout::ACC], r12
        ; add rsp, 8 ; pop r15 ; pop r14 ; pop r13 ; pop r12 ; pop rbp ; pop rbx
        ; ret);
    let mut at_offset = |kind: u64| {
        let stub = here(&ops);
        dynasm!(ops; .arch x64; add rax, r15; mov [rbx + layout::PC], rax; mov eax, kind as i32; jmp =>leave);
        stub
    };
    let (limit, slow, cold, line) = (at_offset(LIMIT), at_offset(SLOW), at_offset(COLD), at_offset(LINE));

    // Continue at the address in rax, in another page.
    let fetch = here(&ops);
    let shift = (trapless_memory::PAGE_SHIFT - layout::FETCH_ENTRY_SHIFT) as i8;
    dynasm!(ops
        ; .arch x64
        ; cmp r12d, [rbx + layout::LIMIT]
        ; jae >limit
        ; mov rcx, rax
        ; mov rdx, rax
        ; shr rcx, shift
        ; and rdx, PAGE_MASK as i32
        ; and ecx, layout::FETCH_INDEX
        ; add rcx, [rbx + layout::FTLB]
        ; cmp rdx, [rcx + layout::TAG]
        ; jne >miss
        ; mov rcx, [rcx + layout::PAGE]
        ; mov r15, rdx
        ; mov [rbx + layout::CODE_PAGE], rcx
        ; mov rcx, [rcx + layout::ENTRIES]
        ; and eax, layout::PAGE_BYTES - 1
        ; jmp QWORD [rcx + rax * 4]
        ; limit:
        ; mov [rbx + layout::PC], rax
        ; mov eax, LIMIT as i32
        ; jmp =>leave
        ; miss:
        ; mov [rbx + layout::PC], rax
        ; mov eax, FETCH as i32
        ; jmp =>leave);
    (ops.finalize().unwrap_or_default(), Stubs { enter, limit, slow, cold, line, fetch })
}
