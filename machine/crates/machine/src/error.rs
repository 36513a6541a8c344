// SPDX-License-Identifier: Apache-2.0
//! Errors that keep a machine from being built or from running.

use std::path::PathBuf;

/// An error, as one line that names what is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{what} {}: {cause}", path.display())]
    File {
        /// What the file is for.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the host.
        cause: std::io::Error,
    },
    /// There is no SMU of the kind that was asked for.
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
    /// Detailed timing was asked for, but the profile does not have it.
    #[error("profile {0}: has no section `detail`, which detailed timing needs")]
    NoDetail(String),
    /// A file that attribution needs is wrong.
    #[error(transparent)]
    Attribution(#[from] trapless_attribution::Error),
    /// The kernel is not a RISC-V Image.
    #[error("kernel {}: not a RISC-V Linux Image (no RSC\\x05 at byte 56)", path.display())]
    NotAnImage {
        /// The file.
        path: PathBuf,
    },
    /// A file is shorter than its own header says.
    #[error("{what} {}: cut short: {has} bytes, its header says {needs}", path.display())]
    Truncated {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Size of the file in bytes.
        has: u64,
        /// Size in bytes according to the header.
        needs: u64,
    },
    /// A file does not fit into RAM.
    #[error("{what} {}: does not fit into {memory} bytes of guest memory", path.display())]
    DoesNotFit {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// RAM in bytes.
        memory: u64,
    },
    /// RAM is too small even for the device tree.
    #[error("{memory} bytes of guest memory are too few for the kernel and its device tree")]
    MemoryTooSmall {
        /// RAM in bytes.
        memory: u64,
    },
    /// A file is not a loadable ELF.
    #[error("ELF file {}: {reason}", path.display())]
    BadElf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The command line cannot be stored in a device tree.
    #[error("kernel command line: {0}")]
    CommandLine(String),
    /// RAM could not be mapped.
    #[error(transparent)]
    Ram(#[from] trapless_memory::RamError),
    /// A disk image is unusable, or the host failed while the guest used it.
    #[error("{0}")]
    Disk(String),
    /// Output to the console failed.
    #[error("console: {0}")]
    Console(std::io::Error),
    /// A trace could not be written.
    #[error("trace: {0}")]
    Trace(std::io::Error),
    /// The profile asks for an impossible machine.
    #[error("profile: {0}")]
    Profile(String),
    /// A fault is impossible.
    #[error("fault {fault}: {reason}")]
    Fault {
        /// The fault as it was written.
        fault: String,
        /// What is wrong.
        reason: String,
    },
    /// Two devices, or a device and RAM, overlap.
    #[error(transparent)]
    Overlap(#[from] trapless_devices::Overlap),
    /// There are too many disks.
    #[error("{0} disks are given; a machine can have at most 31")]
    TooManyDisks(usize),
    /// A disk has no namespaces or too many.
    #[error("disk {disk}: must have 1 to 64 namespaces, not {count}")]
    Namespaces {
        /// The disk, counted from 1.
        disk: usize,
        /// Number of its namespaces.
        count: usize,
    },
    /// Nothing can happen any more.
    #[error("the guest waits for ever: every hart is asleep and no event is due (cycle {0})")]
    Deadlock(u64),
}
