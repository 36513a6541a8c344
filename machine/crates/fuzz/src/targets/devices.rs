// SPDX-License-Identifier: Apache-2.0
//! Tests of the small devices. Each must behave like a copy that was saved and restored in between, and must keep its rules.

use std::collections::VecDeque;

use trapless_devices::{Aclint, Finish, Finisher, PciFunction, PciHost, PciIds, Plic, Uart};
use trapless_memory::{ClockHz, Cycle, PhysAddr};

use super::restored;
use crate::demand;
use crate::tape::Tape;

const HARTS: usize = 4;

/// An offset: usually a register in `near` or a neighbour, sometimes any offset below `size`, sometimes any number.
fn offset(t: &mut Tape, near: &[u64], size: u64) -> u64 {
    match t.below(8) {
        0 => t.u64(),
        1 => t.below(size),
        _ => t.one(near) + t.below(16) * 4,
    }
}

/// Timer and software interrupts. The next event must be in the future, and an interrupt must come exactly at such an event.
pub fn aclint(t: &mut Tape) -> Result<(), String> {
    let mut d = Aclint::new(HARTS, ClockHz(100_000_000), 10_000_000);
    let mut now = Cycle(0);
    while t.more() {
        now += Cycle(t.number(0, 100_000) >> 20);
        let size = t.size();
        let at = offset(t, &[0, 0x4000, 0xbff8], Aclint::SIZE);
        let mut copy = restored(&d)?;
        match t.below(3) {
            0 => {
                let value = t.number(d.mtime(now), 1000);
                demand(d.mmio_write(at, size, value, now) == copy.mmio_write(at, size, value, now), || {
                    "a write has other effects after restore()".into()
                })?;
            }
            _ => demand(d.mmio_read(at, size, now) == copy.mmio_read(at, size, now), || {
                "a read differs after restore()".into()
            })?,
        }
        let next = d.next_event(now);
        demand(next > now && next == copy.next_event(now), || {
            format!("the next event is at {}, now it is {}", next.0, now.0)
        })?;
        // The event may be an interrupt that was pending before, because the time wraps around at the end of its range.
        if next < Cycle::NEVER {
            let before = Cycle(next.0 - 1);
            demand((0..HARTS).any(|h| d.mtip(h, next)), || {
                format!("no interrupt at {}, the time of the next event", next.0)
            })?;
            // A timer with the largest number in its compare register is off.
            let on = |h: usize| d.mtimecmp(h) != u64::MAX;
            let early = (0..HARTS).any(|h| on(h) && d.mtip(h, before) && !d.mtip(h, now));
            demand(!early, || format!("an interrupt comes before {}", next.0))?;
        }
        d = copy;
    }
    Ok(())
}

/// The interrupt controller. A claimed source must be high and enabled, have a priority, and be claimed only once.
pub fn plic(t: &mut Tape) -> Result<(), String> {
    const CONTEXTS: usize = 2 * HARTS;
    let mut d = Plic::new(CONTEXTS);
    let mut level = [false; 64];
    let mut claimed = [false; 64];
    while t.more() {
        let mut copy = restored(&d)?;
        let size = t.size();
        match t.below(6) {
            0 => {
                let (source, high) = (t.below(70) as u32, t.below(2) == 1);
                d.set_level(source, high);
                copy.set_level(source, high);
                if (1..64).contains(&source) {
                    level[source as usize] = high;
                }
            }
            1 => {
                let context = t.below(CONTEXTS as u64);
                let enabled =
                    |d: &mut Plic, s: u64| d.mmio_read(0x2000 + context * 0x80 + s / 32 * 4, 4) >> (s % 32) & 1 == 1;
                let at = 0x20_0004 + context * 0x1000;
                let best = d.mmio_read(at, 4);
                demand(best == copy.mmio_read(at, 4), || "a claim differs after restore()".into())?;
                if best != 0 {
                    let n = best as usize;
                    demand(n < 64 && level[n] && !claimed[n], || format!("claimed {n}, which is not pending"))?;
                    demand(enabled(&mut d, best) && d.mmio_read(4 * best, 4) > 0, || {
                        format!("claimed {n}, which is disabled or has priority 0")
                    })?;
                    claimed[n] = true;
                    if t.below(2) == 0 {
                        d.mmio_write(at, 4, best);
                        copy.mmio_write(at, 4, best);
                        claimed[n] = false;
                    }
                }
            }
            2 => {
                let value = t.number(0, 64);
                let at = offset(t, &[0, 0x1000, 0x2000, 0x2080, 0x20_0000], Plic::SIZE);
                // Do not write to a claim register: that would complete a claim, and only the case above counts completions.
                if at & 0xfff == 4 && at >= 0x20_0000 {
                    continue;
                }
                demand(d.mmio_write(at, size, value) == copy.mmio_write(at, size, value), || {
                    "a write has other effects after restore()".into()
                })?;
            }
            3 => {
                let at = offset(t, &[0, 0x1000, 0x2000, 0x2080], 0x20_0000) % 0x20_0000;
                demand(d.mmio_read(at, size) == copy.mmio_read(at, size), || "a read differs after restore()".into())?;
            }
            _ => {
                // Enable a source and give it a priority, so that it can be claimed.
                let (source, context) = (1 + t.below(63), t.below(CONTEXTS as u64));
                for d in [&mut d, &mut copy] {
                    d.mmio_write(4 * source, 4, 1 + (source & 3));
                    d.mmio_write(0x2000 + context * 0x80 + source / 32 * 4, 4, 0xffff_ffff);
                }
            }
        }
        let pending = |d: &Plic| (0..CONTEXTS).map(|c| d.pending(c)).collect::<Vec<_>>();
        demand(pending(&d) == pending(&copy), || "an interrupt differs after restore()".into())?;
        demand(pending(&d).iter().all(|p| !p) || level.iter().any(|l| *l), || {
            "an interrupt although no source is high".into()
        })?;
        d = copy;
    }
    Ok(())
}

/// The console. All typed bytes must arrive in order, and exactly the written bytes must go out.
pub fn uart(t: &mut Tape) -> Result<(), String> {
    let mut d = Uart::new();
    let mut typed: VecDeque<u8> = VecDeque::new();
    let mut waiting = 0u64;
    while t.more() {
        let mut copy = Uart::new();
        demand(copy.restore(restored(&d.save())?), || "restore() refuses a saved state".into())?;
        let latched = d.mmio_read(3, 1) & 0x80 != 0;
        let loops = d.mmio_read(4, 1) & 0x10 != 0;
        match t.below(4) {
            0 => {
                let bytes = t.u64().to_le_bytes();
                let bytes = &bytes[..t.below(4) as usize];
                typed.extend(bytes);
                waiting += bytes.len() as u64;
                d.push_input(bytes);
                copy.push_input(bytes);
            }
            1 => {
                let (at, size, value) = (offset(t, &[0], 8) % 10, t.size(), t.u64());
                // Not in loopback mode: such a write would become input that was not typed.
                if at == 4 && value & 0x10 != 0 || at == 0 && loops {
                    continue;
                }
                demand(d.mmio_write(at, size, value) == copy.mmio_write(at, size, value), || {
                    "a write has other effects after restore()".into()
                })?;
                let out = d.take_output();
                demand(out == copy.take_output(), || "the output differs after restore()".into())?;
                let wanted: &[u8] = if at == 0 && !latched { &[value as u8] } else { &[] };
                demand(out == wanted, || format!("writes {out:?}, should be {wanted:?}"))?;
            }
            2 if !latched && d.mmio_read(5, 1) & 1 == 1 => {
                let (a, b) = (d.mmio_read(0, 1), copy.mmio_read(0, 1));
                let expected = typed.pop_front().map(u64::from);
                waiting -= 1;
                demand(a == b && Some(a) == expected, || format!("reads {a:#x}, should be {expected:x?}"))?;
            }
            _ => {
                let (at, size) = (1 + t.below(12), t.size());
                demand(d.mmio_read(at, size) == copy.mmio_read(at, size), || "a read differs after restore()".into())?;
            }
        }
        demand(waiting == typed.len() as u64, || "input is lost".into())?;
        demand(d.irq_asserted() == copy.irq_asserted(), || "the interrupt differs after restore()".into())?;
        d = copy;
    }
    Ok(())
}

/// PCIe. Read-only registers must keep their values, and a device must only get accesses inside its window.
pub fn pcie(t: &mut Tape) -> Result<(), String> {
    const BAR: u64 = 0x4000;
    const WINDOW: u64 = 0x4000_0000;
    let ids = PciIds { vendor: 1, device: 2, class: 3, revision: 4 };
    let mut d = PciHost::new(PhysAddr(WINDOW), WINDOW);
    for device in [1, 2, 31, 32, usize::MAX] {
        d.add(device, PciFunction::endpoint(ids, BAR));
    }
    while t.more() {
        let mut copy = restored(&d)?;
        let size = t.size();
        let at = match t.below(8) {
            0 => t.u64(),
            1 => t.below(PciHost::ECAM_SIZE),
            _ => t.one(&[1, 2, 31]) << 15 | (t.below(64) * 4 + t.below(2) * t.below(4)),
        };
        match t.below(4) {
            0 => {
                let value = t.number(WINDOW, WINDOW);
                demand(d.config_write(at, size, value) == copy.config_write(at, size, value), || {
                    "a write has other effects after restore()".into()
                })?;
            }
            1 => demand(d.config_read(at, size) == copy.config_read(at, size), || {
                "a read differs after restore()".into()
            })?,
            2 => {
                let (device, high) = (t.below(40) as usize, t.below(2) == 1);
                d.set_interrupt(device, high);
                copy.set_interrupt(device, high);
            }
            _ => {
                // Give the device a window and enable decoding, as the guest does.
                for d in [&mut d, &mut copy] {
                    d.config_write(at & !0x7fff | 0x10, 4, WINDOW + (at & 0xff0) * BAR);
                    d.config_write(at & !0x7fff | 4, 2, 6);
                }
            }
        }
        demand(d.lines() == copy.lines(), || "an interrupt differs after restore()".into())?;
        for device in [1u64, 2, 31] {
            demand(d.config_read(device << 15, 4) == 2 << 16 | 1, || {
                format!("device {device} has other identifiers now")
            })?;
            let base = d.config_read(device << 15 | 0x10, 4) & !0xf;
            demand(base.is_multiple_of(BAR), || format!("the window of device {device} begins at {base:#x}"))?;
        }
        let target = PhysAddr(t.number(WINDOW, 0x40_0000));
        let routed = d.route(target, size);
        demand(routed == copy.route(target, size), || "a route differs after restore()".into())?;
        if let Some((device, offset)) = routed {
            demand(offset + u64::from(size) <= BAR, || {
                format!("offset {offset:#x} is beyond device {device}'s window")
            })?;
            let function = d.function(device);
            demand(function.is_some_and(PciFunction::memory_enabled), || {
                format!("device {device} answers although its memory space is disabled")
            })?;
            let base = d.config_read((device as u64) << 15 | 0x10, 4) & !0xf;
            demand(target.0 == base + offset, || {
                format!("an access to {:#x} went to offset {offset:#x} of device {device}", target.0)
            })?;
        }
        d = copy;
    }
    Ok(())
}

/// The finisher. Only its commands may end a run.
pub fn finisher(t: &mut Tape) -> Result<(), String> {
    let mut d = Finisher::default();
    while t.more() {
        let (at, size) = (offset(t, &[0], Finisher::SIZE) & !3, t.size());
        let value = if t.below(2) == 0 { t.u64() } else { t.one(&[0x5555, 0x7777, 0x3333]) | t.u64() << 16 };
        let expected = (at == 0 && size >= 2).then_some(value & 0xffff).and_then(|command| match command {
            0x5555 => Some(Finish::PowerOff),
            0x7777 => Some(Finish::Reset),
            0x3333 => Some(Finish::Fail(if size > 2 { (value >> 16 & 0xffff) as u16 } else { 0 })),
            _ => None,
        });
        let got = d.mmio_write(at, size, value);
        demand(got == expected, || format!("{value:#x} at {at:#x}: {got:?}, should be {expected:?}"))?;
        demand(d.mmio_read(at, size) == 0, || "a read does not return zero".into())?;
    }
    Ok(())
}
