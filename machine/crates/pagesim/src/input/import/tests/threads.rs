// SPDX-License-Identifier: Apache-2.0
//! DynamoRIO's traces, of one thread and of several.

use proptest::prelude::*;

use super::write::{foot, head, record};
use super::*;

/// A record after the header, with the accesses that it should give.
#[derive(Clone, Debug)]
enum Op {
    Instruction(u64, u64),
    Data(Kind, u64, u64),
    Bundle(Vec<u8>),
    /// Records that are no accesses.
    Other(u16, u16),
    /// A system call begins or ends in the kernel.
    Kernel(bool),
}

/// What a thread does from a time on: thread, time, records.
type Segment = (usize, u64, Vec<Op>);

/// Types and sizes of records that are no accesses: prefetches, flushes, encodings, instructions that are not fetched, markers of
/// CPUs and functions.
const OTHERS: [(u16, u16); 11] =
    [(2, 8), (4, 8), (18, 0), (20, 64), (29, 2), (32, 8), (46, 8), (47, 5), (28, 3), (28, 6), (28, 21)];

fn op() -> impl Strategy<Value = Op> {
    let address = || prop_oneof![3 => 0x1000..0x1400u64, 1 => 0..1u64 << 47];
    prop_oneof![
        4 => (address(), 1..16u64).prop_map(|(at, size)| Op::Instruction(at, size)),
        4 => (any::<bool>(), address(), 0..100u64).prop_map(|(store, at, size)| {
            Op::Data(if store { Kind::Store } else { Kind::Load }, at, size)
        }),
        1 => prop::collection::vec(1..16u8, 1..=8).prop_map(Op::Bundle),
        2 => prop::sample::select(OTHERS.to_vec()).prop_map(|(kind, size)| Op::Other(kind, size)),
        1 => any::<bool>().prop_map(Op::Kernel),
    ]
}

fn bytes(ops: &[Op]) -> Vec<u8> {
    let one = |op: &Op| match op {
        // Each kind of instruction in turn.
        Op::Instruction(at, size) => {
            record([10, 11, 12, 13, 14, 15, 16, 31, 48, 49, 30][(at % 11) as usize], *size as u16, *at)
        }
        Op::Data(kind, at, size) => record(u16::from(*kind == Kind::Store), *size as u16, *at),
        Op::Bundle(lengths) => {
            let mut value = [0; 8];
            value[..lengths.len()].copy_from_slice(lengths);
            record(17, lengths.len() as u16, u64::from_le_bytes(value))
        }
        Op::Other(kind, size) => record(*kind, *size, 1 << 40),
        Op::Kernel(begins) => record(28, if *begins { 27 } else { 28 }, 5),
    };
    ops.iter().flat_map(one).collect()
}

/// State of a thread as the format's description defines it.
#[derive(Clone, Default)]
struct Thread {
    instructions: u64,
    kernel: bool,
    last: Option<(u64, u64)>,
}

impl Thread {
    fn accesses(&mut self, hart: u16, ops: &[Op]) -> Vec<Access> {
        let mut all = Vec::new();
        let mut add = |thread: &Thread, kind, at: u64, size: u64, before| {
            let blocks = at / 64..=(at + size.max(1) - 1) / 64;
            all.extend(blocks.map(|block| (hart, kind, thread.kernel, block, before)));
        };
        for op in ops {
            match op {
                Op::Instruction(at, size) => {
                    // An instruction of the type that may be fetched is not fetched if it equals the last one.
                    if !(at % 11 == 10 && self.last.is_some_and(|(last, _)| last == *at)) {
                        add(self, Kind::Fetch, *at, *size, self.instructions);
                        self.instructions += 1;
                        self.last = Some((*at, at + size));
                    }
                }
                Op::Data(kind, at, size) => add(self, *kind, *at, *size, self.instructions.saturating_sub(1)),
                Op::Bundle(lengths) => {
                    for length in lengths {
                        let at = self.last.unwrap().1;
                        add(self, Kind::Fetch, at, u64::from(*length), self.instructions);
                        self.instructions += 1;
                        self.last = Some((at, at + u64::from(*length)));
                    }
                }
                Op::Other(..) => {}
                Op::Kernel(begins) => self.kernel = *begins,
            }
        }
        all
    }
}

proptest! {
    #[test]
    fn threads_come_back_in_the_order_of_time(
        segments in prop::collection::vec((0..4usize, 0..3u64, prop::collection::vec(op(), 0..20)), 1..30),
        form in 0..6,
    ) {
        // Times rise. Segments with equal times belong to one thread.
        let (mut now, mut last) = (1000, usize::MAX);
        let segments: Vec<Segment> = segments
            .into_iter()
            .map(|(thread, gap, mut ops)| {
                now += if thread == last { gap } else { gap + 1 };
                last = thread;
                // Bundles need an instruction before them.
                ops.insert(0, Op::Instruction(0x1000, 4));
                (thread, now, ops)
            })
            .collect();
        let (mut harts, mut threads, mut expected) = (Vec::new(), vec![Thread::default(); 4], Vec::new());
        for (thread, _, ops) in &segments {
            if !harts.contains(thread) {
                harts.push(*thread);
            }
            let hart = harts.iter().position(|t| t == thread).unwrap();
            expected.extend(threads[*thread].accesses(hart as u16, ops));
        }
        let dir = tempfile::tempdir().unwrap();
        let from = if form == 0 {
            // One file with all threads, as in the oldest traces and in those that are ordered by core. There, the file has one
            // mode (kernel or user) for all threads.
            let mut all = head(90);
            for (thread, time, ops) in &segments {
                all.extend(record(22, 4, 90 + *thread as u64));
                all.extend(record(24, 4, 77));
                all.extend(record(28, 2, *time));
                let ops: Vec<Op> = ops.iter().filter(|op| !matches!(op, Op::Kernel(_))).cloned().collect();
                all.extend(bytes(&ops));
            }
            let (mut threads, mut without) = (vec![Thread::default(); 4], Vec::new());
            for (thread, _, ops) in &segments {
                let hart = harts.iter().position(|t| t == thread).unwrap();
                let ops: Vec<Op> = ops.iter().filter(|op| !matches!(op, Op::Kernel(_))).cloned().collect();
                // The same holds for the last instruction, which decides whether an instruction that may be fetched is fetched.
                let last = threads.iter().find_map(|t| t.last);
                threads.iter_mut().for_each(|t| t.last = last);
                without.extend(threads[*thread].accesses(hart as u16, &ops));
                let last = threads[*thread].last;
                threads.iter_mut().for_each(|t| t.last = last);
            }
            expected = without;
            all.extend(foot(90));
            let path = dir.path().join("all.trace");
            std::fs::write(&path, all).unwrap();
            path
        } else {
            let folder = dir.path().join("drmemtrace.x.1.2.dir");
            let inner = if form % 2 == 0 { folder.join("trace") } else { folder.clone() };
            std::fs::create_dir_all(&inner).unwrap();
            std::fs::write(inner.join("modules.log"), "not a trace").unwrap();
            std::fs::write(inner.join("cpu_schedule.bin.zip"), "not a trace").unwrap();
            for thread in 0..4 {
                let mut file = head(90 + thread as u64);
                for (_, time, ops) in segments.iter().filter(|(t, ..)| *t == thread) {
                    file.extend(record(28, 2, *time));
                    file.extend(record(28, 3, 1));
                    file.extend(bytes(ops));
                }
                file.extend(foot(90 + thread as u64));
                let (end, file) = match form {
                    1 => ("", file),
                    2 => (".gz", write::gzip(&file)),
                    3 => (".zst", zstd::encode_all(&file[..], 1).unwrap()),
                    _ => {
                        let (one, two) = file.split_at(file.len() / 2);
                        (".zip", write::zip(&[one, two, &[]], form == 4))
                    }
                };
                std::fs::write(inner.join(format!("drmemtrace.x.{thread}.7.trace{end}")), file).unwrap();
            }
            folder
        };
        match imported(&dir, &from, None, Part::ALL, Options::default()) {
            Ok(trace) => {
                let (found, header) = stored(&trace);
                prop_assert_eq!(found, runs(&expected));
                prop_assert_eq!((usize::from(header.harts), header.clock_hz), (harts.len(), 1_000_000));
                prop_assert_eq!(header.kernel, expected.iter().any(|access| access.2));
            }
            Err(error) => prop_assert!(expected.iter().all(|access| access.2), "{}", error),
        }
    }
}

/// The file of one thread with these records.
fn file(records: &[(u16, u16, u64)]) -> Vec<u8> {
    let records = records.iter().flat_map(|(kind, size, value)| record(*kind, *size, *value));
    [head(5), records.collect(), foot(5)].concat()
}

#[test]
fn what_is_not_understood_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let i = (10, 4, 0x1000);
    assert_eq!(simulated(&of(&dir, file(&[i]), None).unwrap()), 1);
    for (records, says) in [
        (&[i, (50, 0, 0)][..], "record 10 at byte 108: a record of type 50, which no version up to 7 has"),
        (&[i, (28, 12, 8)], "record 10 at byte 108: version 8 of DynamoRIO's traces; only versions 1 to 7"),
        (&[(28, 9, 0x40 | 0x80)], "this trace was filtered while it was recorded"),
        (&[(28, 9, 0x4)], "has only instructions"),
        (&[(28, 9, 0x20)], "is of a 32-bit x86 program"),
        (&[(28, 9, 0x4000)], "has samples of the kernel"),
        (&[(28, 9, 0x4_0000)], "is of a whole system"),
        (&[(28, 9, 0x8_0000)], "a file type that is not known: 0x80000"),
        (&[i, (24, 4, 78)], "accesses of two processes, 77 and 78"),
        (&[(17, 1, 5)], "a bundle before any instruction"),
        (&[i, (17, 9, 5)], "a bundle of 9 instructions; 8 is the most"),
        (&[], "has no memory access"),
        (&[(28, 27, 1), i], "all its accesses are the kernel's"),
    ] {
        let said = complaint(of(&dir, file(records), None));
        assert!(said.contains("source: ") && said.contains(says), "{said}");
    }
    let said = complaint(of(&dir, [record(25, 0, 9), file(&[i])].concat(), None));
    assert!(said.contains("record 1 at byte 0: version 9"), "{said}");
    let said = complaint(of(&dir, [record(25, 0, 7), record(10, 4, 0x1000)].concat(), None));
    assert!(said.contains("record 2 at byte 12: an access before the record that names its thread"), "{said}");
    let said = complaint(of(&dir, &file(&[i])[12..], Some("drmemtrace")));
    assert!(said.contains("record 1 at byte 0: no header of DynamoRIO's traces"), "{said}");
}

#[test]
fn folders() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a.dir");
    std::fs::create_dir(&folder).unwrap();
    let import = |format| imported(&dir, &folder, format, Part::ALL, Options::default());
    assert!(complaint(import(None)).contains("a.dir: has no *.trace"));
    std::fs::write(folder.join("a.memtrace.sz"), b"\xff\x06\0\0sNaPpY").unwrap();
    let said = complaint(import(None));
    assert!(said.contains("a.memtrace.sz: is compressed by snappy, which is not read; decompress it"), "{said}");
    std::fs::remove_file(folder.join("a.memtrace.sz")).unwrap();
    std::fs::write(folder.join("a.trace"), file(&[(10, 4, 0x1000)])).unwrap();
    assert_eq!(simulated(&import(None).unwrap()), 1);
    assert!(complaint(import(Some("csv"))).contains("a.dir: is a folder; traces of csv are files"));
    // The message names the file that is wrong.
    std::fs::write(folder.join("b.trace"), &file(&[(10, 4, 0x1000)])[..100]).unwrap();
    let said = complaint(import(None));
    assert!(said.contains("b.trace: record 9 at byte 96: cut short: 4 of a record's 12 bytes"), "{said}");
}

#[test]
fn more_threads_than_a_trace_has() {
    let dir = tempfile::tempdir().unwrap();
    let many = |n: u64| file(&(0..n).flat_map(|t| [(22, 4, 100 + t), (10, 4, t * 64)]).collect::<Vec<_>>());
    assert_eq!(stored(&of(&dir, many(1024), None).unwrap()).1.harts, 1024);
    assert!(complaint(of(&dir, many(1025), None)).contains("accesses of more than 1024 threads"));
}
