# SPDX-License-Identifier: Apache-2.0
"""The unit is enabled only on a fabric that takes exclusive accesses, and with a return ring. REQ: SMU-16"""

from __future__ import annotations

import os

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.places import RET_RING
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import DONE, FAILED, reg

WORDS = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
"""Content of the first entry of the return ring before each test. The test must restore it."""
PAIRS = os.environ.get("SMU_ATOMICS") != "1"
"""Whether the unit makes exclusive pairs; otherwise it makes atomic accesses (atomics.py)."""


async def disabled(dut: HierarchyObject) -> Bench:
    """A bench that is set up and then disabled. The first entry of the return ring holds WORDS."""
    bench = await Bench.start(dut)
    await bench.os.write(reg("CTRL"), 0)
    await bench.cycles(200)
    await bench.os.take_returned()
    put(bench, *WORDS)
    bench.world.trace.clear()
    return bench


def put(bench: Bench, first: int, second: int) -> None:
    """Write the first entry of the return ring."""
    bench.world.ram.write(RET_RING, first)
    bench.world.ram.write(RET_RING + 8, second)


def words(bench: Bench) -> tuple[int, int]:
    """Content of the first entry of the return ring."""
    return bench.world.ram.read(RET_RING), bench.world.ram.read(RET_RING + 8)


async def enabled(bench: Bench) -> bool:
    """Set ENABLE, and return whether it stays set. If not, check that STATUS.ERROR says so and that a request is refused."""
    os = bench.os
    await os.write(reg("CTRL"), 1)
    stays = await os.read(reg("CTRL")) == 1
    assert await os.status("ERROR") != stays, "SMU-16: STATUS.ERROR does not tell whether ENABLE was refused"
    if not stays:
        wait = bench.walkers.ask(0, 0)
        await bench.answered(wait)
        assert wait.is_(FAILED, reason("DISABLED")), f"SMU-16: ENABLE was refused, but a request is answered {wait}"
        await os.write(reg("CTRL"), 0)
        assert await os.status("ERROR") == 0
    return stays


def tried(bench: Bench) -> bool:
    """Whether the unit has written to memory to test the fabric."""
    return ("ret_tried", 0) in bench.world.trace


async def serves(bench: Bench) -> None:
    """Check that the unit can be enabled and then serves misses."""
    assert await enabled(bench), "SMU-16: ENABLE is refused although nothing is wrong"
    assert words(bench) == WORDS, "SMU-16: a word has changed"
    await bench.os.refill(4)
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    bench.world.devices[0].complete()
    await bench.answered(wait)
    assert wait.is_(DONE)


@cocotb.test(skip=not PAIRS)
async def without_exclusive_accesses_it_is_not_enabled(dut: HierarchyObject) -> None:
    """Nothing is written. With exclusive accesses the unit is enabled."""
    bench = await disabled(dut)
    bench.memory.exclusive = False
    assert not await enabled(bench), "SMU-16: enabled without exclusive accesses"
    assert not tried(bench), "SMU-16: written although the read was not exclusive"
    cover("enable.no_exclusives")
    bench.memory.exclusive = True
    await serves(bench)
    assert tried(bench), "SMU-16: enabled without a test"
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(fault=["ret", "ret.write"], effect=[0.0, 1.0])
async def a_bus_error_refuses(dut: HierarchyObject, fault: str, effect: float) -> None:
    """A bus error on the read or on the write refuses ENABLE, whether the write took effect or not."""
    bench = await disabled(dut)
    bench.world.faults.add(fault)
    bench.world.effect_share = effect
    assert not await enabled(bench), "SMU-16: enabled in spite of a bus error"
    cover("enable.write_error" if fault == "ret.write" else "enable.read_error")
    bench.world.faults.clear()
    await serves(bench)
    await bench.finish()


@cocotb.test(skip=not PAIRS)
async def a_pair_that_fails_is_tried_again(dut: HierarchyObject) -> None:
    """If some pairs fail, the unit tries again. If all fail, ENABLE is refused in bounded time, and nothing is written."""
    bench = await disabled(dut)
    bench.memory.claims_lost = 1.0
    assert not await enabled(bench), "SMU-16: enabled although no exclusive pair ever succeeds"
    assert not tried(bench)
    cover("enable.monitor_never")
    bench.memory.claims_lost = 0.5
    await serves(bench)
    bench.memory.claims_lost = 0.0
    await bench.finish()


@cocotb.test()
async def without_a_return_ring_it_is_not_enabled(dut: HierarchyObject) -> None:
    """Without a return ring no frame could come back. The unit does not touch memory. REQ: SMU-5"""
    bench = await disabled(dut)
    await bench.os.write(reg("RET_SIZE"), 0)
    assert not await enabled(bench), "SMU-16: enabled without a return ring"
    assert not tried(bench)
    cover("enable.no_ring")
    await bench.os.write(reg("RET_SIZE"), bench.world.sizes.ret_entries)
    bench.os.head = 0
    await serves(bench)
    await bench.finish()


@cocotb.test()
async def the_test_waits_for_an_install_and_delays_none(dut: HierarchyObject) -> None:
    """ENABLE falls and rises while misses are installed and frames come back, at any moment. REQ: SMU-3, SMU-5"""
    bench = await Bench.start(dut, seed=3)
    world, os = bench.world, bench.os
    bench.memory.latency = lambda: world.rng.randint(0, 12)
    for number in range(24):
        pages = [(number + hart * 7) % world.sizes.pages for hart in range(3)]
        waits = [bench.walkers.ask(hart, page) for hart, page in enumerate(pages)]
        await bench.until(lambda: sum(len(device.pending) for device in world.devices) >= 3)
        for device in world.devices:
            while device.pending:
                device.complete()
        await bench.cycles(number)
        await os.write(reg("CTRL"), 0)
        await os.write(reg("CTRL"), 1)
        assert await os.read(reg("CTRL")) == 1 and await os.status("ERROR") == 0
        await bench.answered(*waits)
        assert all(wait.is_(DONE) for wait in waits)
        await os.take_returned()
        for page in pages:
            os.adopt(page)
            await os.withdraw(page)
            os.arm(page)
        await os.refill(6)
    cover("enable.while_installing")
    await bench.finish()


@cocotb.test()
async def what_an_install_left_behind_is_no_reason(dut: HierarchyObject) -> None:
    """After an install whose outcome is unknown, only the next test decides about ENABLE. REQ: SMU-13"""
    bench = await Bench.start(dut)
    world, os = bench.world, bench.os
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    world.faults.add("pte.write")
    world.devices[0].complete()
    await bench.until(lambda: world.errors)
    world.faults = {"pte"}
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("BUS"))
    world.faults.clear()
    await bench.cycles(60)
    assert "bus mapped" in await os.take_returned()
    await os.write(reg("CTRL"), 0)
    await os.write(reg("CTRL"), 1)
    assert await os.read(reg("CTRL")) == 1, "SMU-16: ENABLE is refused because of an earlier install"
    await bench.finish()
