// SPDX-License-Identifier: Apache-2.0
//! The C interface of the simulated unit (rtl/smu/sim/pins.h).

use std::ffi::{CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null;

use libloading::{Library, Symbol};

use crate::error::RtlError;

const MAX_HARTS: usize = 32;
const MAX_DATA_WORDS: usize = 8;

/// Parameters of the RTL with which a library was built.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Number of PMSHR entries.
    pub pmshr_entries: u32,
    /// Number of walkers.
    pub harts: u32,
    /// Number of software request ports.
    pub ports: u32,
    /// Number of queue descriptors.
    pub devices: u32,
    /// Number of frames to prefetch.
    pub prefetch: u32,
    /// Number of misses whose page table entries are updated at the same time.
    pub updaters: u32,
    /// Width of the AXI data bus in bits.
    pub data_width: u32,
    /// Width of AXI identifiers in bits.
    pub axi_id_width: u32,
    /// Cycles between two polls of a completion queue.
    pub poll_interval: u32,
    /// Socket number.
    pub socket: u32,
}

impl Parameters {
    /// Returns the parameters as arguments for rtl/smu/sim/build.py.
    pub fn arguments(&self) -> String {
        let p = self;
        let list = [
            ("pmshr", p.pmshr_entries),
            ("harts", p.harts),
            ("ports", p.ports),
            ("devices", p.devices),
            ("prefetch", p.prefetch),
            ("updaters", p.updaters),
            ("data_width", p.data_width),
            ("axi_id_width", p.axi_id_width),
            ("poll_interval", p.poll_interval),
            ("socket", p.socket),
        ];
        list.map(|(name, value)| format!("{name}={value}")).join(" ")
    }

    /// Returns the path of the library for these parameters in `folder`.
    pub fn library(&self, folder: &Path) -> PathBuf {
        let p = self;
        folder.join(format!(
            "smu-p{}-h{}-q{}-d{}-f{}-u{}-w{}-i{}-t{}-s{}.so",
            p.pmshr_entries,
            p.harts,
            p.ports,
            p.devices,
            p.prefetch,
            p.updaters,
            p.data_width,
            p.axi_id_width,
            p.poll_interval,
            p.socket
        ))
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestPins {
    pub pte_addr: u64,
    pub pmd_addr: u64,
    pub pud_addr: u64,
    pub pte: u64,
    pub id: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponsePins {
    pub id: u64,
    pub outcome: u64,
    pub reason: u64,
    pub pte: u64,
}

#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub req: [RequestPins; MAX_HARTS],
    pub snoop_addr: u64,
    pub rdata: [u64; MAX_DATA_WORDS],
    pub csr_wdata: u64,
    pub req_valid: u32,
    pub abandon: u32,
    pub bid: u32,
    pub rid: u32,
    pub csr_awaddr: u32,
    pub csr_araddr: u32,
    pub csr_wstrb: u32,
    pub snoop_valid: u8,
    pub awready: u8,
    pub wready: u8,
    pub bvalid: u8,
    pub bresp: u8,
    pub arready: u8,
    pub rvalid: u8,
    pub rresp: u8,
    pub rlast: u8,
    pub csr_awvalid: u8,
    pub csr_wvalid: u8,
    pub csr_bready: u8,
    pub csr_arvalid: u8,
    pub csr_rready: u8,
}

#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    pub rsp: [ResponsePins; MAX_HARTS],
    pub awaddr: u64,
    pub araddr: u64,
    pub wdata: [u64; MAX_DATA_WORDS],
    pub wstrb: u64,
    pub csr_rdata: u64,
    pub req_ready: u32,
    pub rsp_valid: u32,
    pub awid: u32,
    pub arid: u32,
    pub port_busy: u32,
    pub port_asking: u32,
    pub awvalid: u8,
    pub awlen: u8,
    pub awsize: u8,
    pub awlock: u8,
    pub wvalid: u8,
    pub wlast: u8,
    pub bready: u8,
    pub arvalid: u8,
    pub arlen: u8,
    pub arsize: u8,
    pub arlock: u8,
    pub rready: u8,
    pub csr_awready: u8,
    pub csr_wready: u8,
    pub csr_bvalid: u8,
    pub csr_bresp: u8,
    pub csr_arready: u8,
    pub csr_rvalid: u8,
    pub csr_rresp: u8,
    pub irq: u8,
}

/// A simulated unit.
pub struct Unit {
    smu: *mut c_void,
    tick: unsafe extern "C" fn(*mut c_void, *const Inputs, *mut Outputs),
    peek: unsafe extern "C" fn(*mut c_void, u32) -> u64,
    skip: unsafe extern "C" fn(*mut c_void, u64),
    free: unsafe extern "C" fn(*mut c_void),
    pub parameters: Parameters,
    /// Keeps the library loaded, because the functions above are part of it.
    _library: Library,
}

impl Unit {
    /// Loads the library and creates a unit in its state after reset. Writes a waveform to `trace` if the library supports it.
    pub fn load(path: &Path, trace: Option<&Path>) -> Result<Unit, RtlError> {
        let wrong = |e: libloading::Error| RtlError::Load(path.into(), e.to_string());
        let trace = trace.map(|t| CString::new(t.to_string_lossy().as_bytes()).unwrap_or_default());
        // SAFETY: The library is built from rtl/smu/sim, which does nothing when loaded; the types match pins.h.
        unsafe {
            let library = Library::new(path).map_err(wrong)?;
            let get: Symbol<'_, unsafe extern "C" fn(*mut Parameters)> =
                library.get(b"smu_get_parameters").map_err(wrong)?;
            let make: Symbol<'_, unsafe extern "C" fn(*const c_char) -> *mut c_void> =
                library.get(b"smu_new").map_err(wrong)?;
            let mut parameters = Parameters::default();
            get(&mut parameters);
            Ok(Unit {
                tick: *library.get(b"smu_tick").map_err(wrong)?,
                peek: *library.get(b"smu_peek").map_err(wrong)?,
                skip: *library.get(b"smu_skip").map_err(wrong)?,
                free: *library.get(b"smu_free").map_err(wrong)?,
                smu: make(trace.as_ref().map_or(null(), |t| t.as_ptr())),
                parameters,
                _library: library,
            })
        }
    }

    /// Simulates one clock cycle.
    pub fn tick(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        // SAFETY: `smu` is alive as long as `self`; both structs are laid out as in pins.h.
        unsafe { (self.tick)(self.smu, inputs, outputs) }
    }

    /// Returns the value of a register without a bus access.
    pub fn peek(&self, offset: u32) -> u64 {
        // SAFETY: `smu` is alive; the call does not change it, and `Unit` is not `Sync`.
        unsafe { (self.peek)(self.smu, offset) }
    }

    /// Advances the time by cycles in which nothing happens.
    pub fn skip(&mut self, cycles: u64) {
        // SAFETY: `smu` is alive.
        unsafe { (self.skip)(self.smu, cycles) }
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        // SAFETY: `smu` came from `smu_new`, and nothing uses it afterwards.
        unsafe { (self.free)(self.smu) }
    }
}
