// SPDX-License-Identifier: Apache-2.0
//! A small client that speaks GDB's remote protocol debugs bare-metal programs.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use common::{assemble, machine, record, run, symbol};

/// Numbers of registers in GDB.
const PC: usize = 32;
const CYCLE: usize = 65 + 0xc00;
const SATP: usize = 65 + 0x180;
const MODE: usize = 65 + 4096;

struct Gdb<S> {
    to: S,
    from: BufReader<S>,
}

impl Gdb<UnixStream> {
    fn attach(path: &Path) -> Gdb<UnixStream> {
        let to = UnixStream::connect(path).unwrap();
        to.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let from = BufReader::new(to.try_clone().unwrap());
        Gdb { to, from }
    }
}

impl<S: Read + Write> Gdb<S> {
    fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        write!(self.to, "${packet}#{sum:02x}").unwrap();
    }

    /// Receives the next packet and expands its run lengths.
    fn receive(&mut self) -> String {
        let mut raw = Vec::new();
        self.from.read_until(b'$', &mut raw).unwrap();
        raw.clear();
        self.from.read_until(b'#', &mut raw).unwrap();
        assert_eq!(raw.pop(), Some(b'#'), "the connection ended before the packet");
        self.from.read_exact(&mut [0; 2]).unwrap();
        // After a detach the machine may not listen any more.
        let _ = self.to.write_all(b"+");
        let mut text = String::new();
        let mut bytes = raw.into_iter();
        while let Some(b) = bytes.next() {
            if b == b'*' {
                let (last, n) = (text.chars().last().unwrap(), bytes.next().unwrap() - 29);
                text.extend(std::iter::repeat_n(last, n.into()));
            } else {
                text.push(char::from(b));
            }
        }
        text
    }

    fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.receive()
    }

    fn word(&mut self, packet: &str) -> u64 {
        let text = self.ask(packet);
        u64::from_str_radix(&text, 16).unwrap_or_else(|_| panic!("{packet}: {text}")).swap_bytes()
    }

    fn register(&mut self, n: usize) -> u64 {
        self.word(&format!("p{n:x}"))
    }

    fn load(&mut self, at: u64) -> u64 {
        self.word(&format!("m{at:x},8"))
    }

    fn ok(&mut self, packet: &str) {
        assert_eq!(self.ask(packet), "OK", "{packet}");
    }
}

fn hex(value: u64) -> String {
    format!("{:016x}", value.swap_bytes())
}

/// A machine that is killed at the end of its test.
struct Running(Child);

impl Running {
    fn status(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // If the test has passed, the machine has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the machine and waits until GDB can attach.
fn start(arguments: &[&str]) -> (Running, String) {
    let mut child = machine().args(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut from = BufReader::new(child.stderr.take().unwrap());
    from.read_line(&mut said).unwrap();
    assert!(said.contains("target remote "), "{said}");
    child.stderr = Some(from.into_inner());
    (Running(child), said)
}

#[test]
fn a_whole_session_changes_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let (elf, json, socket) = (assemble("user", dir.path()), dir.path().join("record"), dir.path().join("gdb"));
    let at = |name| symbol(&elf, name) - 0x4000_0000;
    let [user, done, data] = ["user", "done", "data"].map(at);
    let timings: [&[&str]; 2] = [&[], &["--profile", "server", "--detail", "start"]];
    for timing in timings {
        let base = [&["elf", elf.to_str().unwrap(), "--harts", "2", "--json", json.to_str().unwrap()], timing].concat();
        assert_eq!(run(&base).status.code(), Some(0));
        let plain = record(&json);
        let (mut child, _) = start(&[&base[..], &["--gdb", &format!("unix:{}", socket.display())]].concat());
        let mut gdb = Gdb::attach(&socket);
        assert!(gdb.ask("qSupported:multiprocess+;swbreak+;hwbreak+;vContSupported+").contains("PacketSize="));
        assert!(gdb.ask("qXfer:features:read:target.xml:0,ffff").contains("org.gnu.gdb.riscv.cpu"));
        gdb.ok("Hgp1.1");
        assert_eq!((gdb.register(PC), gdb.register(MODE), gdb.register(CYCLE)), (0x8000_0000, 3, 0));

        // Breakpoints are virtual addresses, and guest memory stays unchanged.
        gdb.ok(&format!("Z0,{user:x},4"));
        let stop = gdb.ask("vCont;c");
        assert!(stop.starts_with("T05") && stop.contains("swbreak"), "{stop}");
        assert_eq!((gdb.register(PC), gdb.register(MODE)), (user, 0));
        assert_eq!(gdb.register(SATP), 8 << 60 | symbol(&elf, "root") >> 12);
        let code = gdb.load(user);
        assert_eq!(code, gdb.load(user + 0x4000_0000), "pages that nobody has accessed can be read");
        // The entry of that page still has only V, R and W.
        assert_eq!(gdb.load(at("root") + 16), 0x8000_0000 >> 2 | 7);
        assert!(
            gdb.ask("m10,8").starts_with('E') && gdb.ask("m200bff8,8").starts_with('E'),
            "neither unmapped pages nor devices can be read"
        );
        gdb.ok(&format!("z0,{user:x},4"));

        // A step takes as long as its instruction.
        let mut cycles = vec![gdb.register(CYCLE)];
        for step in 1..=4 {
            assert!(gdb.ask("vCont;s:p1.1").starts_with("T05"));
            cycles.push(gdb.register(CYCLE));
            assert!(cycles[step] > cycles[step - 1] && gdb.register(PC) > user);
        }

        // The loop loads from data + 64 a hundred times.
        let watched = |kind: u8, at: u64, len: u64| format!("{kind},{at:x},{len}");
        let (load, any) = (watched(3, data + 71, 1), watched(4, data + 60, 8));
        gdb.ok(&format!("Z2,{:x},8", data + 64));
        gdb.ok(&format!("Z{load}"));
        for n in 0..100 {
            if n == 50 {
                gdb.ok(&format!("z{load}"));
                gdb.ok(&format!("Z{any}"));
            }
            let (what, at) = if n < 50 { ("rwatch", data + 71) } else { ("awatch", data + 64) };
            let stop = gdb.ask("vCont;c");
            assert!(stop.contains(&format!("{what}:{at:x};")), "{n}: {stop}");
        }
        gdb.ok(&format!("Z1,{done:x},4"));
        assert!(gdb.ask("vCont;c").contains("swbreak"));
        assert_eq!(gdb.register(PC), done);
        // The other hart runs other code in M-mode, where addresses are physical.
        gdb.ok("Hgp1.2");
        assert_eq!((gdb.register(PC), gdb.register(MODE)), (symbol(&elf, "park"), 3));
        assert_eq!(gdb.load(symbol(&elf, "user")), code);
        gdb.ok("D;1");
        assert_eq!(child.status(), Some(0));
        assert_eq!(record(&json), plain, "debugging takes no time");
        assert!(!socket.exists());
    }
}

#[test]
fn what_gdb_changes_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (elf, socket) = (assemble("user", dir.path()), dir.path().join("gdb"));
    let at = |name| symbol(&elf, name) - 0x4000_0000;
    let (mut child, _) =
        start(&["elf", elf.to_str().unwrap(), "--harts", "1", "--gdb", &format!("unix:{}", socket.display())]);
    let mut gdb = Gdb::attach(&socket);
    // A breakpoint at the instruction where the hart has already stopped does not stop it again.
    gdb.ok("Z0,80000000,4");
    gdb.ok(&format!("Z0,{:x},4", at("loop")));
    assert!(gdb.ask("vCont;c").contains("swbreak"));
    assert_eq!(gdb.register(PC), at("loop"));
    gdb.ok(&format!("z0,{:x},4", at("loop")));
    // Write across the end of a page, into the page from which a0 is loaded.
    let (data, park) = (at("data"), symbol(&elf, "park") - 0x4000_0000);
    gdb.ok(&format!("M{:x},8:{}", data + 0x1ffc, hex(0x1234_5678_9abc_def0)));
    assert_eq!(gdb.load(data + 0x1ffc), 0x1234_5678_9abc_def0);
    gdb.ok(&format!("M{:x},8:{}", data + 64, hex(77)));
    assert!(gdb.ask("M10,1:00").starts_with('E'));
    assert!(gdb.ask("vCont;s:p1.1").starts_with("T05"));
    assert_eq!(gdb.register(10), 77);
    // New code takes effect at once, although the old code was decoded: li a0, 5; then jump there.
    gdb.ok(&format!("M{park:x},4:{}", &hex(0x0050_0513)[..8]));
    gdb.ok(&format!("P20={}", hex(park)));
    assert!(gdb.ask("vCont;s:p1.1").starts_with("T05"));
    assert_eq!((gdb.register(10), gdb.register(PC)), (5, park + 4));
    gdb.ok(&format!("P21={}", hex(0x55)));
    assert_eq!(gdb.register(33), 0x55);
    // Read all of x and pc at once; then write all of them.
    let all = gdb.ask("g");
    assert_eq!((all.len(), &all[160..176]), (33 * 16, &hex(5)[..]));
    gdb.ok(&format!("G{}{}", "0".repeat(32 * 16), hex(at("done"))));
    assert_eq!((gdb.register(10), gdb.register(PC)), (0, at("done")));
    // Run to the end.
    assert_eq!(gdb.ask("vCont;c"), "W00");
    assert_eq!(child.status(), Some(0));
}

#[test]
fn gdb_comes_later_interrupts_and_kills() {
    let dir = tempfile::tempdir().unwrap();
    let (elf, socket) = (assemble("endless", dir.path()), dir.path().join("gdb"));
    let (mut child, _) = start(&["elf", elf.to_str().unwrap(), "--gdb", &format!("unix:{},nowait", socket.display())]);
    // This GDB disconnects without a message; the machine continues.
    let mut gone = Gdb::attach(&socket);
    let before = gone.register(CYCLE);
    gone.send("vCont;c");
    drop(gone);
    let mut gdb = Gdb::attach(&socket);
    assert!(gdb.register(CYCLE) > before);
    gdb.send("vCont;c");
    gdb.to.write_all(&[3]).unwrap();
    assert!(gdb.receive().starts_with("T02"), "an interrupt is SIGINT");
    gdb.ok("D;1");
    let mut gdb = Gdb::attach(&socket);
    gdb.send("vCont;c");
    gdb.to.write_all(&[3]).unwrap();
    assert!(gdb.receive().starts_with("T02"));
    gdb.send("vKill;1");
    assert_eq!(child.status(), Some(130));
}

#[test]
fn bad_places_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let elf = assemble("pass", dir.path());
    for (place, named) in [
        ("nonsense", "nonsense"),
        ("1,later", "1,later"),
        ("unix:/nowhere/gdb", "/nowhere/gdb"),
        ("192.0.2.1:1", "192.0.2.1:1"),
    ] {
        let done = run(&["elf", elf.to_str().unwrap(), "--gdb", place]);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains("--gdb") && said.contains(named), "{said}");
    }
    // The machine can also choose a free TCP port.
    let (mut child, said) = start(&["elf", elf.to_str().unwrap(), "--gdb", "0"]);
    let to = TcpStream::connect(said.trim().rsplit(' ').next().unwrap()).unwrap();
    let mut gdb = Gdb { from: BufReader::new(to.try_clone().unwrap()), to };
    assert_eq!(gdb.ask("vCont;c"), "W00");
    assert_eq!(child.status(), Some(0));
}
