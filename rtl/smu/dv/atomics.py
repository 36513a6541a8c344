# SPDX-License-Identifier: Apache-2.0
"""A unit that changes page table entries by the atomic accesses of AXI5. REQ: SMU-3, SMU-13, SMU-16"""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.errors import marks, outcome, write_of_pte_fails
from rtl.smu.dv.fabric import WORDS, disabled, enabled, put, serves, tried, words
from rtl.smu.dv.memory import SLVERR
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import CHANGED, DONE, FAILED, mask, of, reg

DATA, RESPONSE, BOTH = (True, False), (False, True), (True, True)
"""Channels on which an AtomicCompare reports a bus error."""


@cocotb.test()
@cocotb.parametrize(upper=[False, True])
async def an_entry_in_either_half_is_exchanged(dut: HierarchyObject, upper: bool) -> None:
    """For an entry in the upper half of 16 bytes, the burst wraps, and its data come in the other order. The neighbour stays."""
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
    """REQ: SMU-13. The content of memory decides, not the data that came with the error."""
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
@cocotb.parametrize(half=["lower", "upper"])
async def an_entry_that_has_changed_in_one_bit_is_left_alone(dut: HierarchyObject, half: str) -> None:
    """REQ: SMU-3. All 64 bits are compared."""
    bench = await Bench.start(dut)
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    value = wait.seen ^ (1 << (bench.world.rng.randrange(32, 52) if half == "upper" else 12))
    bench.world.ram.write(bench.world.pte_at(0), value)
    bench.world.devices[0].complete()
    await bench.answered(wait)
    assert wait.is_(CHANGED) and wait.pte == value == bench.world.pte(0)
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(area=["pmd", "pud"], effect=[False, True])
async def a_mark_that_fails_leaves_the_doubt(dut: HierarchyObject, area: str, effect: bool) -> None:
    """REQ: SMU-13. The entry cannot be read back, and a mark meets an error, too: the frame comes back with MAPPED."""
    bench = await Bench.start(dut)
    wait = await write_of_pte_fails(bench, effect)
    bench.world.faults |= {"pte", f"{area}.write"}
    assert await outcome(bench, wait) == ["bus mapped"] and wait.is_(FAILED, reason("BUS"))
    await bench.finish()


@cocotb.test()
async def a_doubt_is_of_one_install(dut: HierarchyObject) -> None:
    """REQ: SMU-13. The next frame that comes back from the same updater has no MAPPED bit."""
    bench = await Bench.start(dut)
    wait = await write_of_pte_fails(bench, False)
    bench.world.faults.add("pte")
    assert await outcome(bench, wait) == ["bus mapped"]
    bench.world.faults.clear()
    again = bench.walkers.ask(1, 6)
    await bench.at_device(0)
    bench.world.ram.write(bench.world.pte_at(6), 0)
    bench.world.devices[0].complete()
    await bench.answered(again)
    await bench.cycles(100)
    assert again.is_(CHANGED) and await bench.os.take_returned() == ["changed"]
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(effect=[False, True])
async def nothing_is_read_back_before_the_data_have_come(dut: HierarchyObject, effect: bool) -> None:
    """REQ: SMU-13. The response reports the error, and the data come long after it. They must not count as the read's."""
    bench = await Bench.start(dut)
    memory = bench.memory
    memory.atomic_errors, answer = ((False, True),), memory._answer

    async def late(channel: object, _: int, **fields: int) -> None:
        memory.latency = lambda: 40
        await answer(channel, 20 if channel is memory.r else 1, **fields)

    memory._answer = late
    wait = await write_of_pte_fails(bench, effect)
    assert await outcome(bench, wait) == ([] if effect else ["bus"])
    assert wait.is_(DONE) if effect else wait.is_(FAILED, reason("BUS"))
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(fabric=["refused", "plain", "unset", "swapped", "unwrapped", "unwritten", "always", "other"])
async def a_fabric_that_does_them_wrongly_is_refused(dut: HierarchyObject, fabric: str) -> None:
    """REQ: SMU-16. The fabric answers with an error, takes the accesses for plain writes (then an AtomicCompare would wait for
    its data for ever), or does the accesses wrongly in another way. The words stay as they were."""
    bench = await disabled(dut)
    bench.memory.atomics = fabric
    for found in (WORDS, (0, 0), (2**64 - 1, 2**64 - 1), (mask("PTE_L"), ~mask("PTE_L") & 2**64 - 1)):
        put(bench, *found)
        assert not await enabled(bench), "SMU-16: enabled without atomic accesses"
        assert words(bench) == found, "SMU-16: a word has changed"
        bench.world.trace.clear()
    cover(f"enable.atomics_{fabric if fabric in ('refused', 'plain') else 'wrong'}")
    bench.memory.atomics = "done"
    put(bench, *WORDS)
    await serves(bench)
    assert tried(bench)
    await bench.finish()


ACCESSES = 16
"""Accesses of the test: eight at each of two words. The last of the eight restores the word."""


@cocotb.test()
@cocotb.parametrize(effect=[0.0, 1.0])
async def a_bus_error_at_any_step_of_the_test_refuses(dut: HierarchyObject, effect: float) -> None:
    """REQ: SMU-16. One access of the test fails, each in turn. Words stay as they were, unless the restoring write fails."""
    bench = await disabled(dut)
    world, begun = bench.world, await bench.os.read(reg("RET_TAIL"))
    world.effect_share, fault = effect, world._fault
    for step in range(ACCESSES + 1):
        count = 0

        def failing(area: str, write: bool = False, step: int = step) -> int:
            nonlocal count
            count += area == "ret"
            return SLVERR if (area, count) == ("ret", step + 1) else fault(area, write)

        world._fault = failing
        stays = await enabled(bench)
        world._fault = fault
        assert stays == (step == ACCESSES), "SMU-16: enabled in spite of a bus error"
        assert count == ACCESSES if stays else count > step, f"SMU-16: {count} accesses"
        assert words(bench) == WORDS or (not effect and step % 8 == 7), "SMU-16: a word has changed"
        put(bench, *WORDS)
        world.tried.clear()
    assert await bench.os.read(reg("RET_TAIL")) == begun
    await bench.os.write(reg("CTRL"), 0)
    await serves(bench)
    await bench.finish()
