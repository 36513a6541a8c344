// SPDX-License-Identifier: Apache-2.0
//! `trapless-pagesim record`: runs a program under valgrind and stores its accesses as a trace.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use rustix::process::{Pid, Signal, kill_process_group};
use trapless_pagesim::Error;
use trapless_pagesim::input::import::Part;
use trapless_pagesim::input::import::lackey::Recorder;
use trapless_pagesim::input::records::Records;

use crate::INTERRUPTED;
use crate::count::Count;
use crate::files::temporary;
use crate::import::keep;
use crate::tracer;

/// Size of the pipe in bytes: the largest that Linux allows by default.
const PIPE: usize = 1 << 20;
/// Time between two reads of the pipe. Lackey writes each access separately. If a reader were always waiting, each write
/// would wake it and take twice as long.
const NAP: Duration = Duration::from_millis(5);
/// Time between two reads of the pipe for this project's tool, which writes many records at once and fills the pipe in 2 ms.
const SHORT_NAP: Duration = Duration::from_millis(1);
/// Programs whose task is to start another program. That one is not recorded, so the user gets a warning.
const STARTERS: [&str; 8] = ["sh", "bash", "dash", "env", "nice", "taskset", "time", "timeout"];

/// Options of `trapless-pagesim record`.
#[derive(Args, Debug)]
pub struct Record {
    /// File for the trace (default: PROGRAM.trace). The totals go to FILE.json.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leave out the first N accesses, such as those of the program's start. N may end in k, M or G (10^3, 10^6, 10^9).
    #[arg(long, value_name = "N", default_value = "0")]
    skip: Count,
    /// Store N accesses, then end the program (default: record until the program ends).
    #[arg(long, value_name = "N")]
    limit: Option<Count>,
    /// The recorder: `tracer`, a tool that is compiled against the installed valgrind, or valgrind's lackey, which is slower
    /// (default: tracer, or lackey if tracer cannot be compiled).
    #[arg(long, value_name = "NAME")]
    with: Option<Tool>,
    /// The program and its arguments. Programs that it starts, or that replace it (exec), are not recorded.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The tool that records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tool {
    /// This project's tool for valgrind.
    Tracer,
    /// Valgrind's own tool.
    Lackey,
}

/// Stores what a tool writes.
enum Taker {
    Records(Records),
    Text(Recorder),
}

impl Taker {
    fn trace(&self) -> &Recorder {
        match self {
            Taker::Records(records) => records.recorder(),
            Taker::Text(recorder) => recorder,
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Taker::Records(records) => records.feed(bytes),
            Taker::Text(recorder) => recorder.feed(bytes),
        }
    }

    fn finish(self) -> Result<(), Error> {
        match self {
            Taker::Records(records) => records.finish().map(drop),
            Taker::Text(recorder) => recorder.finish().map(drop),
        }
    }

    /// Returns how long to wait before the next read of the pipe. `got` is the number of bytes from the last read.
    fn nap(&self, got: usize) -> Option<Duration> {
        match self {
            Taker::Records(_) => (got == 0).then_some(SHORT_NAP),
            Taker::Text(_) => (got < PIPE / 2).then_some(NAP),
        }
    }
}

/// A program that is killed when this value is dropped.
struct Traced {
    child: Child,
    done: Option<ExitStatus>,
}

impl Traced {
    /// Exit status of the program, if it has ended.
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.done.is_none() {
            self.done = self.child.try_wait()?;
        }
        Ok(self.done)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if matches!(self.ended(), Ok(Some(_))) {
            return;
        }
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Records a program. Returns its exit status.
///
/// # Errors
/// Valgrind or the program cannot be run, no access was recorded, or the trace cannot be written.
pub fn record(options: &Record) -> Result<u8> {
    let program = Path::new(&options.command[0]);
    found(program).with_context(|| format!("{}: no such program", program.display()))?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if STARTERS.contains(&&*name) {
        eprintln!("trapless-pagesim: only {name} itself is recorded, not the programs that it starts");
    }
    let out = options.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.trace")));
    let cannot = || format!("cannot write {}", out.display());
    let to = temporary(&out)?;
    let part = Part { skip: options.skip.0, limit: options.limit.map_or(u64::MAX, |n| n.0) };
    let words: Vec<_> = options.command.iter().map(|w| w.to_string_lossy()).collect();
    let file = to.as_file().try_clone().with_context(cannot)?;
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    ctrlc::set_handler(move || raised.store(true, Ordering::SeqCst)).context("cannot install the interrupt handler")?;

    let dir = tempfile::tempdir().context("cannot make a temporary folder")?;
    let (tool, valgrind) = choose(options.with, dir.path(), program)?;
    let mut taker = match tool {
        Tool::Tracer => Taker::Records(Records::new(program, &out, file, &words.join(" "), part)?),
        Tool::Lackey => Taker::Text(Recorder::new(program, &out, file, &words.join(" "), part)?),
    };

    let (mut program, mut pipe) = start(tool, valgrind, &options.command, &dir.path().join("pipe"))?;
    let mut buffer = vec![0; PIPE];
    let mut progress = Progress::new(part);
    while !taker.trace().full() {
        if stop.load(Ordering::SeqCst) {
            eprintln!("trapless-pagesim: interrupted");
            return Ok(INTERRUPTED);
        }
        // Check this before reading the pipe: if the program has ended, the pipe then contains its last output.
        let ended = program.ended()?.is_some();
        let got = match pipe.read(&mut buffer) {
            Ok(n) => n,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            Err(e) => return Err(e).context("cannot read from valgrind"),
        };
        taker.feed(&buffer[..got])?;
        progress.show(taker.trace());
        if ended && got == 0 {
            break;
        }
        if let (Some(nap), false) = (taker.nap(got), ended) {
            std::thread::sleep(nap);
        }
    }
    progress.end();
    let ended = program.done;
    drop(program);
    if let Some(status) = ended
        && !status.success()
    {
        if taker.trace().stored() == 0 {
            bail!("{}: no memory access recorded; it ended with {status}", options.command[0].display());
        }
        eprintln!("trapless-pagesim: {name} ended with {status}");
    }
    taker.finish()?;
    keep(to, &out).map(|()| 0)
}

/// Chooses the tool. Returns it with the command that runs valgrind.
fn choose(wanted: Option<Tool>, dir: &Path, program: &Path) -> Result<(Tool, Command)> {
    let lackey = || {
        let mut command = Command::new("valgrind");
        command.args(["--tool=lackey", "--trace-mem=yes", "--basic-counts=no"]);
        (Tool::Lackey, command)
    };
    if wanted == Some(Tool::Lackey) {
        return Ok(lackey());
    }
    match tracer::build(dir, program) {
        Ok(command) => Ok((Tool::Tracer, command)),
        Err(e) if wanted.is_some() => Err(e.context("--with tracer")),
        // Without valgrind, lackey's error says what to do.
        Err(_) if found(Path::new("valgrind")).is_none() => Ok(lackey()),
        Err(e) => {
            eprintln!("trapless-pagesim: recording with lackey, which is slower: {e:#}");
            Ok(lackey())
        }
    }
}

/// Starts the program under valgrind, which writes to `pipe`.
fn start(tool: Tool, mut valgrind: Command, command: &[OsString], pipe: &Path) -> Result<(Traced, File)> {
    let of = || format!("cannot make the pipe {}", pipe.display());
    mkfifoat(CWD, pipe, Mode::RUSR | Mode::WUSR).with_context(of)?;
    let end = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(pipe).with_context(of)?;
    // If this fails, a smaller pipe works as well.
    let _ = rustix::pipe::fcntl_setpipe_size(&end, PIPE);
    match tool {
        Tool::Tracer => valgrind.args(tracer::outputs(pipe)),
        Tool::Lackey => {
            let mut log = OsString::from("--log-file=");
            // Valgrind expands %p and the like in the name.
            log.push(pipe.to_str().context("the temporary folder's name is not UTF-8")?.replace('%', "%%"));
            valgrind.arg(log)
        }
    };
    let child = valgrind
        // A second program must not write to the same trace.
        .args(["-q", "--trace-children=no", "--child-silent-after-fork=yes"])
        .arg("--")
        .args(command)
        .stdin(if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() })
        // A process group, so that the program can be killed with everything that it starts.
        .process_group(0)
        .spawn();
    match child {
        Ok(child) => Ok((Traced { child, done: None }, end)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => bail!("valgrind is not installed (Debian package valgrind)"),
        Err(e) => Err(e).context("cannot run valgrind"),
    }
}

/// Finds a program by its path, or by its name in PATH. Returns its path if it can be run. The caller's message is clearer than
/// valgrind's.
pub fn found(program: &Path) -> Option<PathBuf> {
    let runs = |path: &Path| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if program.as_os_str().as_bytes().contains(&b'/') {
        return runs(program).then(|| program.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|dir| dir.join(program))
        .find(|path| runs(path))
}

/// Shows the progress of a recording: each second in the same line of a terminal, otherwise each minute in a new line.
struct Progress {
    part: Part,
    begin: Instant,
    last: Instant,
    terminal: bool,
}

impl Progress {
    fn new(part: Part) -> Progress {
        let now = Instant::now();
        Progress { part, begin: now, last: now, terminal: io::stderr().is_terminal() }
    }

    fn show(&mut self, recorder: &Recorder) {
        if self.last.elapsed() < Duration::from_secs(if self.terminal { 1 } else { 60 }) {
            return;
        }
        self.last = Instant::now();
        let (skipped, stored) = (recorder.skipped(), recorder.stored());
        let rate = (skipped + stored) as f64 / self.begin.elapsed().as_secs_f64();
        let limited = self.part.limit < u64::MAX;
        let mut text = match stored {
            0 if self.part.skip > 0 => format!("{} of {} accesses left out", Count(skipped), Count(self.part.skip)),
            n if limited => format!("{} of {} accesses", Count(n), Count(self.part.limit)),
            n => format!("{} accesses", Count(n)),
        };
        if limited {
            let left = (self.part.skip - skipped + self.part.limit.saturating_sub(stored)) as f64 / rate.max(1.0);
            text += &format!(", {:.0} min {:02.0} s to go", (left / 60.0).floor(), left % 60.0);
        }
        let (before, behind) = if self.terminal { ("\r", "\x1b[K") } else { ("", "\n") };
        eprint!("{before}trapless-pagesim: {text}, {:.1} M/s{behind}", rate / 1e6);
        let _ = io::stderr().flush();
    }

    fn end(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}
