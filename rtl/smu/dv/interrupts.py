# SPDX-License-Identifier: Apache-2.0
"""The interrupt output: each cause by itself, as long as it lasts. REQ: SMU-17"""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import DONE, FAILED, mask, reg

NAMES = ("ERROR", "FRAMES_LOW", "RETURNED", "TIMEOUT")
CAUSES = {name: mask(f"REG_INT_CAUSE_{name}") for name in NAMES}
ALL = sum(CAUSES.values())


async def causes(bench: Bench, *there: str) -> None:
    """Check that exactly these causes are set, and that the output is high only for them."""
    found = await bench.os.read(reg("INT_CAUSE"))
    assert found == sum(CAUSES[name] for name in there), f"SMU-17: causes {found:#x}, not {there}"
    for name, bit in CAUSES.items():
        for enabled, high in ((bit, name in there), (ALL & ~bit, any(other != name for other in there))):
            await bench.os.write(reg("INT_ENABLE"), enabled)
            await bench.cycles(4)
            assert bool(bench.dut.irq_o.value) == high, f"SMU-17: the output is wrong: causes {there}, enabled {enabled:#x}"
    for name in there:
        cover(f"interrupt.{name.lower()}")
    await bench.os.write(reg("INT_ENABLE"), 0)


@cocotb.test()
async def each_cause_lasts_as_long_as_it_should(dut: HierarchyObject) -> None:
    """REQ: SMU-17"""
    bench = await Bench.start(dut)
    os, world = bench.os, bench.world
    await causes(bench)
    left = os.tail - await os.read(reg("FREE_HEAD"))
    await os.write(reg("FREE_LOW"), left)
    await causes(bench)
    await os.write(reg("FREE_LOW"), left + 1)
    await causes(bench, "FRAMES_LOW")
    await os.write(reg("FREE_LOW"), 0)
    await os.write(reg("TIMEOUT"), 100)
    wait = bench.walkers.ask(0, 0)
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("TIMEOUT"))
    await causes(bench, "TIMEOUT")
    await os.write(reg("INT_CAUSE") + 4, 0xffff_ffff, 4)
    await os.write(reg("INT_CAUSE"), ALL & ~CAUSES["TIMEOUT"])
    await causes(bench, "TIMEOUT")
    await os.write(reg("INT_CAUSE"), CAUSES["TIMEOUT"])
    await causes(bench)
    world.devices[0].complete()
    await bench.cycles(60)
    await causes(bench, "RETURNED")
    await os.take_returned()
    await causes(bench)
    assert await os.failed_with_error(reg("RET_SIZE"), 1)
    await os.write(reg("RET_SIZE"), 1)
    await causes(bench, "ERROR")
    await os.write(reg("FREE_LOW"), 1000)
    await os.write(reg("CTRL"), 0)
    await bench.cycles(200)
    await os.take_returned()
    await bench.cycles(200)
    await os.take_returned()
    await causes(bench)
    await os.write(reg("CTRL"), 1)
    await bench.finish()


@cocotb.test()
async def a_completion_in_time_is_no_time_out(dut: HierarchyObject) -> None:
    """Completions at every moment around the limit: TIMEOUT reports the misses that failed, and no others."""
    bench = await Bench.start(dut)
    os, world = bench.os, bench.world
    await os.write(reg("TIMEOUT"), 100)
    found = set()
    for early in range(60):
        wait = bench.walkers.ask(0, 0)
        await bench.at_device(0)
        await bench.cycles(60 + early)
        world.devices[0].complete()
        await bench.answered(wait)
        await bench.cycles(40)
        told = bool(await os.read(reg("INT_CAUSE")) & CAUSES["TIMEOUT"])
        assert told == wait.is_(FAILED, reason("TIMEOUT")), f"SMU-17: the outcome is {wait.outcome}, but TIMEOUT is {told}"
        found.add(wait.outcome)
        await os.write(reg("INT_CAUSE"), CAUSES["TIMEOUT"])
        await os.take_returned()
        if wait.outcome == DONE:
            os.adopt(0)
            await os.withdraw(0)
            os.arm(0)
        await os.refill(2)
    assert found == {DONE, FAILED}
    await bench.finish()
