// SPDX-License-Identifier: Apache-2.0
//! Messages between the machine's thread and GDB's thread.

use std::io;

use gdbstub::conn::ConnectionExt;
use trapless_machine::{Orders, Stop, View};

/// A connection to GDB.
pub type Connection = Box<dyn ConnectionExt<Error = io::Error>>;

/// A message from the machine to GDB's thread.
pub enum Event {
    Stopped(Stop),
    Ended(u8),
}

/// A function that reads or changes the stopped machine.
pub type Look = Box<dyn FnOnce(&mut View<'_>) + Send>;

/// A request of GDB's thread to the stopped machine.
pub enum Request {
    Look(Look),
    Go(Orders),
}
