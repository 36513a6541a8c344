# SPDX-License-Identifier: Apache-2.0
"""Commands that complete late or never: timeouts, quarantine, release, and a device that is silent. REQ: SMU-7, SMU-10"""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import DONE, FAILED, desc, reg
from rtl.smu.dv.world import NEVER


@cocotb.test()
async def a_timed_out_command_keeps_its_frame_until_the_completion_comes(dut: HierarchyObject) -> None:
    """REQ: SMU-7"""
    bench = await Bench.start(dut)
    await bench.os.write(reg("TIMEOUT"), 300)
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    await bench.cycles(330)
    assert wait.is_(FAILED, reason("TIMEOUT"))
    assert (await bench.os.status("QUARANTINED"), await bench.os.status("NO_DMA")) == (1, 0)
    again = bench.walkers.ask(1, 0)
    await bench.at_device(0, 2)
    cover("quarantine.asked_again")
    assert await bench.os.take_returned() == []
    bench.world.devices[0].complete()
    await bench.cycles(100)
    assert bench.world.pte(0) == wait.seen and not again.outcome, "SMU-7: a page is installed after its miss has timed out"
    assert await bench.os.take_returned() == ["timeout"]
    cover("quarantine.completed")
    bench.world.devices[0].complete()
    await bench.answered(again)
    assert again.is_(DONE) and await bench.os.status("NO_DMA") == 1
    await bench.finish()


@cocotb.test()
async def release_ends_quarantine_and_waiting(dut: HierarchyObject) -> None:
    """REQ: SMU-7"""
    bench = await Bench.start(dut)
    os = bench.os
    await os.write(reg("TIMEOUT"), 200)
    bench.walkers.ask(0, 0)
    await bench.at_device(0)
    await bench.cycles(250)
    await os.write(reg("TIMEOUT"), 0)
    waits = bench.walkers.ask(1, 2)
    await bench.at_device(0, 2)
    assert await os.failed_with_error(desc(0, "RELEASE"), 0), "RELEASE must be refused while VALID is set"
    await os.invalidate(0)
    await os.release(0)
    await bench.answered(waits)
    assert waits.is_(FAILED, reason("DESCRIPTOR"))
    await bench.cycles(100)
    assert sorted(await os.take_returned()) == ["descriptor", "timeout"]
    assert (await os.read(desc(0, "SQ_TAIL")), await os.read(desc(0, "N_SUBMITTED"))) == (0, 2)
    assert await os.read(desc(0, "N_COMPLETED")) == 2
    await os.set_up_descriptor(0)
    wait = bench.walkers.ask(0, 4)
    await bench.at_device(0)
    bench.world.devices[0].complete()
    await bench.answered(wait)
    assert wait.is_(DONE)
    await bench.finish()


@cocotb.test()
async def a_silent_device_leaves_entries_to_the_others(dut: HierarchyObject) -> None:
    """REQ: SMU-10. At a silent device, misses that nobody waits for take at most three quarters of the entries."""
    bench = await Bench.start(dut, frames=16)
    walkers, most = bench.walkers, bench.world.sizes.pmshr * 3 // 4
    for n in range(most):
        wait = walkers.ask(0, 2 * n)
        await bench.until(lambda: wait.accepted)  # noqa: B023
        await bench.at_device(0, n + 1)
        walkers.give_up(0)
        await bench.cycles(2)
    refused = walkers.ask(0, 2 * most)
    await bench.until(lambda: refused.outcome or len(bench.world.devices[0].pending) > most)
    assert refused.is_(FAILED, reason("TIMEOUT")), "SMU-10: a silent device is given all entries"
    cover("pmshr.forgotten")
    other = walkers.ask(2, 1)
    await bench.until(lambda: other.outcome or bench.world.devices[1].pending)
    assert not other.outcome, "SMU-10: a miss at another device is refused"
    joins = walkers.ask(1, 0)
    bench.world.devices[1].complete()
    await bench.answered(other)
    assert other.is_(DONE)
    again = walkers.ask(3, 2 * most)  # a walker waits for one of those misses now
    await bench.until(lambda: again.accepted)
    await bench.at_device(0, most + 1)
    bench.world.devices[0].delay = lambda: 0
    while bench.world.devices[0].complete():
        await bench.cycles(5)
    for wait in (joins, again):
        await bench.answered(wait)
        assert wait.is_(DONE)
    await bench.finish()


@cocotb.test()
async def a_pmshr_full_of_quarantine_fails_requests_at_once(dut: HierarchyObject) -> None:
    """REQ: SMU-7, SMU-10. A request does not wait for an entry that may never be free."""
    bench = await Bench.start(dut, frames=16)
    await bench.os.write(reg("TIMEOUT"), 60)
    pmshr = bench.world.sizes.pmshr
    for n in range(pmshr):
        hart = n % bench.world.sizes.harts
        await bench.until(lambda: bench.walkers.waits[hart] is None)  # noqa: B023
        bench.walkers.ask(hart, bench.world.sizes.devices * n)  # all at one device
    await bench.cycles(400)
    assert await bench.os.status("QUARANTINED") == pmshr
    assert await bench.os.read(desc(0, "QUARANTINED")) == pmshr
    wait = bench.walkers.ask(0, 1)
    await bench.until(lambda: wait.outcome, 30)
    assert wait.is_(FAILED, reason("TIMEOUT"))
    cover("pmshr.all_in_quarantine")
    for device in bench.world.devices:
        device.delay = lambda: NEVER
    await bench.finish()
