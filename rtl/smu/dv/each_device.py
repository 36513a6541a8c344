# SPDX-License-Identifier: Apache-2.0
"""The doorbell ports, one after the other: what one device sees, tried for each device of the unit. A device is lost when the
unit puts its descriptor out of use. REQ: SMU-14"""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.endpoints import ACCESS, LIMIT, quickly, ringing
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import DONE, FAILED, desc, mask, reg

FIELDS = ("SQ_BASE", "CQ_BASE", "SQ_DB", "CQ_DB", "DEPTH", "NSID", "BLOCKS")


async def again(bench: Bench, d: int) -> None:
    """Set up the queue pair of a lost device again, and check that no error is reported after that. Page d is still armed."""
    await bench.os.invalidate(d)
    await bench.os.release(d)
    await bench.os.set_up_descriptor(d)
    assert await quickly(bench, desc(d, "CTRL")) == mask("DESC_CTRL_VALID")
    await cleared(bench)


async def cleared(bench: Bench) -> None:
    """Clear STATUS.ERROR, check that it stays clear, and give the returned frames again."""
    for enable in (0, 1):
        await quickly(bench, reg("CTRL"), enable)
    await bench.cycles(100)
    assert await bench.os.status("ERROR") == 0, "SMU-14: an error is reported twice"
    await bench.os.take_returned()
    await bench.os.refill(4)


async def served(bench: Bench, d: int) -> None:
    """Check that a miss at the device is served; arm its page again."""
    wait = bench.walkers.ask(0, d)
    await bench.at_device(d)
    bench.world.devices[d].complete()
    await bench.answered(wait)
    assert wait.is_(DONE), f"SMU-10: no miss of device {d} is served"
    await rearm(bench, d)


async def others_are_served(bench: Bench, lost: int) -> None:
    """Check that a miss at each of the other devices is served."""
    for d in range(bench.world.sizes.devices):
        if d != lost:
            await served(bench, d)


async def rearm(bench: Bench, page: int) -> None:
    """Arm a page that was installed for the next miss, and give a frame for it."""
    await bench.os.withdraw(page)
    assert bench.os.arm(page)
    await bench.os.refill(1)


@cocotb.test()
async def a_write_that_is_not_answered_loses_its_device_alone(dut: HierarchyObject) -> None:
    """The device is lost neither too soon nor too late. The write stays under way; after RELEASE, it belongs to an old queue
    pair. REQ: SMU-14, SMU-10"""
    bench = await Bench.start(dut)
    devices = range(bench.world.sizes.devices)
    for d in devices:
        bench.doorbells.mute.add(d)
        wait = bench.walkers.ask(0, d)
        await ringing(bench, d)
        await bench.cycles(LIMIT - 30)
        assert not wait.outcome, f"SMU-14: device {d} is lost too soon"
        await bench.cycles(60)
        assert wait.is_(FAILED, reason("BUS")), f"SMU-14: no answer of device {d}, and no end"
        assert [await bench.os.read(desc(e, "QUARANTINED")) for e in devices] == [int(e == d) for e in devices]
        await cleared(bench)
        await others_are_served(bench, d)
        await bench.os.invalidate(d)
        bench.world.devices[d].pending.clear()
        bench.world.devices[d].deleted = True
        await quickly(bench, desc(d, "RELEASE"), 0)
        assert await quickly(bench, desc(d, "CTRL")) == mask("DESC_CTRL_RINGING")
        bench.doorbells.mute.clear()
        bench.world.faults.add("sq_bell")  # an error of an old write affects nobody
        await bench.os.rung(d)
        bench.world.faults.clear()
        bench.world.devices[d].reset()
        await again(bench, d)
        await served(bench, d)
    await bench.finish()


@cocotb.test()
async def a_write_that_meets_an_error_loses_its_device_alone(dut: HierarchyObject) -> None:
    """REQ: SMU-14"""
    bench = await Bench.start(dut)
    for d in range(bench.world.sizes.devices):
        bench.world.faults.add("sq_bell")
        wait = bench.walkers.ask(0, d)
        await bench.answered(wait)
        bench.world.faults.clear()
        assert wait.is_(FAILED, reason("BUS")), f"SMU-14: an error of device {d} has no effect"
        await others_are_served(bench, d)
        await again(bench, d)
        await served(bench, d)
    await bench.finish()


@cocotb.test()
async def devices_that_are_lost_at_once_are_all_told(dut: HierarchyObject) -> None:
    """The misses of each lost device end, whichever others are lost in the same cycle. REQ: SMU-14, SMU-7"""
    bench = await Bench.start(dut)
    sizes = bench.world.sizes
    most = min(sizes.devices, sizes.pmshr, sizes.harts)
    for first, stride in ((first, stride) for stride in (1, 2, 3) for first in range(0, sizes.devices, most)):
        together = sorted({(first + stride * n) % sizes.devices for n in range(most)})
        bench.doorbells.mute |= set(together)
        waits = [bench.walkers.ask(hart, d) for hart, d in enumerate(together)]
        for d in together:
            await ringing(bench, d)
        await bench.cycles(20)
        bench.world.faults.add("sq_bell")
        bench.doorbells.mute.clear()
        await bench.answered(*waits)
        assert all(wait.is_(FAILED, reason("BUS")) for wait in waits)
        bench.world.faults.clear()
        for d in together:
            await bench.os.invalidate(d)
            await bench.os.release(d)
            await bench.os.set_up_descriptor(d)
        await cleared(bench)
    await bench.finish()


@cocotb.test()
async def a_slow_device_is_told_the_newest_value_alone(dut: HierarchyObject) -> None:
    """REQ: SMU-14"""
    bench = await Bench.start(dut)
    count = 3
    for d, device in enumerate(bench.world.devices):
        pages = range(d, count * len(bench.world.devices), len(bench.world.devices))
        bench.world.trace.clear()
        bench.doorbells.silent.add(d)
        waits = [bench.walkers.ask(hart, page) for hart, page in enumerate(pages)]
        await bench.until(lambda: device.owed == count)  # noqa: B023
        assert await bench.os.read(desc(d, "SQ_TAIL")) == count
        bench.doorbells.silent.clear()
        await bench.at_device(d, count)
        rung = bench.world.trace.count(("sq_bell", d))
        assert rung == 2, f"SMU-14: {rung} doorbell writes for the first of {count} commands and the rest"
        bench.doorbells.silent.add(d)
        while device.complete():
            pass
        await bench.answered(*waits)
        assert all(wait.is_(DONE) for wait in waits), "SMU-14: completions wait for a doorbell"
        bench.doorbells.silent.clear()
        await bench.until(lambda: device.cq_head == count)  # noqa: B023
        assert bench.world.trace.count(("cq_bell", d)) == 2
        await bench.os.refill(count)
    assert await bench.os.status("ERROR") == 0
    await bench.finish()


@cocotb.test()
async def a_refused_change_leaves_a_write_as_it_is(dut: HierarchyObject) -> None:
    """A change during a doorbell write is refused. If the write times out, the device is still lost. REQ: SMU-14"""
    bench = await Bench.start(dut)
    for d in range(bench.world.sizes.devices):
        bench.doorbells.mute.add(d)
        wait = bench.walkers.ask(0, d)
        await ringing(bench, d)
        for name in FIELDS:
            before = await quickly(bench, desc(d, name))
            await quickly(bench, desc(d, name), before ^ 64)
            assert await quickly(bench, desc(d, name)) == before, f"SMU-9: {name} is changed in use"
            ctrl = await quickly(bench, desc(d, "CTRL"))
            assert ctrl == mask("DESC_CTRL_VALID"), f"SMU-14: a refused change of {name} makes the write an old one"
        assert await bench.os.status("ERROR") == 1
        await bench.until(lambda: wait.outcome, LIMIT + ACCESS)  # noqa: B023
        assert wait.is_(FAILED, reason("BUS")), "SMU-14: a write that is not answered loses no device"
        bench.doorbells.mute.clear()
        await again(bench, d)
    await bench.finish()


@cocotb.test()
async def a_change_makes_a_write_an_old_one(dut: HierarchyObject) -> None:
    """The write is for the head doorbell, because no command may be under way. It loses no device, and VALID stays 0 until it
    ends. REQ: SMU-14"""
    bench = await Bench.start(dut)
    for d, device in enumerate(bench.world.devices):
        # All fields of the first device; one field of each other device.
        for name in FIELDS if d == 0 else (FIELDS[d % len(FIELDS)],):
            wait = bench.walkers.ask(0, d)
            await bench.at_device(d)
            bench.doorbells.mute.add(d)
            device.complete()
            await bench.answered(wait)
            assert wait.is_(DONE)
            await ringing(bench, d)
            await bench.os.invalidate(d)
            assert await quickly(bench, desc(d, "CTRL")) == 0
            await quickly(bench, desc(d, name), await quickly(bench, desc(d, name)))
            ctrl = await quickly(bench, desc(d, "CTRL"))
            assert ctrl == mask("DESC_CTRL_RINGING"), f"SMU-14: the write is not old after a change of {name}"
            await bench.cycles(2 * LIMIT)
            bench.doorbells.mute.clear()
            await bench.os.rung(d)
            assert await bench.os.status("ERROR") == 0, "SMU-14: an old doorbell write loses a descriptor"
            device.reset()
            await bench.os.write(desc(d, "RELEASE"), 0)
            await bench.os.set_up_descriptor(d)
            assert await quickly(bench, desc(d, "CTRL")) == mask("DESC_CTRL_VALID")
            await rearm(bench, d)
    await bench.finish()
