# SPDX-License-Identifier: Apache-2.0
"""Fences, drains and EXPIRE, each of one descriptor. REQ: SMU-8, SMU-12"""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import DONE, FAILED, desc, mask, reg


@cocotb.test()
async def a_fence_waits_for_the_device_but_not_for_quarantine_and_a_drain_does(dut: HierarchyObject) -> None:
    """REQ: SMU-8"""
    bench = await Bench.start(dut)
    os = bench.os
    await os.fence(0)
    await os.fence(0, "DRAIN")
    await os.write(reg("TIMEOUT"), 400)
    bench.walkers.ask(0, 0)
    await bench.at_device(0)
    await os.begin(0, "FENCE")
    await os.begin(0, "DRAIN")
    await bench.cycles(50)
    assert await os.busy(0, "FENCE") and await os.busy(0, "DRAIN")
    await os.write(reg("TIMEOUT"), 0)
    later = bench.walkers.ask(1, 2)
    await bench.at_device(0, 2)
    await bench.cycles(420)
    assert not await os.busy(0, "FENCE") and not later.outcome, "SMU-8: a fence waits for a later miss"
    assert await os.busy(0, "DRAIN"), "SMU-8: a drain is over while a command is in quarantine"
    bench.world.devices[0].complete(0)
    await bench.cycles(100)  # the build GATED looks at a queue every 64 cycles
    assert not await os.busy(0, "DRAIN") and await os.status("LIVE") == 1
    for _ in range(3):
        await os.begin(0, "FENCE")
    assert await os.busy(0, "FENCE")
    bench.world.devices[0].complete(0)
    await bench.answered(later)
    await bench.cycles(20)
    assert not await os.busy(0, "FENCE")
    cover("fence.again")
    await bench.finish()


@cocotb.test()
async def a_fence_is_of_one_descriptor(dut: HierarchyObject) -> None:
    """Only requests at a silent device wait for it, and no longer than software wants. REQ: SMU-8, SMU-12"""
    bench = await Bench.start(dut)
    os = bench.os
    waits = [bench.walkers.ask(hart, hart) for hart in (0, 1)]
    await bench.at_device(0)
    await bench.at_device(1)
    for d in (0, 1):
        await os.begin(d, "FENCE")
        await os.begin(d, "DRAIN")
        assert await os.busy(d, "FENCE") and await os.busy(d, "DRAIN")
    bench.world.devices[1].complete(0)
    await bench.answered(waits[1])
    await bench.cycles(20)
    assert await os.read(desc(1, "FENCE")) == 0, "SMU-8: a fence waits for another device"
    assert await os.busy(0, "FENCE") and not waits[0].outcome
    cover("fence.of_one")
    other = bench.walkers.ask(1, 3)
    await bench.at_device(1)
    await os.expire(0)
    await bench.answered(waits[0])
    await bench.cycles(40)
    assert waits[0].is_(FAILED, reason("TIMEOUT"))
    assert not other.outcome, "SMU-12: the time of another device's commands ran out"
    assert not await os.busy(0, "FENCE") and await os.busy(0, "DRAIN")
    assert (await os.status("LIVE"), await os.status("QUARANTINED")) == (1, 1)
    cover("fence.expired")
    bench.world.devices[0].complete(0)
    bench.world.devices[1].complete(0)
    await bench.answered(other)
    await bench.cycles(40)
    assert await os.read(desc(0, "FENCE")) == 0
    await bench.finish()


@cocotb.test()
async def fences_and_drains_are_begun_apart_or_together(dut: HierarchyObject) -> None:
    """Each is begun by its own bit, and by nothing else. REQ: SMU-8"""
    bench = await Bench.start(dut)
    os, both = bench.os, mask("DESC_FENCE_FENCE") | mask("DESC_FENCE_DRAIN")
    at = desc(0, "FENCE")
    for page, written in enumerate((mask("DESC_FENCE_FENCE"), mask("DESC_FENCE_DRAIN"), both)):
        page *= bench.world.sizes.devices
        wait = bench.walkers.ask(0, page)
        await bench.at_device(0)
        for address, value, size in ((at, 0, 8), (at, 2**64 - 1 & ~both, 8), (at + 4, 2**32 - 1, 4)):
            await os.write(address, value, size)
            assert await os.read(at) == 0, f"SMU-8: begun by {value:#x} at {address:#x}"
        await os.write(at, written)
        assert await os.read(at) == written, "SMU-8: FENCE does not show what was begun"
        await os.write(at, 0)
        later = bench.walkers.ask(1, page + bench.world.sizes.devices * 3)
        await bench.at_device(0, 2)
        # This write begins nothing, so no fence waits for the later miss.
        await os.write(at + 4, 2**32 - 1, 4)
        bench.world.devices[0].complete(0)
        await bench.answered(wait)
        await bench.cycles(20)
        assert await os.read(at) == 0 and not later.outcome, "SMU-8: begun again by the other half"
        bench.world.devices[0].complete(0)
        await bench.answered(later)
    await bench.finish()


@cocotb.test()
async def only_commands_at_the_device_expire(dut: HierarchyObject) -> None:
    """EXPIRE does not affect the next command of a PMSHR entry, whichever entry the unit checks at that time. REQ: SMU-12"""
    bench = await Bench.start(dut)
    os, device = bench.os, bench.world.devices[0]
    for phase in range(2 * bench.world.sizes.pmshr):
        wait = bench.walkers.ask(0, 0)
        await bench.at_device(0)
        await bench.cycles(phase)
        await os.expire(0)
        await bench.answered(wait)
        assert wait.is_(FAILED, reason("TIMEOUT"))
        device.complete(0)
        await bench.cycles(40)
        again = bench.walkers.ask(0, 0)
        await bench.at_device(0)
        await bench.cycles(3 * bench.world.sizes.pmshr)
        assert not again.outcome, "SMU-12: the time of a later command ran out"
        device.complete(0)
        await bench.answered(again)
        assert again.is_(DONE)
        await os.take_returned()
        await os.withdraw(0)
        await os.refill(2)
        assert os.arm(0)
    await bench.finish()
