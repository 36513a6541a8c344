// SPDX-License-Identifier: Apache-2.0
//! The host's side of the guest's console.

use trapless_devices::Uart;

use crate::config::Console;
use crate::error::Error;

/// Where the console is connected.
pub struct Terminal(Console);

impl Terminal {
    /// A terminal that is connected to this console.
    pub fn new(console: Console) -> Terminal {
        Terminal(console)
    }

    /// Whether somebody may type.
    pub fn is_interactive(&self) -> bool {
        self.0.input.is_some()
    }

    /// Prints what the guest has written.
    ///
    /// # Errors
    /// When the host cannot write the output.
    pub fn print(&mut self, uart: &mut Uart) -> Result<(), Error> {
        let out = &mut self.0.output;
        out.write_all(&uart.take_output()).and_then(|()| out.flush()).map_err(Error::Console)
    }

    /// Passes what was typed to the guest. Returns whether anything was typed.
    pub fn type_in(&self, uart: &mut Uart) -> bool {
        let bytes: Vec<u8> = self.0.input.iter().flat_map(|input| input.try_iter()).collect();
        if !bytes.is_empty() {
            uart.push_input(&bytes);
        }
        !bytes.is_empty()
    }
}
