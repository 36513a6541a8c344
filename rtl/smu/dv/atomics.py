# SPDX-License-Identifier: Apache-2.0
"""A unit that changes page table entries by the atomic accesses of AXI5. REQ: SMU-3, SMU-13, SMU-16"""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.errors import marks, outcome, write_of_pte_fails
from rtl.smu.dv.fabric import WORD, disabled, enabled, serves, tried
from rtl.smu.dv.places import RET_RING
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import CHANGED, DONE, FAILED, mask, of, reg

DATA, RESPONSE, BOTH = (True, False), (False, True), (True, True)
"""Where an AtomicCompare tells of a bus error."""


@cocotb.test()
@cocotb.parametrize(upper=[False, True])
async def an_entry_in_either_half_is_exchanged(dut: HierarchyObject, upper: bool) -> None:
    """The burst of one in the upper half of 16 bytes wraps, its data come in the other order. The neighbour stays as it is."""
    bench = await Bench.start(dut)
    world = bench.world
    pages = [page for page in range(world.sizes.pages) if bool(world.pte_at(page) & 8) == upper]
    assert len(pages) >= 3, "places.py has no such entries"
    for page in pages[:3]:
        beside = world.pte_at(page) ^ 8
        before = world.ram.read(beside)
        wait = bench.walkers.ask(0, page)
        await bench.until(lambda: any(device.pending for device in world.devices))
        for device in world.devices:
            if device.pending:
                device.complete()
        await bench.answered(wait)
        assert wait.is_(DONE) and world.ram.read(beside) == before and world.marked(page)
        cover(f"atomic.{'upper' if upper else 'lower'}")
    await bench.finish()


@cocotb.test()
async def an_entry_that_has_changed_is_left_alone(dut: HierarchyObject) -> None:
    """REQ: SMU-3. The answer has the value found; no mark is set; the frame comes back."""
    bench = await Bench.start(dut)
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    value = of("PTE_PFN", 77) | mask("PTE_V") | mask("PTE_R")
    bench.world.ram.write(bench.world.pte_at(0), value)
    bench.world.devices[0].complete()
    await bench.answered(wait)
    assert wait.is_(CHANGED) and wait.pte == value == bench.world.pte(0) and marks(bench) == [False, False]
    await bench.cycles(100)
    assert await bench.os.take_returned() == ["changed"]
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(where=[DATA, RESPONSE, BOTH], effect=[False, True])
async def an_error_on_either_channel_is_looked_into(dut: HierarchyObject, where: tuple[bool, bool], effect: bool) -> None:
    """REQ: SMU-13. What stands in memory decides, not the data that came with the error."""
    bench = await Bench.start(dut)
    bench.memory.atomic_errors = (where,)
    wait = await write_of_pte_fails(bench, effect)
    assert await outcome(bench, wait) == ([] if effect else ["bus"])
    if effect:
        assert wait.is_(DONE) and marks(bench) == [True, True]
    else:
        assert wait.is_(FAILED, reason("BUS")) and bench.world.pte(0) == wait.seen and marks(bench) == [False, False]
    cover(f"atomic.error_{'both' if where == BOTH else 'data' if where == DATA else 'response'}")
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(fabric=["refused", "plain"])
async def a_fabric_without_atomic_accesses_is_refused(dut: HierarchyObject, fabric: str) -> None:
    """REQ: SMU-16. By an error, or by writing their data: an AtomicCompare would wait for ever there. The word is as it was."""
    bench = await disabled(dut)
    bench.memory.atomics = fabric
    for word in (WORD, 0, 2**64 - 1):
        bench.world.ram.write(RET_RING, word)
        assert not await enabled(bench), "SMU-16: enabled without atomic accesses"
        assert bench.world.ram.read(RET_RING) == word, "SMU-16: the word has changed"
        bench.world.trace.clear()
    cover(f"enable.atomics_{fabric}")
    bench.memory.atomics = "done"
    bench.world.ram.write(RET_RING, WORD)
    await serves(bench)
    assert tried(bench)
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(fault=["ret", "ret.write"], effect=[0.0, 1.0], good=[0, 1, 2, 3])
async def a_bus_error_at_any_step_of_the_test_refuses(dut: HierarchyObject, fault: str, effect: float, good: int) -> None:
    """REQ: SMU-16. On the access after so many good ones. The word is as it was."""
    bench = await disabled(dut)
    world, begun = bench.world, await bench.os.read(reg("RET_TAIL"))
    setting = cocotb.start_soon(enabled(bench))
    reads_and_writes = 0

    def seen() -> bool:
        nonlocal reads_and_writes
        reads_and_writes = sum(area in ("ret", "ret_tried") for area, _ in world.trace)
        return reads_and_writes >= good

    await bench.until(seen)
    world.effect_share = effect
    world.faults.add(fault)
    stays = await setting
    world.faults.clear()
    assert world.ram.read(RET_RING) == WORD, "SMU-16: the word has changed"
    # The last access is a write: nothing that can fail comes behind it.
    assert not stays, "SMU-16: enabled in spite of a bus error"
    assert await bench.os.read(reg("RET_TAIL")) == begun
    await serves(bench)
    await bench.finish()
