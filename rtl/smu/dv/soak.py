# SPDX-License-Identifier: Apache-2.0
"""Random walkers, software, devices, memory and operating system. A seed determines the run.

REQ: SMU-1, SMU-2, SMU-3, SMU-4, SMU-5, SMU-6, SMU-7, SMU-8, SMU-9, SMU-10, SMU-11,
SMU-13, SMU-15"""

from __future__ import annotations

import os
import random

import cocotb
from cocotb.handle import HierarchyObject
from cocotb.triggers import ClockCycles, Event, First, with_timeout

from rtl.smu.dv.bench import PERIOD_NS, Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.places import FIRMWARE, FREE_RING, NEAR
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import FAILED, PFN_MASK, get, mask, names_block, reg, window
from rtl.smu.dv.windows import everything
from rtl.smu.dv.world import NEVER

FAULTS = ("pte", "pmd", "pud", "sq", "cq", "sq_bell", "cq_bell", "free", "ret",
          "pte.write", "pte.write", "pmd.write", "pud.write")
"""Areas that fail. Some fail only on writes, because an entry whose read fails is never written."""


class Soak:
    """The actors of one run."""

    def __init__(self, bench: Bench, faults: bool, number: int) -> None:
        """Choose random properties of devices and memory. Four runs in a row have four different shares of pauses."""
        self.bench, self.faults, self.rng = bench, faults, random.Random(bench.rng.random())
        self.over = self.quiet = False
        rng, memory = self.rng, bench.memory
        bench.world.tolerates_same = bench.os.wandering = True
        memory.pause((0, 0.2, 0.5, 0.8)[number % 4])
        top = rng.choice((0, 3, 30))
        memory.latency = lambda: rng.randint(0, top)
        bench.doorbells.pauses, bench.doorbells.latency = rng.choice((0, 0.2, 0.7)), lambda: rng.randint(0, top)
        memory.claims_lost = rng.choice((0, 0.1, 0.4))
        bench.snooping = rng.choice((0, 0.5, 1.0))
        for channel in (bench.os.axil.write_if.b_channel, bench.os.axil.read_if.r_channel):
            channel.set_pause_generator(memory._pauses(0.3, 4))
        bench.os.halves = rng.choice((0, 0.2))
        slow = rng.choice((40, 300))
        for device in bench.world.devices:
            device.delay = lambda: self.delay(slow)
            device.status = lambda: rng.randint(1, 0x7fff) if rng.random() < 0.08 else 0

    def delay(self, slow: int) -> int:
        """Cycles that a command takes."""
        rng = self.rng
        if rng.random() < 0.02:
            return NEVER
        return rng.choice((1, rng.randint(5, slow), rng.randint(5, slow), rng.randint(300, 900)))

    async def pause(self, longest: int) -> None:
        """Wait some cycles, at most `longest`."""
        await ClockCycles(self.bench.dut.clk_i, self.rng.randint(1, longest))

    async def hart(self, hart: int) -> None:
        """Act as a walker that misses on random pages and may be interrupted."""
        walkers, world, rng = self.bench.walkers, self.bench.world, self.rng
        while not self.over:
            await self.pause(rng.choice((2, 20, 60)))
            page = rng.randrange(world.sizes.pages)
            pte = world.pte(page)
            if not names_block(pte) or pte & mask("PTE_SOFT"):
                continue
            if rng.random() < 0.1:
                await self.pause(40)  # the entry may change meanwhile
            if self.quiet:
                continue
            wait = walkers.ask(hart, page, seen=pte)
            if rng.random() < 0.25:
                await First(wait.over.wait(), ClockCycles(self.bench.dut.clk_i, rng.choice((1, 2, 4, 8, 30, 150))))
                walkers.give_up(hart)
            await wait.over.wait()

    async def port(self, number: int) -> None:
        """Act as software that asks through a port."""
        os, world, rng = self.bench.os, self.bench.world, self.rng
        while not self.over:
            await self.pause(300)
            page = rng.randrange(world.sizes.pages)
            if world.windows and not self.quiet and rng.random() < 0.2:
                at = [world.pte_at(page), world.pmd_at(page), world.pud_at(page)]
                at[rng.randrange(3)] = FIRMWARE
                wait = await os.ask_port(number, page, addresses=tuple(at))
                assert wait.outcome == FAILED and (wait.is_(FAILED, reason("BUS")) or wait.is_(FAILED, reason("DISABLED"))), \
                    f"SMU-15: {wait}"
            elif names_block(pte := world.pte(page)) and not self.quiet:
                await os.ask_port(number, page, seen=pte, halves=rng.random() < 0.2)

    async def system(self, cycles: int) -> None:
        """Act as the operating system."""
        bench, os, world, rng = self.bench, self.bench.os, self.bench.world, self.rng
        while world.cycle < cycles:
            await self.pause(60)
            page, d = rng.randrange(world.sizes.pages), rng.randrange(world.sizes.devices)
            match rng.choices(
                ("refill", "returned", "withdraw", "adopt", "fence", "expire", "timeout", "disable", "release", "stray", "late",
                 "spoil", "slow", "interrupt", "neglect", "window", "fault", "silent"),
                (16, 8, 24, 6, 3, 1, 2, 1, 2, 2, 2, 1, 2, 1, 1, 1, 3 if self.faults else 0, 1 if self.faults else 0),
            )[0]:
                case "refill":
                    await os.refill(rng.randint(1, 8))
                case "returned":
                    await os.take_returned()
                case "withdraw":
                    cocotb.start_soon(self.renew(page))
                case "adopt":
                    os.adopt(page)
                case "fence":
                    cocotb.start_soon(os.fence(d, rng.choice(("FENCE", "DRAIN"))))
                case "expire":
                    await os.expire(d)
                case "timeout":
                    await os.write(reg("TIMEOUT"), rng.choice((0, 100, 400, 400, 1000)))
                case "disable":
                    await os.write(reg("CTRL"), 0)
                    await self.pause(100)
                    await os.take_returned()
                    await os.write(reg("CTRL"), 1)
                case "release":
                    if rng.random() < 0.5:
                        cocotb.start_soon(self.slow(d))
                    await os.invalidate(d)
                    await self.pause(100)
                    await os.release(d)
                    await os.set_up_descriptor(d)
                case "stray":
                    world.devices[d].stray(rng.randrange(world.sizes.pmshr, 64) | rng.getrandbits(10) << 6, "beyond")
                case "late":
                    world.devices[d].late()
                case "spoil":
                    await os.refill(1, spoil_dma=rng.randint(1, 4095))
                case "slow":
                    await self.slow(d)
                case "interrupt":
                    await os.write(reg("FREE_LOW"), rng.choice((0, 2, 12)))
                    await os.write(reg("INT_ENABLE"), rng.randrange(16))
                    await os.write(reg("INT_CAUSE"), mask("REG_INT_CAUSE_TIMEOUT"))
                case "silent":
                    ends = rng.choice((bench.doorbells.silent, bench.doorbells.mute))
                    ends.add(d)
                    await self.pause(1200)
                    await self.mend()
                case "neglect":
                    await self.pause(2000)
                case "window":  # a window that is not in force and cannot be changed now
                    if await os.status("LIVE"):
                        await os.write(window(3, "FIRST"), rng.getrandbits(56) & -4096)
                case "fault":
                    world.fault_share, world.effect_share = rng.choice((0.3, 0.6, 1.0)), rng.choice((0.0, 0.5, 1.0))
                    world.faults |= set(rng.choices(FAULTS, k=rng.randint(1, 4)))
                    disables = rng.random() < 0.5
                    for _ in range(8):
                        cocotb.start_soon(self.slow(d))
                        await os.refill(rng.randint(1, 4))
                        await self.pause(100)
                        await os.take_returned()
                    if disables:
                        await os.write(reg("CTRL"), 0)
                        await self.pause(400)
                    await self.mend()
        self.over = True

    async def slow(self, d: int) -> None:
        """Let a device take no doorbell for a while, but not longer than a write may take."""
        self.bench.doorbells.silent.add(d)
        await self.pause(300)
        self.bench.doorbells.silent.discard(d)

    async def renew(self, page: int) -> None:
        """Take a page away and arm it again."""
        os = self.bench.os
        if page not in os.withdrawn:
            await os.withdraw(page)
            await self.pause(20)
            os.arm(page, other_block=self.rng.random() < 0.7, soft=self.rng.random() < 0.2)

    async def mend(self) -> None:
        """Recover from bus errors: stop, delete the queues, set up the rings and queues again."""
        os, world = self.bench.os, self.bench.world
        self.quiet = True  # set-up is refused while anything is under way
        world.faults.clear()
        self.bench.doorbells.silent.clear()
        self.bench.doorbells.mute.clear()
        await os.write(reg("CTRL"), 0)
        for d in range(world.sizes.devices):
            await os.invalidate(d)
            await os.release(d)
        while any(self.bench.walkers.waits) or world.ports or not await os.status("IDLE"):
            await self.pause(50)
        await os.mend_return_ring()
        while not await os.status("NO_FRAMES"):
            await self.pause(50)
            await os.take_returned()
        head, size = await os.read(reg("FREE_HEAD")), world.sizes.free_entries
        for i in range(head, os.tail):
            world.take_back(world.frame(world.ram.read(FREE_RING + 16 * (i % size)) & PFN_MASK))
        await os.write(reg("FREE_BASE"), FREE_RING)
        os.tail = 0
        for d in range(world.sizes.devices):
            await os.set_up_descriptor(d)
        await os.write(reg("CTRL"), 0)  # idle now: clears the error
        await os.write(reg("CTRL"), 1)
        assert await os.status("ERROR") == 0, "SMU-10: nothing clears STATUS.ERROR"
        self.quiet = False


async def play(dut: HierarchyObject, faults: bool) -> None:
    """One run."""
    seed, cycles = int(os.environ["SMU_SEED"]), int(os.environ["SMU_CYCLES"])
    number = 2 * seed + faults
    bench = Bench(dut, number)
    await bench.reset()
    if NEAR:
        await bench.os.set_windows(everything())
        cover("window.soak")
    await bench.os.set_up(12)
    await bench.cycles(60)
    soak = Soak(bench, faults, number)
    actors = [cocotb.start_soon(soak.hart(hart)) for hart in range(bench.world.sizes.harts)]
    ports = get("REG_CAP_PORTS", await bench.os.read(reg("CAP")))
    actors += [cocotb.start_soon(soak.port(number)) for number in range(ports)]
    await soak.system(bench.world.cycle + cycles)
    for device in bench.world.devices:
        device.delay = lambda: 0
        for command in device.pending:
            command.due = 0
    bench.world.faults.clear()
    left = Event()

    async def watch() -> None:
        for actor in actors:
            await actor
        left.set()

    cocotb.start_soon(watch())
    for _ in range(400):
        if left.is_set():
            break
        await bench.os.take_returned()
        await bench.cycles(50)
    assert left.is_set(), f"SMU-10: a walker or port waits for ever: {bench.walkers.waits} {bench.world.ports}"
    await bench.cycles(500)
    await bench.finish()


async def play_in_time(dut: HierarchyObject, faults: bool) -> None:
    """One run with a time limit, so that a unit that never rests fails the test."""
    cycles = int(os.environ["SMU_CYCLES"])
    await with_timeout(play(dut, faults), 5 * cycles * PERIOD_NS, "ns")


@cocotb.test()
async def no_rule_is_broken_without_bus_errors(dut: HierarchyObject) -> None:
    """A random run without bus errors."""
    await play_in_time(dut, faults=False)


@cocotb.test()
async def no_rule_is_broken_with_bus_errors_everywhere(dut: HierarchyObject) -> None:
    """A random run with bus errors."""
    await play_in_time(dut, faults=True)
