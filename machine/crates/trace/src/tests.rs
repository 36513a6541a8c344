// SPDX-License-Identifier: Apache-2.0
use std::fs::File;
use std::io::{Cursor, Read, Seek, Write};

use proptest::prelude::*;

use crate::writer::move_bytes;
use crate::{Entry, Error, Grain, Header, Kind, Moment, Place, Reader, Totals, Writer};

const HARTS: u16 = 3;

fn header() -> Header {
    let (profile, writer) = ("vc707".to_owned(), "test 1".to_owned());
    Header { grain: Grain::Line, harts: HARTS, kernel: true, clock_hz: 100_000_000, profile, writer }
}

/// A call of the writer.
#[derive(Clone, Debug)]
enum Told {
    Access(u16, Kind, Place, Moment),
    Close(u16, Moment),
}

fn told() -> impl Strategy<Value = Told> {
    // Mostly few values, so that accesses stay in a place, and sometimes random values, so that all deltas occur.
    let word = || prop_oneof![3 => 0..3u64, 1 => any::<u64>()];
    let place = (word(), any::<bool>(), word()).prop_map(|(space, kernel, block)| Place { space, kernel, block });
    let at = || (word(), word()).prop_map(|(instructions, cycle)| Moment { instructions, cycle });
    let kind = prop::sample::select(Kind::ALL.to_vec());
    prop_oneof![
        9 => (0..HARTS, kind, place, at()).prop_map(|(hart, kind, place, at)| Told::Access(hart, kind, place, at)),
        1 => (0..HARTS, at()).prop_map(|(hart, at)| Told::Close(hart, at)),
    ]
}

fn write(told: &[Told]) -> (Vec<u8>, Totals) {
    let mut file = tempfile::tempfile().unwrap();
    let totals = write_to(file.try_clone().unwrap(), told);
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    (bytes, totals)
}

fn write_to(file: File, told: &[Told]) -> Totals {
    tell(Writer::new(file, header()).unwrap(), told).finish().unwrap()
}

fn tell(mut writer: Writer, told: &[Told]) -> Writer {
    for t in told {
        match *t {
            Told::Access(hart, kind, place, at) => {
                if !writer.stays(hart, kind, place) {
                    writer.moves(hart, kind, place, at).unwrap();
                }
            }
            Told::Close(hart, at) => writer.close(hart, at).unwrap(),
        }
    }
    writer
}

fn read(bytes: &[u8]) -> Result<(Vec<Entry>, Totals), Error> {
    let mut reader = Reader::new(bytes)?;
    let entries = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
    Ok((entries, reader.totals()))
}

/// The runs of a stream with their numbers of accesses, from the calls of the writer or from the entries.
type Runs = Vec<(Place, Moment, u64)>;

fn runs_told(told: &[Told], hart: u16, kind: Kind) -> Runs {
    let mut runs = Runs::new();
    let mut open = false;
    for t in told {
        match *t {
            Told::Access(h, k, place, at) if (h, k) == (hart, kind) => match runs.last_mut() {
                Some(run) if open && run.0 == place => run.2 += 1,
                _ => {
                    runs.push((place, at, 1));
                    open = true;
                }
            },
            Told::Close(h, _) if h == hart => open = false,
            _ => {}
        }
    }
    runs
}

fn runs_read(entries: &[Entry], hart: u16, kind: Kind) -> Runs {
    let mut runs = Runs::new();
    for e in entries {
        match *e {
            Entry::Run { hart: h, kind: k, place, at, ended } if (h, k) == (hart, kind) => {
                if ended > 0 {
                    runs.last_mut().unwrap().2 = ended;
                }
                runs.push((place, at, 0));
            }
            Entry::Close { hart: h, ended, .. } if h == hart && ended[kind as usize] > 0 => {
                runs.last_mut().unwrap().2 = ended[kind as usize];
            }
            _ => {}
        }
    }
    runs
}

proptest! {
    #[test]
    fn what_was_told_is_read(told in prop::collection::vec(told(), 0..400)) {
        let (bytes, totals) = write(&told);
        let (entries, sums) = read(&bytes).unwrap();
        prop_assert_eq!(totals, sums);
        prop_assert_eq!(Reader::skim(Cursor::new(&bytes)).unwrap(), totals);
        prop_assert_eq!(entries.len() as u64, totals.entries);
        for hart in 0..HARTS {
            for kind in Kind::ALL {
                prop_assert_eq!(runs_told(&told, hart, kind), runs_read(&entries, hart, kind));
            }
        }
    }

    #[test]
    fn a_header_may_be_completed_at_the_end(
        told in prop::collection::vec(told(), 0..60),
        harts in HARTS..=1024,
        kernel: bool,
        name in "[a-d]{0,40}",
    ) {
        let with = |harts, kernel| {
            let mut file = tempfile::tempfile().unwrap();
            let header = Header { harts, kernel, writer: name.clone(), ..header() };
            let writer = tell(Writer::new(file.try_clone().unwrap(), header).unwrap(), &told);
            let totals = writer.finish_as(HARTS, true).unwrap();
            let mut bytes = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut bytes).unwrap();
            (bytes, totals)
        };
        prop_assert_eq!(with(harts, kernel), with(HARTS, true));
        let (bytes, totals) = with(harts, kernel);
        let (entries, found) = read(&bytes).unwrap();
        prop_assert_eq!((found, entries.len() as u64), (totals, totals.entries));
    }

    #[test]
    fn bytes_move(from in 0..60usize, length in 1..200usize, to in 0..60usize, block in 1..50u64) {
        let bytes: Vec<u8> = (0..=255).cycle().take(from + length).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        move_bytes(&file, from as u64..(from + length) as u64, to as u64, block).unwrap();
        let mut moved = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut moved).unwrap();
        prop_assert_eq!(&moved[to..][..length], &bytes[from..]);
        prop_assert_eq!(&moved[..to.min(from)], &bytes[..to.min(from)]);
    }

    #[test]
    fn a_changed_byte_is_noticed(told in prop::collection::vec(told(), 0..60), at: prop::sample::Index, flip in 1..=255u8) {
        let (mut bytes, _) = write(&told);
        let whole = read(&bytes).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        // zstd has a few bits without meaning. If one of them changes, the reader must still return the same entries.
        if let Ok(again) = read(&bytes) {
            prop_assert_eq!(whole, again, "byte {}", at);
        }
    }

    #[test]
    fn nonsense_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), like in any::<bool>()) {
        let mut all = if like { crate::MAGIC.to_vec() } else { Vec::new() };
        all.extend(bytes);
        prop_assert!(read(&all).is_err());
        prop_assert!(Reader::skim(Cursor::new(&all)).is_err());
    }
}

fn some() -> Vec<Told> {
    let place = |block| Place { space: 7, kernel: false, block };
    let at = |n| Moment { instructions: n, cycle: 3 * n };
    (0..200).map(|n| Told::Access((n % 2) as u16, Kind::ALL[n as usize % 3], place(n / 5 * 77), at(n))).collect()
}

#[test]
fn no_part_of_a_trace_is_a_trace() {
    let (bytes, _) = write(&some());
    for len in 0..bytes.len() {
        let e = read(&bytes[..len]).unwrap_err();
        assert!(matches!(e, Error::CutShort(_)) || len < 8 && matches!(e, Error::NotATrace), "{len}: {e}");
        assert!(!e.to_string().contains('\n'));
        let e = Reader::skim(Cursor::new(&bytes[..len])).unwrap_err();
        assert!(matches!(e, Error::CutShort(_)) || len < 8 && matches!(e, Error::NotATrace), "{len}: {e}");
    }
    let mut more = bytes.clone();
    more.push(0);
    assert!(matches!(read(&more), Err(Error::Damaged { what: "there are bytes after its totals", .. })));
}

#[test]
fn another_version_is_named() {
    let (mut bytes, _) = write(&[]);
    bytes[7] = 9;
    assert_eq!(
        read(&bytes).unwrap_err().to_string(),
        "version 9 of the trace format; this program reads only version 1"
    );
}

#[test]
fn long_traces_have_many_chunks() {
    // Random differences, which zstd cannot compress.
    let mut x = 1u64;
    let mut random = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x ^ x >> 29
    };
    let told: Vec<Told> = (0..50_000)
        .map(|n| {
            let place = Place { space: random(), kernel: n % 2 == 0, block: random() };
            Told::Access((n % 3) as u16, Kind::Load, place, Moment { instructions: random(), cycle: random() })
        })
        .collect();
    let (bytes, totals) = write(&told);
    assert!(bytes.len() > 4 * crate::CHUNK);
    assert_eq!((read(&bytes).unwrap().1, totals.accesses), (totals, [0, 50_000, 0]));
    assert_eq!(Reader::skim(Cursor::new(&bytes)).unwrap(), totals);
}

#[test]
fn a_restart_forgets_what_was_before() {
    let file = tempfile::tempfile().unwrap();
    let mut writer = Writer::new(file.try_clone().unwrap(), header()).unwrap();
    let place = |block| Place { space: 1, kernel: false, block };
    for n in 0..100_000 {
        writer.moves(0, Kind::Fetch, place(n * n), Moment::default()).unwrap();
    }
    writer.restart().unwrap();
    writer.moves(1, Kind::Store, place(5), Moment { instructions: 4, cycle: 9 }).unwrap();
    writer.finish().unwrap();
    let (mut bytes, mut file) = (Vec::new(), file);
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    let at = Moment { instructions: 4, cycle: 9 };
    let entries = read(&bytes).unwrap().0;
    assert_eq!(
        entries,
        [
            Entry::Run { hart: 1, kind: Kind::Store, place: place(5), at, ended: 0 },
            Entry::Close { hart: 1, at, ended: [0, 0, 1] },
        ]
    );
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    assert_eq!(Writer::new(full, header()).err().map(|e| e.kind()), Some(std::io::ErrorKind::StorageFull));
}
