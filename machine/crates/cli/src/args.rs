// SPDX-License-Identifier: Apache-2.0
//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use trapless_machine::{DetailFrom, Moment, SymbolFile, TraceFrom};
use trapless_trace::Grain;

use crate::gdb::Address;

/// A deterministic full-system RISC-V machine with page misses served in hardware.
#[derive(Parser, Debug)]
#[command(name = "trapless-machine", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Boot a Linux kernel.
    Run(Run),
    /// Run a bare-metal ELF that reports through `tohost`.
    Elf(Elf),
    /// Continue from a checkpoint, with the same disks in the same order.
    ///
    /// The profile may have other times, but it must have the same harts, memory, clocks and paging mode.
    Resume(Resume),
    /// Show a memory access trace.
    #[command(subcommand)]
    Trace(Trace),
}

/// What to do with a trace.
#[derive(Subcommand, Debug)]
pub enum Trace {
    /// Show a trace's header, totals and address spaces; fail if the trace is incomplete.
    Info {
        /// The trace.
        file: PathBuf,
    },
    /// Show every entry, one per line.
    Dump {
        /// The trace.
        file: PathBuf,
    },
}

/// Options of every command.
#[derive(Args, Debug)]
pub struct Common {
    /// Name of a built-in profile, or a TOML file.
    #[arg(long, default_value = "vc707")]
    pub profile: String,
    /// Model of the drives: a built-in drive or a TOML file (default: that of the profile).
    #[arg(long, value_name = "NAME|FILE")]
    pub ssd: Option<String>,
    /// Change one value of the profile; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Size of guest memory in bytes, or in KiB, MiB or GiB with the suffix K, M or G: 256M (default: that of the profile).
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Size>,
    /// Number of harts (default: that of the profile).
    #[arg(long)]
    pub harts: Option<u32>,
    /// Simulate a machine without the SMU and the paging extension.
    #[arg(long)]
    pub no_smu: bool,
    /// Use this simulated RTL as the SMU instead of the reference model. FILE is the library that `python3 -m rtl.smu.sim.build`
    /// makes. Without FILE, print the options with which it must be built for this profile, and end.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with_all = ["no_smu", "checkpoint"])]
    pub smu_rtl: Option<Option<PathBuf>>,
    /// Attach a disk image as an NVMe drive; may be repeated. Options: `rw` (default): writes go to the image; `ro`: writes fail;
    /// `snapshot`: writes stay in memory and are dropped at the end; block=512|4096: bytes of a logical block (default: that of
    /// the drive); ssd=NAME|FILE: model of this drive (default: that of --ssd); namespace=PATH: one more namespace on this
    /// drive, to which rw, ro, snapshot and block= after it apply.
    #[arg(long = "disk", value_name = "PATH[,OPTION...]")]
    pub disks: Vec<Disk>,
    /// Make a drive fail; may be repeated (docs/reference/nvme.md). KIND: media-error (the command fails with a media error),
    /// abort (it fails as aborted), late (it completes by=SECONDS later), hang (it never completes), fatal
    /// (controller fatal status), remove (the drive is gone). Keys: disk=N (needed; the first is 1), namespace=ID,
    /// lba=FIRST[-LAST], queue=ID, op=read|write|flush, skip=N, every=N, count=N, after=SECONDS.
    #[arg(long = "fault", value_name = "KIND,KEY=VALUE...")]
    pub faults: Vec<String>,
    /// How instructions are executed; the guest sees no difference.
    #[arg(long, value_enum, default_value_t = Engine::Translator)]
    pub engine: Engine,
    /// Use detailed timing (section `detail` of the profile): from `start`, `milestone:N` or `instructions:N` on, in all regions
    /// of interest (`roi`), or in those with number N (`roi:N`). Default: never.
    #[arg(long, value_name = "FROM")]
    pub detail: Option<DetailFrom>,
    /// Write a checkpoint to this folder and end.
    #[arg(long, value_name = "DIR", requires = "checkpoint_at")]
    pub checkpoint: Option<PathBuf>,
    /// When to write the checkpoint: `milestone:N` or `instructions:N`.
    #[arg(long, value_name = "MOMENT", requires = "checkpoint")]
    pub checkpoint_at: Option<Moment>,
    /// Trace memory accesses into this file. `grain`: page (4 KiB, default) or line (64 bytes); `from`: start, roi (regions of
    /// interest), milestone:N or instructions:N (default: the regions of interest, or the whole run if there are none);
    /// `kernel`: also the kernel's accesses.
    #[arg(long, value_name = "FILE[,grain=...][,from=...][,kernel]")]
    pub trace: Option<TraceFile>,
    /// Report every miss that hardware serves, and every request through a software request port, that the guest's Linux makes
    /// in atomic context. OFFSET is the offset of `pagefault_disabled` in `struct task_struct`; without it, that field is not
    /// checked.
    #[arg(long, value_name = "OFFSET", num_args = 0..=1, require_equals = true)]
    pub check_atomic: Option<Option<u64>>,
    /// Listen for GDB at PORT (of 127.0.0.1), HOST:PORT or unix:PATH. The run begins when GDB attaches; with `nowait`, at once.
    #[arg(long, value_name = "PLACE[,nowait]")]
    pub gdb: Option<Address>,
    /// Record where every cycle goes, in files in this folder (docs/reference/profiling.md). The guest does not notice it.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["trace", "gdb"])]
    pub attribute: Option<PathBuf>,
    /// When --attribute measures: from `start`, `milestone:N` or `instructions:N` on, in all regions of interest (`roi`), or in
    /// those with number N (`roi:N`). Default: `roi`; for a bare-metal ELF file `start`.
    #[arg(long, value_name = "FROM", requires = "attribute")]
    pub attribute_from: Option<DetailFrom>,
    /// Symbols for --attribute; may be repeated. FILE is a System.map, or an ELF file that is loaded at the hexadecimal address
    /// BASE.
    #[arg(long = "symbols", value_name = "FILE[@BASE]", requires = "attribute")]
    pub symbols: Vec<SymbolFile>,
    /// File with the table of categories for --attribute (default: the table for the kernel of this repository).
    #[arg(long, value_name = "FILE", requires = "attribute")]
    pub categories: Option<PathBuf>,
    /// Maximum number of single records of each type: faults, misses, drive commands, time slices. Sums also include those that
    /// are not recorded.
    #[arg(long, value_name = "N", requires = "attribute", default_value_t = 250_000)]
    pub attribute_limit: usize,
    /// Write the machine's record to this file (JSON).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print on standard error how fast the run was, and when the guest started its first command.
    #[arg(long)]
    pub summary: bool,
    /// Where the console goes: `-` for standard output, or a file.
    #[arg(long, default_value = "-", value_name = "FILE")]
    pub console: String,
    /// Stop after this number of simulated seconds.
    #[arg(long, value_name = "SECONDS")]
    pub max_seconds: Option<f64>,
}

/// How instructions are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Instructions are interpreted one by one.
    Interpreter,
    /// Code that runs often is translated to code of the host, on hosts that support it.
    Translator,
}

/// Options of `run`.
#[derive(Args, Debug)]
pub struct Run {
    /// Options of every command.
    #[command(flatten)]
    pub common: Common,
    /// RISC-V Linux kernel (an uncompressed Image).
    #[arg(long, value_name = "FILE")]
    pub kernel: PathBuf,
    /// Initial RAM disk.
    #[arg(long, value_name = "FILE")]
    pub initrd: Option<PathBuf>,
    /// Kernel command line.
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub append: String,
    /// Machine-mode firmware that replaces the built-in SBI: a raw binary, loaded at the start of RAM.
    #[arg(long, value_name = "FILE")]
    pub bios: Option<PathBuf>,
    /// Connect the terminal to the guest's console.
    #[arg(long)]
    pub interactive: bool,
}

/// Options of `elf`.
#[derive(Args, Debug)]
pub struct Elf {
    /// Options of every command.
    #[command(flatten)]
    pub common: Common,
    /// The program.
    pub file: PathBuf,
    /// Write memory from `begin_signature` to `end_signature` to this file, one hexadecimal 32-bit word per line.
    #[arg(long, value_name = "FILE")]
    pub signature: Option<PathBuf>,
}

/// Options of `resume`.
#[derive(Args, Debug)]
pub struct Resume {
    /// Options of every command.
    #[command(flatten)]
    pub common: Common,
    /// The checkpoint's folder.
    pub dir: PathBuf,
    /// Connect the terminal to the guest's console.
    #[arg(long)]
    pub interactive: bool,
}

/// A size in bytes. On the command line, the number may end in K, M or G (KiB, MiB, GiB).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let (digits, shift) = match text.char_indices().last() {
            Some((at, 'k' | 'K')) => (&text[..at], 10),
            Some((at, 'm' | 'M')) => (&text[..at], 20),
            Some((at, 'g' | 'G')) => (&text[..at], 30),
            _ => (text, 0),
        };
        let number: u64 = digits.parse().map_err(|_| format!("'{text}' is not a size such as 256M"))?;
        number.checked_mul(1 << shift).map(Size).ok_or_else(|| format!("'{text}' is too large"))
    }
}

/// A drive: the images of its namespaces, and its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Name or file of the drive's model; `None`: that of the profile.
    pub ssd: Option<String>,
    /// The drive's namespaces.
    pub namespaces: Vec<Namespace>,
}

/// An image and how it may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The image.
    pub path: PathBuf,
    /// What happens to writes.
    pub mode: DiskMode,
    /// Size of a logical block in bytes; `None`: that of the drive.
    pub block: Option<u32>,
}

/// What happens to writes to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskMode {
    /// They go to the image.
    ReadWrite,
    /// They fail.
    ReadOnly,
    /// They stay in memory and are lost at the end.
    Snapshot,
}

impl Namespace {
    fn new(path: &str) -> Namespace {
        Namespace { path: path.into(), mode: DiskMode::ReadWrite, block: None }
    }
}

impl FromStr for Disk {
    type Err = String;

    fn from_str(text: &str) -> Result<Disk, String> {
        let mut parts = text.split(',');
        let mut namespace = Namespace::new(parts.next().unwrap_or_default());
        let mut disk = Disk { ssd: None, namespaces: Vec::new() };
        // A part that follows a path may belong to the path: paths may contain commas.
        let mut in_path = true;
        for part in parts {
            let was_in_path = std::mem::replace(&mut in_path, false);
            match (part, part.split_once('=')) {
                ("ro", _) => namespace.mode = DiskMode::ReadOnly,
                ("rw", _) => namespace.mode = DiskMode::ReadWrite,
                ("snapshot", _) => namespace.mode = DiskMode::Snapshot,
                (_, Some(("block", size))) => match size {
                    "512" => namespace.block = Some(512),
                    "4096" => namespace.block = Some(4096),
                    _ => return Err(format!("block={size} is not 512 or 4096")),
                },
                (_, Some(("ssd", name))) => disk.ssd = Some(name.into()),
                (_, Some(("namespace", path))) => {
                    disk.namespaces.push(std::mem::replace(&mut namespace, Namespace::new(path)));
                    in_path = true;
                }
                (more, _) if was_in_path && more.contains('/') => {
                    let path = namespace.path.as_mut_os_string();
                    path.push(",");
                    path.push(more);
                    in_path = true;
                }
                (other, _) => {
                    let known = "ro, rw, snapshot, block=, ssd=, namespace=";
                    return Err(format!("disk option '{other}' is not one of {known}"));
                }
            }
        }
        disk.namespaces.push(namespace);
        Ok(disk)
    }
}

/// A trace, as the command line describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// File for the trace.
    pub path: PathBuf,
    /// Size of blocks.
    pub grain: Grain,
    /// Whether to trace the kernel's accesses as well.
    pub kernel: bool,
    /// Which part of the run to trace.
    pub from: TraceFrom,
}

impl FromStr for TraceFile {
    type Err = String;

    fn from_str(text: &str) -> Result<TraceFile, String> {
        let (path, options) = text.split_once(',').unwrap_or((text, ""));
        let (grain, from) = (Grain::Page, TraceFrom::default());
        let mut trace = TraceFile { path: path.into(), grain, kernel: false, from };
        if path.is_empty() {
            return Err("give a file before the first comma".to_owned());
        }
        for option in options.split(',').filter(|o| !o.is_empty()) {
            match option.split_once('=') {
                Some(("grain", "page")) => trace.grain = Grain::Page,
                Some(("grain", "line")) => trace.grain = Grain::Line,
                Some(("from", from)) => trace.from = from.parse().map_err(|e| format!("from={from}: {e}"))?,
                None if option == "kernel" => trace.kernel = true,
                _ => return Err(format!("option '{option}' is not grain=page, grain=line, from=... or kernel")),
            }
        }
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!("256M".parse(), Ok(Size(256 << 20)));
        assert_eq!("4096".parse(), Ok(Size(4096)));
        assert!("".parse::<Size>().is_err());
        assert!("1Q".parse::<Size>().is_err());
        assert!("99999999999999999G".parse::<Size>().is_err());
    }

    #[test]
    fn disks() {
        let one = |path: &str, mode, block| Namespace { path: path.into(), mode, block };
        let disk = |text: &str| text.parse::<Disk>();
        let plain = |namespaces| Ok(Disk { ssd: None, namespaces });
        assert_eq!(disk("a.img,ro"), plain(vec![one("a.img", DiskMode::ReadOnly, None)]));
        assert_eq!(disk("a,b/c.img"), plain(vec![one("a,b/c.img", DiskMode::ReadWrite, None)]));
        assert_eq!(disk("a,b/c,snapshot"), plain(vec![one("a,b/c", DiskMode::Snapshot, None)]));
        let two = disk("a,ssd=x/tlc.toml,block=4096,namespace=b,c/d,ro,namespace=e,block=512").unwrap();
        assert_eq!(two.ssd.as_deref(), Some("x/tlc.toml"));
        let expected = [
            one("a", DiskMode::ReadWrite, Some(4096)),
            one("b,c/d", DiskMode::ReadOnly, None),
            one("e", DiskMode::ReadWrite, Some(512)),
        ];
        assert_eq!(two.namespaces, expected);
        for (wrong, names) in [("a,rox", "rox"), ("a,block=1024", "1024"), ("a,ro,b/c", "b/c"), ("a,size=4", "size=4")]
        {
            assert!(disk(wrong).unwrap_err().contains(names), "{wrong}");
        }
    }

    #[test]
    fn details() {
        assert_eq!("roi".parse(), Ok(DetailFrom::Rois));
        assert_eq!("roi:100".parse(), Ok(DetailFrom::Roi(100)));
        assert_eq!("milestone:2".parse(), Ok(DetailFrom::Moment(Moment::Milestone(2))));
        for wrong in ["", "roi:", "roi:x", "region:1"] {
            assert!(wrong.parse::<DetailFrom>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn traces() {
        let (grain, from) = (Grain::Line, TraceFrom::Moment(Moment::Milestone(1)));
        let whole = TraceFile { path: "a.trace".into(), grain, kernel: true, from };
        assert_eq!("a.trace,kernel,from=milestone:1,grain=line".parse(), Ok(whole));
        let (grain, from) = (Grain::Page, TraceFrom::RoisOrAll);
        assert_eq!("a".parse(), Ok(TraceFile { path: "a".into(), grain, kernel: false, from }));
        for wrong in ["", ",kernel", "a,b", "a,grain=word", "a,from=end", "a,kernel=1"] {
            assert!(wrong.parse::<TraceFile>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
