// SPDX-License-Identifier: Apache-2.0
//! What SBI calls do (the calls themselves are decoded in `sbi.rs`).

use trapless_memory::{Cycle, Dma, PAGE_SIZE, PhysAddr};
use trapless_riscv::{Interrupt, Timing};
use trapless_smu::Source;

use crate::End;
use crate::machine::{A0, A1, A6, A7, Machine, Phase};
use crate::sbi::{self, Call};

impl Machine {
    pub(crate) fn sbi_call(&mut self, hart: usize) {
        let x = |r: u8| self.harts[hart].x(r);
        let args = [x(A0), x(A0 + 1), x(A0 + 2), x(A0 + 3), x(A0 + 4)];
        let call = sbi::decode(x(A7), x(A6), args);
        let cost = Cycle(self.profile.machine.sbi_call_cycles);
        let now = self.harts[hart].now() + cost;
        self.harts[hart].advance_to(now);
        let (mut error, mut value) = (sbi::error::SUCCESS, 0);
        match call {
            Call::Value(v) => value = v,
            Call::NotSupported => error = sbi::error::NOT_SUPPORTED,
            Call::SetTimer(tick) => {
                self.timers[hart] = (tick, false);
                self.harts[hart].set_pending(Interrupt::SupervisorTimer, false);
            }
            Call::SendIpi(mask) => match mask.harts(self.harts.len()) {
                Some(list) => {
                    list.into_iter().for_each(|h| self.harts[h].set_pending(Interrupt::SupervisorSoft, true));
                }
                None => error = sbi::error::INVALID_PARAM,
            },
            // Predecoded code follows every write to RAM, so a hart that fetches again already sees it.
            Call::FenceI(mask) if mask.harts(self.harts.len()).is_some() => {}
            Call::FenceI(_) => error = sbi::error::INVALID_PARAM,
            Call::SfenceVma(mask, start, size) => match mask.harts(self.harts.len()) {
                Some(list) => list.into_iter().for_each(|h| self.remote_fence(h, start, size, now)),
                None => error = sbi::error::INVALID_PARAM,
            },
            Call::HartStart(target, address, opaque) => error = self.start_hart(target, address, opaque, now),
            Call::HartStop => {
                self.phases[hart] = Phase::Stopped;
                return;
            }
            Call::HartStatus(target) => match self.phases.get(target as usize) {
                Some(Phase::Stopped) => value = 1,
                Some(_) => {}
                None => error = sbi::error::INVALID_PARAM,
            },
            Call::HartSuspend => {
                if !self.harts[hart].wakes() {
                    self.phases[hart] = Phase::Asleep;
                }
            }
            Call::Reset(kind, reason) => {
                self.end = Some(match (kind, reason) {
                    (0, 0) => End::PowerOff,
                    (0, _) => End::Failed(1),
                    _ => End::Reset,
                });
                return;
            }
            Call::ConsoleWrite(len, address) => match self.console_write(len, address) {
                Some(written) => value = written,
                None => error = sbi::error::INVALID_ADDRESS,
            },
            Call::ConsoleByte(byte) => self.print(&[byte]),
            Call::LegacyPut(byte) => self.print(&[byte]),
            Call::LegacyGet => error = -1,
        }
        let h = &mut self.harts[hart];
        h.set_x(A0, error as u64);
        if !matches!(call, Call::LegacyPut(_) | Call::LegacyGet) {
            h.set_x(A1, value);
        }
    }

    /// `sfence.vma` on a hart. A request that the SMU has not accepted yet is taken back: it carries an old entry (OS-4).
    fn remote_fence(&mut self, hart: usize, start: u64, size: u64, at: Cycle) {
        let whole = size == u64::MAX || (start == 0 && size == 0);
        self.harts[hart].fence_vma((!whole).then_some((start, size)));
        let one_page = !whole && size <= PAGE_SIZE - start % PAGE_SIZE;
        match (whole, one_page) {
            (true, _) => self.times.of(hart).fence(None),
            (_, true) => self.times.of(hart).fence(Some(start)),
            _ => self.times.of(hart).fence_range(),
        }
        let held = self.board.smu.as_ref().is_some_and(|smu| smu.is_held(Source::Walker(hart as u32)));
        if let (Phase::Waiting { id }, true) = (self.phases[hart], held) {
            self.stop_waiting(hart, id, at);
        }
    }

    fn start_hart(&mut self, target: u64, address: u64, opaque: u64, now: Cycle) -> i64 {
        let index = target as usize;
        match self.phases.get(index) {
            None => sbi::error::INVALID_PARAM,
            Some(Phase::Stopped) if self.board.ram.offset(PhysAddr(address), 4).is_none() => {
                sbi::error::INVALID_ADDRESS
            }
            Some(Phase::Stopped) => {
                self.harts[index].advance_to(now);
                self.harts[index].enter_supervisor(address, opaque);
                self.phases[index] = Phase::Running;
                sbi::error::SUCCESS
            }
            Some(_) => sbi::error::ALREADY_AVAILABLE,
        }
    }

    /// Prints bytes of guest memory; how many, or `None` when they are not in RAM.
    fn console_write(&mut self, len: u64, address: u64) -> Option<u64> {
        /// One call prints at most so much, as the specification allows.
        const MOST: u64 = 4096;
        let mut bytes = vec![0; len.min(MOST) as usize];
        Dma::read(&mut self.board.ram, PhysAddr(address), &mut bytes).ok()?;
        self.print(&bytes);
        Some(bytes.len() as u64)
    }

    /// Firmware output goes where the UART's goes, in order.
    fn print(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.board.uart.mmio_write(0, 1, u64::from(*byte));
        }
    }
}
