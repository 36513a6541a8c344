# SPDX-License-Identifier: Apache-2.0
"""Cases that random runs hardly meet, such as commands that are accepted while their queue is removed, or marks that cannot be
set."""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.rules import reason
from rtl.smu.dv.spec import DONE, FAILED, desc, mask, names_block, of


def rung(bench: Bench) -> int:
    """How many submission doorbells were written."""
    return sum(area == "sq_bell" for area, _ in bench.world.trace)


@cocotb.test()
async def a_command_that_waits_while_its_descriptor_goes_is_not_written(dut: HierarchyObject) -> None:
    """REQ: SMU-7, SMU-9. The command's frame goes back. An earlier command, which is already written, is served."""
    bench = await Bench.start(dut)
    bench.memory.b.pause = True
    first, second = bench.walkers.ask(0, 0), None
    await bench.cycles(60)
    second = bench.walkers.ask(1, 2)
    await bench.cycles(60)
    stop = cocotb.start_soon(bench.os.write(desc(0, "CTRL"), 0))
    await bench.cycles(60)
    assert not stop.done() and not rung(bench)
    bench.memory.b.pause = False
    await stop
    await bench.cycles(500)
    assert second.is_(FAILED, reason("DESCRIPTOR")) and not first.outcome, "SMU-9: a command of a stopped descriptor"
    await bench.cycles(100)
    assert await bench.os.take_returned() == ["descriptor"] and rung(bench) == 1, "SMU-9: its doorbell was rung"
    await bench.at_device(0)
    bench.world.devices[0].complete()
    await bench.answered(first)
    assert first.is_(DONE)
    cover("descriptor.gone_before_command")
    await bench.os.release(0)
    await bench.os.set_up_descriptor(0)
    await bench.finish()


@cocotb.test()
async def a_command_written_while_its_queue_is_lost_rings_nobody(dut: HierarchyObject) -> None:
    """REQ: SMU-7, SMU-9. The command is in the queue, and a later doorbell would start it: quarantine until RELEASE."""
    bench = await Bench.start(dut)
    first = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    bench.memory.b.pause = True
    second = bench.walkers.ask(1, 2)
    await bench.cycles(60)
    bench.world.faults.add("cq")
    await bench.answered(first)
    assert first.is_(FAILED, reason("BUS")) and not second.outcome
    bench.memory.b.pause = False
    await bench.cycles(1000)
    assert second.is_(FAILED, reason("BUS")), "SMU-7: a command of a lost queue is not failed"
    await bench.cycles(200)
    assert rung(bench) == 1 and await bench.os.status("QUARANTINED") == 2, "SMU-7: a lost queue's command is not in quarantine"
    assert await bench.os.take_returned() == []
    cover("descriptor.lost_during_command")
    bench.world.faults.clear()
    await bench.os.invalidate(0)
    await bench.os.release(0)
    await bench.cycles(200)
    assert await bench.os.take_returned() == ["bus", "bus"]
    await bench.os.set_up_descriptor(0)
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(level=["pmd", "pud"])
async def a_mark_that_is_never_set_ends_in_bounded_time(dut: HierarchyObject, level: str) -> None:
    """REQ: SMU-3, SMU-10. All exclusive pairs fail: the answer is failed(bus), and the page keeps its frame."""
    bench = await Bench.start(dut)
    world = bench.world
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    world.devices[0].complete()
    before = {"pmd": "pte", "pud": "pmd"}[level]
    await bench.until(lambda: world.progress.get(0) == before)
    bench.memory.claims_lost = 1.0
    await bench.until(lambda: wait.outcome, 20_000)
    assert wait.is_(FAILED, reason("BUS")) and await bench.os.status("ERROR") == 1, "SMU-3: a missing mark is not reported"
    assert world.pte(0) & mask("PTE_V")
    bench.memory.claims_lost = 0.0
    world.lost_marks.add(0)  # only STATUS.ERROR and failed(bus) report it
    await bench.cycles(100)
    assert await bench.os.take_returned() == []
    cover(f"exclusive.given_up_{level}")
    await bench.finish()


@cocotb.test()
async def the_armed_form_alone_is_served(dut: HierarchyObject) -> None:
    """REQ: SMU-6, ISA-1. Tries each pattern of the flags, and each single bit above the block address."""
    bench = await Bench.start(dut)
    world, walkers = bench.world, bench.walkers
    flags = [of("PTE_HIGH", 1 << bit) for bit in range(mask("PTE_HIGH").bit_count())]
    flags = [0, *flags, *(of("PTE_SOCKET", socket) for socket in range(1, 8))]
    plain = world.armed(0, 0) & ~0x3ff
    entries = [plain | wrong | low for wrong in flags for low in range(0x400)
               if not wrong or low == world.armed(0, 0) & 0x3ff]
    served = [entry for entry in entries if names_block(entry) and not entry & mask("PTE_SOCKET")]
    others = [entry for entry in entries if entry not in served]
    for first in range(0, len(others), world.sizes.harts):
        waits = []
        for hart, entry in enumerate(others[first:first + world.sizes.harts]):
            world.ram.write(world.pte_at(hart), entry)
            waits.append(walkers.ask(hart, hart, seen=entry))
        await bench.answered(*waits)
        for wait in waits:
            assert wait.is_(FAILED, reason("DESCRIPTOR")), f"SMU-6: {wait.seen:#x} is not armed, and is answered {wait}"
            cover("descriptor.not_armed")
    for hart in range(world.sizes.harts):
        world.ram.write(world.pte_at(hart), world.armed(hart, 0))
    assert await bench.os.count("COMMANDS") == 0
    for entry in served:
        world.ram.write(world.pte_at(0), entry)
        wait = walkers.ask(0, 0, seen=entry)
        await bench.at_device(0)
        world.devices[0].complete()
        await bench.answered(wait)
        assert wait.is_(DONE) and wait.pte == world.pte(0), f"SMU-6: {entry:#x} is armed, and is answered {wait}"
        bench.os.adopt(0)
        await bench.os.withdraw(0)
        bench.os.arm(0)
        await bench.os.refill(1)
    await bench.finish()


@cocotb.test()
async def a_frame_that_cannot_go_back_holds_nobody_up(dut: HierarchyObject) -> None:
    """REQ: SMU-5, SMU-10. A malformed entry waits for room in the return ring. Until then the unit fetches nothing after it, and
    misses fail because there is no frame."""
    bench = await Bench.start(dut, frames=0)
    os, entries = bench.os, bench.world.sizes.ret_entries
    await os.refill(entries + 1, spoil_dma=8)
    await os.refill(2)
    await bench.cycles(100 * (entries + 1))
    for _ in range(2):
        wait = bench.walkers.ask(0, 0)
        await bench.answered(wait)
        assert wait.is_(FAILED, reason("NO_FRAME"))
    assert await os.take_returned() == ["bad_entry"] * entries
    await bench.cycles(100)
    assert await os.take_returned() == ["bad_entry"]
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    bench.world.devices[0].complete()
    await bench.answered(wait)
    assert wait.is_(DONE)
    await bench.finish()


@cocotb.test()
async def a_request_in_the_place_of_another_is_looked_at_itself(dut: HierarchyObject) -> None:
    """REQ: SMU-1, SMU-6. A walker takes a request back and asks for another page in the same cycle, at any moment of the first
    request's search. That search found a miss, which the second request must not join."""
    bench = await Bench.start(dut, frames=16)
    walkers, device = bench.walkers, bench.world.devices[0]
    open_miss = walkers.ask(1, 0)
    await bench.at_device(0)
    for number, page in enumerate((2, 4, 6, 8, 10)):
        wait = walkers.ask(0, 0)
        await bench.cycles(number)
        if wait.accepted is None:
            walkers._end(wait)
        else:
            walkers.give_up(0)
            await bench.until(lambda: walkers.waits[0] is None)
        wait = walkers.ask(0, page)
        await bench.at_device(0, 2)
        device.complete(1)
        await bench.answered(wait)
        assert wait.is_(DONE) and not open_miss.outcome
    device.complete()
    await bench.answered(open_miss)
    assert open_miss.is_(DONE)
    await bench.finish()
