// SPDX-License-Identifier: Apache-2.0
//! The controller: its parts, how its state is saved, and how it is reset or fails.
//!
//! Other files add the operations, each using the ones before it: `completion` (completion queue entries), `io` and
//! `admin` (commands), `serve` (events in the order of time), `mmio` (registers and doorbells).

use serde::{Deserialize, Serialize};
use trapless_memory::{ClockHz, Cycle};
use trapless_timing::{SsdParams, SsdState, SsdTiming};

use crate::config::ControllerConfig;
use crate::fault::{Fault, FaultError, Faults};
use crate::feature::Features;
use crate::in_flight::{Events, InFlightSet};
use crate::log::Logs;
use crate::namespace::{MAX_NAMESPACES, Namespace};
use crate::queue::{CompletionQueue, SubmissionQueue};
use crate::{Backend, BackendError, Written, regs};

/// The controller with its SSD.
///
/// ```
/// use trapless_memory::{ClockHz, Cycle};
/// use trapless_nvme::{Controller, ControllerConfig, ImageMode, open_image};
/// use trapless_timing::{SsdParams, SsdTiming};
///
/// let image = tempfile::NamedTempFile::new()?;
/// image.as_file().set_len(1 << 20)?;
/// let drive = SsdParams::load("z-ssd")?;
/// let config = ControllerConfig {
///     serial: "1".into(),
///     max_transfer_pages: drive.max_transfer_pages,
///     max_io_queues: drive.max_io_queues,
///     max_queue_entries: drive.max_queue_entries,
/// };
/// let timing = SsdTiming::new(&drive, ClockHz(2_800_000_000), 0);
/// let mut nvme = Controller::new(config, timing, vec![(open_image(image.path(), ImageMode::Snapshot)?, 512)]);
/// assert_eq!(nvme.formats().collect::<Vec<_>>(), [(2048, 512)]);
/// // The version register says NVMe 1.4. Nothing is due before the host has enabled the controller.
/// assert_eq!(nvme.mmio_read(0x08, 4, Cycle(0)), 0x0001_0400);
/// assert_eq!(nvme.next_event(), Cycle::NEVER);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Controller {
    pub(crate) config: ControllerConfig,
    /// Namespaces in the order of their identifiers, which begin with 1.
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) timing: SsdTiming,
    pub(crate) cc: u32,
    pub(crate) csts: u32,
    pub(crate) aqa: u32,
    pub(crate) asq: u64,
    pub(crate) acq: u64,
    /// Interrupt mask.
    pub(crate) intm: u32,
    /// Queues by identifier; 0 is the admin queue.
    pub(crate) sqs: Vec<Option<SubmissionQueue>>,
    pub(crate) cqs: Vec<Option<CompletionQueue>>,
    pub(crate) in_flight: InFlightSet,
    pub(crate) features: Features,
    pub(crate) logs: Logs,
    pub(crate) events: Events,
    pub(crate) faults: Faults,
    /// The device was taken out of its slot: registers read all ones, and the controller does nothing any more.
    pub(crate) removed: bool,
    /// Time of the latest event that was served.
    pub(crate) clock: Cycle,
    /// Time of the next event.
    pub(crate) next: Cycle,
    pub(crate) buffer: Vec<u8>,
    pub(crate) host_error: Option<BackendError>,
}

/// Saved state of a controller, without its configuration, its faults and its SSD's image.
#[derive(Serialize, Deserialize)]
pub struct ControllerState {
    cc: u32,
    csts: u32,
    aqa: u32,
    asq: u64,
    acq: u64,
    intm: u32,
    sqs: Vec<Option<SubmissionQueue>>,
    cqs: Vec<Option<CompletionQueue>>,
    in_flight: InFlightSet,
    features: Features,
    logs: Logs,
    events: Events,
    removed: bool,
    clock: Cycle,
    next: Cycle,
    busy: SsdState,
    /// For each namespace: its size in bytes, its block size, and the data written over its image in memory.
    namespaces: Vec<(u64, u32, Written)>,
}

impl Controller {
    /// Size of the BAR in bytes.
    pub const BAR_SIZE: u64 = 0x4000;

    /// Creates a controller after power on. `contents` lists its namespaces, 1 to [`MAX_NAMESPACES`]: the contents of each,
    /// and the size of its logical block, 512 or 4096 bytes.
    pub fn new(config: ControllerConfig, timing: SsdTiming, contents: Vec<(Box<dyn Backend>, u32)>) -> Controller {
        let mut begin = 0;
        let namespace = |(backend, block_bytes): (Box<dyn Backend>, u32)| {
            let block_bytes = if block_bytes == 4096 { 4096 } else { 512 };
            let namespace = Namespace { block_bytes, begin, backend };
            begin += namespace.backend.size();
            namespace
        };
        let namespaces = contents.into_iter().take(MAX_NAMESPACES).map(namespace).collect();
        debug_assert!(config.max_transfer_pages.is_power_of_two() && config.max_transfer_pages <= 1024);
        debug_assert!((1..=64).contains(&config.max_io_queues));
        debug_assert!((2..=65_536).contains(&config.max_queue_entries));
        let queues = config.max_io_queues as usize + 1;
        Controller {
            features: Features::new(config.max_io_queues),
            config,
            namespaces,
            timing,
            cc: 0,
            csts: 0,
            aqa: 0,
            asq: 0,
            acq: 0,
            intm: 0,
            sqs: vec![None; queues],
            cqs: vec![None; queues],
            in_flight: InFlightSet::default(),
            logs: Logs::default(),
            events: Events::default(),
            faults: Faults::default(),
            removed: false,
            clock: Cycle(0),
            next: Cycle::NEVER,
            buffer: Vec::new(),
            host_error: None,
        }
    }

    /// Saves the state. Returns `None` if the guest wrote to the image itself, because a state cannot hold an image.
    pub fn save(&self) -> Option<ControllerState> {
        Some(ControllerState {
            cc: self.cc,
            csts: self.csts,
            aqa: self.aqa,
            asq: self.asq,
            acq: self.acq,
            intm: self.intm,
            sqs: self.sqs.clone(),
            cqs: self.cqs.clone(),
            in_flight: self.in_flight.clone(),
            features: self.features.clone(),
            logs: self.logs.clone(),
            events: self.events.clone(),
            removed: self.removed,
            clock: self.clock,
            next: self.next,
            busy: self.timing.save(),
            namespaces: self
                .namespaces
                .iter()
                .map(|ns| Some((ns.backend.size(), ns.block_bytes, ns.backend.written()?)))
                .collect::<Option<_>>()?,
        })
    }

    /// Restores a saved state.
    ///
    /// # Errors
    /// Says what differs: the number of queues or namespaces, the size or format of an image, or that the state has written
    /// data, which only an image attached as a snapshot can take over.
    pub fn restore(&mut self, state: ControllerState) -> Result<(), &'static str> {
        if state.sqs.len() != self.sqs.len() || state.cqs.len() != self.cqs.len() {
            return Err("has another number of queues than the attached disk");
        }
        if state.namespaces.len() != self.namespaces.len() {
            return Err("has another number of namespaces than the attached disk");
        }
        for (ns, (bytes, block_bytes, written)) in self.namespaces.iter_mut().zip(state.namespaces) {
            if bytes != ns.backend.size() {
                return Err("has another size than the attached disk");
            }
            if block_bytes != ns.block_bytes {
                return Err("has blocks of another size than the attached disk");
            }
            if !ns.backend.set_written(written) {
                return Err("was attached as a snapshot: give the option snapshot again");
            }
        }
        let ControllerState { cc, csts, aqa, asq, acq, intm, sqs, cqs, in_flight, features, logs, events, .. } = state;
        (self.cc, self.csts, self.aqa, self.asq, self.acq, self.intm) = (cc, csts, aqa, asq, acq, intm);
        (self.sqs, self.cqs, self.in_flight) = (sqs, cqs, in_flight);
        (self.features, self.logs, self.events) = (features, logs, events);
        (self.removed, self.clock, self.next) = (state.removed, state.clock, state.next);
        self.timing.restore(&state.busy);
        Ok(())
    }

    /// Returns the namespace with this identifier.
    pub(crate) fn namespace(&self, nsid: u32) -> Option<&Namespace> {
        Namespace::find(&self.namespaces, nsid)
    }

    /// Returns the parameters of the SSD behind the controller.
    pub fn ssd(&self) -> &SsdParams {
        self.timing.params()
    }

    /// Returns for each namespace the number of logical blocks, and the size of a block in bytes.
    pub fn formats(&self) -> impl Iterator<Item = (u64, u32)> {
        self.namespaces.iter().map(|ns| (ns.blocks(), ns.block_bytes))
    }

    /// Resets the controller. Only the registers of the admin queues, the logs and the faults keep their values.
    pub(crate) fn reset(&mut self) {
        self.csts = 0;
        self.intm = 0;
        self.stop();
        self.sqs.fill(None);
        self.cqs.fill(None);
        self.features = Features::new(self.config.max_io_queues);
        self.timing.reset();
    }

    /// Tells whether the controller is ready and has not failed.
    pub(crate) fn running(&self) -> bool {
        self.csts & (regs::CSTS_RDY | regs::CSTS_CFS) == regs::CSTS_RDY
    }

    /// Sets Controller Fatal Status until the host resets the controller, because memory did not answer at a queue's address.
    pub(crate) fn fatal(&mut self) {
        self.csts |= regs::CSTS_CFS;
        self.stop();
    }

    /// Takes the device out of its slot.
    pub(crate) fn remove(&mut self) {
        self.reset();
        self.removed = true;
    }

    /// Tells whether the device was taken out of its slot.
    pub fn is_removed(&self) -> bool {
        self.removed
    }

    fn stop(&mut self) {
        self.in_flight = InFlightSet::default();
        self.events = Events::default();
    }

    /// Returns the cycle of the next event, or [`Cycle::NEVER`] if no event is due.
    pub fn next_event(&self) -> Cycle {
        self.next
    }

    /// Adds a fault. `clock` converts its times to cycles.
    ///
    /// # Errors
    /// Refuses a fault that could never happen, because its blocks, its namespace or its queue cannot exist.
    pub fn inject(&mut self, fault: Fault, clock: ClockHz) -> Result<(), FaultError> {
        self.faults.add(fault, clock, &self.namespaces, self.config.max_io_queues)
    }

    /// Returns the text of each fault, and the number of commands that it has struck.
    pub fn faults(&self) -> impl Iterator<Item = (&str, u64)> {
        self.faults.iter()
    }

    /// Returns the first failure of the host since the machine started. The guest has seen a media error; the program
    /// should print this error when it ends.
    pub fn host_error(&self) -> Option<&BackendError> {
        self.host_error.as_ref()
    }
}
