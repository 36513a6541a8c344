// SPDX-License-Identifier: Apache-2.0
//! The log of faults: one line of CSV for each access that waits for its page, written while the simulation runs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use zstd::stream::write::Encoder;

use crate::Error;
use crate::pages::{Origin, Pid};
use crate::settings::{Settings, Time};

/// The heading line of the log.
pub const HEAD: &str = "time_ns,process,page,kind,origin,waited_ns,resumed_ns,evicted_process,evicted_page,turn";
/// zstd's compression level. At this level zstd is faster than the simulation, and the log shrinks to a tenth.
const LEVEL: i32 = 3;
/// The log is written in pieces of this many bytes.
const BUFFER: usize = 1 << 16;

/// An access that waited for its page. Times are ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Time of the access.
    pub at: Time,
    /// The process that made it.
    pub pid: Pid,
    /// Virtual page number.
    pub page: u64,
    /// What caused the read of the page: the access itself, or the mechanism that prefetched the page.
    pub origin: Origin,
    /// Time from the access until the page arrived.
    pub waited: Time,
    /// Time from the access until the process continued.
    pub resumed: Time,
    /// The first page that was evicted for it: process and virtual page number.
    pub evicted: Option<(Pid, u64)>,
    /// The turn of the process in which it made the access, counted from 1.
    pub turn: u32,
}

/// The log. Call [`Log::finish`] at its end.
pub struct Log {
    path: PathBuf,
    /// Names of the processes, quoted for CSV.
    names: Vec<String>,
    to: To,
}

enum To {
    Plain(BufWriter<File>),
    Packed(Encoder<'static, BufWriter<File>>),
}

impl Write for To {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self {
            To::Plain(to) => to.write(data),
            To::Packed(to) => to.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            To::Plain(to) => to.flush(),
            To::Packed(to) => to.flush(),
        }
    }
}

/// Whether a log of this name is compressed: with zstd if the name ends in `.csv.zst`.
///
/// # Errors
/// The name ends in neither `.csv` nor `.csv.zst`.
pub fn is_packed(path: &Path) -> Result<bool, Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".csv.zst") || name.ends_with(".csv") {
        return Ok(name.ends_with(".zst"));
    }
    Err(Error::Settings(format!("{}: the name of a log of faults must end in .csv or .csv.zst", path.display())))
}

impl Log {
    /// Begins a log in `file`, which is empty and will get the name `path`.
    ///
    /// # Errors
    /// The name is not that of a log, two processes have the same name, or the file cannot be written.
    pub fn new(path: &Path, file: File, settings: &Settings) -> Result<Log, Error> {
        let packed = is_packed(path)?;
        let names: Vec<_> = settings.processes.iter().map(|process| quoted(&process.name)).collect();
        if let Some((_, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(Error::Settings(format!(
                "{}: two processes are named {name}: the log of faults identifies processes by name; give each its own",
                path.display()
            )));
        }
        let buffer = BufWriter::with_capacity(BUFFER, file);
        let wrong = Error::io(path);
        let mut to = if packed { To::Packed(Encoder::new(buffer, LEVEL).map_err(&wrong)?) } else { To::Plain(buffer) };
        writeln!(to, "{HEAD}").map_err(&wrong)?;
        Ok(Log { path: path.to_owned(), names, to })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, fault: &Fault) -> Result<(), Error> {
        self.line(fault).map_err(Error::io(&self.path))
    }

    fn line(&mut self, fault: &Fault) -> io::Result<()> {
        let Fault { at, pid, page, origin, waited, resumed, evicted, turn } = *fault;
        let kind = if origin == Origin::Demand { "demand" } else { "late" };
        let (name, origin) = (&self.names[pid], origin.name());
        let (at, waited, resumed) = (at / 1000, waited / 1000, resumed / 1000);
        write!(self.to, "{at},{name},{page},{kind},{origin},{waited},{resumed},")?;
        if let Some((owner, page)) = evicted {
            write!(self.to, "{},{page}", self.names[owner])?;
        } else {
            self.to.write_all(b",")?;
        }
        writeln!(self.to, ",{turn}")
    }

    /// Writes the rest and ends the log.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<(), Error> {
        let ended = match self.to {
            To::Plain(buffer) => Ok(buffer),
            To::Packed(encoder) => encoder.finish(),
        };
        ended.and_then(|mut buffer| buffer.flush()).map_err(Error::io(&self.path))
    }
}

/// Quotes a text as one field of CSV.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use super::*;

    fn settings(names: &[&str]) -> Settings {
        let process = |name: &&str| format!("[[process]]\nname = '{name}'\ntrace = ''\n");
        let processes: String = names.iter().map(process).collect();
        toml::from_str(&format!("policy = 'sync'\n[memory]\nframes = 64\n{processes}")).unwrap()
    }

    const FAULTS: [Fault; 2] = [
        Fault {
            at: 1_000_999,
            pid: 1,
            page: 7,
            origin: Origin::Demand,
            waited: 3_000_000,
            resumed: 8_000_500,
            evicted: Some((0, 99)),
            turn: 2,
        },
        Fault { at: 0, pid: 0, page: 8, origin: Origin::Set, waited: 0, resumed: 1000, evicted: None, turn: 1 },
    ];
    const LINES: &str = "1000,xz,7,demand,demand,3000,8000,\"a,\"\"b\",99,2\n0,\"a,\"\"b\",8,late,set,0,1,,,1\n";

    fn logged(name: &str) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        let mut log = Log::new(Path::new(name), file.try_clone().unwrap(), &settings(&["a,\"b", "xz"])).unwrap();
        FAULTS.iter().for_each(|fault| log.add(fault).unwrap());
        log.finish().unwrap();
        let mut data = vec![];
        file.rewind().unwrap();
        file.read_to_end(&mut data).unwrap();
        data
    }

    #[test]
    fn lines_plain_and_compressed() {
        let plain = String::from_utf8(logged("x/faults.csv")).unwrap();
        assert_eq!(plain, format!("{HEAD}\n{LINES}"));
        let packed = logged("faults.csv.zst");
        assert_eq!(zstd::decode_all(&packed[..]).unwrap(), plain.as_bytes());
    }

    #[test]
    fn what_cannot_be_a_log_is_said() {
        let said = |name: &str, names: &[&str]| {
            let file = tempfile::tempfile().unwrap();
            Log::new(Path::new(name), file, &settings(names)).err().unwrap().to_string()
        };
        assert_eq!(said("a.txt", &["x"]), "a.txt: the name of a log of faults must end in .csv or .csv.zst");
        assert_eq!(said(".zst", &["x"]), ".zst: the name of a log of faults must end in .csv or .csv.zst");
        assert!(said("a.csv", &["x", "y", "x"]).starts_with("a.csv: two processes are named x: "));
    }

    #[test]
    fn a_full_disk_is_said() {
        for name in ["f.csv", "f.csv.zst"] {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let mut log = Log::new(Path::new(name), full, &settings(&["x"])).unwrap();
            // No page occurs twice, so that the log does not compress to nothing.
            let wrong = (0..100_000u64)
                .find_map(|page| {
                    let noise = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    log.add(&Fault { pid: 0, page: noise, evicted: None, ..FAULTS[0] }).err()
                })
                .unwrap();
            assert_eq!(wrong.to_string(), format!("{name}: No space left on device (os error 28)"));
        }
    }
}
