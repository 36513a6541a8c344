// SPDX-License-Identifier: Apache-2.0
//! The timeline in a format that ui.perfetto.dev and chrome://tracing open: Trace Event Format, JSON object form.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use trapless_memory::Cycle;

use crate::Attribution;
use crate::faults::SPANS;
use crate::log::MISS_SPANS;

/// Groups of tracks ("processes" of the format), in the order in which they are shown.
const GROUPS: [&str; 6] =
    ["regions", "harts", "page faults, by task", "misses in hardware (PMSHR)", "drives", "frames"];
const REGIONS: usize = 1;
const HARTS: usize = 2;
const FAULTS: usize = 3;
const MISSES: usize = 4;
const DRIVES: usize = 5;
const FRAMES: usize = 6;

/// Assigns overlapping things to separate tracks: each gets the lowest free one.
#[derive(Default)]
struct Lanes(Vec<u64>);

impl Lanes {
    fn take(&mut self, from: u64, to: u64) -> usize {
        let lane = self.0.iter().position(|end| *end <= from).unwrap_or(self.0.len());
        self.0.resize(self.0.len().max(lane + 1), 0);
        self.0[lane] = to;
        lane
    }
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    /// The core clock, which turns cycles into nanoseconds.
    clock: trapless_memory::ClockHz,
    first: bool,
}

impl Writer<'_> {
    /// Number of a track. It must be unique over all groups, because viewers take tracks for threads of one system.
    fn tid((group, track): (usize, usize)) -> usize {
        group * 100_000 + track
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        write!(self.out, "{event}")
    }

    /// Rounds to whole nanoseconds, so that nested slices are still nested in the viewer, which shows microseconds.
    fn nanos(&self, at: u64) -> u64 {
        (self.clock.micros(Cycle(at)) * 1000.0).round() as u64
    }

    fn slice(&mut self, track: (usize, usize), name: &str, from: u64, to: u64, args: Value) -> io::Result<()> {
        let (from, to) = (self.nanos(from), self.nanos(to));
        let us = |ns: u64| ns as f64 / 1000.0;
        let (pid, tid) = (track.0, Writer::tid(track));
        let mut event = json!({"ph": "X", "pid": pid, "tid": tid, "ts": us(from), "dur": us(to - from), "name": name, "cat": GROUPS[pid - 1]});
        if !args.is_null() {
            event["args"] = args;
        }
        self.event(&event)
    }

    /// Writes a point of a curve.
    fn count(&mut self, pid: usize, name: &str, at: u64, count: u64) -> io::Result<()> {
        let ts = self.nanos(at) as f64 / 1000.0;
        self.event(&json!({"ph": "C", "pid": pid, "name": name, "ts": ts, "args": {"frames": count}}))
    }

    fn track(&mut self, track: (usize, usize), name: &str) -> io::Result<()> {
        let (pid, tid) = (track.0, Writer::tid(track));
        self.event(&json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}))?;
        self.event(
            &json!({"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}}),
        )
    }

    /// Writes a slice and its steps inside it.
    fn steps(&mut self, at: (usize, usize), name: &str, spans: &[&str], bounds: &[u64], args: Value) -> io::Result<()> {
        self.slice(at, name, bounds[0], bounds[bounds.len() - 1], args)?;
        for (span, pair) in spans.iter().zip(bounds.windows(2)) {
            if pair[1] > pair[0] {
                self.slice(at, span, pair[0], pair[1], Value::Null)?;
            }
        }
        Ok(())
    }
}

impl Attribution {
    /// Writes the timeline.
    ///
    /// # Errors
    /// The writer failed.
    pub fn write_trace(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"{\"displayTimeUnit\": \"ns\", \"traceEvents\": [")?;
        let mut w = Writer { out, clock: self.clock, first: true };
        for (n, name) in GROUPS.iter().enumerate() {
            w.event(&json!({"ph": "M", "pid": n + 1, "tid": 0, "name": "process_name", "args": {"name": name}}))?;
            w.event(
                &json!({"ph": "M", "pid": n + 1, "tid": 0, "name": "process_sort_index", "args": {"sort_index": n}}),
            )?;
        }
        self.write_regions(&mut w)?;
        self.write_harts(&mut w)?;
        self.write_os_faults(&mut w)?;
        self.write_hardware(&mut w)?;
        self.write_frame_counts(&mut w)?;
        let log = &self.log;
        let cut = json!({"slices": log.slices.cut, "faults": log.faults.cut, "misses": log.misses.cut,
                         "commands": log.commands.cut});
        writeln!(w.out, "\n], \"otherData\": {{\"clock_hz\": {}, \"cut\": {cut}}}}}", self.clock.0)
    }

    fn write_regions(&self, w: &mut Writer<'_>) -> io::Result<()> {
        w.track((REGIONS, 1), "regions")?;
        for window in &self.windows {
            let name = window.region.map_or("window".to_owned(), |n| format!("region {n}"));
            w.slice((REGIONS, 1), &name, window.from, window.to, Value::Null)?;
        }
        Ok(())
    }

    /// Writes the tasks of each hart and, below them, the categories of work.
    fn write_harts(&self, w: &mut Writer<'_>) -> io::Result<()> {
        for hart in 0..self.harts.len() {
            let (tasks, work) = ((HARTS, 2 * hart + 1), (HARTS, 2 * hart + 2));
            w.track(tasks, &format!("hart {hart}: task"))?;
            w.track(work, &format!("hart {hart}: work"))?;
            let mut task: Option<(u32, u64, u64)> = None;
            for slice in self.log.slices.records.iter().filter(|s| s.hart as usize == hart) {
                match &mut task {
                    Some((context, _, to)) if *context == slice.context => *to = slice.to,
                    _ => {
                        if let Some((context, from, to)) = task {
                            w.slice(tasks, &self.task_name(context as usize), from, to, Value::Null)?;
                        }
                        task = Some((slice.context, slice.from, slice.to));
                    }
                }
                let name = &self.categories.names()[usize::from(slice.category)];
                w.slice(work, name, slice.from, slice.to, Value::Null)?;
            }
            if let Some((context, from, to)) = task {
                w.slice(tasks, &self.task_name(context as usize), from, to, Value::Null)?;
            }
        }
        Ok(())
    }

    fn write_os_faults(&self, w: &mut Writer<'_>) -> io::Result<()> {
        let mut by_task: BTreeMap<usize, Vec<&crate::Fault>> = BTreeMap::new();
        for fault in &self.log.faults.records {
            by_task.entry(fault.context).or_default().push(fault);
        }
        for (task, faults) in by_task {
            let at = (FAULTS, task + 1);
            w.track(at, &self.task_name(task))?;
            for fault in faults {
                let name = if fault.read() { "page fault" } else { "minor fault" };
                let args = json!({"va": format!("{:#x}", fault.va), "hart": fault.hart, "lba": fault.lba,
                                  "instructions": fault.cost.instructions});
                w.steps(at, name, &SPANS, &fault.bounds(), args)?;
            }
        }
        Ok(())
    }

    /// Writes what the SMU and the drives do.
    fn write_hardware(&self, w: &mut Writer<'_>) -> io::Result<()> {
        let mut misses: Vec<_> = self.log.misses.records.iter().map(|(miss, _)| miss).collect();
        misses.sort_by_key(|miss| miss.at);
        let mut lanes = Lanes::default();
        for miss in misses {
            let last = miss.at[miss.at.len() - 1];
            let before = lanes.0.len();
            let lane = lanes.take(miss.at[0], last);
            if lane == before {
                w.track((MISSES, lane + 1), &format!("miss {lane}"))?;
            }
            let args = json!({"va": format!("{:#x}", miss.va), "hart": miss.hart});
            w.steps((MISSES, lane + 1), "miss", &MISS_SPANS, &miss.at, args)?;
        }
        let mut commands: Vec<_> = self.log.commands.records.iter().collect();
        commands.sort_by_key(|c| (c.doorbell, c.completed, c.drive, c.queue));
        let mut queues: BTreeMap<(usize, u16), Lanes> = BTreeMap::new();
        let lane = |c: &crate::Command| queues.entry((c.drive, c.queue)).or_default().take(c.doorbell, c.completed);
        let lanes: Vec<usize> = commands.iter().copied().map(lane).collect();
        // Keep the tracks of one queue together.
        let tracks =
            queues.iter().flat_map(|(&(drive, queue), lanes)| (0..lanes.0.len()).map(move |n| (drive, queue, n)));
        let tracks: BTreeMap<(usize, u16, usize), usize> = tracks.zip(1..).collect();
        for ((drive, queue, lane), n) in &tracks {
            w.track((DRIVES, *n), &format!("drive {} queue {queue} ({lane})", drive + 1))?;
        }
        for (c, lane) in commands.into_iter().zip(lanes) {
            let at = (DRIVES, tracks[&(c.drive, c.queue, lane)]);
            let name = match c.opcode {
                0 => "flush",
                1 => "write",
                2 => "read",
                _ => "command",
            };
            let args = json!({"opcode": c.opcode, "lba": c.lba, "blocks": c.blocks});
            w.slice(at, name, c.doorbell, c.completed, args)?;
        }
        Ok(())
    }

    /// Writes the curves that show where the frames are.
    fn write_frame_counts(&self, w: &mut Writer<'_>) -> io::Result<()> {
        let samples = if self.frames.any() { self.frames.kept() } else { &[] };
        for s in samples {
            let counts = [("in the ring", s.ring), ("unsynced", Some(s.unsynced)), ("adopted", Some(s.adopted))];
            for (name, count) in counts {
                w.count(FRAMES, name, s.cycle, count.unwrap_or(0))?;
            }
        }
        Ok(())
    }
}
