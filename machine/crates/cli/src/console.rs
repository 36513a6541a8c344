// SPDX-License-Identifier: Apache-2.0
//! The guest's console: where its bytes go, and, for an interactive run, the terminal they come from.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};

use anyhow::{Context, Result};
use rustix::termios::{self, OptionalActions, Termios};

/// Opens the console's output.
///
/// # Errors
/// When the file cannot be made.
pub fn output(target: &str) -> Result<Box<dyn Write>> {
    if target == "-" {
        return Ok(Box::new(io::stdout()));
    }
    let file = File::create(Path::new(target)).with_context(|| format!("console {target}"))?;
    Ok(Box::new(io::BufWriter::new(file)))
}

/// The terminal in raw mode; its old mode comes back when this is dropped.
pub struct RawTerminal(Option<Termios>);

impl RawTerminal {
    /// Takes the terminal on standard input, if there is one. Control-A then x ends the run.
    pub fn new() -> RawTerminal {
        let stdin = rustix::stdio::stdin();
        let Ok(old) = termios::tcgetattr(stdin) else { return RawTerminal(None) };
        let mut raw = old.clone();
        raw.make_raw();
        // Output keeps its line discipline, so that the program's own lines stay readable.
        raw.output_modes = old.output_modes;
        match termios::tcsetattr(stdin, OptionalActions::Now, &raw) {
            Ok(()) => RawTerminal(Some(old)),
            Err(_) => RawTerminal(None),
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if let Some(old) = &self.0 {
            // Nothing sensible is left to do if the terminal is gone.
            let _ = termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, old);
        }
    }
}

/// Control-A, the escape key of an interactive run.
const ESCAPE: u8 = 1;

/// Bytes typed on standard input, from a separate thread. `stop` is called for Control-A x.
pub fn input(stop: impl Fn() + Send + 'static) -> Receiver<u8> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut escaped = false;
        for byte in io::stdin().lock().bytes() {
            let Ok(byte) = byte else { return };
            match (escaped, byte) {
                (false, ESCAPE) => {
                    escaped = true;
                    continue;
                }
                (true, b'x') => return stop(),
                _ => {}
            }
            escaped = false;
            if send.send(byte).is_err() {
                return;
            }
        }
    });
    receive
}
