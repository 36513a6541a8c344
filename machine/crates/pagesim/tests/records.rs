// SPDX-License-Identifier: Apache-2.0
//! Records of this project's valgrind tool give the same trace as lackey's text of the same accesses.

use std::fmt::Write;
use std::io::{BufReader, Seek};
use std::path::Path;

use proptest::prelude::*;
use trapless_pagesim::Error;
use trapless_pagesim::input::import::Part;
use trapless_pagesim::input::import::lackey::Recorder;
use trapless_pagesim::input::records::Records;
use trapless_trace::{Entry, Reader};

/// An access: kind (fetch, load, store, both), address, bytes, number of instructions that follow in the line of the last fetch.
type Access = (u64, u64, u64, u64);

fn record(&(kind, address, bytes, more): &Access) -> u64 {
    kind | more << 2 | (bytes - 1) << 7 | address << 16
}

/// The lines that lackey prints for the same accesses.
fn text(accesses: &[Access]) -> String {
    let (mut text, mut fetched) = (String::new(), 0);
    for &(kind, address, bytes, more) in accesses {
        let what = ["I ", " L", " S", " M"][kind as usize];
        writeln!(text, "{what} {address:08x},{bytes}").unwrap();
        if kind == 0 {
            fetched = (address + bytes - 1) / 64 * 64;
        }
        (0..more).for_each(|_| writeln!(text, "I  {fetched:08x},1").unwrap());
    }
    text
}

fn entries(mut file: std::fs::File) -> Vec<Entry> {
    file.rewind().unwrap();
    Reader::new(BufReader::new(file)).unwrap().collect::<Result<_, _>>().unwrap()
}

fn accesses() -> impl Strategy<Value = Vec<Access>> {
    let near = (0u64..4, 0u64..1 << 12, 1u64..=64, 0u64..32);
    let far = (0u64..4, 0u64..(1 << 47) - 600, 1u64..=512, 0u64..32);
    prop::collection::vec(prop_oneof![4 => near, 1 => far], 1..80)
}

proptest! {
    #[test]
    fn records_are_lackeys_text(
        accesses in accesses(),
        skip in 0u64..40,
        limit in 1u64..200,
        cuts in prop::collection::vec(1usize..20, 0..40),
    ) {
        let part = Part { skip, limit };
        let (from, to) = (Path::new("program"), Path::new("program.trace"));
        let (one, other) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let mut lackey = Recorder::new(from, to, one.try_clone().unwrap(), "x", part).unwrap();
        lackey.feed(text(&accesses).as_bytes()).unwrap();
        let bytes: Vec<u8> = accesses.iter().flat_map(|access| record(access).to_le_bytes()).collect();
        let mut records = Records::new(from, to, other.try_clone().unwrap(), "x", part).unwrap();
        let mut rest = &bytes[..];
        for cut in cuts {
            let (now, then) = rest.split_at(cut.min(rest.len()));
            records.feed(now).unwrap();
            rest = then;
        }
        records.feed(rest).unwrap();
        match (lackey.finish(), records.finish()) {
            (Ok(one_totals), Ok(other_totals)) => {
                prop_assert_eq!(one_totals, other_totals);
                prop_assert_eq!(entries(one), entries(other));
            }
            (Err(Error::Empty { .. }), Err(Error::Empty { .. })) => {}
            (one, other) => panic!("{one:?} and {other:?}"),
        }
    }

    /// Any bytes give either a trace or one error.
    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let file = tempfile::tempfile().unwrap();
        let mut records = Records::new(Path::new("p"), Path::new("t"), file, "x", Part::ALL).unwrap();
        records.feed(&bytes).unwrap();
        match records.finish() {
            Ok(_) => prop_assert!(!bytes.is_empty() && bytes.len().is_multiple_of(8)),
            Err(Error::Records { path, .. }) => prop_assert!(path == Path::new("p") && !bytes.len().is_multiple_of(8)),
            Err(Error::Empty { .. }) => prop_assert!(bytes.is_empty()),
            Err(other) => panic!("{other}"),
        }
    }
}
