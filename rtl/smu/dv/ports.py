# SPDX-License-Identifier: Apache-2.0
"""Examples for the software request ports."""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import CHANGED, DONE, FAILED, get, mask, port, reg
from rtl.smu.dv.world import NEVER


@cocotb.test()
async def software_asks_through_a_port(dut: HierarchyObject) -> None:
    """REQ: SMU-11. A port asks as a walker does, also for an entry that walkers ignore (SOFT)."""
    bench = await Bench.start(dut)
    os, world = bench.os, bench.world
    assert get("REG_CAP_PORTS", await os.read(reg("CAP"))) == world.sizes.harts
    await os.withdraw(3)
    os.arm(3, soft=True)
    world.devices[1].delay = lambda: 20
    wait = await os.ask_port(1, 3)
    assert wait.is_(DONE) and wait.pte == world.pte(3) and not wait.pte & mask("PTE_SOFT")
    assert not bench.walkers.answers, "SMU-11: a walker gets the answer of a port"
    assert (await os.count("REQUESTS"), await os.count("PORT_REQUESTS")) == (1, 1)
    wait = await os.ask_port(0, 5, halves=True)
    assert wait.is_(DONE)
    await bench.finish()


@cocotb.test()
async def ports_and_walkers_join(dut: HierarchyObject) -> None:
    """REQ: SMU-1, SMU-11"""
    bench = await Bench.start(dut)
    asked = [cocotb.start_soon(bench.os.ask_port(number, 5)) for number in (2, 0)]
    await bench.at_device(1)
    wait = bench.walkers.ask(0, 5)
    await bench.cycles(100)
    bench.world.devices[1].complete()
    await bench.answered(wait)
    answers = [await task for task in asked]
    assert all(answer.is_(DONE) and answer.pte == wait.pte for answer in answers)
    assert (await bench.os.count("COMMANDS"), await bench.os.count("COALESCED")) == (1, 2)
    await bench.finish()


@cocotb.test()
async def a_busy_port_shows_no_old_answer(dut: HierarchyObject) -> None:
    """REQ: SMU-11"""
    bench = await Bench.start(dut)
    device = bench.world.devices[1]
    device.delay = lambda: 20
    assert (await bench.os.ask_port(2, 3)).is_(DONE) and await bench.os.read(port(2, "ANSWER")) == bench.world.pte(3)
    device.delay = lambda: NEVER
    second = cocotb.start_soon(bench.os.ask_port(2, 5))
    await bench.at_device(1)
    assert await bench.os.read(port(2, "ANSWER")) == 0, "SMU-11: an answer while busy"
    device.complete()
    assert (await second).is_(DONE)
    await bench.finish()


@cocotb.test()
async def a_port_hears_that_the_entry_changed(dut: HierarchyObject) -> None:
    """REQ: SMU-2, SMU-11. The whole entry is compared, including SOFT."""
    bench = await Bench.start(dut)
    armed = bench.world.pte(4)
    wait = await bench.os.ask_port(0, 4, seen=armed | mask("PTE_SOFT"))
    assert wait.outcome == CHANGED and wait.pte == armed and await bench.os.count("COMMANDS") == 0
    await bench.finish()


@cocotb.test()
async def a_port_refuses_what_no_walker_would_ask(dut: HierarchyObject) -> None:
    """REQ: SMU-6, SMU-11"""
    bench = await Bench.start(dut)
    os, world = bench.os, bench.world
    good = (world.pte_at(0), world.pmd_at(0), world.pud_at(0))
    for spoilt in range(3):
        at = tuple(address + (i == spoilt) for i, address in enumerate(good))
        wait = await os.ask_port(0, 0, addresses=at)
        assert wait.is_(FAILED, reason("DESCRIPTOR")), wait
    cover("descriptor.misaligned")
    wait = await os.ask_port(0, 0, addresses=(good[0] | 1 << 60, *good[1:]))
    assert wait.is_(FAILED, reason("BUS")), wait
    cover("descriptor.far")
    assert not any(area == "pte" for area, _ in world.trace), "SMU-11: memory was read for a refused request"
    armed = world.pte(0)
    world.ram.write(good[0], armed | mask("PTE_D"))
    wait = await os.ask_port(0, 0)
    assert wait.is_(FAILED, reason("DESCRIPTOR"))
    world.ram.write(good[0], armed)
    await os.write(reg("CTRL"), 0)
    wait = await os.ask_port(1, 1)
    assert wait.is_(FAILED, reason("DISABLED"))
    await bench.finish()


@cocotb.test()
async def a_busy_port_takes_no_writes(dut: HierarchyObject) -> None:
    """REQ: SMU-11"""
    bench = await Bench.start(dut)
    os, world = bench.os, bench.world
    asked = cocotb.start_soon(os.ask_port(0, 2))
    await bench.at_device(0)
    assert await os.failed_with_error(port(0, "PMD_ADDR"), 0) and await os.read(port(0, "PMD_ADDR")) == world.pmd_at(2)
    assert await os.failed_with_error(port(0, "ENTRY"), 0)
    cover("register.port_busy")
    world.devices[0].complete()
    assert (await asked).is_(DONE)
    await bench.finish()
