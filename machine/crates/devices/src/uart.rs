// SPDX-License-Identifier: Apache-2.0
//! The 16550 UART: the registers of vm-superio, with a level as interrupt.
//!
//! vm-superio signals edges to its host and forgets a pending interrupt when IIR is read. A PLIC source here needs a level, so
//! this wrapper keeps the one bit that vm-superio's state lacks, and answers reads of IIR itself.

use std::collections::VecDeque;
use std::convert::Infallible;

use serde::{Deserialize, Serialize};
use trapless_memory::{Cycle, MmioEffect};
use vm_superio::serial::{NoEvents, SerialState};
use vm_superio::{Serial, Trigger};

use crate::table::Device;

const DATA: u8 = 0;
const IER: u8 = 1;
const IIR: u8 = 2;
const LCR: u8 = 3;
const LSR: u8 = 5;

const IER_RECEIVE: u8 = 1;
const IER_TRANSMIT: u8 = 2;
const LCR_DLAB: u8 = 0x80;
const LSR_DATA_READY: u8 = 1;
const IIR_FIFO_ENABLED: u8 = 0xc0;
const IIR_NONE: u8 = 1;
const IIR_TRANSMIT: u8 = 2;
const IIR_RECEIVE: u8 = 4;

/// Ignores the edges that vm-superio signals: the level below replaces them.
struct NoTrigger;

impl Trigger for NoTrigger {
    type E = Infallible;

    fn trigger(&self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The UART. Input waits in a queue until the FIFO has room; [`Uart::take_output`] fetches the output.
pub struct Uart {
    serial: Serial<NoTrigger, NoEvents, Vec<u8>>,
    input: VecDeque<u8>,
    /// Copy of IER, which vm-superio does not show while the divisor latch is open.
    interrupt_enable: u8,
    /// Whether the transmitter became empty since a read of IIR reported that.
    transmitter_emptied: bool,
}

/// The state of a UART, without output that was not taken yet.
#[derive(Serialize, Deserialize)]
pub struct UartState {
    /// Registers, in the order of vm-superio's state.
    registers: [u8; 9],
    fifo: Vec<u8>,
    input: VecDeque<u8>,
    interrupt_enable: u8,
    transmitter_emptied: bool,
}

impl Default for Uart {
    fn default() -> Uart {
        Uart::new()
    }
}

impl Uart {
    /// Bytes of register space.
    pub const SIZE: u64 = 0x100;

    /// Creates a UART as it is after a reset.
    pub fn new() -> Uart {
        Uart {
            serial: Serial::new(NoTrigger, Vec::new()),
            input: VecDeque::new(),
            interrupt_enable: 0,
            transmitter_emptied: false,
        }
    }

    /// The state, from which another UART can continue.
    pub fn save(&self) -> UartState {
        let s = self.serial.state();
        UartState {
            registers: [
                s.baud_divisor_low,
                s.baud_divisor_high,
                s.interrupt_enable,
                s.interrupt_identification,
                s.line_control,
                s.line_status,
                s.modem_control,
                s.modem_status,
                s.scratch,
            ],
            fifo: s.in_buffer,
            input: self.input.clone(),
            interrupt_enable: self.interrupt_enable,
            transmitter_emptied: self.transmitter_emptied,
        }
    }

    /// Continues from a state; returns false if it is not a valid state of a UART.
    pub fn restore(&mut self, state: UartState) -> bool {
        let r = state.registers;
        let serial = SerialState {
            baud_divisor_low: r[0],
            baud_divisor_high: r[1],
            interrupt_enable: r[2],
            interrupt_identification: r[3],
            line_control: r[4],
            line_status: r[5],
            modem_control: r[6],
            modem_status: r[7],
            scratch: r[8],
            in_buffer: state.fifo,
        };
        let Ok(serial) = Serial::from_state(&serial, NoTrigger, NoEvents, Vec::new()) else { return false };
        let UartState { input, interrupt_enable, transmitter_emptied, .. } = state;
        *self = Uart { serial, input, interrupt_enable, transmitter_emptied };
        true
    }

    /// Takes what the guest has sent since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(self.serial.writer_mut())
    }

    /// Whether [`Uart::take_output`] would return any bytes.
    pub fn has_output(&self) -> bool {
        !self.serial.writer().is_empty()
    }

    /// Adds bytes that the guest will receive.
    pub fn push_input(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
        self.feed();
    }

    /// The level of the interrupt line.
    pub fn irq_asserted(&mut self) -> bool {
        self.cause() != IIR_NONE
    }

    /// Reads a register. Registers are bytes; a wider access reads only the first.
    pub fn mmio_read(&mut self, offset: u64, _size: u32) -> u64 {
        let Ok(register @ 0..8) = u8::try_from(offset) else { return 0 };
        if register == IIR {
            let cause = self.cause();
            if cause == IIR_TRANSMIT {
                self.transmitter_emptied = false;
            }
            return (IIR_FIFO_ENABLED | cause).into();
        }
        let value = self.serial.read(register);
        self.feed();
        value.into()
    }

    /// Writes a register. Registers are bytes; a wider access writes only the lowest byte.
    pub fn mmio_write(&mut self, offset: u64, _size: u32, value: u64) -> MmioEffect {
        let Ok(register @ 0..8) = u8::try_from(offset) else { return MmioEffect::None };
        let value = value as u8;
        let latched = self.dlab();
        let before = self.irq_asserted();
        // This cannot fail: it writes to a Vec and triggers nothing.
        let _ = self.serial.write(register, value);
        match register {
            DATA if !latched => self.transmitter_emptied = true,
            IER if !latched => {
                self.interrupt_enable = value;
                self.transmitter_emptied |= value & IER_TRANSMIT != 0;
            }
            _ => {}
        }
        self.feed();
        if self.irq_asserted() == before { MmioEffect::None } else { MmioEffect::Resync }
    }

    fn dlab(&mut self) -> bool {
        self.serial.read(LCR) & LCR_DLAB != 0
    }

    /// The interrupt of highest priority, as IIR encodes it.
    fn cause(&mut self) -> u8 {
        let enabled = self.interrupt_enable;
        if enabled & IER_RECEIVE != 0 && self.serial.read(LSR) & LSR_DATA_READY != 0 {
            IIR_RECEIVE
        } else if enabled & IER_TRANSMIT != 0 && self.transmitter_emptied {
            IIR_TRANSMIT
        } else {
            IIR_NONE
        }
    }

    /// Moves waiting input into the FIFO until that is full.
    fn feed(&mut self) {
        let room = self.serial.fifo_capacity().min(self.input.len());
        if room > 0 {
            let (front, _) = self.input.make_contiguous().split_at(room);
            // In loopback mode the UART takes no input, so the input waits.
            let taken = self.serial.enqueue_raw_bytes(front).unwrap_or(0);
            self.input.drain(..taken);
        }
    }
}

impl Device for Uart {
    fn read(&mut self, offset: u64, size: u32, _now: Cycle) -> (u64, MmioEffect) {
        (self.mmio_read(offset, size), MmioEffect::Resync)
    }

    fn write(&mut self, offset: u64, size: u32, value: u64, _now: Cycle) -> MmioEffect {
        self.mmio_write(offset, size, value)
    }

    fn interrupt(&mut self) -> bool {
        self.irq_asserted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(u: &mut Uart, register: u8, value: u8) {
        u.mmio_write(register.into(), 1, value.into());
    }

    #[test]
    fn output_arrives_in_order() {
        let mut u = Uart::new();
        for b in *b"hello" {
            assert_eq!(u.mmio_read(LSR.into(), 1) & 0x60, 0x60, "always ready to send");
            write(&mut u, DATA, b);
        }
        assert!(u.has_output());
        assert_eq!(u.take_output(), b"hello");
        assert!(!u.has_output());
    }

    #[test]
    fn input_longer_than_the_fifo_arrives_whole() {
        let mut u = Uart::new();
        let sent: Vec<u8> = (0..=255).collect();
        u.push_input(&sent);
        let mut got = Vec::new();
        while u.mmio_read(LSR.into(), 1) & u64::from(LSR_DATA_READY) != 0 {
            got.push(u.mmio_read(DATA.into(), 1) as u8);
        }
        assert_eq!(got, sent);
    }

    #[test]
    fn the_receive_interrupt_is_a_level() {
        let mut u = Uart::new();
        u.push_input(b"ab");
        assert!(!u.irq_asserted(), "not enabled");
        write(&mut u, IER, IER_RECEIVE);
        assert!(u.irq_asserted());
        assert_eq!(u.mmio_read(IIR.into(), 1), 0xc4);
        assert!(u.irq_asserted(), "reading IIR takes no data");
        u.mmio_read(DATA.into(), 1);
        assert!(u.irq_asserted(), "one byte is left");
        u.mmio_read(DATA.into(), 1);
        assert!(!u.irq_asserted());
        assert_eq!(u.mmio_read(IIR.into(), 1), 0xc1);
    }

    #[test]
    fn the_transmit_interrupt_ends_when_iir_tells_it() {
        let mut u = Uart::new();
        write(&mut u, IER, IER_TRANSMIT);
        assert!(u.irq_asserted());
        assert_eq!(u.mmio_read(IIR.into(), 1), 0xc2);
        assert!(!u.irq_asserted());
        write(&mut u, DATA, b'x');
        assert!(u.irq_asserted());
        write(&mut u, IER, 0);
        assert!(!u.irq_asserted());
    }

    #[test]
    fn the_divisor_latch_hides_data_and_ier() {
        let mut u = Uart::new();
        write(&mut u, LCR, LCR_DLAB);
        write(&mut u, DATA, 0x12);
        write(&mut u, IER, 0x0f);
        assert!(u.take_output().is_empty());
        assert!(!u.irq_asserted());
        assert_eq!(u.mmio_read(DATA.into(), 1), 0x12);
        write(&mut u, LCR, 3);
        assert_eq!(u.mmio_read(IER.into(), 1), 0);
    }

    #[test]
    fn input_waits_while_the_uart_loops_back() {
        let mut u = Uart::new();
        write(&mut u, 4, 0x10);
        u.push_input(b"z");
        write(&mut u, DATA, b'l');
        assert_eq!(u.mmio_read(DATA.into(), 1), u64::from(b'l'));
        write(&mut u, 4, 0);
        assert_eq!(u.mmio_read(DATA.into(), 1), u64::from(b'z'));
        assert!(u.take_output().is_empty());
    }
}
