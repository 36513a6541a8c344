// SPDX-License-Identifier: Apache-2.0
//! Memory for translated code: one memory file, mapped once for writing and once for execution.

use std::arch::asm;
use std::ptr::{NonNull, copy_nonoverlapping, null_mut};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Maximum number of bytes of translated code that are kept.
const SIZE: usize = 64 << 20;

/// Translated code, kept as a stack.
pub struct CodeBuffer {
    write: NonNull<u8>,
    run: NonNull<u8>,
    used: usize,
}

impl CodeBuffer {
    /// Creates an empty buffer; `None` where the host forbids executable memory.
    pub fn new() -> Option<CodeBuffer> {
        let file = memfd_create("trapless-code", MemfdFlags::CLOEXEC).ok()?;
        ftruncate(&file, SIZE as u64).ok()?;
        let map = |access| {
            // SAFETY: a new mapping at an address that the system chooses.
            let at = unsafe { mmap(null_mut(), SIZE, access, MapFlags::SHARED, &file, 0) }.ok()?;
            NonNull::new(at.cast::<u8>())
        };
        let write = map(ProtFlags::READ | ProtFlags::WRITE)?;
        let Some(run) = map(ProtFlags::READ | ProtFlags::EXEC) else {
            // SAFETY: mapped above with this size, and nobody else has its address.
            let _ = unsafe { munmap(write.as_ptr().cast(), SIZE) };
            return None;
        };
        Some(CodeBuffer { write, run, used: 0 })
    }

    /// Address at which the next code will run.
    pub fn next(&self) -> *const u8 {
        self.run.as_ptr().wrapping_add(self.used)
    }

    /// Adds code that was made for address [`CodeBuffer::next`]; returns `None` if it does not fit.
    pub fn push(&mut self, code: &[u8]) -> Option<*const u8> {
        if code.len() > SIZE - self.used {
            return None;
        }
        let at = self.next();
        // SAFETY: the bytes fit behind those already used.
        unsafe { copy_nonoverlapping(code.as_ptr(), self.write.as_ptr().add(self.used), code.len()) };
        serialize();
        self.used = (self.used + code.len()).next_multiple_of(16).min(SIZE);
        Some(at)
    }

    /// Drops everything behind the first `used` bytes.
    pub fn truncate(&mut self, used: usize) {
        self.used = used;
    }

    /// Number of bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }
}

/// Makes this processor see code that was written through another mapping, even if it has already read ahead. That takes a
/// serializing instruction (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3A, 8.1.3). IRET is the
/// only one that every processor has and no hypervisor intercepts.
fn serialize() {
    // SAFETY: control returns to the label behind iretq, with the same stack and flags.
    unsafe {
        asm!(
            "mov {stack}, rsp",
            "mov {segment:e}, ss",
            "push {segment}",
            "push {stack}",
            "pushfq",
            "mov {segment:e}, cs",
            "push {segment}",
            "lea {segment}, [rip + 2f]",
            "push {segment}",
            "iretq",
            "2:",
            stack = out(reg) _,
            segment = out(reg) _,
        );
    }
}

impl Drop for CodeBuffer {
    fn drop(&mut self) {
        // SAFETY: both were mapped in `new` with this size; code only runs in calls that borrow the buffer's owner.
        unsafe {
            let _ = munmap(self.write.as_ptr().cast(), SIZE);
            let _ = munmap(self.run.as_ptr().cast(), SIZE);
        }
    }
}
