# SPDX-License-Identifier: Apache-2.0
"""An example for each rule of the contract (the reference model has the same ones in machine/crates/smu/src/tests); `soak` covers
the cases between them."""

from __future__ import annotations

import cocotb
from cocotb.handle import HierarchyObject

from rtl.smu.dv.bench import Bench
from rtl.smu.dv.coverage import cover
from rtl.smu.dv.places import BELLS, FREE_RING, NSID, RET_RING
from rtl.smu.dv.spec import CHANGED, DONE, FAILED, C, desc, get, mask, of, reg

LONG = 600
"""Cycles that are enough for everything except a device."""


def reason(name: str) -> int:
    """A reason's number."""
    return C[f"REASON_{name}"]


@cocotb.test()
async def requests_for_one_page_join_and_all_are_answered(dut: HierarchyObject) -> None:
    """REQ: SMU-1"""
    bench = await Bench.start(dut)
    first = bench.walkers.ask(0, 5)
    await bench.at_device(1)
    waits = [first, bench.walkers.ask(1, 5), bench.walkers.ask(3, 5)]
    await bench.cycles(20)
    assert await bench.os.status("LIVE") == 1
    bench.world.devices[1].complete()
    await bench.answered(*waits)
    assert all(wait.is_(DONE) and wait.pte == bench.world.pte(5) for wait in waits)
    assert (await bench.os.count("COMMANDS"), await bench.os.count("COALESCED")) == (1, 2)
    await bench.finish()


@cocotb.test()
async def an_abandoned_wait_gets_no_answer_and_the_miss_goes_on(dut: HierarchyObject) -> None:
    """REQ: SMU-1, ISA-4"""
    bench = await Bench.start(dut)
    bench.walkers.ask(0, 5)
    await bench.at_device(1)
    bench.walkers.give_up(0)
    await bench.cycles(5)
    again = bench.walkers.ask(0, 5)
    await bench.cycles(10)
    bench.walkers.give_up(0)
    bench.world.devices[1].complete()
    await bench.cycles(LONG)
    assert not again.outcome and bench.world.pte(5) & mask("PTE_V")
    assert await bench.os.count("INSTALLED") == 1
    await bench.finish()


@cocotb.test()
async def a_wait_can_be_abandoned_at_any_moment(dut: HierarchyObject) -> None:
    """REQ: SMU-1, ISA-4. Before acceptance, during the install, in the cycle of the answer: no answer ever comes late."""
    bench = await Bench.start(dut, frames=16)
    bench.world.devices[0].delay = lambda: 1
    for moment in range(90):
        await bench.os.refill(2)
        wait = bench.walkers.ask(0, 0)
        await bench.cycles(moment)
        if wait.outcome:
            break
        bench.walkers.give_up(0)
        await bench.cycles(1)
        other = bench.walkers.ask(0, 2)
        await bench.answered(other)
        for page in (0, 2):
            await bench.os.withdraw(page)
            bench.os.arm(page)
    else:
        raise AssertionError("the answer takes longer than the 90 cycles that the test tries")
    await bench.finish()


@cocotb.test()
async def a_full_pmshr_takes_waiting_harts_in_turn_and_joins(dut: HierarchyObject) -> None:
    """REQ: SMU-1, SMU-6. A request that is taken back before acceptance is forgotten. A request whose miss is live joins this
    miss even while the PMSHR is full."""
    bench = await Bench.start(dut, frames=16)
    os, walkers, pmshr = bench.os, bench.walkers, bench.world.sizes.pmshr
    for n in range(pmshr):
        wait = walkers.ask(0, 2 * n)
        await bench.until(lambda: wait.accepted)  # noqa: B023
        walkers.give_up(0)
        await bench.cycles(2)
    await bench.cycles(60)
    assert await os.status("LIVE") == pmshr
    joins, waits = walkers.ask(0, 0), [walkers.ask(hart, 2 * hart + 13) for hart in range(1, 4)]
    await bench.cycles(50)
    assert joins.accepted and not any(wait.accepted for wait in waits)
    assert await os.count("PMSHR_FULL") == 3
    cover("pmshr.joined_while_full")
    while walkers.waits[2]:
        walkers.give_up(2)
        await bench.cycles(2)
    for _ in range(4):
        bench.world.devices[0].complete()
        await bench.cycles(150)
    await bench.until(lambda: all(waits[i].accepted for i in (0, 2)))
    assert not waits[1].accepted
    for d in (0, 1):
        bench.world.devices[d].delay = lambda: 0
        while bench.world.devices[d].complete():
            await bench.cycles(5)
    await bench.finish()


@cocotb.test()
async def an_entry_that_changed_before_the_lookup_starts_no_io(dut: HierarchyObject) -> None:
    """REQ: SMU-2"""
    bench = await Bench.start(dut)
    seen = bench.world.pte(2)
    await bench.os.withdraw(2)
    wait = bench.walkers.ask(0, 2, seen=seen)
    await bench.until(lambda: wait.outcome or any(device.pending for device in bench.world.devices))
    assert wait.outcome, "SMU-2: a device is asked for the page of an entry that has changed"
    assert wait.is_(CHANGED, reason("CHANGED")) or wait.is_(CHANGED)
    assert wait.pte == 0 and await bench.os.count("COMMANDS") == 0 and await bench.os.read(reg("FREE_USED")) == 0
    cover("lookup.changed")
    await bench.finish()


@cocotb.test()
async def installs_go_from_the_leaf_up(dut: HierarchyObject) -> None:
    """REQ: SMU-3, SMU-4. The unit reads the completion, changes PTE, PMD and PUD, then answers. The world checks each step."""
    bench = await Bench.start(dut)
    wait = bench.walkers.ask(0, 7)
    await bench.at_device(1)
    bench.world.trace.clear()
    bench.world.devices[1].complete()
    await bench.answered(wait)
    steps = [area for area, _ in bench.world.trace if area in ("pte", "pmd", "pud")]
    assert steps == ["pte", "pmd", "pmd", "pud", "pud"] or steps == ["pte", "pte", "pmd", "pmd", "pud", "pud"], steps
    assert bench.world.pte(7) & 0x3ff == 0b10_0101_0011, "V R U A L"
    await bench.finish()


@cocotb.test()
async def an_entry_that_changed_during_the_io_is_left_alone(dut: HierarchyObject) -> None:
    """REQ: SMU-3"""
    bench = await Bench.start(dut)
    wait = bench.walkers.ask(0, 7)
    await bench.at_device(1)
    bench.world.ram.write(bench.world.pte_at(7), 0)
    bench.world.devices[1].complete()
    await bench.answered(wait)
    assert wait.outcome == CHANGED and wait.pte == 0 and bench.world.pte(7) == 0
    await bench.cycles(100)
    assert await bench.os.take_returned() == ["changed"]
    assert not any(area in ("pmd", "pud") for area, _ in bench.world.trace)
    cover("install.changed")
    await bench.finish()


@cocotb.test()
async def exclusive_pairs_that_fail_are_tried_again(dut: HierarchyObject) -> None:
    """REQ: SMU-3, SMU-10. If some pairs fail, the unit tries again. If all fail, it gives up in bounded time."""
    bench = await Bench.start(dut)
    bench.memory.claims_lost = 0.7
    wait = bench.walkers.ask(0, 7)
    await bench.at_device(1)
    bench.world.devices[1].complete()
    await bench.until(lambda: wait.outcome, 10_000)
    assert wait.is_(DONE)
    bench.memory.claims_lost, bench.world.tolerates_same = 1.0, True
    wait = bench.walkers.ask(0, 8)
    await bench.at_device(0)
    bench.world.devices[0].complete()
    await bench.until(lambda: wait.outcome, 20_000)
    assert wait.outcome == CHANGED and wait.pte == wait.seen
    cover("exclusive.given_up")
    bench.memory.claims_lost = 0.0
    await bench.finish()


@cocotb.test()
async def without_exclusive_accesses_nothing_is_written(dut: HierarchyObject) -> None:
    """REQ: SMU-3, SMU-10"""
    bench = await Bench.start(dut)
    bench.memory.exclusive = False
    wait = bench.walkers.ask(0, 7)
    await bench.at_device(1)
    bench.world.devices[1].complete()
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("BUS")) and bench.world.pte(7) == wait.seen
    cover("exclusive.unknown")
    bench.memory.exclusive = True
    await bench.finish()


@cocotb.test()
async def an_empty_ring_fails_the_miss(dut: HierarchyObject) -> None:
    """REQ: SMU-5, SMU-6"""
    bench = await Bench.start(dut, frames=0)
    wait = bench.walkers.ask(0, 0)
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("NO_FRAME")) and (await bench.last_error())[1] == reason("NO_FRAME")
    cover("free.empty")
    await bench.os.refill(1)
    bench.walkers.ask(0, 0)
    await bench.at_device(0)
    await bench.finish()


@cocotb.test()
async def frames_are_prefetched_and_counted_and_come_back_when_disabled(dut: HierarchyObject) -> None:
    """REQ: SMU-5, SMU-6"""
    bench = await Bench.start(dut, frames=8)
    ahead = get("REG_CAP_PREFETCH", await bench.os.read(reg("CAP")))
    assert (await bench.os.read(reg("FREE_HEAD")), await bench.os.read(reg("FREE_USED"))) == (ahead, 0)
    cover("free.prefetch_full")
    accepted = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    await bench.cycles(40)
    assert (await bench.os.read(reg("FREE_HEAD")), await bench.os.read(reg("FREE_USED"))) == (ahead + 1, 1)
    await bench.os.write(reg("CTRL"), 0)
    refused = bench.walkers.ask(1, 2)
    await bench.answered(refused)
    assert refused.is_(FAILED, reason("DISABLED"))
    await bench.cycles(200)
    assert await bench.os.take_returned() == ["disabled"] * ahead
    assert await bench.os.status("NO_FRAMES") == 0, "SMU-5: NO_FRAMES although a frame is at the device"
    cover("register.disabled_while_live")
    bench.world.devices[0].complete()
    await bench.answered(accepted)
    assert accepted.is_(DONE) and await bench.os.status("NO_FRAMES") == 1
    await bench.finish()


@cocotb.test()
async def a_full_return_ring_makes_the_smu_keep_frames(dut: HierarchyObject) -> None:
    """REQ: SMU-5"""
    bench = await Bench.start(dut)
    full = bench.world.sizes.ret_entries
    for n in range(full + 2):
        await bench.os.refill(2)
        wait = bench.walkers.ask(0, n)
        await bench.at_device(n % 2)
        bench.world.devices[n % 2].complete(status=1)
        await bench.answered(wait)
    await bench.cycles(100)
    assert await bench.os.read(reg("RET_TAIL")) == full
    assert (await bench.os.status("LIVE"), await bench.os.status("IDLE"), await bench.os.status("NO_FRAMES")) == (0, 1, 0)
    assert await bench.os.take_returned() == ["device"] * full
    await bench.cycles(100)
    assert await bench.os.take_returned() == ["device"] * 2
    cover("return.kept")
    await bench.finish()


@cocotb.test()
@cocotb.parametrize((("kind", "bits"), [("dma", range(12)), ("pfn", range(44, 64))]))
async def malformed_ring_entries_go_back(dut: HierarchyObject, kind: str, bits: range) -> None:
    """REQ: SMU-5, SMU-10. One wrong bit is enough."""
    bench = await Bench.start(dut, frames=0)
    for bit in bits:
        await bench.os.refill(1, **{f"spoil_{kind}": 1 << bit})
        await bench.cycles(100)
        assert await bench.os.take_returned() == ["bad_entry"], bit
    assert await bench.os.status("ERROR") == 1
    cover(f"free.bad_{kind}")
    await bench.finish()


@cocotb.test()
async def a_device_error_is_told_and_its_frame_returned(dut: HierarchyObject) -> None:
    """REQ: SMU-6"""
    bench = await Bench.start(dut)
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    bench.world.devices[0].complete(status=0x281)
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("DEVICE")) and await bench.last_error() == (0x281, reason("DEVICE"))
    await bench.cycles(100)
    assert await bench.os.take_returned() == ["device"]
    assert bench.world.pte(0) == wait.seen
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(area=["pte", "sq", "sq_bell", "cq", "pmd", "pud"])
async def bus_errors_fail_the_miss_wherever_they_happen(dut: HierarchyObject, area: str) -> None:
    """REQ: SMU-6, SMU-7, SMU-10"""
    bench = await Bench.start(dut)
    if area not in ("pmd", "pud"):
        bench.world.faults.add(area)
    wait = bench.walkers.ask(0, 0)
    if area in ("pmd", "pud"):
        await bench.at_device(0)
        bench.world.faults.add(area)
        bench.world.devices[0].complete()
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("BUS")), wait
    assert await bench.os.status("ERROR") == 1
    assert await bench.os.status("QUARANTINED") == (area in ("sq_bell", "cq"))
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(beats=[{0}, {1}, {0, 1}])
async def a_bus_error_on_the_free_ring_means_no_frame(dut: HierarchyObject, beats: set[int]) -> None:
    """REQ: SMU-6. The miss fails as with an empty ring: the OS must repair the ring. The error is on either beat, or both."""
    bench = await Bench.start(dut, frames=0)
    bench.memory.failed_beats = beats
    bench.world.faults.add("free")
    await bench.os.refill(4)
    await bench.cycles(60)
    assert await bench.os.status("ERROR") == 1, "SMU-6: a frame from a read that met an error"
    wait = bench.walkers.ask(0, 0)
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("NO_FRAME"))
    await bench.finish()


@cocotb.test()
async def a_bus_error_on_the_return_ring_keeps_the_frame(dut: HierarchyObject) -> None:
    """REQ: SMU-5, SMU-10"""
    bench = await Bench.start(dut)
    wait = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    bench.world.faults.add("ret")
    bench.world.devices[0].complete(status=5)
    await bench.answered(wait)
    await bench.cycles(100)
    assert await bench.os.take_returned() == [] and await bench.os.status("NO_FRAMES") == 0
    await bench.finish()


@cocotb.test()
async def a_lost_completion_doorbell_ends_what_is_at_the_device(dut: HierarchyObject) -> None:
    """REQ: SMU-10"""
    bench = await Bench.start(dut)
    waits = [bench.walkers.ask(0, 0), bench.walkers.ask(1, 2)]
    await bench.at_device(0, 2)
    bench.world.faults.add("cq_bell")
    first = bench.world.devices[0].pending[0].lba // 8 % bench.world.sizes.pages
    bench.world.devices[0].complete()
    await bench.answered(*waits)
    assert [wait.outcome for wait in waits] == ([DONE, FAILED] if first == 0 else [FAILED, DONE])
    assert await bench.os.status("QUARANTINED") == 1
    bench.world.faults.clear()
    await bench.os.withdraw(4)
    bench.os.arm(4)
    refused = bench.walkers.ask(0, 4)
    await bench.answered(refused)
    assert refused.is_(FAILED, reason("DESCRIPTOR"))
    cover("descriptor.broken")
    await bench.finish()


@cocotb.test()
async def what_is_not_for_this_unit_fails(dut: HierarchyObject) -> None:
    """REQ: SMU-6, ISA-1"""
    bench = await Bench.start(dut)
    world = bench.world
    for spoil, point in ((of("PTE_SOCKET", 1), "descriptor.socket"), (mask("PTE_D"), "descriptor.not_armed"),
                         (mask("PTE_G"), "descriptor.not_armed"), (of("PTE_HIGH", 1), "descriptor.not_armed")):
        world.ram.write(world.pte_at(0), world.armed(0, 0) | spoil)
        wait = bench.walkers.ask(0, 0)
        await bench.answered(wait)
        assert wait.is_(FAILED, reason("DESCRIPTOR")), wait
        cover(point)
    await bench.os.invalidate(0)
    world.ram.write(world.pte_at(0), world.armed(0, 0))
    wait = bench.walkers.ask(0, 0)
    await bench.answered(wait)
    assert wait.is_(FAILED, reason("DESCRIPTOR")) and await bench.os.count("COMMANDS") == 0
    cover("descriptor.invalid")
    await bench.finish()


@cocotb.test()
async def the_completion_queue_is_read_only_while_a_command_is_outstanding(dut: HierarchyObject) -> None:
    """REQ: SMU-9. (world.py fails the test at any read while no command is outstanding.)"""
    bench = await Bench.start(dut)

    def looks() -> int:
        return sum(1 for area, _ in bench.world.trace if area == "cq")

    await bench.cycles(LONG)
    assert looks() == 0
    bench.walkers.ask(0, 0)
    await bench.at_device(0)
    await bench.cycles(100)
    assert looks() > 5
    bench.world.devices[0].complete()
    await bench.cycles(100)
    before = looks()
    await bench.cycles(LONG)
    assert looks() == before
    await bench.finish()


@cocotb.test()
async def queues_and_rings_wrap(dut: HierarchyObject) -> None:
    """REQ: SMU-5, SMU-9. Tails, heads and the phase bit are right after a wrap."""
    bench = await Bench.start(dut)
    rounds = 3 * bench.world.sizes.depth
    bench.world.devices[0].delay = lambda: 3
    for n in range(rounds):
        await bench.os.refill(1)
        bench.world.devices[0].status = lambda: n % 2  # noqa: B023
        await bench.answered(bench.walkers.ask(n % 4, 0))
        await bench.os.withdraw(0)
        bench.os.arm(0)
        await bench.os.take_returned()
    assert await bench.os.count("INSTALLED") + await bench.os.count("FAIL_DEVICE") == rounds
    assert get("DESC_CQ_HEAD_PHASE", await bench.os.read(desc(0, "CQ_HEAD"))) == 0
    await bench.finish()


@cocotb.test()
async def stray_completions_are_counted_and_dropped(dut: HierarchyObject) -> None:
    """REQ: SMU-10"""
    bench = await Bench.start(dut)
    waits = [bench.walkers.ask(0, 0), bench.walkers.ask(1, 1)]
    await bench.at_device(0)
    await bench.at_device(1)
    mine, theirs = (bench.world.devices[d].pending[0].cid for d in (0, 1))
    free = next(cid for cid in range(bench.world.sizes.pmshr) if cid not in (mine, theirs))
    for cid, kind in ((free, "idle"), (bench.world.sizes.pmshr, "beyond"), (0xffff, "beyond"), (theirs, "other_device")):
        bench.world.devices[0].stray(cid, kind)
        await bench.cycles(60)
    assert await bench.os.count("STRAY_CQE") == 4 and not any(wait.outcome for wait in waits)
    for _ in range(bench.world.sizes.depth):
        bench.world.devices[0].stray(0xffff, "beyond")
    await bench.cycles(100)
    assert await bench.os.count("STRAY_CQE") == 4 + bench.world.sizes.depth - 1
    await bench.finish()


@cocotb.test()
async def a_completion_of_an_earlier_command_is_dropped(dut: HierarchyObject) -> None:
    """REQ: SMU-9. The completion comes twice. The second time, the PMSHR entry has a command of another miss, without data
    yet."""
    bench = await Bench.start(dut)
    device = bench.world.devices[0]
    first = bench.walkers.ask(0, 0)
    await bench.at_device(0)
    earlier = device.pending[0].cid
    device.complete()
    await bench.answered(first)
    await bench.cycles(20)
    second = bench.walkers.ask(1, 2)
    await bench.at_device(0)
    assert (device.pending[0].cid ^ earlier) & mask("CID_INDEX") == 0
    device.post(earlier, 0)
    await bench.cycles(100)
    assert not second.outcome, "SMU-9: a miss is answered by the completion of an earlier command"
    assert await bench.os.count("STRAY_CQE") == 1
    cover("nvme.stray_late")
    device.complete()
    await bench.answered(second)
    assert second.is_(DONE)
    await bench.finish()


@cocotb.test()
async def settings_cannot_change_while_in_use(dut: HierarchyObject) -> None:
    """REQ: SMU-10"""
    bench = await Bench.start(dut)
    os = bench.os
    assert await os.failed_with_error(reg("FREE_BASE"), 0x1000) and await os.read(reg("FREE_BASE")) == FREE_RING
    assert await os.failed_with_error(reg("RET_SIZE"), 1)
    cover("register.ring_in_use")
    for name, value in (("FREE_TAIL", os.tail + bench.world.sizes.free_entries + 5), ("RET_HEAD", 1)):
        await os.write(reg("CTRL"), 0)
        await bench.cycles(100)
        await os.take_returned()
        await os.write(reg("CTRL"), 0)
        assert await os.status("ERROR") == 0, "cleared by disabling while idle"
        await os.write(reg("CTRL"), 1)
        await bench.cycles(100)
        bad = value if name == "FREE_TAIL" else os.head + 9
        assert await os.failed_with_error(reg(name), bad % 2**32)
        cover(f"register.{name.lower()}_refused")
    await os.write(reg("CTRL"), 0)
    await bench.cycles(100)
    for name, value in (("FREE_SIZE", 3), ("FREE_SIZE", 1 << 33), ("FREE_BASE", 8), ("RET_BASE", 1 << 60)):
        await os.write(reg("CTRL"), 0)
        assert await os.failed_with_error(reg(name), value), (name, value)
    cover("register.ring_bad")
    assert await os.failed_with_error(desc(1, "NSID"), 9) and await os.read(desc(1, "NSID")) == NSID[1]
    cover("register.descriptor_in_use")
    await os.invalidate(1)
    good = {"SQ_BASE": bench.world.sq(1), "CQ_BASE": bench.world.cq(1), "DEPTH": bench.world.sizes.depth, "SQ_DB": BELLS[1],
            "CQ_DB": BELLS[1] + 4, "BLOCKS": 3}
    for name, value in (("DEPTH", bench.world.sizes.pmshr), ("DEPTH", 65537), ("SQ_BASE", 0x800), ("CQ_BASE", 1 << 60),
                        ("SQ_DB", 2), ("CQ_DB", 1), ("BLOCKS", 4)):
        await os.write(desc(1, name), value)
        await os.write(reg("CTRL"), 0)
        assert await os.failed_with_error(desc(1, "CTRL"), 1) and await os.read(desc(1, "CTRL")) == 0, (name, value)
        await os.write(desc(1, name), good[name])
    cover("register.descriptor_bad")
    await os.write(reg("CTRL"), 0)
    assert not await os.failed_with_error(desc(1, "CTRL"), 1)
    await bench.finish()


@cocotb.test()
async def registers_by_halves_and_otherwise(dut: HierarchyObject) -> None:
    """REQ: SMU-10. Halves are written, other sizes are ignored, unmapped registers read zero, read-only ones do not change."""
    bench = await Bench.start(dut)
    os, timeout = bench.os, reg("TIMEOUT")
    assert (await os.read(reg("ID"))).to_bytes(8, "little") == b"SMU1\x02\0\0\0"
    await os.write(timeout, 0x1_0000_0002)
    await os.write(timeout + 4, 7, 4)
    await os.write(timeout, 0xffff_ffff, 4)
    assert await os.read(timeout) == 0x7_ffff_ffff
    cover("register.half")
    for offset, size in ((timeout, 1), (timeout + 2, 4), (timeout + 6, 2), (timeout, 7)):
        await os.write(offset, 0, size)
        assert await os.read(timeout) == 0x7_ffff_ffff, (offset, size)
    bench.world.trace.clear()
    await os.write(reg("CTRL"), 0)
    for size in (1, 2, 3):
        await os.write(reg("CTRL"), 1, size)
        assert await os.read(reg("CTRL")) == 0 and ("ret_tried", 0) not in bench.world.trace, "SMU-10: a write of other size acts"
    await os.write(reg("CTRL"), 1)
    await os.write(reg("CTRL") + 4, 0, 4)
    assert await os.read(reg("CTRL")) == 1, "SMU-10: a write of one half changes the other"
    cover("register.other_size")
    for offset in (0x070, 0x130, 0x280, 0x3f8, 0x800 + 0x40 * bench.world.sizes.harts):
        await os.write(offset, 2**64 - 1)
        assert await os.read(offset) == 0, hex(offset)
    cover("register.unmapped")
    names = ("ID", "CAP", "STATUS", "FREE_HEAD", "RET_TAIL", "CNT_REQUESTS")
    for offset in (*map(reg, names), desc(0, "SQ_TAIL"), desc(0, "CQ_HEAD"), desc(0, "N_SUBMITTED")):
        before = await os.read(offset)
        await os.write(offset, before ^ 2**64 - 1)
        assert await os.read(offset) == before, hex(offset)
    cover("register.read_only")
    for d in range(bench.world.sizes.devices):
        await os.write(desc(d, "FENCE"), 2**64 - 1)
        await os.write(desc(d, "EXPIRE") + 4, 0, 4)
        assert (await os.read(desc(d, "FENCE")), await os.read(desc(d, "EXPIRE"))) == (0, 0), "SMU-8: a fence waits for nothing"
    await os.write(timeout, 0)
    assert await os.read(reg("RET_BASE")) == RET_RING
    await bench.finish()


@cocotb.test()
async def the_snoop_port_saves_the_wait_for_the_next_look(dut: HierarchyObject) -> None:
    """REQ: SMU-9"""
    bench = await Bench.start(dut)
    bench.snooping = 1.0
    waits = [bench.walkers.ask(hart, hart) for hart in range(4)]
    await bench.at_device(0, 2)
    await bench.at_device(1, 2)
    for d in (0, 1, 0, 1):
        bench.world.devices[d].complete()
    await bench.answered(*waits)
    await bench.finish()
