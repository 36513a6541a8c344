// SPDX-License-Identifier: Apache-2.0
//! The supervisor binary interface, served by the machine itself (RISC-V SBI specification 2.0).
//!
//! No firmware instruction is executed: a call costs the profile's `sbi_call` cycles and takes effect at once. Extensions: base,
//! timer, IPI, remote fence, hart state, system reset, debug console and the legacy console that `earlycon=sbi` uses.

/// Numbers of the registers a0, a1, a6 and a7.
pub const A0: u8 = 10;
pub const A1: u8 = 11;
pub const A6: u8 = 16;
pub const A7: u8 = 17;

/// Result codes.
pub mod error {
    /// Done.
    pub const SUCCESS: i64 = 0;
    /// The call does not exist.
    pub const NOT_SUPPORTED: i64 = -2;
    /// An argument is wrong.
    pub const INVALID_PARAM: i64 = -3;
    /// An address is wrong.
    pub const INVALID_ADDRESS: i64 = -5;
    /// Already in that state.
    pub const ALREADY_AVAILABLE: i64 = -6;
}

const EXT_BASE: u64 = 0x10;
const EXT_TIME: u64 = 0x5449_4d45;
const EXT_IPI: u64 = 0x73_5049;
const EXT_RFENCE: u64 = 0x5246_4e43;
const EXT_HSM: u64 = 0x48_534d;
const EXT_SRST: u64 = 0x5352_5354;
const EXT_DBCN: u64 = 0x4442_434e;
const EXT_LEGACY_SET_TIMER: u64 = 0;
const EXT_LEGACY_PUTCHAR: u64 = 1;
const EXT_LEGACY_GETCHAR: u64 = 2;
const EXT_LEGACY_SHUTDOWN: u64 = 8;

/// Specification version 2.0, as `sbi_get_spec_version` encodes it.
const SPEC_VERSION: u64 = 2 << 24;
/// Implementation id: "TPL", which is not a registered number.
const IMPLEMENTATION_ID: u64 = 0x54_504c;

/// A set of harts: a mask, and the hart of its bit 0. `base == u64::MAX` means all harts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HartMask {
    /// The mask.
    pub mask: u64,
    /// Hart of bit 0.
    pub base: u64,
}

impl HartMask {
    /// The harts of the set; `None` if one of them does not exist.
    pub fn harts(self, count: usize) -> Option<Vec<usize>> {
        if self.base == u64::MAX {
            return Some((0..count).collect());
        }
        let mut out = Vec::new();
        for bit in 0..64 {
            if self.mask >> bit & 1 == 1 {
                let hart = self.base.checked_add(bit).filter(|h| *h < count as u64)?;
                out.push(hart as usize);
            }
        }
        Some(out)
    }
}

/// What an SBI call asks the machine to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Answer at once with this value.
    Value(u64),
    /// No such call.
    NotSupported,
    /// Program the calling hart's supervisor timer for this tick of `time`.
    SetTimer(u64),
    /// Raise the supervisor software interrupt.
    SendIpi(HartMask),
    /// `fence.i` on other harts.
    FenceI(HartMask),
    /// `sfence.vma` on other harts: start and size in bytes. Both zero, or a size of all ones, means all addresses.
    SfenceVma(HartMask, u64, u64),
    /// Start a stopped hart: hart, address, value of a1.
    HartStart(u64, u64, u64),
    /// Stop the calling hart.
    HartStop,
    /// Status of a hart.
    HartStatus(u64),
    /// Default suspend: wait for an interrupt.
    HartSuspend,
    /// Power off (0), cold reboot (1) or warm reboot (2); the reason.
    Reset(u64, u64),
    /// Write bytes from physical memory to the console: length, address.
    ConsoleWrite(u64, u64),
    /// Write one byte to the console.
    ConsoleByte(u8),
    /// Legacy write of one byte: answers in a0 only.
    LegacyPut(u8),
    /// Legacy read: never returns a byte.
    LegacyGet,
}

/// Decodes a call from the extension id, function id and arguments.
pub fn decode(extension: u64, function: u64, args: [u64; 5]) -> Call {
    let mask = HartMask { mask: args[0], base: args[1] };
    match (extension, function) {
        (EXT_BASE, 0) => Call::Value(SPEC_VERSION),
        (EXT_BASE, 1) => Call::Value(IMPLEMENTATION_ID),
        (EXT_BASE, 2) => Call::Value(1),
        (EXT_BASE, 3) => Call::Value(u64::from(supported(args[0]))),
        (EXT_BASE, 4..=6) => Call::Value(0),
        (EXT_TIME, 0) | (EXT_LEGACY_SET_TIMER, _) => Call::SetTimer(args[0]),
        (EXT_IPI, 0) => Call::SendIpi(mask),
        (EXT_RFENCE, 0) => Call::FenceI(mask),
        // There are no ASIDs, so the variants with an ASID fence the same entries.
        (EXT_RFENCE, 1 | 2) => Call::SfenceVma(mask, args[2], args[3]),
        (EXT_HSM, 0) => Call::HartStart(args[0], args[1], args[2]),
        (EXT_HSM, 1) => Call::HartStop,
        (EXT_HSM, 2) => Call::HartStatus(args[0]),
        (EXT_HSM, 3) if args[0] == 0 => Call::HartSuspend,
        (EXT_SRST, 0) => Call::Reset(args[0], args[1]),
        (EXT_LEGACY_SHUTDOWN, _) => Call::Reset(0, 0),
        (EXT_DBCN, 0) => Call::ConsoleWrite(args[0], args[1]),
        (EXT_DBCN, 1) => Call::Value(0),
        (EXT_DBCN, 2) => Call::ConsoleByte(args[0] as u8),
        (EXT_LEGACY_PUTCHAR, _) => Call::LegacyPut(args[0] as u8),
        (EXT_LEGACY_GETCHAR, _) => Call::LegacyGet,
        _ => Call::NotSupported,
    }
}

fn supported(extension: u64) -> bool {
    matches!(
        extension,
        EXT_BASE
            | EXT_TIME
            | EXT_IPI
            | EXT_RFENCE
            | EXT_HSM
            | EXT_SRST
            | EXT_DBCN
            | EXT_LEGACY_SET_TIMER
            | EXT_LEGACY_PUTCHAR
            | EXT_LEGACY_GETCHAR
            | EXT_LEGACY_SHUTDOWN
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hart_masks_refuse_harts_that_do_not_exist() {
        assert_eq!(HartMask { mask: 0b101, base: 1 }.harts(4), Some(vec![1, 3]));
        assert_eq!(HartMask { mask: 0b1000, base: 1 }.harts(4), None);
        assert_eq!(HartMask { mask: 1, base: u64::MAX - 1 }.harts(4), None);
        assert_eq!(HartMask { mask: 0, base: u64::MAX }.harts(2), Some(vec![0, 1]));
    }

    #[test]
    fn unknown_calls_are_not_supported() {
        assert_eq!(decode(0xdead, 0, [0; 5]), Call::NotSupported);
        assert_eq!(decode(EXT_TIME, 1, [0; 5]), Call::NotSupported);
        assert_eq!(decode(EXT_HSM, 3, [0x8000_0000, 0, 0, 0, 0]), Call::NotSupported);
    }
}
