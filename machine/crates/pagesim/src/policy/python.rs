// SPDX-License-Identifier: Apache-2.0
//! A policy in Python. It runs in a child process, which answers questions over a socket. python/trapless/pagesim/policy.py is
//! the other side and describes each message.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Policy, Wait};
use crate::Error;
use crate::core::{Core, Evicted};
use crate::pages::{Origin, PageId, Pid, Place};
use crate::replacement;
use crate::settings::{Settings, Time};

/// Prefix of a configuration's `policy` that names a Python file.
pub const PREFIX: &str = "python:";
/// The program that the child runs.
const HOST: &str = include_str!("../../../../../python/trapless/pagesim/policy.py");
/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time for the child to end when there are no more questions.
const FAREWELL: Duration = Duration::from_secs(5);
/// Largest number of orders in one answer.
const MOST_ORDERS: usize = 1 << 20;
/// Largest number of bytes in the text of an error.
const MOST_TEXT: usize = 2000;
const SENSELESS: &str = "its answer makes no sense";
/// Sizes of the messages in bytes.
const QUESTION: usize = 32;
const ANSWER: usize = 16;
const ORDER: usize = 16;
/// Longest slice in ps.
const LONGEST: i64 = 1_000_000_000_000_000;

/// The questions for the child: one for each method of a policy, and three others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Op {
    Fault,
    Wait,
    Used,
    Evicted,
    Enter,
    Slice,
    GoesOn,
    Leave,
    Call,
    Settings = 100,
    Areas,
    Reply,
}

/// An order from the child, or a question that it asks back.
mod order {
    pub const PREFETCH: u8 = 0;
    pub const DEMOTE: u8 = 1;
    pub const KEEP: u8 = 2;
    pub const CALL_AT: u8 = 3;
    pub const PAGE: u8 = 4;
    pub const READY: u8 = 5;
}

/// Kinds of answers.
mod kind {
    pub const DONE: u32 = 0;
    pub const ASK: u32 = 1;
    pub const FAILED: u32 = 2;
    pub const BEGUN: u32 = 3;
}

/// A policy in Python.
pub struct Python {
    file: PathBuf,
    child: Child,
    socket: UnixStream,
    patience: Duration,
    /// The bytes of an answer that have arrived.
    text: Vec<u8>,
    /// One bit for each method that the policy has.
    methods: u64,
    replacement: Option<&'static str>,
    /// Whether the child knows which ranges are mapped.
    introduced: bool,
    /// Whether it has failed. A failed policy is not asked again.
    failed: bool,
}

impl Python {
    /// Starts the policy in a file.
    ///
    /// # Errors
    /// There is no Python, or the file does not define a policy.
    pub fn start(file: &Path, settings: &Settings) -> Result<Python, Error> {
        if let Err(error) = std::fs::File::open(file) {
            return Err(Error::Io { path: file.to_owned(), error });
        }
        let wrong = |what: &dyn Display| wrong(file, what);
        let (socket, theirs) = UnixStream::pair().map_err(|e| wrong(&e))?;
        socket.set_write_timeout(Some(PATIENCE)).map_err(|e| wrong(&e))?;
        let child = Command::new("python3")
            .args(["-B", "-c", HOST])
            .arg(file)
            // Gives sets of strings the same order in each run.
            .env("PYTHONHASHSEED", "0")
            .stdin(OwnedFd::from(theirs))
            // Standard output is for the result of the simulation.
            .stdout(Stdio::from(io::stderr()))
            .spawn()
            .map_err(|e| match e.kind() {
                ErrorKind::NotFound => wrong(&"python3 is not installed (Debian package python3)"),
                _ => wrong(&format!("cannot run python3: {e}")),
            })?;
        let mut python = Python {
            file: file.to_owned(),
            child,
            socket,
            patience: PATIENCE,
            text: Vec::new(),
            methods: 0,
            replacement: None,
            introduced: false,
            failed: false,
        };
        let begun = python.wait_for(PATIENCE).and_then(|()| python.begin(settings));
        python.failed = begun.is_err();
        begun.map(|()| python)
    }

    /// Sets the time that later answers may take.
    fn wait_for(&mut self, patience: Duration) -> Result<(), Error> {
        self.patience = patience;
        self.socket.set_read_timeout(Some(patience)).map_err(|e| self.wrong(&e))
    }

    /// Sends the settings. Learns which methods the policy has, and its order of replacement.
    fn begin(&mut self, settings: &Settings) -> Result<(), Error> {
        let text = toml::to_string(settings).map_err(|e| self.wrong(&e))?;
        self.ask(Op::Settings, 0, text.len() as u64, 0, 0, text.as_bytes())?;
        let (kind::BEGUN, methods) = self.answer("its start")? else {
            return Err(self.wrong(&SENSELESS));
        };
        self.methods = methods as u64;
        if !self.text.is_empty() {
            let order = replacement::find(&String::from_utf8_lossy(&self.text)).map_err(|e| self.wrong(&e))?;
            self.replacement = Some(order.name);
        }
        Ok(())
    }

    fn has(&self, op: Op) -> bool {
        !self.failed && self.methods >> op as u8 & 1 == 1
    }

    /// Calls one of the policy's methods and returns the answer, or `usual` if the policy lacks the method or has failed.
    fn hook(&mut self, core: &mut Core, op: Op, pid: Pid, page: u64, extra: i64, usual: i64) -> i64 {
        if !self.has(op) {
            return usual;
        }
        match self.try_hook(core, op, pid, page, extra) {
            Ok(value) => value,
            Err(error) => {
                self.failed = true;
                core.fail(error);
                usual
            }
        }
    }

    fn try_hook(&mut self, core: &mut Core, op: Op, pid: Pid, page: u64, extra: i64) -> Result<i64, Error> {
        if !self.introduced {
            self.introduced = true;
            for pid in 0..core.settings.processes.len() {
                let areas = core.pages.areas(pid);
                let text: Vec<u8> = areas.iter().flat_map(|area| [area.0, area.1]).flat_map(u64::to_le_bytes).collect();
                self.ask(Op::Areas, pid, areas.len() as u64, 0, 0, &text)?;
            }
        }
        self.ask(op, pid, page, core.now(), extra, &[])?;
        loop {
            let (kind, value) = self.answer("a question")?;
            let mut orders = std::mem::take(&mut self.text);
            let asked = obey(&self.file, core, &orders);
            orders.clear();
            self.text = orders;
            match (kind, asked?) {
                (kind::DONE, None) => return Ok(value),
                (kind::ASK, Some([one, two, three])) => {
                    self.ask(Op::Reply, one as usize, two, core.now(), three as i64, &[])?
                }
                _ => return Err(self.wrong(&SENSELESS)),
            }
        }
    }

    fn ask(&mut self, op: Op, pid: Pid, page: u64, now: Time, extra: i64, more: &[u8]) -> Result<(), Error> {
        let mut text = [0; QUESTION];
        text[0] = op as u8;
        text[4..8].copy_from_slice(&(pid as u32).to_le_bytes());
        text[8..16].copy_from_slice(&page.to_le_bytes());
        text[16..24].copy_from_slice(&now.to_le_bytes());
        text[24..32].copy_from_slice(&extra.to_le_bytes());
        self.socket.write_all(&text).and_then(|()| self.socket.write_all(more)).map_err(|_| self.lost("a question"))
    }

    /// Receives an answer and returns its kind and value. The orders are in `text`.
    fn answer(&mut self, to: &str) -> Result<(u32, i64), Error> {
        self.text.clear();
        self.receive(ANSWER, to)?;
        let (kind, count) = (u32::from_le_bytes(four(&self.text, 0)), u32::from_le_bytes(four(&self.text, 4)) as usize);
        let value = i64::from_le_bytes(eight(&self.text, 8));
        let (size, most) = if kind >= kind::FAILED { (1, MOST_TEXT) } else { (ORDER, MOST_ORDERS) };
        if kind > kind::BEGUN || count > most {
            return Err(self.wrong(&SENSELESS));
        }
        self.receive(ANSWER + count * size, to)?;
        if self.text.len() > ANSWER + count * size {
            return Err(self.wrong(&SENSELESS));
        }
        self.text.drain(..ANSWER);
        if kind == kind::FAILED {
            // The text begins with the file and the line.
            return Err(Error::Policy(String::from_utf8_lossy(&self.text).into_owned()));
        }
        Ok((kind, value))
    }

    /// Waits until this many bytes of the answer have arrived.
    fn receive(&mut self, size: usize, to: &str) -> Result<(), Error> {
        let mut part = [0; 4096];
        while self.text.len() < size {
            match self.socket.read(&mut part) {
                Ok(0) => return Err(self.lost(to)),
                Ok(n) => self.text.extend(&part[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(self.lost(to)),
            }
        }
        Ok(())
    }

    /// Makes the error for an answer that did not come.
    fn lost(&mut self, to: &str) -> Error {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(200) {
            if let Ok(Some(status)) = self.child.try_wait() {
                return self.wrong(&format!("python3 ended with {status} and did not answer {to}"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.wrong(&format!("no answer to {to} within {} s", self.patience.as_secs_f32()))
    }

    fn wrong(&self, what: &dyn Display) -> Error {
        wrong(&self.file, what)
    }
}

fn wrong(file: &Path, what: &dyn Display) -> Error {
    Error::Policy(format!("{}: {what}", file.display()))
}

/// Carries out the orders of an answer. If the last one is a question, returns the answer to it.
fn obey(file: &Path, core: &mut Core, orders: &[u8]) -> Result<Option<[u64; 3]>, Error> {
    let mut asked = None;
    for one in orders.chunks_exact(ORDER) {
        let (op, origin) = (one[0], usize::from(one[1]));
        let (pid, number) = (u32::from_le_bytes(four(one, 4)) as usize, u64::from_le_bytes(eight(one, 8)));
        if asked.is_some() {
            return Err(wrong(file, &SENSELESS));
        }
        if pid >= core.settings.processes.len() {
            return Err(wrong(file, &format!("there is no process {pid}")));
        }
        match op {
            order::CALL_AT if number > core.now() => core.call_at(number),
            order::READY => {
                let next = core.sched.next().map_or(0, |pid| pid as u64 + 1);
                asked = Some([core.asleep as u64, next, 0]);
            }
            order::PREFETCH | order::DEMOTE | order::KEEP | order::PAGE => {
                let page = core.pages.mapped(pid, number);
                match (op, page, Origin::ALL.get(origin)) {
                    (order::PAGE, page, _) => asked = Some(page.map_or([0, 0, 0], |page| state(core, page))),
                    (_, None, _) => {}
                    (order::PREFETCH, Some(page), Some(origin)) => {
                        core.prefetch(page, *origin);
                    }
                    (order::DEMOTE, Some(page), _) => core.demote(page),
                    (order::KEEP, Some(page), _) => core.keep(page),
                    _ => return Err(wrong(file, &SENSELESS)),
                }
            }
            _ => return Err(wrong(file, &SENSELESS)),
        }
    }
    Ok(asked)
}

/// The state of a page for the child: place, flags and time of arrival.
fn state(core: &mut Core, page: PageId) -> [u64; 3] {
    let (place, arrives) = match core.place(page) {
        Place::Device => (0, 0),
        Place::Reading(at) => (1, at),
        Place::Resident => (2, 0),
        Place::Writing => (3, 0),
    };
    let page = &core.pages[page];
    let origin = Origin::ALL.iter().position(|origin| *origin == page.origin).unwrap_or(0) as u64;
    [place, u64::from(page.accessed) | u64::from(page.dirty) << 1 | origin << 2, arrives]
}

fn four(text: &[u8], at: usize) -> [u8; 4] {
    std::array::from_fn(|n| text[at + n])
}

fn eight(text: &[u8], at: usize) -> [u8; 8] {
    std::array::from_fn(|n| text[at + n])
}

impl Policy for Python {
    fn fault(&mut self, core: &mut Core, pid: Pid, page: PageId) {
        let vpn = core.pages[page].vpn;
        self.hook(core, Op::Fault, pid, vpn, 0, 0);
    }

    fn wait(&mut self, core: &mut Core, page: PageId, until: Time) -> Wait {
        let (pid, vpn) = (core.pages[page].owner, core.pages[page].vpn);
        if self.hook(core, Op::Wait, pid, vpn, until as i64, 0) == 1 { Wait::Switch } else { Wait::Spin }
    }

    fn used(&mut self, core: &mut Core, page: PageId) {
        let (pid, vpn) = (core.pages[page].owner, core.pages[page].vpn);
        self.hook(core, Op::Used, pid, vpn, 0, 0);
    }

    fn evicted(&mut self, core: &mut Core, evicted: Evicted) {
        let (pid, vpn) = (core.pages[evicted.page].owner, core.pages[evicted.page].vpn);
        self.hook(core, Op::Evicted, pid, vpn, evicted.written.into(), 0);
    }

    fn enter(&mut self, core: &mut Core, pid: Pid) {
        self.hook(core, Op::Enter, pid, 0, 0, 0);
    }

    fn slice(&mut self, core: &mut Core, pid: Pid) -> Time {
        let usual = core.sched.slice(pid) as i64;
        self.hook(core, Op::Slice, pid, 0, usual, usual).clamp(1, LONGEST.max(usual)) as Time
    }

    fn goes_on(&mut self, core: &mut Core, pid: Pid) -> bool {
        let usual = i64::from(core.sched.goes_on(pid));
        self.hook(core, Op::GoesOn, pid, 0, usual, usual) != 0
    }

    fn leave(&mut self, core: &mut Core, pid: Pid) {
        self.hook(core, Op::Leave, pid, 0, 0, 0);
    }

    fn call(&mut self, core: &mut Core) {
        self.hook(core, Op::Call, 0, 0, 0, 0);
    }

    fn replacement(&self) -> &'static str {
        self.replacement.unwrap_or("lru")
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // The child may finish its output. Then it must end.
        let _ = self.socket.shutdown(Shutdown::Both);
        let begin = Instant::now();
        while !self.failed && begin.elapsed() < FAREWELL {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests;
