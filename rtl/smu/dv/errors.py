# SPDX-License-Identifier: Apache-2.0
"""Writes that meet a bus error, which does not say whether they took effect. REQ: SMU-13"""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.places import RET_RING
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import DONE, FAILED, get, mask, of, reg
from rtl.smu.dv.walkers import Wait
from rtl.smu.dv.world import L

PAGE = 0


async def write_of_pte_fails(bench: Bench, effect: bool) -> Wait:
    """Ask for a page, and return the request when the exchange of its entry has just met a bus error."""
    wait = bench.walkers.ask(0, PAGE)
    await bench.at_device(0)
    bench.world.faults.add("pte.write")
    bench.world.effect_share = float(effect)
    bench.world.devices[0].complete()
    await bench.until(lambda: bench.world.errors)
    return wait


async def outcome(bench: Bench, wait: Wait) -> list[str]:
    """Wait for the answer, and return what came back. The unit reports the error in any case."""
    await bench.answered(wait)
    await bench.cycles(200)
    assert await bench.os.status("ERROR") == 1, "SMU-13: STATUS.ERROR does not report a bus error"
    return await bench.os.take_returned()


def marks(bench: Bench) -> list[bool]:
    """Whether PMD and PUD have their marks."""
    return [bench.world.ram.read(at) & L != 0 for at in (bench.world.pmd_at(PAGE), bench.world.pud_at(PAGE))]


@cocotb.test()
@cocotb.parametrize(meanwhile=["nothing", "dirty", "adopted"])
async def an_exchange_with_an_error_that_took_effect_is_an_install(dut: HierarchyObject, meanwhile: str) -> None:
    """REQ: SMU-13. Harts and the operating system may have changed flags since; by its frame number, the entry is the SMU's."""
    bench = await Bench.start(dut)
    wait = await write_of_pte_fails(bench, effect=True)
    at, pte = bench.world.pte_at(PAGE), bench.world.pte(PAGE)
    assert pte & mask("PTE_V")
    if meanwhile == "dirty":
        bench.world.ram.write(at, pte | mask("PTE_D"))
    elif meanwhile == "adopted":
        bench.os.adopt(PAGE)
    assert await outcome(bench, wait) == [], "SMU-13: the frame of a page is returned"
    assert wait.is_(DONE) and wait.pte == pte and marks(bench) == [True, True]
    await bench.finish()


@cocotb.test()
async def an_exchange_with_an_error_that_took_no_effect_gives_the_frame_back(dut: HierarchyObject) -> None:
    """REQ: SMU-13"""
    bench = await Bench.start(dut)
    wait = await write_of_pte_fails(bench, effect=False)
    assert await outcome(bench, wait) == ["bus"]
    assert wait.is_(FAILED, reason("BUS")) and bench.world.pte(PAGE) == wait.seen and marks(bench) == [False, False]
    bench.world.faults.clear()
    again = bench.walkers.ask(1, PAGE)
    await bench.at_device(0)
    bench.world.devices[0].complete()
    await bench.answered(again)
    assert again.is_(DONE)
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(effect=[False, True])
async def a_frame_that_may_be_mapped_comes_back_as_such(dut: HierarchyObject, effect: bool) -> None:
    """REQ: SMU-13. The read meets an error, too: the marks are set, so that the page is found if it is there."""
    bench = await Bench.start(dut)
    wait = await write_of_pte_fails(bench, effect)
    bench.world.faults.add("pte")
    assert await outcome(bench, wait) == ["bus mapped"], "SMU-13: a frame that may be mapped is not told"
    assert wait.is_(FAILED, reason("BUS")) and marks(bench) == [True, True]
    assert (await bench.last_error())[1] == reason("BUS")
    assert bool(bench.world.pte(PAGE) & mask("PTE_V")) == effect
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(effect=[False, True])
@cocotb.parametrize(value=[0, of("PTE_PFN", 77) | mask("PTE_V") | mask("PTE_R")])
async def an_entry_that_somebody_else_has_written_tells_nothing(dut: HierarchyObject, effect: bool, value: int) -> None:
    """REQ: SMU-13. The page was never there, or was there and is taken away again."""
    bench = await Bench.start(dut)
    wait = await write_of_pte_fails(bench, effect)
    if effect:
        bench.world.take_back(bench.world.frame(get("PTE_PFN", bench.world.pte(PAGE))))
    bench.world.ram.write(bench.world.pte_at(PAGE), value)
    assert await outcome(bench, wait) == ["bus mapped"], "SMU-13: a frame that may be mapped is not told"
    assert wait.is_(FAILED, reason("BUS")) and bench.world.pte(PAGE) == value
    bench.world.ram.write(bench.world.pte_at(PAGE), 0)
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(area=["pmd", "pud"])
@cocotb.parametrize(effect=[False, True])
async def a_mark_with_an_error_keeps_the_page(dut: HierarchyObject, area: str, effect: bool) -> None:
    """REQ: SMU-13. By then the page is installed, so it keeps its frame."""
    bench = await Bench.start(dut)
    wait = bench.walkers.ask(0, PAGE)
    await bench.at_device(0)
    bench.world.faults.add(f"{area}.write")
    bench.world.effect_share = float(effect)
    bench.world.devices[0].complete()
    assert await outcome(bench, wait) == [], "SMU-13: the frame of a page is returned"
    assert wait.is_(FAILED, reason("BUS")) and bench.world.pte(PAGE) & mask("PTE_V")
    assert marks(bench) == [area == "pud" or effect, area == "pud" and effect]
    await bench.finish()


@cocotb.test()
async def a_command_with_an_error_is_never_announced(dut: HierarchyObject) -> None:
    """REQ: SMU-13. The command is beyond the tail, where the next one overwrites it, so its frame is free."""
    bench = await Bench.start(dut)
    bench.world.faults.add("sq")
    bench.world.effect_share = 1.0
    wait = bench.walkers.ask(0, PAGE)
    assert await outcome(bench, wait) == ["bus"] and wait.is_(FAILED, reason("BUS"))
    bench.world.faults.clear()
    again = bench.walkers.ask(1, 2)
    await bench.at_device(0)
    await bench.cycles(50)
    assert len(bench.world.devices[0].pending) == 1 and await bench.os.count("COMMANDS") == 1
    bench.world.devices[0].complete()
    await bench.answered(again)
    assert again.is_(DONE)
    await bench.finish()


@cocotb.test()
async def a_doorbell_with_an_error_may_have_rung(dut: HierarchyObject) -> None:
    """REQ: SMU-7, SMU-13. The device may execute the command, but its queue is out of use: the frame stays in quarantine until
    RELEASE. The next queue pair of the descriptor behaves in the same way."""
    bench = await Bench.start(dut)
    bench.world.effect_share = 1.0
    for hart in (0, 1):
        bench.world.faults.add("sq_bell")
        wait = bench.walkers.ask(hart, PAGE)
        await bench.at_device(0)
        assert await outcome(bench, wait) == [] and wait.is_(FAILED, reason("BUS"))
        assert await bench.os.status("QUARANTINED") == 1
        bench.world.devices[0].complete()
        await bench.cycles(200)
        assert await bench.os.take_returned() == []
        bench.world.faults.clear()
        await bench.os.invalidate(0)
        await bench.os.release(0)
        await bench.cycles(200)
        assert await bench.os.take_returned() == ["bus"] and bench.world.pte(PAGE) == wait.seen
        await bench.os.refill(1)
        await bench.os.set_up_descriptor(0)
    await bench.finish()


@cocotb.test()
async def a_head_doorbell_with_an_error_may_have_rung(dut: HierarchyObject) -> None:
    """REQ: SMU-9, SMU-14. The miss is served; nothing more is asked of the device until RELEASE. The next queue pair of the
    descriptor behaves in the same way."""
    bench = await Bench.start(dut)
    bench.world.effect_share = 1.0
    for page in (PAGE, 2):
        bench.world.faults.add("cq_bell")
        wait = bench.walkers.ask(0, page)
        await bench.at_device(0)
        bench.world.devices[0].complete()
        await bench.answered(wait)
        assert wait.is_(DONE)
        await bench.cycles(100)
        again = bench.walkers.ask(1, 4)
        await bench.answered(again)
        assert again.is_(FAILED, reason("DESCRIPTOR")) and await bench.os.status("ERROR") == 1
        bench.world.faults.clear()
        await bench.os.invalidate(0)
        await bench.os.release(0)
        await bench.os.set_up_descriptor(0)
    await bench.finish()


@cocotb.test()
async def a_return_ring_entry_with_an_error_is_not_taken_twice(dut: HierarchyObject) -> None:
    """REQ: SMU-5, SMU-13. The entry is beyond the tail. The frame is written again when the ring is set up again."""
    bench = await Bench.start(dut)
    wait = bench.walkers.ask(0, PAGE)
    await bench.at_device(0)
    bench.world.faults.add("ret")
    bench.world.effect_share = 1.0
    bench.world.devices[0].complete(status=5)
    assert await outcome(bench, wait) == [] and await bench.os.status("NO_FRAMES") == 0
    bench.world.faults.clear()
    await bench.os.write(reg("CTRL"), 0)
    await bench.os.write(reg("RET_BASE"), RET_RING)
    bench.os.head = 0
    await bench.cycles(200)
    returned = await bench.os.take_returned()
    assert returned.count("device") == 1, returned
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(name=["FREE_BASE", "FREE_SIZE"])
async def a_free_ring_with_an_error_is_used_when_it_is_set_again(dut: HierarchyObject, name: str) -> None:
    """REQ: SMU-5, SMU-10. Until then no frame is fetched, though memory answers again."""
    bench = await Bench.start(dut, frames=0)
    world, os = bench.world, bench.os
    world.faults.add("free")
    await os.refill(2)
    await bench.cycles(60)
    world.faults.clear()
    for hart in (0, 1):
        wait = bench.walkers.ask(hart, PAGE)
        await bench.answered(wait)
        assert wait.is_(FAILED, reason("NO_FRAME"))
    await os.write(reg("CTRL"), 0)
    await os.write(reg(name), await os.read(reg(name)))
    for frame, place in enumerate(world.places):
        if place == "smu":
            world.take_back(frame)
    os.tail = 0
    await os.write(reg("CTRL"), 1)
    await os.refill(2)
    wait = bench.walkers.ask(2, PAGE)
    await bench.at_device(0)
    world.devices[0].complete()
    await bench.answered(wait)
    assert wait.is_(DONE)
    await bench.finish()
