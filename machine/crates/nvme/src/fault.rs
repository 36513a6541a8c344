// SPDX-License-Identifier: Apache-2.0
//! Faults that a user adds to a controller (docs/reference/nvme.md). They depend only on the guest's commands and on simulated
//! time, so a repeated run meets the same faults.

use std::ops::RangeInclusive;
use std::str::FromStr;

use trapless_memory::{ClockHz, Cycle, Picos};

use crate::command::{ALL_NAMESPACES, Command, Status, nvm};
use crate::namespace::Namespace;

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The command fails with Write Fault if it is a write, otherwise with Unrecovered Read Error.
    MediaError,
    /// The command fails with Command Abort Requested, although software sent no Abort.
    Abort,
    /// The command is done as usual, but later.
    Late,
    /// The command never completes. Only a reset or the deletion of its queue ends it.
    Hang,
    /// The controller sets Controller Fatal Status.
    Fatal,
    /// The device is taken out of its slot.
    Remove,
}

/// The name of each kind, as users write it.
const KINDS: [(&str, Kind); 6] = [
    ("media-error", Kind::MediaError),
    ("abort", Kind::Abort),
    ("late", Kind::Late),
    ("hang", Kind::Hang),
    ("fatal", Kind::Fatal),
    ("remove", Kind::Remove),
];

/// A fault: `KIND[,KEY=VALUE...]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    text: String,
    kind: Kind,
    /// Number of the disk, counted from 1.
    disk: usize,
    lbas: Option<RangeInclusive<u64>>,
    queue: Option<u16>,
    opcode: Option<u8>,
    nsid: Option<u32>,
    /// Number of matching commands before the first command that fails.
    skip: u64,
    /// After the skipped commands, the first of every `every` matching commands fails.
    every: u64,
    /// Number of commands that fail.
    count: u64,
    /// Simulated time before which no command fails.
    after: Picos,
    /// Delay of a late command.
    by: Picos,
}

/// Reason why a fault is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FaultError(String);

impl Fault {
    /// Returns the number of the fault's disk, counted from 1.
    pub fn disk(&self) -> usize {
        self.disk
    }

    fn matches(&self, sqid: u16, command: &Command) -> bool {
        let has_blocks = matches!(command.opcode, nvm::READ | nvm::WRITE | nvm::WRITE_ZEROES);
        let touches = |range: &RangeInclusive<u64>| {
            let last = command.slba().saturating_add(u64::from(command.blocks()) - 1);
            has_blocks && command.slba() <= *range.end() && last >= *range.start()
        };
        self.queue.is_none_or(|queue| queue == sqid)
            && self.nsid.is_none_or(|nsid| nsid == command.nsid || command.nsid == ALL_NAMESPACES)
            && self.opcode.is_none_or(|opcode| opcode == command.opcode)
            && self.lbas.as_ref().is_none_or(touches)
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn seconds(key: &str, value: &str) -> Result<Picos, FaultError> {
    let seconds: f64 = number(key, value)?;
    // A million seconds (12 days) is far more than a run simulates, and far less than `Picos` can hold.
    if !(0.0..=1e6).contains(&seconds) {
        return Err(FaultError(format!("{key}={value} is not a time from 0 to 1000000 seconds")));
    }
    Ok(Picos::from_micros(seconds * 1e6))
}

fn number<T: FromStr>(key: &str, value: &str) -> Result<T, FaultError> {
    value.parse().map_err(|_| FaultError(format!("{key}={value} is not a number in range")))
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Fault, FaultError> {
        let wrong = |what: String| Err(FaultError(what));
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default();
        let Some(&(_, kind)) = KINDS.iter().find(|(n, _)| *n == name) else {
            let names = KINDS.map(|(n, _)| n).join(", ");
            return wrong(format!("'{name}' is not a kind of fault: use one of {names}"));
        };
        let (mut disk, mut lbas, mut queue, mut opcode, mut count, mut every) = (None, None, None, None, None, None);
        let mut fault = Fault {
            text: text.to_owned(),
            kind,
            disk: 0,
            lbas: None,
            queue: None,
            opcode: None,
            nsid: None,
            skip: 0,
            every: 1,
            count: 1,
            after: Picos(0),
            by: Picos(0),
        };
        for part in parts {
            let Some((key, value)) = part.split_once('=') else {
                return wrong(format!("'{part}' is not KEY=VALUE"));
            };
            match key {
                "disk" => disk = Some(number::<usize>(key, value)?),
                "lba" => {
                    let (first, last) = value.split_once('-').unwrap_or((value, value));
                    let (first, last) = (number::<u64>(key, first)?, number::<u64>(key, last)?);
                    if first > last {
                        return wrong(format!("lba={value}: the last block comes before the first"));
                    }
                    lbas = Some(first..=last);
                }
                "queue" => queue = Some(number::<u16>(key, value)?),
                "op" => {
                    opcode = Some(match value {
                        "read" => nvm::READ,
                        "write" => nvm::WRITE,
                        "flush" => nvm::FLUSH,
                        _ => return wrong(format!("op={value} is not read, write or flush")),
                    });
                }
                "skip" => fault.skip = number(key, value)?,
                "every" => every = Some(number(key, value)?),
                "count" => count = Some(number(key, value)?),
                "after" => fault.after = seconds(key, value)?,
                "by" => fault.by = seconds(key, value)?,
                "namespace" => fault.nsid = Some(number(key, value)?),
                _ => {
                    let keys = "disk, namespace, lba, queue, op, skip, every, count, after, by";
                    return wrong(format!("'{key}' is not a key of a fault: use one of {keys}"));
                }
            }
        }
        match disk {
            None => return wrong("disk=N is missing: it names the disk, counted from 1".to_owned()),
            Some(0) => return wrong("disk=0: disks are counted from 1".to_owned()),
            Some(disk) => fault.disk = disk,
        }
        if queue == Some(0) {
            return wrong("queue=0 is the admin queue: give an I/O queue, 1 or more".to_owned());
        }
        // Bad blocks and repeated faults last for the whole run unless `count` limits them. Other faults strike once.
        let lasting = kind == Kind::MediaError || every.is_some() && kind != Kind::Remove;
        fault.every = every.unwrap_or(1);
        fault.count = count.unwrap_or(if lasting { u64::MAX } else { 1 });
        if fault.every == 0 {
            return wrong("every=0: the fault would never happen; give 1 or more".to_owned());
        }
        if (kind == Kind::Late) != (fault.by > Picos(0)) {
            return wrong("by=SECONDS must be given for the kind late, and for no other kind".to_owned());
        }
        if fault.count == 0 {
            return wrong("count=0: the fault would never happen; give 1 or more".to_owned());
        }
        if opcode == Some(nvm::FLUSH) && lbas.is_some() {
            return wrong("op=flush has no lba: give one of the two keys".to_owned());
        }
        if kind == Kind::Remove && fault.count != 1 {
            return wrong(format!("count={}: a device can be removed only once; leave count out", fault.count));
        }
        Ok(Fault { lbas, queue, opcode, ..fault })
    }
}

/// Effect of a fault on the command that it strikes.
pub(crate) enum Strike {
    /// The command takes its usual time, then fails.
    Fail(Status),
    /// Like `Fail`, and counted as an error of the medium.
    Media(Status),
    /// The command completes this much later.
    Late(Cycle),
    /// The command never completes.
    Hang,
    /// The controller sets Controller Fatal Status.
    Fatal,
    /// The device is taken out of its slot.
    Remove,
}

/// A fault of a controller, with its times in cycles and its counters.
#[derive(Clone, Debug)]
struct Armed {
    fault: Fault,
    from: Cycle,
    by: Cycle,
    passed: u64,
    struck: u64,
}

/// The faults of one controller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Vec<Armed>);

impl Faults {
    /// Adds a fault; `clock` converts its times to cycles. Refuses a fault that these namespaces and queues can never meet.
    pub fn add(
        &mut self,
        fault: Fault,
        clock: ClockHz,
        namespaces: &[Namespace],
        max_io_queues: u32,
    ) -> Result<(), FaultError> {
        let last = namespaces.len();
        let blocks = match fault.nsid {
            None => namespaces.iter().map(Namespace::blocks).max().unwrap_or(0),
            Some(nsid) => match Namespace::find(namespaces, nsid) {
                Some(ns) => ns.blocks(),
                None => return Err(FaultError(format!("namespace={nsid}: the disk's namespaces are 1 to {last}"))),
            },
        };
        if let Some(range) = fault.lbas.as_ref().filter(|range| *range.end() >= blocks) {
            return Err(FaultError(format!("lba: no block {}: the namespace has {blocks} blocks", range.end())));
        }
        if let Some(queue) = fault.queue.filter(|&queue| u32::from(queue) > max_io_queues) {
            return Err(FaultError(format!("queue={queue}: the disk's I/O queues are 1 to {max_io_queues}")));
        }
        let (from, by) = (clock.cycles(fault.after), clock.cycles(fault.by));
        self.0.push(Armed { fault, from, by, passed: 0, struck: 0 });
        Ok(())
    }

    /// Returns the text of each fault, and the number of commands that it has struck.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|armed| (armed.fault.text.as_str(), armed.struck))
    }

    /// Returns the effect of the first fault that strikes an I/O command fetched at `now`.
    pub fn strike(&mut self, sqid: u16, command: &Command, now: Cycle) -> Option<Strike> {
        let armed = self.0.iter_mut().find_map(|armed| {
            if now < armed.from || armed.struck == armed.fault.count || !armed.fault.matches(sqid, command) {
                return None;
            }
            let passed = armed.passed;
            armed.passed += 1;
            let due = passed.checked_sub(armed.fault.skip).is_some_and(|n| n % armed.fault.every == 0);
            due.then_some(armed)
        })?;
        armed.struck += 1;
        Some(match armed.fault.kind {
            Kind::MediaError => Strike::Media(if command.opcode == nvm::READ {
                Status::UNRECOVERED_READ_ERROR
            } else {
                Status::WRITE_FAULT
            }),
            Kind::Abort => Strike::Fail(Status::ABORT_REQUESTED),
            Kind::Late => Strike::Late(armed.by),
            Kind::Hang => Strike::Hang,
            Kind::Fatal => Strike::Fatal,
            Kind::Remove => Strike::Remove,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        text.parse::<Fault>().unwrap_err().to_string()
    }

    #[test]
    fn a_fault_says_what_where_and_when() {
        let f: Fault = "abort,disk=3,lba=8-15,queue=5,op=read,skip=2,count=4,after=1.5".parse().unwrap();
        assert_eq!((f.kind, f.disk(), f.lbas.clone(), f.queue), (Kind::Abort, 3, Some(8..=15), Some(5)));
        assert_eq!((f.opcode, f.skip, f.count, f.after), (Some(nvm::READ), 2, 4, Picos::from_micros(1.5e6)));
        let f: Fault = "media-error,disk=1,lba=7".parse().unwrap();
        assert_eq!((f.lbas, f.count), (Some(7..=7), u64::MAX));
        let f: Fault = "late,disk=1,namespace=2,every=100,by=0.002".parse().unwrap();
        assert_eq!((f.nsid, f.every, f.count, f.by), (Some(2), 100, u64::MAX, Picos::from_micros(2e3)));
    }

    #[test]
    fn a_mistake_is_named() {
        assert!(why("").contains("'' is not a kind of fault"));
        assert!(why("melt,disk=1").contains("melt"));
        assert!(why("hang").contains("disk=N is missing"));
        assert!(why("hang,disk=0").contains("disk=0"));
        assert!(why("hang,disk=x").contains("disk=x"));
        assert!(why("hang,disk=1,lba=9-8").contains("lba=9-8"));
        assert!(why("hang,disk=1,lba=-").contains("lba="));
        assert!(why("hang,disk=1,queue=0").contains("queue=0"));
        assert!(why("hang,disk=1,queue=70000").contains("queue=70000"));
        assert!(why("hang,disk=1,op=erase").contains("op=erase"));
        assert!(why("hang,disk=1,count=0").contains("count=0"));
        assert!(why("remove,disk=1,count=2").contains("count=2"));
        assert!(why("hang,disk=1,after=-1").contains("after=-1"));
        assert!(why("hang,disk=1,after=nan").contains("after=nan"));
        assert!(why("hang,disk=1,soon").contains("soon"));
        assert!(why("late,disk=1").contains("by=SECONDS"));
        assert!(why("hang,disk=1,by=1").contains("by=SECONDS"));
        assert!(why("hang,disk=1,every=0").contains("every=0"));
        let f: Fault = "late,disk=1,every=1,by=0.001".parse().unwrap();
        assert_eq!((f.every, f.count), (1, u64::MAX));
        assert!("remove,disk=1,every=5".parse::<Fault>().is_ok_and(|f| f.count == 1));
        assert!(why("media-error,disk=1,op=flush,lba=0").contains("no lba"));
        assert!(why("hang,disk=1,namespace=x").contains("namespace=x"));
        assert!(why("hang,disk=1,colour=red").contains("colour"));
    }
}
