// SPDX-License-Identifier: Apache-2.0
//! GDB's remote protocol over a socket. The crate gdbstub implements it in a separate thread; the machine's thread answers while
//! the machine is stopped (docs/how-to/debug-a-guest.md, decision 046).

mod messages;
mod registers;
mod target;

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::{Context, Result};
use gdbstub::stub::{DisconnectReason, GdbStub};
use trapless_machine::{Debugger, Orders, Stop, View};

use messages::{Connection, Event, Request};
use target::{Loop, Target};

/// How often a stopped machine checks whether the user has interrupted the program.
const PATIENCE: Duration = Duration::from_millis(100);
/// Longest time that the program waits at its end for GDB to receive the guest's exit status.
const FAREWELL: Duration = Duration::from_secs(1);

/// The address at which to listen for GDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    place: Place,
    /// Whether the machine waits for GDB before it begins.
    wait: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Tcp(String),
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let (place, wait) = text.strip_suffix(",nowait").map_or((text, true), |place| (place, false));
        let place = match (place.strip_prefix("unix:"), place.rsplit_once(':')) {
            (Some(""), _) => return Err("unix: needs a path".to_owned()),
            (Some(path), _) => Place::Unix(path.into()),
            (None, None) => Place::Tcp(format!("127.0.0.1:{}", port(place)?)),
            (None, Some((host, number))) => Place::Tcp(format!("{host}:{}", port(number)?)),
        };
        Ok(Address { place, wait })
    }
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "should be PORT, HOST:PORT or unix:PATH, which ,nowait may follow".to_owned())
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp(address) => f.write_str(address),
            Place::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn accept(&self) -> io::Result<Connection> {
        Ok(match self {
            Listener::Tcp(l) => Box::new(l.accept()?.0) as Connection,
            Listener::Unix(l) => Box::new(l.accept()?.0),
        })
    }
}

/// The machine's side: stops the machine when GDB asks for it, and answers GDB's requests.
pub struct Front {
    wants_stop: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
    events: Sender<Event>,
    requests: Receiver<Request>,
}

impl Debugger for Front {
    fn wants_stop(&mut self) -> bool {
        self.wants_stop.load(Ordering::Relaxed)
    }

    fn stopped(&mut self, stop: Stop, view: &mut View<'_>) -> Orders {
        // This cannot fail: GDB's thread lives as long as the program.
        let _ = self.events.send(Event::Stopped(stop));
        loop {
            match self.requests.recv_timeout(PATIENCE) {
                Ok(Request::Look(look)) => look(view),
                Ok(Request::Go(orders)) => return orders,
                Err(RecvTimeoutError::Disconnected) => return Orders::default(),
                Err(RecvTimeoutError::Timeout) => {
                    if self.interrupted.load(Ordering::Relaxed) {
                        return Orders { kill: true, ..Orders::default() };
                    }
                }
            }
        }
    }
}

/// The listening socket and its thread.
pub struct Server {
    events: Sender<Event>,
    told: Receiver<()>,
    attached: Arc<AtomicBool>,
    path: Option<PathBuf>,
}

/// Begins to listen. `interrupted` ends a run that waits for GDB.
///
/// # Errors
/// The address cannot be used.
pub fn listen(address: &Address, interrupted: Arc<AtomicBool>) -> Result<(Server, Front)> {
    let cannot = || format!("--gdb: cannot listen at {}", address.place);
    let (listener, at, path) = match &address.place {
        Place::Tcp(at) => {
            let listener = TcpListener::bind(at).with_context(cannot)?;
            let at = listener.local_addr().with_context(cannot)?.to_string();
            (Listener::Tcp(listener), at, None)
        }
        Place::Unix(path) => {
            // A run that was killed may have left this socket.
            if UnixStream::connect(path).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused) {
                std::fs::remove_file(path).with_context(cannot)?;
            }
            let listener = UnixListener::bind(path).with_context(cannot)?;
            (Listener::Unix(listener), path.display().to_string(), Some(path.clone()))
        }
    };
    eprintln!("trapless-machine: GDB can attach: target remote {at}");
    let (events, of_machine) = mpsc::channel();
    let (asks, requests) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let wants_stop = Arc::new(AtomicBool::new(address.wait));
    let attached = Arc::new(AtomicBool::new(false));
    let mut target = Target::new(Arc::clone(&wants_stop), of_machine, asks);
    let busy = Arc::clone(&attached);
    std::thread::spawn(move || {
        while !target.ended {
            let Ok(connection) = listener.accept() else { break };
            busy.store(true, Ordering::SeqCst);
            serve(connection, &mut target);
            busy.store(false, Ordering::SeqCst);
        }
        // This fails if the program is ending for another reason.
        let _ = tell.send(());
    });
    Ok((Server { events: events.clone(), told, attached, path }, Front { wants_stop, interrupted, events, requests }))
}

/// Serves one GDB until it disconnects. Unless GDB kills the machine, the machine then continues without it.
fn serve(connection: Connection, target: &mut Target) {
    if !target.halt() {
        return;
    }
    let end = GdbStub::new(connection).run_blocking::<Loop>(target);
    if let Err(e) = &end
        && !e.is_connection_error()
    {
        eprintln!("trapless-machine: GDB: {e}");
    }
    let kill = matches!(end, Ok(DisconnectReason::Kill));
    if target.halt() {
        target.go(Orders { kill, ..Orders::default() });
    }
}

impl Server {
    /// Tells GDB that the guest has ended.
    pub fn finish(self, status: u8) {
        let _ = self.events.send(Event::Ended(status));
        if self.attached.load(Ordering::SeqCst) {
            let _ = self.told.recv_timeout(FAREWELL);
        }
        if let Some(path) = &self.path {
            // The file may be gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let tcp = |at: &str, wait| Ok(Address { place: Place::Tcp(at.to_owned()), wait });
        assert_eq!("1234".parse(), tcp("127.0.0.1:1234", true));
        assert_eq!("[::1]:1,nowait".parse(), tcp("[::1]:1", false));
        assert_eq!("unix:/a:b".parse(), Ok(Address { place: Place::Unix("/a:b".into()), wait: true }));
        for wrong in ["", "x", "localhost", "1:", "99999", "unix:", "1234,now"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
