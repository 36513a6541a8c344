// SPDX-License-Identifier: Apache-2.0
//! What can keep a machine from being built or from running on.

use std::path::PathBuf;

/// One line a cause; names the thing that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{what} {}: {cause}", path.display())]
    File {
        /// What the file is for.
        what: &'static str,
        /// Where it is.
        path: PathBuf,
        /// What the host said.
        cause: std::io::Error,
    },
    /// The SMU cannot be what was asked for.
    #[error("{0}")]
    Smu(String),
    /// A checkpoint cannot be written, or does not fit.
    #[error("checkpoint {}: {reason}", path.display())]
    Checkpoint {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Detailed timing was asked for.
    #[error("profile {0}: has no section `detail`, which detailed timing needs")]
    NoDetail(String),
    /// A file that attribution needs.
    #[error(transparent)]
    Attribution(#[from] trapless_attribution::Error),
    /// The kernel is not a RISC-V Image.
    #[error("kernel {}: not a RISC-V Linux Image (no RSC\\x05 at byte 56)", path.display())]
    NotAnImage {
        /// The file.
        path: PathBuf,
    },
    /// A file ends before its own header says.
    #[error("{what} {}: cut short: {has} bytes, its header says {needs}", path.display())]
    Truncated {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Bytes there.
        has: u64,
        /// Bytes announced.
        needs: u64,
    },
    /// No room in RAM.
    #[error("{what} {}: does not fit into {memory} bytes of guest memory", path.display())]
    DoesNotFit {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// RAM in bytes.
        memory: u64,
    },
    /// RAM does not even hold the device tree.
    #[error("{memory} bytes of guest memory are too few for the kernel and its device tree")]
    MemoryTooSmall {
        /// RAM in bytes.
        memory: u64,
    },
    /// Not a loadable ELF.
    #[error("ELF file {}: {reason}", path.display())]
    BadElf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The command line cannot go into a device tree.
    #[error("kernel command line: {0}")]
    CommandLine(String),
    /// RAM could not be mapped.
    #[error(transparent)]
    Ram(#[from] trapless_memory::RamError),
    /// A disk image is unusable, or the host failed while the guest used it.
    #[error("{0}")]
    Disk(String),
    /// The console's output failed.
    #[error("console: {0}")]
    Console(std::io::Error),
    /// A trace could not be written.
    #[error("trace: {0}")]
    Trace(std::io::Error),
    /// The profile asks for a machine that cannot be.
    #[error("profile: {0}")]
    Profile(String),
    /// A fault that cannot be.
    #[error("fault {fault}: {reason}")]
    Fault {
        /// As it was written.
        fault: String,
        /// What is wrong.
        reason: String,
    },
    /// Two devices, or a device and RAM, have an address in common.
    #[error(transparent)]
    Overlap(#[from] trapless_devices::Overlap),
    /// Too many disks.
    #[error("{0} disks are given; a machine can have at most 31")]
    TooManyDisks(usize),
    /// None or too many namespaces.
    #[error("disk {disk}: must have 1 to 64 namespaces, not {count}")]
    Namespaces {
        /// The disk, counted from 1.
        disk: usize,
        /// Its namespaces.
        count: usize,
    },
    /// Nothing can ever happen again.
    #[error("the guest waits for ever: every hart is asleep and no event is due (cycle {0})")]
    Deadlock(u64),
}
