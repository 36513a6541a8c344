# SPDX-License-Identifier: Apache-2.0
"""The output that lets the clock stop. REQ: SMU-18"""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import DONE, FAILED, reg

SOON = 100
"""Cycles within which `idle_o` must follow."""


async def rests(bench: Bench) -> None:
    """Check that the unit becomes idle, and stays so."""
    for _ in range(SOON):
        await bench.cycles(1)
        if bench.dut.idle_o.value:
            break
    for _ in range(SOON):
        assert bench.dut.idle_o.value, "SMU-18: not idle although nothing is under way"
        await bench.cycles(1)


async def works(bench: Bench) -> None:
    """Check that the unit is not idle, for a while."""
    await bench.cycles(20)
    for _ in range(SOON):
        assert not bench.dut.idle_o.value, "SMU-18: idle while something is under way"
        await bench.cycles(1)


@cocotb.test()
async def idle_while_nothing_is_under_way(dut: HierarchyObject) -> None:
    """The unit is not idle while a command is at a device or in quarantine, or a walker waits. A full return ring does not keep
    it from being idle."""
    bench = await Bench.start(dut, frames=3)
    os, world = bench.os, bench.world
    await rests(bench)
    await os.write(reg("TIMEOUT"), 400)
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    await works(bench)
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("TIMEOUT"))
    await os.write(reg("TIMEOUT"), 0)
    await works(bench)
    world.devices[0].complete()
    await bench.cycles(100)
    assert await os.take_returned() == ["timeout"]
    await rests(bench)
    cover("idle.rest")
    # More malformed entries than the return ring takes.
    await os.write(reg("CTRL"), 0)
    await bench.cycles(200)
    await os.take_returned()
    await bench.cycles(200)
    await os.write(reg("CTRL"), 1)
    await os.refill(world.sizes.ret_entries + 2, spoil_dma=8)
    await bench.cycles(400)
    assert await os.read(reg("RET_TAIL")) - os.head == world.sizes.ret_entries
    await rests(bench)
    cover("idle.return_ring_full")
    while await os.take_returned():
        await bench.cycles(200)
    await rests(bench)
    await os.refill(4)
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    world.devices[0].complete()
    await bench.answered(wait)
    assert wait.is_(DONE)
    await bench.finish()


@cocotb.test()
async def idle_ends_with_a_doorbell_that_is_not_taken(dut: HierarchyObject) -> None:
    """A doorbell write that a device does not take counts as under way, however long it lasts. So does the next write. REQ:
    SMU-14"""
    bench = await Bench.start(dut)
    world = bench.world
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    bench.doorbells.silent.add(0)
    world.devices[0].complete()
    await bench.answered(wait)
    await bench.cycles(40)
    assert await bench.os.status("NO_DMA") == 1
    await works(bench)
    bench.doorbells.silent.clear()
    await rests(bench)
    cover("idle.doorbell")
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(channel=["b_channel", "r_channel"])
async def not_idle_while_a_register_answer_waits(dut: HierarchyObject, channel: str) -> None:
    """REQ: SMU-18. For a while the master does not take the answer of a write, or of a read."""
    bench = await Bench.start(dut)
    os = bench.os
    await rests(bench)
    answers = getattr(os.axil.read_if if channel == "r_channel" else os.axil.write_if, channel)
    answers.pause = True
    access = cocotb.start_soon(os.read(reg("CAP")) if channel == "r_channel" else os.write(reg("TIMEOUT"), 0))
    await works(bench)
    assert not access.done()
    answers.pause = False
    await access
    await rests(bench)
    await bench.finish()
