# SPDX-License-Identifier: Apache-2.0
"""The bench: the SMU with walkers, memory, devices and an operating system around it."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable

import cocotb
from cocotb.clock import Clock
from cocotb.handle import HierarchyObject
from cocotb.triggers import ClockCycles, RisingEdge

from rtl.smu.dv.coverage import cover, save
from rtl.smu.dv.doorbells import Doorbells
from rtl.smu.dv.memory import Memory
from rtl.smu.dv.nvme import Device
from rtl.smu.dv.spec import get, reg
from rtl.smu.dv.system import System
from rtl.smu.dv.walkers import Wait, Walkers
from rtl.smu.dv.world import Sizes, World

# Period of the clock.
PERIOD_NS = 10
LIMIT = 30_000 + 3 * int(os.environ.get("SMU_CYCLES", "0"))
"""Limit in cycles for one test: a few times as many as any test takes."""
CHANNELS = ("m_axi_aw", "m_axi_w", "m_axi_ar", "s_axil_b", "s_axil_r", "s_axil_aw", "s_axil_w", "s_axil_ar")


class Bench:
    """The SMU and everything around it, from reset on."""

    def __init__(self, dut: HierarchyObject, seed: int = 1, **sizes: int) -> None:
        """Make the devices and the scoreboard. Nothing runs yet."""
        logging.getLogger("cocotb.trapless_smu").setLevel(logging.WARNING)
        self.dut, self.rng = dut, random.Random(seed)
        harts = len(dut.req_valid_i)
        built = {"harts": harts, "pmshr": int(os.environ["SMU_PMSHR"]), "devices": int(os.environ["SMU_DEVICES"])}
        self.world = World(Sizes(**built | sizes), self.rng, atomics=os.environ.get("SMU_ATOMICS") == "1")
        self.world.devices = [Device(self.world, d, self.rng) for d in range(self.world.sizes.devices)]
        self.snooping = 0.0
        """Share of completions that the snoop port sees."""

    @classmethod
    async def start(cls, dut: HierarchyObject, frames: int = 8, seed: int = 1, **sizes: int) -> Bench:
        """A bench that is set up, with this number of `frames` in the ring."""
        bench = cls(dut, seed, **sizes)
        await bench.reset()
        await bench.os.set_up(frames)
        await ClockCycles(dut.clk_i, 60)
        return bench

    async def reset(self) -> None:
        """Start the clock, everything around the SMU, and the reset."""
        dut = self.dut
        dut.rst_ni.value = 0
        dut.snoop_valid_i.value = dut.snoop_addr_i.value = 0
        Clock(dut.clk_i, PERIOD_NS, "ns").start()
        self.memory = Memory(dut, self.world.ram, self.world, self.rng)
        self.doorbells = Doorbells(dut, self.world, self.rng)
        self.walkers = Walkers(dut, self.world, self.rng)
        self.os = System(dut, self.world, self.walkers, self.rng)
        await ClockCycles(dut.clk_i, 4)
        self._carries()
        dut.rst_ni.value = 1
        await RisingEdge(dut.clk_i)
        cocotb.start_soon(self.walkers.run())
        cocotb.start_soon(self._devices())
        cocotb.start_soon(self._watch())

    def _carries(self) -> None:
        """Check AxPROT and AxUSER of both masters against the build (REQ: SMU-15): non-secure, unprivileged data and stream 0,
        unless the build has other values."""
        prot, stream, bits = (int(os.environ.get(f"SMU_{name}", value)) for name, value in (("PROT", 2), ("STREAM", 0),
                                                                                           ("STREAM_BITS", 1)))
        for signal, value, width in (("prot", prot, 3), ("user", stream, bits)):
            for name, count in (("m_axi_aw", 1), ("m_axi_ar", 1), ("m_db_aw", self.world.sizes.devices)):
                found, mask = int(getattr(self.dut, name + signal).value), (1 << width) - 1
                as_built = all(found >> width * i & mask == value for i in range(count))
                assert as_built, f"SMU-15: {name}{signal}: {found:#x}"

    async def _devices(self) -> None:
        """Drive the devices and the snoop port in each cycle."""
        dut, seen = self.dut, []
        for device in self.world.devices:
            device.posted = seen.append
        while True:
            await RisingEdge(dut.clk_i)
            for device in self.world.devices:
                if device.pending:
                    device.step()
            if seen or dut.snoop_valid_i.value:
                at = seen.pop(0) if seen else 0
                told = bool(at) and self.rng.random() < self.snooping
                dut.snoop_valid_i.value, dut.snoop_addr_i.value = int(told), at
                if told:
                    cover("snoop.completion")

    async def _watch(self) -> None:
        """Look for a stall of each channel, in some cycles only, because each look costs host time; check that the test ends."""
        dut, left = self.dut, set(CHANNELS)
        while True:
            await ClockCycles(dut.clk_i, 3)
            assert self.world.cycle < LIMIT, f"SMU-10: no end within {LIMIT} cycles: the test waits for ever"
            for channel in list(left):
                if getattr(dut, f"{channel}valid").value == 1 and getattr(dut, f"{channel}ready").value == 0:
                    cover(f"stall.{channel}")
                    left.remove(channel)

    async def cycles(self, count: int) -> None:
        """Let time pass."""
        await ClockCycles(self.dut.clk_i, count)

    async def until(self, holds: Callable[[], object], limit: int = 2000) -> None:
        """Wait until `holds` is true, `limit` cycles at most."""
        for _ in range(limit):
            if holds():
                return
            await RisingEdge(self.dut.clk_i)
        raise AssertionError(f"the condition did not become true within {limit} cycles")

    async def at_device(self, d: int, count: int = 1) -> None:
        """Wait until device `d` has fetched at least `count` commands."""
        await self.until(lambda: len(self.world.devices[d].pending) >= count)

    async def answered(self, *waits: Wait) -> None:
        """Wait for answers."""
        await self.until(lambda: all(wait.outcome for wait in waits))

    async def last_error(self) -> tuple[int, int]:
        """Status and reason in LAST_ERROR."""
        value = await self.os.read(reg("LAST_ERROR"))
        return get("REG_LAST_ERROR_STATUS", value), get("REG_LAST_ERROR_REASON", value)

    async def finish(self) -> None:
        """End a test: check that no rule was broken and that nothing is left."""
        await self.os.finish()
        self.keep()

    def keep(self) -> None:
        """Save the coverage. A test that breaks the contract itself ends with this, because the checks of `finish` would fail."""
        save(f"run-{os.environ['SMU_RUN']}")
