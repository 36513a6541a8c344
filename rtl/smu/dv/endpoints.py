# SPDX-License-Identifier: Apache-2.0
"""Devices that are slow to take doorbells, do not answer them, or take none. REQ: SMU-8, SMU-10, SMU-14"""

from __future__ import annotations

import os

import cocotb
from cocotb.handle import HierarchyObject
from cocotb.triggers import RisingEdge

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import DONE, FAILED, desc, mask, reg

LIMIT = int(os.environ.get("SMU_DOORBELL", "0"))
"""Cycles that a doorbell write may take."""
ACCESS = 60
"""Limit in cycles for a register access, with memory that answers in the next cycle."""


async def ringing(bench: Bench, d: int) -> None:
    """Wait until a doorbell write is shown to the device."""
    await bench.until(lambda: bench.doorbells.ringing(d))


async def quickly(bench: Bench, offset: int, value: int | None = None) -> int:
    """Access a register, within ACCESS cycles. Return the value that was read."""
    access = cocotb.start_soon(bench.os.read(offset) if value is None else bench.os.write(offset, value))
    for _ in range(ACCESS):
        if access.done():
            return access.result() or 0
        await RisingEdge(bench.dut.clk_i)
    raise AssertionError(f"SMU-10: no answer of register {offset:#x} within {ACCESS} cycles")


@cocotb.test()
async def a_device_that_takes_no_doorbell_stops_nobody_else(dut: HierarchyObject) -> None:
    """Misses, fences and registers of other devices still work. Misses at the silent device fail in bounded time. REQ: SMU-8,
    SMU-10, SMU-14"""
    bench = await Bench.start(dut)
    world, walkers = bench.world, bench.walkers
    waits = {1: walkers.ask(1, 1)}
    await bench.at_device(1)
    bench.doorbells.silent.add(0)
    stuck = walkers.ask(0, 0)
    await ringing(bench, 0)
    await bench.os.begin(1)
    world.devices[1].complete()
    await bench.until(lambda: waits[1].outcome, 80)
    assert waits[1].is_(DONE), "SMU-10: a miss of another device waits for a doorbell"
    assert await quickly(bench, desc(1, "FENCE")) == 0, "SMU-8: a fence waits for a doorbell of another device"
    also = walkers.ask(2, 2)  # the same device: its doorbell is due
    for page in (3, 5):
        wait = walkers.ask(1, page)
        await bench.at_device(1)
        world.devices[1].complete()
        await bench.until(lambda: wait.outcome, 80)  # noqa: B023
        assert wait.is_(DONE)
    for offset, value in ((desc(1, "CTRL"), 0), (desc(1, "RELEASE"), 0), (desc(1, "NSID"), 2), (desc(0, "CTRL"), 1)):
        await quickly(bench, offset, value)
    assert not stuck.outcome and not also.outcome
    await bench.until(lambda: stuck.outcome and also.outcome, LIMIT)
    assert stuck.is_(FAILED, reason("BUS")) and also.is_(FAILED, reason("BUS")), "SMU-14: not failed(bus)"
    assert await bench.os.status("ERROR") == 1 and (await bench.last_error())[1] == reason("BUS")
    assert (await bench.os.status("LIVE"), await bench.os.status("QUARANTINED")) == (0, 2)
    assert [await bench.os.read(desc(d, "QUARANTINED")) for d in (0, 1)] == [2, 0], "SMU-7: not counted at their descriptor"
    await bench.os.fence(0)
    refused = walkers.ask(3, 4)
    await bench.answered(refused)
    assert refused.is_(FAILED, reason("DESCRIPTOR"))
    cover("descriptor.silent")
    # AXI does not let the unit withdraw the write, so no other queue pair can use the descriptor yet.
    await quickly(bench, desc(0, "CTRL"), 0)
    world.devices[0].pending.clear()
    world.devices[0].deleted = True
    await quickly(bench, desc(0, "RELEASE"), 0)
    assert await quickly(bench, desc(0, "CTRL")) == mask("DESC_CTRL_RINGING"), "SMU-14: an old doorbell write is forgotten"
    cover("release.ringing")
    await quickly(bench, desc(0, "CTRL"), 1)
    assert await quickly(bench, desc(0, "CTRL")) == mask("DESC_CTRL_RINGING"), "SMU-14: valid while an old doorbell is rung"
    cover("release.refused")
    await bench.cycles(2 * LIMIT)
    bench.doorbells.silent.clear()
    await bench.cycles(20)
    assert await quickly(bench, desc(0, "CTRL")) == 0, "SMU-14: a doorbell write is never over"
    assert [area for area, _ in world.trace].count("sq_bell") == 4, "SMU-9: the doorbell that was due was rung"
    for d in (0, 1):
        world.devices[d].reset()
        await bench.os.set_up_descriptor(d)
        assert await bench.os.read(desc(d, "CTRL")) == 1
        again = walkers.ask(d, 6 + d)
        await bench.at_device(d)
        world.devices[d].complete()
        await bench.answered(again)
        assert again.is_(DONE)
    await bench.finish()


@cocotb.test()
async def a_flood_of_completions_delays_no_timeout(dut: HierarchyObject) -> None:
    """One device posts completions as fast as the SMU takes them. Commands of another device do not time out later than usual.
    REQ: SMU-7, SMU-10"""
    bench = await Bench.start(dut)
    world, os, limit = bench.world, bench.os, 100
    other = bench.walkers.ask(1, 1)
    await bench.at_device(1)
    await os.write(reg("TIMEOUT"), limit)
    for number in range(40):
        wait = bench.walkers.ask(0, 2)
        await bench.at_device(0)
        start = world.cycle
        while not wait.outcome:
            world.devices[1].stray(world.sizes.pmshr, "beyond")
            await RisingEdge(dut.clk_i)
            # The unit checks one entry per cycle, so each entry once in `pmshr` cycles.
            late = world.cycle - start - limit
            assert late <= world.sizes.pmshr + 2, f"SMU-7: a flood of completions delays a time-out by {late} cycles"
        assert wait.is_(FAILED, reason("TIMEOUT"))
        world.devices[0].complete()
        await bench.cycles(20 + number % world.sizes.pmshr)
        await os.take_returned()
        await os.refill(1)
    assert not other.outcome
    await bench.finish()
