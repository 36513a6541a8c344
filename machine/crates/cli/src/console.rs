// SPDX-License-Identifier: Apache-2.0
//! The guest's console: where its output goes and, in an interactive run, the terminal for its input.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};

use anyhow::{Context, Result};
use rustix::termios::{self, OptionalActions, Termios};

/// Opens the console's output.
///
/// # Errors
/// The file cannot be created.
pub fn output(target: &str) -> Result<Box<dyn Write>> {
    if target == "-" {
        return Ok(Box::new(io::stdout()));
    }
    let file = File::create(Path::new(target)).with_context(|| format!("cannot write the console to {target}"))?;
    Ok(Box::new(io::BufWriter::new(file)))
}

/// The terminal in raw mode. Its old mode is restored on drop.
pub struct RawTerminal(Option<Termios>);

impl RawTerminal {
    /// Puts the terminal on standard input into raw mode, if there is one. Control-A followed by x ends the run.
    pub fn new() -> RawTerminal {
        let stdin = rustix::stdio::stdin();
        let Ok(old) = termios::tcgetattr(stdin) else { return RawTerminal(None) };
        let mut raw = old.clone();
        raw.make_raw();
        // Do not change output modes, so that the program's own lines stay readable.
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
            // If this fails, the terminal is gone, and nothing can be done.
            let _ = termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, old);
        }
    }
}

/// Control-A, the escape key of an interactive run.
const ESCAPE: u8 = 1;

/// Reads bytes from standard input in a separate thread. Calls `stop` for Control-A x.
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
