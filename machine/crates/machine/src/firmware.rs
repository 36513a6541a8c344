// SPDX-License-Identifier: Apache-2.0
//! Serves SBI calls (`sbi.rs` decodes them).

use trapless_memory::{Cycle, Dma, PhysAddr};
use trapless_riscv::Interrupt;

use crate::board::Board;
use crate::config::End;
use crate::cores::{Cores, Phase};
use crate::sbi::{self, A0, A1, A6, A7, Call};

/// What the machine has to do after a call.
pub enum Then {
    /// Nothing: the hart continues, or sleeps.
    Nothing,
    /// Harts forget translations: start and size in bytes. This may end a wait of these harts.
    Fence(Vec<usize>, u64, u64),
    /// The run ends.
    End(End),
}

/// Serves the SBI call of a hart. The call takes `cost` cycles.
pub fn call(hart: usize, cost: Cycle, cores: &mut Cores, board: &mut Board) -> Then {
    let x = |r: u8| cores.harts()[hart].x(r);
    let args = [x(A0), x(A0 + 1), x(A0 + 2), x(A0 + 3), x(A0 + 4)];
    let call = sbi::decode(x(A7), x(A6), args);
    let now = cores.harts()[hart].now() + cost;
    cores.hart_mut(hart).advance_to(now);
    let count = cores.len();
    let (mut error, mut value, mut then) = (sbi::error::SUCCESS, 0, Then::Nothing);
    match call {
        Call::Value(v) => value = v,
        Call::NotSupported => error = sbi::error::NOT_SUPPORTED,
        Call::SetTimer(tick) => cores.set_timer(hart, tick),
        Call::SendIpi(mask) => match mask.harts(count) {
            Some(list) => {
                list.into_iter().for_each(|h| cores.hart_mut(h).set_pending(Interrupt::SupervisorSoft, true));
            }
            None => error = sbi::error::INVALID_PARAM,
        },
        // Predecoded code always follows writes to RAM, so a hart that fetches again sees the new code anyway.
        Call::FenceI(mask) if mask.harts(count).is_some() => {}
        Call::FenceI(_) => error = sbi::error::INVALID_PARAM,
        Call::SfenceVma(mask, start, size) => match mask.harts(count) {
            Some(list) => then = Then::Fence(list, start, size),
            None => error = sbi::error::INVALID_PARAM,
        },
        Call::HartStart(target, address, opaque) => {
            error = start_error(cores, board, target as usize, address);
            if error == sbi::error::SUCCESS {
                cores.start(target as usize, address, opaque, now);
            }
        }
        Call::HartStop => {
            cores.set_phase(hart, Phase::Stopped);
            return Then::Nothing;
        }
        Call::HartStatus(target) => match cores.phase(target as usize) {
            Some(Phase::Stopped) => value = 1,
            Some(_) => {}
            None => error = sbi::error::INVALID_PARAM,
        },
        Call::HartSuspend => {
            if !cores.harts()[hart].wakes() {
                cores.set_phase(hart, Phase::Asleep);
            }
        }
        Call::Reset(kind, reason) => {
            return Then::End(match (kind, reason) {
                (0, 0) => End::PowerOff,
                (0, _) => End::Failed(1),
                _ => End::Reset,
            });
        }
        Call::ConsoleWrite(len, address) => match console_write(board, len, address) {
            Some(written) => value = written,
            None => error = sbi::error::INVALID_ADDRESS,
        },
        Call::ConsoleByte(byte) | Call::LegacyPut(byte) => print(board, &[byte]),
        Call::LegacyGet => error = -1,
    }
    let h = cores.hart_mut(hart);
    h.set_x(A0, error as u64);
    if !matches!(call, Call::LegacyPut(_) | Call::LegacyGet) {
        h.set_x(A1, value);
    }
    then
}

/// The error that starting a hart at an address gives, or success.
fn start_error(cores: &Cores, board: &Board, target: usize, address: u64) -> i64 {
    match cores.phase(target) {
        None => sbi::error::INVALID_PARAM,
        Some(Phase::Stopped) if board.memory().offset(PhysAddr(address), 4).is_none() => sbi::error::INVALID_ADDRESS,
        Some(Phase::Stopped) => sbi::error::SUCCESS,
        Some(_) => sbi::error::ALREADY_AVAILABLE,
    }
}

/// Prints bytes of guest memory. Returns how many, or `None` if they are not in RAM.
fn console_write(board: &mut Board, len: u64, address: u64) -> Option<u64> {
    /// Maximum number of bytes that one call prints; the specification allows such a limit.
    const MOST: u64 = 4096;
    let mut bytes = vec![0; len.min(MOST) as usize];
    Dma::read(board.memory_mut(), PhysAddr(address), &mut bytes).ok()?;
    print(board, &bytes);
    Some(bytes.len() as u64)
}

/// Prints through the UART, so that output of firmware and of the guest stays in order.
fn print(board: &mut Board, bytes: &[u8]) {
    for byte in bytes {
        board.peripherals_mut().uart.mmio_write(0, 1, u64::from(*byte));
    }
}
