// SPDX-License-Identifier: Apache-2.0
//! The device tree that the machine hands to the guest.

use trapless_devices::Region;
use trapless_memory::Paging;
use vm_fdt::{Error, FdtWriter};

use crate::board::map;

/// The part of the device tree that is not the fixed map.
#[derive(Clone, Debug)]
pub struct FdtConfig<'a> {
    /// Number of harts.
    pub harts: u32,
    /// Number of harts of a core.
    pub threads: u32,
    /// RAM in bytes.
    pub memory: u64,
    /// The clock of harts and SMU in hertz.
    pub clock_hz: u64,
    /// Frequency of `mtime` in hertz.
    pub timebase_hz: u64,
    /// Kernel command line.
    pub bootargs: &'a str,
    /// Physical start and end of the initial RAM disk.
    pub initrd: Option<(u64, u64)>,
    /// Whether there is an SMU that the harts can ask.
    pub smu: bool,
    /// The deepest mode of virtual memory.
    pub paging: Paging,
}

/// The ratified extensions of every hart, as `riscv,isa-extensions` lists them.
const EXTENSIONS: [&str; 9] = ["i", "m", "a", "f", "d", "c", "zicntr", "zicsr", "zifencei"];
/// The extension that handles armed entries in hardware (spec/isa.md).
const PAGING_EXTENSION: &str = "xtraplesshwdp";

const PHANDLE_PLIC: u32 = 1;
const PHANDLE_FINISHER: u32 = 2;
const PHANDLE_HART0: u32 = 0x10;
/// Handle of the first hart. The handles above it belong to the harts' interrupt controllers.
const PHANDLE_CPU0: u32 = 0x100;

/// Interrupt numbers at a hart's local controller (privileged specification, mcause).
const IRQ_M_SOFT: u32 = 3;
const IRQ_M_TIMER: u32 = 7;
const IRQ_S_EXT: u32 = 9;
const IRQ_M_EXT: u32 = 11;

/// Builds the flattened device tree of a machine.
///
/// # Errors
/// When a string contains a NUL byte (the user gives the command line).
pub fn build(cfg: &FdtConfig<'_>) -> Result<Vec<u8>, Error> {
    let mut f = FdtWriter::new()?;
    let root = f.begin_node("")?;
    f.property_u32("#address-cells", 2)?;
    f.property_u32("#size-cells", 2)?;
    f.property_string("compatible", "trapless,machine")?;
    f.property_string("model", "Trapless machine")?;
    chosen(&mut f, cfg)?;
    memory(&mut f, cfg)?;
    cpus(&mut f, cfg)?;
    soc(&mut f, cfg)?;
    f.end_node(root)?;
    f.finish()
}

fn reg(f: &mut FdtWriter, region: Region) -> Result<(), Error> {
    f.property_array_u64("reg", &[region.base, region.size])
}

fn strings(f: &mut FdtWriter, name: &str, list: &[&str]) -> Result<(), Error> {
    f.property_string_list(name, list.iter().map(|s| (*s).to_owned()).collect())
}

fn chosen(f: &mut FdtWriter, cfg: &FdtConfig<'_>) -> Result<(), Error> {
    let node = f.begin_node("chosen")?;
    f.property_string("bootargs", cfg.bootargs)?;
    f.property_string("stdout-path", "/soc/serial@10000000")?;
    // A fixed seed: a run must be repeatable, and so the guest's random numbers.
    f.property("rng-seed", &[0x5a; 64])?;
    if let Some((start, end)) = cfg.initrd {
        f.property_u64("linux,initrd-start", start)?;
        f.property_u64("linux,initrd-end", end)?;
    }
    f.end_node(node)
}

fn memory(f: &mut FdtWriter, cfg: &FdtConfig<'_>) -> Result<(), Error> {
    let node = f.begin_node("memory@80000000")?;
    f.property_string("device_type", "memory")?;
    reg(f, Region { base: map::RAM_BASE.0, size: cfg.memory })?;
    f.end_node(node)
}

fn cpus(f: &mut FdtWriter, cfg: &FdtConfig<'_>) -> Result<(), Error> {
    let mut extensions = EXTENSIONS.to_vec();
    let mut isa = String::from("rv64imafdc_zicntr_zicsr_zifencei");
    if cfg.smu {
        extensions.push(PAGING_EXTENSION);
        isa = format!("{isa}_{PAGING_EXTENSION}");
    }
    let cpus = f.begin_node("cpus")?;
    f.property_u32("#address-cells", 1)?;
    f.property_u32("#size-cells", 0)?;
    f.property_u32("timebase-frequency", cfg.timebase_hz as u32)?;
    for hart in 0..cfg.harts {
        let cpu = f.begin_node(&format!("cpu@{hart:x}"))?;
        f.property_string("device_type", "cpu")?;
        f.property_u32("reg", hart)?;
        f.property_string("status", "okay")?;
        f.property_string("compatible", "riscv")?;
        f.property_string("riscv,isa", &isa)?;
        f.property_string("riscv,isa-base", "rv64i")?;
        strings(f, "riscv,isa-extensions", &extensions)?;
        if cfg.threads > 1 {
            f.property_phandle(PHANDLE_CPU0 + hart)?;
        }
        f.property_string("mmu-type", &format!("riscv,{}", cfg.paging))?;
        clock(f, cfg)?;
        let intc = f.begin_node("interrupt-controller")?;
        f.property_u32("#interrupt-cells", 1)?;
        f.property_null("interrupt-controller")?;
        f.property_string("compatible", "riscv,cpu-intc")?;
        f.property_phandle(PHANDLE_HART0 + hart)?;
        f.end_node(intc)?;
        f.end_node(cpu)?;
    }
    if cfg.threads > 1 {
        threads(f, cfg)?;
    }
    f.end_node(cpus)
}

/// Writes the clock. The binding of clocks has one cell for it, so a clock that needs more is left out.
fn clock(f: &mut FdtWriter, cfg: &FdtConfig<'_>) -> Result<(), Error> {
    u32::try_from(cfg.clock_hz).map_or(Ok(()), |hz| f.property_u32("clock-frequency", hz))
}

/// Writes which harts are threads of one core.
fn threads(f: &mut FdtWriter, cfg: &FdtConfig<'_>) -> Result<(), Error> {
    let map = f.begin_node("cpu-map")?;
    let cluster = f.begin_node("cluster0")?;
    let harts: Vec<u32> = (0..cfg.harts).collect();
    for (number, harts) in harts.chunks(cfg.threads as usize).enumerate() {
        let core = f.begin_node(&format!("core{number}"))?;
        for (number, hart) in harts.iter().enumerate() {
            let thread = f.begin_node(&format!("thread{number}"))?;
            f.property_u32("cpu", PHANDLE_CPU0 + hart)?;
            f.end_node(thread)?;
        }
        f.end_node(core)?;
    }
    f.end_node(cluster)?;
    f.end_node(map)
}

/// Value of `interrupts-extended` with two local interrupts of every hart.
fn hart_interrupts(harts: u32, first: u32, second: u32) -> Vec<u32> {
    (0..harts).flat_map(|h| [PHANDLE_HART0 + h, first, PHANDLE_HART0 + h, second]).collect()
}

fn soc(f: &mut FdtWriter, cfg: &FdtConfig<'_>) -> Result<(), Error> {
    let soc = f.begin_node("soc")?;
    f.property_u32("#address-cells", 2)?;
    f.property_u32("#size-cells", 2)?;
    f.property_string("compatible", "simple-bus")?;
    f.property_null("ranges")?;

    let node = f.begin_node("test@100000")?;
    strings(f, "compatible", &["sifive,test1", "sifive,test0", "syscon"])?;
    reg(f, map::FINISHER)?;
    f.property_phandle(PHANDLE_FINISHER)?;
    f.end_node(node)?;
    for (name, value) in [("poweroff", 0x5555), ("reboot", 0x7777)] {
        let node = f.begin_node(name)?;
        f.property_string("compatible", &format!("syscon-{name}"))?;
        f.property_u32("regmap", PHANDLE_FINISHER)?;
        f.property_u32("offset", 0)?;
        f.property_u32("value", value)?;
        f.end_node(node)?;
    }

    let node = f.begin_node("clint@2000000")?;
    strings(f, "compatible", &["sifive,clint0", "riscv,clint0"])?;
    reg(f, map::ACLINT)?;
    f.property_array_u32("interrupts-extended", &hart_interrupts(cfg.harts, IRQ_M_SOFT, IRQ_M_TIMER))?;
    f.end_node(node)?;

    let node = f.begin_node("interrupt-controller@c000000")?;
    strings(f, "compatible", &["sifive,plic-1.0.0", "riscv,plic0"])?;
    reg(f, map::PLIC)?;
    f.property_null("interrupt-controller")?;
    f.property_u32("#interrupt-cells", 1)?;
    f.property_u32("#address-cells", 0)?;
    f.property_u32("riscv,ndev", map::PLIC_NDEV)?;
    f.property_array_u32("interrupts-extended", &hart_interrupts(cfg.harts, IRQ_M_EXT, IRQ_S_EXT))?;
    f.property_phandle(PHANDLE_PLIC)?;
    f.end_node(node)?;

    let node = f.begin_node("serial@10000000")?;
    f.property_string("compatible", "ns16550a")?;
    reg(f, map::UART)?;
    f.property_u32("clock-frequency", 3_686_400)?;
    f.property_u32("interrupt-parent", PHANDLE_PLIC)?;
    f.property_u32("interrupts", map::UART_IRQ)?;
    f.end_node(node)?;

    if cfg.smu {
        let node = f.begin_node("smu@11000000")?;
        f.property_string("compatible", "trapless,smu-2.0")?;
        reg(f, map::SMU)?;
        clock(f, cfg)?;
        f.property_null("dma-coherent")?;
        f.end_node(node)?;
    }
    pcie(f)?;
    f.end_node(soc)
}

fn pcie(f: &mut FdtWriter) -> Result<(), Error> {
    /// Code of 32-bit non-prefetchable memory in the first cell of a PCI address.
    const MEM32: u32 = 0x0200_0000;
    let node = f.begin_node("pcie@30000000")?;
    f.property_string("compatible", "pci-host-ecam-generic")?;
    f.property_string("device_type", "pci")?;
    f.property_u32("#address-cells", 3)?;
    f.property_u32("#size-cells", 2)?;
    f.property_u32("#interrupt-cells", 1)?;
    f.property_array_u32("bus-range", &[0, 0])?;
    f.property_u32("linux,pci-domain", 0)?;
    f.property_null("dma-coherent")?;
    reg(f, map::PCIE_ECAM)?;
    let (base, size) = (map::PCIE_MMIO.base as u32, map::PCIE_MMIO.size as u32);
    f.property_array_u32("ranges", &[MEM32, 0, base, 0, base, 0, size])?;
    // The two low bits of the device number, and the pin, select the source.
    f.property_array_u32("interrupt-map-mask", &[0x1800, 0, 0, 7])?;
    let mut entries = Vec::new();
    for device in 0..4u8 {
        for pin in 1..=4u8 {
            entries.extend([u32::from(device) << 11, 0, 0, u32::from(pin), PHANDLE_PLIC, map::pcie_irq(device, pin)]);
        }
    }
    f.property_array_u32("interrupt-map", &entries)?;
    f.end_node(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a device tree for this number of `harts` contains this clock.
    fn said(harts: u32, smu: bool, clock_hz: u64) -> usize {
        let tree = build(&FdtConfig {
            harts,
            threads: 1,
            memory: 1 << 28,
            clock_hz,
            timebase_hz: 10_000_000,
            bootargs: "",
            initrd: None,
            smu,
            paging: Paging::Sv39,
        })
        .unwrap();
        let word = |at: usize| u32::from_be_bytes(tree[at..at + 4].try_into().unwrap());
        let strings = word(12) as usize;
        let name = tree[strings..].windows(16).position(|s| s == b"clock-frequency\0").unwrap();
        // A property: FDT_PROP, length, name, value.
        let property = [3, 4, name as u32, clock_hz as u32].map(u32::to_be_bytes).concat();
        tree[..strings].chunks(4).collect::<Vec<_>>().windows(4).filter(|words| words.concat() == property).count()
    }

    /// REQ: ISA-7: software converts the cycles of `shwdpwait` into time with this clock.
    #[test]
    fn harts_and_smu_say_their_clock() {
        assert_eq!((said(4, true, 123_456_789), said(4, false, 123_456_789)), (5, 4));
        assert_eq!((said(1, true, 1 << 32), said(1, true, (1 << 32) - 1)), (0, 2));
    }
}
