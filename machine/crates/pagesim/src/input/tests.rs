// SPDX-License-Identifier: Apache-2.0
//! Converts lackey's text to stored traces, and stored traces to steps.

use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use trapless_trace::{Grain, Header, Moment, Place, Writer};

use super::import::{Options, Part, Target, import, lackey};
use super::*;

/// Imports a text. Returns the path of the trace.
fn stored(dir: &TempDir, text: impl AsRef<[u8]>, part: Part) -> Result<PathBuf, Error> {
    let (from, to) = (dir.path().join("text"), dir.path().join("a.trace"));
    std::fs::write(&from, text).unwrap();
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&to).unwrap();
    let target = Target { from, to: to.clone(), file, part, options: Options::default() };
    import(target, Some("lackey")).map(|_| to)
}

fn read(file: &Path, which: Which) -> Result<(Vec<Step>, Tail), Error> {
    let mut source = Recorded::open(file, which)?;
    let mut steps = Vec::new();
    while let Some(step) = source.next()? {
        steps.push(step);
    }
    assert_eq!(source.next().unwrap(), None);
    Ok((steps, source.tail()))
}

fn step(line: u64, kind: Kind, instructions: u64, repeats: u64) -> Step {
    Step { line, kind, instructions, repeats }
}

const TEXT: &str = "==7== Lackey, an example Valgrind tool
==7== Command: sh -c two
lines, of which this is one
I  00401000,3
 L 1ffeffe7e0,8
I  00401003,4
 M 0500003c,8
I  0040103e,5
 S 05000000,256
==7== Process terminating with default action of signal 9
";

#[test]
fn a_text_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let (steps, tail) = read(&stored(&dir, TEXT, Part::ALL).unwrap(), Which::default()).unwrap();
    let (f, l, s) = (Kind::Fetch, Kind::Load, Kind::Store);
    let first = 0x500_0000 >> 6;
    let expected = [
        step(0x40_1000 >> 6, f, 0, 0),
        step(0x1f_feff_e7e0 >> 6, l, 0, 0),
        // A modification (M) is a load and a store. Each of them touches two lines.
        step(first, l, 1, 0),
        step(first + 1, l, 0, 0),
        step(first, s, 0, 0),
        step(first + 1, s, 0, 0),
        // An instruction that reaches into a second line.
        step(0x40_1040 >> 6, f, 1, 2),
        step(first, s, 0, 0),
        step(first + 1, s, 0, 0),
        step(first + 2, s, 0, 0),
        step(first + 3, s, 0, 0),
    ];
    assert_eq!(steps, expected);
    assert_eq!(tail, Tail { repeats: [0, 0, 0], instructions: 1 });
}

#[test]
fn a_part_of_a_text() {
    let dir = tempfile::tempdir().unwrap();
    let (steps, tail) = read(&stored(&dir, TEXT, Part { skip: 3, limit: 2 }).unwrap(), Which::default()).unwrap();
    let first = 0x500_0000 >> 6;
    // The instruction of these accesses was left out. Both parts of the load are stored; the store ends the trace.
    let (l, s) = (Kind::Load, Kind::Store);
    assert_eq!(steps, [step(first, l, 0, 0), step(first + 1, l, 0, 0), step(first, s, 0, 0), step(first + 1, s, 0, 0)]);
    assert_eq!(tail, Tail::default());
    let empty = stored(&dir, TEXT, Part { skip: 99, ..Part::ALL }).unwrap_err().to_string();
    assert!(empty.ends_with("text: has no memory access"), "{empty}");
}

#[test]
fn lines_that_are_not_lackeys() {
    let dir = tempfile::tempdir().unwrap();
    let long = "I  00401000,3\n".to_owned() + &" ".repeat(100_000);
    let wrong = [
        ("", "has no memory access"),
        ("something else\n", "line 1: neither"),
        ("==1== a\n==1== b\n", "has no memory access"),
        (
            "I  00401000,3\nX  00401000,3\n",
            "line 2: neither an access as lackey writes it nor a line of valgrind's: \"X",
        ),
        ("I  00401000,3\nI 00401000,3\n", "line 2"),
        ("I  00401000,0\n", "line 1"),
        ("I  ,3\n", "line 1"),
        ("I  00401000,\n", "line 1"),
        ("I  00401000\n", "line 1"),
        ("I  0040100g,3\n", "line 1"),
        ("I  00401000,a\n", "line 1"),
        ("I  00401000,99999999999999999999999\n", "line 1"),
        ("I  00401000,100000\n", "line 1"),
        ("I  11112222333344445,3\n", "line 1"),
        ("I  ffffffffffffffff,3\n", "line 1"),
        ("I  00401000,3\n==1== end\nI  004", "line 3: cut in the middle of the line: \"I  004\""),
        (&long, "line 2: too long"),
        ("I  00401000,3\n\0\0\n", "line 2"),
    ];
    for (text, says) in wrong {
        let said = stored(&dir, text, Part::ALL).unwrap_err().to_string();
        assert!(said.contains(says) && said.contains("text: ") && said.lines().count() == 1, "{text:.40}: {said}");
    }
}

#[test]
fn what_is_cut_short_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for len in 0..TEXT.len() {
        let cut = stored(&dir, &TEXT[..len], Part::ALL);
        let whole_lines = len == 0 || TEXT.as_bytes()[len - 1] == b'\n';
        assert_eq!(cut.is_ok(), whole_lines && TEXT[..len].contains("I "), "{len} bytes");
    }
    let compressed = zstd::encode_all(TEXT.as_bytes(), 3).unwrap();
    for len in 0..compressed.len() {
        assert!(stored(&dir, &compressed[..len], Part::ALL).is_err(), "{len} bytes");
    }
    let file = stored(&dir, compressed, Part::ALL).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let expected = read(&file, Which::default()).unwrap();
    for len in 0..whole.len() {
        std::fs::write(&file, &whole[..len]).unwrap();
        let said = read(&file, Which::default()).unwrap_err().to_string();
        assert!(said.contains("a.trace: ") && said.lines().count() == 1, "{said}");
    }
    // A wrong byte is either found or harmless.
    for at in 0..whole.len() {
        let mut wrong = whole.clone();
        wrong[at] ^= 0x10;
        std::fs::write(&file, wrong).unwrap();
        match read(&file, Which::default()) {
            Ok(same) => assert_eq!(same, expected, "byte {at}"),
            Err(e) => assert!(e.to_string().contains("a.trace: "), "{e}"),
        }
    }
    std::fs::write(&file, whole).unwrap();
    assert_eq!(read(&file, Which::default()).unwrap(), expected);
}

/// A trace of two harts and two address spaces, which also has accesses of the kernel.
fn of_a_machine(dir: &TempDir, grain: Grain) -> PathBuf {
    let path = dir.path().join("machine.trace");
    let header =
        Header { grain, harts: 2, kernel: true, clock_hz: 1000, profile: "p".to_owned(), writer: "w".to_owned() };
    let mut writer = Writer::new(File::create(&path).unwrap(), header).unwrap();
    let mut access = |hart, kind, space, kernel, block, instructions| {
        let place = Place { space, kernel, block };
        if !writer.stays(hart, kind, place) {
            writer.moves(hart, kind, place, Moment { instructions, cycle: 2 * instructions }).unwrap();
        }
    };
    let (f, l) = (Kind::Fetch, Kind::Load);
    for n in 0..3 {
        access(0, f, 5, false, 40, 1000 + n);
    }
    access(0, l, 5, false, 90, 1002);
    access(0, f, 5, true, 77, 1003);
    access(0, f, 6, false, 41, 1010);
    access(0, f, 6, false, 41, 1011);
    access(0, f, 5, false, 42, 1012);
    access(1, f, 5, false, 43, 20);
    access(1, f, 5, false, 43, 21);
    writer.close(1, Moment { instructions: 25, cycle: 0 }).unwrap();
    let place = Place { space: 5, kernel: false, block: 43 };
    writer.moves(1, f, place, Moment { instructions: 60, cycle: 0 }).unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn one_program_of_a_machine() {
    let dir = tempfile::tempdir().unwrap();
    let path = of_a_machine(&dir, Grain::Line);
    let (f, l) = (Kind::Fetch, Kind::Load);
    let (steps, tail) = read(&path, Which { space: Some(5), kernel: false }).unwrap();
    let expected = [
        step(40, f, 0, 0),
        step(90, l, 2, 0),
        // Counts the instruction of the system call, but not the instructions of the kernel and of the other program.
        step(42, f, 1, 2),
        step(43, f, 0, 0),
        step(43, f, 5, 1),
    ];
    assert_eq!(steps, expected);
    assert_eq!(tail, Tail { repeats: [0; 3], instructions: 0 });
    let (steps, _) = read(&path, Which { space: Some(5), kernel: true }).unwrap();
    assert_eq!(steps[2..4], [step(77, f, 1, 2), step(42, f, 7, 0)]);
    let (steps, tail) = read(&path, Which { space: Some(6), kernel: true }).unwrap();
    assert_eq!(steps, [step(41, f, 0, 0)]);
    assert_eq!(tail, Tail { repeats: [1, 0, 0], instructions: 2 });

    let complaint = |space| read(&path, Which { space, kernel: false }).unwrap_err().to_string();
    for said in [complaint(None), complaint(Some(9))] {
        let both = "accesses of 2 address spaces; choose one: 0x5 (8 accesses), 0x6 (2 accesses)";
        assert!(said.contains(both) && said.contains("machine.trace"), "{said}");
    }

    let pages = of_a_machine(&dir, Grain::Page);
    let (steps, _) = read(&pages, Which { space: Some(6), kernel: false }).unwrap();
    assert_eq!(steps, [step(41 << 6, f, 0, 0)]);
    let mut source = Recorded::open(&pages, Which { space: Some(5), kernel: false }).unwrap();
    let sums = summarise(&mut source, SHARE).unwrap();
    assert_eq!((sums.accesses, sums.footprint_pages, sums.cache_misses), (8, 4, None));
    assert_eq!(sums.working_set_pages.cache_filtered, None);
}

/// An access as lackey prints it.
#[derive(Clone, Debug)]
struct Printed {
    what: char,
    address: u64,
    size: u64,
}

fn printed() -> impl Strategy<Value = Printed> {
    let near = (0..8u64, 0..0x200u64).prop_map(|(page, offset)| 0x40_0000 + page * 0x1000 + offset);
    let address = prop_oneof![4 => near, 1 => any::<u64>().prop_map(|a| a >> 1)];
    let what = prop_oneof![4 => Just('I'), 2 => Just('L'), 1 => Just('S'), 1 => Just('M')];
    (what, address, prop_oneof![1..9u64, 1..300u64]).prop_map(|(what, address, size)| Printed { what, address, size })
}

/// The steps of these accesses, as the definition says.
fn steps_of(accesses: &[Printed]) -> (Vec<Step>, Tail) {
    let (mut steps, mut instructions, mut last) = (Vec::new(), 0, 0);
    let mut runs: [Option<(u64, u64)>; 3] = [None; 3];
    for a in accesses {
        let kinds: &[Kind] = match a.what {
            'I' => &[Kind::Fetch],
            'L' => &[Kind::Load],
            'S' => &[Kind::Store],
            _ => &[Kind::Load, Kind::Store],
        };
        let before = if a.what == 'I' { instructions } else { u64::saturating_sub(instructions, 1) };
        for &kind in kinds {
            for line in a.address / 64..=(a.address + a.size - 1) / 64 {
                let run = &mut runs[kind as usize];
                match run {
                    Some((at, count)) if *at == line => *count += 1,
                    _ => {
                        steps.push(step(line, kind, before - last, run.map_or(0, |(_, count)| count - 1)));
                        *run = Some((line, 1));
                        last = before;
                    }
                }
            }
        }
        instructions += u64::from(a.what == 'I');
    }
    (steps, Tail { repeats: runs.map(|run| run.map_or(0, |(_, count)| count - 1)), instructions: instructions - last })
}

/// A source with these pages.
struct Pages(std::vec::IntoIter<u64>);

impl Source for Pages {
    fn next(&mut self) -> Result<Option<Step>, Error> {
        Ok(self.0.next().map(|page| step(page << 6 | page & 63, Kind::Load, 0, 0)))
    }
    fn tail(&self) -> Tail {
        Tail::default()
    }
    fn accesses(&self) -> Option<u64> {
        None
    }
    fn name(&self) -> &str {
        "pages"
    }
}

/// The new places of a program's pages, and the pages themselves. The program accesses each page of three ranges twice.
fn scattered(row: u64) -> (Vec<u64>, Vec<u64>) {
    let pages: Vec<u64> = [100..140, 7..20, 5000..5100].into_iter().flatten().collect();
    let twice = pages.iter().chain(&pages).copied().collect::<Vec<_>>();
    let mut source = Scattered::new(Pages(twice.into_iter()), &[(5000, 100), (100, 40), (7, 13)], row);
    let mut places = vec![];
    while let Some(step) = source.next().unwrap() {
        // The line's position in its page does not change.
        assert_eq!(step.line & 63, pages[places.len() % pages.len()] & 63);
        places.push(step.page());
    }
    // A page has the same place each time.
    assert_eq!(places[..pages.len()], places[pages.len()..]);
    places.truncate(pages.len());
    let (mut sorted, mut all) = (places.clone(), pages.clone());
    sorted.sort_unstable();
    all.sort_unstable();
    assert_eq!(sorted, all);
    (pages, places)
}

#[test]
fn scattered_pages_change_places_among_each_other() {
    let (_, places) = scattered(1);
    assert!(places.windows(2).filter(|two| two[1] == two[0] + 1).count() < 8);
    assert_eq!(scattered(1).1, places);
}

#[test]
fn rows_of_pages_stay_together() {
    let (pages, places) = scattered(3);
    for (first, count) in [(100, 40), (7, 13), (5000, 100)] {
        let at = pages.iter().position(|page| *page == first).unwrap();
        for row in places[at..at + count].chunks(3) {
            assert!(row.windows(2).all(|two| two[1] == two[0] + 1), "{row:?}");
        }
        // A rest that is shorter than a row stays in its place.
        assert_eq!(places[at + count - 1], first + count as u64 - 1);
    }
    assert!(places.windows(2).filter(|two| two[1] != two[0] + 1).count() > 40);
}

proptest! {
    #[test]
    fn accesses_come_back(
        accesses in prop::collection::vec(printed(), 1..400),
        remarks in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        pieces in prop::collection::vec(1..60usize, 1..20),
        compressed: bool,
    ) {
        let mut lines: Vec<String> = Vec::new();
        for a in &accesses {
            let mut line = if a.what == 'I' { "I  ".to_owned() } else { format!(" {} ", a.what) };
            write!(line, "{:08x},{}", a.address, a.size).unwrap();
            lines.push(line);
        }
        for (at, mark) in remarks.iter().zip(["==12== x", "--12-- x", "**12** x"].iter().cycle()) {
            lines.insert(at.index(lines.len()), (*mark).to_owned());
        }
        let text = lines.join("\n") + "\n";
        let dir = tempfile::tempdir().unwrap();
        let expected = steps_of(&accesses);
        let bytes = if compressed { zstd::encode_all(text.as_bytes(), 1).unwrap() } else { text.clone().into_bytes() };
        let file = stored(&dir, bytes, Part::ALL).unwrap();
        prop_assert_eq!(&read(&file, Which::default()).unwrap(), &expected);
        let whole = std::fs::read(&file).unwrap();

        // Imports the same text in pieces that end anywhere. The names in the headers are the same.
        let (from, to) = (dir.path().join("text"), dir.path().join("b.trace"));
        let mut recorder =
            lackey::Recorder::new(&from, &to, File::create(&to).unwrap(), "text", Part::ALL).unwrap();
        let (mut rest, mut pieces) = (text.as_bytes(), pieces.iter().cycle());
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.len().min(*pieces.next().unwrap()));
            recorder.feed(piece).unwrap();
            rest = more;
        }
        let totals = recorder.finish().unwrap();
        prop_assert_eq!(std::fs::read(&to).unwrap(), whole);
        let repeats: u64 = expected.0.iter().map(|s| s.repeats).chain(expected.1.repeats).sum();
        prop_assert_eq!(totals.accesses.iter().sum::<u64>(), expected.0.len() as u64 + repeats);
    }
}
