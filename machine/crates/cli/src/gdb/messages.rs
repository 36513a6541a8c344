// SPDX-License-Identifier: Apache-2.0
//! What the machine's thread and GDB's thread tell each other.

use std::io;

use gdbstub::conn::ConnectionExt;
use trapless_machine::{Orders, Stop, View};

/// GDB at the other end of a socket.
pub type Connection = Box<dyn ConnectionExt<Error = io::Error>>;

/// What the machine tells GDB's thread.
pub enum Event {
    Stopped(Stop),
    Ended(u8),
}

/// A look at the stopped machine.
pub type Look = Box<dyn FnOnce(&mut View<'_>) + Send>;

/// What GDB's thread asks of the stopped machine.
pub enum Request {
    Look(Look),
    Go(Orders),
}
